%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_monitoring_SUITE).
-moduledoc """
The benchmarks of the monitoring and `bin/sderl bench operations` on a few real nodes. The suite
checks that they run and which metrics they give, never how fast they are.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([cost/1, live/1, groups/1, log/1]).
-export([alarms/1, disk_and_overhead/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [live, groups, log | sderl_ct:in_long_runs([cost, alarms, disk_and_overhead])].

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
    %% With `all` the limit is 10,000 events a second, so none of the 500 is left out.
    ?assert(None == 0, None).

%% The delay of the alarms is not checked, because other tests use the machine at the same time.
alarms(_) ->
    Size = #{live => 3, nodes => 20, groups => 2, seed => 1},
    {ok, Metrics} = sderl_bench_alarms:run(Size, "alarms"),
    ?assertMatch(#{changes := 14, alarms_lost := 0, order_broken := 0,
                   alarm_ms := #{median := Ms}} when Ms > -1_000, Metrics).

%% The size of the probe's share is not checked here. The verdict on it has its own test
%% (`sderl_bench_operations_tests:overhead_verdict_test/0`).
disk_and_overhead(Config) ->
    File = results_file(Config),
    _ = sderl_cli_bench:run(["operations", "--what", "disk,overhead", "--nodes", "20", "--groups",
                             "2", "--days", "1", "--live", "2", "--seconds", "1", "--json", File]),
    [#{~"metrics" := Disk}, #{~"metrics" := Overhead}] = read(File),
    ?assertMatch(#{~"disk_mb_week" := Mb} when Mb > 0, Disk),
    ?assertMatch(#{~"overhead_pct" := Pct} when Pct > 0, Overhead).

results(Config, Args) ->
    File = results_file(Config),
    ok = sderl_cli_bench:run(["monitoring" | Args] ++ ["--json", File]),
    read(File).

results_file(Config) -> filename:join(proplists:get_value(priv_dir, Config), "results.json").

read(File) ->
    {ok, Text} = file:read_file(File),
    [json:decode(Line) || Line <- binary:split(Text, ~"\n", [global, trim])].
