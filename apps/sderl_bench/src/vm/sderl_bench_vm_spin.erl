%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_spin).
-moduledoc """
The control: processes that compute and share nothing, four for each core. The scatter of its times
is the noise of the machine, and its speedup is that of a perfect program on this machine.

On several nodes each node has the same number of processes, and each process the same number of
units, because processes do not move between nodes: 16 processes on three nodes, of which one has 6,
could not be three times as fast.
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, spread/0, run/2]).
-export([dealt/1]).

-define(UNITS, 100).
-define(STEPS, 2000).

-doc false.
-spec summary() -> string().
summary() -> "the control: processes that compute and share nothing".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(_Size, Cores) ->
    #{processes => 4 * Cores, units => 4 * Cores * ?UNITS, steps => ?STEPS}.

-doc false.
-spec spread() -> string().
spread() -> "its processes".

-doc false.
-dialyzer({nowarn_function, run/2}).
-spec run(run, sderl_bench_vm_program:settings()) -> number().
run(run, #{steps := Steps} = Settings) ->
    Workers = [spawn_monitor(Node, fun() -> exit({spun, units(First, Last, Steps, 0)}) end)
               || {Node, First, Last} <- dealt(Settings)],
    lists:sum([receive
        {'DOWN', Ref, process, Pid, {spun, Value}} -> Value;
        {'DOWN', Ref, process, Pid, Reason} -> exit(Reason)
    end || {Pid, Ref} <- Workers]).

-doc "Which units the processes of each node compute, from the first to the last one.".
-spec dealt(sderl_bench_vm_program:settings()) ->
    [{node(), First :: pos_integer(), Last :: non_neg_integer()}].
dealt(#{processes := Processes, units := Units} = Settings) ->
    Nodes = length(sderl_bench_vm_nodes:of_settings(Settings)),
    All = Nodes * ((Processes + Nodes - 1) div Nodes),
    [{Node, 1 + (I - 1) * Units div All, I * Units div All}
     || {I, Node} <- lists:enumerate(sderl_bench_vm_nodes:in_turn(All, Settings))].

units(Unit, Last, _, Sum) when Unit > Last -> Sum;
units(Unit, Last, Steps, Sum) -> units(Unit + 1, Last, Steps, Sum + spin(Steps, Unit)).

%% Numbers that stay small.
spin(0, Value) -> Value;
spin(Steps, Value) -> spin(Steps - 1, (Value * 1103515245 + 12345) band 16#7fffffff).
