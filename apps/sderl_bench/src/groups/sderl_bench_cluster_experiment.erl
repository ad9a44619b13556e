%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_cluster_experiment).
-moduledoc """
`bin/sderl bench cluster`: many real nodes in the groups of a plan, from launch configuration,
without load.

For each number of nodes the planner proposes groups (`sderl_plan:propose/2`). As many bare nodes
are started and ended, to measure what part of the time is the virtual machine's own. Then the nodes
are started, eight at a time, and measured until the groups are formed, and then at rest. How
messages and bytes grow with the number of nodes does not depend on what else the machine does; of
the times only their ratio is as independent.

| metric | meaning |
|---|---|
| `groups`, `group_size_min`, `group_size_max` | of the plan |
| `bare_s` | from the start of the first node until all run: as many nodes without the library and groups |
| `started_s`, `started_per_bare` | the same for the nodes with both, and its ratio to that of the bare ones |
| `formed_s`, `formed_after_ms` | from the start of the first node, and from when all run, until each group is one component that counts all of its members, on each of them |
| `bare_cpu_ms_per_node`, `started_cpu_ms_per_node`, `formed_cpu_ms_per_node` | processor time of a node until then, in user mode and in the system, as the system counts it |
| `links_per_node_max`, `links_per_node_mean` | connections of a node then |
| `plan_links_per_node_max`, `plan_links_per_node_mean`, `nodes_off` | by the plan; nodes that have more or fewer: 0 is right |
| `forming_messages_per_node`, `forming_bytes_per_node` | sent over links until then |
| `forming_reductions_per_node` | the work of a node until then, its start included |
| `messages_per_node_s`, `bytes_per_node_s` | sent over links in a second at rest, mean; `messages_per_node_s_max` of the node that sends most |
| `cpu_pct_per_node`, `cpu_pct_per_node_max` | processor time at rest, in user mode, in percent of one core |
| `memory_mib_per_node` | resident |
| `messages_by_kind`, `bytes_by_kind` | in a second and node at rest, traced afterwards: `heartbeats`, `routes`, `attributes`, `distances`, `groups` (what else members send), `other`; bytes are those of the terms. (The runtime's own ticks are not among them.) |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-import(sderl_bench_experiment, [option/5, at_least/3, numbers/4]).

-doc false.
-spec summary() -> string().
summary() -> "many real nodes in planned groups: time to form, links, and traffic at rest".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Starts many real nodes in the groups of a plan, without load. Shows how long it takes
            until all groups are formed and what that costs a node, the links compared with the
            plan, and the traffic and work of a node at rest, by kind. A node takes some 50 MB.
            """,
        arguments => [
            option(nodes, "LIST", string, "64", "numbers of nodes, measured one after the other"),
            option(group_size, "G", integer, 16, "most members of a group"),
            option(max_links, "N", integer, 30, "most links of a node"),
            option(gateways, "K", integer, 2, "gateways between two groups"),
            option(settle_s, "S", integer, 20, "seconds between formed and at rest"),
            option(rest_s, "S", integer, 20, "seconds measured at rest, twice")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{nodes := Text} = Options) ->
    maybe
        ok ?= at_least(2, [group_size], Options),
        ok ?= at_least(1, [max_links, gateways, rest_s], Options),
        ok ?= at_least(0, [settle_s], Options),
        {ok, Counts} ?= numbers("--nodes", Text, 2, 2000),
        {ok, Plans} ?= plans(Counts, Options, []),
        {ok, Options#{nodes := Plans}}
    end.

plans([], _, Plans) -> {ok, lists:reverse(Plans)};
plans([Count | Counts], Options, Plans) ->
    case sderl_bench_cluster:plan(Count, Options) of
        {ok, Plan} -> plans(Counts, Options, [{Count, Plan} | Plans]);
        {error, Reason} ->
            {error, ["--nodes ", integer_to_list(Count), ": ", sderl_plan:format_error(Reason)]}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{nodes := Plans} = Options, Output) ->
    Points = [Options#{nodes := Count, pattern => Pattern}
              || {Count, #{pattern := Pattern}} <- Plans],
    Run = fun(#{nodes := Count} = Params, Label) ->
        {_, Plan} = lists:keyfind(Count, 1, Plans),
        maybe
            {ok, #{formed_s := Formed} = Metrics} ?= sderl_bench_cluster:run(Params, Label, Plan),
            sderl_bench_output:say(Output, [
                io_lib:format("~w nodes: formed after ", [Count]), sderl_table:number(Formed),
                " s\n"
            ]),
            {ok, Metrics}
        end
    end,
    Show = fun(Runs) ->
        sderl_bench_output:say(Output, [
            io_lib:format("~nGroups of at most ~w, ~w gateways between two, no load; ", [
                maps:get(group_size, Options), maps:get(gateways, Options)
            ]),
            sderl_bench_machine:text(), "\n\n",
            table([{Count, Metrics} || #{params := #{nodes := Count}, metrics := Metrics} <- Runs])
        ])
    end,
    maybe
        {ok, _} ?= sderl_bench_series:run(cluster, Points, 1, Run, Show, Output),
        ok
    end.

table(Results) ->
    Row = fun(Name, Of) ->
        [Name | [sderl_table:number(Of(Metrics)) || {_, Metrics} <- Results]]
    end,
    Both = fun(Name, Key, Other) ->
        [Name
         | [[sderl_table:number(maps:get(Key, M)), " / ", sderl_table:number(maps:get(Other, M))]
            || {_, M} <- Results]]
    end,
    Kinds = lists:usort(lists:append([maps:keys(Ms) || {_, #{messages_by_kind := Ms}} <- Results])),
    OfKind = fun(Key) ->
        [Row(["  ", atom_to_list(Kind)], fun(#{Key := Of}) -> maps:get(Kind, Of, 0) end)
         || Kind <- Kinds]
    end,
    sderl_table:text(["" | [io_lib:format("~w nodes", [Count]) || {Count, _} <- Results]], [
        Row("groups", fun(#{groups := N}) -> N end),
        Both("members, least / most", group_size_min, group_size_max),
        Row("as many bare nodes run after, s", fun(#{bare_s := S}) -> S end),
        Row("all nodes run after, s", fun(#{started_s := S}) -> S end),
        Row("ratio", fun(#{started_per_bare := Ratio}) -> Ratio end),
        Row("all groups formed after, s", fun(#{formed_s := S}) -> S end),
        Row("formed after all run, ms", fun(#{formed_after_ms := Ms}) -> Ms end),
        Row("processor time of a bare node, ms", fun(#{bare_cpu_ms_per_node := Ms}) -> Ms end),
        Row("of a node when all run", fun(#{started_cpu_ms_per_node := Ms}) -> Ms end),
        Row("when all groups are formed", fun(#{formed_cpu_ms_per_node := Ms}) -> Ms end),
        Both("links of a node, mean / planned", links_per_node_mean, plan_links_per_node_mean),
        Both("links of a node, max / planned", links_per_node_max, plan_links_per_node_max),
        Row("nodes with other links", fun(#{nodes_off := N}) -> N end),
        Row("messages of a node until formed", fun(#{forming_messages_per_node := N}) -> N end),
        Row("bytes", fun(#{forming_bytes_per_node := N}) -> N end),
        Row("reductions, thousands", fun(#{forming_reductions_per_node := N}) -> N / 1000 end),
        Row("messages a second of a node at rest", fun(#{messages_per_node_s := N}) -> N end),
        Row("of the node that sends most", fun(#{messages_per_node_s_max := N}) -> N end)
    ] ++ OfKind(messages_by_kind) ++ [
        Row("bytes a second of a node at rest", fun(#{bytes_per_node_s := N}) -> N end)
    ] ++ OfKind(bytes_by_kind) ++ [
        Row("processor time at rest, % of a core", fun(#{cpu_pct_per_node := N}) -> N end),
        Row("of the node that needs most", fun(#{cpu_pct_per_node_max := N}) -> N end),
        Row("memory of a node, MiB", fun(#{memory_mib_per_node := N}) -> N end)
    ]).
