%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_placement_experiment).
-moduledoc """
`bin/sderl bench placement`: what choosing a node costs, and how choices are spread. The metrics are
those of `m:sderl_bench_placement`, one result for each part and chooser.

The last line of JSON has `part` `summary`: `choose_us` there is that of the slowest chooser,
`choose_us_NAME` that of each, `messages_sent` of all together.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([measure/2, overall/1, tables/2, verdict/1]).
-export_type([result/0]).

-import(sderl_bench_experiment, [at_least/3]).

-doc "A part, what was varied in it, and what was measured.".
-type result() :: {Part :: choose | spread | sharing, Key :: map(), Metrics :: map()}.

-doc false.
-spec summary() -> string().
summary() -> "choices of nodes in one group: time, messages, how evenly spread".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Chooses nodes among the members of one group of real nodes. Shows the cost of a choice
            with each chooser, with a trace of the caller's messages; how evenly many choices at the
            same moment are spread, from one node and from all; and the cost of holding each other's
            attributes.
            """,
        arguments => [
            option(nodes, "N", 100, "nodes in the group"),
            option(ms, "MS", 300, "how long each chooser is measured"),
            option(choices, "N", 1000, "choices at the same moment"),
            option(among, "N", 50, "candidates of these choices"),
            option(share_ms, "MS", 15_000, "how long the sharing of attributes is watched"),
            option(repeat, "K", 3, "turns")
        ]
    }.

option(Name, Shape, Default, Text) ->
    sderl_bench_experiment:option(Name, Shape, integer, Default, Text).

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Options) ->
    maybe
        ok ?= at_least(2, [nodes, among], Options),
        ok ?= at_least(10, [ms], Options),
        ok ?= at_least(1, [choices, repeat], Options),
        ok ?= at_least(100, [share_ms], Options),
        ok ?= enough(Options),
        {ok, Options}
    end.

enough(#{nodes := Nodes, among := Among}) when Among > Nodes ->
    {error, io_lib:format("--among ~w is more than --nodes ~w", [Among, Nodes])};
enough(_) -> ok.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{nodes := Nodes, repeat := Repeat} = Options, Output) ->
    maybe
        {ok, Results} ?= measure(Options, Output),
        sderl_bench_output:say(Output, [
            io_lib:format("~nOne group of ~w nodes; ", [Nodes]), sderl_bench_machine:text(),
            [io_lib:format("; ~w turns: median (least..greatest)", [Repeat]) || Repeat > 1], "\n\n",
            tables(fun sderl_table:text/2, Results)
        ]),
        verdict(Results)
    end.

-doc "Measures all parts and writes the results.".
-spec measure(#{atom() => term()}, sderl_bench_output:output()) ->
    {ok, [result()]} | {error, sderl_command:text()}.
measure(Options, Output) ->
    Started = sderl_bench_output:now(),
    Done = fun(Part, Key, Metrics) ->
        Result = sderl_bench_output:result(placement, maps:merge(Options, Key#{part => Part}),
                                           Metrics, sderl_bench_output:now()),
        case sderl_bench_output:write(Output, Result) of
            ok -> ok;
            {error, Text} -> {error, {said, Text}}
        end
    end,
    case sderl_bench_placement:run(Options, Done) of
        {ok, Results} ->
            Last = sderl_bench_output:result(placement, Options#{part => summary}, overall(Results),
                                             Started),
            case sderl_bench_output:write(Output, Last) of
                ok -> {ok, Results};
                Error -> Error
            end;
        {error, Reason} -> {error, sderl_bench_reason:text(Reason)}
    end.

-doc "The summary.".
-spec overall([result()]) -> map().
overall(Results) ->
    Median = fun(Key, List) -> sderl_table:median([V || #{Key := V} <- List]) end,
    Each = [
        {Name, #{p50 => Median(p50, Us), p99 => Median(p99, Us)}}
     || Name <- lists:uniq([N || {choose, #{chooser := N}, _} <- Results]),
        Us <- [[U || {choose, #{chooser := N}, #{choose_us := U}} <- Results, N =:= Name]]
    ],
    [Slowest | _] = lists:sort(fun(#{p50 := A}, #{p50 := B}) -> A >= B end,
                               [Us || {_, Us} <- Each]),
    maps:merge(
        maps:from_list([{<<"choose_us_", (atom_to_binary(Name))/binary>>, Us}
                        || {Name, Us} <- Each]),
        #{choose_us => Slowest,
          messages_sent => lists:sum([N || {choose, _, #{messages_sent := N}} <- Results])}
    ).

-doc "The results as tables in the given form.".
-spec tables(sderl_bench_output:form(), [result()]) -> unicode:chardata().
tables(Form, Results) ->
    Number = fun sderl_table:number/1,
    Spread = fun(Key, List) -> sderl_table:spread([maps:get(Key, M) || M <- List]) end,
    Keys = fun(Part) -> lists:uniq([K || {P, K, _} <- Results, P =:= Part]) end,
    Of = fun(Part, Key) -> [M || {P, K, M} <- Results, P =:= Part, K =:= Key] end,
    [
        Form(["one choice", "p50 us", "p99 us", "messages", "processes", "nodes chosen"], [
            [atom_to_list(Name),
             Spread(p50, Us),
             Spread(p99, Us),
             Number(lists:sum([N || #{messages_sent := N} <- Ms])),
             Number(lists:sum([N || #{processes_spawned := N} <- Ms])),
             Number(lists:max([N || #{nodes_chosen := N} <- Ms]))]
         || #{chooser := Name} = Key <- Keys(choose), Ms <- [Of(choose, Key)],
            Us <- [[U || #{choose_us := U} <- Ms]]
        ]),
        "\n",
        Form(["choices at the same moment", "from", "most", "least", "mean", "stddev"], [
            [atom_to_list(Name), case From of one -> "one node"; all -> "all of them" end,
             Spread(max, Ms), Spread(min, Ms), Spread(mean, Ms), Spread(stddev, Ms)]
         || #{chooser := Name, from := From} = Key <- Keys(spread), Ms <- [Of(spread, Key)]
        ]),
        "\n",
        [io_lib:format("A node tells ~ts attributes: ~ts messages and ~ts bytes a second.~n",
            [Number(A), Number(M), Number(B)])
         || {sharing, _,
             #{attributes := A, messages_per_node_s := M, bytes_per_node_s := B}} <- Results]
    ].

-doc "An error when a choice sent a message: choices must use only what their node knows.".
-spec verdict([result()]) -> ok | {error, sderl_command:text()}.
verdict(Results) ->
    case lists:usort([Name
                      || {choose, #{chooser := Name}, #{messages_sent := N}} <- Results, N > 0]) of
        [] -> ok;
        Names ->
            {error, ["choices sent messages: ", lists:join(", ", [atom_to_list(N) || N <- Names])]}
    end.
