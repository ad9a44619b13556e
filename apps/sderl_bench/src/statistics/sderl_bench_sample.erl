%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_sample).
-moduledoc """
Samples of times: their median with an interval, their scatter, and the ratio of two samples with an
interval. The values of a sample must be independent of one another; nothing else is assumed about
their distribution.

The ratio is the Hodges-Lehmann estimate: the median of all quotients of a value of one sample and
one of the other. Its interval is that of the Mann-Whitney test: a ratio of 1 is outside exactly if
that test finds a difference. Neither is moved far by a few outliers, which a busy machine always
has.
""".

-export([median/2, scatter/1, ratio/3, least/1]).
-export_type([interval/0]).

-doc "An end is `undefined` where the sample is too small for the level.".
-type interval() :: #{value := float(), low := float() | undefined, high := float() | undefined}.

%% Up to so many values or pairs the exact distribution is used, above it the normal one.
-define(EXACT, 900).

-doc """
The median, and its confidence interval of at least this level: the values of two ranks.
""".
-spec median(Level :: float(), [number(), ...]) -> interval().
median(Level, Values) ->
    Sorted = lists:sort(Values),
    N = length(Sorted),
    Rank = case N =< ?EXACT of
        true -> rank(0, N, 1, 0.0, (1 - Level) / 2);
        false -> floor(N / 2 - normal((1 - Level) / 2) * math:sqrt(N) / 2)
    end,
    (ends(Rank, N, list_to_tuple(Sorted)))#{value => float(sderl_table:median(Sorted))}.

%% The number of values below the median is binomial: the most ranks whose tail is at most `Most`.
rank(K, N, Ways, Before, Most) ->
    Below = Before + Ways / (1 bsl N),
    case Below =< Most of
        true -> rank(K + 1, N, Ways * (N - K) div (K + 1), Below, Most);
        false -> K
    end.

ends(0, _, _) ->
    #{low => undefined, high => undefined};
ends(Rank, N, Sorted) ->
    #{low => float(element(Rank, Sorted)), high => float(element(N + 1 - Rank, Sorted))}.

-doc """
The median absolute deviation as a share of the median, scaled to the standard deviation of a normal
distribution. `undefined` for less than two values.
""".
-spec scatter([number()]) -> float() | undefined.
scatter([_, _ | _] = Values) ->
    case sderl_table:median(Values) of
        Median when Median > 0 ->
            1.4826 * sderl_table:median([abs(V - Median) || V <- Values]) / Median;
        _ ->
            undefined
    end;
scatter(_) ->
    undefined.

-doc """
The ratio of values of `After` to values of `Before`, with an interval of this level. All values are
above 0.
""".
-spec ratio(Level :: float(), Before :: [number(), ...], After :: [number(), ...]) -> interval().
ratio(Level, Before, After) ->
    Logs = [math:log(B) || B <- Before],
    Quotients = lists:sort([math:log(A) - B || A <- After, B <- Logs]),
    Pairs = length(Quotients),
    Rank = rank_of_pairs(length(Before), length(After), (1 - Level) / 2),
    Ends = ends(Rank, Pairs, list_to_tuple(Quotients)),
    #{Key => exponent(Log) || Key := Log <- Ends#{value => sderl_table:median(Quotients)}}.

exponent(undefined) -> undefined;
exponent(Log) -> math:exp(Log).

-doc "The least size of two samples whose ratio has an interval.".
-spec least(Level :: float()) -> pos_integer().
least(Level) -> least(1, (1 - Level) / 2).

least(N, Most) ->
    case rank_of_pairs(N, N, Most) of
        0 -> least(N + 1, Most);
        _ -> N
    end.

%% One more than the most quotients at each end that may be left out; 0 if there is no interval.
rank_of_pairs(N, M, Most) when N * M =< ?EXACT ->
    Ways = ways(N, M),
    taken(Ways, 0, Most * lists:sum(Ways), 0);
rank_of_pairs(N, M, Most) ->
    Spread = math:sqrt(N * M * (N + M + 1) / 12),
    max(0, floor(N * M / 2 - normal(Most) * Spread)).

taken([Ways | More], Sum, Most, K) when Sum + Ways =< Most -> taken(More, Sum + Ways, Most, K + 1);
taken(_, _, _, K) -> K.

%% How many orders of N and M values have 0, 1, 2 ... inversions: the coefficients of the product of
%% (1 - q^(M+I)) / (1 - q^I), I from 1 to N.
ways(N, M) ->
    One = [1 | lists:duplicate(N * M, 0)],
    lists:foldl(fun(I, Ways) -> divided(I, multiplied(M + I, Ways)) end, One, lists:seq(1, N)).

%% By 1 - q^K: from each coefficient the one K before it is subtracted.
multiplied(K, Ways) ->
    Shifted = lists:duplicate(K, 0) ++ Ways,
    lists:zipwith(fun(A, B) -> A - B end, Ways, lists:sublist(Shifted, length(Ways))).

%% The reverse: each coefficient gains the result K before it, from a queue of length K.
divided(K, Ways) -> divided(Ways, queue:from_list(lists:duplicate(K, 0)), []).

divided([], _, Done) ->
    lists:reverse(Done);
divided([Way | Ways], Before, Done) ->
    {{value, Old}, Rest} = queue:out(Before),
    New = Way + Old,
    divided(Ways, queue:in(New, Rest), [New | Done]).

%% The point of the normal distribution with so much above it, by bisection.
normal(Above) -> normal(Above, 0.0, 10.0, 60).

normal(_, Low, High, 0) -> (Low + High) / 2;
normal(Above, Low, High, Steps) ->
    Middle = (Low + High) / 2,
    case math:erfc(Middle / math:sqrt(2)) / 2 > Above of
        true -> normal(Above, Middle, High, Steps - 1);
        false -> normal(Above, Low, Middle, Steps - 1)
    end.
