%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl_group).
-moduledoc """
The registry of Phoenix' [Group](https://github.com/phoenixframework/group) on a stock full mesh of
all nodes, with its default options except for its log. With several groups of nodes, each is a
named cluster.
""".

-behaviour(sderl_bench_impl).

-export([plan/1, prepare/3, register/2, unregister/2, whereis/2, names/1]).
-export([consistency/0, promise/0]).
-export([start/0]).

-import(sderl_bench_impl, [each_group/2, on_all/6, await_known/6, key/1]).

-define(INSTANCE, sderl_bench).

-doc "Stock nodes with Group.".
-spec plan(sderl_bench_impl:params()) -> sderl_bench_impl:plan().
plan(#{nodes := Nodes} = Params) ->
    Groups =
        case Params of
            #{group_size := Nodes} -> [{all, lists:seq(1, Nodes)}];
            #{} -> sderl_bench_layout:groups(Params)
        end,
    #{connect_all => true, apps => [group], s_groups => false, groups => Groups}.

-doc "Meshes the nodes, starts an instance on each, and waits until they know each other.".
-spec prepare(pid(), [sderl_bench_layout:namespace()], sderl_bench_impl:params()) ->
    ok | {error, term()}.
prepare(Fleet, Namespaces, _Params) ->
    All = lists:append([Nodes || {_, Nodes} <- Namespaces]),
    maybe
        ok ?= sderl_bench_links:mesh(Fleet, All),
        ok ?= on_all(Fleet, All, ?MODULE, start, [], ok),
        ok ?= await_known(Fleet, All, 'Elixir.Group', nodes, [?INSTANCE], length(All) - 1),
        each_group(Namespaces, fun
            (all, _) ->
                ok;
            (Group, Nodes) ->
                Args = [?INSTANCE, cluster(Group)],
                maybe
                    ok ?= on_all(Fleet, Nodes, 'Elixir.Group', connect, Args, ok),
                    %% The list of a named cluster has the node itself, too.
                    await_known(Fleet, Nodes, 'Elixir.Group', nodes, Args, length(Nodes))
                end
        end)
    end.

-doc "Runs on a node: starts the instance, as a supervisor of a user's would.".
-spec start() -> ok | {error, term()}.
start() ->
    %% Its log would report each node that comes or goes, also when all nodes end.
    Spec = 'Elixir.Group':child_spec([{name, ?INSTANCE}, {log, false}]),
    case supervisor:start_child(kernel_safe_sup, Spec) of
        {ok, _} -> ok;
        Error -> Error
    end.

-doc "`Group.register/4`, the key being text.".
-spec register(atom(), term()) -> sderl_bench_impl:outcome().
register(Group, Name) ->
    'Elixir.Group':register(?INSTANCE, key(Name), #{}, options(Group)).

-doc "`Group.unregister/3`.".
-spec unregister(atom(), term()) -> sderl_bench_impl:outcome().
unregister(Group, Name) ->
    'Elixir.Group':unregister(?INSTANCE, key(Name), options(Group)).

-doc "`Group.lookup/3`.".
-spec whereis(atom(), term()) -> pid() | undefined.
whereis(Group, Name) ->
    case 'Elixir.Group':lookup(?INSTANCE, key(Name), options(Group)) of
        {Pid, _Meta} -> Pid;
        nil -> undefined
    end.

-doc "The content of this node's tables; Group itself has no call for that.".
-spec names(atom()) -> [{term(), pid()}].
names(Group) ->
    #{num_shards := Shards} = 'Elixir.Group':get_config(?INSTANCE),
    Cluster = proplists:get_value(cluster, options(Group), nil),
    Rows = [{{{Cluster, '$1'}, '$2', '_', '_', '_'}, [], [{{'$1', '$2'}}]}],
    lists:append([
        ets:select('Elixir.Group.Replica.Data':reg_by_key_table(?INSTANCE, Shard), Rows)
     || Shard <- lists:seq(0, Shards - 1)
    ]).

options(all) -> [];
options(Group) -> [{cluster, cluster(Group)}].

cluster(Group) -> atom_to_binary(Group).

-doc "A registration reaches the other nodes some time later.".
-spec consistency() -> eventual.
consistency() -> eventual.

-doc false.
-spec promise() -> string().
promise() -> sderl_bench_impl_syn:promise().
