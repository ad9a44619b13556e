%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_monitoring_SUITE).
-moduledoc """
The benchmark of the monitoring on few real nodes: that it runs and what it gives, never how fast it
is.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([cost/1, live/1, groups/1, log/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [live, groups, log | sderl_ct:in_long_runs([cost])].

cost(Config) ->
    Results = results(Config, ["--workload", "registry", "--nodes", "2", "--seconds", "1",
                               "--pairs", "1", "--clients", "1"]),
    ?assertMatch([#{~"monitoring" := ~"off"}, #{~"monitoring" := ~"on"},
                  #{~"compare" := ~"off,on"}], [P || #{~"params" := P} <- Results]),
    ?assertMatch([_, #{~"watched" := #{~"overhead_pct" := _}},
                  #{~"overhead_pct" := _, ~"cpu_per_op_change_pct" := #{~"median" := _}}],
                 [M || #{~"metrics" := M} <- Results]).

live(Config) ->
    [#{~"metrics" := Metrics}] =
        results(Config, ["--what", "live", "--nodes", "3", "--changes", "1", "--events-s", "2000"]),
    ?assertMatch(
        #{~"uncounted_losses" := 0, ~"takeover_ms" := Takeover,
          ~"group_change_shown_ms" := #{~"median" := Shown}, ~"events_sent" := Sent} when
        Takeover > 0 andalso Shown >= 0 andalso Sent > 0,
        Metrics
    ).

groups(Config) ->
    Options = ["--what", "groups", "--nodes", "3", "--groups", "40", "--seconds", "2"],
    [#{~"params" := #{~"mode" := ~"groups"}, ~"metrics" := Metrics}] = results(Config, Options),
    ?assertMatch(
        #{~"monitoring_cpu_pct" := Cpu, ~"memory_mib" := #{~"end" := End, ~"most" := Most},
          ~"lost" := 0} when
        Cpu >= 0 andalso End > 0 andalso Most >= End,
        Metrics
    ).

log(Config) ->
    Results = results(Config, ["--what", "log", "--seconds", "1", "--pairs", "1",
                               "--log-s", "500"]),
    ?assertMatch([#{~"log" := ~"off"}, #{~"log" := ~"on"}, #{~"log" := ~"all"}],
                 [P || #{~"params" := P} <- Results]),
    [#{~"told_s" := Off}, #{~"told_s" := On, ~"lost_s" := Lost},
     #{~"told_s" := All, ~"lost_s" := None}] = [M || #{~"metrics" := M} <- Results],
    ?assert(Off == 0 andalso On > 0 andalso Lost > 0 andalso All > On, {Off, On, Lost, All}),
    %% As many may wait.
    ?assert(None == 0, None).

results(Config, Args) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "results.json"),
    ok = sderl_cli_bench:run(["monitoring" | Args] ++ ["--json", File]),
    {ok, Text} = file:read_file(File),
    [json:decode(Line) || Line <- binary:split(Text, ~"\n", [global, trim])].
