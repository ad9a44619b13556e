%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_scale).
-moduledoc """
The sizes of the experiments, which fit a machine and a budget of time.

On one machine the processor is shared by all nodes, so a larger cluster would be slower for that
reason alone. Therefore all points of the DE-Bench claims have the same number of virtual machines
with the same open load each, and what differs is only into how many independent clusters they are
divided: 100 nodes are ten clusters of 10, or two of 50, or one of 100. The claims on ant colonies
and on the messenger have more work on more nodes, as the published ones, and say what the processor
used.
""".

-export([names/0, scale/2, instances/2, described/1]).
-export_type([scale/0, name/0, aco/0, im/0, deploy/0, instance/0, vm/0, balance/0,
              city/0]).

-type name() :: small | medium | full | test.

-doc """
`nodes` is the number of virtual machines, `sizes` are those of the clusters, `rate` operations a
second on each node, `rates` others for some shares of global operations: a large share is to leave
the processor free, a small one is to have operations enough. `base_pct` is the share of global
operations that all modes are compared with, `shares` all of them; a share in `few` takes so long
that only the smallest and the largest cluster are measured with it, once. `least_ops` global
operations should stand behind each point. `runs` is the most runs of a point, `pairs` how many
there should be of those that are compared in pairs. `beyond` are clusters that are alone on the
machine and have more nodes than `nodes`.
""".
-type scale() :: #{
    name := name(),
    budget_s := number() | infinity,
    runs := pos_integer(),
    pairs := pos_integer(),
    nodes := pos_integer(),
    sizes := [pos_integer(), ...],
    beyond := [pos_integer()],
    group_size := pos_integer(),
    rate := number(),
    rates := #{number() => number()},
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
    },
    aco := aco(),
    im := im(),
    deploy := deploy(),
    vm := vm(),
    balance := balance(),
    city := city()
}.

-doc "An open load of so many percent of all schedulers, the one to judge by first, for so long.".
-type balance() :: #{loads := [number(), ...], seconds := number()}.

-doc """
The city, on so many `nodes`, in s_groups of `group_size`; the rest is that of
`t:sderl_city:params/0`. All steps should take `seconds` on one node.
""".
-type city() :: #{
    nodes := [pos_integer(), ...],
    group_size := pos_integer(),
    side := pos_integer(),
    steps := pos_integer(),
    vehicles := pos_integer(),
    work := non_neg_integer(),
    seconds := number()
}.

-doc """
Programs by schedulers: on 1, 2, 4 and so on up to the `cores` of this machine, sized for that many
cores. A run is repeated until it takes `run_ms` on one scheduler, and there are `runs` of them
in each virtual machine. `keys` and `operations` are those of tables, `profiled` is the size of what
is recorded.
""".
-type vm() :: #{
    cores := pos_integer(),
    schedulers := [pos_integer(), ...],
    size := short | intermediate | long,
    run_ms := pos_integer(),
    runs := pos_integer(),
    keys := pos_integer(),
    operations := pos_integer(),
    profiled := short | intermediate | long
}.

-doc """
Deployments: of so many real nodes to `hosts` folders, and of 72 simulated ones on each of so many
hosts.
""".
-type deploy() :: #{
    nodes := [pos_integer(), ...],
    hosts := pos_integer(),
    simulated := [pos_integer(), ...]
}.

-doc """
An instance of the scheduling problem: by the published recipe, or one of the folder that
`SDERL_INSTANCES` names.
""".
-type instance() :: #{n := pos_integer(), rdd := number(), tf := number(), seed := pos_integer()}
                    | #{folder := binary(), name := binary()}.

-doc """
Ant colonies. `quality` are the runs that ask how good schedules become with more `colonies`, on
these instances. `trees` are `{Nodes, Degree}` of the distributed ones, which do the same `work` on
each colony's node; `long` is one of these, with so many times the iterations, for runs that are to
last a while: with a kill every `kill_every_ms` on each node, and with monitoring.
""".
-type aco() :: #{
    instances := [instance(), ...],
    quality := #{colonies := [pos_integer(), ...], ants := pos_integer(),
                 local_iterations := pos_integer(), global_iterations := pos_integer()},
    trees := [{pos_integer(), pos_integer()}, ...],
    work := #{n := pos_integer(), ants := pos_integer(), local_iterations := pos_integer(),
              global_iterations := pos_integer()},
    long := #{tree := {pos_integer(), pos_integer()}, times := pos_integer(),
              kill_every_ms := pos_integer()}
}.

-doc """
The messenger: `clients` for each server, whose waiting times are those of the published
conversations divided by `speed`. Without failures with these numbers of `servers`; with failures,
with `chaos_servers`: any process killed with these periods, then databases with those, in seconds,
each period divided by `compressed`.
""".
-type im() :: #{
    servers := [pos_integer(), ...],
    clients := pos_integer(),
    client_nodes := pos_integer(),
    speed := number(),
    seconds := pos_integer(),
    warmup_s := pos_integer(),
    chaos_servers := pos_integer(),
    chaos_routers := pos_integer(),
    chaos_seconds := pos_integer(),
    compressed := number(),
    random_s := [number(), ...],
    database_s := [number(), ...]
}.

-doc "Those for the command line.".
-spec names() -> [name()].
names() -> [small, medium, full].

-doc """
A scale on a machine where `Fits` says whether so many nodes fit into memory. An error where they do
not; `full` takes 200 where they fit, else 100, and for one larger cluster 250 where these fit (a
multiple of the groups).
""".
-spec scale(name(), fun((pos_integer()) -> ok | {error, term()})) ->
    {ok, scale()} | {error, sderl_command:text()}.
scale(full, Fits) ->
    case [Nodes || Nodes <- [200, 100], Fits(Nodes + 1) =:= ok] of
        [Nodes | _] ->
            Full = full(Nodes),
            Aco = #{trees := Trees} = maps:get(aco, Full),
            {ok, Full#{
                beyond := [N || N <- maps:get(beyond, Full), Fits(N) =:= ok],
                aco := Aco#{trees := [Tree || {N, _} = Tree <- Trees, Fits(N + 2) =:= ok]}
            }};
        [] ->
            {error, ["--scale full: ", needs(Fits(101)), ", or take --scale small"]}
    end;
scale(Name, Fits) ->
    Scale = #{nodes := Nodes, orbit := #{nodes := Orbit}} = fixed(Name),
    %% Orbit's master is one more. (The other workloads have fewer nodes.)
    case Fits(max(Nodes, lists:max(Orbit) + 1)) of
        ok -> {ok, Scale};
        Error ->
            {error,
             io_lib:format("--scale ~ts: ~ts~ts",
                           [Name, needs(Error), [", with --scale small" || Name =:= medium]])}
    end.

needs({error, Reason}) -> sderl_bench_reason:text(Reason).

fixed(small) ->
    #{
        name => small, budget_s => 8 * 60, runs => 3, pairs => 1,
        nodes => 40, sizes => [10, 40], beyond => [], group_size => 10,
        rate => 60, rates => #{}, base_pct => 1.5, shares => [1.5, 10], few => [], least_ops => 300,
        least_s => 6, warmup_s => 1,
        deploy => deploy([4, 16], [14, 56]),
        vm => vm(intermediate, 50, 3, 20_000, 100_000),
        balance => #{loads => [40], seconds => 4},
        city => city([1, 2, 4], {16, 16}, 1000, 2),
        orbit => orbit(20_000, [1, 20], [], 2),
        aco => aco(#{
            instances => 3, colonies => [1, 4, 16, 64], iterations => {5, 10},
            trees => [{23, 2}], work => {20, 20}, long => {{11, 2}, 6}
        }),
        im => im(#{servers => [3, 12], clients => 60, speed => 20, seconds => 4, warmup_s => 1,
                   chaos => {4, 4}, compressed => 10, random_s => [5], database_s => [1]})
    };
fixed(medium) ->
    #{
        name => medium, budget_s => 100 * 60, runs => 5, pairs => 5,
        nodes => 100, sizes => [10, 20, 50, 100], beyond => [], group_size => 10,
        rate => 15, rates => #{0.1 => 45, 10 => 8}, base_pct => 1, shares => [0.1, 1, 10],
        few => [0.1], least_ops => 300, least_s => 10, warmup_s => 3,
        deploy => deploy([10, 25, 50, 100], [14, 28, 70, 139]),
        vm => vm(intermediate, 200, 5, 200_000, 1_000_000),
        balance => #{loads => [40, 20, 70], seconds => 15},
        city => city([1, 2, 4, 8, 16], {32, 32}, 1000, 10),
        orbit => orbit(100_000, [1, 2, 4, 10, 20, 40, 60, 80], [10, 40, 80], 8),
        aco => aco(#{
            instances => 12, colonies => [1, 4, 16, 64, 256], iterations => {10, 20},
            trees => [{5, 2}, {11, 2}, {23, 2}, {47, 2}], work => {20, 20}, long => {{23, 2}, 10}
        }),
        im => im(#{
            servers => [3, 6, 12, 16], clients => 100, speed => 20, seconds => 10, warmup_s => 2,
            chaos => {12, 15}, compressed => 5, random_s => [15, 5], database_s => [5, 1]
        })
    };
%% Just large enough to test that everything works.
fixed(test) ->
    #{
        name => test, budget_s => 60, runs => 2, pairs => 1,
        nodes => 4, sizes => [2, 4], beyond => [], group_size => 2,
        rate => 20, rates => #{}, base_pct => 25, shares => [25], few => [], least_ops => 10,
        least_s => 1, warmup_s => 1,
        deploy => (deploy([1, 4], [1, 4]))#{hosts := 1},
        vm => (vm(short, 5, 1, 1000, 2000))#{
            cores := 1, schedulers := [1, 2], profiled := short
        },
        balance => #{loads => [20], seconds => 1},
        city => (city([1, 2], {4, 4}, 10, 1))#{group_size := 1},
        orbit => (orbit(500, [1, 2], [2], 1))#{workers := 2, gateways := 1},
        aco => (aco(#{instances => 1, colonies => [1, 2], iterations => {2, 2}, trees => [{5, 2}],
                      work => {2, 2}, long => {{5, 2}, 2}}))#{
                          instances := [generated(10, 1)],
                          work := #{n => 10, ants => 2, local_iterations => 2,
                                    global_iterations => 3}
                      },
        im => (im(#{servers => [2], clients => 4, speed => 50, seconds => 1, warmup_s => 1,
                    chaos => {2, 1}, compressed => 20, random_s => [5],
                    database_s => [5]}))#{
                        chaos_routers := 1
                    }
    }.

full(200) ->
    Scale = #{aco := Aco} = full(100),
    Scale#{
        nodes := 200, sizes := [10, 20, 50, 100, 200], beyond := [250], rate := 7.5,
        rates := #{0.01 => 20, 0.1 => 20, 10 => 4},
        orbit := orbit(200_000, [1, 2, 4, 10, 20, 40, 60, 80, 100, 120, 140, 160, 200],
                       [10, 40, 80, 100, 200], 15),
        aco := Aco#{trees := [{5, 2}, {11, 2}, {23, 2}, {47, 2}, {95, 2}, {191, 2}, {226, 15}]}
    };
full(100) ->
    (fixed(medium))#{
        name := full, budget_s := infinity, runs := 5, rates := #{0.01 => 45, 0.1 => 45, 10 => 8},
        shares := [0.01, 0.1, 1, 10], few := [0.01],
        vm := vm(long, 500, 5, 2_000_000, 17_000_000),
        balance := #{loads => [40, 10, 20, 70], seconds => 60},
        city := city([1, 2, 4, 8, 16], {64, 64}, 1000, 60),
        orbit := orbit(200_000, [1, 2, 4, 10, 20, 40, 60, 80, 100], [10, 40, 80, 100], 15),
        aco := aco(#{
            instances => 25, colonies => [1, 2, 4, 8, 16, 32, 64, 128, 256], iterations => {20, 20},
            trees => [{5, 2}, {11, 2}, {23, 2}, {47, 2}, {95, 2}], work => {20, 20},
            long => {{23, 2}, 100}
        }),
        im := im(#{
            servers => [3, 4, 6, 8, 12, 16], clients => 200, speed => 10, seconds => 60,
            warmup_s => 15, chaos => {12, 120}, compressed => 1, random_s => [15, 5],
            database_s => [5, 4, 3, 2, 1]
        })
    }.

%% Iterations are {Local, Global}, and long ones so many times as many global ones. Ants as
%% published.
aco(#{instances := Count, colonies := Colonies, iterations := {L, G}, trees := Trees,
      work := {WorkL, WorkG}, long := {Tree, Times}}) ->
    #{
        instances => [generated(100, I) || I <- lists:seq(1, Count)],
        quality => #{colonies => Colonies, ants => 4, local_iterations => L,
                     global_iterations => G},
        trees => Trees,
        work => #{n => 100, ants => 4, local_iterations => WorkL, global_iterations => WorkG},
        long => #{tree => Tree, times => Times, kill_every_ms => 1000}
    }.

%% Due dates in a narrow range, the middle of which is when two fifths of the work are done: among
%% the hardest of the recipe.
generated(N, Seed) -> #{n => N, rdd => 0.2, tf => 0.6, seed => Seed}.

deploy(Nodes, Simulated) -> #{nodes => Nodes, hosts => 4, simulated => Simulated}.

vm(Size, Ms, Runs, Keys, Operations) ->
    #{cores := Cores} = sderl_bench_machine:info(),
    #{cores => Cores, schedulers => schedulers(Cores), size => Size, run_ms => Ms, runs => Runs,
      keys => Keys, operations => Operations, profiled => long}.

%% Crossings in each direction and steps; ten vehicles for each crossing, as in `bench vm`.
city(Nodes, {Side, Steps}, Work, Seconds) ->
    #{nodes => Nodes, group_size => 4, side => Side, steps => Steps, vehicles => 10, work => Work,
      seconds => Seconds}.

schedulers(Cores) -> lists:usort([Cores | [N || I <- lists:seq(0, 10), N <- [1 bsl I], N < Cores]]).

im(#{chaos := {Servers, Seconds}} = Of) ->
    (maps:remove(chaos, Of))#{client_nodes => 2, chaos_servers => Servers, chaos_routers => 2,
                              chaos_seconds => Seconds}.

-doc """
The same with the instances of a folder, as `SDERL_INSTANCES` names one, in place of generated ones
where quality is asked for: those of size 100 in its folder `geiger`, at most as many as the scale
would generate.
""".
-spec instances(scale(), file:filename()) -> {ok, scale()} | {error, sderl_command:text()}.
instances(#{aco := #{instances := Generated} = Aco} = Scale, Dir) ->
    case sderl_reproduce_aco:listed(Dir) of
        {ok, Known} ->
            {ok, Scale#{aco := Aco#{instances := lists:sublist(Known, length(Generated))}}};
        {error, Text} -> {error, Text}
    end.

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
        if
            is_number(Budget) -> io_lib:format("~w minutes", [round(Budget / 60)]);
            true -> "as long as it takes"
        end, Runs
    ]).
