%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_scale_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_scale_experiment).

options_test() ->
    ?assertMatch({ok, #{nodes := [1000, 10000], group_size := [10, 30, 100], samples := 10,
                        delay := 2}}, options([])),
    ?assertMatch({ok, #{nodes := [20], group_size := [4, 5]}},
                 options(["--nodes", "20", "--group-size", "4, 5"])).

bad_options_test_() ->
    [
        {Text, ?_assertEqual({error, Text}, options(Args))}
     || {Text, Args} <- [
            {"--nodes: \"ten\" is no whole number from 2 to 20000", ["--nodes", "10,ten"]},
            {"--nodes: \"1\" is no whole number from 2 to 20000", ["--nodes", "1"]},
            {"--group-size: \"501\" is no whole number from 2 to 500", ["--group-size", "501"]},
            {"--samples must be at least 1, not 0", ["--samples", "0"]},
            {"--names must be at least 0, not -1", ["--names", "-1"]}
        ]
    ].

options(Args) -> sderl_bench_options:checked("scale", ?E, Args).

%% A ring of five groups of five nodes, for which the right numbers of links and messages are known.
ring_test_() ->
    {timeout, 600, fun() ->
        R = sderl_sim_scale:run(#{nodes => 20, group_size => 5, samples => 5, names => 20,
                                  delay_ms => 2, seed => 1}, fun(_) -> ok end),
        ?assertMatch(#{groups := 5, links_max := 8, links_mean := 5.0}, R),
        %% Four other members get a batch and acknowledge it. There are two more messages if the
        %% writer is not on the coordinator's node.
        ?assertEqual([], [M || M <- map_get(alone_messages, R), M =/= 8.0, M =/= 10.0]),
        [?assertEqual(5, length(map_get(K, R)))
         || K <- [admit_ms, heal_ms, takeover_ms, boot_ms, busy_messages]],
        ?assert(lists:max(map_get(heal_ms, R) ++ map_get(admit_ms, R)) < 120_000)
    end}.

svg_test() ->
    Times = #{p50 => 50, max => 60},
    M = #{links_per_node_mean => 10.0, alone_messages => 20.0, busy_messages => 5.1,
          admit_ms => Times, heal_ms => Times, takeover_ms => Times},
    Svg = iolist_to_binary(sderl_bench_scale_plot:svg([{N, S, M}
                                                       || N <- [1000, 10000], S <- [10, 30, 100]])),
    {_, []} = xmerl_scan:string(binary_to_list(Svg), [{quiet, true}]),
    ?assertEqual(nomatch, binary:match(Svg, <<"inf">>)).
