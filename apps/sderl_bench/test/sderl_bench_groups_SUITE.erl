%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_groups_SUITE).
-moduledoc """
Short runs of the benchmarks of routing, placement, plans, many groups and a cluster, on a few real
nodes. The suite checks that they run and which metrics they give, never how fast they are.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([route_messages/1, route_rest/1, placement/1, plan/1, groups/1, cluster/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [route_messages, route_rest, placement, plan, groups, cluster].

route_messages(Config) ->
    Results = results(Config, ["route", "--parts", "messages", "--gateways", "2", "--sizes", "100",
                               "--ms", "50", "--repeat", "1", "--window", "200"]),
    ?assertMatch([#{<<"params">> := #{<<"part">> := <<"messages">>, <<"gateways">> := 2}},
                  #{<<"params">> := #{<<"part">> := <<"summary">>}}], Results),
    #{<<"metrics">> := Metrics} = lists:last(Results),
    [?assert(maps:get(Key, Metrics) > 0)
     || Key <- [
         <<"throughput_ratio_2">>, <<"latency_ratio_2">>, <<"there_latency_ratio_2">>,
         <<"relay_throughput_ratio_2">>, <<"relay_latency_ratio_2">>, <<"routed_msgs_per_s_2">>,
         <<"raw_msgs_per_s_2">>
     ]],
    ?assertMatch(#{<<"lost_messages_2">> := 0,
                   <<"routed_us_2">> := #{<<"p50">> := _, <<"p99">> := _}}, Metrics).

route_rest(Config) ->
    Results = results(Config, ["route", "--parts", "calls,links,failover", "--gateways", "1",
                               "--callers", "2", "--ms", "1000", "--repeat", "1", "--nodes", "6",
                               "--group-size", "3", "--clients", "3", "--after-ms", "500"]),
    Of = fun(Part) ->
        [{Params, Metrics}
         || #{<<"params">> := #{<<"part">> := P} = Params, <<"metrics">> := Metrics} <- Results,
            P =:= Part]
    end,
    Calls = Of(<<"calls">>),
    ?assertEqual([<<"direct">>, <<"erpc">>, <<"routed">>],
                 lists:sort([Way || {#{<<"way">> := Way}, _} <- Calls])),
    [?assert(maps:get(Key, Metrics) > 0)
     || {_, Metrics} <- Calls,
        Key <- [<<"calls_per_s">>, <<"bytes_per_call">>, <<"messages_per_call">>]],
    ?assertMatch([0, 0, 0], [maps:get(<<"failed_calls">>, Metrics) || {_, Metrics} <- Calls]),
    %% Two groups of three nodes. Each has two gateways, one to each of two hubs: a gateway has two
    %% links in its group and one in its hub.
    [{_, Links}] = Of(<<"links">>),
    ?assertMatch(#{<<"links_per_node_max">> := 3, <<"predicted_links_per_node_max">> := 3,
                   <<"mesh_links_per_node">> := 5, <<"unanswered_calls">> := 0, <<"calls">> := 6},
                 Links),
    ?assertEqual([<<"killed">>, <<"stopped">>],
                 [Kind || {#{<<"kind">> := Kind}, _} <- Of(<<"failover">>)]),
    [?assertMatch(#{<<"lost_acknowledged_calls">> := 0}, Metrics)
     || {_, Metrics} <- Of(<<"failover">>)].

placement(Config) ->
    Results = results(Config, ["placement", "--nodes", "3", "--among", "2", "--choices", "20",
                               "--ms", "20", "--share-ms", "200", "--repeat", "1"]),
    #{<<"metrics">> := #{<<"choose_us">> := #{<<"p50">> := P50, <<"p99">> := P99},
                         <<"messages_sent">> := 0}} = lists:last(Results),
    ?assert(P50 > 0 andalso P50 =< P99),
    Spreads = [M
               || #{<<"params">> := #{<<"part">> := <<"spread">>}, <<"metrics">> := M} <- Results],
    ?assertEqual(8, length(Spreads)),
    [?assertMatch(#{<<"mean">> := 10.0}, M) || M <- Spreads].

plan(Config) ->
    Results = results(Config, ["plan", "--nodes", "10,30", "--max-links", "12", "--running", "8",
                               "--group-size", "4"]),
    ?assertEqual([10, 30], [N
                            || #{<<"params">> := #{<<"part">> := <<"propose">>,
                                                   <<"nodes">> := N}} <- Results]),
    Applied = [{Pattern, M}
               || #{<<"params">> := #{<<"part">> := <<"apply">>, <<"pattern">> := Pattern},
                    <<"metrics">> := M} <- Results],
    ?assertEqual([<<"star">>, <<"ring">>, <<"tree">>, <<"chain">>],
                 [Pattern || {Pattern, _} <- Applied]),
    [?assert(maps:get(<<"seen_hops_max">>, M) >= 1) || {_, M} <- Applied].

groups(Config) ->
    Results = results(Config, ["groups", "--nodes", "2", "--groups", "3,60", "--pause-ms", "0"]),
    ?assertEqual([3, 60], [N || #{<<"params">> := #{<<"groups">> := N}} <- Results]),
    [begin
         ?assertMatch(#{<<"errors">> := 0, <<"create_us">> := #{<<"p50">> := _, <<"p99">> := _},
                        <<"write_us">> := #{<<"max">> := _}}, M),
         [?assert(maps:get(Key, M) > 0)
          || Key <- [<<"messages_per_group">>, <<"bytes_per_group">>, <<"bytes_per_member">>]]
     end || #{<<"metrics">> := M} <- Results].

cluster(Config) ->
    Args = ["cluster", "--nodes", "6", "--group-size", "4", "--max-links", "6", "--gateways", "1",
            "--settle-s", "0", "--rest-s", "1"],
    [#{<<"params">> := #{<<"nodes">> := 6}, <<"metrics">> := Metrics}] = results(Config, Args),
    ?assertMatch(#{<<"nodes_off">> := 0, <<"links_per_node_mean">> := Mean,
                   <<"plan_links_per_node_mean">> := Mean}, Metrics),
    [?assert(maps:get(Key, Metrics) > 0)
     || Key <- [<<"formed_s">>, <<"forming_messages_per_node">>, <<"messages_per_node_s">>]],
    ?assertMatch(#{<<"messages_by_kind">> := #{<<"heartbeats">> := _},
                   <<"bytes_by_kind">> := #{<<"heartbeats">> := _}}, Metrics).

results(Config, Args) ->
    File = filename:join(proplists:get_value(priv_dir, Config), hd(Args) ++ ".json"),
    ?assertMatch({0, stdout, _}, sderl_cli:run(["bench" | Args] ++ ["--json", File])),
    {ok, Text} = file:read_file(File),
    Results = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim])],
    ct:log("~tp", [Results]),
    Results.
