%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_deployment_SUITE).
-moduledoc """
`bin/sderl bench deploy` and `upgrade` with a few real nodes. The suite checks that they run and
which metrics they give, never how fast they are.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([deploy/1, upgrade/1, killed/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [deploy, upgrade | sderl_ct:in_long_runs([killed])].

%% The hosts are OpenSSH servers where these are available, else folders.
deploy(Config) ->
    Via = case sderl_bench_ops_hosts:has_servers() of
        true -> "servers";
        false -> "folders"
    end,
    Results = results(Config, ["deploy", "--nodes", "4", "--hosts", "2", "--pairs", "1", "--via",
                               Via, "--release-kib", "100", "--simulate", "2x9"]),
    [Simulated, Pair, Summary] = [Metrics || #{<<"metrics">> := Metrics} <- Results],
    ?assertMatch(#{<<"done">> := true, <<"deploy_other_s">> := Other} when Other < 20, Simulated),
    #{<<"timers_s">> := Timers, <<"makespan_s">> := Makespan} = Simulated,
    %% Each host has nine nodes and starts at most eight at a time. So one start follows another,
    %% and each takes at least 1 s.
    ?assert(Timers >= 2),
    ?assert(Makespan >= Timers),
    ?assertMatch(#{<<"ops_s">> := Ops, <<"bare_s">> := Bare} when Ops > 0 andalso Bare > 0,
                 Pair),
    ?assertMatch(#{<<"pairs">> := 1, <<"deploy_overhead_pct">> := Pct,
                   <<"deploy_overhead_pct_low">> := Pct, <<"archive_bytes">> := Size}
                 when Size > 100_000, Summary).

upgrade(Config) ->
    [#{<<"metrics">> := Metrics}] =
        results(Config, ["upgrade", "--nodes", "4", "--group-size", "2", "--gateways", "1",
                         "--hosts", "2", "--every-ms", "50", "--kills", "0"]),
    ?assertMatch(#{<<"lost_messages">> := 0, <<"names_missing">> := 0, <<"nodes_upgraded">> := 4,
                   <<"nodes_reported">> := 4, <<"sent">> := Sent, <<"acknowledged">> := Sent}
                 when Sent > 0, Metrics).

killed(Config) ->
    [#{<<"metrics">> := Metrics}] =
        results(Config, ["upgrade", "--nodes", "0", "--kills", "1"]),
    ?assertMatch(#{<<"kills">> := 5, <<"resumed">> := 5, <<"twice">> := 0}, Metrics).

results(Config, Args) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "results.jsonl"),
    ?assertMatch({0, stdout, _}, sderl_cli:run(["bench" | Args] ++ ["--json", File])),
    {ok, Text} = file:read_file(File),
    Results = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim])],
    ct:log("~tp", [Results]),
    Results.
