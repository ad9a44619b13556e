%% SPDX-License-Identifier: Apache-2.0
%% Clocks that stand and drift apart, asked over ways that take as long as they like.
-module(sderl_prof_clock_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SECOND, 1_000_000_000).

properties_test_() ->
    [
        sderl_prop:eunit("a time is wrong by no more than is said", 500, fun prop_error/0),
        sderl_prop:eunit("later stays later", 300, fun prop_order/0)
    ].

%% The node's clock is ahead by `Ahead` and faster by `Ppb` of a thousand millions. Each round takes
%% `There` to the node and `Back` from it.
clock() ->
    ?LET({Ahead, Ppb, First, Last, Seconds},
         {integer(-1_000_000 * ?SECOND, 1_000_000 * ?SECOND), integer(-90_000, 90_000), rounds(),
          rounds(), range(1, 100)},
         {Ahead, Ppb, First, Last, Seconds}).

rounds() -> non_empty(list({range(1, 10_000_000), range(1, 10_000_000)})).

there(True, Ahead, Ppb) -> True + Ahead + True * Ppb div ?SECOND.

sample(At, Rounds, Ahead, Ppb) ->
    {Asked, _} = lists:mapfoldl(fun({There, Back}, T) ->
        {{T, there(T + There, Ahead, Ppb), T + There + Back}, T + There + Back + 1000}
    end, At, Rounds),
    sderl_prof_clock:sample(Asked).

prop_error() ->
    ?FORALL({{Ahead, Ppb, First, Last, Seconds}, Part, HasLast},
            {clock(), float(-0.2, 1.2), boolean()}, begin
        End = 3 * ?SECOND + Seconds * ?SECOND,
        Alignment = #{first => sample(0, First, Ahead, Ppb),
                      last => case HasLast of
                          true -> sample(End, Last, Ahead, Ppb);
                          false -> none
                      end},
        True = round(Part * End),
        Time = there(True, Ahead, Ppb),
        Common = sderl_prof_clock:common(Time, Alignment),
        Error = sderl_prof_clock:common_error(Time, Alignment),
        ?WHENFAIL(io:format("off by ~b, said ~b~n", [Common - True, Error]),
                  %% Three for the rounding.
                  abs(Common - True) =< Error + 3)
    end).

prop_order() ->
    ?FORALL({{Ahead, Ppb, First, Last, Seconds}, A, B},
            {clock(), range(0, 100 * ?SECOND), range(0, 100 * ?SECOND)}, begin
        Alignment = #{first => sample(0, First, Ahead, Ppb),
                      last => sample((3 + Seconds) * ?SECOND, Last, Ahead, Ppb)},
        At = fun(T) -> sderl_prof_clock:common(Ahead + T, Alignment) end,
        (A =< B) =:= (At(A) =< At(B)) orelse abs(A - B) =< 1
    end).

%% The round that took least counts.
sample_test() ->
    ?assertEqual(#{at => 1050, ahead => 900, error => 51},
                 sderl_prof_clock:sample([{0, 5000, 4000}, {100, 1050, 200}, {300, 1250, 700}])).

drift_test() ->
    Sample = fun(At, Ahead) -> #{at => At, ahead => Ahead, error => 10} end,
    Alignment = #{first => Sample(0, 0), last => Sample(1_000_000, 50)},
    ?assertEqual(50.0, sderl_prof_clock:drift(Alignment)),
    ?assertEqual(500_000 - 25, sderl_prof_clock:common(500_000, Alignment)),
    ?assertEqual(unknown, sderl_prof_clock:drift(Alignment#{last := none})),
    %% One sample alone: the error grows by 100 millionths of the time since.
    ?assertEqual(10 + 100, sderl_prof_clock:common_error(1_000_000, Alignment#{last := none})).
