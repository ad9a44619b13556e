%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_layout).
-moduledoc """
The layout of the demo: nodes, s_groups, gateways, server names and callers.

Nodes are numbered from 1. They are cut into consecutive *own* sets of almost equal size,
one for each group, and the groups form a ring: the last own node of each group is its
*gateway* and a member of the next group too. With 24 nodes and groups of 6:

    g1 [1-5] ==6== g2 [7-11] ==12== g3 [13-17] ==18== g4 [19-23] ==24== g1

so g2 has the members 6 to 12, and node 6 carries the messages between g1 and g2.

Every node hosts a few servers for each group that it is a member of. A caller uses two
lists of them:

- *own* names: those in its own groups, on other nodes;
- *other* names: those in the neighbouring groups, which share a gateway with one of its own. They
  are called over that gateway, so that no link goes from group to group.
""".

-export([
    new/2,
    new/3,
    indexes/1,
    groups/1,
    groups_of/2,
    names/1,
    names_on/2,
    members/2,
    own_names/2,
    other_names/2,
    picture/1
]).
-export_type([layout/0, group/0, group_name/0, index/0, name/0, server/0]).

-doc "The number of a node, from 1.".
-type index() :: pos_integer().

-doc "The name of an s_group: `g1`, `g2` and so on.".
-type group_name() :: atom().

-doc "A server's name within its group: the node that hosts it and its number there.".
-type name() :: {server, index(), pos_integer()}.

-doc "A server as callers know it. The same name occurs in both groups of a gateway.".
-type server() :: {group_name(), name()}.

-doc "One s_group. `gateway` is the own node shared with the next group, `none` without a next.".
-type group() :: #{
    name := group_name(),
    own := [index(), ...],
    gateway := index() | none,
    members := [index(), ...]
}.

-doc "The whole layout: groups in ring order, and how many servers a node hosts for each group.".
-type layout() :: #{
    nodes := pos_integer(),
    groups := [group(), ...],
    servers := pos_integer(),
    consistency := sderl_options:consistency()
}.

-define(SERVERS, 2).

-doc """
Lays out `Nodes` nodes in groups of at most `Size` own nodes.

Expected failures: fewer than 4 nodes, a size below 2 or above the number of nodes.
""".
-spec new(integer(), integer()) ->
    {ok, layout()} | {error, too_few_nodes | group_size_too_small | group_size_above_nodes}.
new(Nodes, Size) -> new(Nodes, Size, available).

-doc "The same for groups of the given consistency.".
-spec new(integer(), integer(), sderl_options:consistency()) ->
    {ok, layout()} | {error, too_few_nodes | group_size_too_small | group_size_above_nodes}.
new(Nodes, _Size, _) when Nodes < 4 -> {error, too_few_nodes};
new(_Nodes, Size, _) when Size < 2 -> {error, group_size_too_small};
new(Nodes, Size, _) when Size > Nodes -> {error, group_size_above_nodes};
new(Nodes, Size, Consistency) ->
    Count = (Nodes + Size - 1) div Size,
    Owns = cut(lists:seq(1, Nodes), Count),
    {ok, #{nodes => Nodes, groups => ring(Owns), servers => ?SERVERS, consistency => Consistency}}.

%% Sizes differ by one at most, the larger sets first.
cut(Indexes, 1) ->
    [Indexes];
cut(Indexes, Count) ->
    {Own, Rest} = lists:split((length(Indexes) + Count - 1) div Count, Indexes),
    [Own | cut(Rest, Count - 1)].

ring([Own]) ->
    [#{name => group_name(1), own => Own, gateway => none, members => Own}];
ring(Owns) ->
    Guests = [lists:last(lists:last(Owns)) | [lists:last(Own) || Own <- lists:droplast(Owns)]],
    [
        #{
            name => group_name(I),
            own => Own,
            gateway => lists:last(Own),
            members => lists:usort([Guest | Own])
        }
     || {I, Own, Guest} <- lists:zip3(lists:seq(1, length(Owns)), Owns, Guests)
    ].

%% The number of groups is bounded by the number of nodes that fit a machine.
group_name(I) -> list_to_atom("g" ++ integer_to_list(I)).

-doc "All nodes, in order.".
-spec indexes(layout()) -> [index()].
indexes(#{nodes := Nodes}) -> lists:seq(1, Nodes).

-doc "The groups in ring order.".
-spec groups(layout()) -> [group()].
groups(#{groups := Groups}) -> Groups.

-doc "The names of the groups that `Index` is a member of: its own first.".
-spec groups_of(index(), layout()) -> [group_name()].
groups_of(Index, #{groups := Groups}) ->
    [N || #{name := N, own := Own} <- Groups, lists:member(Index, Own)] ++
        [
            N
         || #{name := N, own := Own, members := Members} <- Groups,
            lists:member(Index, Members),
            not lists:member(Index, Own)
        ].

-doc "The members of a group, gateways of both sides included.".
-spec members(group_name(), layout()) -> [index()].
members(Name, #{groups := Groups}) ->
    [Members] = [Ms || #{name := N, members := Ms} <- Groups, N =:= Name],
    Members.

-doc "Every server of the demo.".
-spec names(layout()) -> [server()].
names(Layout) ->
    lists:append([names_on(Index, Layout) || Index <- indexes(Layout)]).

-doc "The servers that a node hosts: the same number for each of its groups.".
-spec names_on(index(), layout()) -> [server()].
names_on(Index, #{servers := Servers} = Layout) ->
    [
        {Group, {server, Index, K}}
     || Group <- groups_of(Index, Layout), K <- lists:seq(1, Servers)
    ].

-doc "The names in the caller's own groups, those on its own node left out.".
-spec own_names(index(), layout()) -> [server()].
own_names(Index, Layout) ->
    [
        {Group, Name}
     || Group <- groups_of(Index, Layout),
        Member <- members(Group, Layout),
        Member =/= Index,
        {G, Name} <- names_on(Member, Layout),
        G =:= Group
    ].

-doc """
The names of other groups that the caller uses: those of the neighbouring ones. Empty for a node
that is a member of every group.
""".
-spec other_names(index(), layout()) -> [server()].
other_names(Index, #{groups := Groups} = Layout) ->
    Own = groups_of(Index, Layout),
    Mates = lists:append([members(Group, Layout) || Group <- Own]),
    Neighbours = [
        Name
     || #{name := Name, members := Members} <- Groups,
        not lists:member(Name, Own),
        lists:any(fun(Member) -> lists:member(Member, Mates) end, Members)
    ],
    [Server || {Group, _} = Server <- names(Layout), lists:member(Group, Neighbours)].

-doc """
A small picture of the ring, a few groups a line. The number between two groups is the
gateway that both have as a member.
""".
-spec picture(layout()) -> [unicode:chardata()].
picture(#{groups := [#{name := Name, own := Own}]}) ->
    [io_lib:format("~s [~s]", [Name, range(Own)])];
picture(#{groups := [#{name := First} | _] = Groups}) ->
    Parts = [
        io_lib:format("~s [~s] ==~b==", [Name, range(lists:droplast(Own)), Gateway])
     || #{name := Name, own := Own, gateway := Gateway} <- Groups
    ],
    lines(Parts ++ [atom_to_list(First)], 5).

range([]) -> "";
range([I]) -> integer_to_list(I);
range(Is) -> io_lib:format("~b-~b", [hd(Is), lists:last(Is)]).

%% The name that closes the ring does not stand on a line of its own.
lines(Parts, Most) when length(Parts) =< Most + 1 ->
    [lists:join(" ", Parts)];
lines(Parts, Most) ->
    {Line, Rest} = lists:split(Most, Parts),
    [lists:join(" ", Line) | lines(Rest, Most)].
