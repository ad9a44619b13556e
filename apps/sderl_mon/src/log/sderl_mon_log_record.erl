%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_record).
-moduledoc """
One event of the log as bytes, in files and in memory. Pure.

A record is its size, the checksum of the rest, and the rest: first what an index needs, the texts
last. A file that was cut or damaged is read up to that place. No atom is made from it.
""".

-export([header/0, encode/1, fold/3, walk/3]).
-export_type([key/0]).

-import(sderl_mon_log_message, [severity/1, levels/0]).

-doc "What an index needs of an event, and the size of its record.".
-type key() :: {Id :: pos_integer(), sderl_mon_types:t(), Severity :: 0..7, Size :: pos_integer()}.

-define(HEADER, "sderl log 1\n").
%% Larger than any record.
-define(MOST, 65_535).

-doc "The first bytes of a file.".
-spec header() -> binary().
header() -> <<?HEADER>>.

-doc "The record of an event.".
-spec encode(sderl_mon_log_message:event()) -> binary().
encode(#{id := Id, t := T, node_t := NodeT, level := Level, node := Node, groups := Groups,
         mfa := Mfa, pid := Pid, text := Text, lost := Lost}) ->
    Texts = << <<(text(Part))/binary>> || Part <- [Node, Mfa, Pid | Groups] >>,
    Body = <<Id:64, T:64, NodeT:64, (severity(Level)):8, Lost:32, (length(Groups)):8,
             Texts/binary, Text/binary>>,
    <<(byte_size(Body)):32, (erlang:crc32(Body)):32, Body/binary>>.

text(Text) -> <<(byte_size(Text)):16, Text/binary>>.

-doc "Folds over the events of records, the oldest first, up to the first damaged one.".
-spec fold(fun((sderl_mon_log_message:event(), Acc) -> Acc), Acc, binary()) -> Acc.
fold(Fun, Acc, <<Size:32, Crc:32, Body:Size/binary, Rest/binary>>) when Size =< ?MOST ->
    case erlang:crc32(Body) =:= Crc andalso decode(Body) of
        #{} = Event -> fold(Fun, Fun(Event, Acc), Rest);
        _ -> Acc
    end;
fold(_, Acc, _) -> Acc.

decode(<<Id:64, T:64, NodeT:64, Severity:8, Lost:32, Groups:8, Texts/binary>>) when Severity < 8 ->
    case parts(Groups + 3, Texts, []) of
        {[Node, Mfa, Pid | In], Text} ->
            #{id => Id, t => T, node_t => NodeT, level => lists:nth(Severity + 1, levels()),
              node => Node, groups => In, mfa => Mfa, pid => Pid, text => Text, lost => Lost};
        error -> error
    end;
decode(_) -> error.

parts(0, Text, Parts) -> {lists:reverse(Parts), Text};
parts(N, <<Size:16, Part:Size/binary, Rest/binary>>, Parts) -> parts(N - 1, Rest, [Part | Parts]);
parts(_, _, _) -> error.

-doc """
Folds over the keys of records, without verifying checksums; returns the size of the readable part.
""".
-spec walk(fun((key(), Acc) -> Acc), Acc, binary()) -> {Acc, Bytes :: non_neg_integer()}.
walk(Fun, Acc, Bytes) -> walk(Fun, Acc, Bytes, 0).

walk(Fun, Acc, <<Size:32, _:32, Body:Size/binary, Rest/binary>>, Done) when Size =< ?MOST ->
    case Body of
        <<Id:64, T:64, _:64, Severity:8, _/binary>> when Severity < 8 ->
            walk(Fun, Fun({Id, T, Severity, Size + 8}, Acc), Rest, Done + Size + 8);
        _ -> {Acc, Done}
    end;
walk(_, Acc, _, Done) -> {Acc, Done}.
