%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl_global).
-moduledoc "OTP's `m:global` on a stock full mesh of all nodes, whatever the group size.".

-behaviour(sderl_bench_impl).

-export([plan/1, prepare/3, register/2, unregister/2, whereis/2, names/1]).
-export([consistency/0, promise/0]).

-doc "Stock nodes, one namespace.".
-spec plan(sderl_bench_impl:params()) -> sderl_bench_impl:plan().
plan(#{nodes := Nodes}) ->
    #{connect_all => true, apps => [], s_groups => false, groups => [{all, lists:seq(1, Nodes)}]}.

-doc "Meshes the nodes and waits for `global:sync/0` on each.".
-spec prepare(pid(), [sderl_bench_layout:namespace()], sderl_bench_impl:params()) ->
    ok | {error, term()}.
prepare(Fleet, [{all, Nodes}], _Params) ->
    maybe
        ok ?= sderl_bench_links:mesh(Fleet, Nodes),
        sderl_bench_impl:on_all(Fleet, Nodes, global, sync, [], ok)
    end.

-doc "`global:register_name/2`.".
-spec register(atom(), term()) -> sderl_bench_impl:outcome().
register(_Group, Name) ->
    case global:register_name(Name, self()) of
        yes -> ok;
        no -> {error, no}
    end.

-doc "`global:unregister_name/1`.".
-spec unregister(atom(), term()) -> sderl_bench_impl:outcome().
unregister(_Group, Name) ->
    _ = global:unregister_name(Name),
    ok.

-doc "`global:whereis_name/1`.".
-spec whereis(atom(), term()) -> pid() | undefined.
whereis(_Group, Name) -> global:whereis_name(Name).

-doc "The registered names.".
-spec names(atom()) -> [{term(), pid()}].
names(_Group) ->
    [{Name, Pid}
     || Name <- global:registered_names(), Pid <- [global:whereis_name(Name)], is_pid(Pid)].

-doc "All nodes have a change before the call returns.".
-spec consistency() -> strong.
consistency() -> strong.

-doc false.
-spec promise() -> string().
promise() -> "every node has the change; names are unique".
