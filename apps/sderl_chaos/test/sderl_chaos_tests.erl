%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([kept/1, held/1, start/2, stop/1]).

-define(NODES, [a@h, b@h, c@h]).

%% ---------------------------------------------------------------- the plan

limits_property_test_() ->
    sderl_prop:eunit("never more at once or in all than the limits allow, nothing outside the "
                     "window", 500, fun prop_limits/0).

prop_limits() ->
    ?FORALL({Settings, Away}, {settings(), range(0, 3)},
            begin
                Rounds = play(Settings, Away, 60),
                #{at_once := AtOnce, kills := Most, window := {From, To}, period_ms := Period,
                  nodes := Nodes, scope := Scope} = Settings,
                Draws = case Scope of cluster -> 1; node -> length(Nodes) end,
                Hits = lists:append([H || #{hits := H} <- Rounds]),
                lists:all(fun(B) -> B end, [
                    lists:all(fun(#{out := Out}) -> Out =< AtOnce end, Rounds),
                    length(Hits) =< Most,
                    lists:all(fun(#{hits := H, held := Held, nothing := None}) ->
                        length(H) + Held + None =:= Draws
                    end, Rounds),
                    lists:all(fun(#{at := At}) ->
                        At >= From + Period - 1 andalso (To =:= infinity orelse At =< To + 1)
                    end, Rounds),
                    %% In scope `node` a node has one kill a round at most, and of a target on it.
                    Scope =:= cluster orelse
                    lists:all(fun(#{hits := H}) ->
                        Ns = [N || {hit, _, N, _} <- H], length(lists:usort(Ns)) =:= length(Ns)
                    end, Rounds),
                    lists:all(fun({hit, T, N, Nth}) ->
                        Nth >= 1 andalso Nth =< count(Settings, T, N)
                    end, Hits)
                ])
            end).

repeat_property_test_() ->
    sderl_prop:eunit("the same seed and the same answers, the same kills, whatever the nodes are "
                     "called and whatever was late", 300, fun prop_repeat/0).

prop_repeat() ->
    ?FORALL({Settings0, Skip}, {settings(), range(0, 5)},
            begin
                %% Without limits, which depend on what happened before.
                Settings = Settings0#{at_once := infinity, kills := infinity,
                                      window := {0, infinity}},
                Names = #{N => list_to_atom("other_" ++ atom_to_list(N)) || N <- ?NODES},
                #{targets := Targets, nodes := Nodes, period_ms := Period} = Settings,
                Renamed = Settings#{
                    targets := [{T, W, [map_get(N, Names) || N <- Ns]} || {T, W, Ns} <- Targets],
                    nodes := [map_get(N, Names) || N <- Nodes]
                },
                Rounds = [H || #{hits := H} <- play(Settings, 0, 20)],
                Again = [H || #{hits := H} <- play(Settings, 0, 20)],
                Other = [H || #{hits := H} <- play(Renamed, 0, 20)],
                {Skip, Late} = sderl_chaos_plan:skip_late(sderl_chaos_plan:new(Settings),
                                                          (Skip + 1) * Period + Period / 2),
                Behind = [H || #{hits := H} <- rounds(Late, Settings, [], 0, 20 - Skip)],
                Rounds =:= Again andalso lists:nthtail(Skip, Rounds) =:= Behind andalso
                    Other =:=
                    [[{hit, T, map_get(N, Names), Nth} || {hit, T, N, Nth} <- H] || H <- Rounds]
            end).

settings() ->
    ?LET(
        {Weights, Scope, Period, From, Length, Seed, AtOnce, Kills},
        {
            ?SUCHTHAT(Ws, [range(1, 5)], Ws =/= []), oneof([cluster, node]), range(1, 1000),
            range(0, 5000), oneof([infinity, range(0, 20_000)]),
            integer(), oneof([infinity, range(1, 5)]), oneof([infinity, range(1, 20)])
        },
        #{
            targets => [{I, W, lists:sublist(?NODES, 1 + I rem 3)}
                        || {I, W} <- lists:enumerate(Weights)],
            nodes => ?NODES,
            scope => Scope,
            period_ms => Period,
            window => {From, if is_integer(Length) -> From + Length; true -> infinity end},
            seed => Seed,
            at_once => AtOnce,
            kills => Kills
        }
    ).

%% Some targets have nothing, some nothing on some nodes.
count(#{seed := Seed}, Target, Node) ->
    Place = length(lists:takewhile(fun(N) -> N =/= Node end,
                                   ?NODES ++
                                   [list_to_atom("other_" ++ atom_to_list(N)) || N <- ?NODES])),
    erlang:phash2({Seed, Target, Place rem 3}) rem 4.

%% Each kill is away for so many rounds.
play(Settings, Away, Most) -> rounds(sderl_chaos_plan:new(Settings), Settings, [], Away, Most).

rounds(_, _, _, _, 0) ->
    [];
rounds(Plan, Settings, Out, Away, Most) ->
    case sderl_chaos_plan:next(Plan) of
        over ->
            [];
        {ok, At} ->
            {Draws, Plan1} = sderl_chaos_plan:draws(Plan),
            Drawn = [answered(D, Settings) || D <- Draws],
            Still = [N - 1 || N <- Out, N > 0],
            {Hits, Held, Plan2} = sderl_chaos_plan:admit(Plan1, Drawn, length(Still)),
            Now = Still ++ [Away || _ <- Hits],
            Nothing = length([D || D <- Drawn, sderl_chaos_plan:wants(D) =:= nothing]),
            [#{at => At, hits => Hits, held => Held, nothing => Nothing, out => length(Now)}
             | rounds(Plan2, Settings, Now, Away, Most - 1)]
    end.

answered(Draw, Settings) ->
    case sderl_chaos_plan:wants(Draw) of
        {ask, Target, Nodes} ->
            answered(sderl_chaos_plan:answer(Draw,
                                             #{N => count(Settings, Target, N) || N <- Nodes}),
                     Settings);
        _ -> Draw
    end.

plan(More) ->
    maps:merge(
        #{
            targets => [{1, 3, [a@h, b@h]}, {2, 1, [a@h, b@h]}], nodes => [a@h, b@h],
            scope => cluster, period_ms => 10, window => {0, infinity}, seed => 4711,
            at_once => infinity, kills => infinity
        },
        More
    ).

drawn(Plan, Counts) ->
    {Draws, Plan1} = sderl_chaos_plan:draws(Plan),
    Full = fun Full(D) ->
        case sderl_chaos_plan:wants(D) of
            {ask, T, Nodes} ->
                Full(sderl_chaos_plan:answer(
                    D, #{N => C || N <- Nodes, {{T1, N1}, C} <- Counts, T1 =:= T, N1 =:= N}
                ));
            _ -> D
        end
    end,
    {Hits, _, Plan2} = sderl_chaos_plan:admit(Plan1, [Full(D) || D <- Draws], 0),
    {Hits, Plan2}.

hits(0, _, _) ->
    [];
hits(N, Plan, Counts) ->
    {Hits, Plan1} = drawn(Plan, Counts),
    Hits ++ hits(N - 1, Plan1, Counts).

%% With this seed; within a few standard deviations.
weights_test() ->
    Hits = hits(4000, sderl_chaos_plan:new(plan(#{})),
                [{{1, a@h}, 1}, {{1, b@h}, 9}, {{2, a@h}, 5}]),
    ?assertEqual(4000, length(Hits)),
    First = length([1 || {hit, 1, _, _} <- Hits]),
    OnB = length([1 || {hit, 1, b@h, _} <- Hits]),
    ?assert(abs(First / 4000 - 0.75) < 0.03),
    ?assert(abs(OnB / First - 0.9) < 0.03).

%% A target without things leaves its share to the others.
nothing_there_test() ->
    Plan = sderl_chaos_plan:new(plan(#{})),
    ?assertEqual([2], lists:usort([T || {hit, T, _, _} <- hits(100, Plan, [{{2, b@h}, 2}])])),
    ?assertEqual([], hits(10, Plan, [])).

window_test() ->
    Times = fun Times(Plan) ->
        case sderl_chaos_plan:next(Plan) of
            over -> [];
            {ok, At} -> [At | Times(element(2, sderl_chaos_plan:draws(Plan)))]
        end
    end,
    ?assertEqual([150, 200, 250],
                 Times(sderl_chaos_plan:new(plan(#{window => {100, 250}, period_ms => 50})))),
    ?assertEqual([], Times(sderl_chaos_plan:new(plan(#{window => {100, 149}, period_ms => 50})))).

%% Missed hits do not count as kills.
missed_test() ->
    {[_], Plan} = drawn(sderl_chaos_plan:new(plan(#{kills => 1})), [{{1, a@h}, 1}]),
    ?assertEqual(over, sderl_chaos_plan:next(Plan)),
    ?assertMatch({ok, _}, sderl_chaos_plan:next(sderl_chaos_plan:missed(Plan, 1))).

%% ---------------------------------------------------------------- the options

base() -> #{nodes => [a@h, b@h], targets => [#{kind => link}], every_ms => 100}.

bad_options_test_() ->
    [
        {Words, fun() ->
            {error, Reason} = sderl_chaos:start(Options),
            Text = unicode:characters_to_list(sderl_chaos:text(Reason)),
            ?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text})
        end}
     || {Options, Words} <- [
         {nonsense, "a map of options"},
         {maps:remove(nodes, base()), "the option nodes is missing"},
         {maps:remove(targets, base()), "the option targets is missing"},
         {maps:remove(every_ms, base()), "the option every_ms is missing"},
         {(base())#{every => 5}, "the option every is 5, but must be one of these keys"},
         {(base())#{nodes := []}, "the option nodes is []"},
         {(base())#{nodes := [a@h, a@h]}, "none of them twice"},
         {(base())#{nodes := [a@h | b@h]}, "the option nodes is [a@h|b@h]"},
         {(base())#{every_ms := 0}, "the option every_ms is 0"},
         {(base())#{per_s => 1}, "left out where every_ms is given"},
         {(maps:remove(every_ms, base()))#{per_s => 0}, "the option per_s is 0"},
         {(base())#{scope => group}, "cluster or node"},
         {(base())#{window => {5, 4}}, "ToMs not less than FromMs"},
         {(base())#{dry_run => yes}, "the option dry_run is yes"},
         {(base())#{call => fun() -> ok end}, "a fun of four arguments"},
         {(base())#{limits => #{at_once => 0}}, "limits / at_once is 0"},
         {(base())#{limits => #{atonce => 1}},
          "limits / atonce is 1, but must be one of these keys: at_once"},
         {(base())#{limits => #{never => name}}, "limits / never is name"},
         {(base())#{limits => #{never_nodes => [a@hh]}},
          "limits / never_nodes is a@hh, but must be one of the option nodes"},
         {(base())#{targets := []}, "at least one"},
         {(base())#{targets := [#{kind => link, weight => 0}]}, "a weight over 0"},
         {(base())#{targets := [#{kind => link}, #{kind => disk}]}, "targets / 2 / kind is disk"},
         {(base())#{targets := [link]}, "targets / 1 is link, but must be a map with the key kind"},
         {(base())#{targets := [#{kind => link, fleet => self()}]}, "targets / 1 / fleet"},
         {(base())#{targets := [#{kind => process}]}, "find, module and supervisor"},
         {(base())#{targets := [#{kind => process, find => {m, f}}]},
          "targets / 1 / find is {m,f}"},
         {(base())#{targets := [#{kind => process, module => "m"}]}, "must be an atom"},
         {(base())#{targets := [#{kind => name, names => []}]}, "targets / 1 / names is []"},
         {(base())#{targets := [#{kind => link, nodes => [c@h]}]},
          "targets / 1 / nodes is c@h, but must be one of the option nodes"},
         {(base())#{targets := [#{kind => node}]}, "set allow_halt to true, or name a fleet"},
         {(base())#{targets := [#{kind => node, restart_ms => 1}], allow_halt => true},
          "only a fleet restarts nodes"},
         {(base())#{nodes := ['nobody@127.0.0.1']}, "nobody@127.0.0.1: it cannot be reached"}
     ]
    ].

completed_test() ->
    {ok, #{plan := Plan, targets := Targets, dry := false, never := []}} =
        sderl_chaos_options:check((base())#{
            scope => node,
            targets := [#{kind => link, weight => 0}, #{kind => name, group => g, weight => 2.5}]
        }),
    ?assertMatch(#{at_once := 2, kills := infinity, targets := [{2, 2.5, [a@h, b@h]}],
                   period_ms := 100, seed := 1}, Plan),
    ?assertMatch(#{2 := #{spec := {name, {s_group, g}, all}, class := {name, {s_group, g}}}},
                 Targets),
    {ok, #{plan := #{period_ms := 500.0}}} =
        sderl_chaos_options:check((maps:remove(every_ms, base()))#{per_s => 2}),
    {ok, #{plan := #{period_ms := 1000.0, targets := [{1, 1, [b@h]}]}}} =
        sderl_chaos_options:check((maps:remove(every_ms, base()))#{
            per_s => 2, scope => node, limits => #{never_nodes => [a@h]}
        }).

%% A link is cut by the end whose name comes first: the service's own node must be neither end.
own_links_test() ->
    Own = node(),
    Others = ['y@h', 'z@h', 'zz@h'],
    ?assert(Own < hd(Others)),
    Check = fun(Target, Limits) ->
        {ok, #{targets := #{1 := #{nodes := Nodes, spec := {link, Peers}}}}} =
            sderl_chaos_options:check((base())#{
                nodes := [Own | Others], targets := [Target#{kind => link}], limits => Limits
            }),
        {Nodes, Peers}
    end,
    ?assertEqual({Others, Others}, Check(#{}, #{})),
    ?assertEqual({['y@h', 'z@h'], ['y@h', 'z@h']}, Check(#{}, #{never_nodes => ['zz@h']})),
    %% Both ends are nodes of the target.
    ?assertEqual({['y@h', 'z@h'], ['y@h', 'z@h']}, Check(#{nodes => [Own, 'y@h', 'z@h']}, #{})).

%% In the order of the nodes, on which the plan's choices depend.
install_test() ->
    Install = fun(Limits, Targets) ->
        {ok, #{install := Install, plan := #{nodes := Nodes}}} =
            sderl_chaos_options:check((base())#{nodes := [c@h, b@h, a@h], targets := Targets,
                                                limits => Limits}),
        {Install, Nodes}
    end,
    All = [c@h, b@h, a@h],
    ?assertEqual({All, All}, Install(#{}, [#{kind => name}])),
    ?assertEqual({[c@h, a@h], All}, Install(#{never_nodes => [b@h]}, [#{kind => link}])),
    ?assertEqual({[c@h, a@h], All},
                 Install(#{}, [#{kind => name, nodes => [a@h]}, #{kind => name, nodes => [c@h]}])).

%% ---------------------------------------------------------------- the agent, on this node

conf() -> #{owner => self(), lease_ms => 60_000, never => [], library => false, tops => false}.

order(Number) ->
    #{number => Number, dry => false, await => false,
      until_ms => sderl_chaos_agent:clock() + 60_000}.

count(Conf, Pids) ->
    {ok, Agent} = sderl_chaos_agent:start(Conf),
    Held = holder([{Pid, Pid} || Pid <- Pids]),
    {ok, Count} = sderl_chaos_agent:look(Agent, t, {find, {?MODULE, held, [Held]}}, Conf),
    {ok, []} = sderl_chaos_agent:finish(Agent),
    Count.

%% The node would end with any of these. Two that init has started belong to no application.
system_test() ->
    Init = whereis(init),
    {links, Links} = process_info(Init, links),
    Children = [Pid || Pid <- processes(), process_info(Pid, parent) =:= {parent, Init}],
    System = lists:usort([Init, whereis(logger) | Children ++ [Pid || Pid <- Links, is_pid(Pid)]]),
    ?assert(length(System) > 5),
    ?assertEqual(0, count(conf(), System)).

%% The first process of an application.
top_test() ->
    App = sderl_chaos_tests_app,
    ok = application:load({application, App, [{vsn, "1"}, {modules, []}, {registered, []},
                                              {applications, []}, {mod, {?MODULE, self()}}]}),
    ok = application:start(App),
    {Top, Child} = receive {top, T, C} -> {T, C} end,
    ?assertEqual({0, 1}, {count(conf(), [Top]), count(conf(), [Child])}),
    ?assertEqual(2, count((conf())#{tops := true}, [Top, Child])),
    ok = application:stop(App),
    ok = application:unload(App).

-doc "As an application: a process that has started another.".
start(_, Test) ->
    {ok, spawn_link(fun() -> Test ! {top, self(), spawn_link(fun rest/0)}, rest() end)}.

-doc "As an application.".
stop(_) -> ok.

%% Orders whose answer is no longer waited for.
late_order_test() ->
    {ok, Agent} = sderl_chaos_agent:start(conf()),
    Victim = spawn(fun rest/0),
    Spec = {find, {?MODULE, held, [holder([{key, Victim}])]}},
    {ok, 1} = sderl_chaos_agent:look(Agent, t, Spec, conf()),
    ?assertEqual({error, late},
                 sderl_chaos_agent:strike(Agent, t, Spec, 1,
                                          (order(1))#{until_ms := sderl_chaos_agent:clock() - 1})),
    ?assertEqual({ok, [], []}, sderl_chaos_agent:beat(Agent, [], [2])),
    ?assertEqual({error, late}, sderl_chaos_agent:strike(Agent, t, Spec, 1, order(2))),
    ?assert(is_process_alive(Victim)),
    ?assertMatch({ok, #{key := key, pid := Victim}},
                 sderl_chaos_agent:strike(Agent, t, Spec, 1, order(3))),
    ?assertNot(is_process_alive(Victim)),
    {ok, []} = sderl_chaos_agent:finish(Agent).

%% The agent stood still for longer than its lease: the messages in its mailbox are too old.
lapsed_test() ->
    %% Longer than a busy machine takes until it is suspended.
    Conf = (conf())#{lease_ms := 2000},
    {ok, Agent} = sderl_chaos_agent:start(Conf),
    Victim = spawn(fun rest/0),
    Spec = {find, {?MODULE, held, [holder([{key, Victim}])]}},
    {ok, 1} = sderl_chaos_agent:look(Agent, t, Spec, Conf),
    Monitor = monitor(process, Agent),
    true = erlang:suspend_process(Agent),
    Request = gen_server:send_request(Agent, {strike, t, Spec, 1, order(1)}),
    Until = sderl_chaos_agent:clock() + 2010,
    ok = sderl_fleet:await(fun() -> sderl_chaos_agent:clock() > Until end, 60_000),
    true = erlang:resume_process(Agent),
    ?assertEqual({reply, {error, gone}}, gen_server:wait_response(Request, 60_000)),
    receive {'DOWN', Monitor, process, Agent, normal} -> ok end,
    ?assert(is_process_alive(Victim)).

%% A process that holds a list of things.
holder(Things) -> Self = self(), spawn(fun() -> hold(Things, monitor(process, Self)) end).

hold(Things, Owner) ->
    receive
        {set, New} -> hold(New, Owner);
        {ask, From} -> From ! {self(), Things}, hold(Things, Owner);
        {'DOWN', Owner, process, _, _} -> ok
    end.

-doc "What it holds.".
held(Holder) ->
    Holder ! {ask, self()},
    receive {Holder, Things} -> Things end.

%% ---------------------------------------------------------------- the service, on this node alone

%% During a round, after the search, the service is stopped or its owner ends: nothing is killed any
%% more.
ended_test_() ->
    [
        {atom_to_list(How), fun() ->
            Self = self(),
            Call = fun
                (_, sderl_chaos_agent, look, A) ->
                    Answer = apply(sderl_chaos_agent, look, A),
                    Self ! {looked, self()},
                    receive go -> Answer end;
                (_, M, F, A) ->
                    apply(M, F, A)
            end,
            Victim = spawn(fun rest/0),
            Owner = spawn(fun rest/0),
            {ok, Chaos} = sderl_chaos:start(#{
                nodes => [node()], call => Call, every_ms => 5, owner => Owner,
                targets => [#{kind => process, find => {?MODULE, held, [holder([{key, Victim}])]}}]
            }),
            Monitor = monitor(process, Chaos),
            Looking = receive {looked, L} -> L end,
            case How of
                stop ->
                    Stop = gen_server:send_request(Chaos, {stop, 0}),
                    %% The service has got the call to stop, and waits for the round.
                    #{next_ms := over} = sderl_chaos:status(Chaos),
                    Looking ! go,
                    ?assertEqual({reply, {ok, []}}, gen_server:wait_response(Stop, 60_000));
                owner ->
                    exit(Owner, kill),
                    ok = sderl_fleet:await(
                        fun() -> maps:get(next_ms, sderl_chaos:status(Chaos)) =:= over end, 60_000
                    ),
                    Looking ! go
            end,
            receive {'DOWN', Monitor, process, Chaos, normal} -> ok end,
            ?assert(is_process_alive(Victim))
        end}
     || How <- [stop, owner]
    ].

%% The answer to an order is lost, and what it killed stays away: it counts for the limit until it
%% is back.
unsure_test_() -> {spawn, fun unsure_alone/0}.

unsure_alone() ->
    Asked = atomics:new(1, []),
    Call = fun
        (_, sderl_chaos_agent, strike, A) ->
            _ = apply(sderl_chaos_agent, strike, A),
            exit(lost);
        (_, sderl_chaos_agent, beat, [_, _, [1]] = A) ->
            ok = atomics:add(Asked, 1, 1),
            apply(sderl_chaos_agent, beat, A);
        (_, M, F, A) ->
            apply(M, F, A)
    end,
    [A, B, A2] = [spawn(fun rest/0) || _ <- [1, 2, 3]],
    Holder = holder([{a, A}, {b, B}]),
    {ok, Chaos} = sderl_chaos:start(#{
        nodes => [node()], call => Call, every_ms => 5, report => self(),
        limits => #{kills => 1, at_once => 1},
        targets => [#{kind => process, find => {?MODULE, held, [Holder]}}]
    }),
    ok = sderl_fleet:await(fun() -> [A, B] =/= [P || P <- [A, B], is_process_alive(P)] end, 60_000),
    ok = sderl_fleet:await(fun() -> #{unsure := N} = sderl_chaos:status(Chaos), N =:= 1 end,
                           60_000),
    ?assertMatch(#{not_back := 1, kills := 0}, sderl_chaos:status(Chaos)),
    %% The agent was asked what became of it: it is watched. (The first answer has come when it is
    %% asked again.)
    ok = sderl_fleet:await(fun() -> atomics:get(Asked, 1) >= 2 end, 60_000),
    ?assertMatch(#{not_back := 1, unsure := 1}, sderl_chaos:status(Chaos)),
    [Left] = [T || {_, P} = T <- [{a, A}, {b, B}], is_process_alive(P)],
    [Key] = [a, b] -- [element(1, Left)],
    Holder ! {set, [Left, {Key, A2}]},
    receive {sderl_chaos, Chaos, sure} -> ok end,
    ?assertMatch(#{not_back := 0, unsure := 0, skipped := #{unanswered := 1}},
                 sderl_chaos:status(Chaos)),
    ?assertEqual({ok, []}, sderl_chaos:stop(Chaos)),
    ?assertEqual([false],
                 lists:usort([is_process_alive(P) || P <- [A, B], P =/= element(2, Left)])),
    ?assert(is_process_alive(element(2, Left))).

%% The answer to the first order is lost: it counts, its number is not used again, and what comes of
%% it is not taken for another's.
unanswered_test() ->
    Lost = atomics:new(1, []),
    Call = fun
        (_, sderl_chaos_agent, strike, A) ->
            Answer = apply(sderl_chaos_agent, strike, A),
            case atomics:add_get(Lost, 1, 1) of
                1 -> exit(lost);
                _ -> Answer
            end;
        (_, M, F, A) ->
            apply(M, F, A)
    end,
    Keepers = [keeper() || _ <- [1, 2, 3]],
    {ok, Chaos} = sderl_chaos:start(#{
        nodes => [node()], call => Call, every_ms => 5, limits => #{kills => 3},
        targets => [#{kind => process, class => kept, find => {?MODULE, kept, [Keepers]}}]
    }),
    ok = sderl_fleet:await(fun() -> maps:get(next_ms, sderl_chaos:status(Chaos)) =:= over end,
                           60_000),
    #{skipped := Skipped, problems := Problems} = sderl_chaos:status(Chaos),
    {ok, Kills} = sderl_chaos:stop(Chaos, 60_000),
    ?assertMatch(#{unanswered := 1, missed := 0}, Skipped),
    ?assertEqual([{node(), kept, {exit, lost}}], Problems),
    ?assertMatch([#{number := 2, back_us := A}, #{number := 3, back_us := B}] when is_integer(A)
                 andalso is_integer(B), Kills),
    [exit(Keeper, kill) || Keeper <- Keepers],
    ok.

%% Holds a process, a new one whenever it dies.
keeper() -> spawn(fun() -> process_flag(trap_exit, true), keep(spawn_link(fun rest/0)) end).

keep(Pid) ->
    receive
        {'EXIT', Pid, _} -> keep(spawn_link(fun rest/0));
        {ask, From} -> From ! {self(), Pid}, keep(Pid)
    end.

rest() -> receive never -> ok end.

-doc "The processes that are held, by their keepers.".
kept(Keepers) ->
    [begin Keeper ! {ask, self()}, receive {Keeper, Pid} -> {Keeper, Pid} end end
     || Keeper <- Keepers].

%% A service that finds nothing: its status, its log, its end.
stop_test() ->
    {ok, Chaos} = sderl_chaos:start(#{nodes => [node()], every_ms => 60_000,
                                      targets => [#{kind => name, names => [nobody]}]}),
    ?assertMatch(#{next_ms := 60_000, kills := 0, silent := []}, sderl_chaos:status(Chaos)),
    ?assertEqual([], sderl_chaos:log(Chaos)),
    ?assertEqual({ok, []}, sderl_chaos:stop(Chaos)),
    ?assertExit({noproc, _}, sderl_chaos:stop(Chaos)),
    ?assertEqual([], [P
                      || P <- processes(),
                         proc_lib:translate_initial_call(P) =:= {sderl_chaos_agent, init, 1}]).
