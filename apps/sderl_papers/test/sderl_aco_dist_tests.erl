%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_dist_tests).
-moduledoc """
The processes of a distributed ant colony, all on this node: with names in `global` or without, and
what becomes of them when they are killed.
""".

-include_lib("eunit/include/eunit.hrl").

-define(WAIT_MS, 60_000).

%% The result depends on the number of colonies and on the seed, not on the tree.
same_result_test_() ->
    {timeout, 120, fun() ->
        Results = [
            {Variant, Costs, Best}
         || {Variant, Nodes, P} <- [{tl, 8, 2}, {ml, 11, 2}, {gr, 11, 2}, {gr, 8, 5}],
            {ok, #{round_best := Costs, best := Best}} <-
                [run(Variant, Nodes, P, #{}, fun(_) -> ok end)]
        ],
        ?assertMatch([_, _, _, _], Results),
        [{_, Costs, Best} | _] = Results,
        ?assertEqual([{Costs, Best}], lists:usort([{C, B} || {_, C, B} <- Results])),
        ?assertEqual(lists:reverse(lists:sort(Costs)), Costs),
        ?assert(lists:last(Costs) < hd(Costs))
    end}.

%% Random kills by a seed, from the first moment on, so that they come at every stage.
random_kills_test_() ->
    [
        {lists:flatten(io_lib:format("~w ~w", [Nodes, Seed])),
         {timeout, 120,
          fun() -> survives(Nodes, 8, fun(Run) -> kills(Run, rand:seed_s(exsss, Seed)) end) end}}
     || Nodes <- [3, 5, 11], Seed <- lists:seq(1, 4)
    ].

%% Every class at every stage, and all of them at once.
stages_test_() ->
    [
        {lists:flatten(io_lib:format("~w ~w", [Class, Stage])),
         {timeout, 120, fun() -> survives(11, 8, fun(Run) -> kill_at(Stage, Class, Run) end) end}}
     || Class <- [master, supervisor, submaster, colony, all], Stage <- [0, 1, 3, 6]
    ].

%% Makes longer and longer runs until something was killed, and replaced.
survives(Nodes, Iterations, Break) ->
    {{ok, #{round_best := Costs, best := {Cost, _, Jobs}}}, #{recovered := Recovered}} =
        run_counted(gr, Nodes, 2, #{local_iterations => Iterations}, Break),
    ?assertEqual(8, length(Costs)),
    ?assertEqual(Cost, lists:last(Costs)),
    ?assertEqual(lists:reverse(lists:sort(Costs)), Costs),
    ?assertEqual(Cost, sderl_aco_instance:tardiness(instance(), Jobs)),
    lists:sum(maps:values(Recovered)) > 0 orelse survives(Nodes, 2 * Iterations, Break).

%% Without recovery a death ends the run, and the error names the process.
no_recovery_test_() ->
    [
        {timeout, 120, fun() ->
            ?assertMatch({error, {died, Key, Node, killed}} when element(1, Key) =:= Class
                         andalso Node =:= node(),
                         run(Variant, 5, 2, #{global_iterations => 100_000},
                             fun(Run) -> kill_at(1, Class, Run) end))
        end}
     || {Variant, Class} <- [{tl, colony}, {ml, colony}, {ml, submaster}]
    ].

%% A process that fails again and again, without being killed, ends the run.
failing_test_() ->
    {setup,
     fun() ->
         #{level := Level} = logger:get_primary_config(),
         ok = logger:set_primary_config(level, none),
         Level
     end,
     fun(Level) -> ok = logger:set_primary_config(level, Level) end,
     {timeout, 120, fun() ->
         ?assertMatch({error, {died, {colony, _}, _, _}},
                      run(gr, 5, 2, #{heuristic => nonsense}, fun(_) -> ok end))
     end}}.

%% Answers that are sent again count once.
repl_test() ->
    Costs = fun(More) ->
        {ok, #{round_best := Found}} = run(tl, 3, 2, More, fun(_) -> ok end),
        Found
    end,
    ?assertEqual(Costs(#{}), Costs(#{repl => 3})).

round_test() ->
    Round0 = sderl_aco_round:start(1, [a, b], none, sderl_aco_round:new(none)),
    {more, Round1} = sderl_aco_round:answer(1, a, {7, 2, [x]}, Round0),
    {more, Round2} = sderl_aco_round:answer(1, a, {6, 2, [y]}, Round1),
    ?assertEqual({6, 2, [y]}, sderl_aco_round:best(Round2)),
    {more, Round3} = sderl_aco_round:answer(0, b, {9, 1, [z]}, Round2),
    {done, Round4} = sderl_aco_round:answer(1, b, {7, 1, [z]}, Round3),
    ?assertEqual({6, 2, [y]}, sderl_aco_round:best(Round4)),
    Round5 = sderl_aco_round:start(2, [a, b], sderl_aco_round:best(Round4), Round4),
    {more, Round6} = sderl_aco_round:answer(2, b, {6, 1, [w]}, Round5),
    ?assertEqual({6, 2, [y]}, sderl_aco_round:best(Round6)).

run(Variant, Nodes, P, More, Break) ->
    {Outcome, _} = run_counted(Variant, Nodes, P, More, Break),
    Outcome.

%% The sum over nodes is unknown when the counts of one node are.
tally_test() ->
    Run = make_ref(),
    ok = sderl_aco_tally:start(Run),
    ok = sderl_aco_tally:ants(Run, 7),
    ok = sderl_aco_tally:replaced(Run, colony, 250),
    Counts = sderl_aco_tally:read(Run),
    ok = sderl_aco_tally:stop(Run),
    {ok, #{ants := 14, recovered := #{colony := 2, master := 0}, replaced_us := Times}} =
        sderl_aco_tally:sum([{n1, {ok, Counts}}, {n2, {ok, Counts}}]),
    ?assertEqual(2, sderl_bench_histogram:total(Times)),
    ?assertEqual({error, [n2]}, sderl_aco_tally:sum([{n1, {ok, Counts}}, {n2, {error, timeout}}])).

%% The number of names is unknown when a node does not answer, and not 0.
names_count_test() ->
    Count = fun sderl_aco_cluster:names_count/1,
    ?assertEqual(0, Count([])),
    ?assertEqual(3, Count([{ok, [a, b]}, {ok, []}, {ok, [c]}])),
    ?assertEqual(undefined, Count([{ok, []}, {error, timeout}])),
    ?assertEqual(undefined, Count(
        [{ok, [a]}, {ok, sderl_aco_names:registered({s_group, a_group_that_is_not_here}, run)}]
    )).

%% Error texts name the process and the node.
text_test_() ->
    [
        ?_assertMatch({match, _}, re:run(sderl_papers_reason:text({aco, Reason}), Wanted))
     || {Reason, Wanted} <- [
         {{died, {supervisor, {colony, 3}}, n1, killed},
          "the supervisor of colony node 3 on n1 died: killed"},
         {{died, {supervisor, {2, 1}}, n1, killed}, "the supervisor of node 1 of level 2"},
         {{died, {submaster, 1, 2, 3}, n1, killed}, "submaster 3 on node 2 of level 1 on n1"},
         {{died, starter, n0, killed}, "the starter on n0"},
         {{died, master, n1, killed}, "the master on n1"},
         {{node_down, n1}, "node n1 went down"},
         {{silent, [n1, n2], 7}, "not done in 7 s.*n1, n2"},
         {{too_few_colonies, 3, 4}, "4 nodes for colonies and only 3"},
         {{no_recovery, ml}, "ml has no recovery"},
         {{not_metered, [n1, n2]}, "did not tell what they used.*n1, n2"},
         {not_ended, "did not end"}
     ]
    ].

%% Makes a run, and breaks something in it meanwhile.
run_counted(Variant, Nodes, P, More, Break) ->
    #{used := Used, colony_nodes := K} = Shape = sderl_aco_tree:shape(Variant, Nodes, P, infinity),
    Layout = sderl_aco_tree:layout(Shape, P, K, lists:duplicate(Used + 1, node())),
    Run = make_ref(),
    Conf = maps:merge(
        #{
            run => Run,
            recovery => Variant =:= gr,
            naming => case Variant of gr -> global; _ -> none end,
            instance => instance(),
            options => (sderl_aco_options:defaults())#{ants => 3},
            heuristic => edd,
            colony_nodes => K,
            seed => 7,
            local_iterations => 5,
            global_iterations => 8,
            repl => 1
        },
        More
    ),
    ok = sderl_aco_node:start(Run),
    Breaker = sderl_fleet_task:start(fun() -> Break(Run) end),
    Task = sderl_fleet_task:start(fun() ->
        maybe
            {ok, Starter} ?= sderl_aco_starter:start(Conf, Layout),
            Result = sderl_aco_starter:result(Starter),
            ok = sderl_aco_starter:stop(Starter),
            Result
        end
    end),
    Result = sderl_fleet_task:result(Task, ?WAIT_MS),
    _ = sderl_fleet_task:stop(Breaker),
    ok = sderl_fleet:await(fun() -> sderl_aco_node:kill(Run) =:= 0 end, ?WAIT_MS),
    Counts = sderl_aco_tally:read(Run),
    ok = sderl_aco_node:stop(Run),
    ok = sderl_fleet:await(fun() -> sderl_aco_names:registered(global, Run) =:= [] end, ?WAIT_MS),
    {ok, Outcome} = Result,
    {Outcome, Counts}.

instance() -> sderl_aco_instance:generate(#{n => 30, rdd => 0.6, tf => 0.6, seed => 3}).

kills(Run, Random0) ->
    {Ms, Random1} = rand:uniform_s(10, Random0),
    receive
    after Ms - 1 -> ok
    end,
    Random =
        case sderl_aco_node:find(Run, all) of
            [] ->
                Random1;
            Found ->
                {I, Random2} = rand:uniform_s(length(Found), Random1),
                _ = exit(element(2, lists:nth(I, lists:sort(Found))), kill),
                Random2
        end,
    kills(Run, Random).

%% When so many rounds are done, kills a process of the class, or all processes (`all`).
kill_at(Round, Class, Run) ->
    ok = sderl_fleet:await(
        fun() ->
            case sderl_aco_starter:progress() of
                {Done, _} when Done >= Round -> killed(Class, sderl_aco_node:find(Run, Class));
                _ -> false
            end
        end,
        ?WAIT_MS
    ).

killed(_, []) -> false;
killed(all, Found) -> lists:foreach(fun({_, Pid}) -> exit(Pid, kill) end, Found);
killed(_, Found) -> exit(element(2, lists:nth(rand:uniform(length(Found)), Found)), kill).
