%% SPDX-License-Identifier: Apache-2.0
-module(sderl_progress_tests).
-include_lib("eunit/include/eunit.hrl").

line_test_() ->
    [
        ?_assertEqual(Expected, line(Done, Passed, Columns))
     || {Expected, Done, Passed, Columns} <- [
            {"nodes [..................................................]   0 %", 0, 0, 67},
            {"nodes [##################..................]  50 %, 10 s left", 5, 10_000, 64},
            {"nodes [#####.....]  50 %, 2 min 05 s left", 5, 125_000, 44},
            {"nodes [####################] 100 %, 0 s left", 10, 1, 47}
        ]
    ].

%% And the two characters of a Ctrl-C fit behind it.
never_wider_than_the_terminal_test() ->
    [
        ?assert(string:length(line(Done, Passed, Columns)) =< max(0, Columns - 3))
     || Columns <- lists:seq(1, 100), Done <- [0, 1, 9, 10], Passed <- [0, 1, 59_999, 6_000_000]
    ].

silent_without_a_terminal_test() ->
    %% The tests do not run under bin/sderl.
    ?assertNotEqual("1", os:getenv("SDERL_TTY")),
    ?assertEqual(ok, (sderl_progress:reporter("nodes"))(1, 2)),
    ?assertEqual(result, sderl_progress:during("nodes", 1000, fun() -> result end)),
    ?assertEqual(result, sderl_progress:watching("nodes", fun(N) -> {"some", N + 1} end, 0,
                                                 fun() -> result end)).

%% The look is called even without a terminal.
watching_test() ->
    Self = self(),
    Look = fun(N) -> Self ! {look, N}, {"", N + 1} end,
    ?assertEqual(result, sderl_progress:watching("nodes", Look, 0, fun() ->
        %% (It stops before this returns.)
        receive {look, 0} -> receive {look, 1} -> result end end
    end)),
    Late = fun Late() -> receive {look, _} -> Late() after 0 -> ok end end,
    Late().

line(Done, Passed, Columns) ->
    unicode:characters_to_list(sderl_progress:line("nodes", Done, 10, Passed, Columns)).
