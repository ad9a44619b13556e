%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl_s_group).
-moduledoc "The library: `m:s_group` with groups from the launch configuration.".

-behaviour(sderl_bench_impl).

-export([plan/1, prepare/3, register/2, unregister/2, whereis/2, names/1]).
-export([consistency/0, promise/0]).

-define(AWAIT_MS, 120_000).

-doc "Nodes with the library, in groups of the size asked for.".
-spec plan(sderl_bench_impl:params()) -> sderl_bench_impl:plan().
plan(Params) ->
    #{
        connect_all => false,
        apps => [sderl],
        s_groups => true,
        groups => sderl_bench_layout:groups(Params)
    }.

-doc "Waits with `s_group:await/2` on each node.".
-spec prepare(pid(), [sderl_bench_layout:namespace()], sderl_bench_impl:params()) ->
    ok | {error, term()}.
prepare(Fleet, Namespaces, _Params) ->
    Waiting = [
        {Node, Answer}
     || {_, Answers} <- sderl_fleet_task:at_once(Namespaces, fun(Group, Nodes) ->
         sderl_fleet:multicall(Fleet, Nodes, s_group, await, [Group, ?AWAIT_MS], ?AWAIT_MS + 5000)
     end),
        {Node, Answer} <- Answers,
        Answer =/= {ok, ok}
    ],
    case Waiting of
        [] -> ok;
        [{Node, Answer} | _] -> {error, {group_not_ready, Node, Answer}}
    end.

-doc "`s_group:register_name/3`.".
-spec register(atom(), term()) -> sderl_bench_impl:outcome().
register(Group, Name) ->
    case s_group:register_name(Group, Name, self()) of
        yes -> ok;
        {no, Reason} -> {error, Reason}
    end.

-doc "`s_group:unregister_name/2`.".
-spec unregister(atom(), term()) -> sderl_bench_impl:outcome().
unregister(Group, Name) ->
    case s_group:unregister_name(Group, Name) of
        ok -> ok;
        {no, Reason} -> {error, Reason}
    end.

-doc "`s_group:whereis_name/2`.".
-spec whereis(atom(), term()) -> pid() | undefined.
whereis(Group, Name) -> s_group:whereis_name(Group, Name).

-doc "The group's registered names.".
-spec names(atom()) -> [{term(), pid()}].
names(Group) ->
    [
        {Name, Pid}
     || {_, Name} <- s_group:registered_names({s_group, Group}),
        Pid <- [s_group:whereis_name(Group, Name)],
        is_pid(Pid)
    ].

-doc "All members have a change before the call returns.".
-spec consistency() -> strong.
consistency() -> strong.

-doc false.
-spec promise() -> string().
promise() -> "every member that counts has the change; names are unique among these".
