%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_monitoring_experiment).
-moduledoc """
`bin/sderl bench monitoring`: what the shadow network costs the nodes that it watches, and how fast
it shows what happens.

`cost`: a workload runs without monitoring and with it, alternately, on new nodes each time; the
monitoring is one hidden node with default settings and a probe on each node
(`m:sderl_bench_watch`). Metrics of a run are those of `bench registry` or `bench im`, with
`watched`; at the end there is one result with `pairs`:

| metric | meaning |
|---|---|
| `overhead_pct` | the probe's processor time on a node in percent of the node's, both counted there: the median over the nodes and runs; `overhead_pct_worst`: of the worst node in any run |
| `probe_ms_s` | the probe's processor time in milliseconds a second, the median over the nodes and runs: unlike the share it does not depend on the load |
| `cpu_per_op_change_pct` | processor time of the watched nodes for each operation, with monitoring against the run without it just before: `median`, `least`, `greatest` of the pairs, and the 95 % interval of the mean, `low` to `high` |
| `throughput_change_pct` | the same of operations a second |
| `samples_lost` | what frames said was left out in all runs |

The monitoring node's own work is in none of these, but on one machine it takes processor time from
the other nodes, and so lowers the throughput.

The messenger's clients talk fast enough that all nodes have work: on an idle node the probe would
be all of the load.

`live`: see `m:sderl_bench_monitoring_live`. `groups`: see `m:sderl_bench_monitoring_groups`.
`log`: see `m:sderl_bench_monitoring_log`.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([compared/2, watched/3]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, chosen/4]).
-import(sderl_table, [number/1, median/1]).

%% Fewer pairs than this have no interval.
-define(LEAST_PAIRS, 3).

-doc false.
-spec summary() -> string().
summary() -> "the cost of the shadow network on the nodes, and how fast it shows events".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            cost: a workload runs in turns without monitoring and with it; shows the probe's share
            of a node's processor time, and the cost of an operation. live: many nodes with little
            work and two monitoring nodes; shows how long it takes until a new group is shown and
            until the groups of a killed monitoring node are watched from the other, and whether any
            of many events is lost uncounted. groups: few nodes in very many groups; shows the cost
            of the monitoring node at rest. log: a node that logs; shows the cost of sending its
            log.
            """,
        arguments => [
            option(what, "LIST", string, "cost",
                   "cost, live, groups, log, with commas between them"),
            option(compare, "LIST", string, "off,on",
                   "cost: without monitoring and with it, or one of them"),
            option(workload, "LIST", string, workloads(), "cost: programs, each in turn"),
            option(pairs, "N", integer, 3, "cost, log: runs of each"),
            option(nodes, "N", integer, 10, "nodes; live: in groups of ten"),
            option(clients, "N", integer, 5,
                   "cost, registry: clients on each node; messenger: 100 times as many in all"),
            option(seconds, "S", integer, 15, "cost, groups, log: measured time of a run"),
            option(speed, "F", integer, 300, "cost, messenger: divides the waits of conversations"),
            option(groups, "N", integer, 1200, "groups: of three nodes each"),
            option(changes, "N", integer, 10, "live: groups that are made and deleted"),
            option(events_s, "N", integer, 10_000, "live: events a second on one node"),
            option(log_s, "N", integer, 1000, "log: events a second that the node logs")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{what := What, compare := Compare, workload := Workloads, nodes := Nodes} = Options) ->
    maybe
        {ok, Whats} ?= chosen("--what", "measurement", What, [cost, live, groups, log]),
        {ok, Sides} ?= chosen("--compare", "side", Compare, [off, on]),
        {ok, Programs} ?= chosen("--workload", "workload", Workloads,
                                 [list_to_atom(Name)
                                  || {Name, _} <- sderl_catalogue:all(workloads)]),
        ok ?= at_least(1, [pairs, clients, seconds, speed, groups, changes, events_s, log_s],
                       Options),
        ok ?= at_least(2, [nodes], Options),
        ok ?= at_most([{pairs, 1000}, {nodes, 5000}, {groups, 5000}, {seconds, 86_400},
                       {events_s, 1_000_000}, {changes, 10_000}, {log_s, 100_000}], Options),
        ok ?= fits(Nodes + 2),
        {ok, Options#{what := Whats, compare := Sides, workload := Programs}}
    end.

fits(Count) ->
    case sderl_fleet:fits(Count) of
        ok -> ok;
        {error, Reason} -> {error, ["--nodes: ", sderl_bench_reason:text(Reason)]}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{what := Whats} = Options, Output) -> each(Whats, Options, Output).

each([], _, _) ->
    ok;
each([What | Others], Options, Output) ->
    Done = case What of
        cost -> costs(Options, Output);
        live -> sderl_bench_monitoring_live:run(Options, Output);
        groups -> sderl_bench_monitoring_groups:run(Options, Output);
        log -> sderl_bench_monitoring_log:run(Options, Output)
    end,
    case Done of
        ok -> each(Others, Options, Output);
        {error, _} = Error -> Error
    end.

%% ---------------------------------------------------------------- cost

costs(#{workload := Workloads, compare := Sides, pairs := Pairs} = Options, Output) ->
    %% Without monitoring first: each run with it is compared with the run just before.
    Points = [(point(Workload, Options))#{monitoring => Side}
              || Workload <- Workloads, Side <- Sides],
    Show = fun(Runs) ->
        sderl_bench_output:say(Output,
                               ["\n", sderl_bench_machine:text(), "\n\n", table(Runs), "\n"])
    end,
    Run = fun(#{monitoring := Side} = Params, Label) ->
        measured(Params, [Label, ", monitoring ", atom_to_list(Side)])
    end,
    Started = sderl_bench_output:now(),
    maybe
        {ok, Runs} ?= sderl_bench_series:run(monitoring, Points, Pairs, Run, Show, Output),
        written(
            [
                sderl_bench_output:result(monitoring, (point(Workload, Options))#{
                    compare => ~"off,on", pairs => Pairs
                }, compared(Workload, Runs), Started)
             || Workload <- Workloads, lists:sort(Sides) =:= [off, on]
            ],
            Output
        )
    end.

written([], _) ->
    ok;
written([Result | Others], Output) ->
    case sderl_bench_output:write(Output, Result) of
        ok -> written(Others, Output);
        {error, _} = Error -> Error
    end.

workloads() ->
    lists:flatten(lists:join(",", [Name || {Name, _} <- sderl_catalogue:all(workloads)])).

-doc "One run of a workload with monitoring: what the probes cost.".
-spec watched(Workload :: atom(), Options :: #{atom() => term()}, Label :: unicode:chardata()) ->
    {ok, #{atom() => term()}} | {error, term()}.
watched(Workload, Options, Label) ->
    Params = (point(Workload, Options))#{monitoring => on, run => 1},
    maybe
        {ok, Metrics} ?= measured(Params, Label),
        {ok, maps:with([overhead_pct, overhead_pct_worst, probe_ms_s, samples_lost],
                       compared(Workload, [#{params => Params, metrics => Metrics}]))}
    end.

workload(Name) -> proplists:get_value(atom_to_list(Name), sderl_catalogue:all(workloads)).

point(Workload, Options) -> (workload(Workload)):point(Options).

measured(#{mode := Workload} = Params, Label) -> (workload(Workload)):run(Params, Label).

-doc "The pairs of a workload's runs, compared.".
-spec compared(Workload :: atom(), [sderl_bench_series:run()]) -> #{atom() => term()}.
compared(Workload, Runs) ->
    Module = workload(Workload),
    Mine = [{Side, Run, M}
            || #{params := #{mode := Mode, monitoring := Side, run := Run}, metrics := M} <- Runs,
               Mode =:= Workload],
    Pairs = [{Off, On} || {off, Run, Off} <- Mine, {on, R, On} <- Mine, R =:= Run],
    Watched = [W || {on, _, #{watched := #{} = W}} <- Mine],
    Shares = [Pct || #{overhead_pct := Pct} <- Watched, is_number(Pct)],
    Worst = [Pct || #{overhead_pct_max := Pct} <- Watched, is_number(Pct)],
    #{
        overhead_pct => middle(Shares),
        probe_ms_s => middle([Ms || #{probe_ms_s := Ms} <- Watched, is_number(Ms)]),
        overhead_pct_worst => case Worst of [] -> undefined; _ -> lists:max(Worst) end,
        cpu_per_op_change_pct => change(Pairs, fun Module:cpu_us/1),
        throughput_change_pct => change(Pairs, fun Module:rate/1),
        samples_lost => lists:sum([N || #{lost := Lost} <- Watched, _ := N <- Lost])
    }.

change(Pairs, Get) ->
    Changes = [100 * (B / A - 1)
               || {Off, On} <- Pairs, A <- [Get(Off)], B <- [Get(On)], is_number(A), is_number(B),
                  A > 0],
    case Changes of
        [] ->
            undefined;
        _ ->
            Spread = #{median => median(Changes), least => lists:min(Changes),
                       greatest => lists:max(Changes), pairs => length(Changes)},
            case length(Changes) >= ?LEAST_PAIRS of
                true ->
                    {Mean, Half} = sderl_bench_series:interval(Changes),
                    Spread#{mean => Mean, low => Mean - Half, high => Mean + Half};
                false ->
                    Spread
            end
    end.

middle([]) -> undefined;
middle(Values) -> median(Values).

table(Runs) ->
    Workloads = lists:uniq([Mode || #{params := #{mode := Mode}} <- Runs]),
    sderl_table:text(
        ["", "pairs", "operations/s without", "with", "CPU us/op without", "with", "change %",
         "probe % of a node", "worst node", "probe ms/s", "left out"],
        [row(Workload, Runs) || Workload <- Workloads]
    ).

row(Workload, Runs) ->
    Module = workload(Workload),
    Of = fun(Side, Get) ->
        sderl_table:spread([Get(M)
                            || #{params := #{mode := Mode, monitoring := S}, metrics := M} <- Runs,
                               Mode =:= Workload, S =:= Side])
    end,
    #{overhead_pct := Pct, overhead_pct_worst := Worst, probe_ms_s := Ms,
      cpu_per_op_change_pct := Change, samples_lost := Lost} = compared(Workload, Runs),
    [
        atom_to_list(Workload),
        number(length([M || #{params := #{mode := M, monitoring := on}} <- Runs, M =:= Workload])),
        Of(off, fun Module:rate/1), Of(on, fun Module:rate/1), Of(off, fun Module:cpu_us/1),
        Of(on, fun Module:cpu_us/1),
        case Change of
            #{median := Median, least := Least, greatest := Greatest} ->
                [number(Median), " (", number(Least), "..", number(Greatest), ")"];
            undefined -> "-"
        end,
        number(Pct), number(Worst), number(Ms), number(Lost)
    ].
