%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_layout).
-moduledoc """
The nodes of Orbit's processes, and the number of links that they need. Pure.

The master has a node of its own, which is not among those that are asked for, so that there are
`N = nodes + 1`. Workers are on all others, in `sd` also on those of the submasters, which are the
first of each group.

| links of | `stock` | `sd`, s_groups of equal size | `sd` in general |
|---|---|---|---|
| the master | `N - 1` | `S` | `S` |
| a submaster | | `(N - 1) / S + S - 1` | nodes of its group `+ S - 1` |
| another node | `N - 1` | `(N - 1) / S - 1` | nodes of its group `- 1` |

with S groups; source: Chechina et al., *Evaluating Scalable Distributed Erlang*, IEEE TPDS 2017. A
submaster's links are those in its group and those in the group of the master and the submasters.
""".

-export([places/2, groups/3, namespaces/2, expected_links/3, measured_links/3]).
-export_type([group/0, links/0]).

-doc """
A group: its number, its name for the library, its nodes (the first is the submaster's), its
workers.
""".
-type group() :: {pos_integer(), Name :: term(), [node()], [{Index :: pos_integer(), node()}]}.

-doc "The most links of a node of each kind; `undefined` where there is no such node.".
-type links() :: #{
    master := non_neg_integer() | undefined,
    submaster_max := non_neg_integer() | undefined,
    worker_max := non_neg_integer() | undefined
}.

-doc "The numbered workers and their nodes: `Workers` on each node, with consecutive numbers.".
-spec places([node()], Workers :: pos_integer()) -> [{pos_integer(), node()}].
places(Nodes, Workers) -> lists:enumerate([Node || Node <- Nodes, _ <- lists:seq(1, Workers)]).

-doc "As published: groups of equal size; the remaining nodes are in the last.".
-spec groups([node()], Count :: pos_integer(), Workers :: pos_integer()) -> [group()].
groups(Nodes, Count, Workers) when Count =< length(Nodes) ->
    Size = length(Nodes) div Count,
    Chunks = chunks(Nodes, Size, Count),
    Each = places(Nodes, Workers),
    [
        {Number, {orbit, Number}, Chunk,
         [Place || {_, Node} = Place <- Each, lists:member(Node, Chunk)]}
     || {Number, Chunk} <- lists:enumerate(Chunks)
    ].

chunks(Nodes, _, 1) ->
    [Nodes];
chunks(Nodes, Size, Count) ->
    {Chunk, Rest} = lists:split(Size, Nodes),
    [Chunk | chunks(Rest, Size, Count - 1)].

-doc "The groups to make: those of the workers, and then that of the master and the submasters.".
-spec namespaces(Master :: node(), [group()]) -> [{term(), [node()]}].
namespaces(Master, Groups) ->
    [{Name, Nodes} || {_, Name, Nodes, _} <- Groups] ++
        [{{orbit, master}, [Master | [First || {_, _, [First | _], _} <- Groups]]}].

-doc "The links by the formulas, for `Nodes` nodes besides the master's, and groups.".
-spec expected_links(stock | sd | one, Nodes :: pos_integer(), [group()]) -> links().
expected_links(one, _, _) ->
    #{master => 0, submaster_max => undefined, worker_max => undefined};
expected_links(stock, Nodes, _) ->
    #{master => Nodes, submaster_max => undefined, worker_max => Nodes};
expected_links(sd, _, Groups) ->
    Sizes = [length(Nodes) || {_, _, Nodes, _} <- Groups],
    #{
        master => length(Groups),
        submaster_max => lists:max(Sizes) + length(Groups) - 1,
        worker_max => most([Size - 1 || Size <- Sizes, Size > 1])
    }.

-doc "The links that the nodes have, by the same kinds.".
-spec measured_links(Master :: node(), [group()], [{node(), Links :: non_neg_integer()}]) ->
    links().
measured_links(Master, Groups, Links) ->
    Submasters = [First || {_, _, [First | _], _} <- Groups],
    Of = fun(Is) -> most([Count || {Node, Count} <- Links, Is(Node)]) end,
    #{
        master => Of(fun(Node) -> Node =:= Master end),
        submaster_max => Of(fun(Node) -> lists:member(Node, Submasters) end),
        worker_max => Of(fun(Node) -> not lists:member(Node, [Master | Submasters]) end)
    }.

most([]) -> undefined;
most(Counts) -> lists:max(Counts).
