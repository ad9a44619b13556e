%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl_pg).
-moduledoc """
OTP's `m:pg` in one scope on a stock full mesh of all nodes: a fresh process group for each
name, joined and left.

This is no registry of unique names: two processes may join the same group, and a call
returns before any other node has heard of it. It shows what a mesh without `global` costs.
""".

-behaviour(sderl_bench_impl).

-export([plan/1, prepare/3, register/2, unregister/2, whereis/2, names/1]).
-export([consistency/0, promise/0]).

-define(SCOPE, sderl_bench).

-doc "Stock nodes, one namespace.".
-spec plan(sderl_bench_impl:params()) -> sderl_bench_impl:plan().
plan(#{nodes := Nodes}) ->
    #{connect_all => true, apps => [], s_groups => false, groups => [{all, lists:seq(1, Nodes)}]}.

-doc "Meshes the nodes and starts the scope on each.".
-spec prepare(pid(), [sderl_bench_layout:namespace()], sderl_bench_impl:params()) ->
    ok | {error, term()}.
prepare(Fleet, [{all, Nodes}], _Params) ->
    maybe
        ok ?= sderl_bench_links:mesh(Fleet, Nodes),
        Answers = sderl_fleet:multicall(Fleet, Nodes, pg, start, [?SCOPE], 60_000),
        [] ?= [{Node, Answer} || {Node, Answer} <- Answers, not is_started(Answer)],
        ok
    else
        {error, Reason} -> {error, Reason};
        [{Node, Answer} | _] -> {error, {not_started, Node, Answer}}
    end.

is_started({ok, {ok, Pid}}) -> is_pid(Pid);
is_started(_) -> false.

-doc "`pg:join/3`.".
-spec register(atom(), term()) -> sderl_bench_impl:outcome().
register(_Group, Name) -> pg:join(?SCOPE, Name, self()).

-doc "`pg:leave/3`.".
-spec unregister(atom(), term()) -> sderl_bench_impl:outcome().
unregister(_Group, Name) ->
    case pg:leave(?SCOPE, Name, self()) of
        ok -> ok;
        not_joined -> {error, not_joined}
    end.

-doc "The first of `pg:get_members/2`.".
-spec whereis(atom(), term()) -> pid() | undefined.
whereis(_Group, Name) ->
    case pg:get_members(?SCOPE, Name) of
        [Pid | _] -> Pid;
        [] -> undefined
    end.

-doc "The groups with their members.".
-spec names(atom()) -> [{term(), pid()}].
names(_Group) ->
    [{Name, Pid} || Name <- pg:which_groups(?SCOPE), Pid <- pg:get_members(?SCOPE, Name)].

-doc "A join reaches the other nodes some time later.".
-spec consistency() -> eventual.
consistency() -> eventual.

-doc false.
-spec promise() -> string().
promise() -> "the process's own node has the change, others hear of it later; names are not unique".
