%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_dice_tests).
-moduledoc false.
-include_lib("eunit/include/eunit.hrl").

%% The dice give the numbers of `rand`, so that a seed still gives the schedule that it gave in
%% earlier versions.
same_as_rand_test() ->
    lists:foreach(fun(Seed) -> same(5000, rand:seed_s(exsss, Seed), sderl_sim_dice:new(Seed)) end,
                  [0, 1, 17, 20_000, 123_456_789, -3]).

same(0, _, _) -> ok;
same(Left, State0, Dice0) ->
    %% The largest numbers of sides make the dice reject some random numbers and draw again.
    Sides = case Left rem 3 of
        0 -> 100;
        1 -> Left;
        2 -> Left * 41_000_000_000_039 rem (1 bsl 58) + 1
    end,
    {Number, State} = rand:uniform_s(Sides, State0),
    ?assertMatch({Number, _}, sderl_sim_dice:roll(Sides, Dice0)),
    {_, Dice} = sderl_sim_dice:roll(Sides, Dice0),
    same(Left - 1, State, Dice).
