%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_routed).
-moduledoc """
Messages that the library routed over gateways, of a recording of `routed`
(`m:sderl_prof_library`): how many, whereto, by which way.
""".

-export([find/2]).
-export_type([result/0]).

-include("sderl_prof_event.hrl").

-doc """
`sent`: attempts of processes to send a message into a group of other nodes, with the first gateway:
one that could not be reached and the next one are two, and what was refused is among them.
`passed`: what nodes sent on. `delivered`: messages that came to their node by the processes that
pass on; what a gateway sends straight to the process is not among them. `undelivered`: by reason.
Each list has the greatest ones; `count` is that of all. `null` of a recording without them.
""".
-type result() :: #{
    sent := #{count := non_neg_integer(), bytes := non_neg_integer(),
              rows := [#{first := binary(), to := binary(), whom := binary(),
                         count := pos_integer(), bytes := non_neg_integer()}]},
    gateways := [#{first := binary(), count := pos_integer(), bytes := non_neg_integer()}],
    passed := #{count := non_neg_integer(),
                rows := [#{from := binary(), next := binary(), count := non_neg_integer(),
                           bundles := pos_integer()}]},
    delivered := non_neg_integer(),
    undelivered := #{count := non_neg_integer(),
                     rows := [#{to := binary(), whom := binary(), why := binary(),
                                count := pos_integer()}]}
} | null.

-doc "Those of a book, with so many rows of each list.".
-spec find(sderl_prof_book:book(), Top :: pos_integer()) -> result().
find(Book, Top) ->
    #{kinds := Kinds} = sderl_prof_book:meta(Book),
    case maps:with([routed, passed, delivered, undelivered], Kinds) of
        %% Nothing to look for, nothing to read.
        None when map_size(None) =:= 0 -> null;
        _ -> result(sderl_prof_book:fold(Book, #{}, fun step/7, #{}), Top, Book)
    end.

%% Counts and sums by the kind and the word of the detail.
step(_, K, _, _, Detail, Number, Routed)
  when K =:= ?ROUTED; K =:= ?PASSED; K =:= ?DELIVERED; K =:= ?UNDELIVERED ->
    Key = {K, Detail},
    {N, Sum} = maps:get(Key, Routed, {0, 0}),
    Routed#{Key => {N + 1, Sum + Number}};
step(_, _, _, _, _, _, Routed) -> Routed.

result(Routed, Top, Book) ->
    Sent = rows(?ROUTED, Routed, Book),
    Passed = rows(?PASSED, Routed, Book),
    Undelivered = rows(?UNDELIVERED, Routed, Book),
    #{
        sent => #{
            count => counted(Sent), bytes => summed(Sent),
            rows => [#{first => First, to => To, whom => Whom, count => N, bytes => Bytes}
                     || {[First, To, Whom], {N, Bytes}} <- greatest(1, padded(3, Sent), Top)]
        },
        gateways => gateways(padded(3, Sent), Top),
        passed => #{
            count => summed(Passed),
            rows => [#{from => From, next => Next, count => Count, bundles => N}
                     || {[From, Next], {N, Count}} <- greatest(2, padded(2, Passed), Top)]
        },
        delivered => summed(rows(?DELIVERED, Routed, Book)),
        undelivered => #{
            count => counted(Undelivered),
            rows => [#{to => To, whom => Whom, why => Why, count => N}
                     || {[To, Whom, Why], {N, _}} <- greatest(1, padded(3, Undelivered), Top)]
        }
    }.

rows(Kind, Routed, Book) ->
    [{texts(sderl_prof_book:word(Detail, Book)), Row} || {K, Detail} := Row <- Routed, K =:= Kind].

texts(Word) ->
    try json:decode(Word) of
        Texts when is_list(Texts) -> Texts;
        _ -> []
    catch
        error:_ -> []
    end.

%% Of those that were too many to tell apart nothing is known.
padded(Size, Rows) ->
    [{case length(Texts) of Size -> Texts; _ -> lists:duplicate(Size, ~"unknown") end, Row}
     || {Texts, Row} <- Rows].

gateways(Sent, Top) ->
    Sums = lists:foldl(fun({[First | _], {N, Bytes}}, All) ->
        {N0, Bytes0} = maps:get(First, All, {0, 0}),
        All#{First => {N0 + N, Bytes0 + Bytes}}
    end, #{}, Sent),
    [#{first => First, count => N, bytes => Bytes}
     || {First, {N, Bytes}} <- greatest(1, maps:to_list(Sums), Top)].

counted(Rows) -> lists:foldl(fun({_, {N, _}}, Sum) -> Sum + N end, 0, Rows).

summed(Rows) -> lists:foldl(fun({_, {_, N}}, Sum) -> Sum + N end, 0, Rows).

greatest(At, Rows, Top) ->
    Sorted = lists:sort(fun({TextsA, A}, {TextsB, B}) ->
        {element(At, B), TextsA} =< {element(At, A), TextsB}
    end, Rows),
    lists:sublist(Sorted, Top).
