%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_beside).
-moduledoc """
Makes a folder or a file under another name beside its place, and renames it when it is complete. So
two programs that make the same at once do not write the same files, what somebody reads stays, and
a full disk leaves nothing incomplete.
""".

-include_lib("kernel/include/file.hrl").

-export([make/3, write/2, name/1]).

%% A file that nobody has written to for so many seconds was left by a killed program.
-define(LEFT_S, 86_400).

-doc """
`Make` gets a folder that is not there yet, and gives `{ok, _}` when it has made it. `Mark` is a
file in it. Where another program has put a folder with a new one there meanwhile, that one stays.
""".
-spec make(Dir :: file:filename_all(), Mark :: file:filename(),
           fun((file:filename_all()) -> {ok, term()} | Error)) ->
    ok | Error | {error, {place, file:posix()}} when Error :: {error, term()}.
make(Dir, Mark, Make) ->
    ok = remove_left(Dir),
    Before = identity(Dir, Mark),
    Own = name(Dir),
    try Make(Own) of
        {ok, _} -> place(Own, Dir, Mark, Before);
        {error, _} = Error -> Error
    after
        _ = file:del_dir_r(Own)
    end.

-doc """
Makes a file. `Write` gets a name that is not there yet. What is no plain file, such as a device or
a link, is written to as it is.
""".
-spec write(file:filename_all(), fun((file:filename_all()) -> ok | Error)) ->
    ok | Error | {error, {place, file:posix()}} when Error :: {error, term()}.
write(File, Write) ->
    case file:read_link_info(File, [raw]) of
        {ok, #file_info{type = directory}} -> {error, {place, eisdir}};
        {ok, #file_info{type = regular, mode = Mode}} ->
            write_beside(File, name(File), fun(Own) -> with_mode(Mode, Own, Write(Own)) end);
        {ok, _} -> Write(File);
        {error, _} -> write_beside(File, name(File), Write)
    end.

write_beside(File, Own, Write) ->
    try
        maybe
            ok ?= Write(Own),
            placed(file:rename(Own, File))
        end
    after
        %% It is not there any more when it was renamed.
        _ = file:delete(Own, [raw])
    end.

%% Who could read what was there can read what replaces it, and nobody else.
with_mode(Mode, Own, ok) ->
    _ = file:change_mode(Own, Mode band 8#7777),
    ok;
with_mode(_, _, Error) -> Error.

placed(ok) -> ok;
placed({error, Why}) -> {error, {place, Why}}.

-doc "A name beside a path that nobody else has, whatever the number of its process.".
-spec name(file:filename_all()) -> file:filename().
name(Path) ->
    [_ | _] = Text = unicode:characters_to_list(Path),
    Text ++ ".new-" ++ binary_to_list(binary:encode_hex(rand:bytes(8), lowercase)).

place(Own, Dir, Mark, Before) ->
    case file:rename(Own, Dir) of
        ok -> ok;
        {error, Why} when Why =:= eexist; Why =:= enotempty; Why =:= eisdir ->
            case identity(Dir, Mark) of
                Now when Now =/= Before, Now =/= none -> ok;
                _ -> replace(Own, Dir)
            end;
        {error, Why} -> {error, {place, Why}}
    end.

%% The old one is away for as short a time as may be.
replace(Own, Dir) ->
    Old = name(Dir),
    maybe
        ok ?= file:rename(Dir, Old),
        Placed = file:rename(Own, Dir),
        _ = file:del_dir_r(Old),
        ok ?= Placed
    else
        %% Another program was faster.
        {error, enoent} -> ok;
        {error, Why} when Why =:= eexist; Why =:= enotempty -> ok;
        {error, Why} -> {error, {place, Why}}
    end.

identity(Dir, Mark) ->
    case file:read_file_info(filename:join(Dir, Mark), [{time, posix}]) of
        {ok, #file_info{inode = Inode, mtime = Written}} -> {Inode, Written};
        {error, _} -> none
    end.

remove_left(Dir) ->
    Prefix = unicode:characters_to_list([filename:basename(Dir), ".new-"]),
    Parent = unicode:characters_to_list(filename:dirname(Dir)),
    Names = case file:list_dir(Parent) of
        {ok, All} -> [Name || Name <- All, lists:prefix(Prefix, Name)];
        {error, _} -> []
    end,
    Now = os:system_time(second),
    lists:foreach(fun(Name) ->
        Left = filename:join(Parent, Name),
        case file:read_file_info(Left, [{time, posix}]) of
            {ok, #file_info{mtime = Written}} when Now - Written > ?LEFT_S ->
                _ = file:del_dir_r(Left);
            _ -> ok
        end
    end, Names).
