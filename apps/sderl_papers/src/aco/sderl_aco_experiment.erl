%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_experiment).
-moduledoc """
`bin/sderl bench aco`: schedules by ant colonies, in one node or on many. `m:sderl_aco` says what
the variants are and what the metrics mean.

```sh
bin/sderl bench aco --variant smp,plain                                # a generated instance
bin/sderl bench aco --instance wt40.001 --search o12 --colonies 20
bin/sderl bench aco --instance DIR --match wt40,wt50 --sample 20       # 20 of each, evenly taken
bin/sderl bench aco --variant tl,ml,gr,sr --nodes 5,11 --instance FILE
```
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([selected/2, table/1, overview/1, verdict/1]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, real/4, chosen/4, words/1]).

-doc false.
-spec summary() -> string().
summary() -> "ant colonies schedule jobs: one node, masters and submasters, recovery, s_groups".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Ant colony optimisation of schedules on one machine, by total weighted tardiness.
            Colonies are in one virtual machine (plain: as the algorithm reads; smp: with fast inner
            loops), on nodes with a master (tl), in a tree of submasters (ml), with global names and
            recovery (gr), or with those in s_groups (sr).
            """,
        arguments =>
            [
                option(variant, "LIST", string, "smp",
                       ["variants, with commas between them: " | names(sderl_aco:variants())]),
                #{
                    name => instance, long => "-instance", type => string, required => false,
                    help => {"[--instance PATH]",
                             ["a file, or a folder with files and lists of best-known costs; "
                              "without it instances are generated"]}
                },
                option(match, "LIST", string, "",
                       "of a folder, the instances whose names begin like one of these"),
                option(sample, "K", integer, 0,
                       "so many of them, evenly taken; with --match, of each; 0: all"),
                option(size, "N", integer, 0,
                       "jobs: of generated instances (40), and of files that do not have it"),
                option(rdd, "X", string, "0.6", "generated: relative range of due dates"),
                option(tf, "X", string, "0.6", "generated: tardiness factor"),
                option(standard, "K", integer, 0, "generated: K instances for each of the 25 pairs "
                                                  "of --rdd and --tf, 0.2 to 1"),
                option(colonies, "C", integer, 0,
                       "colonies in all; 0: one (plain, smp), one on each node for them"),
                option(ants, "A", integer, 4, "ants of a colony"),
                option(global, "G", integer, 20,
                       "rounds, after which colonies are told the best of all"),
                option(local, "L", integer, 20, "iterations of a colony in a round"),
                option(heuristic, "H", string, "mdd", ["mdd, edd, au, or mixed with --variant tl: "
                                                       "mdd on the first half of the nodes"]),
                option(search, "S", string, "none",
                       ["local search: " | names(sderl_aco_options:searches())]),
                option(alpha, "X", string, "1.0", "exponent of pheromone"),
                option(beta, "X", string, "2.0", "exponent of the heuristic value"),
                option(q0, "X", string, "0.9",
                       "how often an ant takes the best job and does not draw one"),
                option(rho, "X", string, "0.1", "evaporation"),
                option(tau0, "X", string, "auto", "pheromone at the start"),
                #{name => keep, long => "-keep", type => boolean, default => false,
                  help => {"[--keep]", ["pheromone does not evaporate"]}},
                option(rng, "R", string, "random", "random, or cyclic: ten numbers over and over"),
                option(seed, "N", integer, 1,
                       "the same seed gives the same result (where nothing is killed)"),
                option(degree, "P", integer, 2, "processes on a submaster's node (ml, gr, sr)"),
                option(repl, "K", integer, 1, "how often answers are sent (tl to sr)"),
                option(chaos, "MS", integer, 0,
                       "kill a process on every node each MS milliseconds (gr, sr); 0: none"),
                option(timeout, "S", integer, 600, "seconds after which a run is given up")
            ] ++ sderl_bench_series:options(#{nodes => "5", repeat => 1})
              ++ [sderl_bench_profile:option()]
    }.

names(Atoms) -> lists:join(", ", [atom_to_list(A) || A <- Atoms]).

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{variant := Variants, heuristic := Heuristic, search := Search, rng := Rng,
        compare := Compare} = Options) ->
    maybe
        {ok, Asked} ?= chosen("--variant", "variant", Variants, sderl_aco:variants()),
        Chosen = case Compare of true -> sderl_aco:variants(); false -> Asked end,
        {ok, [OneHeuristic]} ?= chosen("--heuristic", "heuristic", Heuristic,
                                       [mixed | sderl_aco_options:heuristics()]),
        {ok, [OneSearch]} ?= chosen("--search", "search", Search, sderl_aco_options:searches()),
        {ok, [OneRng]} ?= chosen("--rng", "kind of numbers", Rng, [random, cyclic]),
        ok ?= heuristic(OneHeuristic, Chosen),
        ok ?= at_least(0, [sample, size, standard, colonies, chaos, seed], Options),
        ok ?= at_least(1, [ants, global, local, degree, repl, timeout], Options),
        ok ?= at_most(
            [
                {size, 10_000}, {standard, 1000}, {colonies, 100_000}, {ants, 1_000_000},
                {global, 1_000_000}, {local, 1_000_000}, {degree, 1000}, {repl, 100},
                {chaos, 3_600_000}, {timeout, 604_800}
            ],
            Options
        ),
        ok ?= chaos(maps:get(chaos, Options), Chosen),
        {ok, Reals} ?= all_reals(Options),
        {ok, Checked} ?= sderl_bench_series:check(Options),
        ok ?= enough(Checked, Chosen),
        Full = maps:merge(maps:remove(tau0, Checked), Reals),
        {ok,
         Full#{variant := Chosen, heuristic := OneHeuristic, search := OneSearch, rng := OneRng}}
    else
        {ok, Several} when is_list(Several) ->
            {error, io_lib:format("one of ~ts is needed, not several", [names(Several)])};
        Error -> Error
    end.

heuristic(mixed, Variants) when Variants =/= [tl] ->
    {error, "--heuristic mixed is for --variant tl alone"};
heuristic(_, _) -> ok.

chaos(0, _) ->
    ok;
chaos(_, Variants) ->
    case Variants -- [gr, sr] of
        [] -> ok;
        [Other | _] ->
            {error,
             ["--chaos is for the variants gr and sr; ", atom_to_list(Other), " does not recover"]}
    end.

enough(#{nodes := Nodes}, Variants) ->
    case Variants -- [plain, smp] of
        [_ | _] ->
            case lists:min(Nodes) of
                1 -> {error, "--nodes 1: the variants on several nodes need 2 or more"};
                _ -> ok
            end;
        [] ->
            ok
    end.

all_reals(Options) ->
    Ranges = [{alpha, 0, 100}, {beta, 0, 100}, {q0, 0, 1}, {rho, 0, 0.99}, {rdd, 0, 2}, {tf, 0, 1}],
    lists:foldl(
        fun
            ({Key, Min, Max}, {ok, Reals}) ->
                case real("--" ++ atom_to_list(Key), maps:get(Key, Options), Min, Max) of
                    {ok, Value} -> {ok, Reals#{Key => Value}};
                    Error -> Error
                end;
            (_, Error) ->
                Error
        end,
        {ok, #{}},
        Ranges ++ [{tau0, 1.0e-100, 1.0e100} || maps:get(tau0, Options) =/= "auto"]
    ).

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{repeat := Repeat} = Options, Output) ->
    maybe
        {ok, Instances} ?= instances(Options),
        Points = points(Options, Instances),
        ok ?= sderl_bench_profile:check(length(Points) * Repeat, Options),
        ByName = #{Name => Pair || {#{name := Name}, _} = Pair <- Instances},
        Show = fun(Runs) ->
            sderl_bench_output:say(Output, ["\n", title(Options, Instances), "\n\n",
                                            tables(Instances, Runs)])
        end,
        %% Of the series' label only the place is used.
        Run = fun(#{instance := Name, variant := Variant} = Point, [Place, _]) ->
            #{Name := {Instance, Known}} = ByName,
            Label = [Place, atom_to_list(Variant), ", ", Name],
            Outcome = sderl_aco:run(Point#{instance := Instance, best_known => Known}, Label),
            case sderl_bench_reason:said(aco, fun sderl_aco:text/1, Outcome) of
                {ok, Metrics} ->
                    sderl_bench_output:say(Output, line(Label, Metrics)),
                    {ok, Metrics};
                Error ->
                    Error
            end
        end,
        {ok, All} ?= sderl_bench_series:run(aco, Points, Repeat, Run, Show, Output),
        verdict(All)
    else
        {error, {aco, Reason}} -> {error, sderl_aco:text(Reason)};
        Error -> Error
    end.

line(Label, #{best_cost := Cost, best_known := Known, mean_excess_pct := Excess, seconds := Seconds,
              ants_per_s := Rate}) ->
    [
        string:pad(Label, 32), " ", sderl_table:number(Cost),
        case Known of
            undefined -> "";
            _ ->
                [" (best known ", sderl_table:number(Known),
                 [[", ", excess(Excess), " % over"] || Cost =/= Known], ")"]
        end,
        ", ", sderl_table:number(Seconds), " s, ", sderl_table:number(Rate), " ants/s\n"
    ].

excess(undefined) -> "-";
excess(Excess) -> float_to_binary(float(Excess), [{decimals, 3}]).

instances(#{instance := Path, size := Size, match := Match, sample := Sample}) ->
    maybe
        {ok, All} ?= sderl_aco_instance:read_all(Path, #{n => Size || Size > 0}),
        case selected(All, #{match => [W || W <- words(Match), W =/= ""], sample => Sample}) of
            [] -> {error, ["--match ", Match, ": no instance in ", Path, " has such a name"]};
            Chosen -> {ok, Chosen}
        end
    end;
instances(#{size := Size, standard := Each, rdd := Rdd, tf := Tf, seed := Seed}) ->
    N = case Size of 0 -> 40; _ -> Size end,
    Generated =
        case Each of
            0 -> [sderl_aco_instance:generate(#{n => N, rdd => Rdd, tf => Tf, seed => Seed})];
            _ -> sderl_aco_instance:standard(N, #{each => Each, seed => Seed})
        end,
    {ok, [{Instance, undefined} || Instance <- Generated]}.

-doc """
The instances whose names begin with an element of `match`, in its order; of each `sample`
instances, evenly taken. Without `match` of all; 0: all of them.
""".
-spec selected([{sderl_aco_instance:instance(), term()}],
               #{match := [string()], sample := non_neg_integer()}) ->
    [{sderl_aco_instance:instance(), term()}].
selected(All, #{match := [], sample := Count}) ->
    sample(Count, All);
selected(All, #{match := Starts, sample := Count}) ->
    lists:uniq(
        lists:append([
            sample(Count,
                   [Pair
                    || {#{name := Name}, _} = Pair <- All, string:prefix(Name, Start) =/= nomatch])
         || Start <- Starts
        ])
    ).

sample(Count, All) when Count =:= 0; Count >= length(All) -> All;
sample(Count, All) ->
    [lists:nth(1 + K * length(All) div Count, All) || K <- lists:seq(0, Count - 1)].

%% A point has the parameters that matter in its variant.
points(#{variant := Variants, nodes := Nodes, timeout := TimeoutS, keep := Keep, chaos := ChaosMs} =
           Options, Instances) ->
    Common = (maps:with([ants, heuristic, search, alpha, beta, q0, rho, tau0, rng, seed, prof],
                        Options))#{
                            evaporate => not Keep,
                            global_iterations => maps:get(global, Options),
                            local_iterations => maps:get(local, Options),
                            timeout_s => TimeoutS
                        },
    Told = case Options of
        #{colonies := 0} -> Common;
        #{colonies := Colonies} -> Common#{colonies => Colonies}
    end,
    Far = maps:merge(Told, maps:with([repl], Options)),
    Tree = maps:merge(Far, maps:with([degree], Options)),
    Chaos = case ChaosMs of 0 -> none; _ -> #{every_ms => ChaosMs} end,
    [
        (case Variant of
            _ when Variant =:= plain; Variant =:= smp -> Told;
            tl -> Far;
            ml -> Tree;
            _ -> Tree#{chaos => Chaos}
        end)#{variant => Variant, instance => Name, nodes => Count}
     || {#{name := Name}, _} <- Instances,
        Variant <- Variants,
        Count <- case lists:member(Variant, [plain, smp]) of true -> [1]; false -> Nodes end
    ].

title(#{repeat := Repeat, seed := Seed} = Options, Instances) ->
    [
        case Instances of
            [{#{name := Name, n := N}, Known}] ->
                io_lib:format("~ts, ~w jobs~ts", [
                    Name, N, [[", best known ", sderl_table:number(Known)] || Known =/= undefined]
                ]);
            _ ->
                io_lib:format("~w instances", [length(Instances)])
        end,
        io_lib:format(", seed ~w, ~w ants, ~w x ~w iterations, heuristic ~ts, search ~ts", [
            Seed | [maps:get(Key, Options) || Key <- [ants, global, local, heuristic, search]]
        ]),
        [io_lib:format(", ~w turns: median (least..greatest)", [Repeat]) || Repeat > 1],
        "; ",
        sderl_bench_machine:text()
    ].

tables([_], Runs) -> [table(Runs), rounds(Runs)];
tables(_, Runs) -> overview(Runs).

-doc """
Runs of one instance: a line for each variant and number of nodes; ratios are of runs in the same
turn.
""".
-spec table([sderl_bench_series:run()]) -> unicode:chardata().
table(Runs) ->
    Plain = lists:any(fun(#{params := #{variant := Variant}}) -> Variant =:= plain end, Runs),
    sderl_table:text(
        ["", "nodes", "colonies", "cost", "% over best", "s", "ants/s"] ++ ["x plain" || Plain] ++
            ["kills", "links, most", "packets", "CPU us/ant", "MiB a node"],
        [row(Params, Runs, Plain) || Params <- distinct(Runs)]
    ).

distinct(Runs) -> lists:uniq([maps:remove(run, Params) || #{params := Params} <- Runs]).

row(#{variant := Variant} = Params, Runs, Plain) ->
    Mine = sderl_bench_series:metrics(Params, Runs),
    Spread = fun(Key) -> sderl_table:spread([maps:get(Key, M) || M <- Mine]) end,
    Middle = fun(Key) ->
        sderl_table:number(sderl_table:median([V || #{Key := V} <- Mine, is_number(V)]))
    end,
    [atom_to_list(Variant), Middle(nodes_used), Middle(colonies), Spread(best_cost), over(Mine),
     Spread(seconds), Spread(ants_per_s)] ++
        [sderl_table:spread(ratios(Params, Runs)) || Plain] ++
        [Middle(Key) || Key <- [kills, links_per_node_max, packets, cpu_us_per_op, memory_mib_max]].

%% For one instance: if its best-known cost is 0, a run that missed it has no value in percent, and
%% so there is no median.
over(Metrics) ->
    Over = [E || #{mean_excess_pct := E} <- Metrics],
    excess(case lists:member(undefined, Over) of
        true -> undefined;
        false -> sderl_table:median(Over)
    end).

ratios(Params, Runs) ->
    [
        Rate / Of
     || #{params := #{run := Turn} = P, metrics := #{ants_per_s := Rate}} <- Runs,
        maps:remove(run, P) =:= Params,
        #{params := #{variant := plain, run := T}, metrics := #{ants_per_s := Of}} <- Runs,
        T =:= Turn
    ].

%% How the cost fell in the first run of each variant.
rounds(Runs) ->
    [
        "\nrounds that found a lower cost, and the cost\n",
        [
            [
                "  ", string:pad([atom_to_list(Variant),
                                  [io_lib:format(", ~w nodes", [Nodes]) || Nodes > 1]], 16),
                lists:join(" ", [[integer_to_list(Round), ":", integer_to_list(Cost)]
                                 || {Round, Cost} <- changes(lists:enumerate(Costs))]), "\n"
            ]
         || #{params := #{run := 1, variant := Variant, nodes := Nodes},
              metrics := #{round_best := Costs}} <- Runs
        ]
    ].

changes(Costs) -> lists:uniq(fun({_, Cost}) -> Cost end, Costs).

-doc """
Runs of several instances: a line for each variant and number of nodes. The excess is over
the instances with a best-known cost above 0: for a cost of 0 it has a value only where that was
reached, which would make the mean too small.
""".
-spec overview([sderl_bench_series:run()]) -> unicode:chardata().
overview(Runs) ->
    Kinds = lists:uniq([{Variant, Nodes}
                        || #{params := #{variant := Variant, nodes := Nodes}} <- Runs]),
    sderl_table:text(
        ["", "nodes", "runs", "known", "at best known", "mean % over", "most % over", "mean cost",
         "s in all", "ants/s"],
        [
            begin
                Mine = [M
                        || #{params := #{variant := V, nodes := N}, metrics := M} <- Runs,
                           V =:= Variant, N =:= Nodes],
                Over = [E
                        || #{mean_excess_pct := E, best_known := Known} <- Mine, is_number(Known),
                           Known > 0],
                At = [O || #{optimal := O} <- Mine, O =/= undefined],
                Seconds = lists:sum([S || #{seconds := S} <- Mine]),
                [
                    atom_to_list(Variant), integer_to_list(Nodes), integer_to_list(length(Mine)),
                    integer_to_list(length(At)),
                    integer_to_list(lists:sum(At)), excess(mean(Over)),
                    excess(case Over of [] -> undefined; _ -> lists:max(Over) end),
                    sderl_table:number(mean([C || #{best_cost := C} <- Mine])),
                    sderl_table:number(Seconds),
                    sderl_table:number(lists:sum([A || #{ants := A} <- Mine]) /
                                       max(Seconds, 1.0e-6))
                ]
            end
         || {Variant, Nodes} <- Kinds
        ]
    ).

-doc "The conditions of every run; an error if one does not hold.".
-spec verdict([sderl_bench_series:run()]) -> ok | {error, sderl_command:text()}.
verdict(Runs) ->
    Wrong = [
        io_lib:format("~ts: ~ts", [Variant, wrong(Value, Text)])
     || #{params := #{variant := Variant}, metrics := Metrics} <- Runs,
        {Key, Wanted, Text} <- must(Variant),
        Value <- [maps:get(Key, Metrics)],
        Value =/= Wanted
    ] ++ [
        io_lib:format("~ts: nothing was killed; give more --global, or less --chaos", [Variant])
     || #{params := #{variant := Variant, chaos := #{}}, metrics := #{kills := 0}} <- Runs
    ],
    case Wrong of
        [] -> ok;
        [First | _] -> {error, First}
    end.

must(Variant) when Variant =:= plain; Variant =:= smp ->
    [{names_left, 0, "names were left"}];
must(_) ->
    [
        {names_left, 0, "names were left"},
        {kills_not_back, 0, "processes that were killed were not replaced"},
        {links_as_expected, true,
         "nodes have other links than the tree and its groups, or the full mesh, give them"}
    ].

wrong(undefined, Text) -> ["whether ", Text, " is not known: a node did not answer"];
wrong(false, Text) -> Text;
wrong(Count, Text) -> io_lib:format("~w ~ts", [Count, Text]).

mean([]) -> undefined;
mean(Values) -> lists:sum(Values) / length(Values).
