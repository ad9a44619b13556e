%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_tests).
-moduledoc """
`bin/sderl bench vm`: its options, its pure modules, the file of results, and what can be tried in
this virtual machine.
""".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_bench_vm_results, [file_of/2]).

text(Text) -> unicode:characters_to_binary(Text).

says(Words, {error, Text}) ->
    ?assertNotEqual({nomatch, text(Text)}, {string:find(text(Text), Words), text(Text)}).

%% ---------------------------------------------------------------- the matrix

matrix(More) ->
    maps:merge(#{schedulers => [2], flags => [], vary => [], otps => [""]}, More).

points_test() ->
    {ok, Points, []} = sderl_bench_vm_matrix:points(matrix(#{
        schedulers => [4, 2, 4], flags => [{"sub", "true"}],
        vary => [{"sbwt", [none, "short"]}, {"JMsingle", ["true"]}]
    })),
    ?assertEqual([{1, 2}, {2, 2}, {4, 2}, {1, 3}, {2, 3}, {4, 3}],
                 [{N, length(Flags)} || #{schedulers := N, flags := Flags} <- Points]),
    ?assertEqual(["+S", "4:4", "+sub", "true", "+sbwt", "short", "+JMsingle", "true"],
                 sderl_bench_vm_matrix:arguments(lists:last(Points))),
    ?assertEqual("+sub true, OTP 27",
                 sderl_bench_vm_matrix:text(#{flags => [{"sub", "true"}], otp => "27"})).

%% Each node has the given number of schedulers. A point with one node is always among the points.
points_of_nodes_test() ->
    {ok, Points, []} = sderl_bench_vm_matrix:points(matrix(#{nodes => [4, 2, 4],
                                                         vary => [{"sub", [none, "true"]}]})),
    ?assertEqual([{1, 2}, {2, 2}, {4, 2}, {1, 2}, {2, 2}, {4, 2}],
                 [{Nodes, N} || #{nodes := Nodes, schedulers := N} <- Points]),
    ?assertEqual(["+S", "2:2"], sderl_bench_vm_matrix:arguments(hd(Points))).

%% The ends are the smallest and the largest point of the first series.
ends_test() ->
    Ends = fun(More) ->
        {ok, Points, []} = sderl_bench_vm_matrix:points(matrix(More)),
        sderl_bench_vm_matrix:ends(Points)
    end,
    ?assertMatch([#{nodes := 1, flags := [], otp := ""}, #{nodes := 4, flags := [], otp := ""}],
                 Ends(#{nodes => [4, 2], vary => [{"sub", [none, "true"]}], otps => ["", "27"]})),
    ?assertMatch([#{schedulers := 1}], Ends(#{schedulers => [1]})).

size() ->
    oneof([{schedulers, pos_integer()}, {nodes, pos_integer(), pos_integer()}]).

size_test_() ->
    [
        sderl_prop:eunit("a line says what size it is of, as a point does", 200, fun() ->
            ?FORALL(Size, size(), begin
                Fields = sderl_bench_vm_size:fields(Size),
                Size =:= sderl_bench_vm_size:of_point(Fields) andalso
                    Size =:= sderl_bench_vm_size:of_line(json:decode(iolist_to_binary(
                        json:encode(Fields)))) andalso
                    sderl_bench_vm_size:number(Size) =< sderl_bench_vm_size:schedulers(Size)
            end)
        end),
        ?_assertEqual([~"1 scheduler", ~"3 schedulers", ~"1 node", ~"2 nodes of 4 schedulers"],
                      [text(sderl_bench_vm_size:text(Size))
                       || Size <- [{schedulers, 1}, {schedulers, 3}, {nodes, 1, 1}, {nodes, 2, 4}]])
    ].

in_turn_test() ->
    ?assertEqual([a, b, c, a, b],
                 sderl_bench_vm_nodes:in_turn(5, #{on => [a, b, c], nodes => 9})),
    ?assertEqual([node(), node()], sderl_bench_vm_nodes:in_turn(2, #{nodes => 9})).

%% The control has the same work on each node, also where the number of nodes does not divide that
%% of its processes, and its output does not depend on the nodes.
control_test_() ->
    [
        sderl_prop:eunit("each node has as much of the control", 200, fun() ->
            ?FORALL({Cores, Count}, {range(1, 64), range(1, 20)}, begin
                Nodes = [list_to_atom([$a + I]) || I <- lists:seq(1, Count)],
                #{processes := Processes, units := Units} = Settings =
                    sderl_bench_vm_spin:settings(short, Cores),
                Dealt = sderl_bench_vm_spin:dealt(Settings#{on => Nodes}),
                Of = [{length(Shares), lists:sum(Shares)}
                      || _ := Shares <- maps:groups_from_list(
                             fun({Node, _, _}) -> Node end,
                             fun({_, First, Last}) -> Last - First + 1 end, Dealt)],
                Each = (Processes + Count - 1) div Count,
                lists:append([lists:seq(First, Last) || {_, First, Last} <- Dealt])
                    =:= lists:seq(1, Units) andalso
                    [Each || _ <- Nodes] =:= [Many || {Many, _} <- Of] andalso
                    lists:all(fun({_, Sum}) -> abs(Sum - Units / Count) =< Each end, Of)
            end)
        end),
        ?_test(begin
            Settings = sderl_bench_vm_spin:settings(short, 1),
            Run = fun(Nodes) ->
                sderl_bench_vm_spin:run(run, Settings#{steps := 20, on => Nodes})
            end,
            ?assertEqual(Run([node()]), Run([node(), node(), node()])),
            ?assertExit(noconnection, Run([node(), 'gone@127.0.0.1']))
        end)
    ].

%% A combination of flags that exclude each other is left out, with a text that names it. The other
%% points stay.
left_out_points_test() ->
    {ok, Points, LeftOut} = sderl_bench_vm_matrix:points(matrix(#{
        vary => [{"sub", [none, "true"]}, {"scl", ["true", "false"]}]
    })),
    ?assertEqual([["+scl true"], ["+scl false"], ["+sub true +scl false"]],
                 lists:uniq([[sderl_bench_vm_matrix:text(Point)] || Point <- Points])),
    ?assertEqual(6, length(Points)),
    [Text] = LeftOut,
    ?assertMatch(<<"+sub true +scl true: balancing of utilisation", _/binary>>, text(Text)).

%% It is reported where a virtual machine silently did something else than its flags ask for.
ignored_test_() ->
    Facts = #{dirty_cpu => 2, dirty_cpu_online => 1, bind_type => thread_spread,
              bindings => [0, 1]},
    Of = fun(Name, Value, More) ->
        text(lists:join("; ", sderl_bench_vm_matrix:ignored(
            #{schedulers => 2, flags => [{Name, Value}], otp => ""}, maps:merge(Facts, More))))
    end,
    [
        {Name ++ " " ++ Value, ?_assertEqual(Said, Of(Name, Value, More))}
     || {Name, Value, More, Said} <- [
            {"sub", "true", #{}, <<>>},
            {"SDcpu", "2:1", #{}, <<>>},
            {"SDcpu", "2", #{}, <<>>},
            {"SDcpu", ":1", #{}, <<>>},
            {"SDcpu", "4:4", #{}, <<"it has 2 dirty CPU schedulers, 1 of them online: never more "
                                    "than schedulers">>},
            {"SDcpu", ":2", #{}, <<"it has 2 dirty CPU schedulers, 1 of them online: never more "
                                   "than schedulers">>},
            {"stbt", "ts", #{}, <<>>},
            {"stbt", "db", #{}, <<>>},
            {"sbt", "u", #{bind_type => unbound, bindings => [unbound, unbound]}, <<>>},
            {"stbt", "ps", #{}, ~"its schedulers are bound by thread_spread"},
            {"stbt", "ts", #{bind_type => unbound, bindings => [unbound, unbound]},
             ~"2 of its 2 schedulers are bound to no processor"},
            {"sbt", "db", #{bindings => [0, unbound]},
             ~"1 of its 2 schedulers are bound to no processor"}
        ]
    ].

refused_points_test_() ->
    [
        {Words, ?_test(says(Words, sderl_bench_vm_matrix:points(matrix(Matrix))))}
     || {Words, Matrix} <- [
            {"turns the compaction of load (+scl true) off",
             #{vary => [{"sub", ["true"]}, {"scl", ["true"]}]}},
            {"both bind schedulers", #{flags => [{"stbt", "db"}], vary => [{"sbt", ["db"]}]}},
            {"+sub is given twice", #{flags => [{"sub", "true"}], vary => [{"sub", [none]}]}},
            {"more than 10000 are refused",
             #{vary => [{[C], lists:duplicate(20, "x")} || C <- "pqr"], schedulers => [2, 3]}}
        ]
    ].

flags_test() ->
    ?assertEqual({ok, [{"sbt", "db"}, {"Mea", ""}, {"swt", "low"}]},
                 sderl_bench_vm_matrix:flags(" +sbt db +Mea +swt  low ")),
    %% The virtual machine also accepts a value attached to its flag.
    ?assertEqual({ok, [{"SDcpu", "4:4"}, {"sbt", "db"}, {"SDio10", ""}, {"swtlow", ""},
                       {"A10", ""}]},
                 sderl_bench_vm_matrix:flags("+SDcpu4:4 +sbtdb +SDio10 +swtlow +A10")),
    says("no flag of the virtual machine", sderl_bench_vm_matrix:flags("+sbtdb db")),
    [says("use --schedulers", sderl_bench_vm_matrix:flags(Flags))
     || Flags <- ["+S 4", "+S4", "+S:2", "+SP50"]],
    [says("cannot be given here", sderl_bench_vm_matrix:flags(Flags))
     || Flags <- ["+Bi", "+B i", "+ifoo", "+v"]],
    says("cannot be given here", sderl_bench_vm_matrix:vary("S4=1,2")),
    says("no flag of the virtual machine", sderl_bench_vm_matrix:flags("+sub true -name x")),
    ?assertEqual({ok, {"sbwt", [none, "short"]}}, sderl_bench_vm_matrix:vary("+sbwt=-,short,-")),
    [says("FLAG=VALUE,VALUE", sderl_bench_vm_matrix:vary(Wrong))
     || Wrong <- ["sbwt", "=x", "sbwt=", "sbwt=a,,b", "s b=x", "sbwt=a b"]],
    says("+S cannot be given here", sderl_bench_vm_matrix:vary("S=1,2")).

%% ---------------------------------------------------------------- options

checked(Args) -> sderl_bench_options:checked("vm", sderl_bench_vm_experiment, Args).

options_test_() ->
    [
        {Words, {timeout, 120, ?_test(says(Words, checked(Args)))}}
     || {Words, Args} <- [
            {"no program nonsense", ["--program", "nonsense"]},
            {"lists is no program: it has no summary/0", ["--program", "lists"]},
            {"--schedulers", ["--schedulers", "0"]},
            {"--nodes: \"0\" is no whole number from 1 to 100", ["--nodes", "0"]},
            {"--schedulers takes one number with --nodes", ["--nodes", "2", "--schedulers", "1,2"]},
            {"--program ets_test: it runs on one node (its table is of one node); those that run "
             "on several are ", ["--nodes", "2", "--program", "bang,ets_test"]},
            {"--suite small: its program ets_random_ops runs on one node (its table is of one "
             "node); those that run on several are ", ["--nodes", "1,2", "--suite", "small"]},
            {"100 nodes of 11 schedulers have more than 1024 schedulers together",
             ["--nodes", "100", "--schedulers", "11"]},
            {"sderl_bench_vm_mortal: its settings have the key on",
             ["--nodes", "2", "--size", "long", "--program", "sderl_bench_vm_mortal"]},
            {"a call runs on one node", ["--nodes", "2", "--mfa", "lists:seq(1,2)"]},
            {"there is no size huge", ["--size", "huge"]},
            {"lists has no such function with 4 arguments", ["--mfa", "lists:seq(1,2,3,4)"]},
            {"module:function(Term, Term)", ["--mfa", "lists"]},
            {"module:function(Term, Term)", ["--mfa", "lists:seq(1,X)"]},
            {"name its folder with --pa", ["--mfa", "sderl_no_such_module:run()"]},
            {"there is no such folder", ["--pa", "/no/such"]},
            {"no bin/erl in it", ["--otp", "27=/no/such"]},
            {"NAME=PATH", ["--otp", "27"]},
            {"two OTPs are called", ["--otp", erlang:system_info(otp_release) ++ "=/bin/sh"]},
            {"--width", ["--width", "0"]},
            {"--budget-min", ["--budget-min", "x"]},
            {"at least 1", ["--runs", "0"]},
            {"--least must be at least 1, not 0", ["--least", "0"]},
            {"there is no suite large; there is small", ["--suite", "large"]},
            {"--suite and --program", ["--suite", "small", "--program", "bang"]},
            {"--show and --compare", ["--show", "a", "--compare", "a", "b"]},
            {"--strict is for --compare", ["--strict"]},
            {"--threshold", ["--compare", "a", "b", "--threshold", "x1"]},
            {"given twice", ["--mfa", "lists:seq(1,2)", "--mfa", "lists:seq(1,2)"]},
            {"--seed", ["--seed", "x"]},
            {"there is no program программа", ["--program", "программа"]},
            {"--matrix /no/such", ["--matrix", "/no/such"]}
        ]
    ].

with_file(Content, Fun) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         lists:concat(["sderl_vm_", os:getpid(), "_",
                                       erlang:unique_integer([positive])])),
    ok = file:write_file(File, Content),
    try Fun(File) after file:delete(File) end.

%% The default of --least is the number of virtual machines with which a comparison of two files of
%% the same command has verdicts. A given number is not changed.
least_test_() ->
    {timeout, 120, fun() ->
        Of = fun(Args) ->
            {ok, #{do := {measure, #{least := Least, programs := [_ | Programs]}}}} =
                checked(["--schedulers", "2" | Args]),
            {Least, lists:sum([length(Points) || #{points := Points} <- Programs])}
        end,
        ?assertEqual({6, 2}, Of(["--program", "bang"])),
        {Least, Count} = Of([]),
        ?assert(Count > 40),
        ?assertEqual(sderl_bench_sample:least(sderl_bench_verdict:level(Count)), Least),
        ?assertEqual({3, Count}, Of(["--least", "3"])),
        {7, 12} = Of(["--suite", "small"]),
        Width = fun(Args) ->
            {ok, #{do := {measure, #{width := Width}}}} = checked(Args),
            Width
        end,
        ?assertEqual([0.05, 0.01, 0.02],
                     [Width(Args) || Args <- [["--suite", "small"],
                                              ["--suite", "small", "--width", "1"],
                                              ["--program", "bang"]]]),
        ?assertEqual([6, 6, 7, 8], [sderl_bench_vm_plan:least(N) || N <- [1, 4, 5, 44]])
    end}.

%% Without --program all programs that can run on several nodes are measured. The control is
%% measured on the least and the greatest number of nodes.
nodes_options_test_() ->
    {timeout, 120, fun() ->
        {ok, #{do := {measure, #{programs := [Control | Programs]}}}} =
            checked(["--nodes", "2,3"]),
        ?assertMatch(#{name := ~"control", points := [#{nodes := 1}, #{nodes := 3}]}, Control),
        ?assertEqual([~"bang", ~"big", ~"city", ~"ehb", ~"genstress", ~"mbrot", ~"orbit_int",
                      ~"quorum_ring", ~"ran", ~"serialmsg", ~"timer_wheel"],
                     lists:sort([Name || #{name := Name} <- Programs])),
        [?assertMatch([#{nodes := 1, schedulers := 1}, #{nodes := 2}, #{nodes := 3}], Points)
         || #{points := Points} <- Programs]
    end}.

release_test_() ->
    {timeout, 120, fun release/0}.

release() ->
    with_file("", fun(File) ->
        ok = file:delete(File),
        Dir = File ++ "_release",
        ok = sderl_bench_vm_releases:make(Dir, [{answer, 42}]),
        Refused = fun(Words, Args) -> says(Words, checked(["--release", Dir | Args])) end,
        Tiny = fun(Call) -> ["--mfa", "sderl_tiny:" ++ Call] end,
        In = fun(Name) -> filename:join([Dir, "releases" | Name]) end,
        try
            {ok, #{do := {measure, #{release := Release, modules := Modules, header := Header}}}} =
                checked(["--release", Dir | Tiny("answer(1)")]),
            ?assertMatch(#{name := "tiny", version := "1.0",
                           paths := [{sderl_more, _}, {sderl_tiny, _}],
                           start := [{kernel, _}, {stdlib, _}, {sderl_more, load},
                                     {sderl_tiny, permanent}]}, Release),
            ?assertNot(lists:member(sderl_tiny, Modules)),
            ?assertMatch(#{settings := #{release := #{name := ~"tiny", hash := _}}}, Header),
            Refused("sderl_tiny has no such function with 0 arguments", Tiny("answer()")),
            Refused("the release tiny has no module sderl_other", ["--mfa", "sderl_other:f()"]),
            Refused("name a call of its code with --mfa", []),
            Refused("--release and --program", ["--program", "bang"]),
            Refused("--release and --suite", ["--suite", "small" | Tiny("answer(1)")]),
            Refused("--release and --pa", ["--pa", "/tmp" | Tiny("answer(1)")]),
            hash_of_release(Dir, Release),
            ok = file:write_file(In(["1.0", "more.rel"]),
                                 "{release, {\"more\", \"1.0\"}, {erts, \"17.1\"}, []}."),
            Refused("has several .rel files of releases of version 1.0", Tiny("answer(1)")),
            ok = file:delete(In(["1.0", "more.rel"])),
            {ok, Rel} = file:read_file(In(["1.0", "tiny.rel"])),
            ok = file:write_file(In(["1.0", "tiny.rel"]),
                                 "{release, {\"tiny\", \"1.0\"}, {erts, \"17.1\"}, "
                                 "[{sderl_tiny, <<\"1.0\">>}]}."),
            Refused("tiny.rel lists what is no application", Tiny("answer(1)")),
            ok = file:write_file(In(["1.0", "tiny.rel"]), Rel),
            ok = file:write_file(In(["1.0", "sys.config"]), "[{sderl_tiny, [}]."),
            Refused("sys.config: 1", Tiny("answer(1)")),
            ok = file:rename(In(["1.0", "sys.config"]), In(["1.0", "sys.config.src"])),
            Refused("but its .src", Tiny("answer(1)")),
            ok = file:delete(In(["1.0", "sys.config.src"])),
            ?assertMatch({ok, #{config := none}}, sderl_bench_vm_release:read(Dir)),
            ok = file:del_dir_r(filename:join(Dir, "lib")),
            Refused("its application sderl_more has no folder in lib", Tiny("answer(1)")),
            ok = file:write_file(In(["1.0", "tiny.rel"]), "{release, {\"tiny\", \"2\"}, x, []}."),
            Refused("has no .rel file of a release of version 1.0", Tiny("answer(1)")),
            ok = file:write_file(In(["start_erl.data"]), "17.1"),
            Refused("has not two words", Tiny("answer(1)")),
            ok = file:delete(In(["start_erl.data"])),
            Refused("there is no built release: releases/start_erl.data: no such file",
                    Tiny("answer(1)"))
        after
            file:del_dir_r(Dir)
        end,
        ok = file:write_file(File, "")
    end).

%% A change of any file of a release changes its hash.
hash_of_release(Dir, #{rel := Rel} = Release) ->
    Tiny = filename:join([Dir, "lib", "sderl_tiny-1.0"]),
    Priv = filename:join([Tiny, "priv", "data", "table"]),
    ok = filelib:ensure_dir(Priv),
    Changed = fun(File, Content) ->
        ok = file:write_file(File, Content, [append]),
        sderl_bench_vm_release:hash(Release)
    end,
    Hashes = [sderl_bench_vm_release:hash(Release), Changed(Priv, "1"), Changed(Priv, "2"),
              Changed(filename:join([Tiny, "ebin", "sderl_tiny.app"]), "%\n"),
              Changed(Rel, "%\n")],
    ?assertEqual(Hashes, lists:uniq(Hashes)).

matrix_file_test_() ->
    {timeout, 120, fun matrix_file/0}.

matrix_file() ->
    with_file("{mfa, \"lists:seq(1,9)\"}. {vary, \"sub=-,true\"}. {schedulers, \"1,3\"}.",
              fun(File) ->
        {ok, #{do := {measure, #{programs := Programs, header := Header}}}} =
            checked(["--matrix", File, "--schedulers", "2"]),
        [#{name := ~"control", points := [_, _]},
         #{name := ~"lists:seq(1,9)", points := Points}] = Programs,
        ?assertEqual([1, 2, 1, 2], [N || #{schedulers := N} <- Points]),
        #{command := Command, settings := #{points := [_, _, _, _], code := Code}} = Header,
        #{lists := <<_:32/binary>>, sderl_bench_vm_spin := _, sderl_bench_vm_loop := _} = Code,
        ?assertEqual(text(["bin/sderl bench vm --matrix ", File, " --schedulers 2"]), Command)
    end),
    {ok, #{do := {measure, #{header := #{command := Named}}}}} =
        checked(["--mfa", "lists:seq(1,9)", "--out", "результат.jsonl"]),
    ?assertNotEqual(nomatch, string:find(Named, "--out 'результат.jsonl'")),
    %% Programs on the command line replace those of the file, whether they are named by --program
    %% or by --suite.
    [with_file(Content, fun(File) ->
        {ok, #{do := {measure, #{programs := [_ | Programs]}}}} =
            checked(["--matrix", File | Args]),
        ?assertEqual(Count, length(Programs))
    end) || {Count, Content, Args} <- [
        {1, "{suite, \"small\"}.", ["--program", "bang"]},
        {6, "{program, \"bang\"}.", ["--suite", "small"]}
    ]],
    with_file("{suite, \"small\"}. {program, \"bang\"}.", fun(File) ->
        says("--suite and --program", checked(["--matrix", File])) end),
    with_file("{colour, \"red\"}.", fun(File) ->
        says("is none of its terms", checked(["--matrix", File])) end),
    with_file("{schedulers", fun(File) -> says(File, checked(["--matrix", File])) end).

%% ---------------------------------------------------------------- the plan

works(Count) ->
    [#{id => I, control => I =:= 1} || I <- lists:seq(1, Count)].

plan(Seed) -> #{seed => Seed, width => 0.02, least => 6}.

%% The race is on two schedulers. A program that is far behind is left out when all programs have
%% been measured twice, not before. The others are measured on one scheduler when they have enough
%% virtual machines on two.
race_test() ->
    Id = fun(Name, N) -> {Name, {{schedulers, N}, {<<>>, <<>>}}} end,
    Works = [#{id => Id(Name, N), control => Name =:= c} || Name <- [c, x, y, z], N <- [1, 2]],
    Seen = fun(Lists) ->
        #{Id(Name, 2) => #{times => maps:from_list(lists:enumerate(Times)), failed => 0}
          || Name := Times <- Lists}
    end,
    Of = fun(Round, Some) ->
        lists:sort([{Name, N} || #{id := {Name, {{schedulers, N}, _}}, control := false}
                                     <- sderl_bench_vm_plan:round(Works, Round, Some,
                                                                  (plan(1))#{race => true})])
    end,
    All = [{x, 2}, {y, 2}, {z, 2}],
    ?assertEqual(All, Of(1, #{})),
    ?assertEqual(All, Of(2, Seen(#{x => [1.0], y => [9.0], z => [1.1]}))),
    Two = #{x => [1.0, 1.1], y => [1.66, 9.0], z => [1.64, 9.0]},
    ?assertEqual([{x, 2}, {z, 2}], Of(3, Seen(Two))),
    %% When an interrupted round goes on, it has the same points as before.
    ?assertEqual([{z, 2}], Of(3, Seen(Two#{x := [1.0, 1.1, 9.9]}))),
    ?assertEqual([{y, 2}], Of(2, Seen(Two#{y := [1.66]}))),
    ?assertEqual([], Of(2, Seen(Two))),
    Many = Seen(#{x => [1.0 + I / 1.0e4 || I <- lists:seq(1, 6)], y => [9.0, 9.0],
                  z => [1.1, 1.5, 1.1, 1.9, 1.0, 2.0]}),
    ?assertEqual([{x, 1}, {z, 1}, {z, 2}], Of(7, Many)),
    %% There may be no more rounds, so the points on one scheduler also catch up in earlier ones.
    ?assertEqual([{x, 1}, {z, 1}], Of(1, Many)),
    %% A point that was first measured in a late round and is known well enough does not catch up.
    Late = #{times => #{R => 1.0 + R / 1.0e4 || R <- lists:seq(7, 12)}, failed => 0},
    ?assertEqual([{z, 1}], Of(1, Many#{Id(x, 1) => Late})),
    ?assertEqual([], Of(1, Many#{Id(x, 1) => Late, Id(z, 1) => Late})),
    %% If there are fewer rounds than a choice needs, one virtual machine in each round is enough.
    Few = Seen(#{x => [1.0, 1.1, 1.2], y => [9.0, 9.0], z => [1.1, 1.5, 1.1]}),
    ?assertEqual([], Of(3, Few)),
    ?assertEqual([{x, 1}, {z, 1}],
                 lists:sort([{Name, N}
                             || #{id := {Name, {{schedulers, N}, _}}, control := false}
                                    <- sderl_bench_vm_plan:round(
                                           Works, 3, Few, (plan(1))#{race => true, rounds => 3})])),
    %% The race does not wait for a point that fails again and again.
    Broken = (Seen(Two))#{Id(z, 2) := #{times => #{}, failed => 2}},
    ?assertEqual([{x, 2}], Of(3, Broken)),
    ?assertMatch(#{names := []}, sderl_bench_vm_race:behind([])).

plan_test_() ->
    [
        sderl_prop:eunit("each round has all points once, in an order of its own", 100, fun() ->
            ?FORALL({Count, Round, Seed}, {range(2, 30), range(1, 50), integer()}, begin
                Of = fun(R) -> [Id || #{id := Id} <- sderl_bench_vm_plan:round(
                    works(Count), R, #{}, plan(Seed))] end,
                Of(Round) =:= Of(Round) andalso
                    lists:sort(Of(Round)) =:= lists:seq(1, Count) andalso
                    (Count < 10 orelse Of(Round) =/= Of(Round + 1))
            end)
        end),
        ?_test(begin
            Steady = #{times => #{R => 100.0 + R / 100 || R <- lists:seq(1, 6)}, failed => 0},
            Wide = #{times => #{R => 100.0 * R || R <- lists:seq(1, 6)}, failed => 0},
            Ids = fun(Round, Seen) ->
                lists:sort([Id || #{id := Id} <- sderl_bench_vm_plan:round(works(4), Round, Seen,
                                                                           plan(1))])
            end,
            %% Point 2 is known well enough, point 3 is not, and point 4 has failed. The control,
            %% point 1, is measured as long as another point is.
            Seen = #{1 => Steady, 2 => Steady, 3 => Wide, 4 => #{times => #{}, failed => 2}},
            ?assertEqual([1, 3], Ids(7, Seen)),
            ?assertEqual([], Ids(7, Seen#{3 := Steady})),
            %% In round 6 all points but the failed one were measured, so nothing is left of it. In
            %% round 7 point 2 is measured again if it is not known well enough.
            ?assertEqual([], Ids(6, Seen)),
            ?assertEqual([1, 2, 3], Ids(7, Seen#{2 := Wide}))
        end)
    ].

%% ---------------------------------------------------------------- the file

header(More) ->
    maps:merge(#{settings => #{runs => 5}, machine => #{cores => 2}, seed => 7}, More).

store_test_() ->
    {timeout, 120, fun store/0}.

store() ->
    with_file("", fun(File) ->
        ok = file:delete(File),
        {ok, S1, #{~"seed" := 7}, []} = sderl_bench_vm_store:open(File, header(#{})),
        ok = sderl_bench_vm_store:append(S1, #{kind => vm, x => 1.23456789012}),
        ok = sderl_bench_vm_store:close(S1),
        {ok, Whole} = file:read_file(File),
        %% Wherever the last line is cut off, only this line is lost.
        [begin
            ok = file:write_file(File, [Whole, binary:part(~"{\"kind\":\"vm\"}\n", 0, Length)]),
            {ok, S2, _, [#{~"x" := 1.234568}]} =
                sderl_bench_vm_store:open(File, header(#{seed => 8})),
            ok = sderl_bench_vm_store:append(S2, #{kind => more}),
            ok = sderl_bench_vm_store:close(S2),
            {ok, #{~"seed" := 7}, [_, #{~"kind" := ~"more"}]} = sderl_bench_vm_store:read(File)
         end || Length <- [0, 1, 7, 13]],
        says("other settings (runs)",
             sderl_bench_vm_store:open(File, header(#{settings => #{runs => 6}}))),
        %% Nothing was measured yet, so a command with other settings may use the file.
        ok = file:write_file(File, hd(binary:split(Whole, ~"\n"))),
        ok = file:write_file(File, "\n{\"kind\":\"otp\"}\n{\"kind\":\"left_out\"}\n", [append]),
        {ok, S0, #{~"settings" := #{~"runs" := 6}}, []} =
            sderl_bench_vm_store:open(File, header(#{settings => #{runs => 6}})),
        ok = sderl_bench_vm_store:close(S0),
        ok = file:write_file(File, Whole),
        says("another machine",
             sderl_bench_vm_store:open(File, header(#{machine => #{cores => 4}}))),
        ok = file:write_file(File, [Whole, "{\n", Whole]),
        says("line 3 of " ++ File ++ " is damaged", sderl_bench_vm_store:read(File)),
        ok = file:write_file(File, "{\"a\":1}\n"),
        says("has no results", sderl_bench_vm_store:open(File, header(#{}))),
        ok = file:write_file(File, "{\"vm_la"),
        says("has no whole line", sderl_bench_vm_store:open(File, header(#{}))),
        ?assertEqual({ok, ~"{\"vm_la"}, file:read_file(File))
    end),
    says("is a folder", sderl_bench_vm_store:read("/tmp")),
    says("cannot write", sderl_bench_vm_store:open("/no/such/folder/file", header(#{}))).

storable_test() ->
    ?assert(sderl_bench_vm_store:is_storable(#{a => [1, 2.5, b, ~"c", undefined], ~"d" => #{}})),
    [?assertNot(sderl_bench_vm_store:is_storable(Term))
     || Term <- [#{a => {1, 2}}, #{a => self()}, #{a => [1 | 2]}, #{a => <<255>>},
                 #{{a, b} => 1}]].

full_disk_test_() ->
    {timeout, 120, fun full_disk/0}.

full_disk() ->
    case file:open("/dev/full", [append, raw, binary]) of
        {ok, Device} ->
            ok = file:close(Device),
            says("no space left on device; what was measured before is in it",
                 sderl_bench_vm_store:append(full(), #{kind => vm}));
        {error, _} ->
            ok
    end.

full() ->
    {ok, Device} = file:open("/dev/full", [append, raw, binary]),
    {"/dev/full", Device, ~"/dev/full.lock"}.

%% A file that another process is writing is refused. The lock of a process that has ended is
%% ignored.
two_writers_test_() ->
    {timeout, 120, fun two_writers/0}.

two_writers() ->
    with_file("", fun(File) ->
        Other = open_port({spawn_executable, os:find_executable("cat")}, [use_stdio, binary]),
        {os_pid, Pid} = erlang:port_info(Other, os_pid),
        {ok, Stat} = file:read_file(lists:concat(["/proc/", Pid, "/stat"])),
        Began = lists:nth(22, string:lexemes(Stat, " ")),
        ok = file:write_file(File ++ ".lock", [integer_to_list(Pid), " ", Began, "\n"]),
        says(lists:concat(["is written by another command, process ", Pid]),
             sderl_bench_vm_store:open(File, header(#{}))),
        ok = file:write_file(File ++ ".lock", [integer_to_list(Pid), " 1\n"]),
        true = port_close(Other),
        {ok, Store, _, []} = sderl_bench_vm_store:open(File, header(#{})),
        ok = sderl_bench_vm_store:close(Store),
        ?assertNot(filelib:is_file(File ++ ".lock"))
    end).

%% ---------------------------------------------------------------- from lines to words

summary_test_() ->
    {timeout, 120, fun summary/0}.

summary() ->
    {Header, Lines} = file_of(fun(N) -> 1.0e6 * (0.2 + 0.8 / N) end, 8),
    Summary = #{programs := [_, #{series := [#{rows := Rows} = Series]}], vms := 48, rounds := 8} =
        sderl_bench_vm_summary:of_lines(Header, Lines),
    [#{speedup := #{value := 1.0}}, #{speedup := #{value := S2, low := Low, high := High}}, _] =
        Rows,
    ?assert(abs(S2 - 1 / 0.6) < 0.01 andalso Low =< S2 andalso S2 =< High),
    #{amdahl := #{serial := Serial}, serial := {A, B}} = Series,
    ?assert(abs(Serial - 0.2) < 0.001 andalso A =< Serial andalso Serial =< B),
    Text = text(sderl_bench_vm_table:text(Summary)),
    [?assertNotEqual({nomatch, Words, Text}, {string:find(Text, Words), Words, Text})
     || Words <- ["serial share 20", "of 4 schedulers had no work", "too few processes", "####...",
                  "p (a 1)", "Universal Scalability Law"]],
    ?assertEqual([], sderl_bench_vm_table:failures(Summary)),
    [{#{program := ~"control"}, _} | _] = Cells = sderl_bench_vm_table:rows(Summary),
    ?assertEqual(6, length(Cells)).

%% The time and the reductions of one operation. Older files do not have the number of operations.
operations_test_() ->
    {timeout, 120, fun operations/0}.

operations() ->
    {#{~"settings" := #{~"programs" := [Control, P]} = Settings} = Header, Lines} =
        file_of(fun(N) -> 1.0e6 / N end, 8),
    Of = fun(Program) -> sderl_bench_vm_summary:of_lines(
        Header#{~"settings" := Settings#{~"programs" := [Control, Program]}}, Lines
    ) end,
    Known = fun(Reductions) ->
        Of(P#{~"operations" => #{~"count" => 500, ~"unit" => ~"message",
                                 ~"reductions" => Reductions}})
    end,
    Summary = Known(true),
    Text = text(sderl_bench_vm_table:text(Summary)),
    ?assertMatch({match, _}, re:run(Text, "one message of 500: 2.00 us \\(.*\\) and 2.00 "
                                          "reductions on 1 scheduler; 1.00 us .* on 2 schedulers; "
                                          "500 ns")),
    ?assertMatch([_, _, _,
                  {_, #{operations := 500, unit := ~"message", operation_reductions := 2.0}} | _],
                 sderl_bench_vm_table:rows(Summary)),
    %% A program that also does work that is not timed has no reductions for each operation, because
    %% they would include this work.
    ?assertMatch({match, _}, re:run(text(sderl_bench_vm_table:text(Known(false))),
                                    "one message of 500: 2.00 us \\([^)]*\\) on 1 scheduler; ")),
    ?assertEqual(nomatch, string:find(text(sderl_bench_vm_table:text(Of(P))), "one message")),
    ?assertMatch({ok, #{count := 3, unit := ~"element", reductions := false}},
                 sderl_bench_vm_program:operations(sderl_bench_vm_mortal, #{length => 3})),
    [?assertMatch({error, _}, sderl_bench_vm_program:operations(sderl_bench_vm_mortal, Wrong))
     || Wrong <- [#{length => 0}, #{length => 1.5}, #{}, #{unit => [a]}, #{unit => ""}]],
    ?assertEqual({ok, none}, sderl_bench_vm_program:operations(sderl_bench_vm_empty, #{})).

by_nodes_test_() ->
    {timeout, 120, fun by_nodes/0}.

by_nodes() ->
    File = {Header, Lines} =
        sderl_bench_vm_results:by_nodes(file_of(fun(N) -> 1.0e6 * (0.2 + 0.8 / N) end, 8)),
    Failed = #{~"kind" => ~"failed", ~"program" => ~"p", ~"schedulers" => 1, ~"nodes" => 2,
               ~"flags" => <<>>, ~"otp" => <<>>, ~"reason" => ~"it hangs"},
    Summary = #{programs := [_, #{series := [#{rows := Rows} = Series]}]} =
        sderl_bench_vm_summary:of_lines(Header, [Failed | Lines]),
    ?assertEqual([{nodes, N, 1} || N <- [1, 2, 4]], [Size || #{size := Size} <- Rows]),
    #{amdahl := #{serial := Serial}} = Series,
    ?assert(abs(Serial - 0.2) < 0.001),
    Text = text(sderl_bench_vm_table:text(Summary)),
    [?assertNotEqual({nomatch, Words, Text}, {string:find(Text, Words), Words, Text})
     || Words <- ["nodes", "serial share 20", "4 nodes: 3.60 at work",
                  "of 4 schedulers had no work", "FAILED on 2 nodes: it hangs"]],
    ?assertEqual(nomatch, string:find(Text, "with one scheduler")),
    ?assertMatch([{#{nodes := 1, schedulers := 1}, _}, {#{nodes := 2, schedulers := 1}, _} | _],
                 sderl_bench_vm_table:rows(Summary)),
    %% Points with nodes are compared with such points only.
    {ok, #{rows := Compared}} = sderl_bench_vm_compare:compare(File, File, 0.01),
    ?assertEqual([{nodes, N, 1} || N <- [1, 2, 4]], [Size || #{size := Size} <- Compared]),
    says("no point in common",
         sderl_bench_vm_compare:compare(File, file_of(fun(N) -> 1.0e6 / N end, 8), 0.01)).

%% No laws are fitted to points with more schedulers than the machine has cores, also where that
%% holds for a single node.
more_than_cores_test_() ->
    {timeout, 120, fun more_than_cores/0}.

more_than_cores() ->
    {Header, Lines} =
        sderl_bench_vm_results:by_nodes(file_of(fun(N) -> 1.0e6 / N end, 8), 16),
    Summary = #{programs := [_, #{series := [#{rows := [_, _, #{speedup := #{value := Speedup}}]}
                                             = Series]}]} =
        sderl_bench_vm_summary:of_lines(Header, Lines),
    ?assert(abs(Speedup - 4) < 0.01),
    ?assertMatch(#{amdahl := undefined, serial := undefined, usl := undefined,
                   peak := undefined}, Series),
    Text = text(sderl_bench_vm_table:text(Summary)),
    ?assertNotEqual(nomatch, string:find(Text, "4 nodes of 16 schedulers")),
    ?assertEqual(nomatch, string:find(Text, "serial share")).

wrong_results_test_() ->
    {timeout, 120, fun wrong_results/0}.

wrong_results() ->
    {Header, [First | Lines]} = file_of(fun(N) -> 1.0e6 / N end, 2),
    [Line | More] = [L || #{~"program" := ~"p"} = L <- Lines],
    Failed = #{~"kind" => ~"failed", ~"program" => ~"p", ~"schedulers" => 2, ~"flags" => <<>>,
               ~"otp" => <<>>, ~"reason" => ~"it hangs"},
    Summary = sderl_bench_vm_summary:of_lines(
        Header, [First, Line#{~"hash" := 2, ~"text" := ~"other"}, Failed, Failed | More]),
    Text = text(lists:join("\n", sderl_bench_vm_table:failures(Summary))),
    [?assertNotEqual({nomatch, Words, Text}, {string:find(Text, Words), Words, Text})
     || Words <- ["OUTPUTS DIFFER", "other (1 times)",
                  "FAILED on 2 schedulers, 2 times: it hangs"]].

%% A failure does not count any more when its round was measured later, nor does one from before the
%% program was calibrated.
failed_before_test_() ->
    {timeout, 120, fun failed_before/0}.

failed_before() ->
    {Header, Lines} = file_of(fun(N) -> 1.0e6 / N end, 2),
    Failed = fun(More) -> maps:merge(
        #{~"kind" => ~"failed", ~"program" => ~"p", ~"schedulers" => 2, ~"flags" => <<>>,
          ~"otp" => <<>>, ~"reason" => ~"it hangs"}, More) end,
    Calibrated = #{~"kind" => ~"calibrated", ~"program" => ~"p", ~"repetitions" => 1,
                   ~"hash" => 1, ~"text" => ~"ok"},
    Of = fun(Some) ->
        sderl_bench_vm_table:failures(sderl_bench_vm_summary:of_lines(Header, Some))
    end,
    ?assertEqual([], Of([Failed(#{}), Calibrated, Failed(#{~"round" => 1}) | Lines])),
    ?assertMatch([_], Of([Failed(#{~"round" => 3}) | Lines])),
    ?assertMatch([_], Of([Failed(#{~"round" => 1, ~"schedulers" => 3}) | Lines])),
    ?assertMatch([_], Of(Lines ++ [Failed(#{~"round" => 1})])).

%% With few virtual machines the laws have no intervals.
few_measured_test_() ->
    {timeout, 120, fun few_measured/0}.

few_measured() ->
    Text = fun(Rounds) ->
        {Header, Lines} = file_of(fun(N) -> 1.0e6 * (0.2 + 0.8 / N) end, Rounds),
        text(sderl_bench_vm_table:text(sderl_bench_vm_summary:of_lines(Header, Lines)))
    end,
    ?assertMatch({match, _}, re:run(Text(6), "serial share [0-9.]+ % \\(")),
    ?assertMatch({match, _}, re:run(Text(5), "serial share [0-9.]+ %, at most")).

nothing_measured_test_() ->
    {timeout, 120, fun nothing_measured/0}.

nothing_measured() ->
    {Header, _} = file_of(fun(N) -> 1.0e6 / N end, 1),
    Summary = sderl_bench_vm_summary:of_lines(Header, []),
    Text = text(sderl_bench_vm_table:text(Summary)),
    ?assertNotEqual(nomatch, string:find(Text, "nothing was measured")),
    ?assertEqual([], sderl_bench_vm_table:rows(Summary)).

%% The notes name points that were asked for and are not possible, and say why perf could not count.
notes_test_() ->
    {timeout, 120, fun() ->
        {Header, Lines} = file_of(fun(N) -> 1.0e6 / N end, 2),
        Refused = [Line#{~"why" := Why#{~"counters_refused" => ~"No permission to enable cycles"}}
                   || #{~"why" := Why} = Line <- Lines],
        Of = fun(Some) ->
            text(sderl_bench_vm_table:text(sderl_bench_vm_summary:of_lines(
                Header#{~"left_out" => [~"+sub true +scl true: both"]}, Some)))
        end,
        LeftOut = fun(Flags) ->
            #{~"kind" => ~"left_out", ~"schedulers" => 1, ~"flags" => Flags, ~"otp" => <<>>,
              ~"reason" => ~"1 scheduler, +SDcpu 4:4: it has 1"}
        end,
        Text = Of([LeftOut(~"+SDcpu 4:4") | Refused]),
        [?assertMatch({{_, _}, _}, {binary:match(Text, Words), Words})
         || Words <- [~"note: left out, because it is not possible: +sub true +scl true: both",
                      ~"not possible: 1 scheduler, +SDcpu 4:4: it has 1",
                      ~"counters were not read: No permission to enable cycles"]],
        ?assertEqual(nomatch, binary:match(Of(Lines), ~"were not read")),
        %% Results of a point that was left out later are shown only if it became possible again.
        Sizes = fun(Some) ->
            #{programs := [_, #{series := [#{rows := Rows}]}], left_out := Reasons} =
                sderl_bench_vm_summary:of_lines(Header, Some),
            {[Size || #{size := Size} <- Rows], length(Reasons)}
        end,
        All = [{schedulers, N} || N <- [1, 2, 4]],
        Probed = (LeftOut(<<>>))#{~"kind" := ~"probed"},
        ?assertEqual({All, 0}, Sizes(Lines)),
        ?assertEqual({tl(All), 1}, Sizes(Lines ++ [LeftOut(<<>>)])),
        ?assertEqual({All, 0}, Sizes(Lines ++ [LeftOut(<<>>), Probed])),
        ?assertEqual({tl(All), 1}, Sizes(Lines ++ [Probed, LeftOut(<<>>)]))
    end}.

%% The speedup that is computed from the parts is the measured one.
split_test_() ->
    sderl_prop:eunit("what is lost is lost to idleness or to longer work", 200, fun() ->
        ?FORALL({N, Used, Wall}, {range(2, 64), range(1, 100), range(1, 1_000_000)}, begin
            One = #{~"busy" => [0.95], ~"wall_ns" => 1.0e6},
            Many = #{~"busy" => lists:duplicate(N, Used / 100), ~"wall_ns" => Wall},
            #{by_parts := Speedup} = sderl_bench_vm_reasons:split(One, Many),
            abs(Speedup - 1.0e6 / Wall) =< 1.0e-6 * Speedup
        end)
    end).

reasons_test() ->
    One = #{~"busy" => [1.0], ~"wall_ns" => 8.0e6, ~"queue" => 3, ~"reductions" => 100,
            ~"states" => #{~"emulator" => 0.9, ~"gc" => 0.02, ~"sleep" => 0.0}},
    Of = fun(More, Speedup, Control) ->
        Many = maps:merge(One#{~"busy" := [0.9, 0.9, 0.9, 0.9], ~"wall_ns" := 4.0e6}, More),
        text(lists:join("\n", sderl_bench_vm_reasons:text({schedulers, 4}, {One, Many}, Speedup,
                                                          Control)))
    end,
    Nodes = fun(More) ->
        Many = maps:merge(One#{~"busy" := [0.9, 0.9, 0.9, 0.9], ~"wall_ns" := 4.0e6}, More),
        text(lists:join("\n", sderl_bench_vm_reasons:text({nodes, 2, 2},
                                                          {One#{~"busy" := [0.9, 0.9]}, Many}, 1.2,
                                                          1.4)))
    end,
    Rates = #{~"cache_misses" => 0.1, ~"instructions_per_cycle" => 2.0,
              ~"memory_bytes_s" => 1.0e6, ~"branch_misses" => 0.01},
    Counted = fun(After) ->
        Many = One#{~"busy" := [0.9, 0.9, 0.9, 0.9], ~"wall_ns" := 4.0e6, ~"counters" => After},
        text(lists:join("\n", sderl_bench_vm_reasons:text(
            {schedulers, 4}, {One#{~"counters" => Rates}, Many}, 2.0, 3.9)))
    end,
    Before = #{~"switches" => 100, ~"collections" => 10, ~"reclaimed_words" => 1000},
    Counts = fun(After) ->
        Many = maps:merge(One#{~"busy" := [0.9, 0.9, 0.9, 0.9], ~"wall_ns" := 4.0e6},
                          maps:merge(Before, After)),
        text(lists:join("\n", sderl_bench_vm_reasons:text(
            {schedulers, 4}, {maps:merge(One, Before), Many}, 2.0, 3.9)))
    end,
    [?assertNotEqual({nomatch, Words, Text}, {string:find(Text, Words), Words, Text})
     || {Words, Text} <- [
            {"it scales: 3.90 times on 4", Of(#{}, 3.9, 3.9)},
            {"lost to work that takes longer (1.80 times", Of(#{}, 2.0, 3.9)},
            {"memory, caches or locks", Of(#{}, 2.0, 3.9)},
            {"toolchain/install --lock-counter", Of(#{}, 2.0, 3.9)},
            {"threads wait for locks, in the mean 0.50 for db_tab, 0.25 for run_queue",
             Of(#{~"locks" => #{~"run_queue" => 1.0e6, ~"db_tab" => 2.0e6, ~"code" => 1}}, 2.0,
                3.9)},
            {"or locks\n", [Of(#{~"locks" => #{}}, 2.0, 3.9), "\n"]},
            {"cache misses 20.0 %, and 10.0 % with one scheduler; 1.00 instructions in a cycle, "
             "and 2.00 with one scheduler; 8.00 MB a second",
             Counted(#{~"cache_misses" => 0.2, ~"instructions_per_cycle" => 1.0,
                       ~"memory_bytes_s" => 8.0e6, ~"branch_misses" => 0.01})},
            {"1.50 times the reductions", Of(#{~"reductions" => 150}, 2.0, 3.9)},
            {"1.80 times the context switches: processes wait more often",
             Counts(#{~"switches" => 180})},
            {"1.50 times the garbage collections: they free 2.00 times as much, so it makes more "
             "garbage", Counts(#{~"collections" => 15, ~"reclaimed_words" => 2000})},
            {"1.50 times the garbage collections: they free no more in all",
             Counts(#{~"collections" => 15})},
            {"had no work (the area above the curve of active schedulers): the run queues were "
             "empty, so there are too few processes that can run; 0.75 dirty schedulers were at "
             "work", Of(#{~"busy" => [0.5, 0.5, 0.5, 0.5], ~"queue" => 0, ~"dirty_busy" => 0.75},
                        2.0, 3.9)},
            {"garbage collection takes 40.0 %",
             Of(#{~"states" => #{~"gc" => 0.2, ~"sleep" => 0.5}}, 2.0, 3.9)},
            {"25.0 % of the times that a process ran again, it was on another scheduler than "
             "before (8,000 a second; 0 % with one scheduler)",
             Of(#{~"migrations" => #{~"share" => 0.25, ~"per_s" => 8000, ~"seen" => 9}}, 2.0, 3.9)},
            {"of 4 schedulers had no work (the area above the curve of active schedulers): the "
             "nodes were at work 30.0 to 70.0 % of the time, and processes stay on the node",
             Nodes(#{~"busy" => [0.3, 0.3, 0.6, 0.8], ~"queue" => 5})},
            {"the nodes send 40.0 kB to each other", Nodes(#{~"sent_bytes" => 40_000,
                                                             ~"wall_ns" => 8.0e6})},
            {"work of ports, such as those to other nodes, takes 30.0 % of the time that they "
             "worked, and 0.00 % with one node",
             Nodes(#{~"states" => #{~"port" => 0.3}, ~"wall_ns" => 8.0e6})},
            {"the machine itself gives 1.40 times", Nodes(#{})},
            {"too few processes", Of(#{~"busy" => [0.5, 0.5, 0.5, 0.5], ~"queue" => 0}, 2.0, 3.9)},
            {"the machine itself gives 2.50 times", Of(#{}, 2.0, 2.5)},
            {"the system gave the schedulers 50.0 %",
             Of(#{~"cpu_ns" => 7.2e6, ~"repetitions" => 100}, 2.0, 3.9)}
        ]],
    %% With several nodes the counters are of one node only, so they are not reported.
    ?assertEqual(nomatch, string:find(
        text(sderl_bench_vm_reasons:text({nodes, 2, 1}, {
            One#{~"counters" => Rates},
            One#{~"busy" := [0.9, 0.9], ~"counters" => Rates#{~"cache_misses" := 0.5}}
        }, 1.2, 1.9)), "the processor counts")),
    %% Migrations that are rare, or nearly as frequent as on one scheduler or node, are no reason.
    [?assertEqual(nomatch, string:find(Of(#{~"migrations" => Few}, 2.0, 3.9), "ran again"))
     || Few <- [#{~"share" => 0.25, ~"per_s" => 3999}, #{~"share" => 0.04, ~"per_s" => 80_000}]],
    ?assertEqual(nomatch, string:find(
        text(sderl_bench_vm_reasons:text({nodes, 2, 1}, {
            One#{~"migrations" => #{~"share" => 0.2, ~"per_s" => 9000}},
            One#{~"busy" := [0.9, 0.9],
                 ~"migrations" => #{~"share" => 0.25, ~"per_s" => 9000}}
        }, 1.2, 1.9)), "ran again")),
    ?assertEqual(~"nothing is known of what the schedulers did",
                 text(sderl_bench_vm_reasons:text({schedulers, 2}, {#{}, #{}}, 2.0, undefined))).

%% ---------------------------------------------------------------- in this virtual machine

steady_test() ->
    ?assertNot(sderl_bench_vm_loop:steady([10, 12])),
    ?assertNot(sderl_bench_vm_loop:steady([8, 10, 12])),
    ?assert(sderl_bench_vm_loop:steady([10, 10.1, 10, 12])),
    ?assert(sderl_bench_vm_loop:steady([11, 10, 10])).

loop_test_() ->
    {timeout, 120, fun loop/0}.

loop() ->
    Job = {program, sderl_bench_vm_mortal, sderl_bench_vm_mortal:settings(short, 2)},
    {ok, #{stages := [{build, Build}, {sort, Sort}], ns := Ns, text := ~"2001000"}} =
        sderl_bench_vm_loop:run(Job, 3),
    ?assert(abs(Build + Sort - Ns) < 1),
    ?assertMatch({error, <<"error: no_such_luck in sderl_bench_vm_mortal:crash/0">>},
                 sderl_bench_vm_loop:run({call, sderl_bench_vm_mortal, crash, []}, 1)),
    ?assertMatch({error, <<"exit: late", _/binary>>},
                 sderl_bench_vm_loop:run({call, sderl_bench_vm_mortal, crash_late, [late]}, 1)),
    {ok, Count, _} = sderl_bench_vm_loop:repetitions({call, sderl_bench_vm_mortal, small, []},
                                                     500_000_000),
    ?assert(Count > 1),
    {ok, #{runs := [_, _], warm := [_ | _]}} = sderl_bench_vm_loop:measure(
        Job, #{runs => 2, warm_most => 4, most_ns => 60_000_000_000, repetitions => 5}),
    %% Without time there is one warm-up run and one measured run.
    {ok, #{runs := [_], warm := [_]}} = sderl_bench_vm_loop:measure(
        Job, #{runs => 5, warm_most => 4, most_ns => 1, repetitions => 5}).

%% Two processes switch for longer than they are traced. The trace ends with its window, or after
%% 20,000 events.
migrations_test_() ->
    {timeout, 120, fun migrations/0}.

migrations() ->
    Switching = fun() ->
        Turn = fun Turn(0, Other) -> Other ! stop;
                   Turn(Left, Other) -> Other ! turn, receive turn -> Turn(Left - 1, Other) end
               end,
        {_, Monitor} = spawn_monitor(fun() ->
            Self = self(),
            Other = spawn_link(fun Answer() ->
                receive turn -> Self ! turn, Answer(); stop -> ok end
            end),
            Turn(200_000, Other)
        end),
        receive {'DOWN', Monitor, process, _, normal} -> ok end
    end,
    Before = trace:session_info(all),
    %% This is repeated if the processes got little of the window, as happens on a busy machine.
    Looked = fun() ->
        #{share := Share, per_s := Rate, seen := Seen} =
            sderl_bench_vm_migrations:around([node()], 1.0, Switching),
        ?assert(Seen =< 20_000),
        ?assert(Share >= 0.0 andalso Share =< 1.0 andalso Rate >= 0.0),
        Seen > 100
    end,
    ?assertEqual(ok, sderl_fleet:await(Looked, 60_000)),
    %% No trace session is left.
    ?assertEqual(Before, trace:session_info(all)),
    %% This program ends before its trace begins.
    ?assertMatch(#{seen := 0, share := +0.0},
                 sderl_bench_vm_migrations:around([node()], 1.0e13, fun() -> ok end)),
    %% The end of a long program is not waited for.
    ?assertMatch(#{seen := _}, sderl_bench_vm_migrations:around([node()], 1.0e8, fun() ->
        receive after infinity -> ok end
    end)),
    ?assertEqual([100, 1, 1], [sderl_bench_vm_migrations:repetitions(Ns)
                               || Ns <- [1.0e6, 1.0e8, 1.0e10]]).

%% Without permission, or without perf, the result has the reason in the place of the counts.
counters_test_() ->
    {timeout, 120, fun counters/0}.

counters() ->
    with_program("perf", "echo 'Error:'; echo 'No permission to enable cycles event.'; exit 255\n",
                 fun(Perf) ->
        Said = fun(Path) ->
            Before = os:getenv("PATH"),
            true = os:putenv("PATH", Path),
            try
                {Pid, _} = Task = sderl_prof_perf:start(counters, 60_000),
                ok = sderl_fleet:await(fun() -> not is_process_alive(Pid) end, 60_000),
                sderl_bench_vm_counters:stop({erlang:monotonic_time(nanosecond), Task})
            after
                true = os:putenv("PATH", Before)
            end
        end,
        ?assertEqual(#{counters_refused => ~"No permission to enable cycles event."},
                     Said(filename:dirname(Perf))),
        ?assertEqual(#{counters_refused => ~"there is no perf on this machine"}, Said("/no/such")),
        ?assertEqual(#{}, sderl_bench_vm_counters:stop(none))
    end).

%% `Fun` gets the path of a script that is alone in its folder.
with_program(Name, Script, Fun) ->
    with_file("", fun(File) ->
        Path = filename:join(File ++ "_bin", Name),
        try
            ok = filelib:ensure_dir(Path),
            ok = file:write_file(Path, ["#!/bin/sh\n", Script]),
            ok = file:change_mode(Path, 8#755),
            Fun(Path)
        after
            file:del_dir_r(filename:dirname(Path))
        end
    end).

%% An OTP that is too old is refused before its compiler gets modules that it cannot compile.
old_otp_test_() ->
    [
        {Release, {timeout, 120, fun() ->
            with_program("erl", "printf " ++ Release ++ "\n", fun(Erl) ->
                says("OTP old (" ++ Erl ++ ") is OTP " ++ Release ++ ", and the code that measures "
                     "runs on OTP 27 or newer",
                     sderl_bench_vm_start:open([{"old", Erl}],
                                               #{modules => [], limit_ms => 60_000}))
            end)
        end}}
     || Release <- ["26", "R16B03"]
    ].

%% Only the end of a long output is kept, so that it cannot fill the memory.
last_test_() ->
    {timeout, 120, fun last/0}.

last() ->
    {ok, 0, Said} = sderl_bench_program:run(
        os:find_executable("sh"), ["-c", "yes first | head -n 100000; echo the end"],
        #{timeout => 60_000, last => 1000}),
    ?assert(byte_size(Said) =< 2000),
    ?assertMatch({_, _}, binary:match(Said, ~"the end\n")).

%% ---------------------------------------------------------------- the machine

host_test_() ->
    {timeout, 120, fun host/0}.

host() ->
    Files = #{
        "/proc/cpuinfo" => ~"processor\t: 0\nmodel name\t: Some CPU\nmodel name\t: Other\n",
        "cpu0/topology/thread_siblings_list" => ~"0,4\n",
        "cpu1/topology/thread_siblings_list" => ~"1\n",
        "cpu0/cpu_capacity" => ~"1024\n", "cpu1/cpu_capacity" => ~"512\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor" => ~"powersave\n"
    },
    Read = fun(File) -> case Files of #{File := Text} -> {ok, Text}; #{} -> {error, enoent} end end,
    List = fun("/sys/devices/system/cpu/" ++ _) -> ["cpu0", "cpu1"];
              ("/sys/bus/event_source/" ++ _) -> ["/sys/software", "/sys/msr"];
              ("/sys/devices/system/node/" ++ _) -> ["node0", "node1"] end,
    Info = sderl_bench_vm_host:info(Read, List),
    ?assertMatch(#{model := ~"Some CPU", threads_per_core := 2, kinds_of_cores := 2,
                   memory_nodes := 2, governor := ~"powersave", kernel := null,
                   counters := false}, Info),
    Counts = fun(Names) ->
        map_get(counters, sderl_bench_vm_host:info(Read, fun
            ("/sys/bus/event_source/" ++ _) -> Names;
            (_) -> []
        end))
    end,
    ?assertEqual([true, true, null], [Counts(Names) || Names <- [["x/cpu"], ["x/armv8_0"], []]]),
    Noted = fun(Schedulers) ->
        text(lists:join("\n", sderl_bench_vm_host:notes(Info#{cores := 2, quota := 1.5},
                                                        Schedulers)))
    end,
    Notes = Noted(8),
    [?assertNotEqual({nomatch, Words, Notes}, {string:find(Notes, Words), Words, Notes})
     || Words <- ["8 schedulers share 2 cores",
                  "quota of 1.50 processors: with 8 schedulers at work all threads are stopped",
                  "2 hardware threads",
                  "2 kinds of cores", "memory is on 2 nodes", "powersave",
                  "counters are not available here"]],
    %% The quota is also reported where no point has more schedulers than it.
    ?assertNotEqual(nomatch, string:find(Noted(1), "a quota of 1.50 processors\n")),
    #{cores := Cores} = sderl_bench_vm_host:info(),
    ?assert(Cores >= 1).
