%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_names_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_names_experiment).

check_test_() ->
    [
        ?_assertMatch({ok, #{names := 100_000, repeat := 1}},
                      sderl_bench_options:checked("names", ?E, [])),
        ?_assertEqual("--nodes must be at least 2, not 1", refused("--nodes", 1)),
        ?_assertEqual("--names must be at least 1, not 0", refused("--names", 0))
    ].

refused(Option, Value) ->
    {error, Text} = sderl_bench_options:checked("names", ?E, [Option, integer_to_list(Value)]),
    Text.

table_test() ->
    Table = unicode:characters_to_list(?E:table(fun sderl_table:markdown/2, [metrics(true)])),
    ?assertMatch({match, _}, re:run(Table, "process killed: all members write, ms \\| 20 \\|")),
    ?assertMatch({match, _}, re:run(Table, "node killed: first write after, ms \\| 10 \\|")).

verdict_test() ->
    ?assertEqual(ok, ?E:verdict([metrics(true)])),
    ?assertMatch({error, _}, ?E:verdict([metrics(true), metrics(false)])).

metrics(IsComplete) ->
    Killed = #{first_write_ms => 10, all_write_ms => 20, complete => IsComplete},
    #{
        load_s => 1,
        names_per_s => 100,
        bytes_per_name_max => 300,
        bytes_per_name_min => 200,
        bytes_per_name_joined => 250,
        lookup_ns => 100,
        join_ms => 50,
        process_killed => Killed#{complete := true},
        node_killed => Killed
    }.
