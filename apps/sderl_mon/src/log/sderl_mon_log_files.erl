%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_log_files).
-moduledoc """
The files of the log: `log-NUMBER.sdlog` in a folder, named by their first event. When one has
reached `file_bytes` the next begins, and the oldest beyond `files` is removed.

Files outlive a restart. The last file may end with a part of a record, if the machine or the disk
failed: it is cut off. A folder belongs to one program at a time, by the file `lock`
(`m:sderl_mon_folder_lock`).
""".

-export([open/1, append/3, close/1, list/1]).
-export_type([files/0, options/0]).

-type options() :: #{dir := file:name_all(), file_bytes := pos_integer(), files := pos_integer()}.

-record(files, {
    dir :: binary(),
    options :: options(),
    lock :: sderl_mon_folder_lock:lock(),
    %% The oldest first, without the present one.
    old :: [binary()],
    now = none :: none | {binary(), file:fd(), Size :: non_neg_integer()}
}).
-opaque files() :: #files{}.

-define(EXTENSION, ".sdlog").

-doc "Opens a folder, which is created if need be, and reads its files. Errors: a sentence.".
-spec open(options()) ->
    {ok, files(), sderl_mon_log_index:index()} | {error, unicode:chardata()}.
open(#{dir := Given} = Options) ->
    Dir = unicode:characters_to_binary(Given),
    maybe
        ok ?= said(Dir, filelib:ensure_path(Dir)),
        {ok, Lock} ?= sderl_mon_folder_lock:take(filename:join(Dir, "lock")),
        Old = list(Dir),
        {Sizes, Index} = lists:mapfoldl(fun read/2, sderl_mon_log_index:new(), Old),
        Files = #files{dir = Dir, options = Options, lock = Lock, old = Old},
        {ok, begun(lists:zip(Old, Sizes), Files), Index}
    end.

said(_, ok) -> ok;
said(File, {error, Reason}) -> {error, [File, ": ", file:format_error(Reason)]}.

-doc "The files of a folder, the oldest first.".
-spec list(file:name_all()) -> [binary()].
list(Dir) ->
    Folder = unicode:characters_to_binary(Dir),
    case file:list_dir(Folder) of
        {ok, Names} ->
            [filename:join(Folder, Name)
             || Name <- lists:sort([unicode:characters_to_binary(N) || N <- Names]), is_ours(Name)];
        {error, _} -> []
    end.

%% Other files in the folder are left alone.
is_ours(<<"log-", Number:20/binary, ?EXTENSION>>) ->
    lists:all(fun(C) -> C >= $0 andalso C =< $9 end, binary_to_list(Number));
is_ours(_) -> false.

%% How many bytes of a file are good, and the index with them.
read(File, Index) ->
    Header = sderl_mon_log_record:header(),
    From = byte_size(Header),
    case file:read_file(File) of
        {ok, <<Header:From/binary, Records/binary>>} ->
            {{Read, _}, Bytes} = sderl_mon_log_record:walk(fun({_, _, _, Size} = Key, {Acc, At}) ->
                {sderl_mon_log_index:add(Key, {file, File, At}, Acc), At + Size}
            end, {Index, From}, Records),
            {From + Bytes, Read};
        _ -> {none, Index}
    end.

%% Continues the last file after its good part, if it is not full.
begun([], Files) -> Files;
begun(Read, #files{options = #{file_bytes := Most}} = Files) ->
    case lists:last(Read) of
        {File, Size} when is_integer(Size), Size < Most ->
            maybe
                {ok, Fd} ?= file:open(File, [read, write, raw, binary]),
                {ok, Size} ?= file:position(Fd, Size),
                ok ?= file:truncate(Fd),
                Files#files{old = [F || {F, _} <- lists:droplast(Read)], now = {File, Fd, Size}}
            else
                _ -> Files
            end;
        _ -> Files
    end.

-doc """
Writes records, the first of which has that number. Returns the file and where they begin in it, and
the files that were removed. Errors: a sentence; nothing was written then.
""".
-spec append(pos_integer(), iodata(), files()) ->
    {ok, {binary(), non_neg_integer()}, Removed :: [binary()], files()}
    | {error, unicode:chardata(), files()}.
append(_, Records, #files{now = {File, Fd, Size}, options = #{file_bytes := Most}} = Files)
  when Size < Most ->
    case file:write(Fd, Records) of
        ok ->
            New = Size + iolist_size(Records),
            {ok, {File, Size}, [], Files#files{now = {File, Fd, New}}};
        {error, Reason} -> failed(File, Reason, Files)
    end;
append(First, Records, #files{dir = Dir} = Files0) ->
    #files{old = Old, options = #{files := Most}} = Files = turn(Files0),
    Name = io_lib:format("log-~20..0b~ts", [First, ?EXTENSION]),
    File = filename:join(Dir, unicode:characters_to_binary(Name)),
    {Gone, Kept} = lists:split(max(0, length(Old) + 1 - Most), Old),
    lists:foreach(fun file:delete/1, Gone),
    case file:open(File, [write, exclusive, raw, binary]) of
        {ok, Fd} ->
            Header = sderl_mon_log_record:header(),
            Opened = Files#files{old = Kept, now = {File, Fd, byte_size(Header)}},
            case file:write(Fd, Header) of
                ok ->
                    maybe
                        {ok, Place, _, Written} ?= append(First, Records, Opened),
                        {ok, Place, Gone, Written}
                    end;
                {error, Reason} ->
                    %% A file without a header would be in the way of the next attempt.
                    _ = file:close(Fd),
                    _ = file:delete(File),
                    failed(File, Reason, Files#files{old = Kept})
            end;
        {error, Reason} ->
            failed(File, Reason, Files#files{old = Kept})
    end.

%% Removes what was written in part: it is written again, or kept in memory.
failed(File, Reason, Files) ->
    _ = cut(Files),
    {error, [File, ": ", file:format_error(Reason)], Files}.

cut(#files{now = none}) -> ok;
cut(#files{now = {_, Fd, Size}}) ->
    maybe
        {ok, Size} ?= file:position(Fd, Size),
        file:truncate(Fd)
    end.

turn(#files{now = none} = Files) -> Files;
turn(#files{now = {File, Fd, _}, old = Old} = Files) ->
    _ = file:close(Fd),
    Files#files{now = none, old = Old ++ [File]}.

-doc "Closes the files, and frees the folder for another program.".
-spec close(files()) -> ok.
close(#files{lock = Lock} = Files) ->
    _ = turn(Files),
    sderl_mon_folder_lock:leave(Lock).
