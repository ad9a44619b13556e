%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_join_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_join_experiment).

metrics_test() ->
    Second = 1_000_000,
    Samples = [
        %% in the warm-up
        {0, 7},
        %% before the join
        {2 * Second, 10},
        {3 * Second, 20},
        %% A write that is under way when the join begins counts as during it; the next one begins
        %% during the join, the last one after it.
        {5 * Second - 10, 500},
        {5 * Second + 100, 40},
        {8 * Second, 1000}
    ],
    Metrics = sderl_bench_join:metrics(#{
        names => 1000,
        start_us => Second,
        began_us => 5 * Second,
        added_us => 5 * Second + 200_000,
        answered_us => 5 * Second + 500_000,
        written => [{Samples, 1}, {[], 2}],
        tables => [80, 120],
        new => {200_000, 160_000},
        converged => true
    }),
    ?assertMatch(
        #{
            join_ms := 500.0,
            add_nodes_ms := 200.0,
            pairs_per_s_before := 0.5,
            pairs_per_s_during := 4.0,
            bytes_per_name := 200.0,
            table_bytes_per_name := 160.0,
            table_bytes_per_name_max := 120,
            errors := 3,
            converged := true
        },
        Metrics
    ),
    #{register_us_before := Before, register_us_during := During} = Metrics,
    near(10, maps:get(p50, Before)),
    near(20, maps:get(max, Before)),
    near(40, maps:get(p50, During)),
    near(500, maps:get(p99, During)),
    Table = unicode:characters_to_list(?E:tables(fun sderl_table:markdown/2, [Metrics])),
    ?assertMatch({match, _}, re:run(Table, "until it answers for all names, ms \\|  \\| 500 \\|")).

near(Expected, Seen) ->
    ?assert(abs(Seen - Expected) =< Expected / 64).

check_test_() ->
    [
        ?_assertMatch({ok, #{names := 100_000, repeat := 1}},
                      sderl_bench_options:checked("join", ?E, [])),
        ?_assertEqual("--pause-ms must be at least 0, not -1", refused("--pause-ms", -1)),
        ?_assertEqual("--group-size must be at least 1, not 0", refused("--group-size", 0))
    ].

refused(Option, Value) ->
    {error, Text} = sderl_bench_options:checked("join", ?E, [Option, integer_to_list(Value)]),
    Text.

verdict_test() ->
    ?assertEqual(ok, ?E:verdict([#{converged => true}])),
    ?assertMatch({error, _}, ?E:verdict([#{converged => true}, #{converged => false}])).
