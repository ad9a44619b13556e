%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_route_experiment).

options(Args) -> sderl_bench_options:checked("route", ?E, Args).

defaults_test() ->
    {ok, Options} = options([]),
    ?assertMatch(
        #{parts := [messages, calls, links, failover], gateways := [1, 2], sizes := [100, 1000],
          callers := [1, 20], nodes := 100},
        Options
    ).

options_test() ->
    {ok, Options} = options(["--parts", "failover, messages", "--sizes", "64", "--gateways", "2",
                             "--after-ms", "100"]),
    ?assertMatch(#{parts := [messages, failover], sizes := [64], gateways := [2], after_ms := 100},
                 Options).

bad_options_test_() ->
    [
        {Text, ?_assertEqual({error, Text}, options(Args))}
     || {Text, Args} <- [
         {"--parts: there is no part \"hops\"; there are messages, calls, links, failover",
          ["--parts", "links,hops"]},
         {"--gateways: \"3\" is no whole number from 1 to 2", ["--gateways", "1,3"]},
         {"--sizes: \"big\" is no whole number from 1 to 10000000", ["--sizes", "big"]},
         {"--repeat must be at least 1, not 0", ["--repeat", "0"]},
         {"--ms must be at least 10, not 9", ["--ms", "9"]},
         {"--group-size must be at least 3, not 2", ["--group-size", "2"]},
         {"--nodes 25 is no multiple of --group-size 10 with two groups or more",
          ["--nodes", "25"]},
         {"--nodes 10 is no multiple of --group-size 10 with two groups or more", ["--nodes", "10"]}
     ]
    ].

layouts_test() ->
    C = sderl_bench_route_cluster,
    ?assertEqual(#{nodes => 4, groups => [{g1, [1, 2]}, {g2, [2, 3]}, {g3, [3, 4]}]}, C:chain(2)).

names_test() ->
    N = fun sderl_bench_route_messages:name/3,
    ?assertEqual(<<"throughput_ratio_1">>, N("throughput_ratio", 1, 100)),
    ?assertEqual(<<"latency_ratio_2_1000b">>, N("latency_ratio", 2, 1000)).

%% An answered call that the server did not do, and one that it did twice, both count as lost.
failover_test() ->
    Kept = #{answered => [{1, 1}, {1, 2}, {2, 1}], failed => [{{2, 2}, {error, timeout}}],
             pause_ms => 12.5},
    ?assertEqual(
        #{failover_ms => 12.5, acknowledged_calls => 3, lost_acknowledged_calls => 2,
          failed_calls => 1, failed_reasons => [<<"{error,timeout}">>]},
        sderl_bench_route_failover:metrics(killed, Kept, #{{1, 1} => 1, {1, 2} => 2, {2, 2} => 1})
    ).

medians_test() ->
    ?assertEqual(
        #{failover_ms => 2, lost_acknowledged_calls => 3, us => #{p50 => 1.5}},
        ?E:medians([
            #{failover_ms => 1, lost_acknowledged_calls => 1, us => #{p50 => 1}},
            #{failover_ms => 2, lost_acknowledged_calls => 2, us => #{p50 => 2}},
            #{failover_ms => 9, lost_acknowledged_calls => 0, failed_reasons => [<<"x">>]}
        ])
    ).

verdict_test() ->
    Result = fun(Metrics) -> {failover, #{}, Metrics} end,
    ?assertEqual(ok, ?E:verdict([Result(#{lost_acknowledged_calls => 0, <<"lost_messages_1">> => 0,
                                          failover_ms => 7})])),
    [?assertMatch({error, _}, ?E:verdict([Result(#{Key => 1})]))
     || Key <- [lost_acknowledged_calls, unanswered_calls, <<"lost_messages_1">>]].
