%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_archive_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_archive_experiment).

check_test_() ->
    [
        ?_assertMatch({ok, #{nodes := 200, groups := 20, days := 30, repeat := 1}},
                      sderl_bench_options:checked("archive", ?E, [])),
        ?_assertEqual("--nodes must be at least 2, not 1", refused("--nodes", 1)),
        ?_assertEqual("--nodes must be at most 2000, not 2001", refused("--nodes", 2001)),
        ?_assertEqual("--days must be at least 1, not 0", refused("--days", 0)),
        ?_assertEqual("--days must be at most 365, not 366", refused("--days", 366))
    ].

refused(Option, Value) ->
    {error, Text} = sderl_bench_options:checked("archive", ?E, [Option, integer_to_list(Value)]),
    lists:flatten(Text).

table_test() ->
    Table = unicode:characters_to_list(?E:table(fun sderl_table:markdown/2, [metrics()])),
    ?assertMatch({match, _}, re:run(Table, "a week on disk, MB \\| 250 \\|")),
    ?assertMatch({match, _}, re:run(Table, "chart of a node, ms \\| 160 \\|")).

verdict_test() ->
    ?assertEqual(ok, ?E:verdict([metrics()])),
    ?assertMatch({error, _}, ?E:verdict([(metrics())#{disk_mb_week := 1000.0}])),
    ?assertMatch({error, _}, ?E:verdict([(metrics())#{group_ms := 1000.0}])).

metrics() ->
    #{disk_mb_week => 250.0, frame_kb => 25.0, write_ms => 6.0, start_ms => 50.0,
      node_ms => 160.0, group_ms => 4.0, total_ms => 2.0}.
