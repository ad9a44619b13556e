%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_ledger_tests).

-include_lib("eunit/include/eunit.hrl").

nothing_test() ->
    ?assertEqual(
        #{lost => 0, reasons => [], in_flight => 0, retried => 0},
        sderl_demo_ledger:judge(#{}, [])
    ).

%% A routed call does not tell the pid.
by_killed_names_test() ->
    [Killed, Spared] = [{g1, {server, 1, K}} || K <- [1, 2]],
    Seen = #{
        {interrupted, Killed} => 2,
        {stale, Killed} => 3,
        {interrupted, Spared} => 5,
        {stale, Spared} => 7
    },
    ?assertMatch(#{in_flight := 2, retried := 3, lost := 12},
                 sderl_demo_ledger:judge(Seen, [self(), Killed])).

by_killed_pids_test() ->
    Killed = self(),
    Spared = list_to_pid("<0.0.0>"),
    Server = {g1, {server, 1, 1}},
    Verdict = sderl_demo_ledger:judge(
        #{
            {interrupted, Killed} => 2,
            {stale, Killed} => 3,
            {interrupted, Spared} => 5,
            {stale, Spared} => 7,
            {failed, timeout} => 11,
            {unanswered, Server} => 13
        },
        [Killed]
    ),
    ?assertMatch(#{in_flight := 2, retried := 3, lost := 36}, Verdict),
    ?assertEqual(
        lists:sort([
            {{interrupted, Spared}, 5},
            {{stale, Spared}, 7},
            {{failed, timeout}, 11},
            {{unanswered, Server}, 13}
        ]),
        lists:sort(maps:get(reasons, Verdict))
    ).
