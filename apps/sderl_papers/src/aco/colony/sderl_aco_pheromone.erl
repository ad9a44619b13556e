%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_pheromone).
-moduledoc """
Pheromone: how good it was so far to have job j at position i.

The published program has a matrix, and each evaporation multiplies all n x n values. Here a row has
values only for the jobs that ever got pheromone there; all other jobs have the same value. All
values are to be multiplied by a common scale, and evaporation changes the scale alone. An ant's
decisions do not depend on the scale.

Values do not fall below 1e-250; in the published program they become 0.0 after some thousand
iterations.
""".

-export([new/3, evaporate/2, deposit/3, rows/1, least/1]).
-export_type([pheromone/0, row/0, entry/0]).

-doc "A job, its bit (`1 bsl (J - 1)`), its value to the power of alpha, its value.".
-type entry() ::
    {sderl_aco_instance:job(), Bit :: pos_integer(), Powered :: float(), Value :: float()}.

-doc "The entries of a position: by value, the greatest first, and by job.".
-type row() :: {[entry()], [entry()]}.

-opaque pheromone() :: {Alpha :: float(), Least :: float(), Scale :: float(), [row()]}.

-define(SMALLEST, 1.0e-250).
-define(SMALL_SCALE, 1.0e-100).

-doc "The same for every job at each of `N` positions.".
-spec new(N :: pos_integer(), Tau0 :: float(), Alpha :: number()) -> pheromone().
new(N, Tau0, Alpha) -> {float(Alpha), Tau0, 1.0, lists:duplicate(N, {[], []})}.

-doc "All values lose the part `Rho`.".
-spec evaporate(Rho :: number(), pheromone()) -> pheromone().
evaporate(Rho, {Alpha, Least, Scale0, Rows}) ->
    case Scale0 * (1 - Rho) of
        Scale when Scale > ?SMALL_SCALE ->
            {Alpha, Least, Scale, Rows};
        Scale ->
            New = max(Least * Scale, ?SMALLEST),
            {Alpha, New, 1.0, [
                {[scaled(E, Scale, Alpha) || E <- ByValue], [scaled(E, Scale, Alpha) || E <- ByJob]}
             || {ByValue, ByJob} <- Rows
            ]}
    end.

scaled({J, Bit, _, Value}, Scale, Alpha) ->
    New = max(Value * Scale, ?SMALLEST),
    {J, Bit, powered(New, Alpha), New}.

powered(Value, 1.0) -> Value;
powered(Value, Alpha) -> math:pow(Value, Alpha).

-doc "Adds `Amount` for each job of a schedule at its position.".
-spec deposit(Amount :: float(), [sderl_aco_instance:job()], pheromone()) -> pheromone().
deposit(Amount, Jobs, {Alpha, Least, Scale, Rows}) ->
    More = Amount / Scale,
    {Alpha, Least, Scale,
     lists:zipwith(fun(J, Row) -> more(J, More, Least, Alpha, Row) end, Jobs, Rows)}.

%% The greatest stays the greatest.
more(J, More, _, Alpha, {[{J, Bit, _, Value} | Others], ByJob}) ->
    New = {J, Bit, powered(Value + More, Alpha), Value + More},
    {[New | Others], by_job(New, ByJob)};
more(J, More, Least, Alpha, {ByValue, ByJob}) ->
    Value =
        More +
            case lists:keyfind(J, 1, ByJob) of
                {J, _, _, Before} -> Before;
                false -> Least
            end,
    New = {J, 1 bsl (J - 1), powered(Value, Alpha), Value},
    {by_value(New, lists:keydelete(J, 1, ByValue)), by_job(New, ByJob)}.

by_value({_, _, _, New} = Entry, [{_, _, _, Value} = First | Entries]) when Value >= New ->
    [First | by_value(Entry, Entries)];
by_value(Entry, Entries) -> [Entry | Entries].

by_job({J, _, _, _} = Entry, [{K, _, _, _} = First | Entries]) when K < J ->
    [First | by_job(Entry, Entries)];
by_job({J, _, _, _} = Entry, [{J, _, _, _} | Entries]) -> [Entry | Entries];
by_job(Entry, Entries) -> [Entry | Entries].

-doc "The rows, in the order of the positions.".
-spec rows(pheromone()) -> [row()].
rows({_, _, _, Rows}) -> Rows.

-doc "The value, to the power of alpha, of all jobs that have no entry.".
-spec least(pheromone()) -> float().
least({Alpha, Least, _, _}) -> powered(Least, Alpha).
