%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_counters).
-moduledoc """
The processor's counters while a program runs, by the system's `perf`, where both are available:
misses of caches, TLBs and branches, and bytes from memory, as rates of the whole run.
""".

-export([start/0, stop/1, is_processor/1]).

%% Time for perf to start and to begin counting.
-define(BEGIN_MS, 300).
-define(MOST_MS, 600_000).

-doc "Begins to count, where the system has the processor's counters.".
-spec start() -> none | {integer(), sderl_prof_perf:task()}.
start() ->
    Names = filelib:wildcard("/sys/bus/event_source/devices/*"),
    case lists:any(fun(Name) -> is_processor(filename:basename(Name)) end, Names) of
        true ->
            Task = sderl_prof_perf:start(counters, ?MOST_MS),
            %% perf does not say when it begins to count.
            receive after ?BEGIN_MS -> ok end,
            {erlang:monotonic_time(nanosecond), Task};
        false -> none
    end.

-doc "Ends counting: the rates, or the message of perf.".
-spec stop(none | {integer(), sderl_prof_perf:task()}) ->
    #{counters => #{atom() => float()}, counters_refused => binary()}.
stop(none) -> #{};
stop({Began, Task}) ->
    Ns = max(1, erlang:monotonic_time(nanosecond) - Began),
    ok = sderl_prof_perf:stop(Task),
    case sderl_prof_perf:await(Task, 1) of
        {0, Said} ->
            case sderl_prof_vm_perf:counters(Said, Ns) of
                #{rates := Rates} when map_size(Rates) > 0 -> #{counters => Rates};
                _ -> refused(Said)
            end;
        {_, Said} -> refused(Said);
        none -> refused(~"there is no perf on this machine");
        _ -> refused(~"perf did not answer")
    end.

refused(Said) -> #{counters_refused => sderl_prof_vm_perf:refusal(Said)}.

-doc "Whether an event source of the system is a processor.".
-spec is_processor(file:filename()) -> boolean().
is_processor("cpu" ++ _) -> true;
is_processor("armv" ++ _) -> true;
is_processor(_) -> false.
