%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_SUITE).
-moduledoc """
Ant colonies on real nodes: results, links, kills, nodes that die, and that nothing is left.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [variants | sderl_ct:in_long_runs([sr_killed, gr_killed, sr_one_level, stands_still])].

%% The number of colonies and the seed decide the result, whatever the tree. Other checks of a
%% variant with four colonies are made on the same nodes.
variants(_) ->
    Outcomes = [with(params(Variant, 5), fun(Fleet) ->
        Outcome = on(Fleet, params(Variant, 5)),
        [Case(Fleet, long(Variant, 5)) || Case <- Cases],
        Outcome
    end)
                || {Variant, Cases} <- [{tl, []}, {ml, [fun no_recovery/2]},
                                        {gr, [fun gr_node_dies/2, fun too_long/2]},
                                        {sr, [fun interrupted/2]}]],
    [
        ?assertMatch(#{colonies := 4, links_as_expected := true, names_left := 0, kills := [],
                       ants := 480}, Outcome)
     || Outcome <- Outcomes
    ],
    ?assertMatch([_],
                 lists:usort([{Best, Costs} || #{best := Best, round_best := Costs} <- Outcomes])),
    %% Variant tl uses 4 nodes and the starter's; the trees use one more. The s_groups of sr are
    %% {start, 1}, {1, 2, 3} and {1, 4, 5}.
    ?assertEqual([{5, 10}, {6, 15}, {6, 15}, {6, 7}],
                 [{Used, Links} || #{nodes_used := Used, links_expected := Links} <- Outcomes]).

gr_killed(_) -> killed(gr, fun(_) -> ok end).

sr_killed(_) -> killed(sr, fun sr_nodes/1).

%% A tree of three levels. Every class is killed, in the long test run at every stage, and then
%% random processes.
killed(Variant, Then) ->
    Params = (params(Variant, 11))#{local_iterations := 40},
    with(Params, fun(Fleet) ->
        [
            begin
                #{kills := [], recovered := Recovered} =
                    killed(Fleet, Params, fun() -> kill(Fleet, Class, Stage) end),
                ct:pal("~w at ~w: ~w", [Class, Stage, Recovered])
            end
         || {Class, Stages} <- [{master, [4, set_up, 0]}, {supervisor, [0, set_up, 4]},
                                {submaster, [set_up, 0, 4]}, {colony, [0, set_up, 4]}],
            Stage <- short(Stages)
        ],
        chaos(Fleet, Params),
        Then(Fleet)
    end).

%% Only the first of several cases, where the test run is a short one.
short(List) ->
    case os:getenv("SDERL_LONG") of
        "1" -> List;
        _ -> [hd(List)]
    end.

%% Makes longer and longer runs until something has been killed.
chaos(Fleet, #{global_iterations := Rounds} = Params) ->
    case killed(Fleet, Params#{chaos => #{every_ms => 50}}, fun() -> ok end) of
        #{kills := []} ->
            chaos(Fleet, Params#{global_iterations := 2 * Rounds});
        #{kills := [_ | _] = Kills, kills_not_back := 0, recovered := Recovered,
          recovery_us := Times, replaced_us := Replaced} = Outcome ->
            ct:pal("~w kills, ~w, back after ~w us, replaced in ~w us", [
                length(Kills), Recovered
                               | [[sderl_bench_histogram:percentile(X, H) || X <- [50, 99, 100]]
                                  || H <- [Times, Replaced]]
            ]),
            %% Every kill is counted, whatever else died.
            ?assertEqual(length(Kills), sderl_bench_histogram:total(Times)),
            Outcome
    end.

%% There are too few nodes for a tree. There are only colonies, two of them on one node, and the
%% master, which is beside the starter.
sr_one_level(_) ->
    Params = (params(sr, 3))#{colonies => 4},
    with(Params, fun(Fleet) ->
        #{links_as_expected := true, links_expected := 6, levels := 0, colonies := 4} =
            chaos(Fleet, Params)
    end).

%% A node with colonies, one with submasters, and that of the starter die in turn. The error names
%% the node. After that the same nodes work again.
sr_nodes(Fleet) ->
    Params = long(sr, 11),
    [Start, First | _] = All = sderl_fleet:nodes(Fleet),
    [node_dies(Fleet, Params, Node)
     || Node <- [lists:last(All), lists:nth(4, All), First, Start]],
    killed(Fleet, params(sr, 11), fun() -> ok end).

gr_node_dies(Fleet, Params) ->
    [_Start, First | _] = All = sderl_fleet:nodes(Fleet),
    [node_dies(Fleet, Params, Node) || Node <- [lists:last(All), First]],
    chaos(Fleet, params(gr, 5)).

node_dies(Fleet, Params, Node) ->
    Text = broken(Fleet, Params, fun() -> ok = sderl_fleet:kill(Fleet, Node) end),
    ct:pal("~ts", [Text]),
    ?assertEqual(lists:flatten(
        io_lib:format("node ~ts went down; processes are recovered, nodes are not", [Node])
    ), Text),
    nothing_left(Fleet),
    {ok, Node} = sderl_fleet:restart(Fleet, Node).

no_recovery(Fleet, Params) ->
    [_Start, First | _] = All = sderl_fleet:nodes(Fleet),
    [
        begin
            Text = broken(Fleet, Params, fun() -> kill(Fleet, Class, 0) end),
            ct:pal("~ts", [Text]),
            ?assertMatch({match, _},
                         re:run(Text, [Words, " on n[0-9].* died: killed; gr and sr recover "
                                              "from kills, tl and ml do not"])),
            nothing_left(Fleet)
        end
     || {Class, Words} <- [{colony, "^colony [1-4]"},
                           {submaster, "^submaster [12] on node 1 of level 1"},
                           {master, "^the master"}]
    ],
    [node_dies(Fleet, Params, Node) || Node <- [lists:last(All), First]],
    ?assertMatch({error, {aco, {no_recovery, ml}}},
                 sderl_aco_cluster:on(Fleet, Params#{chaos => #{every_ms => 10}}, "test")),
    ?assertMatch({error, {aco, {too_few_colonies, 3, 4}}},
                 sderl_aco_cluster:on(Fleet, Params#{colonies => 3}, "test")).

%% When the caller ends, the run ends.
interrupted(Fleet, Params) ->
    {Pid, Ref} = spawn_monitor(fun() -> sderl_aco_cluster:on(Fleet, Params, "test") end),
    ok = sderl_fleet:await(fun() -> done(Fleet) >= 1 end, 60_000),
    exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end,
    nothing_left(Fleet).

%% A run that takes longer than its time limit ends with an error that says so.
too_long(Fleet, Params0) ->
    Params = Params0#{timeout_s := 1},
    {error, Reason} = sderl_aco_cluster:on(Fleet, Params#{chaos => #{every_ms => 50}}, "test"),
    ?assertMatch({match, _},
                 re:run(sderl_papers_reason:text(Reason), "^it took longer than 1 s")),
    nothing_left(Fleet),
    %% There are no more kills, either.
    ?assertEqual([], [Pid
                      || Pid <- processes(), proc_lib:translate_initial_call(Pid) =:=
                                             {sderl_chaos_service, init, 1}]).

%% A suspended node is found by asking all nodes after the time limit.
stands_still(_) ->
    Params = (long(gr, 5))#{timeout_s := 3},
    with(Params, fun(Fleet) ->
        Last = lists:last(sderl_fleet:nodes(Fleet)),
        Task = sderl_fleet_task:start(fun() -> sderl_aco_cluster:on(Fleet, Params, "test") end),
        ok = sderl_fleet:await(fun() -> done(Fleet) >= 1 end, 60_000),
        ok = sderl_fleet:suspend(Fleet, Last),
        {ok, {error, {aco, Silent}}} = sderl_fleet_task:result(Task, 240_000),
        ?assertEqual({silent, [Last], 3}, Silent),
        ok = sderl_fleet:resume(Fleet, Last)
    end).

%% A run during which something is killed gives the same result.
killed(Fleet, #{global_iterations := Rounds} = Params, Break) ->
    Breaker = sderl_fleet_task:start(Break),
    Task = sderl_fleet_task:start(fun() -> on(Fleet, Params) end),
    {ok, #{round_best := Costs, best := {Cost, _}, names_left := 0} = Outcome} =
        sderl_fleet_task:result(Task, 120_000),
    %% If the run was faster there was nothing to kill.
    _ = sderl_fleet_task:stop(Breaker),
    ?assertEqual(Rounds, length(Costs)),
    ?assertEqual(Cost, lists:last(Costs)),
    ?assertEqual(lists:reverse(lists:sort(Costs)), Costs),
    nothing_left(Fleet),
    Outcome.

%% The result of a run in which something is broken after its first round.
broken(Fleet, Params, Break) ->
    Task = sderl_fleet_task:start(fun() -> sderl_aco_cluster:on(Fleet, Params, "test") end),
    ok = sderl_fleet:await(fun() -> done(Fleet) >= 1 end, 60_000),
    Break(),
    {ok, {error, Reason}} = sderl_fleet_task:result(Task, 120_000),
    unicode:characters_to_list(sderl_papers_reason:text(Reason)).

%% Kills a process of the class on some node: as soon as there is one (`set_up`), or when so many
%% rounds are done.
kill(Fleet, Class, Stage) ->
    Nodes = sderl_fleet:nodes(Fleet),
    ok = sderl_fleet:await(
        fun() ->
            (Stage =:= set_up orelse done(Fleet) >= Stage) andalso
            lists:any(fun(Node) -> sderl_fleet:call(Fleet, Node, sderl_aco_kill, one, [Class]) end,
                      shuffled(Nodes))
        end,
        60_000
    ).

shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

done(Fleet) ->
    [Start | _] = sderl_fleet:nodes(Fleet),
    case sderl_fleet:multicall(Fleet, [Start], sderl_aco_starter, progress, [], 5000) of
        [{_, {ok, {Done, _}}}] -> Done;
        _ -> -1
    end.

%% Checks that no process of a run is left on any running node, and no group.
nothing_left(Fleet) -> sderl_papers_left:nothing(Fleet, {sderl_aco_kill, all, []}).

on(Fleet, Params) ->
    {ok, Outcome} = sderl_aco_cluster:on(Fleet, Params, "test"),
    Outcome.

with(Params, Fun) ->
    {ok, Fleet} = sderl_fleet:start(sderl_aco_cluster:plan(Params, "test")),
    try
        Fun(Fleet)
    after
        sderl_fleet:stop(Fleet)
    end.

params(Variant, Nodes) ->
    (maps:merge(sderl_aco:defaults(), #{variant => Variant, nodes => Nodes}))#{
        instance => sderl_aco_instance:generate(#{n => 30, rdd => 0.6, tf => 0.6, seed => 3}),
        heuristic => edd,
        ants => 3,
        local_iterations => 8,
        global_iterations => 5,
        %% As many colonies as the trees have.
        colonies => case Nodes of 11 -> 8; 5 -> 4; _ -> Nodes end
    }.

%% A run that takes far longer than a test.
long(Variant, Nodes) -> (params(Variant, Nodes))#{global_iterations := 1_000_000}.
