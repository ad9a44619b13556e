%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_room).
-moduledoc """
Whether the disk of the service's folder has room for what the service stores.

A store whose disk is full ends in the middle of a write, and the service with it. So the service
begins nothing and takes no request any more while there is still room for what it has begun, and
goes on by itself when there is more. It looks before it takes a request and before it stores a
decision, and else now and then; what follows from these is stored without a look.
""".

-export([new/1, before_write/1, now_and_then/1, check/1]).
-export_type([room/0]).

-import(sderl_clock, [now_ms/0]).

-doc "With when it was looked at last.".
-opaque room() :: {file:filename(), ok | {error, unicode:chardata()}, At :: integer() | never}.

%% More than the store writes in the time between two looks; a snapshot of it is as large.
-define(NEEDED_BYTES, 33_554_432).
%% There are many writes a second while much is done.
-define(WRITING_MS, 1_000).
-define(IDLE_MS, 60_000).

-doc "Of a folder; it was not looked at yet.".
-spec new(Folder :: file:filename()) -> room().
new(Folder) -> {Folder, ok, never}.

-doc "Whether something may be stored. An error is a sentence.".
-spec before_write(room()) -> {ok | {error, unicode:chardata()}, room()}.
before_write(Room) -> look(?WRITING_MS, Room).

-doc "The same where nothing is to be stored: a full disk is known before something is.".
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

-doc "Looks at the disk. One of which it cannot be told has room.".
-spec check(Folder :: file:filename()) -> ok | {error, unicode:chardata()}.
check(Folder) ->
    case allocate(filename:join(Folder, "room")) of
        {error, Why} when Why =:= enospc; Why =:= edquot ->
            {error, io_lib:format("the disk of ~ts, the service's folder, is full: nothing is "
                                  "begun until ~b MiB are free there",
                                  [Folder, ?NEEDED_BYTES div 1_048_576])};
        _ ->
            ok
    end.

allocate(File) ->
    maybe
        {ok, Fd} ?= file:open(File, [write, raw]),
        Allocated = file:allocate(Fd, 0, ?NEEDED_BYTES),
        _ = file:close(Fd),
        _ = file:delete(File),
        Allocated
    end.
