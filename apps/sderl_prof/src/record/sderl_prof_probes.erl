%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_probes).
-moduledoc """
The static probes of a program: places in its code that a tracer of the system can hook, as the
notes `.note.stapsdt` of its file (ELF) list them.

The file comes in parts from a function, so that only its tables are read. Needs no other module of
this project, so that it can be loaded into any node.
""".

-export([of_emulator/0, of_file/1, read/1]).
-export_type([probe/0, reader/0, reason/0]).

%% A larger table, in bytes, is taken for damage.
-define(MOST, 16_777_216).
%% The type of such a note.
-define(STAPSDT, 3).
%% The type of a segment that is loaded.
-define(LOAD, 1).

-doc """
`arguments`: where its arguments are found, as text; `at`: where in the file its code is, and
`semaphore`, where the count is by which the program knows that somebody hooks it, if it has one.
""".
-type probe() :: #{provider := binary(), name := binary(), arguments := binary(),
                   at := integer(), semaphore := integer() | none}.
-doc "So many bytes from an offset on.".
-type reader() :: fun((Offset :: non_neg_integer(), Size :: non_neg_integer()) ->
    {ok, binary()} | eof | {error, term()}).
-type reason() :: no_elf | damaged | file:posix() | badarg | system_limit | terminated.

-doc "Those of the emulator that runs this node.".
-spec of_emulator() -> {ok, [probe()]} | {error, reason()}.
of_emulator() -> of_file("/proc/self/exe").

-doc "Those of a file; a program without any has none.".
-spec of_file(file:filename_all()) -> {ok, [probe()]} | {error, reason()}.
of_file(File) ->
    case file:open(File, [read, raw, binary]) of
        {ok, Device} ->
            try
                read(fun(Offset, Size) -> file:pread(Device, Offset, Size) end)
            after
                file:close(Device)
            end;
        {error, Why} -> {error, Why}
    end.

-doc "The same of what the function reads. Pure but for that.".
-spec read(reader()) -> {ok, [probe()]} | {error, reason()}.
read(Read) ->
    try
        {Word, Order, Sections, Segments} = tables(Read),
        Place = fun(Address) -> in_file(Address, Segments) end,
        {ok, case [Section || {~".note.stapsdt", Section} <- Sections] of
            [{Offset, Size} | _] -> notes(part(Read, Offset, Size), Word, Order, Place, []);
            [] -> []
        end}
    catch
        throw:Why -> {error, Why}
    end.

%% ---------------------------------------------------------------- ELF

%% The width of a word, the order of its bytes, the sections by name, and which part of the file is
%% loaded at which address.
tables(Read) ->
    {Word, Order} = case Read(0, 16) of
        {ok, <<16#7f, "ELF", Class, Data, _:10/binary>>} when Class =:= 1 orelse Class =:= 2,
                                                              Data =:= 1 orelse Data =:= 2 ->
            {32 * Class, element(Data, {little, big})};
        _ -> throw(no_elf)
    end,
    Bytes = Word div 8,
    %% Behind the kind of the file and the address at which it begins.
    <<SegmentsAt:Bytes/binary, SectionsAt:Bytes/binary, _:6/binary, Halves:10/binary>> =
        part(Read, 24 + Bytes, 2 * Bytes + 16),
    [SegmentWidth, SegmentCount, Width, Count, NamesAt] =
        [number(Half, Order) || <<Half:2/binary>> <= Halves],
    Segments = [segment(Row, Word, Order)
                || Row <- rows(Read, number(SegmentsAt, Order), SegmentWidth, SegmentCount,
                               8 + 4 * Bytes)],
    Headers = [section(Row, Word, Order)
               || Row <- rows(Read, number(SectionsAt, Order), Width, Count, 8 + 4 * Bytes)],
    case NamesAt < length(Headers) of
        true ->
            {_, {At, Length}} = lists:nth(NamesAt + 1, Headers),
            Strings = part(Read, At, Length),
            {Word, Order, [{string_at(Name, Strings), Place} || {Name, Place} <- Headers],
             lists:append(Segments)};
        false -> throw(damaged)
    end.

rows(_, _, _, 0, _) -> [];
rows(Read, Offset, Width, Count, Least) when Width >= Least ->
    [Row || <<Row:Width/binary>> <= part(Read, Offset, Count * Width)];
rows(_, _, _, _, _) -> throw(damaged).

%% Only what is loaded has an address.
segment(Row, 64, Order) ->
    <<Type:4/binary, _:4/binary, Offset:8/binary, Address:8/binary, _:8/binary, Size:8/binary,
      _/binary>> = Row,
    loaded(number(Type, Order), [number(N, Order) || N <- [Offset, Address, Size]]);
segment(Row, 32, Order) ->
    <<Type:4/binary, Offset:4/binary, Address:4/binary, _:4/binary, Size:4/binary, _/binary>> = Row,
    loaded(number(Type, Order), [number(N, Order) || N <- [Offset, Address, Size]]).

loaded(?LOAD, [Offset, Address, Size]) -> [{Address, Size, Offset}];
loaded(_, _) -> [].

in_file(0, _) -> none;
in_file(Address, Segments) ->
    case [Address - From + Offset || {From, Size, Offset} <- Segments,
                                     Address >= From, Address < From + Size] of
        [At | _] -> At;
        [] -> none
    end.

section(Row, Word, Order) ->
    Bytes = Word div 8,
    <<Name:4/binary, _:4/binary, _Flags:Bytes/binary, _Address:Bytes/binary, Offset:Bytes/binary,
      Size:Bytes/binary, _/binary>> = Row,
    {number(Name, Order), {number(Offset, Order), number(Size, Order)}}.

number(Bytes, Order) -> binary:decode_unsigned(Bytes, Order).

string_at(Offset, Strings) when Offset < byte_size(Strings) ->
    %% No section that is looked for has a longer name.
    hd(binary:split(binary:part(Strings, Offset, min(256, byte_size(Strings) - Offset)), <<0>>));
string_at(_, _) -> ~"".

part(_, _, 0) -> <<>>;
part(_, _, Size) when Size > ?MOST -> throw(damaged);
part(Read, Offset, Size) ->
    case Read(Offset, Size) of
        {ok, Part} when byte_size(Part) =:= Size -> Part;
        _ -> throw(damaged)
    end.

%% ---------------------------------------------------------------- notes

%% The parts of a note are as long as they say, and filled up to four bytes.
notes(<<NameSize:4/binary, DescSize:4/binary, Type:4/binary, Rest/binary>>, Word, Order, Place,
      Found) ->
    [Name, Desc, Kind] = [number(N, Order) || N <- [NameSize, DescSize, Type]],
    {NameFull, DescFull} = {filled(Name), filled(Desc)},
    case Rest of
        <<Of:NameFull/binary, Text:DescFull/binary, More/binary>> ->
            One = [probe(binary:part(Text, 0, Desc), Word div 8, Order, Place)
                   || Kind =:= ?STAPSDT, binary:part(Of, 0, Name) =:= <<"stapsdt", 0>>],
            notes(More, Word, Order, Place, One ++ Found);
        _ -> throw(damaged)
    end;
notes(<<>>, _, _, _, Found) -> lists:reverse(Found);
notes(_, _, _, _, _) -> throw(damaged).

filled(Size) -> (Size + 3) band bnot 3.

probe(Text, Bytes, Order, Place) ->
    maybe
        <<Pc:Bytes/binary, _Base:Bytes/binary, Semaphore:Bytes/binary, Strings/binary>> ?= Text,
        [Provider, Name, Arguments | _] ?= binary:split(Strings, <<0>>, [global]),
        At = Place(number(Pc, Order)),
        true ?= is_integer(At),
        #{provider => Provider, name => Name, arguments => Arguments, at => At,
          semaphore => Place(number(Semaphore, Order))}
    else
        _ -> throw(damaged)
    end.
