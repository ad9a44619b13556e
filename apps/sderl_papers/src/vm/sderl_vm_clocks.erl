%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_clocks).
-moduledoc """
`clocks`: one process for each core reads the time again and again, a stage for each clock of the
virtual machine; in the last stage it sets a timer and cancels it, as often. 20,000, 100,000 or
500,000 times in each process.

Not of BenchErl: claim C14 asks what reading the time costs, and `parallel` makes lists of what it
reads.
""".

-behaviour(sderl_bench_vm_program).

%% This benchmark measures the cost of the old function.
-compile({nowarn_deprecated_function, {erlang, now, 0}}).

-export([summary/0, settings/2, operations/1, alone/0, stages/1, prepare/1, run/2, finish/1]).

%% The timer is cancelled long before.
-define(TIMER_MS, 10_000_000).

-doc false.
-spec summary() -> string().
summary() -> "reading each clock, and timers, in all processes at once".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{processes => Cores,
      times => maps:get(Size, #{short => 20_000, intermediate => 100_000, long => 500_000})}.

-doc false.
-spec alone() -> string().
alone() -> "clocks and timers are of one node".

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{processes := Processes, times := Times} = Settings) ->
    {length(stages(Settings)) * Processes * Times, "call"}.

-doc false.
-spec stages(sderl_bench_vm_program:settings()) -> [atom(), ...].
stages(_) -> [now, monotonic, system, timers].

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) ->
    {sderl_bench_vm_program:settings(), non_neg_integer()}.
prepare(Settings) -> {Settings, 0}.

-doc false.
-spec run(atom(), {sderl_bench_vm_program:settings(), non_neg_integer()}) ->
    {sderl_bench_vm_program:settings(), number()}.
run(Stage, {#{processes := Count, times := Times} = Settings, Done}) ->
    Main = self(),
    Processes = [spawn_link(fun() -> Main ! {self(), times(Stage, Times, 0)} end)
                 || _ <- lists:seq(1, Count)],
    {Settings, Done + lists:sum([receive {Process, Own} -> Own end || Process <- Processes])}.

-doc false.
-spec finish({sderl_bench_vm_program:settings(), non_neg_integer()}) -> non_neg_integer().
finish({_, Done}) -> Done.

times(_, 0, Done) ->
    Done;
times(now, Left, Done) ->
    _ = erlang:now(),
    times(now, Left - 1, Done + 1);
times(monotonic, Left, Done) ->
    _ = erlang:monotonic_time(),
    times(monotonic, Left - 1, Done + 1);
times(system, Left, Done) ->
    _ = erlang:system_time(),
    times(system, Left - 1, Done + 1);
times(timers, Left, Done) ->
    Timer = erlang:start_timer(?TIMER_MS, self(), timer),
    Rest = erlang:cancel_timer(Timer),
    true = is_integer(Rest),
    times(timers, Left - 1, Done + 1).
