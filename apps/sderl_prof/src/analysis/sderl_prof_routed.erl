%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_routed).
-moduledoc """
Messages that the library routed over gateways, of a recording of `routed`
(`m:sderl_prof_library`): how many, whereto, by which way.
""".

-export([find/2, part/3, limited/2]).
-export_type([result/0, routed/0]).

-include("sderl_prof_event.hrl").

-doc """
`sent`: attempts of processes to send a message into a group of other nodes, with the first gateway:
one that could not be reached and the next one are two, and what was refused is among them.
`passed`: what nodes sent on. `delivered`: messages that came to their node by the processes that
pass on; what a gateway sends straight to the process is not among them. `undelivered`: by reason.
Each list has the greatest ones; `count` is that of all. `at` is the node where it was so, `null` in
a book of one node.
""".
-type routed() :: #{
    sent := #{count := non_neg_integer(), bytes := non_neg_integer(),
              rows := [#{at := at(), first := binary(), to := binary(), whom := binary(),
                         count := pos_integer(), bytes := non_neg_integer()}]},
    gateways := [#{first := binary(), count := pos_integer(), bytes := non_neg_integer()}],
    passed := #{count := non_neg_integer(),
                rows := [#{at := at(), from := binary(), next := binary(),
                           count := non_neg_integer(), bundles := pos_integer()}]},
    delivered := non_neg_integer(),
    undelivered := #{count := non_neg_integer(),
                     rows := [#{at := at(), to := binary(), whom := binary(),
                                why := binary(), count := pos_integer()}]}
}.
-type at() :: binary() | null.
-doc "`null` of a recording without them.".
-type result() :: routed() | null.

-doc "Those of a book, with so many rows of each list.".
-spec find(sderl_prof_book:book(), Top :: pos_integer()) -> result().
find(Book, Top) ->
    case are_there(Book) of
        true -> part(Book, #{}, Top);
        false -> null
    end.

are_there(Book) ->
    #{kinds := Kinds} = sderl_prof_book:meta(Book),
    map_size(maps:with([routed, passed, delivered, undelivered], Kinds)) > 0.

-doc "Those of a part of the time.".
-spec part(sderl_prof_book:book(), sderl_prof_book:range(), Top :: pos_integer()) -> routed().
part(Book, Range, Top) ->
    Step = fun(_, K, _, P, Detail, Number, Routed) -> step(K, P, Detail, Number, Book, Routed) end,
    %% Nothing to look for, nothing to read.
    Routed = case are_there(Book) of
        true -> sderl_prof_book:fold(Book, Range, Step, #{});
        false -> #{}
    end,
    result(Routed, Top, Book).

-doc "The same with fewer rows of each list.".
-spec limited(routed(), Top :: pos_integer()) -> routed().
limited(#{gateways := Gateways} = Routed, Top) ->
    Fewer = fun(#{rows := Rows} = List) -> List#{rows := lists:sublist(Rows, Top)} end,
    Routed#{
        sent := Fewer(map_get(sent, Routed)), gateways := lists:sublist(Gateways, Top),
        passed := Fewer(map_get(passed, Routed)),
        undelivered := Fewer(map_get(undelivered, Routed))
    }.

%% Counts and sums by the kind, the node, and the word of the detail.
step(K, P, Detail, Number, Book, Routed)
  when K =:= ?ROUTED; K =:= ?PASSED; K =:= ?DELIVERED; K =:= ?UNDELIVERED ->
    At = case sderl_prof_book:node_of(P, Book) of
        #{node := Node} -> Node;
        none -> null
    end,
    Key = {K, At, Detail},
    {N, Sum} = maps:get(Key, Routed, {0, 0}),
    Routed#{Key => {N + 1, Sum + Number}};
step(_, _, _, _, _, Routed) -> Routed.

result(Routed, Top, Book) ->
    Sent = rows(?ROUTED, 3, Routed, Book),
    Passed = rows(?PASSED, 2, Routed, Book),
    Undelivered = rows(?UNDELIVERED, 3, Routed, Book),
    #{
        sent => #{
            count => counted(Sent), bytes => summed(Sent),
            rows => [#{at => At, first => First, to => To, whom => Whom, count => N, bytes => Bytes}
                     || {[At, First, To, Whom], {N, Bytes}} <- greatest(1, Sent, Top)]
        },
        gateways => gateways(Sent, Top),
        passed => #{
            count => summed(Passed),
            rows => [#{at => At, from => From, next => Next, count => Count, bundles => N}
                     || {[At, From, Next], {N, Count}} <- greatest(2, Passed, Top)]
        },
        delivered => summed(rows(?DELIVERED, 0, Routed, Book)),
        undelivered => #{
            count => counted(Undelivered),
            rows => [#{at => At, to => To, whom => Whom, why => Why, count => N}
                     || {[At, To, Whom, Why], {N, _}} <- greatest(1, Undelivered, Top)]
        }
    }.

%% With the texts of the detail, of which there are so many. Of those that were too many to tell
%% apart nothing is known.
rows(Kind, Size, Routed, Book) ->
    [{[At | padded(Size, texts(sderl_prof_book:word(Detail, Book)))], Row}
     || {K, At, Detail} := Row <- Routed, K =:= Kind].

padded(Size, Texts) when length(Texts) =:= Size -> Texts;
padded(Size, _) -> lists:duplicate(Size, ~"unknown").

texts(Word) ->
    try json:decode(Word) of
        Texts when is_list(Texts) -> Texts;
        _ -> []
    catch
        error:_ -> []
    end.

gateways(Sent, Top) ->
    Sums = lists:foldl(fun({[_, First | _], {N, Bytes}}, All) ->
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
