%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco).
-moduledoc """
Ant colony optimisation of the single machine total weighted tardiness problem, on one node or on
many.

| variant | |
|---|---|
| `plain` | colonies in one virtual machine with all cores, written down as the algorithm reads: `smp` is compared with it |
| `smp` | the same with fast inner loops |
| `tl` | a master, and a colony on each of the other nodes |
| `ml` | a tree of submasters between master and colonies |
| `gr` | the tree, with global names, supervisors and recovery |
| `sr` | the same in s_groups |

Each has rounds (global iterations): every colony makes its local iterations, and then is told the
best schedule of all.

## Metrics

Those of `m:sderl_bench_meter` (an operation is an ant), these of the whole run. And

| metric | meaning |
|---|---|
| `best_cost`, `schedule` | the cheapest schedule found |
| `round_best` | its cost after each round |
| `best_known`, `mean_excess_pct` | the best-known cost, and 100 x (`best_cost` - `best_known`) / `best_known`; 0 where both are 0, `undefined` where only `best_known` is |
| `optimal` | 1 when the best-known cost was reached, otherwise 0 |
| `seconds`, `ants_per_s` | from the first ant until the last round's best is known; `ants` / `seconds` |
| `ants`, `colonies`, `nodes_used` | |
| `kills`, `recovery_us` | processes killed by `chaos`, and how long it took from each kill until another process had its role: `p50`, `p99`, `max` |
| `kills_by_class`, `kills_not_back` | kills of masters, supervisors, submasters, colonies; those that nobody had replaced at the end: must be 0 |
| `recovered`, `replaced_us` | how many of each class were replaced, and how long that took as seen by the process that replaced each: from when it knew of the death until the new one served; without those where that process died meanwhile |
| `names_left` | names of the run that are registered after it: must be 0; `undefined` where a node does not tell |
| `setup_s`, `levels` | how long it took to start and name all processes; levels of the tree, 0 where there is none |
| `messages_in_rounds`, `packets_in_rounds` | `messages` and `packets` without those of links, groups, names, and starting processes |
| `cpu_us_per_op_in_rounds` | `cpu_us_per_op` without those (`tl` to `sr`); `monitoring` is on before the processes start |
| `links_expected`, `links_as_expected` | `links_total` by the tree and its groups, or in a full mesh; whether each node has its number |

A metric without measurements is `undefined`.

Source: ACO of the RELEASE project; Chechina et al. (2017).
""".

-export([run/2, variants/0, defaults/0, text/1]).
-export_type([variant/0, params/0, metrics/0]).

%% How long a look at the progress may take.
-define(LOOK_MS, 1000).

%% Measured memory of a colony, for each pair of jobs (`plain`) and for each job.
-define(PLAIN_BYTES, 1000).
-define(JOB_BYTES, 8000).

-doc "See above.".
-type variant() :: plain | smp | tl | ml | gr | sr.

-doc """
Parameters of the colonies are those of `m:sderl_aco_options`; `heuristic` is `mixed` too in `tl`:
`mdd` on the first half of the nodes, `au` on the others. `nodes`: those of the run
without the starter's (`plain`, `smp`: one). `degree`: processes of a submaster's node. `colonies`:
how many in all; by default one on each colony node in `tl` to `sr`. `repl`: how often each message
between levels is sent (`tl` to `sr`). `chaos`: every so many ms one process of the run is killed on
every node (`gr`, `sr`). `monitoring`: whether the nodes are watched meanwhile (`tl` to `sr`), see
`m:sderl_bench_watch`. `timeout_s`: a run that takes longer is given up. What is missing has its
default.
""".
-type params() :: #{
    variant := variant(),
    instance := sderl_aco_instance:instance(),
    best_known => non_neg_integer() | undefined,
    nodes => pos_integer(),
    degree => pos_integer(),
    colonies => pos_integer(),
    local_iterations => pos_integer(),
    global_iterations => pos_integer(),
    seed => term(),
    repl => pos_integer(),
    chaos => none | #{every_ms := pos_integer()},
    monitoring => off | on,
    timeout_s => pos_integer(),
    atom() => term()
}.

-doc "See the table above.".
-type metrics() :: #{
    best_cost := non_neg_integer(),
    best_known := non_neg_integer() | undefined,
    mean_excess_pct := float() | undefined,
    optimal := 0 | 1 | undefined,
    seconds := float(),
    ants_per_s := float(),
    round_best := [non_neg_integer()],
    atom() => term()
}.

-doc "All variants.".
-spec variants() -> [variant()].
variants() -> [plain, smp, tl, ml, gr, sr].

-doc "The defaults of parameters that are not given.".
-spec defaults() -> #{atom() => term()}.
defaults() ->
    (sderl_aco_options:defaults())#{
        nodes => 5,
        degree => 2,
        local_iterations => 20,
        global_iterations => 20,
        best_known => undefined,
        seed => 1,
        repl => 1,
        chaos => none,
        monitoring => off,
        timeout_s => 600
    }.

-doc """
Starts the nodes, runs it, and stops the nodes. `Label` stands before the progress. A reason is a
term for `sderl_papers_reason:text/1`.
""".
-spec run(params(), Label :: unicode:chardata()) -> {ok, metrics()} | {error, term()}.
run(Params0, Label) ->
    #{variant := Variant} = Params = maps:merge(defaults(), Params0),
    maybe
        ok ?= possible(Params),
        {ok, Outcome} ?=
            case Variant of
                _ when Variant =:= plain; Variant =:= smp -> one_node(Params, Label);
                _ -> cluster(Params, Label)
            end,
        ok ?= right(Outcome, Params),
        {ok, metrics(Outcome, Params)}
    end.

possible(#{variant := Variant, heuristic := mixed}) when Variant =/= tl ->
    {error, {aco, {mixed, Variant}}};
possible(#{variant := Variant, chaos := #{}}) when Variant =/= gr, Variant =/= sr ->
    {error, {aco, {chaos, Variant}}};
possible(_) -> ok.

one_node(#{variant := Variant, timeout_s := TimeoutS, global_iterations := Rounds} = Params,
         Label) ->
    Colonies = maps:get(colonies, Params, 1),
    Conf = (maps:with([instance, local_iterations, global_iterations, seed], Params))#{
        options => sderl_aco_options:of_run(Params),
        engine => case Variant of plain -> sderl_aco_plain; smp -> sderl_aco_colony end,
        colonies => Colonies
    },
    maybe
        ok ?= fits(Variant, Colonies, Params),
        {ok, Fleet} ?= sderl_fleet:start(plan(Label)),
        try
            [Node] = Nodes = sderl_fleet:nodes(Fleet),
            Run = fun() ->
                sderl_fleet:multicall(Fleet, Nodes, sderl_aco_smp, run, [Conf], 1000 * TimeoutS)
            end,
            {Answer, Usage} = sderl_bench_meter:around(Fleet, Nodes, fun() ->
                sderl_progress:watching(Label, fun(_) -> {seen(Fleet, Node, Rounds), none} end,
                                        none, fun() ->
                                            sderl_bench_profile:around(Params, Fleet, Nodes, Run)
                                        end)
            end),
            case Answer of
                [{Node, {ok, _}}] when map_get(per_node, Usage) =:= [] ->
                    {error, {aco, {not_metered, Nodes}}};
                [{Node, {ok, Outcome}}] ->
                    {ok, Outcome#{
                        usage => Usage,
                        kills => [],
                        recovery_us => sderl_bench_histogram:new(),
                        names_left => 0,
                        nodes_used => 1,
                        colonies => Colonies
                    }};
                {error, _} = NotRecorded ->
                    NotRecorded;
                [{Node, {error, timeout}}] ->
                    {error, {aco, {timeout, TimeoutS}}};
                [{Node, {error, Reason}}] ->
                    {error, {aco, {died, Node, Reason}}}
            end
        after
            sderl_fleet:stop(Fleet)
        end
    end.

%% sderl_fleet:fits/1 takes nodes of 50 MB.
fits(Variant, Colonies, #{instance := #{n := N}}) ->
    Bytes = case Variant of plain -> N * N * ?PLAIN_BYTES; smp -> N * ?JOB_BYTES end,
    case sderl_fleet:fits(1 + Colonies * Bytes div 50_000_000) of
        ok -> ok;
        {error, {memory, #{needed_mib := Needed, available_mib := Free}}} ->
            {error, {aco, {memory, Needed, Free}}}
    end.

plan(Label) ->
    #{cores := Cores} = sderl_bench_machine:info(),
    #{
        families => [#{name => aco, count => 1,
                       args => ["+S", lists:flatten(io_lib:format("~w:~w", [Cores, Cores]))]}],
        progress => sderl_progress:reporter([Label, ": starting a node"])
    }.

seen(Fleet, Node, Rounds) ->
    case sderl_fleet:multicall(Fleet, [Node], sderl_aco_smp, rounds, [], ?LOOK_MS) of
        [{Node, {ok, Done}}] when is_integer(Done) ->
            io_lib:format("round ~w of ~w", [Done, Rounds]);
        _ -> "waiting"
    end.

cluster(#{nodes := Nodes} = Params, Label) ->
    maybe
        %% The starter has one more.
        ok ?= sderl_fleet:fits(Nodes + 1),
        {ok, Fleet} ?= sderl_fleet:start(sderl_aco_cluster:plan(Params, Label)),
        try
            sderl_bench_profile:around(Params, Fleet, sderl_fleet:nodes(Fleet), fun() ->
                sderl_aco_cluster:on(Fleet, Params, Label)
            end)
        after
            sderl_fleet:stop(Fleet)
        end
    end.

%% Checks the result: a schedule of all jobs, with that cost.
right(#{best := {Cost, Jobs}}, #{instance := #{n := N} = Instance}) ->
    case lists:sort(Jobs) =:= lists:seq(1, N)
         andalso sderl_aco_instance:tardiness(Instance, Jobs) of
        Cost -> ok;
        _ -> {error, {aco, {wrong, Cost, Jobs}}}
    end.

metrics(#{best := {Cost, Jobs}, seconds := Seconds, ants := Ants, usage := Usage, kills := Kills,
          recovery_us := Recovery} = Outcome, Params) ->
    #{best_known := Known} = Params,
    maps:merge(sderl_bench_meter:metrics(Usage, Ants), (
        maps:without([best, usage, cpu_ms_in_rounds], Outcome)
    )#{
        cpu_us_per_op_in_rounds => in_rounds(Outcome),
        best_cost => Cost,
        schedule => Jobs,
        best_known => Known,
        mean_excess_pct => excess(Cost, Known),
        optimal => if Known =:= undefined -> undefined; Cost =< Known -> 1; true -> 0 end,
        ants_per_s => Ants / max(Seconds, 1.0e-6),
        kills => length(Kills),
        replaced_us => percentiles(maps:get(replaced_us, Outcome, sderl_bench_histogram:new())),
        recovery_us => percentiles(Recovery)
    }).

percentiles(Histogram) ->
    #{Key => sderl_bench_histogram:percentile(Percent, Histogram)
      || {Key, Percent} <- [{p50, 50}, {p99, 99}, {max, 100}]}.

%% Without a value for `plain` and `smp`, where nothing comes before the rounds.
in_rounds(#{cpu_ms_in_rounds := CpuMs, ants := Ants}) when Ants > 0 -> CpuMs * 1000 / Ants;
in_rounds(_) -> undefined.

excess(_, undefined) -> undefined;
excess(0, 0) -> 0.0;
excess(_, 0) -> undefined;
excess(Cost, Known) -> 100 * (Cost - Known) / Known.

-doc "A reason of ACO in words.".
-spec text(term()) -> unicode:chardata().
text({bad_file, File, Line, Text}) ->
    io_lib:format("~ts:~w: ~ts", [File, Line, Text]);
text({cannot_read, File, not_regular}) ->
    io_lib:format("~ts is neither a file nor a folder", [File]);
text({cannot_read, Dir, no_instances}) ->
    io_lib:format("the folder ~ts has no instances", [Dir]);
text({cannot_read, File, too_large}) ->
    io_lib:format("~ts is larger than any file with instances", [File]);
text({cannot_read, File, Reason}) ->
    io_lib:format("cannot read ~ts: ~ts", [File, file:format_error(Reason)]);
text({mixed, Variant}) ->
    io_lib:format("the heuristic mixed is for the variant tl, not ~ts: give mdd, edd or au",
                  [Variant]);
text({chaos, Variant}) ->
    io_lib:format("chaos is for the variants gr and sr: ~ts does not recover", [Variant]);
text({memory, Needed, Free}) ->
    io_lib:format("the colonies need about ~w MiB of memory and ~w are free: take fewer colonies "
                  "or jobs", [Needed, Free]);
text({timeout, Seconds}) ->
    io_lib:format("it took longer than ~w s: give a longer time (--timeout) or fewer iterations",
                  [Seconds]);
text({died, Node, Reason}) ->
    io_lib:format("node ~ts did not finish: ~0tP", [Node, Reason, 20]);
text({wrong, Cost, Jobs}) ->
    io_lib:format("the result is no schedule with the cost ~w: ~0tP", [Cost, Jobs, 20]);
text(Reason) ->
    sderl_aco_cluster:text(Reason).
