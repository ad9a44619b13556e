%% SPDX-License-Identifier: Apache-2.0
-module(sderl_claim_points).
-moduledoc """
Measured points, as `points.jsonl` has them: chooses them by their parameters, puts the runs of one
point together, and makes series of plots and cells of tables.

Keys and words are binaries, as JSON gives them.
""".

-export([key/1, written/1, chosen/3, grouped/3, failed/3, broken/3, whole/2, pairs/3, lacking/2]).
-export([spread/2, value/2, sum/2, apart/3, paired/3, series/3, scaled/2, cell/2, text/1, text/2]).
-export_type([measured/0, key/0, group/0, wanted/0, what/0, spread/0, failure/0]).

-doc "One run of one point.".
-type measured() :: #{
    experiment := binary(),
    params := #{binary() => term()},
    metrics := #{binary() => term()}
}.

-doc "The parameters that the runs of one point share, and by which points differ.".
-type key() :: {Experiment :: binary(), Params :: #{binary() => term()}}.

-doc "All runs of one point, with their numbers in the same order.".
-type group() ::
    #{params := #{binary() => term()}, runs := [#{binary() => term()}], numbers := [pos_integer()]}.

-doc "Parameters and their values, or functions of these.".
-type wanted() :: #{atom() => term() | fun((term()) -> boolean())}.

-doc """
A way into metrics, such as `[global, latency_us, p50]`, or a function of the metrics of one run.
""".
-type what() :: [atom()] | fun((#{binary() => term()}) -> number() | undefined).

-doc "A run that could not be measured; `in_run`: what was to be measured failed.".
-type failure() :: #{params := #{binary() => term()}, reason := binary(), in_run := boolean()}.

-doc "Over the runs of a point.".
-type spread() :: {Median :: number(), Least :: number(), Greatest :: number()}.

-doc """
The parameters of a claim's point as a result has them, where JSON has no form for them.
""".
-spec written(#{atom() => term()}) -> #{atom() => term()}.
written(#{load := {open, Rate}} = Params) -> Params#{load := open, rate_per_node => Rate};
written(Params) -> Params.

-doc "The key of a claim's point, or of a measured one.".
-spec key(sderl_claim:point() | measured()) -> key().
key(#{workload := Workload, params := Params}) ->
    {atom_to_binary(Workload), json:decode(iolist_to_binary(json:encode(written(Params))))};
key(#{experiment := Experiment, params := Params}) ->
    {Experiment, maps:without([<<"run">>, <<"seed">>], Params)}.

-doc """
The points of a workload that have these parameters, with their numbers of nodes and in the order of
these. Points that could not be measured are left out. In place of a value there may be a function
that tells whether a value is wanted.
""".
-spec chosen([measured()], sderl_claim:workload(), wanted()) -> [{Nodes :: pos_integer(), group()}].
chosen(Points, Workload, Wanted) ->
    lists:sort(
        [{Nodes, Group}
         || #{params := #{<<"nodes">> := Nodes}} = Group <- grouped(Points, Workload, Wanted)]
    ).

-doc """
The same for points that need not have a number of nodes, in the order in which they were measured
first.
""".
-spec grouped([measured()], sderl_claim:workload(), wanted()) -> [group()].
grouped(Points, Workload, Wanted) ->
    Runs = [Run
            || {_, _, Metrics} = Run <- runs(Points, Workload, Wanted),
               not is_map_key(<<"failed">>, Metrics)],
    [
        #{params => Params, runs => [M || {P, _, M} <- Runs, P =:= Params],
          numbers => [N || {P, N, _} <- Runs, P =:= Params]}
     || Params <- lists:uniq([P || {P, _, _} <- Runs])
    ].

-doc """
Runs that could not be measured, each once, with the reason in words. A run that succeeded at a
later try is not among them. `in_run`: what was to be measured failed, and not the machine or the
start.
""".
-spec failed([measured()], sderl_claim:workload(), wanted()) -> [failure()].
failed(Points, Workload, Wanted) ->
    Runs = runs(Points, Workload, Wanted),
    Measured = #{{Params, Run} => ok
                 || {Params, Run, Metrics} <- Runs, not is_map_key(<<"failed">>, Metrics)},
    %% The last reason of each.
    Failed = #{{Params, Run} => Metrics
               || {Params, Run, #{<<"failed">> := _} = Metrics} <- Runs,
                  not is_map_key({Params, Run}, Measured)},
    [
        #{params => Params, reason => Reason,
          in_run => maps:get(<<"failed_in">>, Metrics, <<"other">>) =:= <<"run">>}
     || {Params, Run} <- lists:uniq([{P, R} || {P, R, _} <- Runs]),
        #{{Params, Run} := #{<<"failed">> := Reason} = Metrics} <- [Failed]
    ].

-doc """
`All`: the failed runs of points with kills, and of the same points without. `Denied`: those with
kills in which the program itself failed, while a run of the same point without kills was measured.
""".
-spec broken([measured()], sderl_claim:workload(), wanted()) ->
    {Denied :: [failure()], All :: [failure()]}.
broken(Points, Workload, Wanted) ->
    Plain = fun(#{params := Params}) -> maps:remove(<<"chaos">>, Params) end,
    {Kills, None} = {Wanted#{chaos => fun is_map/1}, Wanted#{chaos => none}},
    Killed = failed(Points, Workload, Kills),
    Without = [Plain(Group) || Group <- grouped(Points, Workload, None)],
    With = [Plain(Group) || Group <- grouped(Points, Workload, Kills)] ++
        [Plain(Failure) || Failure <- Killed],
    {
        [Failure || #{in_run := true} = Failure <- Killed, lists:member(Plain(Failure), Without)],
        Killed ++
        [Failure || Failure <- failed(Points, Workload, None), lists:member(Plain(Failure), With)]
    }.

-doc """
A verdict beside these failed runs: `confirmed` becomes `not_shown`, as the runs that succeeded
confirm nothing by themselves.
""".
-spec whole({sderl_claim:verdict(), binary()}, [failure()]) -> {sderl_claim:verdict(), binary()}.
whole({confirmed, Said}, [#{reason := Reason} | _] = Failed) ->
    {not_shown,
     text("~ts But ~w run~ts of these could not be measured (~ts), so that is not confirmed.",
          [Said, length(Failed), [$s || length(Failed) > 1], Reason])};
whole(Verdict, _) ->
    Verdict.

-doc "The metrics among these that are unknown for some run: an unknown metric is not 0.".
-spec lacking(group(), [atom()]) -> [atom()].
lacking(#{runs := Runs} = Group, Keys) ->
    [Key || Key <- Keys, length(numbers(Group, [Key])) < length(Runs)].

-doc """
The values of a metric of two points in the runs that both have: these have the same seed, so what
depends on the seed is in both. Where they have no run in common, all values of the one with the
median of the other.
""".
-spec paired(group(), group(), what()) -> [{number(), number()}].
paired(#{runs := As, numbers := Is} = A, #{runs := Bs, numbers := Js} = B, What) ->
    Both = [
        {X, Y}
     || {I, Of} <- lists:zip(Is, As), {J, Other} <- lists:zip(Js, Bs), I =:= J,
        X <- [metric(What, Of)], Y <- [metric(What, Other)], is_number(X), is_number(Y)
    ],
    case {Both, value(B, What)} of
        {[], Y} when is_number(Y) -> [{X, Y} || X <- numbers(A, What)];
        _ -> Both
    end.

-doc """
The runs of points that differ in one parameter only, and have the two values of it: the metrics of
both, for each run that both have. Runs of the same number have the same seed and follow one
another.
""".
-spec pairs([measured()], sderl_claim:workload(), {Key :: atom(), A :: term(), B :: term()}) ->
    [{Params :: #{binary() => term()}, [{#{binary() => term()}, #{binary() => term()}}]}].
pairs(Points, Workload, {Key, A, B}) ->
    Of = fun(Value) ->
        [
            {{maps:remove(atom_to_binary(Key), Params), Run}, Metrics}
         || {Params, Run, Metrics} <- runs(Points, Workload, #{Key => Value}),
            not is_map_key(<<"failed">>, Metrics)
        ]
    end,
    Others = maps:from_list(Of(B)),
    Both = [{Params, {Metrics, map_get(At, Others)}}
            || {{Params, _} = At, Metrics} <- maps:to_list(maps:from_list(Of(A))),
               is_map_key(At, Others)],
    [{Params, [Pair || {P, Pair} <- Both, P =:= Params]}
     || Params <- lists:usort([P || {P, _} <- Both])].

runs(Points, Workload, Wanted) ->
    Name = atom_to_binary(Workload),
    [
        {Params, maps:get(<<"run">>, Asked, 1), Metrics}
     || #{params := Asked, metrics := Metrics} = Point <- Points,
        {Experiment, Params} <- [key(Point)],
        Experiment =:= Name,
        matches(maps:to_list(Wanted), Params)
    ].

%% 1 and 1.0 are the same here.
matches(Wanted, Params) ->
    lists:all(
        fun
            ({Key, Is}) when is_function(Is, 1) ->
                Is(maps:get(atom_to_binary(Key), Params, undefined));
            ({Key, Value}) -> maps:get(atom_to_binary(Key), Params, undefined) == plain(Value)
        end,
        Wanted
    ).

plain(Atom) when is_atom(Atom), not is_boolean(Atom) -> atom_to_binary(Atom);
plain(Other) -> Other.

-doc "The median and the ends of the runs; `undefined` where none has the metric.".
-spec spread(group(), what()) -> spread() | undefined.
spread(Group, What) ->
    case numbers(Group, What) of
        [] -> undefined;
        Numbers -> {sderl_table:median(Numbers), lists:min(Numbers), lists:max(Numbers)}
    end.

-doc "The median.".
-spec value(group(), what()) -> number() | undefined.
value(Group, What) ->
    sderl_table:median(numbers(Group, What)).

-doc "The sum over all runs: how many operations stand behind a point.".
-spec sum(group(), what()) -> number().
sum(Group, What) -> lists:sum(numbers(Group, What)).

-doc """
Whether one point has less than another: all runs of the one have less than each of the other's.
`overlap` where that is so in neither direction, `unknown` where one has no such metric.
""".
-spec apart(group(), group(), what()) -> less | more | overlap | unknown.
apart(A, B, What) ->
    case {spread(A, What), spread(B, What)} of
        {{_, _, Most}, {_, Least, _}} when Most < Least -> less;
        {{_, Least, _}, {_, _, Most}} when Most < Least -> more;
        {{_, _, _}, {_, _, _}} -> overlap;
        _ -> unknown
    end.

numbers(#{runs := Runs}, What) ->
    [Number || Metrics <- Runs, Number <- [metric(What, Metrics)], is_number(Number)].

metric(What, Metrics) when is_function(What) -> What(Metrics);
metric([], Value) -> Value;
metric([Key | Path], Metrics) when is_map(Metrics) ->
    metric(Path, maps:get(atom_to_binary(Key), Metrics, undefined));
metric(_, _) -> undefined.

-doc "A metric times a factor, for another unit.".
-spec scaled([atom()], Factor :: number()) -> what().
scaled(Path, Factor) ->
    fun(Metrics) ->
        case metric(Path, Metrics) of
            Number when is_number(Number) -> Number * Factor;
            _ -> undefined
        end
    end.

-doc "A line of a plot over the number of nodes.".
-spec series(Name :: unicode:chardata(), [{number(), group()}], what()) -> sderl_claim:series().
series(Name, Groups, What) ->
    Spreads = [{X, spread(Group, What)} || {X, Group} <- Groups],
    #{name => text(Name),
      points => [#{x => X, y => Y, low => Low, high => High} || {X, {Y, Low, High}} <- Spreads]}.

-doc "The median for a table, with the least and the greatest when there are several runs.".
-spec cell(group(), what()) -> binary().
cell(Group, What) ->
    text(sderl_table:spread(numbers(Group, What))).

-doc "Text for a page.".
-spec text(unicode:chardata()) -> binary().
text(Text) ->
    case unicode:characters_to_binary(Text) of
        Binary when is_binary(Binary) -> Binary
    end.

-doc "As `io_lib:format/2`.".
-spec text(io:format(), [term()]) -> binary().
text(Format, Arguments) -> text(io_lib:format(Format, Arguments)).
