%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pg_sup).
-moduledoc """
Supervises the processes that keep `pg` scopes, one for each s_group in which this node uses
process groups. Restarted, it starts those that the table of `m:sderl_pg` knows.
""".

-behaviour(supervisor).

-export([start_link/0]).
-export([ensure/2]).
-export([init/1]).

-doc "Starts the supervisor, registered as `sderl_pg_sup`, on the table of `sderl_pg:new/0`.".
-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-doc "The process that keeps the scope of an s_group, started if need be.".
-spec ensure(Group :: term(), Uid :: binary()) -> {ok, pid()} | {error, not_running}.
ensure(Group, Uid) ->
    try supervisor:start_child(?MODULE, child(Group, Uid)) of
        {ok, Keeper} when is_pid(Keeper) ->
            {ok, Keeper};
        {error, {already_started, Keeper}} when is_pid(Keeper) ->
            {ok, Keeper};
        {error, already_present} ->
            %% It ended by `sderl_pg:drop/1`, and this node is a member again.
            _ = supervisor:delete_child(?MODULE, Uid),
            ensure(Group, Uid);
        {error, _Reason} ->
            {error, not_running}
    catch
        exit:{_Reason, {gen_server, call, _}} -> {error, not_running}
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
