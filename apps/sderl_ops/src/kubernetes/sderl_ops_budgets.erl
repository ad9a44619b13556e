%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_budgets).
-moduledoc """
Which pods may be evicted at the same time, as budgets of Kubernetes (PodDisruptionBudget), so that
groups lose one member at a time.

Kubernetes does not evict a pod that is in two budgets. So there is one budget for all nodes that
groups connect, of one family or of several, and one of these nodes may be away at a time. This is
stricter than the rules of `m:sderl_ops_upgrade`: two nodes that share no group wait for each other,
too, if each has a group in common with a third one.
""".

-export([budgets/2, notes/1]).
-export_type([budget/0]).

-type id() :: sderl_ops_desired:instance_id().

-doc """
Whole families, of which so many nodes may be away; or single instances, of which so many have to be
there. Kubernetes knows the size of a family from its StatefulSet, which may be scaled.
""".
-type budget() ::
    {families, [binary(), ...], MaxUnavailable :: pos_integer()}
    | {instances, [id(), ...], MinAvailable :: pos_integer()}.

-doc "Families without a group may lose `Batch` nodes at a time.".
-spec budgets(sderl_ops_desired:desired(), Batch :: pos_integer()) -> [budget()].
budgets(#{instances := Instances, groups := Groups}, Batch) ->
    Families = maps:groups_from_list(fun(Id) -> family(Id, Instances) end,
                                     maps:keys(Instances)),
    Parts = connected([Members || #{members := Members} <- Groups]),
    Grouped = sets:from_list(lists:append(Parts)),
    Alone = [{families, [Name], Batch}
             || Name := Ids <- maps:iterator(Families, ordered),
                not lists:any(fun(Id) -> sets:is_element(Id, Grouped) end, Ids)],
    lists:sort([budget(Part, Families, Instances) || [_, _ | _] = Part <- Parts] ++ Alone).

budget(Part, Families, Instances) ->
    Names = lists:usort([family(Id, Instances) || Id <- Part]),
    case lists:sum([length(map_get(Name, Families)) || Name <- Names]) of
        All when All =:= length(Part) -> {families, Names, 1};
        _ -> {instances, Part, length(Part) - 1}
    end.

family(Id, Instances) ->
    #{Id := #{family := Family}} = Instances,
    Family.

%% Sets of instances that groups connect.
connected(Groups) ->
    Graph = digraph:new([private]),
    try
        lists:foreach(fun([First | _] = Members) ->
            _ = [digraph:add_vertex(Graph, Id) || Id <- Members],
            _ = [digraph:add_edge(Graph, First, Id) || Id <- Members]
        end, Groups),
        lists:sort([lists:sort(Part) || Part <- digraph_utils:components(Graph)])
    after
        digraph:delete(Graph)
    end.

-doc "Sentences about groups that Kubernetes does not protect.".
-spec notes(sderl_ops_desired:desired()) -> [unicode:chardata()].
notes(#{instances := Instances, groups := Groups} = Desired) ->
    Several = [Names || {families, [_, _ | _] = Names, _} <- budgets(Desired, 1)]
        ++ [Names || {instances, Ids, _} <- budgets(Desired, 1),
                     [_, _ | _] = Names <- [lists:usort([family(Id, Instances) || Id <- Ids])]],
    [["the families ", lists:join(", ", Names), " share groups, and Kubernetes replaces nodes of "
      "several StatefulSets side by side: apply one family at a time, and wait for it "
      "(kubectl rollout status)"] || Names <- lists:usort(Several)]
        ++ [["the group ", Name, " has one member, and is gone while that is evicted or replaced"]
            || #{name := Name, members := [_]} <- Groups]
        ++ edges([{A, B, Id} || {{A, B}, [Id]} <- lists:sort(maps:to_list(common(Groups)))]).

edges([]) -> [];
edges([{A, B, Id} | Others]) ->
    [["the groups ", A, " and ", B, " have only ", Id, " in common, and no way between them while "
      "that is evicted or replaced",
      [[" (and so ", integer_to_list(length(Others)), " more pairs of groups)"]
       || Others =/= []]]].

%% The common members of each pair of groups that have some.
common(Groups) ->
    Of = maps:groups_from_list(fun({Id, _}) -> Id end, fun({_, Name}) -> Name end,
                               [{Id, Name} || #{name := Name, members := Ids} <- Groups,
                                              Id <- Ids]),
    maps:groups_from_list(fun({Pair, _}) -> Pair end, fun({_, Id}) -> Id end,
                          [{{A, B}, Id} || Id := Names <- Of, A <- Names, B <- Names, A < B]).
