%% SPDX-License-Identifier: Apache-2.0
-module(sderl_city_tests).
-moduledoc "The city without nodes: its rows and groups, and managers that lose something.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Every row is on one node, every node has one, and they differ by one at most.
bands_test_() ->
    sderl_prop:eunit("rows are divided", 200, fun() ->
        ?FORALL({Nodes, More}, {range(1, 40), range(0, 60)}, begin
            Bands = sderl_city:bands(Nodes + More, Nodes),
            Sizes = [Last - First + 1 || {First, Last} <- Bands],
            lists:append([lists:seq(First, Last) || {First, Last} <- Bands])
                =:= lists:seq(0, Nodes + More - 1)
                andalso length(Bands) =:= Nodes andalso lists:min(Sizes) > 0
                andalso lists:max(Sizes) - lists:min(Sizes) =< 1
        end)
    end).

groups_test() ->
    ?assertEqual([[a]], sderl_city:groups([a], 4)),
    ?assertEqual([[a, b, c, d]], sderl_city:groups([a, b, c, d], 4)),
    ?assertEqual([[a, b], [c, d], [e]], sderl_city:groups([a, b, c, d, e], 2)).

%% Two managers under one: the sum of all below.
sum_test() ->
    Below = [spawn(fun() -> answer(N) end) || N <- [1, 2, 3]],
    [A, B, C] = Below,
    Root = sderl_city_manager:start([sderl_city_manager:start([A, B]),
                                     sderl_city_manager:start([C])]),
    ?assertEqual(6, sderl_city_manager:ask(Root, where)),
    ?assertMatch({12, Seconds} when is_float(Seconds), sderl_city_manager:steps(Root, 2)),
    %% The death of one is reported all the way up, and ends all managers.
    true = exit(C, kill),
    ?assertEqual({error, {died, C, killed}}, sderl_city_manager:ask(Root, where)),
    ?assertMatch({error, {died, Root, _}}, sderl_city_manager:ask(Root, {step, 3})),
    [exit(Pid, kill) || Pid <- Below].

%% A process dies while its manager waits for its answer.
lost_test() ->
    Silent = spawn(fun() -> receive {where, Manager} -> exit({asked, Manager}) end end),
    Manager = sderl_city_manager:start([Silent]),
    ?assertMatch({error, {died, Silent, {asked, Manager}}},
                 sderl_city_manager:ask(sderl_city_manager:start([Manager]), where)).

answer(N) ->
    receive
        {_, Manager} ->
            Manager ! {self(), N},
            answer(N)
    end.
