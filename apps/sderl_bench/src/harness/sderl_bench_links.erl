%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_links).
-moduledoc """
The links of a measured cluster: made before a run where the registry does not make them itself, and
counted after it.
""".

-export([mesh/2, count/2, connect_all/1]).

%% For a mesh of hundreds of nodes on a few cores.
-define(MESH_MS, 600_000).

-doc "Links each of the nodes to all others.".
-spec mesh(Fleet :: pid(), [node()]) -> ok | {error, term()}.
mesh(_Fleet, [_]) ->
    ok;
mesh(Fleet, [First | Rest] = Nodes) ->
    %% One after the other at first: nodes that all connect to one another at the same time
    %% meet half-way, and one of the two attempts fails.
    maybe
        ok ?= every(sderl_fleet:multicall(Fleet, Rest, net_kernel, connect_node, [First], ?MESH_MS),
                    true),
        ok ?= every(sderl_fleet:multicall(Fleet, Nodes, ?MODULE, connect_all, [Nodes], ?MESH_MS),
                    ok),
        sderl_fleet:await(
            fun() ->
                Counts = count(Fleet, Nodes),
                lists:all(fun(N) -> is_integer(N) andalso N >= length(Rest) end, Counts)
                    orelse Counts
            end,
            ?MESH_MS
        )
    end.

every(Answers, Wanted) ->
    case [{Node, Answer} || {Node, Answer} <- Answers, Answer =/= {ok, Wanted}] of
        [] -> ok;
        [{Node, Answer} | _] -> {error, {not_connected, Node, Answer}}
    end.

-doc "Runs on a node: connects it to those of the nodes whose names come after its own.".
-spec connect_all([node()]) -> ok | {error, node()}.
connect_all(Nodes) ->
    case [Node || Node <- Nodes, Node > node(), not net_kernel:connect_node(Node)] of
        [] -> ok;
        [Node | _] -> {error, Node}
    end.

-doc """
How many nodes each node is connected to, hidden ones too; `undefined` where a node does not answer.
""".
-spec count(Fleet :: pid(), [node()]) -> [non_neg_integer() | undefined].
count(Fleet, Nodes) ->
    [
        case Answer of
            {ok, Connected} -> length(Connected);
            {error, _} -> undefined
        end
     || {_, Answer} <- sderl_fleet:multicall(Fleet, Nodes, erlang, nodes, [connected], 30_000)
    ].
