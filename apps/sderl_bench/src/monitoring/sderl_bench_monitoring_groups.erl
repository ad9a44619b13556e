%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_monitoring_groups).
-moduledoc """
The cost of a monitoring node at rest, with few real nodes in very many groups of three and default
settings.

| metric | meaning |
|---|---|
| `all_seen_ms` | from the start of the monitoring until its hub has samples of all nodes and shows all groups |
| `monitoring_cpu_pct` | processor time of the monitoring node while nothing happens, in percent of one core |
| `memory_mib` | its resident memory at the `end`, and the `most` until then |
| `hub_mib` | of that, the hub with its history |
| `history_mib` | of that, the history, which `max_bytes` of the setting `history` bounds |
| `probe_ms_s` | the probe's processor time in milliseconds a second, the median of the nodes |
| `lost` | what frames said was left out |
""".

-export([run/2]).

-import(sderl_clock, [now_ms/0]).

-define(SIZE, 3).
-define(READY_MS, 120_000).
-define(MIB, 1_048_576).

-doc "Runs it once and writes the result.".
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(Options, Output) ->
    #{nodes := Count, groups := Number} =
        Params = (maps:with([nodes, groups, seconds], Options))#{mode => groups},
    Groups = [
        {list_to_atom("group" ++ integer_to_list(G)), normal, [{n, I} || I <- members(G, Count)]}
     || G <- lists:seq(1, Number)
    ],
    Run = fun(_, Label) ->
        sderl_bench_nodes:with(Count, Groups, Label,
                               fun(Fleet, Nodes) -> measured(Fleet, Nodes, Params) end)
    end,
    Show = fun([#{metrics := Metrics}]) ->
        sderl_bench_output:say(Output, ["\n", title(Params), "\n\n", table(Metrics), "\n"])
    end,
    maybe
        {ok, _} ?= sderl_bench_series:run(monitoring, [Params], 1, Run, Show, Output),
        ok
    end.

%% Neighbours first, then nodes that are further and further apart.
members(Group, Count) ->
    Step = 1 + Group div Count,
    lists:uniq([1 + (Group + I * Step) rem Count || I <- lists:seq(0, ?SIZE - 1)]).

measured(Fleet, Nodes, #{groups := Groups, seconds := Seconds}) ->
    Begin = now_ms(),
    maybe
        {ok, Shadow} ?= sderl_bench_shadow:start(Fleet, Nodes, #{monitors => 1}),
        ok ?= sderl_bench_shadow:await(Shadow, ?READY_MS),
        [Monitor] = sderl_bench_shadow:monitors(Shadow),
        ok ?= sderl_fleet:await(fun() ->
            shown(Shadow, Monitor) =:= Groups orelse shown(Shadow, Monitor)
        end, ?READY_MS),
        AllSeen = now_ms() - Begin,
        ok = sderl_bench_shadow:again(Shadow),
        {ok, Usage} = sderl_bench_meter:around(Fleet, [Monitor],
                                               fun() -> pause(1000 * Seconds) end),
        {ok, metrics(AllSeen, Usage, Shadow, Monitor)}
    end.

shown(Shadow, Monitor) ->
    #{groups := Groups} =
        sderl_bench_shadow:call(Shadow, Monitor, sderl_bench_shadow_view, topology,
                                [sderl_bench_shadow:viewer(Shadow, Monitor)]),
    map_size(Groups).

metrics(AllSeen, #{seconds := Passed, total := Total}, Shadow, Monitor) ->
    #{cpu_ms := CpuMs, memory_mib_mean := End, memory_mib_max := Most} = Total,
    #{memory := Hub, history := #{bytes := History}} =
        sderl_bench_shadow:call(Shadow, Monitor, sderl_mon_hub, info, []),
    #{probe_ms_s := Probes, lost := Lost} = sderl_bench_shadow:seen(Shadow),
    #{
        all_seen_ms => AllSeen,
        monitoring_cpu_pct => CpuMs / Passed / 10,
        memory_mib => #{'end' => End, most => Most},
        hub_mib => Hub / ?MIB,
        history_mib => History / ?MIB,
        probe_ms_s => case maps:values(Probes) of [] -> undefined; Ms -> sderl_table:median(Ms) end,
        lost => lists:sum(maps:values(Lost))
    }.

pause(Ms) ->
    receive
    after Ms -> ok
    end.

title(#{nodes := Nodes, groups := Groups, seconds := Seconds}) ->
    Text = "~w nodes in ~w groups of ~w, one monitoring node, ~w s in which nothing happens; ",
    [io_lib:format(Text, [Nodes, Groups, ?SIZE, Seconds]), sderl_bench_machine:text()].

table(#{memory_mib := #{'end' := End, most := Most}} = Metrics) ->
    #{all_seen_ms := Seen, monitoring_cpu_pct := Cpu, hub_mib := Hub, history_mib := History} =
        Metrics,
    #{probe_ms_s := Probe, lost := Lost} = Metrics,
    Number = fun sderl_table:number/1,
    sderl_table:text(
        ["all seen ms", "CPU % of a core", "memory MiB", "most", "hub MiB", "history MiB",
         "probe ms/s", "left out"],
        [[Number(V) || V <- [Seen, Cpu, End, Most, Hub, History, Probe, Lost]]]
    ).
