%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_moved).
-moduledoc """
Moves the data of a service with one member into the store of a service with several.

Raft knows a part of a store by its node's name, and a service with one member runs without a name,
so its store cannot become that of a member. When such a folder is started with a name, its data is
written to a file, and the old store stays aside as `store-of-one`. The member with such a file
makes the store of all members from it. The file is deleted when it has its part of the new store.

Each part may be repeated: the old store is not changed until the folder is that of a member, and
the file stays until the new store is whole.
""".

-export([pack/1, settle/1, is_there/1, unpack/1, drop/1]).

-doc "Writes the data of a folder's store to the file. Only while this node has no name.".
-spec pack(file:filename()) -> ok | {error, term()}.
pack(Folder) ->
    maybe
        ok ?= sderl_ops_store:open(store(Folder)),
        Entries = sderl_ops_store:dump(),
        ok ?= sderl_ops_store:close(),
        %% The node gets a name later, which needs a new Ra system.
        _ = [application:stop(Name) || Name <- [khepri, ra]],
        ok ?= file:write_file(part(Folder), term_to_binary(Entries, [compressed]), [sync]),
        file:rename(part(Folder), file(Folder))
    end.

-doc "Puts the old store aside when the folder is that of a member without a new one.".
-spec settle(file:filename()) -> ok | {error, file:posix() | badarg}.
settle(Folder) ->
    case is_there(Folder) andalso filelib:is_dir(store(Folder)) of
        true -> file:rename(store(Folder), filename:join(Folder, "store-of-one"));
        false -> ok
    end.

-doc "Whether this folder's member has the file.".
-spec is_there(file:filename()) -> boolean().
is_there(Folder) -> filelib:is_regular(file(Folder)).

-doc "Loads the file, if there is one, into the open store.".
-spec unpack(file:filename()) -> ok | {error, term()}.
unpack(Folder) ->
    case file:read_file(file(Folder)) of
        {ok, Bytes} -> sderl_ops_store:load(binary_to_term(Bytes));
        {error, enoent} -> ok;
        {error, Why} -> {error, {file(Folder), Why}}
    end.

-doc "Deletes the file.".
-spec drop(file:filename()) -> ok | {error, file:posix() | badarg}.
drop(Folder) ->
    case file:delete(file(Folder)) of
        {error, enoent} -> ok;
        Result -> Result
    end.

store(Folder) -> filename:join(Folder, "store").

file(Folder) -> filename:join(Folder, "store.moved").

part(Folder) -> filename:join(Folder, "store.moved.part").
