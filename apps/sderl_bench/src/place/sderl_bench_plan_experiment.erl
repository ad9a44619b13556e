%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_plan_experiment).
-moduledoc """
`bin/sderl bench plan`: the planner of groups. The metrics are those of `m:sderl_bench_plan`: one
result for each number of nodes, and one for each pattern that is applied to a running cluster.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([measure/2, tables/2, verdict/1]).
-export_type([result/0]).

-import(sderl_bench_experiment, [option/5, at_least/3, numbers/4]).

-doc "A part, what was varied in it, and what was measured.".
-type result() :: {Part :: propose | apply, pos_integer() | atom(), Metrics :: map()}.

-doc false.
-spec summary() -> string().
summary() -> "plans of groups: time, links, hops; a running cluster against its plan".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Plans groups for more and more nodes with a limit on the links of a node, and shows the
            time and the predictions of the planner. Then applies patterns to a running cluster, one
            after the other, and compares its links and routes with the prediction.
            """,
        arguments => [
            option(nodes, "LIST", string, "10,20,50,100,200,500,1000,2000",
                   "numbers of nodes to plan for"),
            option(max_links, "N", integer, 20, "links that a node may have"),
            option(running, "N", integer, 20, "real nodes that patterns are applied to; 0: none"),
            option(group_size, "G", integer, 5, "members of a group there"),
            option(repeat, "K", integer, 1, "turns")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{nodes := Nodes, running := Running, group_size := Size} = Options) ->
    maybe
        {ok, Ns} ?= numbers("--nodes", Nodes, 2, 10_000),
        ok ?= at_least(1, [max_links, repeat], Options),
        ok ?= at_least(0, [running], Options),
        ok ?= at_least(4, [group_size], Options),
        ok ?= two_groups(Running, Size),
        {ok, Options#{nodes := Ns}}
    end.

two_groups(Running, Size) when Running > 0, Running < 2 * Size ->
    {error, io_lib:format("--running ~w is too few for two groups of ~w", [Running, Size])};
two_groups(_, _) -> ok.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{max_links := Links, running := Running} = Options, Output) ->
    maybe
        {ok, Results} ?= measure(Options, Output),
        sderl_bench_output:say(Output, [
            io_lib:format("~nAt most ~w links a node; ", [Links]), sderl_bench_machine:text(),
            "\n\n",
            tables(fun sderl_table:text/2, Results),
            [io_lib:format("~napplied to ~w running nodes~n", [Running]) || Running > 0]
        ])
    end.

-doc "Measures and writes the results.".
-spec measure(#{atom() => term()}, sderl_bench_output:output()) ->
    {ok, [result()]} | {error, sderl_command:text()}.
measure(#{nodes := Counts, max_links := Links, repeat := Repeat, running := Running,
          group_size := Size}, Output) ->
    Draw = sderl_progress:reporter("planning"),
    Work = [{Turn, N} || Turn <- lists:seq(1, Repeat), N <- Counts],
    maybe
        {ok, Proposed} ?= proposals(lists:enumerate(0, Work), length(Work), Links, Draw, Output,
                                    []),
        {ok, Applied} ?= applications(lists:seq(1, Repeat), Running, Size, Output, []),
        {ok, Proposed ++ Applied}
    else
        {error, Reason} -> {error, sderl_bench_reason:text(Reason)}
    end.

proposals([], _, _, _, _, Results) ->
    ok = sderl_progress:done(),
    {ok, lists:reverse(Results)};
proposals([{I, {Turn, N}} | More], Total, Links, Draw, Output, Results) ->
    Draw(I, Total),
    maybe
        {ok, Metrics} ?= sderl_bench_plan:propose(N, Links),
        ok ?= write(Output, #{part => propose, nodes => N, max_links => Links, run => Turn},
                    Metrics),
        proposals(More, Total, Links, Draw, Output, [{propose, N, Metrics} | Results])
    end.

applications(_, 0, _, _, Results) -> {ok, Results};
applications([], _, _, _, Results) -> {ok, Results};
applications([Turn | Turns], Nodes, Size, Output, Results) ->
    Done = fun(Pattern, Metrics) ->
        write(Output,
              #{part => apply, pattern => Pattern, nodes => Nodes, group_size => Size, run => Turn},
              Metrics)
    end,
    case sderl_bench_plan:apply_all(Nodes, Size, Done) of
        {ok, New} ->
            applications(Turns, Nodes, Size, Output, Results ++ [{apply, P, M} || {P, M} <- New]);
        Error -> Error
    end.

write(Output, Params, Metrics) ->
    case sderl_bench_output:write(
        Output, sderl_bench_output:result(plan, Params, Metrics, sderl_bench_output:now())
    ) of
        ok -> ok;
        {error, Text} -> {error, {said, Text}}
    end.

-doc "The results as tables in the given form.".
-spec tables(sderl_bench_output:form(), [result()]) -> unicode:chardata().
tables(Form, Results) ->
    Applied = [{P, M} || {apply, P, M} <- Results],
    [proposed(Form, [{N, M} || {propose, N, M} <- Results]),
     [["\n", applied(Form, Applied)] || Applied =/= []]].

proposed(Form, Results) ->
    Number = fun sderl_table:number/1,
    Form(
        ["nodes", "planned in ms", "pattern", "groups", "largest", "links max", "mean", "mesh",
         "hops max", "mean", "names a node", "in one namespace"],
        [[Number(N), spread(propose_ms, Ms),
          atom_to_list(Pattern)
          | [Number(maps:get(K, M))
             || K <- [groups, group_size_max, links_per_node_max, links_per_node_mean,
                      mesh_links_per_node, hops_max, hops_mean, names_per_node_max, names_mesh]]]
         || N <- lists:uniq([N || {N, _} <- Results]),
            [#{pattern := Pattern} = M | _] = Ms <- [[M || {C, M} <- Results, C =:= N]]]
    ).

applied(Form, Results) ->
    Both = fun(A, B, M) ->
        [sderl_table:number(maps:get(A, M)), " / ", sderl_table:number(maps:get(B, M))]
    end,
    Form(
        ["applied pattern", "groups", "applied in ms", "settled ms later",
         "links max, predicted / seen", "hops max", "hops mean", "nodes off"],
        [[atom_to_list(P),
          sderl_table:number(maps:get(groups, M)),
          spread(apply_ms, Ms),
          spread(routes_ms, Ms),
          Both(links_per_node_max, seen_links_per_node_max, M),
          Both(hops_max, seen_hops_max, M),
          Both(hops_mean, seen_hops_mean, M),
          sderl_table:number(lists:sum([N || #{nodes_off := N} <- Ms]))]
         || P <- lists:uniq([P || {P, _} <- Results]),
            [M | _] = Ms <- [[M || {Q, M} <- Results, Q =:= P]]]
    ).

spread(Key, Metrics) -> sderl_table:spread([maps:get(Key, M) || M <- Metrics]).

-doc "Whatever comes out is a result: `nodes_off` says where a cluster is not as its plan has it.".
-spec verdict([result()]) -> ok.
verdict(_) -> ok.
