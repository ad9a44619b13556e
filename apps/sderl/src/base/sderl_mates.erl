%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mates).
-moduledoc """
The groups of a node and with whom it shares them, kept up to date one group at a time.

A process that follows the node's groups keeps this in its state: what it must know after a change
(who is a mate now that was none before, who is one no more, a group shared with a node) costs the
same however many groups there are. The directory (`sderl_dir`) stays the truth: a process starts
from it, and compares with it now and then (`differing/2`, `missing/2`).

Pure.
""".

-export([new/2, change/3, differing/2, missing/2]).
-export([members/2, groups/1, nodes/1, is_mate/2, shared/2, some_shared/2, counts/1]).
-export_type([mates/0]).

-record(mates, {
    self :: node(),
    groups = #{} :: #{Group :: term() => [node()]},
    nodes = #{} :: #{node() => #{Group :: term() => []}}
}).
-opaque mates() :: #mates{}.

-doc "The groups of the node `Self`, with their members.".
-spec new(Self :: node(), [{Group :: term(), [node()]}]) -> mates().
new(Self, Memberships) ->
    lists:foldl(fun({Group, Members}, Mates) ->
        {_, _, Next} = change(Group, Members, Mates),
        Next
    end, #mates{self = Self}, Memberships).

-doc """
A group has these members now, none if it is no own group any more. Gives the nodes that share a
group with this one and shared none before, and those that did and do not now.
""".
-spec change(Group :: term(), [node()], mates()) -> {Came :: [node()], Went :: [node()], mates()}.
change(Group, Members, #mates{self = Self, groups = Groups, nodes = Nodes0} = Mates) ->
    Before = maps:get(Group, Groups, []),
    In = [Node || Node <- Members -- Before, Node =/= Self],
    Out = [Node || Node <- Before -- Members, Node =/= Self],
    Came = [Node || Node <- In, not is_map_key(Node, Nodes0)],
    Nodes1 = lists:foldl(fun(Node, Nodes) ->
        Nodes#{Node => (maps:get(Node, Nodes, #{}))#{Group => []}}
    end, Nodes0, In),
    Nodes = lists:foldl(fun(Node, Acc) -> unshare(Group, Node, Acc) end, Nodes1, Out),
    Went = [Node || Node <- Out, not is_map_key(Node, Nodes)],
    Now = case Members of
        [] -> maps:remove(Group, Groups);
        _ -> Groups#{Group => Members}
    end,
    {Came, Went, Mates#mates{groups = Now, nodes = Nodes}}.

unshare(Group, Node, Nodes) ->
    #{Node := Shared} = Nodes,
    case maps:remove(Group, Shared) of
        Rest when map_size(Rest) =:= 0 -> maps:remove(Node, Nodes);
        Rest -> Nodes#{Node := Rest}
    end.

-doc "Those of these groups that have other members here.".
-spec differing([{Group :: term(), [node()]}], mates()) -> [{Group :: term(), [node()]}].
differing(Memberships, #mates{groups = Groups}) ->
    [Membership || {Group, Members} = Membership <- Memberships,
                   maps:get(Group, Groups, []) =/= Members].

-doc "The groups that are not among these, each with no members.".
-spec missing([{Group :: term(), [node()]}], mates()) -> [{Group :: term(), []}].
missing(Memberships, #mates{groups = Groups}) ->
    Are = maps:from_list(Memberships),
    [{Group, []} || Group := _ <- Groups, not is_map_key(Group, Are)].

-doc "The members of a group, none of one that is no own group.".
-spec members(Group :: term(), mates()) -> [node()].
members(Group, #mates{groups = Groups}) -> maps:get(Group, Groups, []).

-doc "All groups with their members.".
-spec groups(mates()) -> [{Group :: term(), [node()]}].
groups(#mates{groups = Groups}) -> maps:to_list(Groups).

-doc "The nodes that share a group with this one, sorted.".
-spec nodes(mates()) -> [node()].
nodes(#mates{nodes = Nodes}) -> lists:sort(maps:keys(Nodes)).

-spec is_mate(node(), mates()) -> boolean().
is_mate(Node, #mates{nodes = Nodes}) -> is_map_key(Node, Nodes).

-doc "The groups that are shared with a node.".
-spec shared(node(), mates()) -> #{Group :: term() => []}.
shared(Node, #mates{nodes = Nodes}) -> maps:get(Node, Nodes, #{}).

-doc "One group that is shared with a mate, with its members.".
-spec some_shared(node(), mates()) -> {Group :: term(), [node()]}.
some_shared(Node, #mates{groups = Groups, nodes = Nodes}) ->
    {Group, _, _} = maps:next(maps:iterator(map_get(Node, Nodes))),
    {Group, map_get(Group, Groups)}.

-doc "How many groups, and with how many nodes they are shared.".
-spec counts(mates()) -> {Groups :: non_neg_integer(), Nodes :: non_neg_integer()}.
counts(#mates{groups = Groups, nodes = Nodes}) -> {map_size(Groups), map_size(Nodes)}.
