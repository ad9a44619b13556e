%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_scan).
-moduledoc """
Finds the records of a file of `m:sderl_mon_segment`. What is cut or damaged is skipped up to the
next mark, and counted.
""".

-export([records/4]).
-export_type([place/0, damage/0]).

-doc "The place of a record's body, which begins with 17 bytes of description.".
-type place() :: {Position :: non_neg_integer(), Length :: pos_integer()}.
-doc "The number and the bytes of unreadable places, and where the last good record ends.".
-type damage() ::
    #{places := non_neg_integer(), bytes := non_neg_integer(), good_until := non_neg_integer()}.

-define(CHUNK, 65_536).

-doc """
Folds over the records after the header of an open file, in order. `whole`: bodies are read and
their checksums verified; `heads`: only descriptions are read, and the function gets an empty body.
""".
-spec records(whole | heads, file:fd(), Fun, Acc) -> {Acc, damage()} when
    Fun :: fun((sderl_mon_segment:described(), place(), Packed :: binary(), Acc) -> Acc).
records(How, Fd, Fun, Acc) ->
    Begin = sderl_mon_segment:header_size(),
    scan(How, Fd, Begin, Fun, Acc, #{places => 0, bytes => 0, good_until => Begin}).

scan(How, Fd, Position, Fun, Acc, Damage) ->
    case file:pread(Fd, Position, sderl_mon_segment:head_size()) of
        {ok, Head} ->
            case found(How, sderl_mon_segment:read(Head), Fd, Position) of
                {ok, Described, {Start, Length} = Place, Packed} ->
                    End = Start + Length,
                    scan(How, Fd, End, Fun, Fun(Described, Place, Packed, Acc),
                         Damage#{good_until := End});
                lost ->
                    #{places := Places, bytes := Bytes} = Damage,
                    Next = next_mark(Fd, Position + 1),
                    scan(How, Fd, Next, Fun, Acc,
                         Damage#{places := Places + 1, bytes := Bytes + Next - Position})
            end;
        _End -> {Acc, Damage}
    end.

found(whole, {ok, Length, Crc}, Fd, Position) ->
    Start = Position + sderl_mon_segment:head_size(),
    maybe
        {ok, Body} ?= file:pread(Fd, Start, Length),
        Length ?= byte_size(Body),
        {ok, Type, Step, T, Span, Packed} ?= sderl_mon_segment:body(Body, Crc),
        {ok, {Type, Step, T, Span}, {Start, Length}, Packed}
    else
        _Short -> lost
    end;
found(heads, {ok, Length, _Crc}, Fd, Position) ->
    Start = Position + sderl_mon_segment:head_size(),
    maybe
        %% The file has the last byte of the record.
        {ok, <<_>>} ?= file:pread(Fd, Start + Length - 1, 1),
        {ok, Begin} ?= file:pread(Fd, Start, sderl_mon_segment:described_size()),
        {ok, Described} ?= sderl_mon_segment:described(Begin),
        {ok, Described, {Start, Length}, <<>>}
    else
        _Short -> lost
    end;
found(_How, {error, damaged}, _Fd, _Position) ->
    lost.

next_mark(Fd, Position) ->
    case file:pread(Fd, Position, ?CHUNK) of
        {ok, Chunk} ->
            case binary:match(Chunk, sderl_mon_segment:mark()) of
                {At, _Length} -> Position + At;
                nomatch when byte_size(Chunk) < ?CHUNK -> Position + byte_size(Chunk);
                %% A mark may lie across the end of the chunk.
                nomatch ->
                    next_mark(Fd, Position + ?CHUNK - byte_size(sderl_mon_segment:mark()) + 1)
            end;
        _End ->
            Position
    end.
