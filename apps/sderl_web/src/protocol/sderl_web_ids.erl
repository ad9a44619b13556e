%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_ids).
-moduledoc """
Small whole numbers for the names of nodes and groups. Pure.

A name keeps its number for as long as the table lives, also while its node is away; numbers are
never given to another name. Clusters in the cloud give every node a new name, so names that are not
there any more are forgotten when the table has grown large: one of those that came back would get a
new number.
""".

-export([new/0, add/3, topology/2, frame/2, node/2, group/2, size/1]).
-export_type([ids/0]).

-opaque ids() :: #{node := table(), group := table()}.
-type table() :: {Next :: non_neg_integer(), #{binary() => non_neg_integer()}}.

%% Two megabytes or so.
-define(MOST, 20_000).

-spec new() -> ids().
new() -> #{node => {0, #{}}, group => {0, #{}}}.

-doc "Gives numbers to those of the nodes and groups that have none.".
-spec add([Node :: binary()], [Group :: binary()], ids()) -> ids().
add(Nodes, Groups, #{node := NodeTable, group := GroupTable}) ->
    #{node => numbered(Nodes, NodeTable), group => numbered(Groups, GroupTable)}.

numbered(Names, {_, Numbers} = Table) ->
    case [Name || Name <- Names, not is_map_key(Name, Numbers)] of
        [] -> Table;
        %% In order, so that a cluster gets the same numbers each time.
        New -> lists:foldl(fun number/2, room(Names, Table), lists:usort(New))
    end.

number(Name, {Next, Numbers}) -> {Next + 1, Numbers#{Name => Next}}.

room(Names, {Next, Numbers}) when map_size(Numbers) > ?MOST -> {Next, maps:with(Names, Numbers)};
room(_, Table) -> Table.

-doc "Gives numbers to whatever a topology names.".
-spec topology(sderl_mon_types:topology(), ids()) -> ids().
topology(#{nodes := Nodes, groups := Groups}, Ids) ->
    Members = [[maps:get(nodes, Group, []), maps:get(live, Group, []),
                [maps:get(coordinator, Group, undefined)]]
               || Group <- maps:values(Groups)],
    Named = [Name || Name <- lists:append(lists:append(Members)), is_binary(Name)],
    Of = lists:append([[Group || Group <- [maps:get(home, Node, undefined)], is_binary(Group)] ++
                       maps:get(groups, Node, [])
                       || Node <- maps:values(Nodes)]),
    add(maps:keys(Nodes) ++ Named, maps:keys(Groups) ++ Of, Ids).

-doc "Gives numbers to whatever a frame names.".
-spec frame(sderl_mon_types:frame(), ids()) -> ids().
frame(#{nodes := Nodes, links := Links} = Frame, Ids) ->
    #{node := {_, NodeNumbers}, group := {_, GroupNumbers}} = Ids,
    Groups = maps:get(groups, Frame, #{}),
    %% Of nearly all frames every name is known.
    Known = are_keys(maps:keys(Nodes), NodeNumbers)
        andalso are_keys(maps:keys(Groups), GroupNumbers)
        andalso are_ends(maps:keys(Links), NodeNumbers),
    case Known of
        true -> Ids;
        false ->
            Ends = lists:append([[From, To] || {From, To} <- maps:keys(Links)]),
            add(maps:keys(Nodes) ++ Ends, maps:keys(Groups), Ids)
    end.

are_keys([Name | Names], Numbers) when is_map_key(Name, Numbers) -> are_keys(Names, Numbers);
are_keys(Rest, _) -> Rest =:= [].

are_ends([{From, To} | Links], Numbers)
  when is_map_key(From, Numbers), is_map_key(To, Numbers) ->
    are_ends(Links, Numbers);
are_ends(Rest, _) -> Rest =:= [].

-doc "The number of a node that was added.".
-spec node(binary(), ids()) -> non_neg_integer().
node(Name, #{node := {_, Numbers}}) -> maps:get(Name, Numbers).

-doc "The number of a group that was added.".
-spec group(binary(), ids()) -> non_neg_integer().
group(Name, #{group := {_, Numbers}}) -> maps:get(Name, Numbers).

-doc "How many names there are.".
-spec size(ids()) -> non_neg_integer().
size(#{node := {_, Nodes}, group := {_, Groups}}) -> map_size(Nodes) + map_size(Groups).
