%% SPDX-License-Identifier: Apache-2.0
-module(sderl_retry_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(NODE, 'n@h').

%% A node that was lost is tried at once and soon again; one that was never there less often.
pauses_test() ->
    Lost = sderl_retry:lost(?NODE, 0, sderl_retry:new()),
    ?assertEqual([?NODE], sderl_retry:due([?NODE], 0, Lost)),
    ?assertEqual([200, 400, 800, 1600, 3200, 6400, 10_000, 10_000], pauses({member, 20}, Lost, 8)),
    Unseen = sderl_retry:new(),
    ?assertEqual([?NODE], sderl_retry:due([?NODE], 0, Unseen)),
    ?assertEqual([1000, 2000, 4000, 8000, 10_000, 10_000], pauses({member, 1}, Unseen, 6)),
    ?assertEqual([1000, 2000, 4000, 8000, 15_000, 15_000], pauses({member, 30}, Unseen, 6)),
    ?assertEqual([1000, 2000, 4000, 8000, 16_000, 30_000], pauses({member, 1000}, Unseen, 6)),
    ?assertEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 40_000, 40_000],
                 pauses({forgotten, 80}, Unseen, 8)),
    ?assertEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 100_000],
                 pauses({forgotten, 200}, Unseen, 8)).

%% With a spread of a half the next attempt comes after just the pause.
pauses(Kind, Retries, Count) ->
    {Pauses, _} = lists:mapfoldl(fun(_, {At, Before}) ->
        After = sderl_retry:failed(?NODE, Kind, At, 0.5, Before),
        Next = sderl_retry:next(At, At + 100_000, After),
        ?assertEqual([], sderl_retry:due([?NODE], Next - 1, After)),
        ?assertEqual([?NODE], sderl_retry:due([?NODE], Next, After)),
        {Next - At, {Next, After}}
    end, {0, Retries}, lists:seq(1, Count)),
    Pauses.

linked_test() ->
    Retries = failed([?NODE], 0, sderl_retry:new()),
    ?assertEqual([], sderl_retry:due([?NODE], 1, Retries)),
    ?assertEqual([?NODE], sderl_retry:due([?NODE], 1, sderl_retry:linked(?NODE, 1, Retries))),
    ?assertEqual([?NODE], sderl_retry:due([?NODE], 1, sderl_retry:keep([], Retries))),
    ?assertEqual([], sderl_retry:due([?NODE], 1, sderl_retry:keep([?NODE], Retries))).

failed(Nodes, Now, Retries) ->
    lists:foldl(fun(Node, Acc) ->
        sderl_retry:failed(Node, {member, length(Nodes)}, Now, 0.5, Acc)
    end, Retries, Nodes).

%% Where few at a time are tried everybody has a turn: first those that were never tried, then those
%% that wait for longest.
order_test() ->
    Early = failed(['b@h'], 0, sderl_retry:new()),
    Retries = failed(['a@h'], 500, Early),
    ?assertEqual(['c@h', 'b@h', 'a@h'], sderl_retry:due(['a@h', 'b@h', 'c@h'], 5000, Retries)).

%% The network is whole again when one of those that were lost is back; that a node has started says
%% nothing of others.
whole_again_test() ->
    Nodes = [?NODE, 'b@h', 'c@h'],
    Lost = lists:foldl(fun(Node, Acc) -> sderl_retry:lost(Node, 0, Acc) end, sderl_retry:new(),
                       Nodes),
    Times = lists:seq(0, 90_000, 10_000),
    Long = lists:foldl(fun(At, Acc) -> failed(Nodes, At, Acc) end, Lost, Times),
    Late = 90_000 + 10_000,
    ?assertEqual([], sderl_retry:due(Nodes, Late - 1, Long)),
    ?assertEqual(['b@h', 'c@h'],
                 lists:sort(sderl_retry:due(['b@h', 'c@h'], 90_100 + 5000,
                                            sderl_retry:linked(?NODE, 90_100, Long)))),
    %% One that comes and goes each second changes nothing about those that are due soon.
    Sooner = sderl_retry:linked(?NODE, 90_100, Long),
    ?assertEqual(sderl_retry:linked(?NODE, 90_200, Sooner),
                 sderl_retry:linked(?NODE, 90_200, sderl_retry:lost(?NODE, 90_150, Sooner))),
    Unseen = lists:foldl(fun(At, Acc) -> failed(Nodes, At, Acc) end, sderl_retry:new(), Times),
    ?assertEqual([], sderl_retry:due(['b@h', 'c@h'], Late - 1,
                                     sderl_retry:linked(?NODE, 90_100, Unseen))).

%% However many members are missing, and however the pauses are spread: each member has its turn,
%% and in the long run a node makes two attempts a second, where half a minute is enough for that.
property_test_() -> sderl_prop:eunit("attempts in the long run", 50, fun in_the_long_run/0).

in_the_long_run() ->
    ?FORALL({Count, Seed}, {integer(1, 200), integer()}, begin
        Nodes = [list_to_atom(lists:concat(["n", I, "@h"])) || I <- lists:seq(1, Count)],
        {Attempts, Last} = attempts(Nodes, sderl_retry:new(), rand:seed_s(exsss, Seed), 0, #{}, 0),
        Longest = min(30_000, max(10_000, 500 * Count)),
        ?WHENFAIL(io:format("~b nodes: ~b attempts~n", [Count, Attempts]),
                  Attempts =< 8 * Count + 1.25 * 300_000 / Longest * Count
                      andalso lists:all(fun(At) -> At >= 300_000 - 1.5 * Longest end,
                                        maps:values(Last)))
    end).

%% Five minutes, in which all that is due is tried.
attempts(_, _, _, Now, Last, Attempts) when Now >= 300_000 -> {Attempts, Last};
attempts(Nodes, Retries0, Rand0, Now, Last0, Attempts) ->
    Due = sderl_retry:due(Nodes, Now, Retries0),
    {Retries, Rand} = lists:foldl(fun(Node, {Acc, R0}) ->
        {Spread, R} = rand:uniform_s(R0),
        {sderl_retry:failed(Node, {member, length(Nodes)}, Now, Spread, Acc), R}
    end, {Retries0, Rand0}, Due),
    Last = maps:merge(Last0, #{Node => Now || Node <- Due}),
    attempts(Nodes, Retries, Rand, sderl_retry:next(Now, Now + 1000, Retries), Last,
             Attempts + length(Due)).
