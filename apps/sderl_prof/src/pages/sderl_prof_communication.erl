%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_communication).
-moduledoc """
Who sends how much to whom, as a graph of bounded size: processes, kinds of them or nodes are its
ends, with an edge for each pair that exchanged messages. Pure.

The greatest edges are shown, as long as there is room for their ends. What is left out is counted.
""".

-export([together/2, graph/2]).
-export_type([key/0, pairs/0, request/0, amount/0, sums/0, graph/0]).

-doc "What tells one end from another.".
-type key() :: pos_integer() | binary().
-doc "By sender and receiver: how many messages, and their bytes.".
-type pairs(Key) :: #{{From :: Key, To :: Key} => {pos_integer(), non_neg_integer()}}.
-type pairs() :: pairs(key()).
-doc """
Only edges with at least `least` messages of at least `mean` bytes on average; only those of the
end `around` and of the ends with which that exchanges messages. At most so many `edges` and `ends`,
the greatest by `sort`.
""".
-type request() :: #{sort := count | bytes, least := non_neg_integer(),
                     mean := non_neg_integer(), around := key() | none,
                     edges := non_neg_integer(), ends := non_neg_integer()}.
-type amount() :: #{ends := non_neg_integer(), edges := non_neg_integer(),
                    count := non_neg_integer(), bytes := non_neg_integer()}.
-doc "What an end has sent and received in all, whatever is shown; with itself `within`.".
-type sums() :: #{sent := non_neg_integer(), sent_bytes := non_neg_integer(),
                  received := non_neg_integer(), received_bytes := non_neg_integer(),
                  within := non_neg_integer(), within_bytes := non_neg_integer()}.
-doc "`passed` is what the filters leave, of which the `edges` are shown; `all` is without them.".
-type graph() :: #{ends := [{key(), sums()}],
                   edges := [{From :: key(), To :: key(), pos_integer(), non_neg_integer()}],
                   passed := amount(), all := amount()}.

-doc "The pairs of these, where several are one: `Of` tells which.".
-spec together(fun((Key) -> key()), pairs(Key)) -> pairs().
together(Of, Pairs) ->
    Ends = #{End => Of(End) || End <- ends(Pairs)},
    maps:fold(fun({From, To}, {N, Bytes}, Acc) ->
        Add = fun({N0, Bytes0}) -> {N0 + N, Bytes0 + Bytes} end,
        maps:update_with({map_get(From, Ends), map_get(To, Ends)}, Add, {N, Bytes}, Acc)
    end, #{}, Pairs).

-doc "The graph that is asked for.".
-spec graph(pairs(), request()) -> graph().
graph(Pairs, #{sort := Sort, around := Around, edges := MostEdges, ends := MostEnds} = Request) ->
    Passed = near(Around, passed(Pairs, Request)),
    Sorted = lists:sort([{not is_end(Around, A, B), -measure(Sort, Row), Pair, Row}
                         || {A, B} = Pair := Row <- Passed]),
    {Shown, Ends} = shown(Sorted, MostEdges, MostEnds, #{}),
    All = amount(Pairs),
    #{ends => by_messages([{End, sums(End, Sums)}
                           || Sums <- [sums_of(Ends, Pairs)], End := _ <- Ends]),
      edges => [{A, B, N, Bytes} || {{A, B}, {N, Bytes}} <- Shown],
      %% Of many pairs it takes a while to count their ends.
      passed => case map_size(Passed) =:= map_size(Pairs) of
          true -> All;
          false -> amount(Passed)
      end,
      all => All}.

passed(Pairs, #{least := 0, mean := 0}) -> Pairs;
passed(Pairs, Request) -> maps:filter(fun(_, Row) -> passes(Row, Request) end, Pairs).

passes({N, Bytes}, #{least := Least, mean := Mean}) -> N >= Least andalso Bytes >= Mean * N.

measure(count, {N, _}) -> N;
measure(bytes, {_, Bytes}) -> Bytes.

is_end(none, _, _) -> true;
is_end(Around, A, B) -> Around =:= A orelse Around =:= B.

near(none, Pairs) -> Pairs;
near(Around, Pairs) ->
    Near = maps:from_keys(lists:append([[A, B] || {A, B} := _ <- Pairs, is_end(Around, A, B)]),
                          near),
    maps:filter(fun({A, B}, _) -> is_map_key(A, Near) andalso is_map_key(B, Near) end, Pairs).

%% A pair without room for its ends does not hold up those behind it.
shown([{_, _, {A, B}, Row} | Pairs], Edges, MostEnds, Ends) when Edges > 0 ->
    With = Ends#{A => shown, B => shown},
    case map_size(With) =< MostEnds of
        true ->
            {Shown, All} = shown(Pairs, Edges - 1, MostEnds, With),
            {[{{A, B}, Row} | Shown], All};
        false -> shown(Pairs, Edges, MostEnds, Ends)
    end;
shown(_, _, _, Ends) ->
    {[], Ends}.

ends(Pairs) -> maps:keys(maps:from_keys(lists:append([[A, B] || {A, B} := _ <- Pairs]), true)).

amount(Pairs) ->
    maps:fold(fun(_, {N, Bytes}, #{count := Count, bytes := Sum} = Amount) ->
        Amount#{count := Count + N, bytes := Sum + Bytes}
    end, #{ends => length(ends(Pairs)), edges => map_size(Pairs), count => 0, bytes => 0}, Pairs).

%% Sums of these ends by direction.
sums_of(Ends, Pairs) ->
    maps:fold(fun
        ({End, End}, Row, Acc) -> plus({within, End}, Row, Ends, Acc);
        ({From, To}, Row, Acc) ->
            plus({sent, From}, Row, Ends, plus({received, To}, Row, Ends, Acc))
    end, #{}, Pairs).

plus({_, End} = Key, Row, Ends, Sums) when is_map_key(End, Ends) -> plus(Key, Row, Sums);
plus(_, _, _, Sums) -> Sums.

plus(Key, {N, Bytes}, Sums) ->
    maps:update_with(Key, fun({N0, Bytes0}) -> {N0 + N, Bytes0 + Bytes} end, {N, Bytes}, Sums).

sums(End, Sums) ->
    [{Sent, SentBytes}, {Received, ReceivedBytes}, {Within, WithinBytes}] =
        [maps:get({Way, End}, Sums, {0, 0}) || Way <- [sent, received, within]],
    #{sent => Sent, sent_bytes => SentBytes, received => Received,
      received_bytes => ReceivedBytes, within => Within, within_bytes => WithinBytes}.

%% Those with most messages first.
by_messages(Ends) ->
    Order = fun({End, #{sent := Sent, received := Received, within := Within}}) ->
        {-(Sent + Received + Within), End}
    end,
    [End || {_, End} <- lists:sort([{Order(End), End} || End <- Ends])].
