%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_stays_tests).
-moduledoc "On which schedulers a process was: known histories, and sums for any.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

stays(Part, Most, Events) ->
    sderl_prof_stays:result(Most, lists:foldl(fun({T, K, S, P}, Acc) ->
        sderl_prof_stays:step(T, K, S, P, 0, 0, Acc)
    end, sderl_prof_stays:new(1, Part), Events)).

%% The process begins on 2, is moved to 1, comes back and ends; another one does not count.
events() ->
    [{10, ?IN, 2, 1}, {15, ?OUT, 2, 1}, {20, ?IN, 2, 1}, {22, ?IN, 1, 2}, {30, ?OUT, 2, 1},
     {50, ?IN, 1, 1}, {60, ?OUT, 1, 1}, {70, ?IN, 2, 1}, {75, ?EXIT, 2, 1}].

history_test() ->
    ?assertEqual(#{schedulers => [#{scheduler => 1, stays => 1, ins => 1, ran => 10},
                                  #{scheduler => 2, stays => 2, ins => 3, ran => 20}],
                   stays => [{2, 10, 50, 2, 15}, {1, 50, 70, 1, 10}, {2, 70, 75, 1, 5}],
                   count => 3},
                 stays({0, 100}, 10, events())).

%% Events before the range show where it is; a run counts with its part within the range.
part_test() ->
    ?assertMatch(#{stays := [{2, 25, 50, 0, 5}, {1, 50, 55, 1, 5}], count := 2},
                 stays({25, 55}, 10, events())),
    ?assertMatch(#{stays := [{2, 31, 40, 0, 0}], count := 1}, stays({31, 40}, 10, events())),
    ?assertEqual(#{schedulers => [], stays => [], count => 0}, stays({0, 5}, 10, events())).

longest_test() ->
    ?assertMatch(#{stays := [{2, 10, 50, 2, 15}, {1, 50, 70, 1, 10}], count := 3},
                 stays({0, 100}, 2, events())).

%% Stays follow each other without a gap, and their runs are all runs.
whole_test_() ->
    sderl_prop:eunit("stays have all runs of a part", 300, fun prop_whole/0).

prop_whole() ->
    ?FORALL({Runs, From, Length},
            {list({integer(1, 3), integer(1, 20), integer(1, 20)}), integer(0, 200),
             integer(1, 200)},
            begin
                {Events, Spans, _} = lists:foldl(fun({S, Waits, Runs1}, {Es, Sp, T}) ->
                    In = T + Waits,
                    Out = In + Runs1,
                    {Es ++ [{In, ?IN, S, 1}, {Out, ?OUT, S, 1}], [{S, In, Out} | Sp], Out}
                end, {[], [], 0}, Runs),
                To = From + Length,
                #{schedulers := Sums, stays := Stays, count := Count} =
                    stays({From, To}, 1000, Events),
                Within = [{S, max(0, min(B, To) - max(A, From)), A} || {S, A, B} <- Spans],
                Count =:= length(Stays)
                    andalso lists:sum([R || {_, R, _} <- Within])
                        =:= lists:sum([Ran || #{ran := Ran} <- Sums])
                    andalso length([ok || {_, _, A} <- Within, A >= From, A < To])
                        =:= lists:sum([Ins || #{ins := Ins} <- Sums])
                    andalso [B || {_, _, B, _, _} <- Stays]
                        =:= case [A || {_, A, _, _, _} <- Stays] of
                            [] -> [];
                            [_ | Next] -> Next ++ [To]
                        end
            end).
