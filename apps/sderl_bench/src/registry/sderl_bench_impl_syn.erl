%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl_syn).
-moduledoc """
The registry of [syn](https://github.com/ostinelli/syn) on a stock full mesh of all nodes, with a
scope for each group.
""".

-behaviour(sderl_bench_impl).

-export([plan/1, prepare/3, register/2, unregister/2, whereis/2, names/1]).
-export([consistency/0, promise/0]).

-import(sderl_bench_impl, [each_group/2, on_all/6, await_known/6]).

-doc "Stock nodes with syn; a scope is what a group is to it.".
-spec plan(sderl_bench_impl:params()) -> sderl_bench_impl:plan().
plan(Params) ->
    #{
        connect_all => true,
        apps => [syn],
        s_groups => false,
        groups => sderl_bench_layout:groups(Params)
    }.

-doc "Meshes the nodes, adds them to their scopes, and waits until a scope's know each other.".
-spec prepare(pid(), [sderl_bench_layout:namespace()], sderl_bench_impl:params()) ->
    ok | {error, term()}.
prepare(Fleet, Namespaces, _Params) ->
    maybe
        ok ?= sderl_bench_links:mesh(Fleet, lists:append([Nodes || {_, Nodes} <- Namespaces])),
        each_group(Namespaces, fun(Scope, Nodes) ->
            maybe
                ok ?= on_all(Fleet, Nodes, syn, add_node_to_scopes, [[Scope]], ok),
                Others = length(Nodes) - 1,
                await_known(Fleet, Nodes, syn, subcluster_nodes, [registry, Scope], Others)
            end
        end)
    end.

-doc "`syn:register/3`.".
-spec register(atom(), term()) -> sderl_bench_impl:outcome().
register(Scope, Name) -> syn:register(Scope, Name, self()).

-doc "`syn:unregister/2`.".
-spec unregister(atom(), term()) -> sderl_bench_impl:outcome().
unregister(Scope, Name) -> syn:unregister(Scope, Name).

-doc "`syn:lookup/2`.".
-spec whereis(atom(), term()) -> pid() | undefined.
whereis(Scope, Name) ->
    case syn:lookup(Scope, Name) of
        {Pid, _Meta} -> Pid;
        undefined -> undefined
    end.

-doc "The content of this node's table; syn itself has no call for that.".
-spec names(atom()) -> [{term(), pid()}].
names(Scope) ->
    Table = syn_backbone:get_table_name(syn_registry_by_name, Scope),
    [{element(1, Row), element(2, Row)} || Row <- ets:tab2list(Table)].

-doc "A registration reaches the other nodes some time later.".
-spec consistency() -> eventual.
consistency() -> eventual.

-doc false.
-spec promise() -> string().
promise() ->
    "the process's own node has the change, others hear of it later; where two nodes give out "
    "one name, one of the two processes is killed then".
