%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_tree).
-moduledoc """
The places of the processes of a distributed ant colony. Pure.

A tree with vertex degree P and X levels: the master and P submasters of level 1 are on the first
node; each submaster of a level below X - 1 owns one node of the next level, with P submasters; each
of level X - 1 owns P nodes with colonies. That is 1 + P + .. + P^(X-2) nodes with submasters and
P^X with colonies. Where two levels do not fit, and with `tl`, there is one level: the master, on
the starter's node, owns all nodes, which all have colonies; nodes beyond the number of colonies are
not used.

A *seat* is a node with its owner, a master or submaster: it has one supervisor, for the *members*
on the node, which report to the owner. Names of a seat are registered in its s_group (`sr`):

| group | nodes |
|---|---|
| `{aco, start}` | the starter's and the first |
| `{aco, {node, Level, Node}}` | a node with submasters of a level below X - 1, and the P nodes that they own |
| `{aco, {process, Level, Node, Process}}` | the node of a submaster of level X - 1, and the P nodes with colonies that it owns |
| `{aco, total}` | with one level: all |

Source: ACO of the RELEASE project; Chechina et al., *Evaluating Scalable Distributed Erlang*, IEEE
TPDS 2017. There each of the supervisors is a name (the "optimised" number of registrations),
instead of one for each process.
""".

-export([find_max_level/2, shape/4, layout/4, colonies/1, groups/1, all_nodes/1, links/1, class/1]).
-export_type([variant/0, shape/0, layout/0, seat/0, member/0, key/0, class/0]).

-type variant() :: tl | ml | gr | sr.
-doc """
The role of a process, which its successor after a restart has, too. The numbers are those of the
level, of the node in it, and of the process on it.
""".
-type key() ::
    master
    | {supervisor, {pos_integer(), pos_integer()} | {colony, pos_integer()}}
    | {submaster, Level :: pos_integer(), Node :: pos_integer(), Process :: pos_integer()}
    | {colony, pos_integer()}.
-type class() :: master | supervisor | submaster | colony.
-doc """
A process of a seat: a submaster and what it owns, or a colony and the number of its node among
those with colonies.
""".
-type member() :: {key(), {submaster, [seat()]} | {colony, NodeNumber :: pos_integer()}}.
-type seat() :: #{supervisor := key(), node := node(), group := term(), members := [member(), ...]}.
-doc "`levels` is 0 where there are no submasters.".
-type shape() ::
    #{levels := non_neg_integer(), used := pos_integer(), colony_nodes := pos_integer()}.
-doc "The master's node, the group of its name, and what it owns.".
-type layout() ::
    #{start := node(), master := node(), group := term(), shape := shape(), seats := [seat(), ...]}.

-doc """
The most levels X for so many nodes, such that 1 + P + .. + P^(X-2) + P^X of them are used, and that
number; `{0, 0}` when there are too few for two levels.
""".
-spec find_max_level(Nodes :: pos_integer(), P :: pos_integer()) ->
    {X :: non_neg_integer(), Used :: non_neg_integer()}.
find_max_level(Nodes, P) when P >= 2 -> deepest(2, Nodes, P, {0, 0});
find_max_level(_, 1) -> {0, 0}.

deepest(X, Nodes, P, Found) ->
    case used(X, P) of
        Used when Used =< Nodes -> deepest(X + 1, Nodes, P, {X, Used});
        _ -> Found
    end.

used(X, P) -> lists:sum([power(P, L) || L <- lists:seq(0, X - 2)]) + power(P, X).

power(_, 0) -> 1;
power(P, L) -> P * power(P, L - 1).

-doc """
The tree for so many nodes besides the starter's, and colonies; `infinity` for one on each colony
node.
""".
-spec shape(variant(), Nodes :: pos_integer(), P :: pos_integer(),
            Colonies :: pos_integer() | infinity) -> shape().
shape(tl, Nodes, _, Colonies) ->
    %% `infinity`, an atom, is greater than any number.
    Used = min(Nodes, Colonies),
    #{levels => 0, used => Used, colony_nodes => Used};
shape(_, Nodes, P, Colonies) ->
    case find_max_level(Nodes, P) of
        {0, 0} -> shape(tl, Nodes, P, Colonies);
        {X, Used} -> #{levels => X, used => Used, colony_nodes => power(P, X)}
    end.

-doc """
Everything in its place: the starter's node and as many as the shape uses. Colonies are dealt out to
the nodes for them one after the other; there are at least as many as these.
""".
-spec layout(shape(), P :: pos_integer(), Colonies :: pos_integer(), [node(), ...]) -> layout().
layout(#{levels := X, used := Used, colony_nodes := K} = Shape, P, Colonies, [Start | Nodes])
  when length(Nodes) =:= Used, Colonies >= K ->
    {Inner, Outer} = lists:split(Used - K, Nodes),
    ColonySeat = fun(Number, Node, Group) ->
        #{
            supervisor => {supervisor, {colony, Number}},
            node => Node,
            group => Group,
            members => [{{colony, I}, {colony, Number}} || I <- lists:seq(Number, Colonies, K)]
        }
    end,
    case X of
        0 ->
            Seats = [ColonySeat(Number, Node, {aco, total})
                     || {Number, Node} <- lists:enumerate(Outer)],
            #{start => Start, master => Start, group => {aco, total}, shape => Shape,
              seats => Seats};
        _ ->
            Group = {aco, start},
            Tree = {X, P, list_to_tuple(Inner), list_to_tuple(Outer), ColonySeat},
            #{start => Start, master => hd(Inner), group => Group, shape => Shape,
              seats => [submasters(1, 1, Group, Tree)]}
    end.

%% The nodes with submasters are in the order of their levels.
submasters(Level, Number, Group, {X, P, Inner, Outer, ColonySeat} = Tree) ->
    Before = lists:sum([power(P, L - 1) || L <- lists:seq(1, Level - 1)]),
    Owned = fun(Process) ->
        case Level of
            _ when Level < X - 1 ->
                [submasters(Level + 1, (Number - 1) * P + Process, {aco, {node, Level, Number}},
                            Tree)];
            _ ->
                First = ((Number - 1) * P + Process - 1) * P,
                [ColonySeat(C, element(C, Outer), {aco, {process, Level, Number, Process}})
                 || C <- lists:seq(First + 1, First + P)]
        end
    end,
    #{
        supervisor => {supervisor, {Level, Number}},
        node => element(Before + Number, Inner),
        group => Group,
        members => [{{submaster, Level, Number, Process}, {submaster, Owned(Process)}}
                    || Process <- lists:seq(1, P)]
    }.

-doc "The numbers of all colonies.".
-spec colonies(layout()) -> [pos_integer()].
colonies(#{seats := Seats}) ->
    lists:sort([I || #{members := Members} <- flat(Seats), {{colony, I}, _} <- Members]).

-doc "The s_groups: a group's first node is the one that owns the others.".
-spec groups(layout()) -> [{Group :: term(), [node(), ...]}].
groups(#{start := Start, seats := Seats}) ->
    Pairs = owned(Start, Seats),
    Groups = lists:uniq([Group || {Group, _, _} <- Pairs]),
    [{Group, lists:uniq([Node || {G, Owner, Owned} <- Pairs, G =:= Group, Node <- [Owner, Owned]])}
     || Group <- Groups].

owned(Owner, Seats) ->
    lists:append([
        [{Group, Owner, Node}
         | lists:append([owned(Node, Below) || {_, {submaster, Below}} <- Members])]
     || #{group := Group, node := Node, members := Members} <- Seats
    ]).

-doc "All nodes that have a process, the starter's first.".
-spec all_nodes(layout()) -> [node(), ...].
all_nodes(#{start := Start, seats := Seats}) -> [Start | [Node || #{node := Node} <- flat(Seats)]].

-doc "How many links each node has with the s_groups, and no others.".
-spec links(layout()) -> [{node(), non_neg_integer()}].
links(Layout) ->
    Groups = groups(Layout),
    [
        {Node, length(lists:uniq([Other
                                  || {_, Members} <- Groups, lists:member(Node, Members),
                                     Other <- Members, Other =/= Node]))}
     || Node <- all_nodes(Layout)
    ].

flat(Seats) ->
    lists:append([
        [Seat | lists:append([flat(Below) || {_, {submaster, Below}} <- Members])]
     || #{members := Members} = Seat <- Seats
    ]).

-doc "The class of a process.".
-spec class(key()) -> class().
class(master) -> master;
class(Key) -> element(1, Key).
