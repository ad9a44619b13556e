%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_groups_experiment).
-moduledoc """
`bin/sderl bench groups`: what one more group costs on nodes that are in many groups, and its effect
on writes in another group.

Groups of two are made by the nodes in turn. For each number of groups there is one result; its
latencies are of all groups and writes since the number before.

| metric | meaning |
|---|---|
| `create_us` | latency of `s_group:new_s_group/2`: `p50`, `p99`, `max` |
| `write_us` | latency of registrations in another group, of all nodes, meanwhile |
| `messages_per_group`, `bytes_per_group` | sent by all nodes for one more group, without what they send at rest |
| `cpu_us_per_group` | processor time of all nodes for one more group, likewise |
| `messages_per_s_at_rest`, `cpu_pct_at_rest` | sent by all nodes, and used of all cores, while no client is at work |
| `bytes_per_member` | growth of the nodes' memory, for each group and member of it, garbage included |
| `busiest` | reductions of the registered processes of one node that have worked most |
| `errors` | operations of the writers that failed |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-import(sderl_bench_experiment, [option/5, at_least/3, numbers/4]).

-doc false.
-spec summary() -> string().
summary() -> "many groups of two on a few nodes: the cost of one more".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Makes groups of two on a few nodes, while clients write in another group. Shows the cost
            of a group when there are many, and the effect on the writers.
            """,
        arguments => [
            option(nodes, "N", integer, 5, "nodes"),
            option(groups, "LIST", string, "100,1000", "after how many groups there is a result"),
            option(pause_ms, "MS", integer, 5, "ms that a node waits before each group")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{groups := Text} = Options) ->
    maybe
        ok ?= at_least(2, [nodes], Options),
        ok ?= at_least(0, [pause_ms], Options),
        {ok, Numbers} ?= numbers("--groups", Text, 1, 100_000),
        case lists:usort(Numbers) of
            Numbers when Numbers =/= [] -> {ok, Options#{groups := Numbers}};
            _ -> {error, "--groups takes numbers that grow, such as 100,1000"}
        end
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{nodes := Nodes} = Params, Output) ->
    Started = sderl_bench_output:now(),
    Report = fun(#{groups := Number, create_us := #{p50 := P50, p99 := P99}} = Metrics) ->
        Result = sderl_bench_output:result(groups, Params#{groups := Number}, Metrics, Started),
        ok = sderl_bench_output:write(Output, Result),
        sderl_bench_output:say(Output, [
            io_lib:format("~w groups: p50 ", [Number]), sderl_table:number(P50),
            " us, p99 ", sderl_table:number(P99), " us\n"
        ])
    end,
    case sderl_bench_groups:run(Params, "groups", Report) of
        {ok, Stages} ->
            sderl_bench_output:say(Output, [
                io_lib:format("~nGroups of two on ~w nodes, made by these in turn; ", [Nodes]),
                sderl_bench_machine:text(),
                "\n\n",
                table(Stages)
            ]);
        {error, Reason} ->
            {error, sderl_bench_reason:text(Reason)}
    end.

table(Stages) ->
    Row = fun(Name, Of) -> [Name | [sderl_table:number(Of(Stage)) || Stage <- Stages]] end,
    sderl_table:text(["" | [io_lib:format("~w groups", [N]) || #{groups := N} <- Stages]], [
        Row("creation p50, us", fun(#{create_us := #{p50 := Us}}) -> Us end),
        Row("creation p99, us", fun(#{create_us := #{p99 := Us}}) -> Us end),
        Row("creation max, us", fun(#{create_us := #{max := Us}}) -> Us end),
        Row("a write in another group p99, us", fun(#{write_us := #{p99 := Us}}) -> Us end),
        Row("a write in another group max, us", fun(#{write_us := #{max := Us}}) -> Us end),
        Row("messages a creation", fun(#{messages_per_group := N}) -> N end),
        Row("bytes a creation", fun(#{bytes_per_group := N}) -> N end),
        Row("processor time a creation, us", fun(#{cpu_us_per_group := Us}) -> Us end),
        Row("bytes of memory a group and member", fun(#{bytes_per_member := N}) -> N end),
        Row("messages a second at rest", fun(#{messages_per_s_at_rest := N}) -> N end),
        Row("processor time at rest, % of all cores", fun(#{cpu_pct_at_rest := N}) -> N end),
        Row("errors", fun(#{errors := N}) -> N end)
    ]).
