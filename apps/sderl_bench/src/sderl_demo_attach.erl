%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_attach).
-moduledoc """
Lets `bin/sderl shell NODE` find the demo's nodes while they stay up.

For each node a file of its name in the user's private folder: `$SDERL_RUN_DIR`, by default
`sderl-UID` in `$XDG_RUNTIME_DIR` or `/tmp`. It holds the way to the cookie, not the cookie.
""".

-include_lib("kernel/include/file.hrl").

-export([write/1, remove/1, folder/0]).

-doc """
Writes the files of all nodes of a fleet. The folder is made where it is missing;
`{not_private, Folder}` when others may use it, because whoever could write there could
lead this user's shell to a node of his own.
""".
-spec write(Fleet :: pid()) ->
    {ok, [file:filename_all()]} | {error, {not_private | file:posix() | badarg, file:filename_all()}}.
write(Fleet) ->
    #{home := Home, epmd_port := Port} = sderl_fleet:connection_info(Fleet),
    Contents = io_lib:format("cookie_file=~ts~nepmd_port=~w~n", [Home, Port]),
    Folder = folder(),
    Files = [filename:join(Folder, atom_to_list(Node)) || Node <- sderl_fleet:nodes(Fleet)],
    maybe
        ok ?= private(Folder),
        ok ?= write_all(Files, unicode:characters_to_binary(Contents)),
        {ok, Files}
    end.

-doc "Removes files that `write/1` has written.".
-spec remove([file:filename_all()]) -> ok.
remove(Files) ->
    lists:foreach(fun file:delete/1, Files).

-doc "The folder of this user's running nodes.".
-spec folder() -> file:filename_all().
folder() ->
    case environment("SDERL_RUN_DIR", "") of
        "" -> filename:join(environment("XDG_RUNTIME_DIR", "/tmp"), "sderl-" ++ uid());
        Folder -> Folder
    end.

environment(Name, Default) ->
    case os:getenv(Name, "") of
        "" -> Default;
        Value -> Value
    end.

uid() ->
    {match, [Uid]} = re:run(os:cmd("id -u"), "\\d+", [{capture, first, list}]),
    Uid.

private(Folder) ->
    case file:make_dir(Folder) of
        ok -> at(Folder, file:change_mode(Folder, 8#700));
        {error, eexist} -> is_private(Folder);
        {error, _} = Error -> at(Folder, Error)
    end.

is_private(Folder) ->
    %% read_link_info: a link that somebody else has put there is no folder of ours.
    case file:read_link_info(Folder) of
        {ok, #file_info{type = directory, mode = Mode, uid = Uid}} when Mode band 8#077 =:= 0 ->
            case integer_to_list(Uid) =:= uid() of
                true -> ok;
                false -> {error, {not_private, Folder}}
            end;
        {ok, _} ->
            {error, {not_private, Folder}};
        {error, _} = Error ->
            at(Folder, Error)
    end.

write_all([], _Contents) ->
    ok;
write_all([File | Files], Contents) ->
    maybe
        ok ?= at(File, file:write_file(File, Contents)),
        ok ?= at(File, file:change_mode(File, 8#600)),
        write_all(Files, Contents)
    end.

at(_File, ok) -> ok;
at(File, {error, Reason}) -> {error, {Reason, File}}.
