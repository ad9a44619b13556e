%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_command_tests).
-include_lib("eunit/include/eunit.hrl").

run(Args) ->
    case sderl_reproduce_command:run(string:lexemes(Args, " ")) of
        ok -> ok;
        {Kind, Text} -> {Kind, unicode:characters_to_list(Text)}
    end.

wrong_test_() ->
    [
        {Args, fun() ->
            {Kind, Text} = run(Args),
            ?assertEqual(Is, Kind),
            ?assertNotEqual(nomatch, string:find(Text, Words))
        end}
     || {Args, Is, Words} <- [
         {"C99 --out x", usage, "there is no claim C99; there are\n  C1"},
         {"c2 nonsense --out x", usage, "there is no claim nonsense"},
         {"C18 --out x", usage, "the experiment of C18 is not built yet; there are\n  C1"},
         {"C1 --scale huge --out x", usage, "--scale cannot be huge: it is small, medium or full"},
         %% The scale `test` is for tests only.
         {"C1 --scale test --out x", usage, "--scale cannot be test"},
         {"C1", usage, "--out is missing"},
         {"C1 --out", usage, "--out needs a value"},
         {"C1 --out x --budget-min 0", usage, "--budget-min cannot be 0"},
         {"C1 --out x --budget-min soon", usage,
          "--budget-min cannot be soon: it is a whole number"},
         {"C1 --out x --colour red", usage, "--colour"},
         {"C1 --scale small --out /proc/nowhere", error,
          "--out: cannot make the folder /proc/nowhere"},
         {"C1 --scale small --dry-run --out " ++ code:which(?MODULE), error,
          "is a file: name a folder"}
     ]
    ].

help_test() ->
    {help, Text} = run("--help"),
    [?assertNotEqual(nomatch, string:find(Text, Words))
     || Words <- ["--scale", "--budget-min", "--dry-run", "C4  ", "C16  "]].

completion_test() ->
    {options, Options, {words, Claims}} = sderl_reproduce_command:completion(),
    ?assert(lists:member("--budget-min", Options)),
    ?assertEqual(length(sderl_claim:all()), length(Claims)),
    ?assert(lists:member("C19", Claims)).

%% A dry run measures and writes nothing.
dry_run_test_() ->
    [?_assertEqual(ok, run(Args ++ " --dry-run --out /proc/nowhere"))
     || Args <- ["--scale small", "C1 c4 --scale small --budget-min 2"]].

%% Every point of every scale can be described, written and found again; at least one run of each
%% point of small fits.
scales_test_() ->
    [
        {atom_to_list(Name), fun() ->
            {ok, Scale} = sderl_reproduce_scale:scale(Name, fun(_) -> ok end),
            Points = lists:append([Module:points(Scale) || Module <- sderl_claim:all()]),
            ?assert(length(Points) > 0),
            [
                begin
                    ?assert(string:length(sderl_reproduce:described(Point)) > 0),
                    Result = sderl_bench_output:result(
                        Workload, (sderl_claim_points:written(Params))#{run => 1}, #{}, <<>>
                    ),
                    #{<<"experiment">> := E, <<"params">> := P} =
                        json:decode(sderl_bench_output:line(Result)),
                    ?assertEqual(sderl_claim_points:key(Point), sderl_claim_points:key(
                        #{experiment => E, params => P, metrics => #{}}
                    ))
                end
             || #{workload := Workload, params := Params} = Point <- Points
            ]
        end}
     || Name <- [test, small, medium, full]
    ].

%% One run of every point of each scale is planned in its order of importance, within the time; the
%% small scale has something of every claim.
budgets_test_() ->
    [
        {atom_to_list(Name), fun() ->
            {ok, #{budget_s := Budget, runs := Runs} = Scale} =
                sderl_reproduce_scale:scale(Name, fun(_) -> ok end),
            Claims = [#{id => sderl_claim:id(Module), share => sderl_claim:share(Module),
                        points => Module:points(Scale)}
                      || Module <- sderl_claim:all()],
            #{jobs := Jobs, left_out := LeftOut} =
                sderl_reproduce_plan:plan(Claims, [], Budget, Runs),
            ?assert(Budget =:= infinity orelse sderl_reproduce_plan:total(Jobs) =< Budget),
            Planned = [Point || #{point := Point} <- Jobs],
            Without = [sderl_claim:id(Module)
                       || Module <- sderl_claim:all(),
                          not lists:any(fun(Point) -> lists:member(Point, Planned) end,
                                        Module:points(Scale))],
            ?assertEqual([], Without),
            ?assert(Name =:= small orelse LeftOut =:= [])
        end}
     || Name <- [small, medium, full]
    ].

%% No point of the ant colonies needs a file, unless there is a folder of them; and what a point
%% names is what is read.
instances_test() ->
    {ok, #{aco := #{instances := Generated}} = Scale} =
        sderl_reproduce_scale:scale(small, fun(_) -> ok end),
    [?assertMatch(#{n := 100, seed := _}, Instance) || Instance <- Generated],
    {error, Text} = sderl_reproduce_scale:instances(Scale, "/proc/nowhere"),
    ?assertEqual(
        "SDERL_INSTANCES: there are no files /proc/nowhere/geiger/wt_100_prime_*.txt; without it "
        "instances are generated",
        unicode:characters_to_list(Text)
    ),
    Dir = filename:join([filename:basedir(user_cache, ?MODULE_STRING), os:getpid()]),
    Before = os:getenv("SDERL_INSTANCES"),
    try
        [ok = write(filename:join([Dir, "geiger", Name]))
         || Name <- ["wt_100_prime_10.txt", "wt_100_prime_2.txt", "wt_1000_1.txt",
                     "wt_100_prime_x.txt", "best_known.txt"]],
        {ok, #{aco := #{instances := Read}} = Real} = sderl_reproduce_scale:instances(Scale, Dir),
        ?assertEqual([<<"wt_100_prime_2">>, <<"wt_100_prime_10">>],
                     [Name || #{folder := <<"geiger">>, name := Name} <- Read]),
        [?assertMatch(<<_/binary>>, sderl_claim_points:text(sderl_reproduce:described(Point)))
         || Point <- sderl_claim_c5:points(Real)],
        %% A file that is not there, and an empty one.
        Run = fun(Name) ->
            {error, Reason} =
                sderl_reproduce_aco:run(#{instance => #{folder => <<"geiger">>, name => Name}}, ""),
            unicode:characters_to_list(sderl_papers_reason:text(Reason))
        end,
        true = os:putenv("SDERL_INSTANCES", Dir),
        [?assertNotEqual({nomatch, Run(Name)}, {string:find(Run(Name), Dir), Run(Name)})
         || Name <- [<<"none">>, <<"wt_100_prime_2">>]],
        true = os:unsetenv("SDERL_INSTANCES"),
        ?assertMatch(
            "the instance geiger/none is read from the folder that SDERL_INSTANCES names" ++ _,
            Run(<<"none">>)
        )
    after
        true = case Before of
            false -> os:unsetenv("SDERL_INSTANCES");
            _ -> os:putenv("SDERL_INSTANCES", Before)
        end,
        file:del_dir_r(Dir)
    end.

write(File) ->
    ok = filelib:ensure_dir(File),
    file:write_file(File, "").

%% From ten nodes to a hundred, a point of a claim has as many operations to judge by as it needs.
enough_operations_test() ->
    {ok, Scale} = sderl_reproduce_scale:scale(medium, fun(_) -> ok end),
    [
        ?assert(Rate * Nodes * Clusters * Pct / 100 * Seconds >= 300)
     || Module <- sderl_claim:all(),
        #{workload := debench,
          params := #{load := {open, Rate}, nodes := Nodes, clusters := Clusters, global_pct := Pct,
                      seconds := Seconds}} <- Module:points(Scale)
    ].

too_little_memory_test() ->
    None = fun(_) -> {error, {memory, #{needed_mib => 9000, available_mib => 10}}} end,
    [
        begin
            {error, Text} = sderl_reproduce_scale:scale(Name, None),
            ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Text), "9000 MiB"))
        end
     || Name <- sderl_reproduce_scale:names()
    ],
    {ok, Scale} = sderl_reproduce_scale:scale(full, fun(N) when N =< 150 -> ok; (_) -> None(0) end),
    ?assertMatch(#{nodes := 100, beyond := []}, Scale).
