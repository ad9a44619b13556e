%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_join_experiment).
-moduledoc """
`bin/sderl bench join`: how long a node that is added to a group with many names takes until
it answers for all of them, and what that does to the writes that go on meanwhile.

| metric | meaning |
|---|---|
| `join_ms` | from the call of `s_group:add_nodes/2` until the new node has answered for every name |
| `add_nodes_ms` | how long that call took |
| `register_us_before`, `register_us_during` | latency of registrations on the old members: `p50`, `p99`, `max` |
| `pairs_per_s_before`, `pairs_per_s_during` | how many there were in a second |
| `bytes_per_name` | by how much the new node's memory grew, per name |
| `table_bytes_per_name`, `table_words_per_name` | the part of it in tables |
| `table_bytes_per_name_max` | in tables, on the old member where that is most (the coordinator) |
| `errors` | operations of the writers that failed |
| `converged` | all members' tables are the same in the end |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([measure/2, tables/2, verdict/1]).

-import(sderl_bench_experiment, [option/5, at_least/3]).

-doc false.
-spec summary() -> string().
summary() -> "a node joins a group that has many names and is at work".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Adds a node to a group that holds many names, while clients on its members write. Shows
            how long it takes until the node answers for all names, and the effect on the writers.
            """,
        arguments => [
            option(names, "N", integer, 100_000, "names that the group holds"),
            option(group_size, "N", integer, 10, "members before the node joins"),
            option(clients, "C", integer, 1, "writing processes on each member"),
            option(pause_ms, "MS", integer, 10, "ms that a writer waits after each pair"),
            option(seconds, "S", integer, 5, "how long they write before the node joins"),
            option(repeat, "K", integer, 1, "runs")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Options) ->
    maybe
        ok ?= at_least(1, [names, group_size, clients, seconds, repeat], Options),
        ok ?= at_least(0, [pause_ms], Options),
        {ok, Options}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{names := Names, group_size := Size, clients := Clients, pause_ms := PauseMs} = Options,
    Output) ->
    maybe
        {ok, Runs} ?= measure(Options, Output),
        sderl_bench_output:say(Output, [
            io_lib:format(
                "~nA node joins ~w members with ~w names; ~w client~ts a member writ~ts, ~w ms "
                "pause; ",
                [Size, Names, Clients, [$s || Clients > 1], verb(Clients), PauseMs]
            ),
            sderl_bench_machine:text(),
            "\n\n",
            tables(fun sderl_table:text/2, Runs)
        ]),
        verdict(Runs)
    end.

verb(1) -> "es";
verb(_) -> "e".

-doc "Does the runs and writes the result of each.".
-spec measure(#{atom() => term()}, sderl_bench_output:output()) ->
    {ok, [Metrics :: map()]} | {error, sderl_command:text()}.
measure(#{repeat := Repeat} = Options, Output) ->
    Run = fun(Params, Label) ->
        maybe
            {ok, #{join_ms := Ms} = Metrics} ?= sderl_bench_join:run(Params, Label),
            sderl_bench_output:say(Output,
                                   [string:pad(Label, 15), sderl_table:number(Ms), " ms\n"]),
            {ok, Metrics}
        end
    end,
    maybe
        {ok, Runs} ?= sderl_bench_series:run(join, [maps:remove(repeat, Options)], Repeat, Run,
                                             fun(_) -> ok end, Output),
        {ok, [Metrics || #{metrics := Metrics} <- Runs]}
    end.

-doc "The runs as a table in the given form, medians where there were several.".
-spec tables(sderl_bench_output:form(), [map()]) -> unicode:chardata().
tables(Form, Runs) ->
    Of = fun(Path) -> sderl_table:spread(Path, Runs) end,
    Form(["", "before", "during the join"], [
        ["register p50 us", Of([register_us_before, p50]), Of([register_us_during, p50])],
        ["register p99 us", Of([register_us_before, p99]), Of([register_us_during, p99])],
        ["register max us", Of([register_us_before, max]), Of([register_us_during, max])],
        ["pairs/s", Of([pairs_per_s_before]), Of([pairs_per_s_during])],
        ["until it answers for all names, ms", "", Of([join_ms])],
        ["add_nodes/2, ms", "", Of([add_nodes_ms])],
        ["bytes a name on the new member, in all", "", Of([bytes_per_name])],
        ["bytes a name in its tables", "", Of([table_bytes_per_name])],
        ["bytes a name in tables, coordinator", Of([table_bytes_per_name_max]), ""],
        ["errors", "", Of([errors])]
    ]).

-doc "An error when the tables differed after a run: its numbers are no result then.".
-spec verdict([map()]) -> ok | {error, sderl_command:text()}.
verdict(Runs) ->
    case lists:all(fun(#{converged := Converged}) -> Converged end, Runs) of
        true -> ok;
        false -> {error, "the members' tables do not agree after the join"}
    end.
