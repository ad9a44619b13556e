%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_rollout).
-moduledoc """
A launch configuration that is half rolled out when all nodes go down and come back: the old list
lacks the last node, the new one lacks the first, and each node between has one of the two, by
turns. Nothing is on disk, so no name survives; all nodes must form one group, whichever list they
start with.
""".

-behaviour(sderl_bench_faults_kind).

-export([inject/2, undo/3]).

-doc false.
-spec inject(sderl_bench_faults_kind:name(), sderl_bench_faults_kind:context()) ->
    sderl_bench_faults_kind:injected().
inject(rollout, #{fleet := Fleet, nodes := Nodes}) ->
    _ = sderl_fleet_task:at_once([{Node, kill} || Node <- Nodes],
                                 fun(Node, kill) -> ok = sderl_fleet:kill(Fleet, Node) end),
    #{away => Nodes, dead => [], undo => restart}.

-doc "Starts the nodes again, as many at a time as the fleet does.".
-spec undo(sderl_bench_faults_kind:name(), term(), sderl_bench_faults_kind:context()) -> ok.
undo(rollout, restart,
     #{fleet := Fleet, nodes := Nodes, registry := Registry, turn := Turn, params := Params}) ->
    Old = lists:droplast(Nodes),
    New = tl(Nodes),
    Last = length(Nodes),
    #{env := Env} = Family = Registry:family(Params),
    List = fun
        (1) -> Old;
        (I) when I =:= Last -> New;
        (I) when (I + Turn) rem 2 =:= 0 -> Old;
        (_) -> New
    end,
    {ok, Nodes} = sderl_fleet:start_nodes(Fleet, [
        Family#{name => n, index => I,
                env := Env ++ [{sderl, s_groups, [{Registry:group(), normal, List(I)}]}]}
     || I <- lists:seq(1, Last)
    ]),
    ok.
