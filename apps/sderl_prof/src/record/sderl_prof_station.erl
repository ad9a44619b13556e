%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_station).
-moduledoc """
What a recording of several nodes needs on each of them: the clock, the groups, and the files in
pieces. Needs no other module of this project, so that it can be loaded into any
node.
""".

-export([clock/1, groups/0, list/1, is_recording/1, read/4, digest/4, is_there/2, remove/2]).

-define(PIECE, 262_144).

-doc "Answers `{clock, From, Tag}` with the time of the monotonic clock, while `Asker` lives.".
-spec clock(Asker :: pid()) -> ok.
clock(Asker) ->
    _ = process_flag(priority, high),
    answer(monitor(process, Asker)).

answer(Ref) ->
    receive
        {clock, From, Tag} ->
            From ! {Tag, erlang:monotonic_time(nanosecond)},
            answer(Ref);
        {'DOWN', Ref, process, _, _} -> ok
    end.

-doc "The groups that this node is in; none where it runs without the library.".
-spec groups() -> [binary()].
groups() ->
    case whereis(sderl_sup) of
        undefined -> [];
        _ ->
            case s_group:own_s_groups() of
                Groups when is_list(Groups) -> [name(Group) || {Group, _} <- Groups];
                _ -> []
            end
    end.

%% Groups are called by any terms.
name(Group) when is_atom(Group) -> atom_to_binary(Group);
name(Group) -> unicode:characters_to_binary(io_lib:format("~0tp", [Group])).

-doc "The files of the recording in this folder, with their sizes.".
-spec list(file:filename_all()) ->
    {ok, [{file:filename(), non_neg_integer()}]} | {error, file:posix() | badarg}.
list(Dir) ->
    case file:list_dir(Dir) of
        {ok, Names} ->
            {ok, [{Name, filelib:file_size(filename:join(Dir, Name))}
                  || Name <- lists:sort(Names), is_part(Name)]};
        {error, Why} -> {error, Why}
    end.

is_part("recording") -> true;
is_part(Name) ->
    case string:split(Name, ".", all) of
        ["events", Number, "trace"] ->
            case string:to_integer(Number) of
                {N, ""} -> N >= 0;
                _ -> false
            end;
        _ -> false
    end.

-doc """
Whether a recording may still write into this folder: its file does not tell the end, and the node
records. The files of a node that died do not change any more.
""".
-spec is_recording(file:filename_all()) -> boolean().
is_recording(Dir) ->
    not has_ended(Dir) andalso lists:keymember(sderl_recording, 1, trace:session_info(all)).

has_ended(Dir) ->
    case file:read_file(filename:join(Dir, "recording")) of
        {ok, Bin} ->
            try binary_to_term(Bin, [safe]) of
                #{ended_at := At} -> is_integer(At);
                _ -> false
            catch
                error:badarg -> false
            end;
        {error, _} -> false
    end.

-doc "A piece of a file with its checksum; shorter at the end of the file, where it is `eof`.".
-spec read(file:filename_all(), file:filename(), non_neg_integer(), pos_integer()) ->
    {ok, {binary(), Crc :: non_neg_integer()} | eof} | {error, file:posix() | badarg | terminated}.
read(Dir, Name, At, Size) ->
    with_file(Dir, Name, fun(File) ->
        case file:pread(File, At, Size) of
            {ok, Bin} -> {ok, {Bin, erlang:crc32(Bin)}};
            eof -> {ok, eof};
            {error, Why} -> {error, Why}
        end
    end).

-doc """
The checksum of so many bytes of a file from a place on, and how many bytes these are: the file may
end before.
""".
-spec digest(file:filename_all(), file:filename(), At :: non_neg_integer(),
             Bytes :: non_neg_integer()) ->
    {ok, {non_neg_integer(), binary()}} | {error, file:posix() | badarg | terminated}.
digest(Dir, Name, At, Bytes) ->
    with_file(Dir, Name, fun(File) ->
        maybe
            {ok, At} ?= file:position(File, At),
            add_to_digest(File, Bytes, 0, erlang:md5_init())
        end
    end).

add_to_digest(_, 0, Done, Context) ->
    {ok, {Done, erlang:md5_final(Context)}};
add_to_digest(File, Left, Done, Context) ->
    case file:read(File, min(Left, ?PIECE)) of
        {ok, Bin} ->
            Size = byte_size(Bin),
            add_to_digest(File, Left - Size, Done + Size, erlang:md5_update(Context, Bin));
        eof -> add_to_digest(File, 0, Done, Context);
        {error, Why} -> {error, Why}
    end.

with_file(Dir, Name, Fun) ->
    case file:open(filename:join(Dir, Name), [read, raw, binary]) of
        {ok, File} ->
            Result = Fun(File),
            _ = file:close(File),
            Result;
        {error, Why} -> {error, Why}
    end.

-doc "Whether the folder has a file of this name: a mark tells whether two folders are one.".
-spec is_there(file:filename_all(), file:filename()) -> boolean().
is_there(Dir, Name) -> filelib:is_file(filename:join(Dir, Name)).

-doc """
Removes the files of the recording here, and the folder where nothing else is in it. Nothing is
removed unless these are the files, with their sizes: what has come since is nowhere else.
""".
-spec remove(file:filename_all(), [{file:filename(), non_neg_integer()}]) ->
    ok | {error, changed | file:posix() | badarg}.
remove(Dir, Files) ->
    case list(Dir) of
        {ok, Files} ->
            lists:foreach(fun({Name, _}) -> _ = file:delete(filename:join(Dir, Name), [raw]) end,
                          Files),
            _ = file:del_dir(Dir),
            ok;
        {ok, _} -> {error, changed};
        {error, Why} -> {error, Why}
    end.
