%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_empty).
-moduledoc """
A program that does nothing: its time is that of the harness itself for a repetition, which is part
of the time of every other program.
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, alone/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "nothing: the time of the harness itself".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(_, _) -> #{}.

-doc false.
-spec alone() -> string().
alone() -> "it has no processes".

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> ok.
run(run, _) -> ok.
