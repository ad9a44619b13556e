%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_archive_file).
-moduledoc """
The files of an archive: finds what is in them, writes and reads records. Their format is that of
`m:sderl_mon_segment`.
""".

-export([found/2, open/3, write/3, close/1, delete/2]).
-export([fold/4, read/2]).

-export_type([writer/0]).

-doc "A file that is being written, and the position of its next record.".
-type writer() :: {sderl_mon_archive_index:key(), file:fd(), Position :: pos_integer()}.

-doc "The index of the files in a folder. What cannot be read is left as it is.".
-spec found(Dir :: binary(), sderl_mon_archive_index:index()) ->
    {ok, sderl_mon_archive_index:index(), Damaged :: non_neg_integer()}
    | {error, file:posix() | badarg | terminated | system_limit}.
found(Dir, Index0) ->
    maybe
        {ok, Names} ?= file:list_dir_all(Dir),
        Keys = lists:sort([Key || Name <- Names, {ok, Key} <- [key(Name, Index0)]]),
        {Index, Damaged} = lists:foldl(fun(Key, {Index, Damaged}) ->
            case scanned(Dir, Key, Index) of
                {ok, Known, Places, _Until} -> {Known, Damaged + Places};
                {error, _} -> {Index, Damaged + 1}
            end
        end, {Index0, 0}, Keys),
        {ok, Index, Damaged}
    end.

key(Name, Index) ->
    case unicode:characters_to_binary(Name) of
        Text when is_binary(Text) -> sderl_mon_archive_index:read_name(Text, Index);
        _ -> none
    end.

%% The index with the readable records of a file.
scanned(Dir, Key, Index) ->
    Path = path(Dir, Key),
    case file:open(Path, [read, raw, binary]) of
        {ok, Fd} ->
            try
                headed(Fd, Path, Key, Index)
            after
                close_file(Fd)
            end;
        {error, _} = Error -> Error
    end.

headed(Fd, Path, Key, Index0) ->
    maybe
        {ok, Header} ?= file:pread(Fd, 0, sderl_mon_segment:header_size()),
        ok ?= sderl_mon_segment:header(Header),
        {Index1, #{places := Places, good_until := Until}} =
            sderl_mon_scan:records(heads, Fd, fun(Described, Place, _, Index) ->
                noted(Described, Key, Place, Index)
            end, sderl_mon_archive_index:add_file(Key, Index0)),
        {ok, sderl_mon_archive_index:add_bytes(Key, filelib:file_size(Path), Index1), Places, Until}
    else
        eof -> {error, empty};
        {error, _} = Error -> Error
    end.

noted({frame, Step, T, Span}, {Step, _, _} = Key, {Position, Length}, Index) when Span > 0 ->
    sderl_mon_archive_index:add_frame(T, Span, {Key, Position, Length}, Index);
noted({topology, _, T, _}, Key, Place, Index) ->
    sderl_mon_archive_index:add_topology(T, Key, Place, Index);
noted(_Other, _Key, _Place, Index) -> Index.

-doc """
Opens a file for more records, and creates it if there is none. What is damaged at its end, as after
a full disk, is cut off.
""".
-spec open(Dir :: binary(), sderl_mon_archive_index:key(), sderl_mon_archive_index:index()) ->
    {ok, writer(), sderl_mon_archive_index:index()} | {error, term()}.
open(Dir, Key, Index) ->
    Path = path(Dir, Key),
    case scanned(Dir, Key, sderl_mon_archive_index:drop(Key, Index)) of
        {ok, Known, _Damaged, Until} -> go_on(Path, Key, Until, Known);
        {error, Why} when Why =:= enoent; Why =:= empty -> begin_file(Path, Key, Index);
        {error, _} = Error -> Error
    end.

go_on(Path, Key, Until, Index) ->
    maybe
        {ok, Fd} ?= file:open(Path, [read, write, raw, binary]),
        case cut(Fd, Until) of
            ok ->
                Cut = Until - sderl_mon_archive_index:bytes(Key, Index),
                {ok, {Key, Fd, Until}, sderl_mon_archive_index:add_bytes(Key, Cut, Index)};
            {error, _} = Error ->
                close_file(Fd),
                Error
        end
    end.

cut(Fd, Until) ->
    maybe
        {ok, Until} ?= file:position(Fd, Until),
        file:truncate(Fd)
    end.

begin_file(Path, Key, Index) ->
    maybe
        {ok, Fd} ?= file:open(Path, [write, raw, binary]),
        Header = sderl_mon_segment:header(),
        case file:write(Fd, Header) of
            ok ->
                Size = byte_size(Header),
                New = sderl_mon_archive_index:add_file(Key, Index),
                {ok, {Key, Fd, Size}, sderl_mon_archive_index:add_bytes(Key, Size, New)};
            {error, _} = Error ->
                close_file(Fd),
                Error
        end
    end.

-doc """
Writes a record and adds it to the index. After an error the file has to be opened again, because it
is not known how much of the record was written.
""".
-spec write({sderl_mon_segment:described(), Packed :: binary()}, writer(),
            sderl_mon_archive_index:index()) ->
    {ok, writer(), sderl_mon_archive_index:index()} | {error, term()}.
write({{Type, Step, T, Span} = Described, Packed}, {Key, Fd, Position}, Index) ->
    Record = sderl_mon_segment:record(Type, Step, T, Span, Packed),
    case file:write(Fd, Record) of
        ok ->
            Size = iolist_size(Record),
            Head = sderl_mon_segment:head_size(),
            Known = noted(Described, Key, {Position + Head, Size - Head}, Index),
            {ok, {Key, Fd, Position + Size}, sderl_mon_archive_index:add_bytes(Key, Size, Known)};
        {error, _} = Error -> Error
    end.

-doc "Closes a file.".
-spec close(writer()) -> ok.
close({_Key, Fd, _Position}) -> close_file(Fd).

-doc "Deletes a file; one that is gone is no error.".
-spec delete(Dir :: binary(), sderl_mon_archive_index:key()) -> ok | {error, term()}.
delete(Dir, Key) ->
    case file:delete(path(Dir, Key)) of
        {error, enoent} -> ok;
        Other -> Other
    end.

%% ---------------------------------------------------------------- reading

-doc """
Folds over packed frames, in the order of their entries. Frames that are damaged, or whose file was
deleted meanwhile, are skipped.
""".
-spec fold(Dir :: binary(), [sderl_mon_ladder:entry(sderl_mon_archive_index:place())],
           fun((sderl_mon_ladder:entry(), Acc) -> Acc), Acc) -> Acc.
fold(Dir, Entries, Fun, Acc) -> each(Entries, Fun, Acc, Dir, none).

each([], _Fun, Acc, _Dir, Reader) ->
    done(Reader),
    Acc;
each([{T, Span, Place} | Rest], Fun, Acc, Dir, Reader0) ->
    case read_with(Dir, Place, Reader0) of
        {{ok, Packed}, Reader} -> each(Rest, Fun, Fun({T, Span, Packed}, Acc), Dir, Reader);
        {{error, gone}, Reader} -> each(Rest, Fun, Acc, Dir, Reader)
    end.

-doc "The packed content of a record. Errors: `gone`, also for a damaged record.".
-spec read(Dir :: binary(), sderl_mon_archive_index:place()) -> {ok, binary()} | {error, gone}.
read(Dir, Place) ->
    {Result, Reader} = read_with(Dir, Place, none),
    done(Reader),
    Result.

%% The file that was read last stays open for the next one.
read_with(_Dir, {Key, Position, Length}, {Key, Fd} = Reader) ->
    {body(Fd, Position, Length), Reader};
read_with(Dir, {Key, _, _} = Place, Reader) ->
    done(Reader),
    case file:open(path(Dir, Key), [read, raw, binary]) of
        {ok, Fd} -> read_with(Dir, Place, {Key, Fd});
        {error, _} -> {{error, gone}, none}
    end.

body(Fd, Position, Length) ->
    Head = sderl_mon_segment:head_size(),
    maybe
        {ok, <<Begin:Head/binary, Body/binary>>} ?= file:pread(Fd, Position - Head, Head + Length),
        {ok, Length, Crc} ?= sderl_mon_segment:read(Begin),
        {ok, _, _, _, _, Packed} ?= sderl_mon_segment:body(Body, Crc),
        {ok, Packed}
    else
        _Other -> {error, gone}
    end.

done(none) -> ok;
done({_Key, Fd}) -> close_file(Fd).

close_file(Fd) ->
    _ = file:close(Fd),
    ok.

path(Dir, Key) -> filename:join(Dir, sderl_mon_archive_index:name(Key)).
