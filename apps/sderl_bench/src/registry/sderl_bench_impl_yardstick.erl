%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_impl_yardstick).
-moduledoc "`m:sderl_bench_yardstick`, one in each group of nodes.".

-behaviour(sderl_bench_impl).

-export([plan/1, prepare/3, register/2, unregister/2, whereis/2, names/1]).
-export([consistency/0, promise/0]).

-doc "Nodes as the library would have them, in groups of the size asked for.".
-spec plan(sderl_bench_impl:params()) -> sderl_bench_impl:plan().
plan(Params) ->
    #{
        connect_all => false,
        apps => [],
        s_groups => false,
        groups => sderl_bench_layout:groups(Params)
    }.

-doc "Meshes each group and starts its processes; the first node coordinates.".
-spec prepare(pid(), [sderl_bench_layout:namespace()], sderl_bench_impl:params()) ->
    ok | {error, term()}.
prepare(Fleet, Namespaces, _Params) ->
    Outcomes = sderl_fleet_task:at_once(Namespaces, fun(_Group, Nodes) ->
        maybe
            ok ?= sderl_bench_links:mesh(Fleet, Nodes),
            Answers = sderl_fleet:multicall(Fleet, Nodes, sderl_bench_yardstick, start, [Nodes],
                                            60_000),
            [] ?= [{Node, Answer} || {Node, Answer} <- Answers, Answer =/= {ok, ok}],
            ok
        end
    end),
    case [Outcome || {_, Outcome} <- Outcomes, Outcome =/= ok] of
        [] -> ok;
        [{error, Reason} | _] -> {error, Reason};
        [[{Node, Answer} | _] | _] -> {error, {not_started, Node, Answer}}
    end.

-doc "`sderl_bench_yardstick:register/2`.".
-spec register(atom(), term()) -> sderl_bench_impl:outcome().
register(_Group, Name) ->
    case sderl_bench_yardstick:register(Name, self()) of
        yes -> ok;
        no -> {error, no}
    end.

-doc "`sderl_bench_yardstick:unregister/1`.".
-spec unregister(atom(), term()) -> sderl_bench_impl:outcome().
unregister(_Group, Name) -> sderl_bench_yardstick:unregister(Name).

-doc "`sderl_bench_yardstick:whereis/1`.".
-spec whereis(atom(), term()) -> pid() | undefined.
whereis(_Group, Name) -> sderl_bench_yardstick:whereis(Name).

-doc "This node's table.".
-spec names(atom()) -> [{term(), pid()}].
names(_Group) -> sderl_bench_yardstick:names().

-doc "All members have a change before the call returns.".
-spec consistency() -> strong.
consistency() -> strong.

-doc false.
-spec promise() -> string().
promise() -> "every member has the change; no node or link may fail".
