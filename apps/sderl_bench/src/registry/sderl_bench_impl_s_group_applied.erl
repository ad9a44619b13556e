%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl_s_group_applied).
-moduledoc """
As `m:sderl_bench_impl_s_group`, with groups whose clients are answered when their own node has
applied a write (`answer => applied`).
""".

-behaviour(sderl_bench_impl).

-export([plan/1, prepare/3, register/2, unregister/2, whereis/2, names/1]).
-export([consistency/0, promise/0]).

-doc "The configuration has the key `answer`.".
-spec plan(sderl_bench_impl:params()) -> sderl_bench_impl:plan().
plan(Params) ->
    #{groups := Groups} = Plan = sderl_bench_impl_s_group:plan(Params),
    Plan#{env => [{sderl, answer, #{Group => applied || {Group, _} <- Groups}}]}.

-doc "Waits with `s_group:await/2` on each node.".
-spec prepare(pid(), [sderl_bench_layout:namespace()], sderl_bench_impl:params()) ->
    ok | {error, term()}.
prepare(Fleet, Namespaces, Params) -> sderl_bench_impl_s_group:prepare(Fleet, Namespaces, Params).

-doc "`s_group:register_name/3`.".
-spec register(atom(), term()) -> sderl_bench_impl:outcome().
register(Group, Name) -> sderl_bench_impl_s_group:register(Group, Name).

-doc "`s_group:unregister_name/2`.".
-spec unregister(atom(), term()) -> sderl_bench_impl:outcome().
unregister(Group, Name) -> sderl_bench_impl_s_group:unregister(Group, Name).

-doc "`s_group:whereis_name/2`.".
-spec whereis(atom(), term()) -> pid() | undefined.
whereis(Group, Name) -> sderl_bench_impl_s_group:whereis(Group, Name).

-doc "The group's registered names.".
-spec names(atom()) -> [{term(), pid()}].
names(Group) -> sderl_bench_impl_s_group:names(Group).

-doc "The other members have a change a moment after the call returns.".
-spec consistency() -> eventual.
consistency() -> eventual.

-doc false.
-spec promise() -> string().
promise() ->
    "the caller's node has the change, the others have it or are about to; names are unique among "
    "these".
