%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_fit).
-moduledoc false.
%% How well an ultrametric stands for what was measured. Networks are no trees, and every tree that
%% is made of measurements is wrong somewhere; these figures say how wrong.

-export([fit/1, median/1]).
-export_type([fit/0]).

-doc """
`correlation`: the cophenetic correlation, Pearson's of measured and modelled values over all pairs
of nodes, 1.0 for a perfect fit; `undefined` if either are all alike. `mean_deviation` and
`max_deviation`: of the modelled value from the measured, as a part of the measured.
""".
-type fit() :: #{
    pairs := non_neg_integer(),
    correlation := float() | undefined,
    mean_deviation := float(),
    max_deviation := float()
}.

-doc "The fit of modelled to measured values; these are positive.".
-spec fit([{Measured :: number(), Modelled :: number()}]) -> fit().
fit([]) ->
    #{pairs => 0, correlation => undefined, mean_deviation => 0.0, max_deviation => 0.0};
fit(Pairs) ->
    Count = length(Pairs),
    Deviations = [abs(Modelled - Measured) / Measured || {Measured, Modelled} <- Pairs],
    #{
        pairs => Count,
        correlation => correlation(Pairs, Count),
        mean_deviation => lists:sum(Deviations) / Count,
        max_deviation => float(lists:max(Deviations))
    }.

%% From differences to the means, which keeps more digits than sums of squares do.
correlation(Pairs, Count) ->
    MeanX = lists:sum([X || {X, _} <- Pairs]) / Count,
    MeanY = lists:sum([Y || {_, Y} <- Pairs]) / Count,
    {XX, YY, XY} = lists:foldl(fun({X, Y}, {A, B, C}) ->
        {DX, DY} = {X - MeanX, Y - MeanY},
        {A + DX * DX, B + DY * DY, C + DX * DY}
    end, {0, 0, 0}, Pairs),
    %% A remainder by rounding when all values are equal is no difference.
    case XX =< negligible(MeanX, Count) orelse YY =< negligible(MeanY, Count) of
        true -> undefined;
        false -> XY / (math:sqrt(XX) * math:sqrt(YY))
    end.

negligible(Mean, Count) -> Count * math:pow(Mean * 1.0e-12, 2).

-doc "The value in the middle; of an even number of values the lower of the two.".
-spec median([number(), ...]) -> number().
median(Values) -> lists:nth((length(Values) + 1) div 2, lists:sort(Values)).
