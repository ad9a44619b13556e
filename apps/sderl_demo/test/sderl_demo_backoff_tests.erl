%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_backoff_tests).

-include_lib("eunit/include/eunit.hrl").

-define(LIMITS, {250, 8_000}).

pause_test() ->
    lists:foreach(
        fun({Failures, Full}) ->
            Pauses = [sderl_demo_backoff:pause_ms(Failures, ?LIMITS) || _ <- lists:seq(1, 1_000)],
            ?assert(lists:min(Pauses) >= Full div 2),
            ?assert(lists:max(Pauses) =< Full),
            %% Not all at the same moment.
            ?assert(length(lists:usort(Pauses)) > 10)
        end,
        [{1, 250}, {2, 500}, {5, 4_000}, {6, 8_000}, {7, 8_000}, {1_000_000, 8_000}]
    ),
    ?assertEqual(1, sderl_demo_backoff:pause_ms(1, {1, 64})).

%% A server that is down for a virtual hour, for a client that would call it each millisecond.
bounded_test() ->
    Down = {g1, {server, 1, 1}},
    Up = {g1, {server, 1, 2}},
    Try = fun(NowMs, {Calls, Backoff}) ->
        ?assert(sderl_demo_backoff:is_due(Up, NowMs, Backoff)),
        case sderl_demo_backoff:is_due(Down, NowMs, Backoff) of
            true -> {Calls + 1, sderl_demo_backoff:failed(Down, NowMs, Backoff)};
            false -> {Calls, Backoff}
        end
    end,
    HourMs = 3_600_000,
    {Calls, Backoff} =
        lists:foldl(Try, {0, sderl_demo_backoff:new(?LIMITS)}, lists:seq(1, HourMs)),
    ?assert(Calls =< 6 + HourMs div 4_000),
    ?assert(Calls >= HourMs div 8_000),
    %% Once it has answered, it is as if it had never failed.
    Again = sderl_demo_backoff:answered(Down, Backoff),
    ?assert(sderl_demo_backoff:is_due(Down, HourMs, Again)),
    Failed = sderl_demo_backoff:failed(Down, HourMs, Again),
    ?assertNot(sderl_demo_backoff:is_due(Down, HourMs, Failed)),
    ?assert(sderl_demo_backoff:is_due(Down, HourMs + 250, Failed)).
