%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_sample).
-moduledoc """
Times that were measured several times: their median with an interval, their scatter, and the ratio
of two samples with an interval. Nothing is assumed about the distribution of the times but that the
values of a sample are independent of one another.

The ratio is the estimate of Hodges and Lehmann: the median of all quotients of a value of one
sample and one of the other. Its interval is that of the test of Mann and Whitney: a ratio of 1 is
outside exactly if that test tells the samples apart. Neither is moved far by a few outliers, which
a busy machine always gives.
""".

-export([median/2, scatter/1, ratio/3, least/1]).
-export_type([interval/0]).

-doc "`undefined` where the sample is too small for the level: an end that may be anywhere.".
-type interval() :: #{value := float(), low := float() | undefined, high := float() | undefined}.

%% The exact distribution up to so many values or pairs; the normal one is as good above.
-define(EXACT, 900).

-doc """
The median, and an interval that has the median of all there might be with at least this
probability.
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

%% As many ranks as half of what is left over allows: the values below the median are binomial.
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
How far a value usually is from the median, as a share of it: the median of the distances, in units
of a standard deviation of normal values. `undefined` for less than two.
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
How many times as large as a value of `Before` one of `After` is, with an interval of this level.
All values are above 0.
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

-doc "How many values each of two samples must have for their ratio to have an interval.".
-spec least(Level :: float()) -> pos_integer().
least(Level) -> least(1, (1 - Level) / 2).

least(N, Most) ->
    case rank_of_pairs(N, N, Most) of
        0 -> least(N + 1, Most);
        _ -> N
    end.

%% The most quotients at each end that may be left out, and one more: 0 for none at all.
rank_of_pairs(N, M, Most) when N * M =< ?EXACT ->
    Ways = ways(N, M),
    taken(Ways, 0, Most * lists:sum(Ways), 0);
rank_of_pairs(N, M, Most) ->
    Spread = math:sqrt(N * M * (N + M + 1) / 12),
    max(0, floor(N * M / 2 - normal(Most) * Spread)).

taken([Ways | More], Sum, Most, K) when Sum + Ways =< Most -> taken(More, Sum + Ways, Most, K + 1);
taken(_, _, _, K) -> K.

%% How many orders of N and M values have 0, 1, 2 ... pairs the wrong way round: the coefficients of
%% the product of (1 - q^(M+I)) / (1 - q^I), I from 1 to N.
ways(N, M) ->
    One = [1 | lists:duplicate(N * M, 0)],
    lists:foldl(fun(I, Ways) -> divided(I, multiplied(M + I, Ways)) end, One, lists:seq(1, N)).

%% By 1 - q^K: each coefficient loses the one K before.
multiplied(K, Ways) ->
    Shifted = lists:duplicate(K, 0) ++ Ways,
    lists:zipwith(fun(A, B) -> A - B end, Ways, lists:sublist(Shifted, length(Ways))).

%% The reverse: each gets the result K before, kept in a queue of K.
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
