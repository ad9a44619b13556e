%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_experiment).
-moduledoc """
`bin/sderl bench vm`: how a program, a flag of the virtual machine or an OTP scales on this machine
with schedulers or nodes, and why it stops. The document is `docs/benchmarks.md`.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "how programs, flags and OTPs scale with schedulers or nodes, and why no further".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            unicode:characters_to_list([
                """
                Measures programs on several numbers of schedulers, or of nodes, with flags of
                the virtual machine and on OTPs that are varied. Each point is measured in fresh
                virtual machines, in rounds of random order, beside a control that shows the noise
                of the machine. Results are in a file as soon as they are there, and the same
                command goes on with it after an interruption.

                """,
                "\nThe programs:\n",
                [io_lib:format("  ~-20ts ~ts~n", [Name, Module:summary()])
                 || {Name, Module} <- sderl_bench_vm_program:all()],
                "\nThose that run on several nodes (--nodes), and what is on all of them:\n",
                [io_lib:format("  ~-20ts ~ts~n", [Name, Module:spread()])
                 || {Name, Module} <- sderl_bench_vm_program:all(),
                    sderl_bench_vm_program:spreads(Module)],
                "\nThose that run on one node, and why:\n",
                [io_lib:format("  ~-20ts ~ts~n", [Name, Module:alone()])
                 || {Name, Module} <- sderl_bench_vm_program:all(),
                    sderl_bench_vm_program:alone(Module) =/= ""]
            ]),
        arguments => sderl_bench_vm_options:arguments()
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Given) ->
    maybe
        {ok, Do} ?= sderl_bench_vm_options:check(Given),
        {ok, #{do => Do}}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{do := Do}, Output) ->
    sderl_bench_vm_session:run(Do, #{
        name => vm,
        text => fun sderl_bench_vm_table:text/1,
        rows => fun sderl_bench_vm_table:rows/1
    }, Output).
