%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_tables_experiment).
-moduledoc """
`bin/sderl bench tables`: which table to take for which load, by schedulers. It is measured as the
programs of `bin/sderl bench vm` are. The document is `docs/benchmarks.md`.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "which table to take for which load: ETS and its options, and what is beside it".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            unicode:characters_to_list([
                """
                Measures tables under mixes of operations, on several numbers of schedulers, each in
                fresh virtual machines as "bench vm" does. With --mine FILE it measures your
                own mix, and says which table to take.

                """,
                "\nThe tables; those with a * are measured where none are named:\n",
                [io_lib:format("  ~ts (~ts)~n", [
                     lists:join(", ", [[Name, ["*" || Usual =:= usual]]
                                       || {Name, Usual, _, _} <- Module:variants()]),
                     Module:summary()])
                 || {_, Module} <- sderl_bench_table:all()],
                "read and write are the options read_concurrency and write_concurrency, auto is "
                "{write_concurrency, auto}, +counters and -counters are decentralized_counters.\n"
            ]),
        arguments => sderl_bench_tables_options:arguments()
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Given) ->
    maybe
        {ok, Do} ?= sderl_bench_tables_options:check(Given),
        {ok, #{do => Do}}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{do := Do}, Output) ->
    sderl_bench_vm_session:run(Do, #{
        name => tables,
        text => fun sderl_bench_tables_view:text/1,
        rows => fun sderl_bench_tables_view:rows/1
    }, Output).
