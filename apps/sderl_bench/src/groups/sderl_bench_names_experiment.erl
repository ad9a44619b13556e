%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_names_experiment).
-moduledoc """
`bin/sderl bench names`: what very many names in one group cost, and how long writes stop when
the coordinator's process, or its node, is killed.

| metric | meaning |
|---|---|
| `load_s`, `names_per_s` | to register the names, each of a process of its own, on all nodes at once |
| `bytes_per_name_min`, `bytes_per_name_max` | what each name takes in a node's tables; most at the coordinator |
| `bytes_per_name_joined` | by how much the memory of a node that joined grew, per name |
| `lookup_ns` | one look-up on a member |
| `process_killed` | from the kill of the coordinator's process until the next write of the first member's client, and of every member's client, was answered: `first_write_ms`, `all_write_ms`; `complete`: whether all names are there |
| `join_ms` | from the call that adds an empty node until it has answered for every name |
| `node_killed` | as `process_killed`, of the coordinator's node |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([table/2, verdict/1]).

-import(sderl_bench_experiment, [option/5, at_least/3]).

-doc false.
-spec summary() -> string().
summary() -> "one group with very many names: memory, a join, the coordinator killed".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Gives a group very many names, each of a process of its own. Shows the memory that they
            take, how long writes stop when the coordinator's process or its node is killed, and how
            long a node takes to join.
            """,
        arguments => [
            option(names, "N", integer, 100_000, "names that the group holds"),
            option(nodes, "N", integer, 5, "members of the group; one more joins it"),
            option(repeat, "K", integer, 1, "runs")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Options) ->
    maybe
        ok ?= at_least(1, [names, repeat], Options),
        %% With fewer nobody is left to write.
        ok ?= at_least(2, [nodes], Options),
        {ok, Options}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{names := Names, nodes := Nodes, repeat := Repeat} = Options, Output) ->
    Title = io_lib:format("~w names in a group of ~w nodes", [Names, Nodes]),
    sderl_bench_series:repeated(names, maps:remove(repeat, Options), Repeat,
                                fun sderl_bench_names:run/2,
                                {Title, fun table/2, fun verdict/1}, Output).

-doc "The runs as a table in the given form, medians where there were several.".
-spec table(sderl_bench_output:form(), [map()]) -> unicode:chardata().
table(Form, Runs) ->
    Row = fun(Text, Path) -> [Text, sderl_table:spread(Path, Runs)] end,
    Form(["", "measured"], [
        Row("to register them, s", [load_s]),
        Row("names/s", [names_per_s]),
        Row("bytes a name in tables, coordinator", [bytes_per_name_max]),
        Row("bytes a name in tables, other members", [bytes_per_name_min]),
        Row("bytes a name on the node that joined, in all", [bytes_per_name_joined]),
        Row("look-up, ns", [lookup_ns]),
        Row("a node joins, ms", [join_ms]),
        Row("coordinator's process killed: first write after, ms",
            [process_killed, first_write_ms]),
        Row("coordinator's process killed: all members write, ms", [process_killed, all_write_ms]),
        Row("coordinator's node killed: first write after, ms", [node_killed, first_write_ms]),
        Row("coordinator's node killed: all members write, ms", [node_killed, all_write_ms])
    ]).

-doc "An error when names were missing after a kill.".
-spec verdict([map()]) -> ok | {error, sderl_command:text()}.
verdict(Runs) ->
    Complete = fun(Run) -> maps:get(complete, maps:get(process_killed, Run))
                               andalso maps:get(complete, maps:get(node_killed, Run)) end,
    case lists:all(Complete, Runs) of
        true -> ok;
        false -> {error, "the members do not all have the names that there should be"}
    end.
