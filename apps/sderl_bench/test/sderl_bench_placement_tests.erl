%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_placement_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_placement_experiment).

options(Args) -> sderl_bench_options:checked("placement", ?E, Args).

options_test_() ->
    [
        ?_assertMatch({ok, #{nodes := 100, choices := 1000, among := 50, repeat := 3}},
                      options([])),
        ?_assertMatch({ok, #{nodes := 3, among := 3, share_ms := 200}},
                      options(["--nodes", "3", "--among", "3", "--share-ms", "200"])),
        ?_assertEqual({error, "--among 50 is more than --nodes 20"}, options(["--nodes", "20"])),
        ?_assertEqual({error, "--nodes must be at least 2, not 1"}, options(["--nodes", "1"])),
        ?_assertEqual({error, "--share-ms must be at least 100, not 0"},
                      options(["--share-ms", "0"]))
    ].

%% Nodes that nobody chose count too.
spread_test() ->
    ?assertEqual(
        #{max => 4, min => 0, mean => 2.0, stddev => math:sqrt(2.0)},
        sderl_bench_placement:spread([a, b, c, d], [#{a => 1, b => 2, d => 2}, #{a => 3}])
    ).

choosers_test_() ->
    [{atom_to_list(Name), ?_assertEqual(ok, sderl_place:check(Spec))}
     || {Name, Spec} <- sderl_bench_placement:choosers()].

results() ->
    [
        {choose, #{chooser => two}, #{choose_us => #{p50 => 2, p99 => 4}, messages_sent => 0}},
        {choose, #{chooser => least}, #{choose_us => #{p50 => 20, p99 => 40}, messages_sent => 0}},
        {choose, #{chooser => least}, #{choose_us => #{p50 => 30, p99 => 60}, messages_sent => 3}},
        {sharing, #{}, #{messages_per_node_s => 1.0}}
    ].

overall_test() ->
    ?assertEqual(
        #{
            choose_us => #{p50 => 25.0, p99 => 50.0},
            <<"choose_us_least">> => #{p50 => 25.0, p99 => 50.0},
            <<"choose_us_two">> => #{p50 => 2, p99 => 4},
            messages_sent => 3
        },
        ?E:overall(results())
    ).

verdict_test() ->
    {error, Text} = ?E:verdict(results()),
    ?assertEqual("choices sent messages: least", lists:flatten(Text)),
    ?assertEqual(ok, ?E:verdict([hd(results())])).
