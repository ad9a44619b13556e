%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_colony).
-moduledoc """
An ant colony: its pheromone, its random numbers, and the best schedule that its ants have found.

An iteration: all ants build a schedule (`m:sderl_aco_ant`); the best of them goes through the local
search (`m:sderl_aco_search`); pheromone evaporates, and the best schedule so far leaves rho / cost
at its places (`m:sderl_aco_pheromone`). Pure: the same seed gives the same results.

Source: ACO of the RELEASE project; den Besten, Stützle and Dorigo (2000).
""".

-export([new/3, run/2, update/2]).
-export_type([colony/0, solution/0]).

-doc "A cost, and the schedule that has it.".
-type solution() :: {Cost :: non_neg_integer(), [sderl_aco_instance:job()]}.

-opaque colony() :: #{
    options := sderl_aco_options:options(),
    rules := sderl_aco_ant:rules(),
    search := sderl_aco_search:search(),
    pheromone := sderl_aco_pheromone:pheromone(),
    random := sderl_aco_random:random(),
    best := none | solution()
}.

-doc "A colony that has not run yet.".
-spec new(sderl_aco_instance:instance(), sderl_aco_options:options(), Seed :: term()) -> colony().
new(#{n := N} = Instance, #{alpha := Alpha, rng := Rng, search := Search} = Options, Seed) ->
    #{
        options => Options,
        rules => sderl_aco_ant:new(Instance, Options),
        search => sderl_aco_search:new(Instance, Search),
        pheromone => sderl_aco_pheromone:new(N, sderl_aco_options:tau0(Instance, Options), Alpha),
        random => sderl_aco_random:new(Rng, Seed),
        best => none
    }.

-doc """
Runs iterations. The result is the best schedule that the colony has found since its beginning.
""".
-spec run(colony(), Iterations :: pos_integer()) -> {solution(), colony()}.
run(#{best := Best} = Colony, 0) ->
    {Best, Colony};
run(#{options := #{ants := Ants}, rules := Rules, pheromone := Pheromone, random := Random0,
      search := Search0, best := Best0} = Colony, Iterations) ->
    {Found, Random1} = ants(Ants, Rules, Pheromone, none, Random0),
    {Improved, Search1} = sderl_aco_search:improve(Found, Search0),
    Best = better(Improved, Best0),
    run(update(Colony#{random := Random1, search := Search1, best := Best}, Best), Iterations - 1).

ants(0, _, _, {Cost, Reversed}, Random) ->
    {{Cost, lists:reverse(Reversed)}, Random};
ants(Left, Rules, Pheromone, Best, Random0) ->
    {Cost, Reversed, Random1} =
        sderl_aco_ant:schedule(Rules, Pheromone, sderl_aco_random:restart(Random0)),
    ants(Left - 1, Rules, Pheromone, better({Cost, Reversed}, Best), Random1).

better(Solution, none) -> Solution;
better({Cost, _} = Solution, {Best, _}) when Cost < Best -> Solution;
better(_, Best) -> Best.

-doc """
Pheromone evaporates, and another colony's best schedule gets pheromone at its places. The colony's
own best stays.
""".
-spec update(colony(), solution()) -> colony().
update(#{options := #{rho := Rho, evaporate := Evaporate}, pheromone := Pheromone0} = Colony,
       {Cost, Jobs}) ->
    Pheromone1 = case Evaporate of
        true -> sderl_aco_pheromone:evaporate(Rho, Pheromone0);
        false -> Pheromone0
    end,
    Colony#{pheromone := sderl_aco_pheromone:deposit(Rho / max(Cost, 1), Jobs, Pheromone1)}.
