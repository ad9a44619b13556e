%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_place).
-moduledoc "The folder of the service of operations, and what is in it.".

-include_lib("kernel/include/file.hrl").

-export([default/0, make/1, socket/1, log/1]).

%% The size of sun_path without the NUL at its end.
-define(MOST_SOCKET_BYTES, 107).

-doc "`$XDG_STATE_HOME/sderl-ops`, by default `~/.local/state/sderl-ops`.".
-spec default() -> file:filename_all().
default() ->
    State =
        case os:getenv("XDG_STATE_HOME", "") of
            [$/ | _] = Given -> Given;
            _ -> filename:join([os:getenv("HOME", "/"), ".local", "state"])
        end,
    filename:join(State, "sderl-ops").

-doc "Makes the folder if it is missing, accessible for its user alone.".
-spec make(file:filename()) -> ok | {error, unicode:chardata()}.
make(Folder) ->
    maybe
        ok ?= filelib:ensure_path(Folder),
        {ok, #file_info{type = directory, uid = User}} ?= file:read_file_info(Folder),
        ok ?= check_user(User),
        file:change_mode(Folder, 8#700)
    else
        {error, eexist} -> {error, [Folder, " is not a folder: name another one with --dir"]};
        {ok, _} -> {error, [Folder, " is not a folder: name another one with --dir"]};
        {error, Why} when is_atom(Why) ->
            {error, [Folder, " cannot be used: ", file:format_error(Why)]};
        {other_user, _} ->
            {error, [Folder, " belongs to another user: name another one with --dir"]}
    end.

%% The owner of /proc/self is the user of this process.
check_user(User) ->
    case file:read_file_info("/proc/self") of
        {ok, #file_info{uid = Own}} when Own =/= User -> {other_user, User};
        _ -> ok
    end.

-doc "Where the service listens.".
-spec socket(file:filename()) -> {ok, file:filename()} | {error, unicode:chardata()}.
socket(Folder) ->
    Socket = filename:join(Folder, "socket"),
    case byte_size(unicode:characters_to_binary(Socket)) of
        Size when Size =< ?MOST_SOCKET_BYTES ->
            {ok, Socket};
        Size ->
            {error, io_lib:format("~ts has ~b bytes, and the path of a socket may have ~b: name a "
                                  "folder with a shorter path (--dir)",
                                  [Socket, Size, ?MOST_SOCKET_BYTES])}
    end.

-doc "The log of a service that runs in the background.".
-spec log(file:filename_all()) -> file:filename_all().
log(Folder) -> filename:join(Folder, "log").
