%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_synthetic_layout).
-moduledoc """
The groups of a synthetic cluster, and which nodes exchange messages. Pure.

Groups of equal size stand in a ring; the first node of each is also in the group before it, so
there is one gateway between neighbours. Where there are more groups than half the nodes, each has
three nodes, and each node is in several: rounds of such rings.

Of the edges about three in four are inside groups, most of the rest between gateways, and one or
two in a hundred go from group to group past every gateway, which the findings should notice. The
mean rates of the edges follow a Pareto law, so that a few carry most.
""".

-export([nodes/1, most_groups/1, groups/2, edges/3]).
-export_type([group/0, edge/0]).

-type id() :: sderl_mon_types:id().
-type group() :: {id(), [Member :: id()]}.
-doc "Messages a second on the mean, and the bytes of one.".
-type edge() :: {{From :: id(), To :: id()}, Mean :: float(), Size :: float()}.

-define(FREE_SHARE, 0.02).
%% The most groups of a frame.
-define(MOST_GROUPS, 2000).

-doc "The names of `N` nodes.".
-spec nodes(pos_integer()) -> [id()].
nodes(N) -> [node_id(I) || I <- lists:seq(1, N)].

node_id(I) ->
    iolist_to_binary(io_lib:format("node~ts@10.0.~b.~b",
                                   [digits(3, I), (I - 1) div 100, 10 + (I - 1) rem 100])).

group_id(I) -> iolist_to_binary(["group", digits(2, I)]).

%% With leading zeros.
digits(Least, I) -> string:pad(integer_to_list(I), Least, leading, $0).

-doc "The most groups for a number of nodes.".
-spec most_groups(Nodes :: pos_integer()) -> pos_integer().
most_groups(Nodes) ->
    Grouped = grouped(Nodes),
    max(1, max(Nodes div 2, min(?MOST_GROUPS, Grouped * (Grouped - 2)))).

%% Of fifty nodes and more the last few are in no group.
-spec grouped(pos_integer()) -> pos_integer().
grouped(Nodes) when Nodes >= 50 -> Nodes - round(?FREE_SHARE * Nodes);
grouped(Nodes) -> Nodes.

-doc "Groups of nodes, at most `most_groups/1`; of fifty nodes and more the last few are in none.".
-spec groups([id()], pos_integer()) -> [group()].
groups(Ids, Groups) when Groups > length(Ids) div 2, Groups > 1 ->
    Grouped = list_to_tuple(lists:sublist(Ids, grouped(length(Ids)))),
    Count = tuple_size(Grouped),
    Node = fun(I) -> element(1 + I rem Count, Grouped) end,
    %% The groups of a round begin at different nodes; the node between the ends differs by round.
    [{group_id(I + 1), [Node(I), Node(I + 2 + I div Count), Node(I + 1)]}
     || I <- lists:seq(0, Groups - 1)];
groups(Ids, Groups) ->
    Grouped = grouped(length(Ids)),
    Parts = [
        lists:sublist(Ids, 1 + (I - 1) * Grouped div Groups,
                      I * Grouped div Groups - (I - 1) * Grouped div Groups)
     || I <- lists:seq(1, Groups)
    ],
    Next = tl(Parts) ++ [hd(Parts)],
    [
        {group_id(I), case Groups of 1 -> Part; _ -> Part ++ [hd(After)] end}
     || {I, Part, After} <- lists:zip3(lists:seq(1, Groups), Parts, Next)
    ].

-doc "`Wanted` edges between different nodes, or as many as are found.".
-spec edges([group()], Wanted :: non_neg_integer(), rand:state()) -> {[edge()], rand:state()}.
edges(Members, Wanted, R) ->
    Groups = list_to_tuple([list_to_tuple(In) || {_Group, In} <- Members]),
    edges(Groups, Wanted, 40 * Wanted, #{}, R).

edges(_Groups, Wanted, Tries, Made, R) when map_size(Made) >= Wanted; Tries =:= 0 ->
    {maps:values(Made), R};
edges(Groups, Wanted, Tries, Made, R0) ->
    {Kind, R1} = rand:uniform_s(R0),
    {{From, To} = Link, R2} = ends(Kind, Groups, R1),
    case From =:= To orelse is_map_key(Link, Made) of
        true ->
            edges(Groups, Wanted, Tries - 1, Made, R2);
        false ->
            {U, R3} = rand:uniform_s(R2),
            {S, R4} = rand:normal_s(R3),
            %% Pareto with exponent 1.2, a few hundred times its least value at most.
            Mean = min(4_000.0, 6.0 * math:pow(1.0 - U, -1 / 1.2)),
            Edge = {Link, Mean, 60 + 240 * math:exp(0.8 * S)},
            edges(Groups, Wanted, Tries - 1, Made#{Link => Edge}, R4)
    end.

%% Inside a group, between gateways, or past them.
ends(Kind, Groups, R0) ->
    N = tuple_size(Groups),
    {I, R1} = rand:uniform_s(N, R0),
    Group = element(I, Groups),
    Neighbour = element(I rem N + 1, Groups),
    case Kind of
        _ when Kind < 0.76; N =:= 1 -> pair(Group, Group, R1);
        _ when Kind < 0.985 -> {{gateway(Group), gateway(Neighbour)}, R1};
        _ -> {J, R2} = rand:uniform_s(N, R1), pair(Group, element(J, Groups), R2)
    end.

gateway(Group) -> element(tuple_size(Group), Group).

pair(A, B, R0) ->
    {I, R1} = rand:uniform_s(tuple_size(A), R0),
    {J, R2} = rand:uniform_s(tuple_size(B), R1),
    {{element(I, A), element(J, B)}, R2}.
