%% SPDX-License-Identifier: Apache-2.0
-module(sderl_failures_SUITE).

%% What the library promises to concurrent clients while nodes crash, are suspended, leave and come
%% back, processes of the library are killed, and links are cut.
%%
%% As long as the members stay in one component (crashes, kills, pauses, leaving, a cut that leaves
%% every member linked to the coordinator) all that the clients saw is one legal history, in which
%% - an operation that a crash left without an answer took effect once or never;
%% - names of a process go some time after its death, and a crash of its node is its death at the
%%   latest;
%% - reads of a node do not count from its crash, pause or leaving until it is back in the
%%   component;
%% - all members show the same names at the end, as the last reads of the history: an acknowledged
%%   name is there, unless it was unregistered or its process ended, and a refused one is not.
%% Where cut links make two components, this holds for each side with its own clients. Of the other
%% side's operations those under way at the cut took effect or not, later ones did not, and names of
%% its processes go at some time after the cut. After the heal all members have the union of both
%% sides' names. Where a name belonged to a different process on each side, one of the two keeps it
%% and the other is ended.
%%
%% A group that decides by majority has one history, whatever the split. In it
%% - names of members that are cut off from the majority go after the lease, not before;
%% - an operation that was answered `no_majority` had no effect;
%% - the tables of a side without a majority need not be current until the links are back.
%%
%% A member that is set aside because the machine is busy may show old names, and reports that by an
%% event; its reads are left out then. A failing schedule is printed with its seed, and shrunk by
%% leaving out steps. SDERL_SEED=N runs the same schedules again.

-compile([export_all, nowarn_export_all]).

-import(sderl_ct, [on/3, await/2]).

-define(NAMES, [a, b, c, d, e, f]).
%% Errors that clients may get because of the failures.
-define(REFUSALS,
    [unreachable_pid, cannot_register_in_remote_group, cannot_re_register_in_remote_group,
     cannot_unregister_from_remote_group]).
%% Times of groups that decide by majority, in ms.
-define(TICK, 200).
-define(ASIDE, 1000).
-define(LEASE, (3 * ?ASIDE + 10 * ?TICK)).

suite() -> [{timetrap, {minutes, 60}}].

all() ->
    [one_component, two_components, one_majority, refused_for_a_name_left_out, joins_at_work,
     boot_side_by_side].

one_component(Config) ->
    schedules(Config, available(fun one/3), fun step/1, rounds(1, 15), rounds(8, 12)).

two_components(Config) ->
    schedules(Config, available(fun two/3), fun mild_step/1, rounds(1, 10), rounds(3, 4)).

one_majority(Config) ->
    Kind = #{run => fun by_steps/3,
             group => #{consistency => majority},
             refusals => [no_majority | ?REFUSALS],
             pace => [{tick_ms, ?TICK}, {set_aside_ms, ?ASIDE}, {write_timeout_ms, 60_000}]},
    schedules(Config, Kind, fun majority_step/1, rounds(1, 15), rounds(3, 8)).

available(Run) -> #{run => Run, group => #{}, refusals => ?REFUSALS, pace => pace()}.

%% Times of available groups. They are long, so that no member is set aside because the machine is
%% busy: two members that set each other aside are two components, which do not have one history.
%% The library notices at once that a cut link is closed; only the long run waits until members are
%% set aside.
pace() -> [{tick_ms, 300}, {set_aside_ms, rounds(10_000, 5000)}, {write_timeout_ms, 60_000}].

rounds(Short, Long) -> case os:getenv("SDERL_LONG") of false -> Short; _ -> Long end.

%% ---------------------------------------------------------------- schedules

schedules(Config, Kind, Step, Count, Length) ->
    _ = sderl_ct:seed(),
    lists:foreach(fun(I) ->
        Schedule = [Step(K) || K <- lists:seq(1, Length)],
        Dir = filename:join([proplists:get_value(priv_dir, Config),
                             integer_to_list(erlang:unique_integer([positive]))]),
        case run(Kind, Schedule, Dir) of
            {ok, Counts} -> ct:pal("schedule ~b: ~0p~n~0p", [I, Schedule, Counts]);
            {bad, Why} ->
                ct:pal("schedule ~0p~n~ts", [Schedule, Why]),
                Until = erlang:monotonic_time(second) + rounds(120, 1200),
                error({broken, shrunk(Kind, Schedule, Dir, 0, Until)})
        end
    end, lists:seq(1, Count)).

%% A random step: a kind, and `lead` or a number. happens/2 chooses the node from it when the step's
%% turn comes.
step(_) ->
    I = rand:uniform(1000),
    Steps = [{kill, I}, {kill, I}, {burst, I}, {crash, lead}, {crash, I}, {two, I}, {pause, lead},
             {pause, I}, {cut, I}, {rejoin, lead}, {rejoin, I}]
        %% These take seconds.
        ++ lists:append(lists:duplicate(rounds(0, 1), [{stall, lead}, {stall, I}])),
    lists:nth(rand:uniform(length(Steps)), Steps).

%% Steps before a split: those that end no client.
mild_step(_) ->
    I = rand:uniform(1000),
    lists:nth(rand:uniform(3), [{kill, I}, {burst, I}, {cut, I}]).

%% Every second step is a split, which takes seconds.
majority_step(K) when K rem 2 =:= 0 ->
    lists:nth(rand:uniform(4), [{split, lead}, {split, rand:uniform(1000)}, {lease, lead},
                                {lease, rand:uniform(1000)}]);
majority_step(_) ->
    I = rand:uniform(1000),
    Steps = [{kill, I}, {burst, I}, {crash, lead}, {crash, I}, {two, I}, {pause, lead}, {pause, I},
             {cut, I}, {rejoin, I}]
        ++ [{shatter, I} || rounds(0, 1) =:= 1],
    lists:nth(rand:uniform(length(Steps)), Steps).

run(#{run := Run, pace := Pace, group := Options, refusals := Refusals}, Schedule, Dir) ->
    ok = filelib:ensure_path(Dir),
    try
        sderl_ct:with(5, Pace, fun(Fleet, Nodes) ->
            ok = sderl_histories:clocks(Fleet, Nodes),
            [] = sderl_ct:group(Fleet, g, Nodes, Options),
            Run(Schedule, Dir,
                #{fleet => Fleet, nodes => Nodes, dir => Dir, env => [], clients => [], past => [],
                  counts => #{}, refusals => Refusals, splits => [], since => 0, initial => #{}})
        end)
    catch
        throw:{bad, Why} -> {bad, Why};
        error:Why:Stack -> {bad, io_lib:format("~tp~n~tp", [Why, Stack])}
    end.

%% Leaves out each step in turn, where the schedule without it still fails in one of two tries,
%% until the time is over.
shrunk(Kind, Schedule, Dir, At, Until) when At < length(Schedule) ->
    {Before, [_ | After]} = lists:split(At, Schedule),
    Shorter = Before ++ After,
    Fails = fun(Try) ->
        erlang:monotonic_time(second) < Until
        andalso element(1, run(
            Kind, Shorter, filename:join(Dir, lists:concat([length(Shorter), "-", At, "-", Try]))
        )) =:= bad
    end,
    case Fails(1) orelse Fails(2) of
        true -> shrunk(Kind, Shorter, Dir, At, Until);
        false -> shrunk(Kind, Schedule, Dir, At + 1, Until)
    end;
shrunk(_, Schedule, _, _, _) -> {schedule, Schedule}.

%% ---------------------------------------------------------------- one component

one(Schedule, _, S0) ->
    S1 = clients(1, maps:get(nodes, S0), listening(maps:get(nodes, S0), S0)),
    S2 = lists:foldl(fun(Step, S) -> busy(happens(Step, busy(S))) end, S1, Schedule),
    S = whole(stopped(S2)),
    #{nodes := Nodes} = S,
    Shown = shown(S, Nodes),
    Ops = operations(S),
    legal(current(S, Ops ++ maps:get(env, S) ++ Shown), S),
    {ok, (maps:get(counts, S))#{operations => length(Ops), shown => length(Shown)}}.

%% As one/3, with a pause of all clients after each step. The state at the pause begins the history
%% of the next step. A write whose outcome is unknown has taken effect by then, or never will.
by_steps(Schedule, _, #{nodes := Nodes} = S0) ->
    S1 = clients(1, Nodes, listening(Nodes, S0)),
    S = stopped(lists:foldl(fun(Step, S) -> paused(busy(happens(Step, busy(S)))) end, S1,
                            Schedule)),
    {ok, (maps:get(counts, S))#{operations => length(operations(S))}}.

paused(#{fleet := Fleet, nodes := Nodes, clients := Clients, past := Past, since := Since,
         env := Env} = S) ->
    [ok = sderl_recorder:hold(Fleet, C) || C <- Clients],
    Shown = shown(whole(S), Nodes),
    {Before, Ops} = lists:partition(fun(#{start := Start}) -> Start < Since end,
                                    operations(S#{past := Clients ++ Past}) ++ Env),
    Used = #{P => [] || #{call := {_, _, P}} <- Ops},
    Dead = [Op || #{call := {kill, P}} = Op <- Before, is_map_key(P, Used)],
    legal(current(S, Dead ++ Ops ++ lapses(S, Ops) ++ Shown), S),
    Now = sderl_histories:clock(),
    [ok = sderl_recorder:go_on(Fleet, C) || C <- Clients],
    S#{since := Now, initial := #{N => P || #{call := {read, N}, answer := P} <- Shown, is_pid(P)}}.

%% Waits until all nodes agree and no dead process has a name.
whole(#{fleet := Fleet, nodes := Nodes} = S) ->
    _ = together(S, Nodes),
    clean(Fleet, Nodes, Nodes),
    S.

clean(Fleet, Live, Nodes) ->
    await(dead_names_go, fun() ->
        Names = #{N => P || {N, #{pid := P}} <- sderl_ct:agreed(Fleet, g, {Live, Nodes})},
        Dead = [{N, P}
                || N := P <- Names,
                   not (lists:member(node(P), Live) andalso sderl_ct:alive(Fleet, P))],
        Dead =:= [] orelse Dead
    end),
    #{N => P || {N, #{pid := P}} <- sderl_ct:agreed(Fleet, g, {Live, Nodes})}.

%% Kills one process of the library. The number chooses the node and the process.
happens({kill, I}, #{fleet := Fleet, nodes := Nodes} = S) ->
    counted({killed, on(Fleet, nth(I, Nodes), fun() -> kill_one(I) end)}, S);
%% Kills several processes on every node, at short intervals.
happens({burst, I}, #{fleet := Fleet, nodes := Nodes} = S) ->
    Killed = sderl_ct:all_on(Fleet, Nodes, fun() ->
        [begin _ = kill_one(I * K + erlang:phash2(node())), wait_for_group() end
         || K <- lists:seq(1, 8)]
    end),
    counted({burst, length(lists:append(Killed))}, S);
%% Kills the node, and restarts it with new clients, which begin at once. Operations that the
%% earlier clients had under way have no answer.
happens({crash, Who}, S) ->
    counted(case Who of lead -> crashed_coordinator; _ -> crashed end, crash([who(Who, S)], S));
%% Crashes the coordinator and another member at the same time.
happens({two, I}, #{nodes := Nodes} = S) ->
    Lead = who(lead, S),
    counted(crashed_two, crash([Lead, nth(I, Nodes -- [Lead])], S));
%% Suspends a node until another one waits for it.
happens({pause, Who}, #{fleet := Fleet, nodes := Nodes} = S) ->
    Node = who(Who, S),
    Others = Nodes -- [Node],
    counted(case Who of lead -> paused_coordinator; _ -> paused end, suspended(Node, fun() ->
        %% An operation waits: the group decides nothing, or has set the member aside and goes on
        %% without it.
        await(waited_for, fun() ->
            Waiting = [on(Fleet, N, fun() -> waiting() end) || N <- Others],
            lists:any(fun(W) -> W > 0 end, Waiting) orelse Waiting
        end)
    end, S));
%% Suspends a node until the others go on without it.
happens({stall, Who}, #{clients := Clients} = S) ->
    Node = who(Who, S),
    counted(case Who of lead -> stalled_coordinator; _ -> stalled end, suspended(Node, fun() ->
        busy(S#{clients := [C || #{node := N} = C <- Clients, N =/= Node]})
    end, S));
%% A member leaves and comes back; its processes keep their names. Meanwhile its clients get errors,
%% because their node is no member.
happens({rejoin, Who}, #{fleet := Fleet, nodes := Nodes, env := Env} = S) ->
    Node = who(Who, S),
    [A, B | _] = rotated(rand:uniform(4), Nodes -- [Node]),
    Start = sderl_histories:clock(),
    ok = case rand:uniform(2) of
        1 -> on(Fleet, A, fun() -> s_group:remove_nodes(g, [Node]) end);
        2 -> on(Fleet, Node, fun() -> s_group:leave(g) end)
    end,
    S1 = busy(S),
    {ok, g, [Node]} = on(Fleet, B, fun() -> s_group:add_nodes(g, [Node]) end),
    S2 = together(S1, Nodes),
    Back = sderl_histories:clock(),
    counted(case Who of lead -> coordinator_left; _ -> left end,
            S2#{env := [op(Node, Start, Start, {off, Node}),
                        op(Node, Back, Back, {on, Node}) | Env]});
%% The link between two followers is cut, which must make no difference.
happens({cut, I}, #{fleet := Fleet, nodes := Nodes} = S) ->
    [A | Rest] = rotated(I, Nodes -- [who(lead, S)]),
    B = nth(I, Rest),
    ok = sderl_ct:cut(Fleet, A, B),
    S1 = busy(S),
    sderl_ct:heal(Fleet, A, B),
    await(linked, fun() -> sderl_ct:linked(Fleet, A, B) end),
    counted(cut_pair, S1);
%% One or two members are cut off: they lose the majority, and the others go on.
happens({split, Who}, S) -> counted(split, split_off(minority(Who, S), fun(_, _) -> ok end, S));
%% As `split`, until the names of the members that were cut off are free. They must not be free
%% before the lease is over.
happens({lease, Who}, #{fleet := Fleet} = S) ->
    [Node | _] = Minority = minority(Who, S),
    Start = erlang:monotonic_time(millisecond),
    Name = {held, Start},
    Holder = sderl_ct:process(Fleet, Node),
    yes = on(Fleet, Node, fun() -> s_group:register_name(g, Name, Holder) end),
    counted(lease, split_off(Minority, fun(_, [At | _]) ->
        await(free, fun() ->
            case on(Fleet, At, fun() -> s_group:read(g, Name) end) of
                undefined -> true;
                Other -> Other
            end
        end),
        Took = erlang:monotonic_time(millisecond) - Start,
        Took >= ?LEASE orelse throw({bad, io_lib:format("a name was free after ~b ms", [Took])})
    end, S));
%% Splits the group into three sides, none of which is a majority.
happens({shatter, I}, #{nodes := Nodes} = S) ->
    [A, B, C, D, E] = rotated(I, Nodes),
    counted(shatter, split([[A, B], [C, D], [E]], none, fun(_, _) -> ok end, S)).

minority(Who, #{nodes := Nodes} = S) ->
    First = who(Who, S),
    [First | lists:sublist(rotated(rand:uniform(4), Nodes -- [First]), rand:uniform(2) - 1)].

split_off(Minority, Meanwhile, #{nodes := Nodes} = S) ->
    Majority = Nodes -- Minority,
    split([Minority, Majority], Majority, Meanwhile, S).

%% All clients go on during the split. Waits until the minorities know that they have no majority,
%% and the majority decides without them.
split(Parts, Majority, Meanwhile,
      #{fleet := Fleet, nodes := Nodes, env := Env, splits := Splits} = S0) ->
    Lost = case Majority of none -> Nodes; _ -> Nodes -- Majority end,
    Start = sderl_histories:clock(),
    apart(Fleet, Parts),
    S1 = case Majority of none -> S0; _ -> together(S0, Majority) end,
    Settled = sderl_histories:clock(),
    await({lost, Lost}, fun() ->
        Has = [{N, on(Fleet, N, fun() -> has_majority() end)} || N <- Lost],
        lists:all(fun({_, M}) -> M =:= false end, Has) orelse Has
    end),
    Majority =:= none orelse await(decides, fun() ->
        Read = [on(Fleet, N, fun() -> s_group:read(g, nobody) end) || N <- Majority],
        lists:usort(Read) =:= [undefined] orelse Read
    end),
    _ = Meanwhile(Lost, Majority),
    S2 = busy(S1),
    _ = [sderl_ct:heal(Fleet, A, B) || Left <- Parts, A <- Left, B <- Nodes -- Left, A < B],
    #{} = together(S2, Nodes),
    Back = sderl_histories:clock(),
    Off = [op(N, Start, Start, {off, N}) || N <- Nodes],
    On = [op(N, At, At, {on, N})
          || N <- Nodes, At <- [case lists:member(N, Lost) of true -> Back; false -> Settled end]],
    S2#{env := Off ++ On ++ Env, splits := [{Lost, Start, Back} | Splits]}.

%% On a node.
has_majority() ->
    [M] = [M || #{group := g, majority := M} <- proplists:get_value(groups, s_group:info())],
    M.

%% Names of processes on members that were cut off for longer than the lease may have been freed.
%% The lease counts as 1 % shorter, because a node's clock may be faster than ours.
lapses(#{splits := Splits, since := Since, initial := Initial}, Ops) ->
    Named = lists:usort([{P, Since} || P <- maps:values(Initial)]
                        ++ [{P, S}
                            || #{call := {_, _, P}, start := S, answer := A} <- Ops,
                               A =:= yes orelse A =:= unknown]),
    [#{node => node(P), start => Lapses, stop => infinity, call => {kill, P}, answer => unknown}
     || {Lost, Start, Back} <- Splits, Start >= Since, Lapses <- [Start + ?LEASE * 990_000],
        Lapses < Back,
        P <- lists:usort([P || {P, S} <- Named, S < Back, lists:member(node(P), Lost)])].

%% On a node.
kill_one(I) ->
    Group = sderl_dir:process(g),
    All = [{sderl_group, Group}, {sderl_group, Group}
           | [{Id, Pid} || {Id, Pid, _, _} <- supervisor:which_children(sderl_sup), is_pid(Pid)]],
    {Id, Pid} = lists:nth(1 + I rem length(All), All),
    exit(Pid, kill),
    Id.

%% On a node: its group's process lives, so that the next kill meets something.
wait_for_group() ->
    ok = sderl_fleet:await(fun() -> is_process_alive(sderl_dir:process(g)) end, 60_000).

waiting() ->
    [#{waiting := W}] =
        [I || #{group := g, role := _} = I <- proplists:get_value(groups, s_group:info())],
    W.

crash(Nodes, #{fleet := Fleet, env := Env, clients := Clients, past := Past} = S) ->
    {Theirs, Others} = lists:partition(fun(#{node := N}) -> lists:member(N, Nodes) end, Clients),
    Ends = [{N, sderl_histories:clock(), sderl_fleet:kill(Fleet, N), sderl_histories:clock()}
            || N <- Nodes],
    S1 = busy(S#{clients := Others}),
    [{ok, N} = sderl_fleet:restart(Fleet, N) || N <- Nodes],
    S2 = listening(Nodes, together(clients(1, Nodes, S1), maps:get(nodes, S))),
    Back = sderl_histories:clock(),
    Known = [P || #{call := {kill, P}} <- Env],
    Events = lists:append([
        [op(N, Start, Start, {off, N}),
         op(N, Back, Back, {on, N})
         | [op(N, Start, Stop, {kill, P})
            || P <- lists:usort([P
                                 || #{node := M} = C <- Theirs ++ Past, M =:= N,
                                    #{call := {_, _, P}} <- sderl_recorder:history(C),
                                    node(P) =:= N]),
               not lists:member(P, Known)]]
     || {N, Start, ok, Stop} <- Ends
    ]),
    S2#{env := Events ++ Env, past := Theirs ++ Past}.

suspended(Node, Meanwhile, #{fleet := Fleet, nodes := Nodes} = S) ->
    Start = sderl_histories:clock(),
    ok = sderl_fleet:suspend(Fleet, Node),
    _ = Meanwhile(),
    ok = sderl_fleet:resume(Fleet, Node),
    #{env := Env} = together(S, Nodes),
    Back = sderl_histories:clock(),
    S#{env := [op(Node, Start, Start, {off, Node}), op(Node, Back, Back, {on, Node}) | Env]}.

who(lead, #{fleet := Fleet, nodes := Nodes} = S) ->
    _ = together(S, Nodes),
    sderl_ct:lead(Fleet, hd(Nodes), g);
who(I, #{nodes := Nodes}) -> nth(I, Nodes).

nth(I, List) -> lists:nth(1 + I rem length(List), List).

rotated(I, List) ->
    {Back, Front} = lists:split(I rem length(List), List),
    Front ++ Back.

op(Node, Start, Stop, Call) ->
    #{node => Node, start => Start, stop => Stop, call => Call, answer => ok}.

counted(What, #{counts := Counts} = S) ->
    S#{counts := maps:update_with(What, fun(N) -> N + 1 end, 1, Counts)}.

%% ---------------------------------------------------------------- two components

%% Runs the schedule, then cuts the links between two sides while all clients write.
two(Schedule, _, #{fleet := Fleet, nodes := Nodes} = S0) ->
    Others = [sderl_ct_client:start(Fleet, N, g, {N, private}, 8) || N <- Nodes],
    S1 = clients(1, Nodes, listening(Nodes, S0)),
    S2 = lists:foldl(fun(Step, S) -> busy(happens(Step, busy(S))) end, S1, Schedule),
    {Left, Right} = lists:split(1 + rand:uniform(2), rotated(rand:uniform(5), Nodes)),
    Start = sderl_histories:clock(),
    %% The cut comes while operations are under way: the test does not wait for the clients to
    %% pause.
    Holders = [spawn_monitor(fun() -> sderl_recorder:hold(Fleet, C) end)
               || C <- maps:get(clients, S2)],
    apart(Fleet, [Left, Right]),
    [receive
        {'DOWN', Ref, process, _, normal} -> ok;
        {'DOWN', Ref, process, _, Why} -> error(Why)
    end || {_, Ref} <- Holders],
    S3 = lists:foldl(fun(Side, S) -> together(S, Side) end, S2, [Left, Right]),
    Stop = sderl_histories:clock(),
    [sderl_recorder:go_on(Fleet, C) || C <- maps:get(clients, S3)],
    S = stopped(busy(busy(S3))),
    _ = [sderl_ct_client:pause(Fleet, C) || C <- Others],
    Tables = [maps:with(names(S), clean(Fleet, Side, Nodes)) || Side <- [Left, Right]],
    Ops = operations(S),
    [split_legal({Start, Stop}, current(S, side(Side, {Start, Stop}, Ops ++ shown(S, Side))), S)
     || Side <- [Left, Right]],
    [sderl_ct_client:go_on(Fleet, C) || C <- Others],
    [sderl_ct:heal(Fleet, A, B) || A <- Left, B <- Right],
    _ = together(S, Nodes),
    Held = lists:foldl(fun maps:merge/2, #{}, [sderl_ct_client:pause(Fleet, C) || C <- Others]),
    united(S, Tables, Held),
    {ok, (maps:get(counts, S))#{operations => length(Ops), clashes => length(clashes(Tables)),
                                split => {length(Left), length(Right)}}}.

%% Closes all links between the sides. Wrong cookies prevent new ones.
apart(Fleet, Sides) ->
    Nodes = lists:append(Sides),
    Apart = #{N => Nodes -- Side || Side <- Sides, N <- Side},
    _ = sderl_ct:all_on(Fleet, Nodes, fun() ->
        [erlang:set_cookie(M, node()) || M <- map_get(node(), Apart)],
        ok
    end),
    await(cut, fun() ->
        _ = sderl_ct:all_on(Fleet, Nodes, fun() ->
            [erlang:disconnect_node(M) || M <- map_get(node(), Apart)],
            ok
        end),
        not lists:any(fun({A, B}) -> sderl_ct:linked(Fleet, A, B) end,
                      [{A, B} || A := Others <- Apart, B <- Others])
    end).

clashes([L, R]) -> [N || N := P <- L, is_map_key(N, R), map_get(N, R) =/= P].

%% Waits until all nodes have the names of both sides, and of each clash one process, while the
%% other one is dead.
united(#{fleet := Fleet, nodes := Nodes}, [L, R] = Tables, Held) ->
    Clashes = clashes(Tables),
    Expected = maps:without(Clashes, maps:merge(maps:merge(L, R), Held)),
    await({united, Clashes}, fun() ->
        Names = clean(Fleet, Nodes, Nodes),
        Open = [{N, P, Q, Now}
                || N <- Clashes,
                   {P, Q, Now} <- [{map_get(N, L), map_get(N, R), maps:get(N, Names, none)}],
                   not lists:member(Now, [P, Q]) orelse sderl_ct:alive(Fleet, hd([P, Q] -- [Now]))],
        (Open =:= [] andalso maps:without(Clashes, Names) =:= Expected)
            orelse {Open, Expected, Names}
    end).

%% The history of one side. Reads of its members do not count while the links close and the members
%% find each other again.
side(Side, {Start, Stop}, Ops) ->
    Blind = [op(N, At, At, {What, N}) || {What, At} <- [{off, Start}, {on, Stop}], N <- Side],
    Away = lists:usort([P || #{call := {_, _, P}} <- Ops, not lists:member(node(P), Side)]),
    Kills = [#{node => node(P), start => Start, stop => infinity, call => {kill, P},
               answer => unknown}
             || P <- Away],
    lists:append([case lists:member(N, Side) orelse E < Start of
        true -> [Op];
        false when S < Stop, tuple_size(Call) =:= 3 -> [Op#{stop := infinity, answer := unknown}];
        false when S < Stop, element(1, Call) =:= unregister ->
            [Op#{stop := infinity, answer := unknown}];
        false -> []
    end || #{node := N, start := S, stop := E, call := Call} = Op <- Ops]) ++ Blind ++ Kills.

%% ---------------------------------------------------------------- clients

names(#{dir := Dir}) -> [{filename:basename(Dir), N} || N <- ?NAMES].

clients(Each, Nodes, #{fleet := Fleet, dir := Dir, clients := Cs} = S) ->
    New = [sderl_recorder:start(Fleet, N, g, names(S), filename:join(
        Dir, integer_to_list(erlang:unique_integer([positive]))
    ))
           || N <- Nodes, _ <- lists:seq(1, Each)],
    S#{clients := New ++ Cs}.

%% Starts a listener on each node for events about members that are set aside.
listening(Nodes, #{fleet := Fleet} = S) ->
    S#{ears => [{N, sderl_recorder:listen(Fleet, N, g)} || N <- Nodes] ++ maps:get(ears, S, [])}.

%% Waits until each client has ten more answers.
busy(#{fleet := Fleet, clients := Clients} = S) ->
    Start = [{C, sderl_recorder:count(Fleet, C)} || C <- Clients],
    await(busy, fun() ->
        Slow = [{C, N - K} || {C, K} <- Start, N <- [sderl_recorder:count(Fleet, C)], N < K + 10],
        Slow =:= [] orelse Slow
    end),
    S.

stopped(#{fleet := Fleet, clients := Clients, past := Past} = S) ->
    [ok = sderl_recorder:stop(Fleet, C) || C <- Clients],
    S#{clients := [], past := Clients ++ Past}.

operations(#{past := Past}) -> lists:append([sderl_recorder:history(C) || C <- Past]).

%% What each node shows now.
shown(#{fleet := Fleet} = S, Nodes) ->
    lists:append([sderl_fleet:call(Fleet, N, sderl_histories, show, [g, names(S)], 60_000)
                  || N <- Nodes]).

%% Waits until the nodes are in one component and all of them count. The names may change meanwhile.
together(#{fleet := Fleet} = S, Side) ->
    Sorted = lists:sort(Side),
    await({together, Side}, fun() ->
        Seen = [maps:with([lead, epoch, live, role], sderl_ct:state(Fleet, N, g)) || N <- Side],
        case lists:usort(Seen) of
            [#{live := Sorted, role := ok}] -> true;
            _ -> Seen
        end
    end),
    S.

%% Leaves out the reads of members that were set aside while the schedule had them in the group.
current(#{fleet := Fleet, ears := Ears, splits := Splits, since := Since}, Ops) ->
    Up = sderl_fleet:nodes(Fleet),
    Away = fun(M, At) ->
        Times = [{S, What}
                 || #{call := {What, N}, start := S} <- Ops, N =:= M,
                    What =:= off orelse What =:= on, S =< At],
        case lists:sort(Times) of [] -> false; Sorted -> element(2, lists:last(Sorted)) =:= off end
    end,
    %% A minority decides nothing, so its view of other members does not matter.
    Split = fun(N, At) ->
        lists:any(fun({Lost, S, E}) -> lists:member(N, Lost) andalso S =< At andalso At =< E end,
                  Splits)
    end,
    Aside = lists:usort([M
                         || {N, Ear} <- Ears, lists:member(N, Up),
                            {At, M} <- sderl_recorder:heard(Fleet, Ear),
                            At >= Since, not Away(M, At), not Split(N, At)]),
    Aside =:= [] orelse ct:pal("set aside: ~0p", [Aside]),
    [Op || #{node := N, call := Call} = Op <- Ops,
           not (lists:member(N, Aside) andalso lists:member(element(1, Call), [whereis, lookup]))].

legal(Ops, S) ->
    case verdict(Ops, S) of
        ok -> ok;
        {refused, Refusal} -> throw({bad, sderl_linear_text:format(Refusal)})
    end.

%% The links of a cut do not close at the same instant. For a moment a part of a side may be a
%% component of its own: it may answer a write that was under way before it merges with the rest.
%% The names of such writes are left out.
split_legal({Start, Stop}, Ops, State) ->
    case verdict(Ops, State) of
        ok -> ok;
        {refused, Refusal} ->
            Between = [element(2, Call)
                       || #{start := S, stop := E, call := Call} <- Ops, element(1, Call) =/= kill,
                          S < Stop, E > Start],
            ct:pal("with writes under way at the cut:~n~ts", [sderl_linear_text:format(Refusal)]),
            legal(without(Between, Ops), State)
    end.

%% The history without these names. A process has one name in a group. So a process whose name is
%% left out was rightly refused any other name, and may have been ended for it when two parts
%% merged. Refusals of such a process are left out, too.
without(Names, Ops) ->
    {Out, Rest} = lists:partition(fun(#{call := Call}) -> lists:member(element(2, Call), Names) end,
                                  Ops),
    Had = [P
           || #{call := {_, _, P}, answer := Answer} <- Out,
              Answer =:= yes orelse Answer =:= unknown],
    lists:filter(fun
        (#{call := {_, _, P}, answer := {no, _}}) -> not lists:member(P, Had);
        (_) -> true
    end, Rest).

verdict(Ops, #{refusals := Refusals, initial := Initial}) ->
    case sderl_linear:check(Ops, #{refusals => Refusals, initial => Initial}) of
        {gave_up, States} ->
            ct:pal("not searched to the end: ~b states, ~b operations", [States, length(Ops)]);
        Verdict -> Verdict
    end.

%% ---------------------------------------------------------------- what was found so

%% Judges made-up histories of one side, without nodes. A read was answered in a part of the side,
%% so its name is left out. Refusing another name is legal for the process that had this name, and
%% illegal for a process without a name.
refused_for_a_name_left_out(_) ->
    [P, Q] = [spawn(sderl_histories, idle, []) || _ <- [1, 2]],
    State = #{refusals => ?REFUSALS, initial => #{}},
    Op = fun(Start, Stop, Call, Answer) -> (op(node(), Start, Stop, Call))#{answer := Answer} end,
    LeftOut = [Op(0, 10, {register, e, P}, yes), Op(90, 150, {read, e}, undefined)],
    Refused = fun(Who) ->
        [Op(20, 30, {register, a, Who}, {no, name_or_pid_already_registered}),
         Op(40, 50, {re_register, a, Who}, {no, pid_is_already_registered})]
    end,
    ok = split_legal({100, 200}, LeftOut ++ Refused(P), State),
    [try split_legal({100, 200}, [Wrong | LeftOut], State) of
         ok -> error({legal, Wrong})
     catch
         throw:{bad, _} -> ok
     end || Wrong <- Refused(Q)],
    [exit(Pid, kill) || Pid <- [P, Q]].

%% A node that is being added must decide nothing alone: it is linked to members, which have the
%% group's names.
joins_at_work(_) ->
    sderl_ct:with(3, pace(), fun(Fleet, [A, B, C]) ->
        [] = sderl_ct:group(Fleet, g, [A, B]),
        P = sderl_ct:process(Fleet, A),
        yes = on(Fleet, A, fun() -> s_group:register_name(g, x, P) end),
        lists:foreach(fun(_) ->
            Eager = on(Fleet, C, fun() -> spawn(?MODULE, eager, []) end),
            {ok, g, [C]} = on(Fleet, A, fun() -> s_group:add_nodes(g, [C]) end),
            {no, name_or_pid_already_registered} = on(Fleet, C, fun() ->
                Eager ! {answer, self()},
                receive {Eager, Answer} -> Answer end
            end),
            ok = on(Fleet, B, fun() -> s_group:remove_nodes(g, [C]) end)
        end, lists:seq(1, 10))
    end).

%% Asks until it is a member.
eager() ->
    case s_group:register_name(g, x, self()) of
        {no, cannot_register_in_remote_group} -> eager();
        Answer -> receive {answer, To} -> To ! {self(), Answer} end
    end.

%% Two members that restart at the same time meet each other, and other members, before they meet
%% the coordinator. They must not become a component that outranks the running one; a name that the
%% running component has given away is taken.
boot_side_by_side(_) ->
    sderl_ct:with(
        5,
        [{tick_ms, 300}, {set_aside_ms, 60_000}, {write_timeout_ms, 120_000}],
        fun(Fleet, Nodes) ->
            [] = sderl_ct:group(Fleet, g, Nodes),
            Lead = sderl_ct:lead(Fleet, hd(Nodes), g),
            [_, _, A, B] = Others = Nodes -- [Lead],
            #{epoch := Epoch} = sderl_ct:state(Fleet, Lead, g),
            [ok = sderl_fleet:kill(Fleet, N) || N <- [A, B]],
            Cookie = on(Fleet, Lead, fun erlang:get_cookie/0),
            true = on(Fleet, Lead,
                      fun() -> lists:all(fun(N) -> erlang:set_cookie(N, node()) end, [A, B]) end),
            [{ok, N} = sderl_fleet:restart(Fleet, N) || N <- [A, B]],
            await({met, A, B}, fun() ->
                Talk = [{N, on(Fleet, N, fun() -> talking() end)} || N <- [A, B]],
                lists:all(fun({N, Ms}) -> Ms =:= Others -- [N] end, Talk) orelse Talk
            end),
            P = sderl_ct:process(Fleet, Lead),
            yes = on(Fleet, Lead, fun() -> s_group:register_name(g, x, P) end),
            Asked = [spawn_monitor(fun() ->
                exit({answer, on(Fleet, N, fun() -> s_group:register_name(g, x, self()) end)})
            end) || N <- [A, B]],
            true = on(Fleet, Lead,
                      fun() -> lists:all(fun(N) -> erlang:set_cookie(N, Cookie) end, [A, B]) end),
            [{answer, {no, name_or_pid_already_registered}} = receive
                {'DOWN', Ref, process, _, Why} -> Why
            end || {_, Ref} <- Asked],
            [{x, #{pid := P}}] = sderl_ct:settled(Fleet, g, Nodes),
            #{epoch := Epoch} = sderl_ct:state(Fleet, Lead, g)
        end
    ).

%% On a node: with which members its group's process has exchanged hellos.
talking() ->
    case [I || #{group := g, role := _} = I <- proplists:get_value(groups, s_group:info())] of
        [#{talking := Ms}] -> Ms;
        [] -> none
    end.
