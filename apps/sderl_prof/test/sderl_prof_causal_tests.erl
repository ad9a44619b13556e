%% SPDX-License-Identifier: Apache-2.0
%% Corrections of clocks by the messages between nodes.
-module(sderl_prof_causal_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [
        sderl_prop:eunit("no message is there before it was sent", 300, fun prop_possible/0)
    ].

%% If clocks are off by no more than their error, every message arrives after it was sent.
prop_possible() ->
    ?FORALL({Clocks, Messages}, {non_empty(list({range(0, 100), range(-100, 100)})),
                                 list({nat(), nat(), range(2, 300)})}, begin
        Wrong = #{N => max(-Error, min(Error, By))
                  || {N, {Error, By}} <- lists:enumerate(Clocks)},
        Errors = #{N => Error || {N, {Error, _}} <- lists:enumerate(Clocks)},
        Node = fun(N) -> 1 + N rem map_size(Errors) end,
        %% How long each message took, by the uncorrected clocks.
        Ways = [{Node(A), Node(B), Way - map_get(Node(A), Wrong) + map_get(Node(B), Wrong)}
                || {A, B, Way} <- Messages, Node(A) =/= Node(B)],
        {ok, Shifts} = sderl_prof_causal:shifts(Errors, causal(Ways)),
        lists:all(fun({A, B, Way}) -> Way + map_get(B, Shifts) - map_get(A, Shifts) > 0 end, Ways)
            andalso lists:all(fun(N) -> abs(map_get(N, Shifts)) =< map_get(N, Errors) end,
                              maps:keys(Errors))
    end).

causal(Ways) ->
    lists:foldl(fun({A, B, Way}, Causal) -> sderl_prof_causal:add(A, B, Way, Causal) end,
                sderl_prof_causal:new(), Ways).

nothing_to_do_test() ->
    ?assertEqual({ok, #{1 => 0, 2 => 0}},
                 sderl_prof_causal:shifts(#{1 => 10, 2 => 20}, sderl_prof_causal:new())).

%% Both directions get the same time, if the clocks' errors allow it.
middle_test() ->
    {ok, #{1 := A, 2 := B}} =
        sderl_prof_causal:shifts(#{1 => 1000, 2 => 1000}, causal([{1, 2, -50}, {2, 1, 150}])),
    ?assertEqual(100, B - A).

%% The messages need a correction beyond the clocks' errors.
impossible_test() ->
    ?assertEqual(none, sderl_prof_causal:shifts(#{1 => 10, 2 => 10}, causal([{1, 2, -50}]))),
    ?assertEqual(none, sderl_prof_causal:shifts(#{1 => 100, 2 => 100},
                                                causal([{1, 2, -50}, {2, 1, 20}]))).

%% A few sends that are recorded late do not move the clocks.
late_test() ->
    Ways = [{1, 2, case N rem 200 of 0 -> -90; _ -> 5 + N rem 7 end} || N <- lists:seq(1, 20_000)],
    {ok, #{1 := A, 2 := B}} = sderl_prof_causal:shifts(#{1 => 100, 2 => 100},
                                                       causal(Ways ++ [{2, 1, 5}])),
    ?assert(abs(B - A) =< 5).
