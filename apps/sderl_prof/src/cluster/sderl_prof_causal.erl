%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_causal).
-moduledoc """
Corrects the clocks of several nodes by the messages between them: no message can be there before it
was sent. Pure.

How far each clock is ahead is known with an error (`m:sderl_prof_clock`). Within these errors the
messages leave a range of shifts for each clock. The least shifts of all nodes together are a
solution, and so are the greatest; taken is the middle between them, which is a solution, too. If
two nodes send to each other, their quickest messages are to take as long in both directions, as far
as that is possible for all pairs of nodes at once.

A send may be told late (`m:sderl_prof_join`). So the quickest messages of a pair of nodes, one of a
hundred and at most a thousand, do not count. If even the others do not fit the errors, there is no
solution, and the clocks stay as they are.
""".

-export([new/0, add/4, shifts/2]).
-export_type([causal/0, shift/0]).

%% The quickest messages of a pair that are kept; of so many messages one does not count.
-define(KEPT, 1001).
-define(ONE_OF, 100).
%% The least time of a message, with a nanosecond for rounding.
-define(LEAST, 2).
%% The demand that both directions take as long is lowered in so many steps until it can be met.
-define(TENTHS, 10).

%% By the pair how many there were; up to which time, of so many, they are kept, in no order.
-opaque causal() :: #{{pos_integer(), pos_integer()} =>
                          {pos_integer(), infinity | integer(), non_neg_integer(), [integer()]}}.
-doc "What is to be added to the times of a node.".
-type shift() :: integer().

-doc "No messages yet.".
-spec new() -> causal().
new() -> #{}.

-doc "A message of a node to another one took so long, from its send to when it was there.".
-spec add(From :: pos_integer(), To :: pos_integer(), Way :: integer(), causal()) -> causal().
add(From, To, Way, Causal) ->
    Key = {From, To},
    case Causal of
        %% An atom is greater than any number.
        #{Key := {N, Most, Kept, Least}} when Way < Most ->
            Causal#{Key := fewer({N + 1, Most, Kept + 1, [Way | Least]})};
        #{Key := {N, Most, Kept, Least}} -> Causal#{Key := {N + 1, Most, Kept, Least}};
        _ -> Causal#{Key => {1, infinity, 1, [Way]}}
    end.

fewer({N, _, Kept, Least}) when Kept >= 2 * ?KEPT ->
    Few = lists:sublist(lists:sort(Least), ?KEPT),
    {N, lists:last(Few), ?KEPT, Few};
fewer(Ways) -> Ways.

-doc "The shifts of the nodes of which the errors are given; `none` where no shifts do.".
-spec shifts(#{Node => Error}, causal()) -> {ok, #{Node => shift()}} | none when
    Node :: pos_integer(), Error :: non_neg_integer().
shifts(Errors, Causal) ->
    Ways = #{Key => counting(Way) || {From, To} = Key := Way <- Causal,
                                     is_map_key(From, Errors), is_map_key(To, Errors)},
    first(lists:seq(?TENTHS, 0, -1), Errors, Ways).

first([], _, _) -> none;
first([Tenths | Rest], Errors, Ways) ->
    Rules = [{From, To, ?LEAST - Way + Tenths * spare(From, To, Way, Ways) div ?TENTHS}
             || {From, To} := Way <- Ways],
    case solved(Errors, Rules) of
        none -> first(Rest, Errors, Ways);
        Shifts -> {ok, Shifts}
    end.

%% By how much both directions can take longer than the least, if both take as long.
spare(From, To, Way, Ways) ->
    case Ways of
        #{{To, From} := Back} -> max(0, (Way + Back) div 2 - ?LEAST);
        _ -> 0
    end.

solved(Errors, Rules) ->
    Rounds = map_size(Errors) + 1,
    Low = relaxed(fun raised/2, Rules, maps:map(fun(_, Error) -> -Error end, Errors), Rounds),
    High = relaxed(fun lowered/2, Rules, Errors, Rounds),
    case Low =/= none andalso High =/= none
        andalso lists:all(fun(Node) -> map_get(Node, Low) =< map_get(Node, Errors) end,
                          maps:keys(Errors)) of
        true -> maps:map(fun(Node, L) -> middle(L, map_get(Node, High)) end, Low);
        false -> none
    end.

counting({N, _, Kept, Least}) ->
    lists:nth(lists:min([Kept, ?KEPT, 1 + N div ?ONE_OF]), lists:sort(Least)).

%% Rounded down, for negative ones, too.
middle(Low, High) -> (Low + High) bsr 1.

%% Until nothing changes; what still does after so many rounds would go on for ever.
relaxed(_, _, _, 0) -> none;
relaxed(Step, Rules, Shifts, Rounds) ->
    case lists:foldl(Step, Shifts, Rules) of
        Shifts -> Shifts;
        Others -> relaxed(Step, Rules, Others, Rounds - 1)
    end.

%% The receiver is later than the sender by so much.
raised({From, To, Least}, Shifts) ->
    #{From := A, To := B} = Shifts,
    Shifts#{To := max(B, A + Least)}.

lowered({From, To, Least}, Shifts) ->
    #{From := A, To := B} = Shifts,
    Shifts#{From := min(A, B - Least)}.
