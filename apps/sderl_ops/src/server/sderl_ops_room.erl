%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_room).
-moduledoc """
Whether the disk of the service's folder has room for what the service stores.

A store whose disk is full ends in the middle of a write, and the service with it. So the service
stops taking requests and beginning steps while there is still room for what it has begun, and goes
on by itself when there is more. It checks the disk before it takes a request and before it stores a
decision, and otherwise now and then; what follows from these is stored without a check.
""".

-export([new/1, before_write/1, now_and_then/1, check/1]).
-export_type([room/0]).

-import(sderl_clock, [now_ms/0]).

-doc "The folder, whether its disk has room, and when that was checked.".
-opaque room() :: {file:filename(), ok | {error, unicode:chardata()}, At :: integer() | never}.

%% More than the store writes between two checks, and as large as a snapshot of it.
-define(NEEDED_BYTES, 33_554_432).
%% While much is done there are many writes a second.
-define(WRITING_MS, 1_000).
-define(IDLE_MS, 60_000).
%% A file system that hangs does not tell.
-define(LOOK_MS, 5_000).

-doc "The room of a folder that was not checked yet.".
-spec new(Folder :: file:filename()) -> room().
new(Folder) -> {Folder, ok, never}.

-doc "Whether something may be stored. An error is a sentence.".
-spec before_write(room()) -> {ok | {error, unicode:chardata()}, room()}.
before_write(Room) -> look(?WRITING_MS, Room).

-doc "The same, less often, so that a full disk is noticed before something has to be stored.".
-spec now_and_then(room()) -> {ok | {error, unicode:chardata()}, room()}.
now_and_then(Room) -> look(?IDLE_MS, Room).

look(Ms, {Folder, Was, At} = Room) ->
    Now = now_ms(),
    case Was =:= ok andalso is_integer(At) andalso Now - At < Ms of
        true ->
            {Was, Room};
        false ->
            Is = check(Folder),
            {Is, {Folder, Is, Now}}
    end.

-doc "Checks the disk. It has room if that cannot be found out.".
-spec check(Folder :: file:filename()) -> ok | {error, unicode:chardata()}.
check(Folder) ->
    File = filename:join(Folder, "room"),
    %% A service that was killed may have left it.
    _ = file:delete(File),
    case has_room(free(Folder), File) of
        true -> ok;
        false ->
            {error, io_lib:format("the disk of ~ts, the service's folder, is full: nothing is "
                                  "begun until ~b MiB are free there",
                                  [Folder, ?NEEDED_BYTES div 1_048_576])}
    end.

%% A quota is found by allocating. That takes the room from all who write meanwhile, the store and
%% nodes on this machine among them, so it is done only where as much is left for them.
has_room({ok, Free}, _) when Free < ?NEEDED_BYTES -> false;
has_room({ok, Free}, _) when Free < 2 * ?NEEDED_BYTES -> true;
has_room(_, File) ->
    Allocated = allocate(File),
    Allocated =/= {error, enospc} andalso Allocated =/= {error, edquot}.

%% What only the superuser can have does not count.
free(Folder) ->
    try sderl_ops_port:run(["df", "-P", "-k", filename:absname(Folder)], none, ?LOOK_MS) of
        {ok, 0, Said} ->
            case re:run(Said, "\\s[0-9]+ +[0-9]+ +(-?[0-9]+) +[0-9]+% ",
                        [{capture, [1], binary}]) of
                {match, [Free]} -> {ok, 1024 * binary_to_integer(Free)};
                nomatch -> unknown
            end;
        _ ->
            unknown
    catch
        %% No program can be run.
        error:_ -> unknown
    end.

allocate(File) ->
    maybe
        {ok, Fd} ?= file:open(File, [write, raw]),
        Allocated = file:allocate(Fd, 0, ?NEEDED_BYTES),
        _ = file:close(Fd),
        _ = file:delete(File),
        Allocated
    end.
