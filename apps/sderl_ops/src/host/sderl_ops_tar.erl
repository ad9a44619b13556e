%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_tar).
-moduledoc """
Writes tar archives that depend on their files alone: without times and owners, and in a fixed
order. So the same files have the same checksum, whoever packs them.
""".

-export([entry/2, padding/1, closing/0, entries/1]).
-export_type([kind/0, in_memory/0]).

-doc "A file of so many bytes with these permissions, a symbolic link, a folder, or a FIFO.".
-type kind() ::
    {file, Size :: non_neg_integer(), Mode :: non_neg_integer()}
    | {link, binary()}
    | folder
    | fifo.

-type in_memory() ::
    {Name :: binary(), Mode :: non_neg_integer(), iodata()}
    | {Name :: binary(), {link, binary()} | folder | fifo}.

-doc "The header of an entry, which comes before the contents of a file.".
-spec entry(Name :: binary(), kind()) -> iodata().
entry(Name, {file, Size, Mode}) ->
    [long(Name, $L), header(short(Name), Size, Mode, $0, ~"")];
entry(Name, {link, Target}) ->
    [long(Target, $K), long(Name, $L), header(short(Name), 0, 8#777, $2, short(Target))];
entry(Name, folder) ->
    [long(Name, $L), header(short(Name), 0, 8#700, $5, ~"")];
entry(Name, fifo) ->
    [long(Name, $L), header(short(Name), 0, 8#600, $6, ~"")].

-doc "The padding after the contents of a file.".
-spec padding(Size :: non_neg_integer()) -> binary().
padding(Size) ->
    Bits = ((512 - Size rem 512) rem 512) * 8,
    <<0:Bits>>.

-spec closing() -> binary().
closing() -> <<0:(1024 * 8)>>.

-doc "Entries of files in memory, in this order; `closing/0` after them makes an archive.".
-spec entries([in_memory()]) -> iodata().
entries(Files) -> lists:map(fun entry_in_memory/1, Files).

entry_in_memory({Name, Mode, Data}) ->
    Size = iolist_size(Data),
    [entry(Name, {file, Size, Mode}), Data, padding(Size)];
entry_in_memory({Name, Kind}) ->
    entry(Name, Kind).

%% A name that is too long for the header is an entry of its own before it, as in GNU tar.
long(Name, _) when byte_size(Name) =< 100 ->
    [];
long(Name, Kind) ->
    Size = byte_size(Name) + 1,
    [header(~"././@LongLink", Size, 8#644, Kind, ~""), Name, 0, padding(Size)].

short(Name) when byte_size(Name) =< 100 -> Name;
short(Name) -> binary:part(Name, 0, 100).

header(Name, Size, Mode, Kind, Target) ->
    Before = [padded(Name, 100), octal(Mode, 8), octal(0, 8), octal(0, 8), size_field(Size),
              octal(0, 12)],
    After = [Kind, padded(Target, 100), "ustar  ", 0, padded(~"", 247)],
    Sum = lists:sum(binary_to_list(iolist_to_binary([Before, ~"        ", After]))),
    [Before, octal(Sum, 7), " ", After].

padded(Text, Width) -> [Text, <<0:((Width - byte_size(Text)) * 8)>>].

octal(Number, Width) -> [string:pad(integer_to_list(Number, 8), Width - 1, leading, $0), 0].

%% From 8 GiB on a number is binary, with the first bit set.
size_field(Size) when Size < 8#77777777777 -> octal(Size, 12);
size_field(Size) -> <<1:1, Size:95>>.
