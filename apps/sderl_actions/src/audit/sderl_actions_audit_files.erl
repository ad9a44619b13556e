%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_audit_files).
-moduledoc """
The files of the audit log: `audit-NUMBER.jsonl` in a folder, named by their first entry. When one
has reached `file_bytes` the next begins, and the oldest beyond `files` is removed.

Written lines are never changed. A line that a crash cut short stays, and the next one begins after
it; a line that a full disk cut short is removed. A folder belongs to one program at a time
(`m:sderl_mon_folder_lock`); others may read it.
""".

-export([open/1, append/3, sync/1, close/1, list/1, search/3, search/4]).
-export_type([files/0, options/0, found/0]).

-type options() :: #{dir := file:name_all(), file_bytes := pos_integer(), files := pos_integer()}.

-record(files, {
    options :: options(),
    dir :: binary(),
    lock :: sderl_mon_folder_lock:lock(),
    now = none :: none | {binary(), file:fd(), Size :: non_neg_integer()}
}).
-opaque files() :: #files{}.

-doc """
The newest first. `more`: there are older ones; `damaged`: lines that are no entries; `oldest`: the
number of the oldest entry that is kept; `unread`: a sentence if the files could not be read.
""".
-type found() :: #{
    entries := [sderl_actions_audit_record:stored()],
    more := boolean(),
    damaged := non_neg_integer(),
    oldest := none | pos_integer(),
    unread := none | binary()
}.

-type look() :: fun((fun(() -> term())) -> {ok, term()} | late).

-define(EXTENSION, ".jsonl").

-doc "Opens a folder (creating it), and returns the next entry's number. Errors: a sentence.".
-spec open(options()) -> {ok, Next :: pos_integer(), files()} | {error, binary()}.
open(#{dir := Given} = Options) ->
    Dir = unicode:characters_to_binary(Given),
    maybe
        ok ?= said(Dir, filelib:ensure_path(Dir)),
        {ok, Lock} ?= locked(sderl_mon_folder_lock:take(filename:join(Dir, "lock"))),
        Files = #files{options = Options, dir = Dir, lock = Lock},
        case list(Dir) of
            [] -> {ok, 1, Files};
            Names ->
                case resumed(lists:last(Names), Files) of
                    {ok, _, _} = Ok -> Ok;
                    {error, _} = Error ->
                        ok = sderl_mon_folder_lock:leave(Lock),
                        Error
                end
        end
    end.

said(_, ok) -> ok;
said(File, {error, Why}) -> {error, sentence(File, Why)}.

locked({ok, Lock}) -> {ok, Lock};
locked({error, Why}) -> {error, unicode:characters_to_binary(Why)}.

sentence(File, Why) -> sderl_mon_text:text("~ts: ~ts", [File, file:format_error(Why)]).

-doc "The files of a folder, the oldest first.".
-spec list(file:name_all()) -> [binary()].
list(Dir) ->
    Folder = unicode:characters_to_binary(Dir),
    %% Not by the file server, which a disk that hangs would block for all.
    case prim_file:list_dir(Folder) of
        {ok, Names} ->
            [filename:join(Folder, Name)
             || Name <- lists:sort([unicode:characters_to_binary(N) || N <- Names]),
                first(Name) =/= none];
        {error, _} -> []
    end.

%% Other files in the folder are left alone.
first(<<"audit-", Digits:20/binary, ?EXTENSION>>) ->
    try binary_to_integer(Digits)
    catch error:badarg -> none
    end;
first(_) -> none.

%% Continues the last file.
resumed(File, Files) ->
    maybe
        {ok, Fd} ?= said_of(File, file:open(File, [read, append, raw, binary])),
        {ok, Bytes} ?= said_of(File, file:read_file(File, [raw])),
        ok ?= said(File, case is_whole(Bytes) of true -> ok; false -> file:write(Fd, "\n") end),
        Next = case [Seq || #{~"seq" := Seq} <- entries(Bytes)] of
            [] -> first(filename:basename(File));
            Seqs -> lists:max(Seqs) + 1
        end,
        Size = byte_size(Bytes) + case is_whole(Bytes) of true -> 0; false -> 1 end,
        {ok, Next, Files#files{now = {File, Fd, Size}}}
    end.

said_of(_, {ok, _} = Ok) -> Ok;
said_of(File, {error, Why}) -> {error, sentence(File, Why)}.

is_whole(~"") -> true;
is_whole(Bytes) -> binary:last(Bytes) =:= $\n.

entries(Bytes) ->
    [Entry || Line <- lines(Bytes), {ok, Entry} <- [sderl_actions_audit_record:read(Line)]].

lines(Bytes) -> binary:split(Bytes, ~"\n", [global, trim_all]).

-doc "Writes the line of an entry. Errors: a sentence; nothing of the line is left.".
-spec append(pos_integer(), binary(), files()) -> {ok, files()} | {error, binary(), files()}.
append(_, Line, #files{now = {File, Fd, Size}, options = #{file_bytes := Most}} = Files)
  when Size + byte_size(Line) =< Most ->
    case file:write(Fd, Line) of
        ok -> {ok, Files#files{now = {File, Fd, Size + byte_size(Line)}}};
        {error, Why} -> {error, sentence(File, Why), cut(Files)}
    end;
append(Seq, Line, #files{dir = Dir} = Files0) ->
    Name = io_lib:format("audit-~20..0b~ts", [Seq, ?EXTENSION]),
    File = filename:join(Dir, unicode:characters_to_binary(Name)),
    case file:open(File, [append, exclusive, raw, binary]) of
        {ok, Fd} ->
            #files{options = #{files := Most}} = Files = turned(Files0),
            Old = list(Dir),
            lists:foreach(fun file:delete/1, lists:sublist(Old, max(0, length(Old) - Most))),
            %% Whatever its size: an entry larger than a file gets a file of its own.
            case file:write(Fd, Line) of
                ok -> {ok, Files#files{now = {File, Fd, byte_size(Line)}}};
                {error, Why} ->
                    %% The file would be in the way of the next attempt.
                    _ = file:close(Fd),
                    _ = file:delete(File),
                    {error, sentence(File, Why), Files}
            end;
        {error, Why} -> {error, sentence(File, Why), Files0}
    end.

%% Removes a line that was written in part.
cut(#files{now = {File, Fd, Size}} = Files) ->
    maybe
        {ok, Size} ?= file:position(Fd, Size),
        ok ?= file:truncate(Fd),
        Files
    else
        _ ->
            _ = file:close(Fd),
            case file:open(File, [read, write, append, raw, binary]) of
                {ok, Again} -> Files#files{now = {File, Again, Size}};
                {error, _} -> Files#files{now = none}
            end
    end.

turned(#files{now = none} = Files) -> Files;
turned(#files{now = {_, Fd, _}} = Files) ->
    _ = file:datasync(Fd),
    _ = file:close(Fd),
    Files#files{now = none}.

-doc "Syncs to the disk, so that written entries survive the death of the machine.".
-spec sync(files()) -> ok.
sync(#files{now = none}) -> ok;
sync(#files{now = {_, Fd, _}}) ->
    _ = file:datasync(Fd),
    ok.

-doc "Closes the files, and frees the folder for another program.".
-spec close(files()) -> ok.
close(#files{lock = Lock} = Files) ->
    _ = turned(Files),
    sderl_mon_folder_lock:leave(Lock).

-doc """
The last matching entries of a folder and of the `Unwritten` lines (the oldest first), which come
after the files; at most `Limit`.
""".
-spec search(file:name_all() | none, Unwritten :: [binary()],
             {sderl_actions_audit_record:filter(), Limit :: pos_integer()}) -> found().
search(Dir, Unwritten, Question) ->
    {ok, Found} = search(Dir, Unwritten, Question, fun(Read) -> {ok, Read()} end),
    Found.

-doc "The same with a function that reads from the disk, or returns `late`.".
-spec search(file:name_all() | none, Unwritten :: [binary()],
             {sderl_actions_audit_record:filter(), Limit :: pos_integer()}, look()) ->
    {ok, found()} | late.
search(Dir, Unwritten, {Filter, Limit}, Look) ->
    Start = found(lists:reverse(Unwritten), Filter, Limit + 1, [], 0),
    maybe
        {ok, Files} ?= case Dir of none -> {ok, []}; _ -> Look(fun() -> list(Dir) end) end,
        {ok, {Entries, Damaged}} ?=
            search_files(lists:reverse(Files), Filter, Limit + 1, Look, Start),
        {ok, #{entries => lists:sublist(lists:reverse(Entries), Limit),
               more => length(Entries) > Limit, damaged => Damaged,
               oldest => oldest(Files, Unwritten), unread => none}}
    end.

%% Skips files that begin at or after `before`.
search_files(_, _, Most, _, {Entries, _} = Found) when length(Entries) >= Most -> {ok, Found};
search_files([], _, _, _, Found) -> {ok, Found};
search_files([File | Older], Filter, Most, Look, {Entries, Damaged} = Found) ->
    First = first(filename:basename(File)),
    Before = maps:get(before, Filter, infinity),
    After = maps:get('after', Filter, 0),
    case First >= Before orelse Look(fun() -> file:read_file(File, [raw]) end) of
        true -> search_files(Older, Filter, Most, Look, Found);
        late -> late;
        {ok, {ok, Bytes}} ->
            Next = found(lists:reverse(lines(Bytes)), Filter, Most, Entries, Damaged),
            case First =< After of
                true -> {ok, Next};
                false -> search_files(Older, Filter, Most, Look, Next)
            end;
        %% The file was removed meanwhile.
        {ok, {error, _}} -> search_files(Older, Filter, Most, Look, Found)
    end.

found([Line | Older], Filter, Most, Entries, Damaged) when length(Entries) < Most ->
    case sderl_actions_audit_record:read(Line) of
        {ok, Entry} ->
            case sderl_actions_audit_record:is_wanted(Entry, Filter) of
                true -> found(Older, Filter, Most, [Entry | Entries], Damaged);
                false -> found(Older, Filter, Most, Entries, Damaged)
            end;
        error -> found(Older, Filter, Most, Entries, Damaged + 1)
    end;
found(_, _, _, Entries, Damaged) ->
    {Entries, Damaged}.

oldest([File | _], _) -> first(filename:basename(File));
oldest([], [Line | _]) ->
    case sderl_actions_audit_record:read(Line) of
        {ok, #{~"seq" := Seq}} -> Seq;
        error -> none
    end;
oldest([], []) -> none.
