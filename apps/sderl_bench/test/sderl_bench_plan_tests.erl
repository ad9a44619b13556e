%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_plan_tests).
-include_lib("eunit/include/eunit.hrl").

options(Args) -> sderl_bench_options:checked("plan", sderl_bench_plan_experiment, Args).

options_test_() ->
    [
        ?_assertMatch({ok, #{nodes := [10, 20, 50, 100, 200, 500, 1000, 2000], max_links := 20,
                             running := 20}}, options([])),
        ?_assertMatch({ok, #{nodes := [8], running := 0}},
                      options(["--nodes", "8", "--running", "0"])),
        ?_assertEqual({error, "--nodes: \"1\" is no whole number from 2 to 10000"},
                      options(["--nodes", "10,1"])),
        ?_assertEqual({error, "--group-size must be at least 4, not 3"},
                      options(["--group-size", "3"])),
        ?_assertEqual({error, "--running 9 is too few for two groups of 5"},
                      options(["--running", "9"]))
    ].

propose_test() ->
    {ok, Metrics} = sderl_bench_plan:propose(40, 12),
    ?assertMatch(#{mesh_links_per_node := 39, names_mesh := 4000, pattern := _, hops_max := _,
                   hops_mean := _}, Metrics),
    #{links_per_node_max := Links, propose_ms := Ms, names_per_node_max := Names} = Metrics,
    ?assert(Links =< 12),
    ?assert(Ms > 0),
    ?assert(Names < 4000).

impossible_test() -> ?assertMatch({error, {said, [_ | _]}}, sderl_bench_plan:propose(100, 1)).
