%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_parallel_monotonic).
-moduledoc """
`parallel_monotonic`: `m:sderl_vm_parallel` with the monotonic time in place of `now/0`.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, alone/0, run/2, uses/0]).

-doc false.
-spec summary() -> string().
summary() -> "the same by monotonic_time/0, which shares nothing".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) -> sderl_vm_parallel:settings(Size, Cores, monotonic_time).

-doc false.
-spec alone() -> string().
alone() -> "its clock is of one node".

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(Settings) ->
    sderl_vm_parallel:operations(Settings).

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> number().
run(run, Settings) -> sderl_vm_parallel:run(run, Settings).

-doc false.
-spec uses() -> [module()].
uses() -> [sderl_vm_parallel].
