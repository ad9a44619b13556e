%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_compare_tests).
-moduledoc "The comparison of two files of results of `bin/sderl bench vm`.".

-include_lib("eunit/include/eunit.hrl").

-import(sderl_bench_vm_results, [file_of/2, file_of/3]).

text(Text) -> unicode:characters_to_binary(Text).

says(Words, {error, Text}) ->
    ?assertNotEqual({nomatch, text(Text)}, {string:find(text(Text), Words), text(Text)}).

verdicts(A, B) ->
    {ok, #{rows := Rows, warnings := Warnings} = Result} =
        sderl_bench_vm_compare:compare(A, B, 0.01),
    {lists:usort([V || #{verdict := V} <- Rows]), text(lists:join("\n", Warnings)), Result}.

compare_test_() ->
    {timeout, 120, fun compare/0}.

compare() ->
    Same = file_of(fun(N) -> 1.0e6 / N end, 10),
    Slow = file_of(fun(N) -> 1.05e6 / N end, 10),
    {[same], <<>>, Result} = verdicts(Same, Same),
    ?assertEqual(ok, sderl_bench_vm_compare:outcome(Result, true)),
    {[slower], <<>>, Slower} = verdicts(Same, Slow),
    says("3 of 3 points are slower", sderl_bench_vm_compare:outcome(Slower, false)),
    {[faster], <<>>, Faster} = verdicts(Slow, Same),
    ?assertEqual(ok, sderl_bench_vm_compare:outcome(Faster, true)),
    ?assertNotEqual(nomatch, string:find(text(sderl_bench_vm_compare:text(Slower)), "1.050")),
    {[undecided], <<>>, Few} = verdicts(file_of(fun(N) -> 1.0e6 / N end, 3), Slow),
    ?assertEqual(ok, sderl_bench_vm_compare:outcome(Few, false)),
    says("3 of 3 points are undecided", sderl_bench_vm_compare:outcome(Few, true)),
    ?assertNotEqual(nomatch, string:find(text(sderl_bench_vm_compare:text(Few)), "--least 6")).

%% A program that fails only in the later file is an error, whether or not other points can be
%% compared.
compare_lost_test_() ->
    {timeout, 120, fun compare_lost/0}.

compare_lost() ->
    {Header, Lines} = Before = file_of(fun(N) -> 1.0e6 / N end, 10),
    Failed = fun(N) -> #{~"kind" => ~"failed", ~"program" => ~"p", ~"schedulers" => N,
                         ~"flags" => <<>>, ~"otp" => <<>>, ~"reason" => ~"it hangs"} end,
    Some = [Line || #{~"program" := Program, ~"schedulers" := N} = Line <- Lines,
                    Program =:= ~"control" orelse N =/= 4],
    {[same], <<>>, Lost} = verdicts(Before, {Header, Some ++ [Failed(4)]}),
    says("failed after, and did not before: p on 4 schedulers",
         sderl_bench_vm_compare:outcome(Lost, false)),
    ?assertNotEqual(nomatch, string:find(text(sderl_bench_vm_compare:text(Lost)), "p on 4 sched")),
    {[], <<>>, All} = verdicts(Before, {Header, [Failed(1)]}),
    says("p on 1 scheduler", sderl_bench_vm_compare:outcome(All, false)),
    %% A point is not lost if it failed once and was measured later, or if it was not asked for.
    {[same], <<>>, Later} = verdicts(Before, {Header, [Failed(4) | Lines]}),
    ?assertEqual(ok, sderl_bench_vm_compare:outcome(Later, true)),
    {[same], <<>>, Fewer} = verdicts(Before, {Header, Some}),
    ?assertEqual(ok, sderl_bench_vm_compare:outcome(Fewer, false)),
    says("in one of the files only: 1", sderl_bench_vm_compare:outcome(Fewer, true)).

%% A point that is left out of one of the files is reported with the reason.
compare_left_out_test_() ->
    {timeout, 120, fun compare_left_out/0}.

compare_left_out() ->
    {Header, Lines} = Before = file_of(fun(N) -> 1.0e6 / N end, 10),
    LeftOut = #{~"kind" => ~"left_out", ~"schedulers" => 4, ~"flags" => <<>>, ~"otp" => <<>>,
                ~"reason" => ~"4 schedulers: none"},
    Of = fun(A, B) ->
        {[same], Warning, #{rows := Rows, lost := []}} = verdicts(A, B),
        ?assertEqual(2, length(Rows)),
        Warning
    end,
    After = {Header, Lines ++ [LeftOut]},
    ?assertEqual(~"LEFT OUT AFTER, because it is not possible: 4 schedulers: none",
                 Of(Before, After)),
    ?assertEqual(~"LEFT OUT BEFORE, because it is not possible: 4 schedulers: none",
                 Of(After, Before)),
    ?assertEqual(<<>>, Of(After, After)).

%% A program that was left out of the race in both files has no verdict and needs none.
compare_race_test_() ->
    {timeout, 120, fun compare_race/0}.

compare_race() ->
    {Header, Lines} = file_of(fun(N) -> 1.0e6 / N end, 10),
    Slow = fun(Rounds) ->
        [Line#{~"program" := ~"slow", ~"runs" := [3 * Ns || Ns <- Runs]}
         || #{~"program" := ~"p", ~"schedulers" := 4, ~"round" := Round, ~"runs" := Runs} = Line
                <- Lines, Round =< Rounds]
    end,
    Of = fun(Race, A, B) ->
        File = fun(Rounds) -> {Header#{~"race" => Race}, Lines ++ Slow(Rounds)} end,
        {_, <<>>, #{rows := Rows} = Result} = verdicts(File(A), File(B)),
        Text = text(sderl_bench_vm_compare:text(Result)),
        {length([ok || #{program := ~"slow"} <- Rows]),
         sderl_bench_vm_compare:outcome(Result, true),
         [string:find(Text, Words) =/= nomatch || Words <- ["left out of a race", "--least"]]}
    end,
    ?assertEqual({0, ok, [true, false]}, Of(true, 2, 3)),
    ?assertMatch({1, {error, _}, [true, false]}, Of(true, 10, 2)),
    ?assertMatch({1, {error, _}, [false, true]}, Of(false, 2, 2)),
    ?assertEqual({1, ok, [false, false]}, Of(true, 10, 10)).

compare_work_test_() ->
    {timeout, 120, fun compare_work/0}.

compare_work() ->
    {Header, Lines} = Before = file_of(fun(N) -> 1.0e6 / N end, 10),
    Of = fun(Key, Value) ->
        {_, Warning, _} = verdicts(Before, {Header, [
            case Line of #{~"program" := ~"p"} -> Line#{Key := Value}; _ -> Line end
         || Line <- Lines]}),
        Warning
    end,
    ?assertNotEqual(nomatch, string:find(Of(~"hash", 2), "NOT THE SAME WORK: other outputs of p")),
    ?assertNotEqual(nomatch, string:find(Of(~"repetitions", 2), "p 1 times before and 2 times")).

%% The control shows that the machine was slower by 5 %. A program that is slower by no more than
%% that is undecided, as is one that did not change; a program that is slower by more is slower.
moved_control_test_() ->
    {timeout, 120, fun moved_control/0}.

moved_control() ->
    Control = fun(Factor) -> fun(N) -> Factor * 1.0e6 / N end end,
    Before = file_of(Control(1.0), Control(1.0), 10),
    {[undecided], Warning, _} = verdicts(Before, file_of(Control(1.05), Control(1.05), 10)),
    ?assertNotEqual(nomatch, string:find(Warning, "THE MACHINE ITSELF WAS SLOWER")),
    {[undecided], _, _} = verdicts(Before, file_of(Control(1.0), Control(1.05), 10)),
    {[slower], _, _} = verdicts(Before, file_of(Control(1.3), Control(1.05), 10)).

other_machine_test_() ->
    {timeout, 120, fun other_machine/0}.

other_machine() ->
    {#{~"machine" := Machine, ~"settings" := Settings} = Header, Lines} = A =
        file_of(fun(N) -> 1.0e6 / N end, 10),
    {_, Warning, _} = verdicts(A, {Header#{~"machine" := Machine#{~"cores" := 4}}, Lines}),
    ?assertNotEqual(nomatch, string:find(Warning, "THESE ARE TWO MACHINES: they differ in cores")),
    #{~"programs" := [Control, P]} = Settings,
    Other = Settings#{~"programs" := [Control, P#{~"settings" := #{~"a" => 2}}]},
    {_, Work, _} = verdicts(A, {Header#{~"settings" := Other}, Lines}),
    ?assertNotEqual(nomatch, string:find(Work, "NOT THE SAME WORK: the settings differ of p")),
    %% A setting that only the later version of the program has makes no difference.
    More = Settings#{~"programs" := [Control, P#{~"settings" := #{~"a" => 1, ~"b" => 2}}]},
    ?assertMatch({[same], <<>>, _}, verdicts(A, {Header#{~"settings" := More}, Lines})),
    says("no point in common", sderl_bench_vm_compare:compare(A, {Header, []}, 0.01)).
