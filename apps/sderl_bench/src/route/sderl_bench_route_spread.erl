%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_spread).
-moduledoc """
Many nodes in groups of equal size, a star of `m:sderl_pattern` with two gateways a group and a hub
for each of the two: any group is two gateways away, twice over.

| metric | meaning |
|---|---|
| `links_per_node_max`, `links_per_node_mean`, `links_total` | connections, when every node has called every group |
| `predicted_links_per_node_max` | by `sderl_plan:predict/1` |
| `mesh_links_per_node` | what a full mesh has |
| `groups_ms` | making the groups, all at the same time |
| `routes_ms` | from there until every node knows ways to all groups, each over all the gateways there are |
| `gateways_crossed_max` | on the longest of the ways |
| `unanswered_calls`, `calls` | each node calls a server in each group that it is not in |
| `idle_bytes_per_node_s`, `idle_messages_per_node_s` | all that a node sends while nothing happens |
""".

-export([run/2]).

-import(sderl_clock, [now_ms/0]).

-define(CALL_MS, 120_000).
-define(ROUTES_MS, 120_000).

-doc "Starts the nodes and measures. A reason is a term for `sderl_bench_reason:text/1`.".
-spec run(#{nodes := pos_integer(), group_size := pos_integer(), idle_ms := pos_integer(),
            atom() => term()}, unicode:chardata()) ->
    {ok, map()} | {error, term()}.
run(#{nodes := Count, group_size := Size, idle_ms := IdleMs}, Label) ->
    sderl_bench_nodes:with(Count, [], Label, fun(Fleet, Nodes) ->
        {ok, Plan} = sderl_pattern:star(Nodes, #{size => Size, gateways => 2, hubs => 2}),
        measure(Fleet, Nodes, Plan, IdleMs)
    end).

measure(Fleet, Nodes, #{groups := All} = Plan, IdleMs) ->
    Groups = [{G, Ns} || #{name := G, role := workers, nodes := Ns} <- All],
    Hubs = [{G, Ns} || #{name := G, role := hub, nodes := Ns} <- All],
    #{links := #{max := Predicted}} = sderl_plan:predict(Plan),
    T0 = now_ms(),
    maybe
        ok ?= sderl_bench_layout:make(Fleet, Groups),
        ok ?= sderl_bench_layout:make(Fleet, Hubs),
        T1 = now_ms(),
        ok ?= sderl_fleet:await(fun() -> all_known(Fleet, Nodes, Groups, Hubs) end, ?ROUTES_MS),
        T2 = now_ms(),
        {ok, Routes} ?= sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_route_worker, routes, []),
        ok ?= serve(Fleet, Groups),
        Unanswered = ask(Fleet, Nodes, Groups),
        {ok, Before} ?= sderl_bench_route_cluster:snapshots(Fleet, Nodes),
        ok = sderl_progress:during("idle", IdleMs, fun() -> receive after IdleMs -> ok end end),
        {ok, After} ?= sderl_bench_route_cluster:snapshots(Fleet, Nodes),
        #{bytes := Bytes, messages := Messages} = Sent = sderl_bench_meter:sent(Before, After),
        PerNode = length(Nodes) * IdleMs / 1000,
        {ok, (maps:with([links_total, links_per_node_max, links_per_node_mean], Sent))#{
            predicted_links_per_node_max => Predicted,
            mesh_links_per_node => length(Nodes) - 1,
            groups => length(Groups),
            groups_ms => T1 - T0,
            routes_ms => T2 - T1,
            gateways_crossed_max => lists:max([0 | [Far || Of <- Routes, {_, Far, _} <- Of]]),
            calls => length(Nodes) * (length(Groups) - 1),
            unanswered_calls => length(Unanswered),
            idle_bytes_per_node_s => Bytes / PerNode,
            idle_messages_per_node_s => Messages / PerNode
        }}
    end.

%% Each node that is no gateway, over both of its group's.
all_known(Fleet, Nodes, Groups, Hubs) ->
    Answers = sderl_fleet:multicall(Fleet, Nodes, sderl_bench_route_worker, routes, [], ?CALL_MS),
    Lacking = [{Node, Answer} || {Node, Answer} <- Answers, not known(Node, Answer, Groups, Hubs)],
    Lacking =:= [] orelse {length(Lacking), hd(Lacking)}.

known(Node, {ok, Routes}, Groups, Hubs) ->
    Others = fun(List) -> [G || {G, Ns} <- List, not lists:member(Node, Ns)] end,
    Ways = case length(Others(Hubs)) =:= length(Hubs) of true -> 2; false -> 1 end,
    lists:sort([{G, Ways} || G <- Others(Groups)] ++ [{G, 1} || G <- Others(Hubs)])
        =:= lists:sort([{G, length(First)} || {G, _, First} <- Routes]);
known(_, _, _, _) -> false.

serve(Fleet, Groups) ->
    Answers = sderl_fleet_task:at_once(Groups, fun(Group, Members) ->
        sderl_bench_nodes:on(Fleet, lists:last(Members), sderl_bench_route_server, start,
                             [Group, server])
    end),
    case [Error || {_, {error, _} = Error} <- Answers] of
        [] -> ok;
        [Error | _] -> Error
    end.

ask(Fleet, Nodes, Groups) ->
    Others = [{Node, [G || {G, Ns} <- Groups, not lists:member(Node, Ns)]} || Node <- Nodes],
    Answers = sderl_fleet_task:at_once(Others, fun(Node, Gs) ->
        case sderl_bench_nodes:on(Fleet, Node, sderl_bench_route_caller, ask_all,
                                  [Gs, server, 20_000]) of
            {ok, Missing} -> Missing;
            {error, Reason} -> [{G, Reason} || G <- Gs]
        end
    end),
    [{Node, Missing} || {Node, List} <- Answers, Missing <- List].
