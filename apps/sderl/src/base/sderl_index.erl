%% SPDX-License-Identifier: Apache-2.0
-module(sderl_index).
-moduledoc false.
%% The index of a group's coordinator: from a process to the name it has.
%%
%% It exists at the coordinator alone, belongs to the group's process, and is built at a takeover.
%% When that process is killed, the table goes to `sderl_watch` and from there to the successor,
%% which finds it as `{{index, Group}, Table}` in `sderl_state`: nobody waits for a reading of all
%% names.
%%
%% The index may have a pid too many, as the process may die between a row and the index. So the
%% index is asked together with the row.

-include("sderl_rows.hrl").

-export([build/4, stop/1]).
-export([take/1, own/2, forget/1]).
-export([name/3, write/2, put/2, delete/2]).
-export_type([building/0]).

-define(STATE, sderl_state).
-define(CHUNK, 2000).

-doc "How far an index is built.".
-opaque building() :: {ets:tid(), sderl_rows:cursor(), Foreign :: [{Name :: term(), pid()}]}.

-doc """
Builds the index of a group in pieces, so that the coordinator can speak to its followers meanwhile,
however many names there are. At the end it comes with the names whose home is not the node of their
process: the coordinator watches those.
""".
-spec build(Heir :: pid() | undefined, Group :: term(), IsEmpty :: boolean(), start | building()) ->
    {done, ets:tid(), Foreign :: [{Name :: term(), pid()}]} | {more, building()}.
build(Heir, Group, IsEmpty, start) ->
    T = ets:new(sderl_index, [set, public]),
    case IsEmpty of
        true -> built(Heir, Group, T, []);
        false -> add(Heir, Group, T, [], sderl_rows:first(Group, all, ?CHUNK))
    end;
build(Heir, Group, _, {T, Cursor, Foreign}) ->
    add(Heir, Group, T, Foreign, sderl_rows:next(Cursor)).

add(Heir, Group, T, Foreign, none) ->
    built(Heir, Group, T, Foreign);
add(Heir, Group, T, Foreign0, {Rows, Cursor}) ->
    true = ets:insert(T, [{Pid, Name} || ?STORED(_, Name, Pid, _, _, _, _) <- Rows]),
    Foreign = sderl_rows:foreign(Rows) ++ Foreign0,
    case length(Rows) < ?CHUNK of
        true -> add(Heir, Group, T, Foreign, sderl_rows:next(Cursor));
        false -> {more, {T, Cursor, Foreign}}
    end.

%% A successor finds the index only once it is whole.
built(Heir, Group, T, Foreign) ->
    ok = own(T, Heir),
    true = ets:insert(?STATE, {{index, Group}, T}),
    {done, T, Foreign}.

-doc "Ends the building of an index that is not wanted any more.".
-spec stop(building()) -> true.
stop({T, Cursor, _}) ->
    true = sderl_rows:stop(Cursor),
    ets:delete(T).

-doc "The index that the predecessor of the group's process left, if it did.".
-spec take(Group :: term()) -> ets:tid() | none.
take(Group) ->
    T = ets:lookup_element(?STATE, {index, Group}, 2, none),
    case T =/= none andalso ets:info(T, owner) of
        Owner when is_pid(Owner) -> T;
        _ -> none
    end.

-doc "The calling process has that table; when it dies, the heir gets the table.".
-spec own(ets:tid(), Heir :: pid() | undefined) -> ok.
own(T, Heir) when is_pid(Heir) ->
    true = ets:setopts(T, {heir, Heir, index}),
    ok;
own(_, undefined) ->
    ok.

-spec forget(Group :: term()) -> true.
forget(Group) ->
    Had = take(Group),
    true = ets:delete(?STATE, {index, Group}),
    Had =:= none orelse ets:delete(Had).

-doc "The name that a process has in the group.".
-spec name(ets:tid(), Group :: term(), pid()) -> {ok, Name :: term()} | none.
name(T, Group, Pid) ->
    case ets:lookup(T, Pid) of
        [{_, Name}] ->
            case ets:lookup_element(?NAMES, {Group, Name}, ?STORED_PID, none) of
                Pid -> {ok, Name};
                _ -> none
            end;
        [] -> none
    end.

-doc "Writes what a batch changed: the name that each process has after it.".
-spec write(ets:tid(), [{pid(), [Name :: term()] | none}]) -> true.
write(T, [{Pid, none} | Rest]) -> delete(T, Pid), write(T, Rest);
write(T, [{Pid, [Name]} | Rest]) -> ets:insert(T, {Pid, Name}), write(T, Rest);
write(_, []) -> true.

-spec put(ets:tid(), [{pid(), Name :: term()}]) -> true.
put(T, Entries) -> ets:insert(T, Entries).

-spec delete(ets:tid(), pid()) -> true.
delete(T, Pid) -> ets:delete(T, Pid).
