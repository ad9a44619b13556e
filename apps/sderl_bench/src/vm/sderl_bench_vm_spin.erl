%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_spin).
-moduledoc """
The control: processes that compute and share nothing, four for each core. The scatter of its times
is the noise of the machine, and its speedup is what the machine gives to a perfect program.
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, spread/0, run/2]).

-define(STEPS, 200_000).

-doc false.
-spec summary() -> string().
summary() -> "the control: processes that compute and share nothing".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(_Size, Cores) -> #{processes => 4 * Cores, steps => ?STEPS}.

-doc false.
-spec spread() -> string().
spread() -> "its processes".

-doc false.
-dialyzer({nowarn_function, run/2}).
-spec run(run, sderl_bench_vm_program:settings()) -> number().
run(run, #{processes := Processes, steps := Steps} = Settings) ->
    Workers = [spawn_monitor(Node, fun() -> exit({spun, spin(Steps, I)}) end)
               || {I, Node} <- lists:enumerate(sderl_bench_vm_nodes:in_turn(Processes, Settings))],
    lists:sum([receive {'DOWN', Ref, process, Pid, {spun, Value}} -> Value end
               || {Pid, Ref} <- Workers]).

%% Numbers that stay small.
spin(0, Value) -> Value;
spin(Steps, Value) -> spin(Steps - 1, (Value * 1103515245 + 12345) band 16#7fffffff).
