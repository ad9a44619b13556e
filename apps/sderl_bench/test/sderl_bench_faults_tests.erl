%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_tests).

-include_lib("eunit/include/eunit.hrl").

journal(Held, Gone, Open) -> #{held => Held, gone => Gone, open => Open}.

pid(I) -> list_to_pid("<0." ++ integer_to_list(I) ++ ".0>").

compare_test() ->
    [P, Q, R] = [pid(I) || I <- [1, 2, 3]],
    Journals = [journal([{{a, 1}, P}], [{a, 2}], [{a, 3}]), journal([{{b, 1}, Q}], [], [])],
    Whole = [{{a, 1}, P}, {{b, 1}, Q}],
    Find = fun(Tables) -> sderl_bench_faults_tally:compare(Journals, Tables) end,
    Good = Find([Whole, lists:reverse(Whole)]),
    ?assertEqual(#{lost => [], came_back => [], equal => true}, Good),
    ?assert(sderl_bench_faults_tally:is_whole(Good)),
    %% A name with an operation under way may be in the tables, and so may a far name whose process
    %% was not told of it; but then in all tables.
    ?assert(sderl_bench_faults_tally:is_whole(Find([[{{a, 3}, R}, {{{far, n}, 7}, R} | Whole]
                                                    || _ <- [1, 2]]))),
    ?assertMatch(#{lost := [], came_back := [], equal := false},
                 Find([[{{a, 3}, R} | Whole], Whole])),
    ?assertMatch(#{lost := [{b, 1}]}, Find([Whole, [{{a, 1}, P}]])),
    ?assertMatch(#{lost := [{b, 1}]}, Find([[{{a, 1}, P}, {{b, 1}, R}]])),
    ?assertMatch(#{lost := [], came_back := [{a, 2}]}, Find([[{{a, 2}, R} | Whole]])),
    ?assertMatch(#{lost := [], came_back := [{c, 1}]}, Find([[{{c, 1}, R} | Whole]])).

held_twice_test() ->
    [P, Q, R] = [pid(I) || I <- [1, 2, 3]],
    Find = fun(Claims) ->
        sderl_bench_faults_tally:held_twice([#{claims => [C]} || C <- Claims])
    end,
    ?assertEqual([], Find([{a, P, 1, 5}, {a, Q, 5, 9}, {b, R, 2, infinity}])),
    ?assertEqual([{a, {P, Q}}], Find([{a, Q, 4, 9}, {a, P, 1, 5}])),
    %% A claim without an end overlaps all later ones. A claim whose process was told of the lost
    %% majority before the answer came held nothing.
    ?assertEqual([{a, {P, Q}}, {a, {P, R}}],
                 Find([{a, P, 1, infinity}, {a, Q, 2, 3}, {a, R, 7, infinity}])),
    ?assertEqual([], Find([{a, P, 4, 2}, {a, Q, 3, infinity}])).

metrics_test() ->
    Turn = sderl_bench_faults_tally:failed(),
    Turns = [Turn#{converged := I =/= 20, converge_ms := I, lost := I rem 2, answers := 10}
             || I <- lists:seq(20, 1, -1)],
    ?assertMatch(
        #{
            repetitions := 20,
            converged := 19,
            lost_acknowledged := 10,
            came_back := 0,
            answers := 200,
            converge_ms := #{p50 := 10, p99 := 20},
            rejoin_ms := #{p50 := undefined, p99 := undefined}
        },
        sderl_bench_faults_tally:metrics(Turns)
    ).

digest_test() ->
    Pairs = [{{n, I}, pid(I)} || I <- lists:seq(1, 20)],
    {A, B} = lists:split(7, Pairs),
    Whole = sderl_bench_faults_watch:digest(Pairs),
    ?assertEqual(Whole, sderl_bench_faults_watch:digest(lists:reverse(Pairs))),
    ?assertEqual(Whole, sderl_bench_faults_watch:sum([sderl_bench_faults_watch:digest(Part)
                                                      || Part <- [A, B]])),
    ?assertNotEqual(Whole, sderl_bench_faults_watch:digest([{{n, 21}, pid(1)} | tl(Pairs)])),
    ?assertEqual({0, 0}, sderl_bench_faults_watch:sum([])).

%% Each fault is found by its name. Faults of a coordinator or of the launch configuration do not
%% apply to `global`; a fault that needs silent links is impossible without network namespaces.
kinds_test() ->
    Kinds = sderl_bench_faults_kind:all(),
    Names = [Name || #{name := Name} <- Kinds],
    ?assertEqual(Names, lists:uniq(Names)),
    [?assertEqual({ok, Kind}, sderl_bench_faults_kind:named(atom_to_list(Name)))
     || #{name := Name} = Kind <- Kinds],
    ?assertEqual(error, sderl_bench_faults_kind:named("no_such_fault")),
    Global = [Name
              || #{name := Name} = Kind <- Kinds,
                 sderl_bench_faults_kind:applies(Kind, sderl_bench_faults_global)],
    ?assertEqual([kill_coordinator, stop_coordinator, cut_coordinator, rollout], Names -- Global),
    Here = [Name
            || #{name := Name} = Kind <- Kinds, sderl_bench_faults_world:possible(Kind, cookies)],
    ?assertEqual([glitch], Names -- Here).

options_test_() ->
    Says = fun(Args, Words) ->
        {2, stderr, Text} = sderl_cli:run(["bench", "faults" | Args]),
        Flat = unicode:characters_to_list(Text),
        [?assertMatch({W, [_ | _]}, {W, string:find(Flat, W)}) || W <- Words]
    end,
    [
        ?_test(Says(Args, Words))
     || {Args, Words} <- [
            {["--fault", "kil"], ["--fault", "\"kil\"", "kill_coordinator"]},
            {["--fault", "kill,kill"], ["twice; name it once"]},
            {["--impl", "pg"], ["--impl", "\"pg\"", "s_group, global"]},
            {["--nodes", "2"], ["--nodes", "at least 3"]},
            {["--nodes", "251"], ["--nodes", "at most 250"]},
            {["--repetitions", "0"], ["--repetitions", "at least 1"]},
            {["--hold-ms", "x"], ["--hold-ms", "whole number"]},
            {["--tick-ms", "0"], ["--tick-ms", "at least 1"]},
            {["--set-aside-ms", "1500"], ["--set-aside-ms", "two ticks", "2000"]},
            {["--consistency", "some"], ["--consistency", "available or majority"]},
            {["--faults", "kill"], ["--faults"]}
        ]
    ].

help_test() ->
    {0, stdout, Text} = sderl_cli:run(["bench", "faults", "--help"]),
    Flat = unicode:characters_to_list(Text),
    [?assertMatch({Name, [_ | _]}, {Name, string:find(Flat, atom_to_list(Name))})
     || #{name := Name} <- sderl_bench_faults_kind:all()],
    %% argparse wraps longer lines, and does it badly.
    [_Usage, Told] = string:split(Flat, "Breaks"),
    ?assertEqual([], [Line || Line <- string:split(Told, "\n", all), length(Line) > 80]).
