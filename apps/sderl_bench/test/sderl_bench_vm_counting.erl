%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_counting).
-moduledoc "A program whose number of operations is known only from its output.".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/2, run/2]).

summary() -> "sums numbers".
settings(_, _) -> #{length => 100, each => 2}.
operations(#{each := none}, _) -> none;
operations(#{each := Each}, Output) -> {Each * Output, "part"}.
run(run, #{length := Length}) -> lists:sum(lists:seq(1, Length)).
