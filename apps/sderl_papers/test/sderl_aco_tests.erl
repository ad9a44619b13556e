%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(I, sderl_aco_instance).
-define(O, sderl_aco_options).
-define(C, sderl_aco_colony).
-define(P, sderl_aco_plain).

%% Recorded results of a small instance; both programs give them.

golden_test_() ->
    Instance = golden(),
    [
        {lists:flatten(io_lib:format("~ts ~ts ~ts", [Rng, Heuristic, Search])), fun() ->
            Options = (?O:defaults())#{ants := 5, rng := Rng, heuristic := Heuristic,
                                       search := Search},
            ?assertEqual(Costs, costs(?C, ?C:new(Instance, Options, 7), [1, 4, 15, 80]))
        end}
     || {Rng, Heuristic, Search, Costs} <- [
            {cyclic, mdd, none, [49796, 49796, 49796, 49796]},
            {cyclic, mdd, o1, [21516, 21516, 21516, 21516]},
            {cyclic, mdd, o2, [39405, 39405, 39405, 39405]},
            {cyclic, mdd, o12, [21606, 21516, 21516, 21516]},
            {cyclic, edd, none, [78310, 78310, 78310, 78310]},
            {cyclic, edd, o21, [21606, 21516, 21516, 21516]},
            {cyclic, edd, full, [21591, 21516, 21516, 21516]},
            {cyclic, au, none, [22202, 22202, 22202, 22202]},
            %% Cost falls as the colony learns.
            {random, mdd, none, [44529, 38166, 31336, 31336]},
            {random, mdd, o2, [37127, 28901, 28681, 26964]},
            {random, edd, none, [71672, 69903, 50045, 43594]}
        ]
    ].

golden_plain_test_() ->
    {timeout, 60, fun() ->
        Options = (?O:defaults())#{ants := 5},
        ?assertEqual([44529, 38166, 31336], costs(?P, ?P:new(golden(), Options, 7), [1, 4, 15]))
    end}.

golden() ->
    Instance = ?I:generate(#{n => 40, rdd => 0.2, tf => 0.6, seed => golden}),
    ?assertEqual(77247, ?I:tardiness(Instance, ?I:edd(Instance))),
    Instance.

%% The best cost after each of these numbers of further iterations.
costs(Module, Colony, Iterations) ->
    {Costs, _} =
        lists:mapfoldl(fun(Count, C0) -> {{Cost, _}, C} = Module:run(C0, Count), {Cost, C} end,
                       Colony, Iterations),
    Costs.

%% The fast colony gives the same results as the plain one.

plain_test_() -> sderl_prop:eunit("the fast colony is the plain one", 100, fun prop_plain/0).

prop_plain() ->
    ?FORALL(
        {Instance, Options, Seed, Told},
        {instance(12), options(), integer(0, 100_000), boolean()},
        begin
            Run = fun(Module) ->
                {First, Colony1} = Module:run(Module:new(Instance, Options, Seed), 3),
                Colony2 =
                    case Told of true -> told(Module, Colony1, Instance); false -> Colony1 end,
                {Second, _} = Module:run(Colony2, 4),
                {First, Second}
            end,
            equals(Run(?P), Run(?C))
        end
    ).

told(Module, Colony, Instance) ->
    Jobs = ?I:edd(Instance),
    Module:update(Colony, {?I:tardiness(Instance, Jobs), Jobs}).

%% A colony gives a schedule with its true cost, which is never worse than before.
schedule_test_() ->
    sderl_prop:eunit("a colony gives schedules of their cost, never worse ones", 100,
                     fun prop_schedule/0).

prop_schedule() ->
    ?FORALL(
        {#{n := N} = Instance, Options, Seed},
        {instance(80), options(), integer(0, 100_000)},
        begin
            {{Cost1, Jobs1}, Colony} = ?C:run(?C:new(Instance, Options, Seed), 2),
            {{Cost2, Jobs2}, _} = ?C:run(Colony, 3),
            conjunction([
                {jobs,
                 lists:all(fun(Jobs) -> lists:sort(Jobs) =:= lists:seq(1, N) end, [Jobs1, Jobs2])},
                {costs,
                 equals([Cost1, Cost2], [?I:tardiness(Instance, Jobs) || Jobs <- [Jobs1, Jobs2]])},
                {never_worse, Cost2 =< Cost1}
            ])
        end
    ).

%% No single move improves the result of a search.
local_test_() -> sderl_prop:eunit("after the local search no move helps", 200, fun prop_local/0).

prop_local() ->
    ?FORALL(
        {#{n := N} = Instance, Moves, Seed},
        {instance(15), oneof([{o1, [swap]}, {o2, [earlier]}, {o12, [swap, earlier]},
                              {full, [swap, earlier, later]}]), integer()},
        begin
            {Search, Kinds} = Moves,
            {_, Start} =
                lists:unzip(lists:sort([{erlang:phash2({Seed, J}), J} || J <- lists:seq(1, N)])),
            Solution = {?I:tardiness(Instance, Start), Start},
            {{Cost, Jobs} = End, Known} =
                sderl_aco_search:improve(Solution, sderl_aco_search:new(Instance, Search)),
            {Again, _} = sderl_aco_search:improve(Solution, Known),
            Better = [Near
                      || Kind <- Kinds, Near <- near(Kind, Jobs),
                         ?I:tardiness(Instance, Near) < Cost],
            conjunction([
                {better, equals([], Better)},
                {cost, equals(Cost, ?I:tardiness(Instance, Jobs))},
                {remembered, equals(End, Again)}
            ])
        end
    ).

near(Kind, Jobs) ->
    N = length(Jobs),
    [near(Kind, I, J, Jobs) || J <- lists:seq(1, N), I <- lists:seq(1, J - 1)].

near(swap, I, J, Jobs) ->
    {A, B} = {lists:nth(I, Jobs), lists:nth(J, Jobs)},
    [case Job of A -> B; B -> A; _ -> Job end || Job <- Jobs];
near(earlier, I, J, Jobs) ->
    put_at(I, lists:nth(J, Jobs), Jobs);
near(later, I, J, Jobs) ->
    put_at(J, lists:nth(I, Jobs), Jobs).

put_at(Place, Job, Jobs) ->
    {Before, After} = lists:split(Place - 1, lists:delete(Job, Jobs)),
    Before ++ [Job | After].

instance(Most) ->
    ?LET(
        {N, Rdd, Tf, Seed},
        {range(1, Most), oneof([0.2, 0.6, 1.0]), oneof([0.2, 0.6, 1.0]), integer(0, 100_000)},
        ?I:generate(#{n => N, rdd => Rdd, tf => Tf, seed => Seed})
    ).

options() ->
    ?LET(
        {Ants, Alpha, Beta, Q0, Rho, Heuristic, Search, Evaporate, Rng},
        {range(1, 5), oneof([1.0, 0.5]), oneof([2.0, 1.0, 3.0]), oneof([0.9, 0.5, 0.0, 1.0]),
         oneof([0.1, 0.0, 0.9]), oneof(?O:heuristics()), oneof(?O:searches()), boolean(),
         oneof([random, cyclic])},
        #{
            ants => Ants, alpha => Alpha, beta => Beta, q0 => Q0, rho => Rho,
            heuristic => Heuristic, search => Search, evaporate => Evaporate, rng => Rng
        }
    ).

%% Thousands of iterations: pheromone neither vanishes nor overflows.
long_test_() ->
    [
        {timeout, 60, fun() ->
            Instance = ?I:generate(#{n => 4, rdd => 0.2, tf => 1.0, seed => 1}),
            Options = (?O:defaults())#{ants := 1, rho := Rho, q0 := 0.5, evaporate := Evaporate},
            {{First, _}, Colony} = ?C:run(?C:new(Instance, Options, 1), 1),
            {{Cost, Jobs}, Late} = ?C:run(Colony, 20_000),
            ?assertEqual({[1, 2, 3, 4], Cost}, {lists:sort(Jobs), ?I:tardiness(Instance, Jobs)}),
            ?assert(Cost =< First),
            {{Cost, _}, _} = ?C:run(?C:update(Late, {1, lists:reverse(Jobs)}), 1)
        end}
     || {Rho, Evaporate} <- [{0.1, true}, {0.99, true}, {0.1, false}]
    ].

cyclic_test() ->
    Draw = fun(Random, Count) ->
        lists:mapfoldl(fun(_, R) -> sderl_aco_random:next(R) end, Random, lists:seq(1, Count))
    end,
    {Numbers, Random} = Draw(sderl_aco_random:new(cyclic, x), 12),
    ?assertEqual([9, 19, 29, 39, 49, 59, 69, 79, 89, 99, 9, 19], [round(100 * U) || U <- Numbers]),
    ?assertMatch({[U], _} when U < 0.1, Draw(sderl_aco_random:restart(Random), 1)).

tau0_test() ->
    Instance = golden(),
    ?assertEqual(1 / (4 * 77247), ?O:tau0(Instance, ?O:defaults())),
    ?assertEqual(0.5, ?O:tau0(Instance, (?O:defaults())#{tau0 => 0.5})),
    ?assertEqual(1.0, ?O:tau0(#{name => <<"early">>, n => 1, p => {1}, w => {1}, d => {5}},
                              ?O:defaults())).

%% Colonies in one node

colonies_test() ->
    Conf = #{
        instance => golden(), options => (?O:defaults())#{ants := 5}, engine => ?C, colonies => 8,
        global_iterations => 6, local_iterations => 5, seed => 3
    },
    #{best := {Cost, _}, round_best := Costs, ants := 1200, seconds := Seconds} =
        Outcome = sderl_aco_smp:run(Conf),
    ?assert(Seconds > 0),
    ?assertEqual({6, Cost}, {length(Costs), lists:last(Costs)}),
    ?assertEqual(lists:reverse(lists:sort(Costs)), Costs),
    ?assert(hd(Costs) > Cost),
    Same = maps:without([seconds], Outcome),
    ?assertEqual(Same, maps:without([seconds], sderl_aco_smp:run(Conf))),
    ?assertNotEqual(Same, maps:without([seconds], sderl_aco_smp:run(Conf#{seed := 4}))),
    ?assertEqual(undefined, sderl_aco_smp:rounds()).

%% A colony that dies ends the run, and the others end with it.
dies_test() ->
    {Before, Caller, Monitor} = endless(),
    [Colony | _] = (processes() -- Before) -- [Caller],
    true = exit(Colony, kill),
    receive
        {'DOWN', Monitor, process, Caller, Reason} -> ?assertEqual({colony, killed}, Reason)
    end,
    gone(processes() -- Before),
    ?assertEqual(undefined, sderl_aco_smp:rounds()).

%% When the caller ends, the colonies end.
caller_test() ->
    {Before, Caller, Monitor} = endless(),
    true = exit(Caller, kill),
    receive {'DOWN', Monitor, process, Caller, killed} -> ok end,
    gone(processes() -- Before),
    persistent_term:erase(sderl_aco_smp).

endless() ->
    Before = processes(),
    Conf = #{
        instance => golden(), options => ?O:defaults(), engine => ?C, colonies => 3,
        global_iterations => 1_000_000_000, local_iterations => 1, seed => 1
    },
    {Caller, Monitor} = spawn_monitor(fun() -> sderl_aco_smp:run(Conf) end),
    ok = sderl_fleet:await(fun() ->
        is_integer(sderl_aco_smp:rounds()) andalso sderl_aco_smp:rounds() > 2
    end, 60_000),
    {Before, Caller, Monitor}.

gone(Pids) ->
    Monitors = [monitor(process, Pid) || Pid <- Pids],
    [receive {'DOWN', Monitor, process, _, _} -> ok after 60_000 -> error({left, Pids}) end
     || Monitor <- Monitors].

%% Instances

generate_test() ->
    #{n := 200, p := P, w := W, d := D} =
        Instance = ?I:generate(#{n => 200, rdd => 0.4, tf => 0.6, seed => 5}),
    ?assertEqual(Instance, ?I:generate(#{n => 200, rdd => 0.4, tf => 0.6, seed => 5})),
    ?assertNotEqual(Instance, ?I:generate(#{n => 200, rdd => 0.4, tf => 0.6, seed => 6})),
    Sum = lists:sum(tuple_to_list(P)),
    Within = fun(Tuple, Least, Most) ->
        [V || V <- tuple_to_list(Tuple), V < Least orelse V > Most]
    end,
    ?assertEqual({[], [], []},
                 {Within(P, 1, 100), Within(W, 1, 10), Within(D, 0.2 * Sum - 1, 0.6 * Sum + 1)}),
    ?assertEqual(10, length(lists:usort(tuple_to_list(W)))).

standard_test() ->
    Set = ?I:standard(10, #{each => 2, seed => 1}),
    ?assertEqual({50, 50}, {length(Set), length(lists:uniq([maps:get(p, I) || I <- Set]))}),
    ?assertEqual(lists:duplicate(50, 10), [maps:get(n, I) || I <- Set]).

%% Computed by hand: the jobs are done at 3, 5 and 6.
tardiness_test() ->
    Instance = #{name => <<"hand">>, n => 3, p => {2, 1, 3}, w => {5, 1, 2}, d => {4, 9, 1}},
    ?assertEqual(2 * 2 + 5 * 1, ?I:tardiness(Instance, [3, 1, 2])),
    ?assertEqual([3, 1, 2], ?I:edd(Instance)).

%% Options

-define(E, sderl_aco_experiment).

options_test() ->
    ?assertMatch(
        {ok, #{variant := [smp], heuristic := mdd, search := none, rng := random, alpha := 1.0,
               beta := 2.0, q0 := 0.9, rho := 0.1, nodes := [5]} = Options} when
        not is_map_key(tau0, Options),
        checked([])
    ),
    ?assertMatch({ok, #{tau0 := 0.5, variant := [tl, sr], heuristic := edd}},
                 checked(["--tau0", "0.5", "--variant", "tl,sr", "--heuristic", "edd"])),
    {ok, #{variant := All}} = checked(["--compare"]),
    ?assertEqual(sderl_aco:variants(), All).

bad_options_test_() ->
    [
        {Says, fun() ->
            {error, Text} = checked(Args),
            ?assertMatch({_, [_ | _]}, {Text, string:find(Text, Says)})
        end}
     || {Args, Says} <- [
         {["--variant", "xy"],
          "--variant: there is no variant \"xy\"; there are plain, smp, tl, ml, gr, sr"},
         {["--variant", "tl,tl"], "names tl twice"},
         {["--heuristic", "mixed"], "--heuristic mixed is for --variant tl alone"},
         {["--heuristic", "mdd,au"], "one of mdd, au is needed"},
         {["--search", "o3"], "--search: there is no search \"o3\""},
         {["--rng", "dice"], "--rng: there is no kind of numbers \"dice\""},
         {["--ants", "0"], "--ants must be at least 1, not 0"},
         {["--colonies", "-1"], "--colonies must be at least 0, not -1"},
         {["--size", "10001"], "--size must be at most 10000"},
         {["--q0", "1.5"], "--q0: \"1.5\" is no number from 0 to 1"},
         {["--rho", "1"], "--rho: \"1\" is no number from 0 to 0.99"},
         {["--tau0", "0"], "--tau0: \"0\" is no number"},
         {["--beta", "1,2"], "--beta takes one number"},
         {["--chaos", "100"], "--chaos is for the variants gr and sr; smp does not recover"},
         {["--variant", "tl", "--nodes", "1"],
          "--nodes 1: the variants on several nodes need 2 or more"}
     ]
    ].

checked(Args) -> sderl_bench_options:checked("aco", ?E, Args).

chosen_test() ->
    All = [{#{name => iolist_to_binary([Start, $., integer_to_list(K)])}, K}
           || Start <- ["wt40", "wt50"], K <- lists:seq(1, 10)],
    Names = fun(Chosen) -> [binary_to_list(Name) || {#{name := Name}, _} <- Chosen] end,
    ?assertEqual(All, ?E:selected(All, #{match => [], sample => 0})),
    ?assertEqual(All, ?E:selected(All, #{match => [], sample => 100})),
    ?assertEqual(["wt50.1", "wt50.6", "wt40.1", "wt40.6"],
                 Names(?E:selected(All, #{match => ["wt50", "wt40"], sample => 2}))),
    ?assertEqual(["wt40.1", "wt40.4", "wt40.7"],
                 Names(?E:selected(All, #{match => ["wt40"], sample => 3}))),
    ?assertEqual([], ?E:selected(All, #{match => ["x"], sample => 3})).

overview_test() ->
    Run = fun(Cost, Known, Excess, Optimal) ->
        #{
            params => #{variant => smp, nodes => 1, instance => <<"x">>, run => 1},
            metrics => #{best_cost => Cost, best_known => Known, mean_excess_pct => Excess,
                         optimal => Optimal, seconds => 0.5, ants => 100}
        }
    end,
    Text = unicode:characters_to_list(?E:overview([Run(110, 100, 10.0, 0),
                                                   Run(0, 0, 0.0, 1),
                                                   Run(5, 0, undefined, 0),
                                                   Run(7, undefined, undefined, undefined)])),
    [_, _, Line | _] = string:split(Text, "\n", all),
    ?assertEqual(["smp", "1", "4", "3", "1", "10.000", "10.000", "30.5", "2.00", "200"],
                 string:lexemes(Line, " ")).

%% The conditions that every run must meet; otherwise the command fails.
verdict_test() ->
    Verdict = fun(Variant, Chaos, Changed) ->
        Metrics = maps:merge(#{names_left => 0, kills => 3, kills_not_back => 0,
                               links_as_expected => true}, Changed),
        case ?E:verdict([#{params => #{variant => Variant, chaos => Chaos}, metrics => Metrics}]) of
            ok -> ok;
            {error, Text} -> lists:flatten(Text)
        end
    end,
    Kill = #{every_ms => 10},
    ?assertEqual([ok, ok, ok],
                 [Verdict(sr, Kill, #{}), Verdict(gr, none, #{kills => 0}), ?E:verdict([])]),
    ?assertEqual(ok, ?E:verdict([#{params => #{variant => smp},
                                   metrics => #{names_left => 0, kills => 0}}])),
    ?assertEqual("gr: 2 names were left", Verdict(gr, none, #{names_left => 2})),
    ?assertEqual("sr: whether names were left is not known: a node did not answer",
                 Verdict(sr, Kill, #{names_left => undefined})),
    ?assertEqual("sr: 1 processes that were killed were not replaced",
                 Verdict(sr, Kill, #{kills_not_back => 1})),
    ?assertEqual("tl: nodes have other links than the tree and its groups, or the full mesh, give "
                 "them", Verdict(tl, none, #{links_as_expected => false})),
    ?assertEqual("sr: nothing was killed; give more --global, or less --chaos",
                 Verdict(sr, Kill, #{kills => 0})).

refused_test() ->
    Params = #{variant => smp, instance => golden()},
    ?assertEqual({error, {aco, {mixed, smp}}}, sderl_aco:run(Params#{heuristic => mixed}, "")),
    ?assertEqual({error, {aco, {chaos, ml}}},
                 sderl_aco:run(Params#{variant := ml, chaos => #{every_ms => 5}}, "")),
    Large = #{variant => plain,
              instance => ?I:generate(#{n => 9000, rdd => 0.6, tf => 0.6, seed => 1}),
              colonies => 1000},
    ?assertMatch({error, {aco, {memory, _, _}}}, sderl_aco:run(Large, "")),
    [?assertMatch([_ | _], unicode:characters_to_list(sderl_papers_reason:text({aco, Reason})))
     || Reason <- [{mixed, smp}, {chaos, ml}, {timeout, 5}, {memory, 2, 1}, {wrong, 1, [1]}]].
