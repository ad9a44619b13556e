%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_monitoring_log).
-moduledoc """
The cost, for a node, of sending its log to a monitoring node: one node that logs so many events a
second, in turns with the setting `log => off` (`off`), with the default (`on`), and with a rate
that lets all events pass (`all`).

Each event is a format with two arguments. The node's own handlers get it too, so their work is in
all of the numbers.

| metric | meaning |
|---|---|
| `reds_s` | reductions of the node a second, while it logs |
| `cpu_ms_s` | its processor time in milliseconds a second, then |
| `events_s` | events a second that it logged |
| `told_s` | those of them that the monitoring node got |
| `lost_s` | those that were counted as left out |
""".

-export([run/2]).
%% On the node.
-export([load/3]).

-include_lib("kernel/include/logger.hrl").

-define(READY_MS, 60_000).
-define(TICK_MS, 10).

-doc "Runs each side in turns and writes the results.".
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{pairs := Pairs} = Options, Output) ->
    Params = (maps:with([seconds, log_s], Options))#{mode => log},
    Points = [Params#{log => Side} || Side <- [off, on, all]],
    Run = fun(#{log := Side} = Point, Label) ->
        sderl_bench_nodes:with(1, [], [Label, ", log ", atom_to_list(Side)],
                               fun(Fleet, Nodes) -> measured(Fleet, Nodes, Point) end)
    end,
    Show = fun(Runs) ->
        sderl_bench_output:say(Output, ["\n", title(Params), "\n\n", table(Runs), "\n"])
    end,
    maybe
        {ok, _} ?= sderl_bench_series:run(monitoring, Points, Pairs, Run, Show, Output),
        ok
    end.

wanted(off) -> off;
wanted(on) -> #{};
wanted(all) -> #{per_s => 10_000, burst => 10_000}.

measured(Fleet, [Node] = Nodes, #{log := Side, seconds := Seconds, log_s := PerS}) ->
    maybe
        {ok, Shadow} ?= sderl_bench_shadow:start(Fleet, Nodes, #{
            monitors => 1, config => #{log => wanted(Side)}
        }),
        ok ?= sderl_bench_shadow:await(Shadow, ?READY_MS),
        [Monitor] = sderl_bench_shadow:monitors(Shadow),
        ok ?= sderl_fleet:await(fun() -> is_told(Fleet, Node) =:= (Side =/= off) end, ?READY_MS),
        {Before, _} = counted(Shadow, Monitor),
        {Reds, Cpu, Events} = sderl_fleet:call(Fleet, Node, ?MODULE, load,
                                               [PerS, Seconds, ?TICK_MS], 1000 * Seconds + 60_000),
        ok ?= all_counted(Side, Shadow, Monitor, Before, Events),
        {Told, Lost} = counted(Shadow, Monitor),
        {ok, #{reds_s => Reds / Seconds, cpu_ms_s => Cpu / Seconds, events_s => Events / Seconds,
               told_s => (Told - Before) / Seconds, lost_s => Lost / Seconds}}
    end.

is_told(Fleet, Node) ->
    lists:member(sderl_mon_handler,
                 sderl_fleet:call(Fleet, Node, logger, get_handler_ids, [], 10_000)).

%% Waits until all logged events have come or are counted as lost.
all_counted(off, _, _, _, _) -> ok;
all_counted(_, Shadow, Monitor, Before, Events) ->
    sderl_fleet:await(fun() ->
        {Told, Lost} = counted(Shadow, Monitor),
        Told - Before + Lost >= Events orelse {Told - Before, Lost}
    end, ?READY_MS).

counted(Shadow, Monitor) ->
    #{events := Events, lost := Lost} =
        sderl_bench_shadow:call(Shadow, Monitor, sderl_mon_log, info, []),
    {maps:get(notice, Events, 0), lists:sum([N || {_, notice} := N <- Lost])}.

-doc "Logs evenly; gives the node's reductions and processor time meanwhile, and the events.".
-spec load(pos_integer(), pos_integer(), pos_integer()) ->
    {non_neg_integer(), non_neg_integer(), non_neg_integer()}.
load(PerS, Seconds, TickMs) ->
    {Reds, _} = erlang:statistics(exact_reductions),
    {Cpu, _} = erlang:statistics(runtime),
    Began = erlang:monotonic_time(millisecond),
    Events = log(PerS, Began, Began + 1000 * Seconds, TickMs, 0),
    {RedsThen, _} = erlang:statistics(exact_reductions),
    {CpuThen, _} = erlang:statistics(runtime),
    {RedsThen - Reds, CpuThen - Cpu, Events}.

log(PerS, Began, End, TickMs, Done) ->
    Now = erlang:monotonic_time(millisecond),
    Due = PerS * (min(Now, End) - Began) div 1000,
    lists:foreach(fun(N) -> ?LOG_NOTICE("event ~b of ~tp", [N, {load, node()}]) end,
                  lists:seq(Done + 1, Due)),
    case Now >= End of
        true -> Due;
        false ->
            receive after TickMs -> ok end,
            log(PerS, Began, End, TickMs, Due)
    end.

title(#{seconds := Seconds, log_s := PerS}) ->
    [io_lib:format("a watched node that logs ~w events a second, for ~w s; ", [PerS, Seconds]),
     sderl_bench_machine:text()].

table(Runs) ->
    sderl_table:text(
        ["log", "runs", "reductions/s", "CPU ms/s", "events/s", "told/s", "left out/s"],
        [row(Side, [M || #{params := #{log := S}, metrics := M} <- Runs, S =:= Side])
         || Side <- [off, on, all]]
    ).

row(Side, Metrics) ->
    Of = fun(Key) -> sderl_table:spread([V || #{Key := V} <- Metrics]) end,
    [atom_to_list(Side), sderl_table:number(length(Metrics)) |
     [Of(Key) || Key <- [reds_s, cpu_ms_s, events_s, told_s, lost_s]]].
