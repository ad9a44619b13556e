%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl_khepri).
-moduledoc """
Names kept in [Khepri](https://github.com/rabbitmq/khepri), a tree that nodes agree on by Raft, on a
stock full mesh of all nodes, with a store for each group, of which each node is a member. Default
options; the log is written below the temporary folder.

Khepri is a database and no registry: it does not watch processes, and a name stays when its process
ends. It shows what a log on disk and a majority cost.
""".

-behaviour(sderl_bench_impl).

-export([plan/1, prepare/3, register/2, unregister/2, whereis/2, names/1]).
-export([consistency/0, promise/0]).
-export([start/1]).

-import(sderl_bench_impl, [each_group/2, on_all/6, key/1]).

-define(LEADER_MS, 60_000).

-doc "Stock nodes with Khepri.".
-spec plan(sderl_bench_impl:params()) -> sderl_bench_impl:plan().
plan(Params) ->
    #{
        connect_all => true,
        apps => [khepri],
        s_groups => false,
        groups => sderl_bench_layout:groups(Params)
    }.

-doc """
Meshes the nodes, starts a store on each, lets them join that of the group's first node, and waits
for a leader.
""".
-spec prepare(pid(), [sderl_bench_layout:namespace()], sderl_bench_impl:params()) ->
    ok | {error, term()}.
prepare(Fleet, Namespaces, _Params) ->
    maybe
        ok ?= sderl_bench_links:mesh(Fleet, lists:append([Nodes || {_, Nodes} <- Namespaces])),
        each_group(Namespaces, fun(Store, [First | Others] = Nodes) ->
            maybe
                ok ?= on_all(Fleet, Nodes, ?MODULE, start, [Store], ok),
                ok ?= join(Fleet, Store, First, Others),
                on_all(Fleet, Nodes, khepri_cluster, wait_for_leader, [Store, ?LEADER_MS], ok)
            end
        end)
    end.

%% One after the other: a cluster changes by one member at a time.
join(_Fleet, _Store, _First, []) ->
    ok;
join(Fleet, Store, First, [Node | Nodes]) ->
    maybe
        ok ?= on_all(Fleet, [Node], khepri_cluster, join, [Store, First], ok),
        join(Fleet, Store, First, Nodes)
    end.

-doc "Runs on a node: starts its store, of which it is the only member at first.".
-spec start(atom()) -> ok | {error, term()}.
start(Store) ->
    %% The home of the nodes is removed with them.
    Dir = filename:join(os:getenv("HOME", "."), "khepri-" ++ atom_to_list(node())),
    case khepri_cluster:start(Dir, Store) of
        {ok, Store} -> ok;
        Error -> Error
    end.

-doc "`khepri:create/3`, which refuses a name that is there.".
-spec register(atom(), term()) -> sderl_bench_impl:outcome().
register(Store, Name) -> khepri:create(Store, path(Name), self()).

-doc "`khepri:delete/2`.".
-spec unregister(atom(), term()) -> sderl_bench_impl:outcome().
unregister(Store, Name) -> khepri:delete(Store, path(Name)).

-doc """
`khepri:get/2`, which asks the store on this node; with a projection it would be a look-up in a
table.
""".
-spec whereis(atom(), term()) -> pid() | undefined.
whereis(Store, Name) ->
    case khepri:get(Store, path(Name)) of
        {ok, Pid} -> Pid;
        {error, _} -> undefined
    end.

-doc "`khepri:get_many/2`.".
-spec names(atom()) -> [{term(), pid()}].
names(Store) ->
    case khepri:get_many(Store, "/:names/*") of
        {ok, Found} -> maps:to_list(Found);
        {error, Reason} -> error(Reason)
    end.

path(Name) -> [names, key(Name)].

-doc "The leader has a change before the call returns; a look-up may be older.".
-spec consistency() -> eventual.
consistency() -> eventual.

-doc false.
-spec promise() -> string().
promise() ->
    "a majority has the change in its logs on disk; names are unique; a name stays when its "
    "process ends".
