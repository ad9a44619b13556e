%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_parallel).
-moduledoc """
`parallel`: processes that each make a list of times of the day. With `erlang:now/0`, as published,
all times must differ, which needs a lock that all processes share; `parallel_monotonic` reads the
monotonic time instead. 4 processes for each core, and 313 (short), 1,250 or 2,500 times for
each core in each.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, settings/3, operations/1, alone/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "timestamps by now/0, which are unique over all processes".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    settings(Size, Cores, now).

-doc "With the function of `m:erlang` that gives the time.".
-spec settings(sderl_bench_vm_program:size(), pos_integer(), now | monotonic_time) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores, Clock) ->
    #{processes => 4 * Cores, clock => Clock,
      times => Cores * maps:get(Size, #{short => 313, intermediate => 1250, long => 2500})}.

-doc false.
-spec alone() -> string().
alone() -> "the lock of the clock is of one node".

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{processes := Processes, times := Times}) ->
    {Processes * Times, "timestamp"}.

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> number().
run(run, #{processes := Processes, times := Times, clock := Clock}) ->
    Main = self(),
    Workers = [spawn_link(fun() -> Main ! {self(), length(times(Times, Clock, []))} end)
               || _ <- lists:seq(1, Processes)],
    lists:sum([receive {Worker, Count} -> Count end || Worker <- Workers]).

%% The function's name is a variable for both clocks, so that the call itself costs the same.
times(0, _, Times) -> Times;
times(Left, Clock, Times) -> times(Left - 1, Clock, [erlang:Clock() | Times]).
