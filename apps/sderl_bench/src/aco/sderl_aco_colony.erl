%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_colony).
-moduledoc "An ant colony: pheromone, its ants' numbers, and the best schedule that they have found.".

-export([new/3, run/2, update/2]).
-export_type([colony/0, solution/0]).

-opaque colony() :: sderl_aco_plain:colony().
-doc "A cost, and the schedule that has it.".
-type solution() :: {Cost :: non_neg_integer(), [sderl_aco_instance:job()]}.

-doc "A colony that has not run yet. The same seed gives the same results.".
-spec new(sderl_aco_instance:instance(), sderl_aco_options:options(), Seed :: term()) -> colony().
new(Instance, Options, Seed) -> sderl_aco_plain:new(Instance, Options, Seed).

-doc """
Iterations: each has all ants build a schedule, takes the best of them through the local search, and leaves pheromone along the
best so far, which is the result.
""".
-spec run(colony(), Iterations :: pos_integer()) -> {solution(), colony()}.
run(Colony, Iterations) -> sderl_aco_plain:run(Colony, Iterations).

-doc "Pheromone along somebody else's best; the colony's own best stays.".
-spec update(colony(), solution()) -> colony().
update(Colony, Solution) -> sderl_aco_plain:update(Colony, Solution).
