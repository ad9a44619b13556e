%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_table_compact).
-moduledoc """
A table of Orbit for many elements: a worker has a slice of the space and a bit for each number in
it.

A slot is a number of the space. The bits are in `m:atomics`, because that memory is written in
place and is not copied by garbage collection; there is only one writer.
""".

-behaviour(sderl_orbit_table).

-export([slots/3, owner/3, part/3, insert/2, contents/1]).

-type part() :: {First :: non_neg_integer(), Slots :: pos_integer(), atomics:atomics_ref()}.

%% Bits used of each word: with all 64 most words would be big integers, which are slow.
-define(BITS, 32).
-define(WORD(Bit), (Bit bsr 5 + 1)).
-define(MASK(Bit), (1 bsl (Bit band 31))).

-doc "Equal slices; the last may be longer than what is left of the space.".
-spec slots(pos_integer(), pos_integer(), pos_integer()) -> pos_integer().
slots(N, _Slots, Workers) -> (N + Workers - 1) div Workers.

-doc "By the slice it is in.".
-spec owner(non_neg_integer(), pos_integer(), pos_integer()) -> pos_integer().
owner(X, Each, _Workers) -> X div Each + 1.

-doc "No bit set.".
-spec part(pos_integer(), pos_integer(), pos_integer()) -> part().
part(Worker, Each, _Workers) ->
    {(Worker - 1) * Each, Each, atomics:new(?WORD(Each), [{signed, false}])}.

-doc "Sets the bit.".
-spec insert(non_neg_integer(), part()) -> seen | part().
insert(X, {First, _, Words} = Part) ->
    Bit = X - First,
    Word = atomics:get(Words, ?WORD(Bit)),
    Mask = ?MASK(Bit),
    case Word band Mask of
        0 ->
            ok = atomics:put(Words, ?WORD(Bit), Word bor Mask),
            Part;
        _ ->
            seen
    end.

-doc "Goes through all bits.".
-spec contents(part()) -> sderl_orbit_table:contents().
contents({First, Slots, Words}) ->
    #{size := Count, memory := Bytes} = atomics:info(Words),
    {Size, Sum} = count(Words, Count, First, 0, 0),
    #{
        size => Size,
        sum => Sum,
        bytes => Bytes,
        slots => Slots,
        nonempty_slots => Size,
        max_freq => min(1, Size),
        freq => #{Have => N || {Have, N} <- [{0, Slots - Size}, {1, Size}], N > 0}
    }.

count(_Words, 0, _First, Size, Sum) ->
    {Size, Sum};
count(Words, Index, First, Size, Sum) ->
    {Size1, Sum1} = bits(atomics:get(Words, Index), First + (Index - 1) * ?BITS, Size, Sum),
    count(Words, Index - 1, First, Size1, Sum1).

bits(0, _X, Size, Sum) -> {Size, Sum};
bits(Word, X, Size, Sum) when Word band 1 =:= 1 -> bits(Word bsr 1, X + 1, Size + 1, Sum + X);
bits(Word, X, Size, Sum) -> bits(Word bsr 1, X + 1, Size, Sum).
