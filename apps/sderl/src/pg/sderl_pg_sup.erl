%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pg_sup).
-moduledoc """
Supervises the processes that keep `pg` scopes, one for each s_group in which this node uses
process groups. Restarted, it starts those that the table of `m:sderl_pg` knows. A keeper that was
dropped leaves nothing here (`forget/1`).
""".

-behaviour(supervisor).

-export([start_link/0]).
-export([ensure/3, forget/1]).
-export([init/1]).

-doc "Starts the supervisor, registered as `sderl_pg_sup`, on the table of `sderl_pg:new/0`.".
-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-doc "The process that keeps the scope of an s_group, started if need be.".
-spec ensure(Group :: term(), Uid :: binary(), Scope :: atom()) ->
    {ok, pid()} | {error, not_running}.
ensure(Group, Uid, Scope) ->
    _ = ets:insert_new(sderl_pg, {{scope, Uid}, Group, Scope, none}),
    try supervisor:start_child(?MODULE, child(Group, Uid)) of
        {ok, Keeper} when is_pid(Keeper) ->
            {ok, Keeper};
        {error, {already_started, Keeper}} when is_pid(Keeper) ->
            {ok, Keeper};
        {ok, undefined} ->
            %% Dropped in this moment.
            forget(Uid),
            {error, not_running};
        {error, already_present} ->
            %% It ended by `sderl_pg:drop/1`, and this node is a member again.
            _ = supervisor:delete_child(?MODULE, Uid),
            ensure(Group, Uid, Scope);
        {error, _Reason} ->
            {error, not_running}
    catch
        exit:{_Reason, {gen_server, call, _}} -> {error, not_running}
    end.

-doc """
Forgets a keeper that has ended or is about to, in a process of its own; what runs again by then
stays.
""".
-spec forget(Uid :: binary()) -> ok.
forget(Uid) ->
    _ = spawn(fun() -> forget(Uid, 100) end),
    ok.

%% That it has ended may be known here before the supervisor has heard it.
forget(_Uid, 0) ->
    ok;
forget(Uid, Times) ->
    try supervisor:delete_child(?MODULE, Uid) of
        {error, Why} when Why =:= running; Why =:= restarting ->
            receive after 10 -> forget(Uid, Times - 1) end;
        _ ->
            ok
    catch
        exit:_ -> ok
    end.

-doc false.
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Known = [{Group, Uid} || {{scope, Uid}, Group, _Scope, _Keeper} <- ets:tab2list(sderl_pg)],
    {ok,
        {
            #{strategy => one_for_one, intensity => 10, period => 10},
            [child(Group, Uid) || {Group, Uid} <- Known]
        }}.

child(Group, Uid) ->
    #{
        id => Uid,
        start => {sderl_pg_scope, start_link, [Group, Uid]},
        restart => transient,
        shutdown => 1_000
    }.
