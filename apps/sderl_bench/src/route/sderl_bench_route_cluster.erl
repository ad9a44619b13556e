%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_cluster).
-moduledoc """
Clusters for `bin/sderl bench route`: nodes in groups that overlap, and every node knows the ways to
all groups before anything is measured.
""".

-export([chain/1, doubled/0, with/3, await_routes/2, snapshots/2]).
-export_type([layout/0]).

-doc "How many nodes, and groups of them by position.".
-type layout() ::
    #{nodes := pos_integer(), groups := [sderl_bench_layout:namespace(pos_integer())]}.

-define(CALL_MS, 60_000).
-define(ROUTES_MS, 60_000).

-doc "Pairs of nodes that overlap: the first and the last have so many gateways between them.".
-spec chain(Gateways :: pos_integer()) -> layout().
chain(Gateways) ->
    #{nodes => Gateways + 2, groups => [{group(K), [K, K + 1]} || K <- lists:seq(1, Gateways + 1)]}.

-doc "A node on each side, and two gateways, 2 and 3, side by side between them.".
-spec doubled() -> layout().
doubled() -> #{nodes => 4, groups => [{g1, [1, 2, 3]}, {g2, [2, 3, 4]}]}.

group(K) -> list_to_atom("g" ++ integer_to_list(K)).

-doc """
Starts the nodes with the library, waits until every group is ready and every node knows a way to
every group, calls `Fun`, and ends the nodes. A reason is a term for `sderl_bench_reason:text/1`.
""".
-spec with(layout(), Label :: unicode:chardata(), fun((Fleet :: pid(), [node()]) -> Result)) ->
    Result | {error, term()}.
with(#{nodes := Count, groups := Groups}, Label, Fun) ->
    Launched = [{Group, normal, [{n, Positions}]} || {Group, Positions} <- Groups],
    sderl_bench_nodes:with(Count, Launched, Label, fun(Fleet, Nodes) ->
        Namespaces = sderl_bench_layout:named(Groups, Nodes),
        maybe
            ok ?= sderl_bench_impl_s_group:prepare(Fleet, Namespaces,
                                                   #{nodes => Count, group_size => Count}),
            ok ?= await_routes(Fleet, Namespaces),
            Fun(Fleet, Nodes)
        end
    end).

-doc "Waits until every node of the groups knows a way to every group.".
-spec await_routes(Fleet :: pid(), [sderl_bench_layout:namespace()]) ->
    ok | {error, {timeout, Missing :: term()}}.
await_routes(Fleet, Namespaces) ->
    sderl_fleet:await(fun() -> knows(Fleet, Namespaces) end, ?ROUTES_MS).

-doc "The counters of each node (`sderl_bench_meter:snapshot/0`).".
-spec snapshots(Fleet :: pid(), [node()]) ->
    {ok, [{node(), sderl_bench_meter:snapshot()}]} | {error, term()}.
snapshots(Fleet, Nodes) ->
    maybe
        {ok, Snapshots} ?= sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_meter, snapshot, []),
        {ok, lists:zip(Nodes, Snapshots)}
    end.

knows(Fleet, Namespaces) ->
    Nodes = lists:usort(lists:append([Ns || {_, Ns} <- Namespaces])),
    Missing = [
        {Node, Group}
     || {Node, {ok, Routes}} <- sderl_fleet:multicall(Fleet, Nodes, sderl_bench_route_worker,
                                                      routes, [], ?CALL_MS),
        {Group, Members} <- Namespaces,
        not lists:member(Node, Members),
        not lists:keymember(Group, 1, Routes)
    ],
    Missing =:= [] orelse Missing.
