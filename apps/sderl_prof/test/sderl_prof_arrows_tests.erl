%% SPDX-License-Identifier: Apache-2.0
%% Single messages: which is sent when, and when it is taken over.
-module(sderl_prof_arrows_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("sderl_prof_event.hrl").

arrows(Events, Changes) ->
    Options = maps:merge(#{from => 0, to => 1000, processes => [1, 2, 3], process => none,
                           most => 100}, Changes),
    sderl_prof_arrows:result(lists:foldl(fun({T, K, P, A, B}, Acc) ->
        sderl_prof_arrows:step(T, K, 0, P, A, B, Acc)
    end, sderl_prof_arrows:new(Options), Events)).

in_order_test() ->
    Events = [{1, ?SEND, 1, 2, 8}, {2, ?SEND, 3, 2, 8}, {3, ?SEND, 1, 2, 9},
              {4, ?RECEIVE, 2, 0, 8}, {5, ?RECEIVE, 2, 0, 9}, {6, ?RECEIVE, 2, 0, 8},
              {7, ?SEND, 1, 3, 8}, {8, ?RECEIVE, 2, 0, 8}],
    ?assertEqual([{1, 4, 1, 2, 8}, {2, 6, 3, 2, 8}, {3, 5, 1, 2, 9}, {7, none, 1, 3, 8}],
                 map_get(arrows, arrows(Events, #{}))).

%% A message from before the part is not taken for one of the part.
before_test() ->
    Events = [{1, ?SEND, 1, 2, 8}, {5, ?SEND, 1, 2, 8}, {6, ?RECEIVE, 2, 0, 8},
              {7, ?RECEIVE, 2, 0, 8}, {9, ?SEND, 1, 2, 8}],
    ?assertEqual(#{arrows => [{5, 7, 1, 2, 8}], count => 1, elsewhere => 0},
                 arrows(Events, #{from => 5, to => 9})).

%% Nor is one from a process that is not shown.
elsewhere_test() ->
    Events = [{1, ?SEND, 7, 2, 8}, {2, ?SEND, 1, 2, 8}, {3, ?RECEIVE, 2, 0, 8},
              {4, ?RECEIVE, 2, 0, 8}, {5, ?SEND, 2, 7, 8}, {6, ?SEND, 3, 1, 8}],
    #{arrows := [{2, 4, 1, 2, 8}, {6, none, 3, 1, 8}], count := 2, elsewhere := 0} =
        arrows(Events, #{}),
    #{arrows := [{2, 4, 1, 2, 8}], count := 1, elsewhere := 2} = arrows(Events, #{process => 2}).

properties_test_() ->
    [sderl_prop:eunit("few of many, spread, and all of them counted", 100, fun prop_few/0)].

prop_few() ->
    ?FORALL({N, Most}, {range(0, 200), range(1, 20)}, begin
        Events = lists:append([[{2 * I, ?SEND, 1, 2, 8}, {2 * I + 1, ?RECEIVE, 2, 0, 8}]
                               || I <- lists:seq(1, N)]),
        #{arrows := Arrows, count := Count} = arrows(Events, #{most => Most}),
        Sent = [T || {T, _, _, _, _} <- Arrows],
        Count =:= N andalso length(Arrows) =< Most
            andalso (N =< Most) =:= (length(Arrows) =:= N)
            andalso (N < Most orelse 2 * length(Arrows) + 1 >= Most)
            andalso lists:all(fun({T, R, _, _, _}) -> R =:= T + 1 end, Arrows)
            andalso Sent =:= lists:usort(Sent)
    end).
