%% SPDX-License-Identifier: Apache-2.0
-module(sderl_retry_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODE, 'n@h').

%% A node that was lost is tried at once and soon again; one that was never there less often.
pauses_test() ->
    Lost = sderl_retry:lost(?NODE, 0, sderl_retry:new()),
    ?assert(sderl_retry:is_due(?NODE, 0, Lost)),
    ?assertEqual([200, 400, 800, 1600, 3200, 6400, 10_000, 10_000], pauses(member, Lost, 8)),
    Unseen = sderl_retry:new(),
    ?assert(sderl_retry:is_due(?NODE, 0, Unseen)),
    ?assertEqual([1000, 2000, 4000, 8000, 10_000, 10_000], pauses(member, Unseen, 6)),
    ?assertEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 40_000, 40_000],
                 pauses(forgotten, Unseen, 8)).

%% With a spread of a half the next attempt comes after just the pause.
pauses(Kind, Retries, Count) ->
    {Pauses, _} = lists:mapfoldl(fun(_, {At, Before}) ->
        After = sderl_retry:failed(?NODE, Kind, At, 0.5, Before),
        Next = sderl_retry:next(At, At + 100_000, After),
        ?assertNot(sderl_retry:is_due(?NODE, Next - 1, After)),
        ?assert(sderl_retry:is_due(?NODE, Next, After)),
        {Next - At, {Next, After}}
    end, {0, Retries}, lists:seq(1, Count)),
    Pauses.

linked_test() ->
    Retries = sderl_retry:failed(?NODE, member, 0, 0.5, sderl_retry:new()),
    ?assertNot(sderl_retry:is_due(?NODE, 1, Retries)),
    ?assert(sderl_retry:is_due(?NODE, 1, sderl_retry:linked(?NODE, Retries))),
    ?assert(sderl_retry:is_due(?NODE, 1, sderl_retry:keep([], Retries))),
    ?assertNot(sderl_retry:is_due(?NODE, 1, sderl_retry:keep([?NODE], Retries))).

%% However many members are missing, and however the pauses are spread: in the long run a node makes
%% at most some two attempts a second, and each member has its turn.
property_test_() -> sderl_prop:eunit("attempts in the long run", 50, fun in_the_long_run/0).

in_the_long_run() ->
    ?FORALL({Count, Seed}, {integer(1, 200), integer()}, begin
        Nodes = [list_to_atom(lists:concat(["n", I, "@h"])) || I <- lists:seq(1, Count)],
        {Attempts, Last} = attempts(Nodes, sderl_retry:new(), rand:seed_s(exsss, Seed), 0, #{}, 0),
        Longest = 1.5 * max(10_000, 500 * Count),
        ?WHENFAIL(io:format("~b nodes: ~b attempts~n", [Count, Attempts]),
                  Attempts =< 8 * Count + 2.5 * 300
                      andalso lists:all(fun(At) -> At >= 300_000 - Longest end, maps:values(Last)))
    end).

%% Five minutes, in which all that is due is tried.
attempts(_, _, _, Now, Last, Attempts) when Now >= 300_000 -> {Attempts, Last};
attempts(Nodes, Retries0, Rand0, Now, Last0, Attempts) ->
    Due = [Node || Node <- Nodes, sderl_retry:is_due(Node, Now, Retries0)],
    {Retries, Rand} = lists:foldl(fun(Node, {Acc, R0}) ->
        {Spread, R} = rand:uniform_s(R0),
        {sderl_retry:failed(Node, member, Now, Spread, Acc), R}
    end, {Retries0, Rand0}, Due),
    Last = maps:merge(Last0, #{Node => Now || Node <- Due}),
    attempts(Nodes, Retries, Rand, sderl_retry:next(Now, Now + 1000, Retries), Last,
             Attempts + length(Due)).
