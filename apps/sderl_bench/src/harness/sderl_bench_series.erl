%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_series).
-moduledoc """
Several runs of a benchmark in one go: sizes of the cluster, variants, repeats.

Runs go in turns: each variant once on each size, then all of them again. So what disturbs the
machine for a while disturbs all variants, and an interrupted series has runs of each. A result is
written as soon as it is there.
""".

-export([options/1, check/1, run/6, repeated/6, medians/1, metrics/2, label/2]).
-export([interval/1, median_interval/1]).
-export_type([run/0, spread/0]).

-import(sderl_bench_experiment, [option/5, at_least/3, numbers/4]).

-doc "The parameters, with `run` (the number of the turn, from 1), and the measured metrics.".
-type run() :: #{params := #{atom() => term()}, metrics := #{atom() => term()}}.

-doc "The median of several runs, the least and the greatest of them.".
-type spread() :: {Median :: number(), Least :: number(), Greatest :: number()}.

%% More nodes than one machine is for.
-define(MOST_NODES, 1_000_000).

-doc """
The options of a series, with these defaults. `--compare` asks for all variants, which only the
benchmark knows.
""".
-spec options(#{nodes := string(), repeat := pos_integer()}) -> [argparse:argument()].
options(#{nodes := Nodes, repeat := Repeat}) ->
    [
        option(nodes, "LIST", string, Nodes,
               "nodes; several numbers with commas between them are a series"),
        option(repeat, "K", integer, Repeat, "turns; tables have the medians and the spread"),
        #{
            name => compare, long => "-compare", type => boolean, default => false,
            help => {"[--compare]", ["all variants in turn"]}
        }
    ].

-doc """
Checks these options: `nodes` becomes a list of numbers, each once. The largest number of nodes,
times the option `clusters` where there is one, must fit into memory.
""".
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{nodes := Text} = Options) ->
    maybe
        {ok, Numbers} ?= numbers("--nodes", Text, 1, ?MOST_NODES),
        ok ?= at_least(1, [repeat], Options),
        ok ?= fits(lists:max(Numbers), maps:get(clusters, Options, 1)),
        {ok, Options#{nodes := lists:uniq(Numbers)}}
    end.

fits(Count, Clusters) ->
    case sderl_fleet:fits(Count * Clusters) of
        ok -> ok;
        {error, Reason} ->
            {error, io_lib:format("--nodes ~w~ts: ~ts", [
                Count, [io_lib:format(" with --clusters ~w", [Clusters]) || Clusters > 1],
                sderl_bench_reason:text(Reason)
            ])}
    end.

-doc """
Measures all points `Repeat` times, by `Fun(Params, Label)`. The label has two parts: which run of
how many, and which point, or which experiment. Errors of `Fun` are terms for
`sderl_bench_reason:text/1`. The first error ends the series; what was measured until then is
written. `Show` gets all runs at the end, or those before an error.
""".
-spec run(Experiment :: atom(), [Params], Repeat :: pos_integer(), Fun,
          Show :: fun(([run()]) -> ok), sderl_bench_output:output()) ->
    {ok, [run()]} | {error, sderl_command:text()} when
    Params :: #{atom() => term()},
    Fun :: fun((Params, Label :: [unicode:chardata()]) -> {ok, Metrics :: #{atom() => term()}}
                                                          | {error, term()}).
run(Experiment, Points, Repeat, Fun, Show, Output) ->
    Turns = [{Params, Turn} || Turn <- lists:seq(1, Repeat), Params <- Points],
    {Outcome, Latest} = turns(lists:enumerate(Turns), length(Turns), Experiment, Fun, Output, []),
    Runs = lists:reverse(Latest),
    ok = case Runs of [] -> ok; _ -> Show(Runs) end,
    case Outcome of
        ok -> {ok, Runs};
        {error, Message} -> {error, Message}
    end.

-doc """
Measures one point `Repeat` times, shows the table of all metrics below the title and the machine,
and gives the verdict on them.
""".
-spec repeated(Experiment :: atom(), Params, Repeat :: pos_integer(), Fun,
               {Title :: unicode:chardata(),
                Table :: fun((sderl_bench_output:form(), [Metrics]) -> unicode:chardata()),
                Verdict :: fun(([Metrics]) -> Outcome)},
               sderl_bench_output:output()) ->
    Outcome when
    Params :: Metrics,
    Metrics :: #{atom() => term()},
    Fun :: fun((Params, Label :: [unicode:chardata()]) -> {ok, Metrics} | {error, term()}),
    Outcome :: ok | {error, sderl_command:text()}.
repeated(Experiment, Params, Repeat, Fun, {Title, Table, Verdict}, Output) ->
    Metrics = fun(Runs) -> [M || #{metrics := M} <- Runs] end,
    Show = fun(Runs) ->
        sderl_bench_output:say(Output, ["\n", Title, "; ", sderl_bench_machine:text(), "\n\n",
                                        Table(fun sderl_table:text/2, Metrics(Runs))])
    end,
    maybe
        {ok, Runs} ?= run(Experiment, [Params], Repeat, Fun, Show, Output),
        Verdict(Metrics(Runs))
    end.

turns([], _, _, _, _, Runs) ->
    {ok, Runs};
turns([{Number, {Params, Turn}} | Turns], Total, Experiment, Fun, Output, Runs) ->
    Words = case label(Params, [impl, mode, nodes]) of
        [] -> atom_to_list(Experiment);
        Point -> Point
    end,
    Label = [[io_lib:format("~w/~w ", [Number, Total]) || Total > 1], Words],
    Started = sderl_bench_output:now(),
    Full = Params#{run => Turn},
    maybe
        {measured, {ok, Metrics}} ?= {measured, Fun(Params, Label)},
        ok ?= sderl_bench_output:write(
            Output, sderl_bench_output:result(Experiment, Full, Metrics, Started)
        ),
        turns(Turns, Total, Experiment, Fun, Output, [#{params => Full, metrics => Metrics} | Runs])
    else
        {measured, {error, Reason}} ->
            {{error, [Label, ": ", sderl_bench_reason:text(Reason)]}, Runs};
        {error, Message} -> {{error, Message}, Runs}
    end.

-doc "These parameters in words: `stock, 10 nodes`.".
-spec label(#{atom() => term()}, [atom()]) -> unicode:chardata().
label(Params, Keys) ->
    lists:join(", ", [
        case {Key, Value} of
            {nodes, 1} -> "1 node";
            {nodes, _} -> io_lib:format("~w nodes", [Value]);
            {_, _} when Key =:= mode; Key =:= impl -> io_lib:format("~ts", [Value]);
            _ -> io_lib:format("~ts ~0tp", [Key, Value])
        end
     || Key <- Keys, Value <- [maps:get(Key, Params, undefined)], Value =/= undefined
    ]).

-doc "The metrics of each run of a point; `Params` are without `run`.".
-spec metrics(Params :: #{atom() => term()}, [run()]) -> [#{atom() => term()}].
metrics(Params, Runs) ->
    [M || #{params := P, metrics := M} <- Runs, maps:remove(run, P) =:= Params].

-doc """
For each point, in the order of its first run, its parameters without `run`, and the spread of each
metric that is a number in any of its runs; of maps of metrics, those of each.
""".
-spec medians([run()]) -> [{#{atom() => term()}, #{term() => spread() | map()}}].
medians(Runs) ->
    [{Params, spreads(metrics(Params, Runs))}
     || Params <- lists:uniq([maps:remove(run, P) || #{params := P} <- Runs])].

spreads(Maps) ->
    Keys = lists:usort(lists:append([maps:keys(M) || M <- Maps])),
    #{Key => Spread || Key <- Keys, {ok, Spread} <- [spread([V || #{Key := V} <- Maps])]}.

spread(Values) ->
    case {[V || V <- Values, is_number(V)], [M || M <- Values, is_map(M)]} of
        {[_ | _] = Numbers, _} ->
            {ok, {sderl_table:median(Numbers), lists:min(Numbers), lists:max(Numbers)}};
        {[], [_ | _] = Maps} -> {ok, spreads(Maps)};
        {[], []} -> none
    end.

-doc """
The mean, and half of its 95 % confidence interval (Student's t). For a single value the interval is
not known, and 0 here.
""".
-spec interval([number(), ...]) -> {Mean :: float(), Half :: float()}.
interval(Values) ->
    N = length(Values),
    Mean = lists:sum(Values) / N,
    case N of
        1 -> {Mean, 0.0};
        _ ->
            {Mean, student(N - 1) *
                   math:sqrt(lists:sum([(V - Mean) * (V - Mean) || V <- Values]) / (N - 1) / N)}
    end.

%% The 97.5 % point of Student's distribution.
student(Freedom) when Freedom =< 10 ->
    element(Freedom, {12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23});
student(_) -> 2.2.

-doc """
The median, and its confidence interval of 95 % or more (`sderl_bench_sample:median/2`). Of fewer
than six values there is none, and the least and the greatest stand for it.
""".
-spec median_interval([number(), ...]) -> spread().
median_interval(Values) ->
    case sderl_bench_sample:median(0.95, Values) of
        #{value := Median, low := undefined} -> {Median, lists:min(Values), lists:max(Values)};
        #{value := Median, low := Low, high := High} -> {Median, Low, High}
    end.
