%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_moved).
-moduledoc """
What a service with one member has stored, on its way into the store of a service with several.

A part of the store belongs to a node by its name, and a service with one member has none, so the
store itself cannot become that of a member. When it is started with a name, all that is in it is
put into a file, and the store is put aside as `store-of-one`, where it stays. The member that has
such a file makes the store of all members, with what is in it. The file goes when it is a member.

Each part may be done again: until the folder is that of a member, nothing was done to the store,
and until the new store is whole the file is there.
""".

-export([pack/1, settle/1, is_there/1, unpack/1, drop/1]).

-doc """
Puts what the store of a folder has into the file. Only while this node has no name.
""".
-spec pack(file:filename()) -> ok | {error, term()}.
pack(Folder) ->
    maybe
        ok ?= sderl_ops_store:open(store(Folder)),
        Entries = sderl_ops_store:dump(),
        ok ?= sderl_ops_store:close(),
        %% As another node it is another system.
        _ = [application:stop(Name) || Name <- [khepri, ra]],
        ok ?= file:write_file(part(Folder), term_to_binary(Entries, [compressed]), [sync]),
        file:rename(part(Folder), file(Folder))
    end.

-doc "Puts the store aside, when the folder is that of a member that has no other.".
-spec settle(file:filename()) -> ok | {error, file:posix() | badarg}.
settle(Folder) ->
    case is_there(Folder) andalso filelib:is_dir(store(Folder)) of
        true -> file:rename(store(Folder), filename:join(Folder, "store-of-one"));
        false -> ok
    end.

-doc "Whether this folder's member has the file.".
-spec is_there(file:filename()) -> boolean().
is_there(Folder) -> filelib:is_regular(file(Folder)).

-doc "Puts what the file has, if there is one, into the store that is open.".
-spec unpack(file:filename()) -> ok | {error, term()}.
unpack(Folder) ->
    case file:read_file(file(Folder)) of
        {ok, Bytes} -> sderl_ops_store:load(binary_to_term(Bytes));
        {error, enoent} -> ok;
        {error, Why} -> {error, {file(Folder), Why}}
    end.

-doc "Takes the file away.".
-spec drop(file:filename()) -> ok | {error, file:posix() | badarg}.
drop(Folder) ->
    case file:delete(file(Folder)) of
        {error, enoent} -> ok;
        Result -> Result
    end.

store(Folder) -> filename:join(Folder, "store").

file(Folder) -> filename:join(Folder, "store.moved").

part(Folder) -> filename:join(Folder, "store.moved.part").
