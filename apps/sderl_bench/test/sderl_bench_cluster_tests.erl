%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_cluster_tests).
-include_lib("stdlib/include/assert.hrl").
-include_lib("eunit/include/eunit.hrl").

options_test_() ->
    [
        ?_assertMatch({ok, #{nodes := [{20, #{groups := [_ | _]}}, {40, #{}}], gateways := 2}},
                      options(["--nodes", "20,40"])),
        ?_assertEqual({error, "--rest-s must be at least 1, not 0"}, options(["--rest-s", "0"])),
        ?_assertEqual({error, "--nodes: \"many\" is no whole number from 2 to 2000"},
                      options(["--nodes", "many"])),
        %% For an impossible plan the error has the planner's own text.
        ?_assertMatch({error, "--nodes 20: no plan of 20 nodes" ++ _},
                      options(["--nodes", "20,40", "--max-links", "3"]))
    ].

options(Args) -> sderl_bench_options:checked("cluster", sderl_bench_cluster_experiment, Args).

%% Two nodes, one of which lacks a link. They are at rest for ten seconds, and traced for five.
metrics_test() ->
    {ok, Plan} = sderl_bench_cluster:plan(20, #{group_size => 8, gateways => 1, max_links => 14}),
    Seen = #{
        prediction => sderl_plan:predict(Plan),
        bare_ms => 2000,
        bare_cpu_ms => [100, 200],
        started_ms => 3000,
        started_cpu_ms => [300],
        formed_ms => 4500,
        %% The system does not report the processor time.
        formed_cpu_ms => [],
        formed => [formed(3, 10), formed(5, 30)],
        expected_links => [3, 6],
        rest => #{
            seconds => 10.0,
            total => #{memory_mib_mean => 50.0},
            per_node => [#{messages => 40, bytes => 1000, cpu_ms => 10},
                         #{messages => 80, bytes => 2000, cpu_ms => 30}]
        },
        traced_ms => 5000,
        sent => [#{heartbeats => {20, 400}}, #{heartbeats => {10, 200}, routes => {1, 100}}]
    },
    ?assertMatch(
        #{
            bare_s := 2.0, started_s := 3.0, started_per_bare := 1.5, formed_s := 4.5,
            formed_after_ms := 1500, bare_cpu_ms_per_node := 150.0,
            started_cpu_ms_per_node := 300.0, formed_cpu_ms_per_node := +0.0,
            links_per_node_max := 5, links_per_node_mean := 4.0, nodes_off := 1,
            forming_messages_per_node := 20.0,
            messages_per_node_s := 6.0, messages_per_node_s_max := 8.0, bytes_per_node_s := 150.0,
            cpu_pct_per_node := 0.2, cpu_pct_per_node_max := 0.3, memory_mib_per_node := 50.0,
            messages_by_kind := #{heartbeats := 3.0, routes := 0.1},
            bytes_by_kind := #{heartbeats := 60.0, routes := 10.0}
        },
        sderl_bench_cluster:metrics(Seen)
    ).

formed(Links, Messages) ->
    #{links => Links, messages => Messages, bytes => 100 * Messages, reductions => 1000}.

kinds_test() ->
    ?assertEqual(
        [heartbeats, heartbeats, groups, routes, attributes, distances, other, other],
        [sderl_bench_cluster_worker:kind(Message)
         || Message <- [
             {sderl_heart, 2, a, {again, 1}}, {sderl, 2, <<>>, a, {hb, {1, a}, 0}},
             {sderl, 2, <<>>, a, {ack, 1, 2, none}},
             {sderl_route, 1, a, beat}, {sderl_attr, 1, a, {0, none, 0}, again},
             {sderl_dist, 1, probe}, {}, hello
         ]]
    ).
