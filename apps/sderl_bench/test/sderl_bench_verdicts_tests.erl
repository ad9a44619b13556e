%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_verdicts_tests).
-moduledoc "The counts of wrong verdicts, and the options of `bin/sderl bench verdicts`.".

-include_lib("eunit/include/eunit.hrl").

comparison(Kind, Verdict, Moved, Seconds) ->
    #{kind => Kind, verdict => Verdict, moved => Moved, seconds => Seconds, overhead => 0.005,
      ratio => #{value => 1.0, low => undefined, high => undefined}}.

counted_test() ->
    Comparisons =
        [comparison(same, Verdict, false, 1.5) || Verdict <- [faster, slower, same, undecided]]
        ++ [comparison(planted, Verdict, Verdict =:= undecided, none)
            || Verdict <- [slower, undecided, same, faster]],
    ?assertEqual(#{comparisons => 4, false_alarms => 2, missed => 3, control_moved => 1,
                   comparison_s => 3.0, overhead_pct => 0.5},
                 sderl_bench_verdicts_experiment:metrics(Comparisons)),
    Text = unicode:characters_to_binary(sderl_bench_verdicts_experiment:table(Comparisons)),
    ?assertNotEqual(nomatch, string:find(Text, "false alarms: 2 of 4; missed: 3 of 4; the control "
                                               "differed in 1 of 8")),
    ?assertNotEqual(nomatch, string:find(Text, "the harness itself takes 0.50 % of the time")).

nothing_measured_test() ->
    ?assertMatch(#{comparison_s := null},
                 sderl_bench_verdicts_experiment:metrics([comparison(same, same, false, none)])).

options_test_() ->
    [{Words, ?_test(begin
        {error, Text} = sderl_bench_options:checked(
            "verdicts", sderl_bench_verdicts_experiment, Args),
        ?assertNotEqual(nomatch, string:find(unicode:characters_to_binary(Text), Words))
     end)} || {Words, Args} <- [
        {"--vms must be at least 5, not 4", ["--vms", "4"]},
        {"--comparisons must be at least 1, not 0", ["--comparisons", "0"]},
        {"--planted-pct", ["--planted-pct", "much"]},
        {"--planted-pct", ["--planted-pct", "0"]}
    ]].
