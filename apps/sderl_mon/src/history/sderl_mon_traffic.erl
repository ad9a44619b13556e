%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_traffic).
-moduledoc """
Where the traffic of a link counts. Pure; used wherever traffic is shown by group, so that all pages
and tables agree.

- If the two nodes share groups, the traffic counts for these, in equal parts, so that the sum of
  the parts is the traffic.
- Otherwise it counts for the edges from each of the sender's groups to each of the receiver's, in
  equal parts. Free nodes count as one group, `free/0`. So the rows of all groups and of all edges
  add up to all traffic.
- Hidden nodes in no group, such as monitors, shells and other tools, are not free nodes: they count
  as a group of their own, `hidden/0`. So do linked nodes that are not watched; visible ones are
  watched, unless the configuration excludes them.
- A gateway is a node of several groups. Its traffic is what it sends and receives, whatever the
  link; it is a view of the same messages, not more of them.
""".

-export([free/0, hidden/0, places/1, keys/3, groups/2, gateways/1]).

-export_type([key/0]).

-doc "The subject of a table's row.".
-type key() ::
    {link, sderl_mon_types:id(), sderl_mon_types:id()}
    | {edge, sderl_mon_types:id(), sderl_mon_types:id()}
    | {group, sderl_mon_types:id()}
    | {gateway, sderl_mon_types:id()}
    | {routed, sderl_mon_types:id(), sderl_mon_types:id()}.

-doc "The group that nodes without a group are shown as.".
-spec free() -> sderl_mon_types:id().
free() -> <<"(free)">>.

-doc "The group that hidden nodes without a group, and nodes that are not watched, are shown as.".
-spec hidden() -> sderl_mon_types:id().
hidden() -> <<"(hidden)">>.

-doc "The groups of each node of a topology, sorted; built once for many links.".
-spec places(sderl_mon_types:topology()) -> #{sderl_mon_types:id() => [sderl_mon_types:id()]}.
places(#{nodes := Nodes, groups := Groups}) ->
    Listed = #{Id => Of
               || Id := #{groups := Of} = Node <- Nodes,
                  Of =/= [] orelse not maps:get(hidden, Node, false)},
    Places = maps:fold(
        fun(Group, #{nodes := Members}, Acc) ->
            lists:foldl(fun(N, A) ->
                maps:update_with(N, fun(Gs) -> [Group | Gs] end, [Group], A)
            end, Acc, Members)
        end,
        Listed,
        Groups
    ),
    #{Id => lists:usort(Of) || Id := Of <- Places}.

-doc "The nodes of several groups.".
-spec gateways(#{sderl_mon_types:id() => [sderl_mon_types:id()]}) ->
    #{sderl_mon_types:id() => [sderl_mon_types:id()]}.
gateways(Places) -> maps:filter(fun(_Id, Groups) -> length(Groups) > 1 end, Places).

-doc "The rows that a link counts in, with its share in each.".
-spec keys(sderl_mon_types:traffic_by(), sderl_mon_types:link(),
           #{sderl_mon_types:id() => [sderl_mon_types:id()]}) ->
    [{key(), float()}].
keys(link, {From, To}, _Places) ->
    [{{link, From, To}, 1.0}];
keys(gateway, {From, To}, Places) ->
    [{{gateway, Id}, 1.0} || Id <- lists:usort([From, To]), length(maps:get(Id, Places, [])) > 1];
keys(By, {From, To}, Places) ->
    Senders = groups(From, Places),
    Receivers = groups(To, Places),
    case {By, ordsets:intersection(Senders, Receivers)} of
        {group, Shared} -> [{{group, G}, 1 / length(Shared)} || G <- Shared];
        {edge, []} ->
            [{{edge, A, B}, 1 / (length(Senders) * length(Receivers))}
             || A <- Senders, B <- Receivers];
        {edge, _Shared} -> []
    end.

-doc "The groups that a node counts for: its own, or the one that stands for none.".
-spec groups(sderl_mon_types:id(), #{sderl_mon_types:id() => [sderl_mon_types:id()]}) ->
    [sderl_mon_types:id(), ...].
groups(Id, Places) ->
    case Places of
        #{Id := [_ | _] = Groups} -> Groups;
        #{Id := []} -> [free()];
        #{} -> [hidden()]
    end.
