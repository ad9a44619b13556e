%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_queue_tests).
-moduledoc false.
-include_lib("eunit/include/eunit.hrl").

%% Events come in the order of their times, and events of one time in the order in which they were
%% put. Some are for the present time, some for the same page of the queue, for the next, and for
%% much later.
order_test() ->
    First = [{At, At} || At <- [700, 3, 31, 32, 3, 63, 64, 100_000, 0]],
    Put = fun({At, Event}, Queue) -> sderl_sim_queue:put(At, {At, Event}, Queue) end,
    Queue = lists:foldl(Put, sderl_sim_queue:new(),
                        lists:zip([At || {At, _} <- First], lists:seq(1, 9))),
    ?assertEqual([{0, 9}, {3, 2}, {3, 5}, {31, 3}, {32, 4}, {63, 6}, {64, 7}, {700, 1},
                  {100_000, 8}],
                 taken(0, 200_000, Queue)).

%% For random times the queue gives what a sorted list gives.
random_test() ->
    Seed = erlang:unique_integer([positive]),
    io:format("seed ~b~n", [Seed]),
    random(0, 500, sderl_sim_queue:new(), [], 0, sderl_sim_dice:new(Seed)).

random(_, 0, _, _, _, _) -> ok;
random(Now, Left, Queue0, Known0, Count, Dice0) ->
    {K, Dice1} = sderl_sim_dice:roll(6, Dice0),
    {Queue, Known, Dice2} = lists:foldl(fun(I, {Q, Ks, D0}) ->
        {Far, D1} = sderl_sim_dice:roll(4, D0),
        {In, D} = sderl_sim_dice:roll(element(Far, {1, 20, 300, 5000}), D1),
        At = Now + In - 1,
        {sderl_sim_queue:put(At, I, Q), [{At, I} | Ks], D}
    end, {Queue0, Known0, Dice1}, lists:seq(Count + 1, Count + K)),
    {Step, Dice} = sderl_sim_dice:roll(80, Dice2),
    Until = Now + Step,
    case {sderl_sim_queue:take(Now, Until, Queue),
          lists:sort([E || {At, _} = E <- Known, At =< Until])} of
        {{none, Same}, []} -> random(Until, Left - 1, Same, Known, Count + K, Dice);
        {{At, Events, Rest}, [{At, _} | _] = Due} ->
            ?assertEqual([I || {T, I} <- Due, T =:= At], Events),
            random(At, Left - 1, Rest, [E || {T, _} = E <- Known, T =/= At], Count + K, Dice)
    end.

taken(From, To, Queue) ->
    case sderl_sim_queue:take(From, To, Queue) of
        {none, _} -> [];
        {At, Events, Left} -> Events ++ taken(At, To, Left)
    end.
