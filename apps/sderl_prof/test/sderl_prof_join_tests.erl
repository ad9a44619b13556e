%% SPDX-License-Identifier: Apache-2.0
%% Joining sends with receives, for messages where the pairs are known.
-module(sderl_prof_join_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

properties_test_() ->
    [
        sderl_prop:eunit("all of a whole recording are joined", 300, fun prop_whole/0),
        sderl_prop:eunit("questions with answers, whoever begins first", 300, fun prop_skewed/0),
        sderl_prop:eunit("sends that are told late", 300, fun prop_late/0),
        sderl_prop:eunit("parts that are lost do no harm", 300, fun prop_lost/0),
        sderl_prop:eunit("the limit holds", 200, fun prop_limit/0)
    ].

%% ---------------------------------------------------------------- messages

%% The nodes between which messages go, with these: sender and receiver, the gap to the one before,
%% how long it takes, its bytes.
traffic() ->
    list({{range(1, 2), range(3, 4)},
          list({range(1, 2), range(1, 2), {range(0, 50), range(0, 100), range(1, 3)}})}).

%% What goes over a connection arrives in order. The time of each send is its own.
messages(Traffic) ->
    Merged = maps:groups_from_list(fun({Nodes, _}) -> Nodes end, fun({_, Ms}) -> Ms end, Traffic),
    lists:append([sent(Nodes, lists:append(Lists)) || Nodes := Lists <- Merged]).

sent({A, B}, Messages) ->
    {Made, _} = lists:mapfoldl(fun({From, To, {Gap, Way, Bytes}}, {T, Before}) ->
        Sent = T + Gap + 1,
        Received = max(Before, Sent + Way),
        {{{A, From}, {B, To}, Sent, Received, Bytes}, {Sent, Received}}
    end, {0, 0}, Messages),
    Made.

%% In their order, each with the time of its send.
events(Made) ->
    lists:keysort(1, [{{T, Kind, Sent}, {Kind, T, From, To, Sent, Bytes}}
                      || {From, To, Sent, Received, Bytes} <- Made,
                         {T, Kind} <- [{Sent, a_send}, {Received, b_receive}]]).

%% Of each receive its own send, and the one that was found.
joined(Events, Join) ->
    {Found, Last} = lists:foldl(fun
        ({_, {a_send, T, From, To, _, Bytes}}, {Acc, J}) ->
            {Matches, J1} = sderl_prof_join:sent(From, To, T, Bytes, J),
            {lists:reverse(Matches) ++ Acc, J1};
        ({_, {b_receive, T, {Node, _}, To, Sent, Bytes}}, {Acc, J}) ->
            {Matches, J1} = sderl_prof_join:received(Node, To, T, Bytes, {Node, To, Sent}, J),
            {lists:reverse(Matches) ++ Acc, J1}
    end, {[], Join}, Events),
    {Rest, Result} = sderl_prof_join:finish(Last),
    {[{{Node, Sender}, To, Sent, Time}
      || {{Time, Bytes, Sender}, {_, Bytes, {Node, To, Sent}}} <- lists:reverse(Found) ++ Rest],
     Result}.

new() -> sderl_prof_join:new(#{}, 1000).

%% ---------------------------------------------------------------- properties

prop_whole() ->
    ?FORALL(Traffic, traffic(), begin
        Events = events(messages(Traffic)),
        {Found, #{matched := Matched} = Result} = joined(Events, new()),
        lists:all(fun is_own/1, Found) andalso
            2 * Matched =:= length(Events) andalso
            lists:sum(maps:values(Result)) =:= Matched
    end).

is_own({_, _, Sent, Found}) -> Sent =:= Found.

%% All have the same size. Each is sent when the one before has arrived, as with questions.
prop_skewed() ->
    ?FORALL({Ways, From, To}, {list(range(1, 100)), range(0, 500), range(0, 500)}, begin
        {Made, _} = lists:mapfoldl(fun(Way, T) ->
            {{{1, 1}, {2, 1}, T, T + Way, 7}, T + Way + 1}
        end, 1, Ways),
        Events = [E || {_, {Kind, T, _, _, _, _}} = E <- events(Made),
                       T >= case Kind of a_send -> From; b_receive -> To end],
        Join = sderl_prof_join:new(#{1 => From, 2 => To}, 1000),
        {Found, _} = joined(Events, Join),
        lists:all(fun is_own/1, Found) andalso
            %% Every message with both ends recorded is found.
            length(Found) =:=
                length([Sent || {_, _, Sent, Received, _} <- Made, Sent >= From, Received >= To])
    end).

prop_lost() ->
    ?FORALL({Traffic, Lost}, {traffic(), list(boolean())}, begin
        Events = kept(events(messages(Traffic)), Lost),
        {Found, #{matched := Matched, early := Early, unreceived := Unreceived,
                  unsent := Unsent, given_up := 0}} = joined(Events, new()),
        Sends = length([1 || {_, {a_send, _, _, _, _, _}} <- Events]),
        Receives = length(Events) - Sends,
        Sends =:= Matched + Early + Unreceived andalso Receives =:= Matched + Unsent andalso
            is_in_order(Found)
    end).

kept([_ | Events], [true | Lost]) -> kept(Events, Lost);
kept([Event | Events], [false | Lost]) -> [Event | kept(Events, Lost)];
kept(Events, _) -> Events.

%% Some sends are recorded after their receive, but no two in a row.
prop_late() ->
    ?FORALL(Ways, list({range(1, 100), boolean()}), begin
        {Made, _} = lists:mapfoldl(fun({Way, Wanted}, {T, Before}) ->
            Late = Wanted andalso not Before,
            Sent = case Late of true -> T + Way + 1; false -> T end,
            {{{1, 1}, {2, 1}, Sent, T + Way, 7}, {T + Way + 2, Late}}
        end, {1, false}, Ways),
        {Found, #{matched := Matched}} = joined(events(Made), new()),
        lists:all(fun is_own/1, Found) andalso Matched =:= length(Ways)
    end).

%% No send is found twice, or out of its turn.
is_in_order(Found) ->
    ByPair = maps:groups_from_list(fun({From, To, _, _}) -> {From, To} end,
                                   fun({_, _, _, Time}) -> Time end, Found),
    lists:all(fun(Times) -> Times =:= lists:usort(Times) end, maps:values(ByPair)).

prop_limit() ->
    ?FORALL({Traffic, Limit}, {traffic(), range(1, 5)}, begin
        Events = events(messages(Traffic)),
        {Found, #{matched := Matched, unreceived := Unreceived, unsent := Unsent, early := 0,
                  given_up := GivenUp}} = joined(Events, sderl_prof_join:new(#{}, Limit)),
        lists:all(fun is_own/1, Found) andalso
            Unreceived =< Limit andalso
            length(Events) =:= 2 * Matched + Unreceived + Unsent + GivenUp
    end).

%% ---------------------------------------------------------------- cases

sends(Sends, Join) ->
    lists:foldl(fun({Sender, T, Bytes}, J) ->
        {[], J1} = sderl_prof_join:sent({1, Sender}, {2, 2}, T, Bytes, J),
        J1
    end, Join, Sends).

got(T, Bytes, Join) ->
    {Matches, Next} = sderl_prof_join:received(1, {2, 2}, T, Bytes, mark, Join),
    {[Send || {Send, {_, _, mark}} <- Matches], Next}.

%% A stream, of which the first messages were received before the recording began.
early_test() ->
    Sent = sends([{1, T, Bytes} || {T, Bytes} <- [{10, 5}, {20, 6}, {90, 7}, {110, 6}, {120, 5}]],
                 sderl_prof_join:new(#{1 => 0, 2 => 100}, 1000)),
    %% Its size is that of one from before, not that of the first one after.
    {[{90, 7, 1}], Next} = got(130, 7, Sent),
    {[{110, 6, 1}], _} = got(131, 6, Next),
    %% With the size of the first one after, it is that one.
    {[{110, 6, 1}], Other} = got(130, 6, Sent),
    ?assertMatch({[], #{matched := 1, early := 3, unreceived := 1}},
                 sderl_prof_join:finish(Other)).

%% Messages of two senders may arrive in another order than they were sent.
swapped_test() ->
    Join = sends([{1, 10, 5}, {2, 11, 6}, {1, 12, 7}], new()),
    {[{11, 6, 2}], Next} = got(20, 6, Join),
    {[{10, 5, 1}], Last} = got(21, 5, Next),
    {[{12, 7, 1}], _} = got(22, 7, Last),
    %% Those of one sender may not.
    {[{12, 7, 1}], Passed} = got(20, 7, Join),
    {[], _} = got(21, 5, Passed).
