%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_plain).
-moduledoc """
An ant colony, written down as the algorithm reads: lists of jobs, the rule applied to every job at
every position, every schedule's cost computed from its beginning. The reference for
`m:sderl_aco_colony`: tests compare its results with it, and the benchmark its speed.
""".

-export([new/3, run/2, update/2]).
-export_type([colony/0]).

-opaque colony() :: #{atom() => term()}.
-type solution() :: sderl_aco_colony:solution().

-doc "As `sderl_aco_colony:new/3`.".
-spec new(sderl_aco_instance:instance(), sderl_aco_options:options(), Seed :: term()) -> colony().
new(#{n := N} = Instance, Options, Seed) ->
    Tau0 = sderl_aco_options:tau0(Instance, Options),
    #{
        instance => Instance,
        options => Options,
        tau => #{{I, J} => Tau0 || I <- lists:seq(1, N), J <- lists:seq(1, N)},
        random => sderl_aco_random:new(maps:get(rng, Options), Seed),
        best => none
    }.

-doc "As `sderl_aco_colony:run/2`.".
-spec run(colony(), Iterations :: pos_integer()) -> {solution(), colony()}.
run(#{best := Best} = Colony, 0) ->
    {Best, Colony};
run(#{instance := Instance, options := #{ants := Ants, search := Search}, random := Random0,
      best := Best0} = Colony, Left) ->
    {Found, Random1} = lists:mapfoldl(fun(_, R) -> ant(Colony, sderl_aco_random:restart(R)) end,
                                      Random0, lists:seq(1, Ants)),
    Improved = search(Search, Instance, hd(lists:keysort(1, Found))),
    Best = better(Improved, Best0),
    run(update(Colony#{random := Random1, best := Best}, Best), Left - 1).

better(Solution, none) -> Solution;
better({Cost, _} = Solution, {Best, _}) when Cost < Best -> Solution;
better(_, Best) -> Best.

-doc "As `sderl_aco_colony:update/2`.".
-spec update(colony(), solution()) -> colony().
update(#{tau := Tau0, options := #{rho := Rho, evaporate := Evaporate}} = Colony, {Cost, Jobs}) ->
    Tau1 = case Evaporate of true -> #{K => T * (1 - Rho) || K := T <- Tau0}; false -> Tau0 end,
    Left = Rho / max(Cost, 1),
    Tau2 = lists:foldl(fun(K, Tau) -> Tau#{K := map_get(K, Tau) + Left} end, Tau1,
                       lists:enumerate(Jobs)),
    Colony#{tau := Tau2}.

%% An ant

ant(#{instance := #{n := N} = Instance} = Colony, Random0) ->
    {Jobs, Random1} = positions(1, 0, lists:seq(1, N), Colony, Random0),
    {{sderl_aco_instance:tardiness(Instance, Jobs), Jobs}, Random1}.

positions(_, _, [], _, Random) ->
    {[], Random};
positions(I, T, Jobs, #{instance := #{p := P}, tau := Tau,
                        options := #{alpha := Alpha, beta := Beta, q0 := Q0}} = Colony, Random0) ->
    Etas = etas(T, Jobs, Colony),
    Values = [{J, math:pow(map_get({I, J}, Tau), Alpha) * math:pow(Eta, Beta)} || {J, Eta} <- Etas],
    {Q, Random1} = sderl_aco_random:next(Random0),
    {Job, Random2} =
        case Q =< Q0 of
            true -> {greatest(Values), Random1};
            false -> roulette(Values, Random1)
        end,
    {Rest, Random3} = positions(I + 1, T + element(Job, P), lists:delete(Job, Jobs), Colony,
                                Random2),
    {[Job | Rest], Random3}.

greatest([{Job, Value} | Values]) ->
    {Greatest, _} =
        lists:foldl(fun({J, V}, {_, Most}) when V > Most -> {J, V}; (_, Most) -> Most end,
                    {Job, Value}, Values),
    Greatest.

roulette(Values, Random0) ->
    {U, Random1} = sderl_aco_random:next(Random0),
    {spin(Values, U * lists:sum([V || {_, V} <- Values])), Random1}.

spin([{J, _}], _) -> J;
spin([{J, V} | _], Left) when Left =< V -> J;
spin([{_, V} | Values], Left) -> spin(Values, Left - V).

etas(T, Jobs, #{instance := #{p := P, w := W, d := D}, options := #{heuristic := Heuristic}}) ->
    Mean = lists:sum([element(J, P) || J <- Jobs]) / length(Jobs),
    [
        {J, case Heuristic of
            mdd -> 1 / max(T + element(J, P), element(J, D));
            edd -> 1 / max(1, element(J, D));
            au ->
                Slack = max(element(J, D) - T - element(J, P), 0),
                element(J, W) / element(J, P) * math:exp(-Slack / (2 * Mean))
        end}
     || J <- Jobs
    ].

%% Local search

search(none, _, Solution) -> Solution;
search(Search, Instance, {Cost, _} = Solution) ->
    Moved = lists:foldl(fun(Move, S) -> move(Move, Instance, S) end, Solution, moves(Search)),
    case Moved of
        {Less, _} when Less < Cost -> search(Search, Instance, Moved);
        _ -> Solution
    end.

moves(o1) -> [swap];
moves(o2) -> [insert];
moves(o12) -> [swap, insert];
moves(o21) -> [insert, swap];
moves(full) -> [insert_anywhere, swap].

move(Move, #{n := N} = Instance, Solution) ->
    lists:foldl(
        fun({I, J}, {Best, _} = Found) ->
            Jobs = moved(Move, I, J, element(2, Solution)),
            case sderl_aco_instance:tardiness(Instance, Jobs) of
                Cost when Cost < Best -> {Cost, Jobs};
                _ -> Found
            end
        end,
        Solution,
        [{I, J} || I <- lists:seq(1, N), J <- lists:seq(1, I - 1)] ++
            [{I, J} || Move =:= insert_anywhere, I <- lists:seq(1, N), J <- lists:seq(I + 1, N)]
    ).

%% The job at I changes places with that at J, which is before it, or goes there.
moved(swap, I, J, Jobs) ->
    {Before, [A | From]} = lists:split(J - 1, Jobs),
    {Between, [B | After]} = lists:split(I - J - 1, From),
    Before ++ [B | Between] ++ [A | After];
moved(_, I, J, Jobs) ->
    {Before, [Job | After]} = lists:split(I - 1, Jobs),
    {First, Last} = lists:split(J - 1, Before ++ After),
    First ++ [Job | Last].
