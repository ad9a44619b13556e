%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_registry_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_registry_experiment).

%% Options

defaults_test() ->
    {ok, Options} = options([]),
    ?assertMatch(
        #{
            impl := [{"s_group", sderl_bench_impl_s_group},
                     {"yardstick", sderl_bench_impl_yardstick}],
            nodes := [10],
            clients := 20,
            repeat := 1
        },
        Options
    ).

options_test() ->
    {ok, Options} = options([
        "--impl", "global, pg", "--nodes", "12", "--group-size", "4", "--clients", "2", "--seconds",
        "1"
    ]),
    ?assertMatch(
        #{
            impl := [{"global", sderl_bench_impl_global}, {"pg", sderl_bench_impl_pg}],
            nodes := [12],
            group_size := 4
        },
        Options
    ).

%% Folders of registries that are not measured are not read, so that all runs can have the same
%% --peer options.
other_projects_test() ->
    Peers = ["--peer", "syn=nowhere/at/all", "--peer", "group=nowhere"],
    ?assertMatch({ok, #{peers := Found}} when map_size(Found) =:= 0,
                 options(["--impl", "pg" | Peers])),
    {ok, #{impl := All}} = options(["--compare"]),
    ?assertEqual(["s_group", "s_group_applied", "global", "pg", "yardstick"],
                 [Name || {Name, _} <- All]),
    ?assertMatch({error, "--peer syn: " ++ _}, options(["--compare" | Peers])).

bad_options_test_() ->
    [
        {Text, ?_assertEqual({error, Text}, options(Args))}
     || {Text, Args} <- [
         {"--impl: there is no implementation \"gproc\"; there are s_group, s_group_applied, "
          "global, pg, yardstick, syn, group, khepri",
          ["--impl", "pg,gproc"]},
         {"--impl: there is no implementation \"\"; there are s_group, s_group_applied, global, "
          "pg, yardstick, syn, group, khepri",
          ["--impl", ""]},
         {"--impl syn is another project's: compile it (toolchain/peers does) and give its folder "
          "with --peer syn=DIR",
          ["--impl", "pg,syn", "--peer", "group=."]},
         {"--peer: \"syn\" is not NAME=DIR, a name and a folder", ["--peer", "syn"]},
         {"--peer syn: there is no folder nowhere/at/all",
          ["--impl", "syn", "--peer", "syn=nowhere/at/all"]},
         {"--impl names pg twice; name it once",
          ["--impl", "pg,global,pg"]},
         {"--nodes: \"0\" is no whole number from 1 to 1000000", ["--nodes", "0"]},
         {"--clients must be at least 1, not 0", ["--clients", "0"]},
         {"--seconds must be at least 1, not -3", ["--seconds", "-3"]},
         {"--names must be at least 0, not -1", ["--names", "-1"]},
         {"--group-size must be at least 1, not 0", ["--group-size", "0"]},
         {"--group-size 3 does not divide --nodes 10: all groups are of equal size here", [
             "--group-size", "3"
         ]},
         {"--group-size 20 does not divide --nodes 10: all groups are of equal size here", [
             "--group-size", "20"
         ]}
     ]
    ].

%% `bench standard`, which makes the tables of the README, also takes registries of other projects.
standard_test_() ->
    [
        ?_assertEqual({error, Text},
                      sderl_bench_options:checked("standard", sderl_bench_standard, Args))
     || {Text, Args} <- [
            {"--peer syn: there is no folder nowhere", ["--peer", "syn=nowhere"]},
            {"--peer: \"syn\" is not NAME=DIR, a name and a folder", ["--peer", "syn"]},
            {"--seconds and --repeat must be at least 1", ["--repeat", "0"]}
        ]
    ].

options(Args) -> sderl_bench_options:checked("registry", ?E, Args).

%% Layout

groups_test() ->
    Groups = sderl_bench_layout:groups(#{nodes => 4, group_size => 2}),
    ?assertEqual([{g1, [1, 2]}, {g2, [3, 4]}], Groups),
    ?assertEqual([{g1, [a, b]}, {g2, [c, d]}], sderl_bench_layout:named(Groups, [a, b, c, d])).

at_once_test() ->
    ?assertEqual(
        [{g1, 2}, {g2, 1}],
        sderl_fleet_task:at_once([{g1, [a, b]}, {g2, [c]}], fun(_, Nodes) -> length(Nodes) end)
    ),
    ?assertExit({failed, broken},
                sderl_fleet_task:at_once([{g1, [a]}], fun(_, _) -> exit(broken) end)).

task_test_() -> {spawn, fun task_alone/0}.

task_alone() ->
    Endless = sderl_fleet_task:start(fun() -> receive after infinity -> ok end end),
    ?assertEqual({error, timeout}, sderl_fleet_task:result(Endless, 0)),
    ?assertEqual({messages, []}, process_info(self(), messages)).

%% Results

metrics_test() ->
    Metrics = metrics(100, true),
    ?assertMatch(
        #{
            pairs_per_s := 100.0,
            register_us := #{p50 := 0.01, p99 := 0.02},
            unregister_us := #{p50 := undefined, p99 := undefined},
            lookup_ns := 80.0,
            cpu_us_per_pair := 100.0,
            links_per_node_max := 2,
            bytes_per_op := 10.0,
            errors := 2,
            error_reasons := [<<"{register,no}">>],
            converged := true
        },
        Metrics
    ).

metrics(PairsPerS, Converged) ->
    Snapshot = fun(CpuMs) ->
        #{at_us => CpuMs, cpu_ms => CpuMs, memory_kib => 1, memory_peak_kib => 1,
          sent => #{c => {p, 0, 0, 0}, d => {p, 100 * CpuMs, 0, 0}}}
    end,
    Tally = #{
        pairs => PairsPerS,
        register => lists:foldl(fun sderl_bench_histogram:add/2, sderl_bench_histogram:new(),
                                [10, 20]),
        unregister => sderl_bench_histogram:new(),
        used => {Snapshot(0), Snapshot(10)},
        errors => 1,
        reasons => [{register, no}]
    },
    sderl_bench_registry:metrics(#{
        tallies => [Tally, Tally],
        seconds => 2,
        converged => Converged,
        nodes => [a, b],
        lookup_ns => 80.0
    }).

table_test() ->
    Text = table([{"s_group", 50}, {"yardstick", 100}, {"s_group", 30}, {"yardstick", 100}]),
    ?assertMatch({match, _},
                 re:run(Text, "s_group +40.0 \\(30.0..50.0\\) +0.40 \\(0.30..0.50\\) ")),
    ?assertMatch({match, _}, re:run(Text, "yardstick +100 +1.00 ")),
    ?assertMatch({match, _}, re:run(Text, "x yardstick .*CPU x yardstick")),
    ?assertMatch(nomatch, re:run(Text, "x global")).

no_ratio_to_itself_alone_test() ->
    ?assertMatch(nomatch, re:run(table([{"yardstick", 100}]), "x yardstick")).

promises_test() ->
    Runs = [run("pg", 1, true), run("s_group", 1, true), run("pg", 2, true)],
    Of = fun(Name) -> {ok, Module} = sderl_bench_impl:module(Name), Module:promise() end,
    ?assertEqual(
        lists:flatten(["\nWhen a call returns:\n  pg: ", Of("pg"), "\n  s_group: ", Of("s_group"),
                       "\n"]),
        unicode:characters_to_list(?E:promises(Runs))
    ),
    Version = (run("syn", 1, true))#{params := #{nodes => 2, version => <<"3.4.1">>}},
    ?assertMatch({match, _},
                 re:run(unicode:characters_to_list(?E:promises([Version])), "  syn 3.4.1: ")).

%% Digits and slashes are valid in the keys of every registry.
key_test() ->
    ?assertEqual(<<"1/0/23">>, sderl_bench_impl:key({1, 0, 23})).

group_layout_test() ->
    Plan = fun(Size) ->
        maps:get(groups, sderl_bench_impl_group:plan(#{nodes => 4, group_size => Size}))
    end,
    ?assertEqual([{all, [1, 2, 3, 4]}], Plan(4)),
    ?assertEqual([{g1, [1, 2]}, {g2, [3, 4]}], Plan(2)).

paths_test() ->
    Plan = (sderl_bench_impl_pg:plan(#{nodes => 2, group_size => 2}))#{paths => ["/a", "/b"]},
    #{families := [Family]} = sderl_bench_impl:fleet_plan(Plan, 2, ""),
    ?assertMatch(#{args := ["-pz", "/a", "-pz", "/b"], connect_all := true}, Family).

%% Where calls return before all nodes have the change, the table says when all had it.
settled_test() ->
    Settled = fun(Ms) -> (run("pg", 1, true))#{metrics := (metrics(1, true))#{settle_ms := Ms}} end,
    Shown = fun(Runs) -> unicode:characters_to_list(?E:table(Runs)) end,
    ?assertMatch({match, _},
                 re:run(Shown([Settled(7), Settled(30), Settled(9)]), "after 9 \\(7..30\\) ms")),
    ?assertMatch({match, _}, re:run(Shown([Settled(undefined)]), " yes\n")).

verdict_test() ->
    ?assertEqual(ok, ?E:verdict([run("pg", 1, true)])),
    {error, Text} = ?E:verdict([run("pg", 1, true), run("global", 1, false)]),
    ?assertEqual("the members' tables do not agree: global", unicode:characters_to_list(Text)).

table(Runs) ->
    unicode:characters_to_list(?E:table([run(Impl, Rate, true) || {Impl, Rate} <- Runs])).

run(Impl, Rate, Converged) ->
    #{impl => Impl, params => #{nodes => 2}, metrics => metrics(Rate, Converged)}.
