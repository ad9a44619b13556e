%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_scale).
-moduledoc """
How large the experiments are: what fits a machine, and a budget of time.

On one machine the processor is shared by all nodes, so a larger cluster would be slower for that reason alone. Therefore all
points of the DE-Bench claims have the same number of virtual machines with the same open load each, and what
differs is only into how many independent clusters they are divided: 100 nodes are ten clusters of 10, or two of 50, or one of 100.
""".

-export([names/0, scale/2, described/1]).
-export_type([scale/0, name/0]).

-type name() :: small | medium | full | test.

-doc """
`nodes` is the number of virtual machines, `sizes` are those of the clusters, `rate` operations a second on each node.
`base_pct` is the share of global operations that all modes are compared with, `shares` all of them; a share in
`few` takes so long that only the smallest and the largest cluster are measured with it, once. `least_ops` global operations should stand
behind each point. `runs` is the most runs of a point.
`beyond` are clusters that are alone on the machine and have more nodes than `nodes`.
""".
-type scale() :: #{
    name := name(),
    budget_s := number() | infinity,
    runs := pos_integer(),
    nodes := pos_integer(),
    sizes := [pos_integer(), ...],
    beyond := [pos_integer()],
    group_size := pos_integer(),
    rate := number(),
    base_pct := number(),
    shares := [number(), ...],
    few := [number()],
    least_ops := pos_integer(),
    least_s := pos_integer(),
    warmup_s := pos_integer(),
    orbit := #{
        generators := atom(),
        size := pos_integer(),
        nodes := [pos_integer(), ...],
        library := [pos_integer()],
        workers := pos_integer(),
        gateways := pos_integer(),
        run_s := number()
    }
}.

-doc "Those for the command line.".
-spec names() -> [name()].
names() -> [small, medium, full].

-doc """
A scale on a machine where `Fits` says whether so many nodes fit into memory. An error where they do not;
`full` takes 200 where they fit, else 100, and for one larger cluster 250 where these fit (a multiple of the groups).
""".
-spec scale(name(), fun((pos_integer()) -> ok | {error, term()})) -> {ok, scale()} | {error, sderl_command:text()}.
scale(full, Fits) ->
    case [Nodes || Nodes <- [200, 100], Fits(Nodes + 1) =:= ok] of
        [Nodes | _] ->
            Full = full(Nodes),
            {ok, Full#{beyond := [N || N <- maps:get(beyond, Full), Fits(N) =:= ok]}};
        [] ->
            {error, ["--scale full: ", needs(Fits(101)), ", or take --scale small"]}
    end;
scale(Name, Fits) ->
    Scale = #{nodes := Nodes, orbit := #{nodes := Orbit}} = fixed(Name),
    %% Orbit's master is one more.
    case Fits(max(Nodes, lists:max(Orbit) + 1)) of
        ok -> {ok, Scale};
        Error -> {error, io_lib:format("--scale ~ts: ~ts~ts", [Name, needs(Error), [", with --scale small" || Name =:= medium]])}
    end.

needs({error, Reason}) -> sderl_bench_reason:text(Reason).

fixed(small) ->
    #{
        name => small, budget_s => 5 * 60, runs => 3,
        nodes => 40, sizes => [10, 20, 40], beyond => [], group_size => 10,
        rate => 60, base_pct => 1, shares => [1, 10], few => [], least_ops => 300, least_s => 8, warmup_s => 1,
        orbit => orbit(30_000, [1, 2, 4, 10, 20], [20], 3)
    };
fixed(medium) ->
    #{
        name => medium, budget_s => 40 * 60, runs => 5,
        nodes => 100, sizes => [10, 20, 50, 100], beyond => [], group_size => 10,
        rate => 15, base_pct => 1, shares => [0.1, 1, 10], few => [0.1], least_ops => 300, least_s => 10, warmup_s => 3,
        orbit => orbit(100_000, [1, 2, 4, 10, 20, 40, 60, 80], [10, 40, 80], 8)
    };
%% As small as shows that everything works.
fixed(test) ->
    #{
        name => test, budget_s => 60, runs => 2,
        nodes => 4, sizes => [2, 4], beyond => [], group_size => 2,
        rate => 20, base_pct => 25, shares => [25], few => [], least_ops => 10, least_s => 1, warmup_s => 1,
        orbit => (orbit(500, [1, 2], [2], 1))#{workers := 2, gateways := 1}
    }.

full(200) ->
    (full(100))#{
        nodes := 200, sizes := [10, 20, 50, 100, 200], beyond := [250], rate := 7.5,
        orbit := orbit(200_000, [1, 2, 4, 10, 20, 40, 60, 80, 100, 120, 140, 160, 200], [10, 40, 80, 100, 200], 15)
    };
full(100) ->
    (fixed(medium))#{
        name := full, budget_s := infinity, runs := 5, shares := [0.01, 0.1, 1, 10], few := [0.01],
        orbit := orbit(200_000, [1, 2, 4, 10, 20, 40, 60, 80, 100], [10, 40, 80, 100], 15)
    }.

orbit(Size, Nodes, Library, RunS) ->
    #{
        generators => g12345, size => Size, nodes => Nodes, library => Library,
        workers => 8, gateways => 4, run_s => RunS
    }.

-doc "What a scale is, in one line.".
-spec described(scale()) -> unicode:chardata().
described(#{name := Name, nodes := Nodes, sizes := Sizes, budget_s := Budget, runs := Runs}) ->
    io_lib:format("~ts: ~w nodes in clusters of ~ts, ~ts, up to ~w runs of each point", [
        Name, Nodes, lists:join(", ", [integer_to_list(S) || S <- Sizes]),
        if is_number(Budget) -> io_lib:format("~w minutes", [round(Budget / 60)]); true -> "as long as it takes" end, Runs
    ]).
