%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_regroup).
-moduledoc """
What has to be done so that groups are as the file says, decided from what the nodes say of their
groups. Pure.

A member that is not a node of this cluster stays in its group, and a group that the service has not
made stays.
""".

-export([changes/4]).
-export_type([member/0, group/0, seen/0, change/0]).

-doc "A node, by its whole name.".
-type member() :: binary().
-doc "A group as it is to be.".
-type group() :: #{name := binary(), members := [member()], consistency := available | majority}.
-doc "What each node that answered says: its own groups and their members.".
-type seen() :: #{member() => #{Group :: binary() => [member()]}}.
-doc """
One change, and the node that is asked for it. `create` names all members that run now; the others
follow by `add` when they run.
""".
-type change() ::
    {create, member(), group()}
    | {add | remove, member(), Group :: binary(), [member(), ...]}
    | {delete, member(), Group :: binary()}.

-doc """
The changes. `Made` are groups that the service has made before, `Ours` all nodes of the cluster.
A group is not touched where none of its members answers, and removals wait until all that are to be
added are there, so that a group never has fewer members than before and after.
""".
-spec changes([group()], Made :: [binary()], Ours :: [member()], seen()) -> [change()].
changes(Desired, Made, Ours, Seen) ->
    Names = [Name || #{name := Name} <- Desired],
    lists:append([change(Group, Ours, Seen) || Group <- Desired])
        ++ [{delete, hd(Holders), Name} || Name <- lists:usort(Made) -- Names,
                                           [_ | _] = Holders <- [holders(Name, Seen)]].

change(#{name := Name, members := Members} = Group, Ours, Seen) ->
    Up = [Member || Member <- Members, is_map_key(Member, Seen)],
    Holders = holders(Name, Seen),
    case {Up, Holders} of
        {[], _} ->
            [];
        {_, []} ->
            [{create, hd(Up), Group#{members := Up}}];
        {_, [Via | _]} ->
            Known = lists:usort(lists:append([known(Holder, Name, Seen) || Holder <- Holders])),
            Stay = [Holder || Holder <- Holders, lists:member(Holder, Members)],
            %% Others may list a node that does not have the group: it missed the change, or lost
            %% it.
            Absent = Up -- [Holder || Holder <- Holders, lists:member(Holder, Known)],
            case {Absent, [M || M <- Known, lists:member(M, Ours)] -- Members, Stay} of
                {[_ | _] = Missing, _, _} -> [{add, Via, Name, Missing}];
                {[], [_ | _] = Extra, [Staying | _]} -> [{remove, Staying, Name, Extra}];
                _ -> []
            end
    end.

holders(Name, Seen) -> lists:sort([Node || Node := #{Name := _} <- Seen]).

known(Node, Name, Seen) -> map_get(Name, map_get(Node, Seen)).
