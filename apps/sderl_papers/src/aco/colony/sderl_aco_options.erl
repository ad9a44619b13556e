%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_options).
-moduledoc """
The parameters of an ant colony: the published ones, with the published values as defaults.

| option | default | |
|---|---|---|
| `ants` | 4 | ants of a colony in each iteration |
| `alpha`, `beta` | 1.0, 2.0 | exponents of pheromone and of the heuristic value |
| `q0` | 0.9 | how often an ant takes the best job, and does not draw one |
| `rho` | 0.1 | evaporation, and the weight of what the best schedule leaves |
| `heuristic` | `mdd` | `mdd`: modified due date; `edd`: earliest due date; `au`: apparent urgency |
| `search` | `none` | local search, see `m:sderl_aco_search` |
| `evaporate` | `true` | whether pheromone evaporates at all |
| `rng` | `random` | `cyclic`: the same ten numbers over and over, for results that are known |
| `tau0` | | pheromone at the start; without it 1 / (`ants` x the cost of the jobs by due date) |

Source: ACO of the RELEASE project; den Besten, Stützle and Dorigo, *Ant Colony Optimization for the
Total Weighted Tardiness Problem* (2000).
""".

-export([defaults/0, of_run/1, heuristics/0, searches/0, tau0/2]).
-export_type([options/0, heuristic/0, search/0]).

-type heuristic() :: mdd | edd | au.
-type search() :: none | o1 | o2 | o12 | o21 | full.

-doc "See above; all but `tau0` are needed.".
-type options() :: #{
    ants := pos_integer(),
    alpha := number(),
    beta := number(),
    q0 := number(),
    rho := number(),
    heuristic := heuristic(),
    search := search(),
    evaporate := boolean(),
    rng := random | cyclic,
    tau0 => float()
}.

-doc "The published values.".
-spec defaults() -> options().
defaults() ->
    #{
        ants => 4,
        alpha => 1.0,
        beta => 2.0,
        q0 => 0.9,
        rho => 0.1,
        heuristic => mdd,
        search => none,
        evaporate => true,
        rng => random
    }.

-doc "The options among the parameters of a run (`m:sderl_aco`).".
-spec of_run(#{atom() => term()}) -> options().
of_run(Params) -> maps:merge(defaults(), maps:with([tau0 | maps:keys(defaults())], Params)).

-doc "All heuristics.".
-spec heuristics() -> [heuristic()].
heuristics() -> [mdd, edd, au].

-doc "All local searches.".
-spec searches() -> [search()].
searches() -> [none, o1, o2, o12, o21, full].

-doc "Pheromone at the start: 1.0 where the jobs by due date cost nothing.".
-spec tau0(sderl_aco_instance:instance(), options()) -> float().
tau0(_, #{tau0 := Given}) ->
    Given;
tau0(Instance, #{ants := Ants}) ->
    case sderl_aco_instance:tardiness(Instance, sderl_aco_instance:edd(Instance)) of
        0 -> 1.0;
        Cost -> 1 / (Ants * Cost)
    end.
