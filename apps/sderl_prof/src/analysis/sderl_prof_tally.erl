%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_tally).
-moduledoc """
Counts and sums by key, in bounded memory: pairs of processes with messages, places with waits.
Pure.

Above its limit a tally adds the half of its keys with the smaller sums to a rest, and counts these
keys. A key that comes again begins at 0. So the sums of keys are lower bounds, and the sum of all
is exact.
""".

-export([new/1, add/3, result/1]).
-export_type([tally/0, row/0]).

-record(tally, {
    limit :: pos_integer(),
    rows = #{} :: #{term() => row()},
    rest = {0, 0, 0.0} :: row(),
    pruned = 0 :: non_neg_integer()
}).
-opaque tally() :: #tally{}.

-doc "How often, the sum, and the sum of squares.".
-type row() :: {non_neg_integer(), number(), float()}.

-doc "A tally of at most so many keys.".
-spec new(pos_integer()) -> tally().
new(Limit) -> #tally{limit = Limit}.

-doc "Counts a value to a key.".
-spec add(term(), number(), tally()) -> tally().
add(Key, Value, #tally{rows = Rows, limit = Limit} = T) ->
    case Rows of
        #{Key := {N, Sum, Squares}} ->
            T#tally{rows = Rows#{Key := {N + 1, Sum + Value, Squares + Value * Value}}};
        _ when map_size(Rows) >= Limit -> add(Key, Value, pruned(T));
        _ -> T#tally{rows = Rows#{Key => {1, Value, float(Value * Value)}}}
    end.

pruned(#tally{rows = Rows, rest = Rest, pruned = Pruned, limit = Limit} = T) ->
    Sorted = lists:sort(fun({_, {_, A, _}}, {_, {_, B, _}}) -> A >= B end, maps:to_list(Rows)),
    {Kept, Gone} = lists:split(Limit div 2, Sorted),
    T#tally{rows = maps:from_list(Kept), pruned = Pruned + length(Gone),
            rest = lists:foldl(fun({_, Row}, All) -> plus(Row, All) end, Rest, Gone)}.

plus({N, S, Q}, {N1, S1, Q1}) -> {N + N1, S + S1, Q + Q1}.

-doc "All keys, the rest together, and how many keys went into it.".
-spec result(tally()) -> {#{term() => row()}, Rest :: row(), Pruned :: non_neg_integer()}.
result(#tally{rows = Rows, rest = Rest, pruned = Pruned}) -> {Rows, Rest, Pruned}.
