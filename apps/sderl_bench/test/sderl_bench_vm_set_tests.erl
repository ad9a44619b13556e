%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_set_tests).
-moduledoc "Changes of the settings of programs by the user, with `--set`.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

own() -> #{size => 2, none => 0, share => 0.5, way => quick, on_top => false, text => ~"a",
           list => [1, 2], map => #{a => 1}}.

text(Text) -> unicode:characters_to_list(Text).

says(Words, {error, Text}) ->
    ?assertNotEqual({nomatch, text(Text)}, {string:find(text(Text), Words), text(Text)}).

changed(Texts) ->
    maybe
        {ok, Changes} ?= sderl_bench_vm_set:all(Texts),
        sderl_bench_vm_set:applied(Changes, "p", own())
    end.

values_test_() ->
    [
        {Text, ?_assertEqual({ok, maps:merge(own(), More)}, changed(["p." ++ Text]))}
     || {Text, More} <- [
            {"size=800", #{size => 800}}, {"none=0", #{none => 0}}, {"none=7", #{none => 7}},
            {"share=1", #{share => 1.0}}, {"share=0.25", #{share => 0.25}},
            {"way=slow_2", #{way => slow_2}}, {"on_top=true", #{on_top => true}},
            {"text=a=b.c", #{text => ~"a=b.c"}}, {"list=[3]", #{list => [3]}},
            {"map=#{b => 2}", #{map => #{b => 2}}}
        ]
    ].

several_test() ->
    ?assertEqual({ok, (own())#{size := 3, way := slow}},
                 changed(["p.size=3", "q.x=1", "p.way=slow"])),
    ?assertEqual({ok, own()}, changed([])).

wrong_test_() ->
    [
        {Words, ?_test(says(Words, changed(Texts)))}
     || {Words, Texts} <- [
            {"PROGRAM.KEY=VALUE", ["p.size"]}, {"PROGRAM.KEY=VALUE", ["size=3"]},
            {"PROGRAM.KEY=VALUE", [".size=3"]}, {"PROGRAM.KEY=VALUE", ["p.=3"]},
            {"PROGRAM.KEY=VALUE", ["p.size="]},
            {"p.size is given twice", ["p.size=3", "q.size=3", "p.size=4"]},
            {"--set p.sizes: there is no setting sizes; there are list, map, none, on_top, share, "
             "size, text, way", ["p.sizes=3"]},
            {"--set p.size=0: it is a whole number from 1 on", ["p.size=0"]},
            {"a whole number from 1 on", ["p.size=3x"]}, {"a whole number from 1 on", ["p.size=x"]},
            {"a whole number from 0 on", ["p.none=-1"]}, {"a number", ["p.share=x"]},
            {"true or false", ["p.on_top=yes"]}, {"a word, as quick", ["p.way=Quick"]},
            {"an Erlang term, as [1,2]", ["p.list=3"]}, {"an Erlang term", ["p.list=[self"]},
            {"an Erlang term", ["p.map=[]"]}, {"an Erlang term", ["p.list=[{1,2}]"]}
        ]
    ].

no_settings_test() ->
    {ok, Changes} = sderl_bench_vm_set:all(["p.size=3"]),
    says("the program has no settings", sderl_bench_vm_set:applied(Changes, "p", #{})),
    says("p is not measured; the programs are a, b",
         sderl_bench_vm_set:unused(Changes, ["a", "b"])),
    says("a call has no settings", sderl_bench_vm_set:unused(Changes, [])),
    ?assertEqual(ok, sderl_bench_vm_set:unused(Changes, ["a", "p"])).

%% A change affects the named setting only.
kinds_test_() ->
    sderl_prop:eunit("a changed number is the one that was given", 200, fun() ->
        ?FORALL({Key, Value}, {oneof([size, none]), pos_integer()},
                changed([lists:concat(["p.", Key, "=", Value])]) =:= {ok, (own())#{Key := Value}})
    end).

%% ---------------------------------------------------------------- on the command line

checked(Args) -> sderl_bench_options:checked("vm", sderl_bench_vm_experiment, Args).

settings(Args) ->
    {ok, #{do := {measure, #{programs := [_ | Programs], header := #{settings := Settings,
                                                                     command := Command}}}}} =
        checked(Args),
    #{programs := [_ | Named]} = Settings,
    {#{Name => Of || #{name := Name, job := {program, _, Of}} <- Programs},
     #{Name => Of || #{name := Name, settings := Of} <- Named}, Command}.

with_matrix(Content, Fun) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         lists:concat(["sderl_vm_set_", os:getpid(), "_",
                                       erlang:unique_integer([positive])])),
    ok = file:write_file(File, Content),
    try Fun(File) after file:delete(File) end.

%% The file of results has the settings with which the programs are measured.
options_test_() ->
    {timeout, 120, fun() ->
        Args = ["--program", "sderl_bench_vm_mortal", "--set", "sderl_bench_vm_mortal.length=77"],
        {Jobs, Named, Command} = settings(Args),
        ?assertMatch(#{~"sderl_bench_vm_mortal" := #{length := 77, cores := _}}, Jobs),
        ?assertEqual(Jobs, Named),
        ?assertNotEqual(nomatch, string:find(Command, "--set sderl_bench_vm_mortal.length=77")),
        [says(Words, checked(["--program", "sderl_bench_vm_mortal", "--set", Set]))
         || {Words, Set} <- [
                {"there are cores, length, size", "sderl_bench_vm_mortal.depth=1"},
                {"it is a whole number from 1 on", "sderl_bench_vm_mortal.length=0"},
                {"nothing is not measured", "nothing.length=1"}
            ]]
    end}.

%% A setting on the command line replaces the same one of the file.
file_test_() ->
    {timeout, 120, fun() ->
        File = "{program, \"sderl_bench_vm_mortal\"}. {set, \"sderl_bench_vm_mortal.length=5\"}. "
               "{set, \"sderl_bench_vm_mortal.cores=9\"}.",
        with_matrix(File, fun(Matrix) ->
            {#{~"sderl_bench_vm_mortal" := Alone}, _, _} = settings(["--matrix", Matrix]),
            ?assertMatch(#{length := 5, cores := 9}, Alone),
            {#{~"sderl_bench_vm_mortal" := Both}, _, _} =
                settings(["--matrix", Matrix, "--set", "sderl_bench_vm_mortal.length=6"]),
            ?assertMatch(#{length := 6, cores := 9}, Both)
        end),
        with_matrix([File, " {set, \"sderl_bench_vm_mortal.length=7\"}."], fun(Matrix) ->
            says("is given twice", checked(["--matrix", Matrix]))
        end)
    end}.
