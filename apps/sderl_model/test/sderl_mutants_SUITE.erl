%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mutants_SUITE).

%% Tests of the checks: each deliberate fault (`sderl_planted`), planted in the library on real
%% nodes, must be caught. How many commands that took is printed.
%%
%% Faults in how writes are made are hunted with the cases of sderl_concurrent_SUITE and their
%% checker; the fault of a coordinator that was suspended is hunted in this way after each
%% suspension. Faults that need a deletion or a split are met on walks: random commands, one at a
%% time, in step with the rules for names of the semantics (`sderl_model_names`), and between them
%% the event that the fault needs.

-compile([export_all, nowarn_export_all]).

-import(sderl_ct, [on/3]).

%% The most cases of a hunt, and the most rounds of a walk. A fault needs far fewer on average:
%% chance alone must not end a hunt.
-define(CASES, 2000).
-define(ROUNDS, 40).
%% How long, in ms, a table may differ from what it must become: with a fault, and without.
-define(PATIENCE, 3_000).
-define(LONG, 60_000).
-define(NAMES, [n1, n2, n3, n4, n5, n6]).

suite() -> [{timetrap, {minutes, 20}}].

all() ->
    [sound, skip_apply, early_yes, double_yes, unconditional_removal, lose_down, forget_session,
     keep_names, resurrect, wrong_winner, stale_coordinator]
        ++ sderl_ct:in_long_runs([shrinks]).

init_per_suite(Config) ->
    Held = [{fleet, Fleet}, {nodes, Nodes} | _] =
        sderl_ct:hold(4, [{tick_ms, 200}, {set_aside_ms, 3000}, {write_timeout_ms, 30_000}]),
    ok = sderl_histories:clocks(Fleet, Nodes),
    _ = [ok = application_of(Fleet, N, stop) || N <- Nodes],
    Held ++ Config.

end_per_suite(Config) -> sderl_ct:release(Config).

%% ---------------------------------------------------------------- the faults

%% Without a fault nothing is caught.
sound(Config) ->
    started(Config, [], fun(Fleet, Nodes) ->
        [] = sderl_ct:group(Fleet, g, Nodes),
        none = hunt((setting(Fleet, Nodes))#{patience => ?LONG}, 30, fun dead_names_go/2),
        none = walk({Fleet, ?LONG}, Nodes, fun recreate/3, 1),
        none = walk({Fleet, ?LONG}, Nodes, fun split_and_heal/3, 1)
    end).

skip_apply(Config) -> hunted(Config, skip_apply).
early_yes(Config) -> hunted(Config, early_yes).
double_yes(Config) -> hunted(Config, double_yes).
unconditional_removal(Config) -> hunted(Config, unconditional_removal).
lose_down(Config) -> hunted(Config, lose_down).

%% Group processes are killed while clients wait for them.
forget_session(Config) -> hunted(Config, forget_session).

keep_names(Config) -> walked(Config, keep_names, fun recreate/3).
resurrect(Config) -> walked(Config, resurrect, fun split_and_heal/3).
wrong_winner(Config) -> walked(Config, wrong_winner, fun split_and_heal/3).

%% The coordinator is suspended until there is another one, and resumed while all clients write.
stale_coordinator(Config) ->
    started(Config, [stale_coordinator], fun(Fleet, Nodes) ->
        [] = sderl_ct:group(Fleet, g, Nodes),
        caught(stale_coordinator, stale(?ROUNDS, 0, Fleet, Nodes))
    end).

stale(0, _, _, _) -> none;
stale(Rounds, Done, Fleet, Nodes) ->
    Lead = sderl_ct:lead(Fleet, hd(Nodes), g),
    Others = Nodes -- [Lead],
    ok = sderl_fleet:suspend(Fleet, Lead),
    sderl_ct:await(successor, fun() ->
        lists:all(fun(N) -> lists:member(sderl_ct:lead(Fleet, N, g), Others) end, Others)
    end),
    ok = sderl_fleet:resume(Fleet, Lead),
    %% The old coordinator's node need not show current names until it counts again. A history does
    %% not tell when that is, so the reads of that node are left out.
    Setting = setting(Fleet, Nodes),
    case hunt(Setting, 40, fun(Histories, _) ->
        sderl_histories:check(#{G => [off(Lead) | H] || G := H <- Histories})
    end) of
        none -> stale(Rounds - 1, Done, Fleet, Nodes);
        {Commands, Why} -> {Done + Commands, Why}
    end.

off(Node) -> #{node => Node, start => 0, stop => 0, call => {off, Node}, answer => ok}.

%% A case of the concurrent suite that fails is made shorter, and fails again.
shrinks(Config) ->
    started(Config, [skip_apply], fun(Fleet, Nodes) ->
        [] = sderl_ct:group(Fleet, g, Nodes),
        Setting = setting(Fleet, Nodes),
        {[Case], _} = sderl_concurrent_SUITE:failing(Setting, 1000),
        ct:pal("~tp", [Case]),
        true = sderl_histories:count(Case) =< 20,
        ok = sderl_ct:await(again, fun() ->
            ok =/= sderl_histories:check(sderl_histories:run(Case, Setting))
        end),
        {comment, io_lib:format("~b commands are left", [sderl_histories:count(Case)])}
    end).

%% ---------------------------------------------------------------- hunts

hunted(Config, Fault) ->
    started(Config, [Fault], fun(Fleet, Nodes) ->
        [] = sderl_ct:group(Fleet, g, Nodes),
        Setting = (setting(Fleet, Nodes))#{kills => Fault =:= forget_session},
        caught(Fault, hunt(Setting, ?CASES, fun dead_names_go/2))
    end).

setting(Fleet, Nodes) -> sderl_histories:setting(Fleet, Nodes, [{g, Nodes}]).

%% Runs cases until one is refused. Gives how many commands were run until then.
hunt(Setting, Cases, Check) -> hunt(Setting, Cases, Check, 0).

hunt(_, 0, _, _) -> none;
hunt(Setting, Cases, Check, Done) ->
    {ok, Case} = proper_gen:pick(sderl_histories:case_of(Setting), 14,
                                 {rand:uniform(1 bsl 24), rand:uniform(1 bsl 24), Cases}),
    Commands = Done + sderl_histories:count(Case),
    case Check(sderl_histories:run(Case, Setting), Setting) of
        ok -> hunt(Setting, Cases - 1, Check, Commands);
        Bad -> {Commands, sderl_histories:failure(Case, Bad)}
    end.

%% A history is legal, and processes that ended have no names for long.
dead_names_go(Histories, #{fleet := Fleet, nodes := Nodes} = Setting) ->
    case sderl_histories:check(Histories) of
        ok ->
            Killed = [P || _ := H <- Histories, #{call := {kill, P}} <- H],
            case Killed =:= [] orelse sderl_fleet:await(fun() ->
                Left = [{N, Name, P}
                        || N <- Nodes, Name := P <- sderl_ct:names(Fleet, N, g),
                           lists:member(P, Killed)],
                Left =:= [] orelse Left
            end, maps:get(patience, Setting, ?PATIENCE)) of
                {error, {timeout, Left}} -> {dead_names, Left};
                _ -> ok
            end;
        Bad -> Bad
    end.

caught(Fault, none) -> error({not_caught, Fault});
caught(Fault, {Commands, Why}) ->
    ct:pal("~p: caught after ~b commands~n~ts", [Fault, Commands, Why]),
    {comment, io_lib:format("caught after ~b commands", [Commands])}.

%% ---------------------------------------------------------------- walks

walked(Config, Fault, Event) ->
    started(Config, [Fault], fun(Fleet, Nodes) ->
        [] = sderl_ct:group(Fleet, g, Nodes),
        caught(Fault, walk({Fleet, ?PATIENCE}, Nodes, Event, ?ROUNDS))
    end).

%% `Patient` is a fleet and a time limit in ms. `Event` makes one round: commands, and what happens
%% to the group between them.
walk(Patient, Nodes, Event, Rounds) ->
    try
        lists:foldl(fun(_, {Done, Names}) -> Event(Patient, {Done, Nodes}, Names) end, {0, #{}},
                    lists:seq(1, Rounds))
    of
        _ -> none
    catch
        throw:{diverged, Done, Why} -> {Done, io_lib:format("~tp", [Why])}
    end.

%% A group that was deleted and made again has no names.
recreate({Fleet, _} = Patient, {Done0, Nodes}, Names0) ->
    {Done, Names} = commands(8, Fleet, Nodes, Done0, Names0),
    same(Patient, Nodes, Done, Names),
    sderl_ct:delete(Fleet, g, one_of(Nodes)),
    sderl_ct:await(deleted, fun() ->
        lists:all(fun(N) -> [] =:= on(Fleet, N, fun() -> s_group:own_nodes(g) end) end, Nodes)
    end),
    {ok, g, _} = on(Fleet, hd(Nodes), fun() -> s_group:new_s_group(g, Nodes) end),
    same(Patient, Nodes, Done + 2, #{}),
    {Done + 2, #{}}.

%% Each side has the names whose homes are there. After the heal all nodes have the union, and
%% clashes are settled as their resolver says.
split_and_heal({Fleet, Ms} = Patient, {Done0, [A, B | Right] = Nodes}, Names0) ->
    Left = [A, B],
    {Done1, Names1} = commands(8, Fleet, Nodes, Done0, Names0),
    [ok = sderl_ct:cut(Fleet, N, M) || N <- Left, M <- Right],
    Of = fun(Gone) ->
        lists:foldl(fun(N, Ns) -> {Kept, []} = sderl_model_names:lost(N, Ns), Kept end, Names1,
                    Gone)
    end,
    [_ = sderl_fleet:await(fun() -> one_component(Fleet, Side) end, Ms) || Side <- [Left, Right]],
    {Done2, OfLeft} = commands(10, Fleet, Left, Done1 + 1, Of(Right)),
    {Done3, OfRight} = commands(10, Fleet, Right, Done2, Of(Left)),
    [sderl_ct:heal(Fleet, N, M) || N <- Left, M <- Right],
    {Union, Clashes, []} = sderl_model_names:union([OfLeft, OfRight]),
    Names = maps:merge(Union, #{N => lower(E1, E2) || {N, [E1, E2]} <- Clashes}),
    same(Patient, Nodes, Done3 + 1, Names),
    {Done3 + 1, Names}.

one_component(Fleet, Side) ->
    Sorted = lists:sort(Side),
    case lists:usort([maps:with([lead, epoch, live, role], sderl_ct:state(Fleet, N, g))
                      || N <- Side]) of
        [#{live := Sorted, role := ok}] -> true;
        Other -> Other
    end.

lower(#{pid := P} = E, #{pid := Q} = F) -> case node(P) < node(Q) of true -> E; false -> F end.

%% The resolver of all registrations here.
lower_node(_, P, Q) -> case node(P) < node(Q) of true -> P; false -> Q end.

commands(0, _, _, Done, Names) -> {Done, Names};
commands(K, Fleet, Nodes, Done, Names0) ->
    Node = one_of(Nodes),
    Name = one_of(?NAMES),
    Command = case rand:uniform(6) of
        I when I =< 3 ->
            {register_name, Name, sderl_ct:process(Fleet, one_of(Nodes)),
             #{resolver => {?MODULE, lower_node}}};
        4 -> {unregister_name, Name};
        _ -> {whereis_name, Name}
    end,
    [F | Args] = tuple_to_list(Command),
    Home = case Command of {register_name, _, P, _} -> node(P); _ -> Node end,
    {Expected, Names} = sderl_model_names:step(Command, Home, Names0),
    case answer(Fleet, Node, fun() -> apply(s_group, F, [g | Args]) end) of
        Expected -> commands(K - 1, Fleet, Nodes, Done + 1, Names);
        Found -> throw({diverged, Done + 1, {Node, Command, {expected, Expected}, {found, Found}}})
    end.

%% An operation without an answer counts as a difference: because of a fault a component may ask a
%% home that is away.
answer(Fleet, Node, Ask) ->
    try on(Fleet, Node, Ask)
    catch exit:{timeout, _} = Unknown -> {exit, Unknown}
    end.

%% All nodes come to have these names and no others.
same({Fleet, Ms}, Nodes, Done, Names) ->
    Expected = #{N => P || N := #{pid := P} <- Names},
    case sderl_fleet:await(fun() ->
        Differ = [{N, Found}
                  || N <- Nodes, Found <- [maps:with(?NAMES, sderl_ct:names(Fleet, N, g))],
                     Found =/= Expected],
        Differ =:= [] andalso is_boolean(one_component(Fleet, Nodes)) orelse Differ
    end, Ms) of
        ok -> ok;
        {error, {timeout, Differ}} ->
            throw({diverged, Done, {{expected, Expected}, {found, Differ}}})
    end.

one_of(List) -> lists:nth(rand:uniform(length(List)), List).

%% ---------------------------------------------------------------- nodes

%% The library with these faults on all nodes of the suite, and stopped again whatever happens.
started(Config, Faults, Fun) ->
    {Fleet, Nodes} = {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)},
    _ = sderl_ct:seed(),
    Beams = sderl_plant:beams(Faults),
    Results = sderl_ct:all_on(Fleet, Nodes, fun() -> sderl_plant:start(Beams) end),
    [{ok, _} = R || R <- Results],
    try Fun(Fleet, Nodes)
    after
        [_ = sderl_fleet:resume(Fleet, N) || N <- Nodes],
        [sderl_ct:heal(Fleet, N, M) || N <- Nodes, M <- Nodes, N < M],
        [_ = application_of(Fleet, N, stop) || N <- Nodes]
    end.

application_of(Fleet, Node, F) -> on(Fleet, Node, fun() -> application:F(sderl) end).
