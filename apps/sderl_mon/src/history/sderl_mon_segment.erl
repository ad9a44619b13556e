%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_segment).
-moduledoc """
The bytes of a recording's file. Pure.

A header of 16 bytes: the text `sderl-mon`, a zero, the version (16 bits, 1) and the CRC-32 of
these. Then records, each:

| bytes | |
|---|---|
| 4 | the mark `F5 53 44 52`, by which the next record is found after damage |
| 4 | length of the body |
| 4 | CRC-32 of the body |
| 1 | the type: 1 topology, 2 frame, 3 events, 4 findings |
| 4 | the step in milliseconds; 0 for a frame as it came, and for other types |
| 8 | the time, Unix milliseconds |
| 4 | the span in milliseconds, of frames |
| rest | packed by `m:sderl_mon_pack` |

Integers are big endian. A record that is cut, or whose CRC is wrong, is skipped up to the next mark
and counted.
""".

-export([header/0, header/1, header_size/0]).
-export([record/5, read/1, mark/0, head_size/0, body/2, described/1, described_size/0]).

-export_type([type/0, described/0]).

-type type() :: topology | frame | events | findings.
-doc "The description that a body begins with: its type, step, time and span.".
-type described() ::
    {type() | other, sderl_mon_ladder:step(), sderl_mon_types:t(), SpanMs :: non_neg_integer()}.

-define(TEXT, "sderl-mon").
-define(VERSION, 1).
-define(MARK, 16#F5, "SDR").
-define(HEAD, 12).
-define(BODY, 17).
%% A record that claims to be longer is damaged.
-define(MOST, 16_777_216).

-doc "The header of a file.".
-spec header() -> binary().
header() ->
    Text = <<?TEXT, 0, ?VERSION:16>>,
    <<Text/binary, (erlang:crc32(Text)):32>>.

-doc "Bytes of the header.".
-spec header_size() -> pos_integer().
header_size() -> byte_size(header()).

-doc """
Checks a header. Errors: `not_a_recording`; `{version, N}`, made by a later version; `damaged`;
`empty`.
""".
-spec header(binary()) ->
    ok | {error, empty | not_a_recording | damaged | {version, non_neg_integer()}}.
header(<<?TEXT, 0, Version:16, Crc:32>>) ->
    case erlang:crc32(<<?TEXT, 0, Version:16>>) of
        Crc when Version =:= ?VERSION -> ok;
        Crc -> {error, {version, Version}};
        _Wrong -> {error, damaged}
    end;
header(<<>>) -> {error, empty};
header(Short) when byte_size(Short) < 16 ->
    case binary:longest_common_prefix([Short, header()]) of
        N when N =:= byte_size(Short) -> {error, empty};
        _ -> {error, not_a_recording}
    end;
header(_Other) -> {error, not_a_recording}.

-doc "A record.".
-spec record(type(), sderl_mon_ladder:step(), sderl_mon_types:t(), non_neg_integer(),
             Packed :: binary()) -> iodata().
record(Type, Step, T, Span, Packed) ->
    Body = [<<(code(Type)):8, Step:32, T:64/signed, Span:32>>, Packed],
    [<<?MARK, (iolist_size(Body)):32, (erlang:crc32(Body)):32>>, Body].

code(topology) -> 1;
code(frame) -> 2;
code(events) -> 3;
code(findings) -> 4.

type(1) -> topology;
type(2) -> frame;
type(3) -> events;
type(4) -> findings;
type(_Later) -> other.

-doc "The mark that a record begins with.".
-spec mark() -> binary().
mark() -> <<?MARK>>.

-doc "Bytes before the body.".
-spec head_size() -> pos_integer().
head_size() -> ?HEAD.

-doc "The header of a record: the length of its body and its CRC. Errors: `damaged`.".
-spec read(binary()) -> {ok, Length :: pos_integer(), Crc :: non_neg_integer()} | {error, damaged}.
read(<<?MARK, Length:32, Crc:32>>) when Length >= ?BODY, Length =< ?MOST -> {ok, Length, Crc};
read(_Other) -> {error, damaged}.

-doc "A body, checked. Errors: `damaged`.".
-spec body(binary(), Crc :: non_neg_integer()) ->
    {ok, type() | other, sderl_mon_ladder:step(), sderl_mon_types:t(), non_neg_integer(),
     Packed :: binary()} | {error, damaged}.
body(<<Type, Step:32, T:64/signed, Span:32, Packed/binary>> = Body, Crc) ->
    case erlang:crc32(Body) of
        Crc -> {ok, type(Type), Step, T, Span, Packed};
        _Wrong -> {error, damaged}
    end;
body(_Short, _Crc) ->
    {error, damaged}.

-doc "Bytes of the description that a body begins with.".
-spec described_size() -> pos_integer().
described_size() -> ?BODY.

-doc "The description of a body, from its first bytes, unchecked. Errors: `damaged`.".
-spec described(binary()) -> {ok, described()} | {error, damaged}.
described(<<Type, Step:32, T:64/signed, Span:32, _/binary>>) -> {ok, {type(Type), Step, T, Span}};
described(_Short) -> {error, damaged}.
