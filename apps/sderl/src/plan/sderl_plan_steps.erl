%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_steps).
-moduledoc false.
%% The steps that make the groups of a running cluster those of a plan, from the nodes' answers
%% about their groups; the steps that undo them; and the links that are not needed afterwards. Pure:
%% `sderl_plan_apply` does it.
%%
%% The order is what keeps a cluster together meanwhile: groups are made and members come in before
%% anybody leaves, so a gateway never goes before its replacement is there.
%%
%% A group is made on the first of its nodes that can be reached, whoever calls. So if two callers,
%% or one that died and its successor, make it at the same time, they meet on that node, which makes
%% one group of it.

-export([steps/3, on/2, undo/1, parted/3]).
-export_type([step/0, survey/0]).

-doc "`Holders`: nodes that run the group.".
-type step() ::
    {create, Group :: term(), [node(), ...]}
    | {add, Group :: term(), Holders :: [node()], [node(), ...]}
    | {remove, Group :: term(), Holders :: [node()], [node(), ...]}
    | {delete, Group :: term(), Holders :: [node()], Members :: [node()]}.
-doc "The answers of nodes: the groups that they run. A node that is not in it could not be asked.".
-type survey() :: #{node() => [{Group :: term(), Uid :: binary(), Members :: [node()]}]}.

-doc "The steps in order. `Old` are names of groups that are to be deleted.".
-spec steps(sderl_pattern:plan(), Old :: [term()], survey()) ->
    {ok, [step()]} | {error, sderl_pattern:reason()}.
steps(#{groups := Groups}, Old, Survey) ->
    Wanted = [{G, Ns} || #{name := G, nodes := Ns} <- Groups],
    Running = running(Survey),
    case [{G, Rows}
          || {G, _} <- Wanted, #{G := Rows} <- [Running],
             length(lists:usort([U || {_, U, _} <- Rows])) > 1] of
        [{Group, Rows} | _] ->
            {error, {other_identity, Group, [hd([N || {N, U, _} <- Rows, U =:= Uid])
                                             || Uid <- lists:usort([U || {_, U, _} <- Rows])]}};
        [] ->
            In = lists:append([missing(G, Ns, maps:get(G, Running, [])) || {G, Ns} <- Wanted]),
            Out = lists:append([excess(G, Ns, maps:get(G, Running, [])) || {G, Ns} <- Wanted]),
            Kept = #{G => kept || {G, _} <- Wanted},
            Gone = [{delete, G, [N || {N, _, _} <- Rows],
                     lists:usort(lists:append([Ms || {_, _, Ms} <- Rows]))}
                    || G <- Old, not is_map_key(G, Kept), #{G := Rows} <- [Running]],
            {ok, In ++ Out ++ Gone}
    end.

running(Survey) ->
    maps:groups_from_list(fun({G, _}) -> G end, fun({_, Row}) -> Row end,
                          [{G, {N, Uid, Ms}}
                           || N := Own <- maps:iterator(Survey, ordered), {G, Uid, Ms} <- Own]).

missing(Group, Nodes, []) -> [{create, Group, Nodes}];
missing(Group, Nodes, Rows) ->
    %% A node that is a member for some and not for others is on its way in or out: adding it again
    %% does no harm.
    case [N || N <- Nodes, not lists:all(fun({_, _, Ms}) -> lists:member(N, Ms) end, Rows)] of
        [] -> [];
        New -> [{add, Group, holders(Nodes, Rows), New}]
    end.

excess(Group, Nodes, Rows) ->
    case lists:usort(lists:append([Ms || {_, _, Ms} <- Rows])) -- Nodes of
        [] -> [];
        Out -> [{remove, Group, holders(Nodes, Rows), Out}]
    end.

%% Holders that stay come first.
holders(Nodes, Rows) ->
    Holders = [N || {N, _, _} <- Rows],
    {Stay, Go} = lists:partition(fun(N) -> lists:member(N, Nodes) end, Holders),
    Stay ++ Go.

-doc """
On which nodes a step can be done, the best first. Who removes must stay: `Members` are those that
the plan has in the group.
""".
-spec on(step(), Members :: [node()]) -> [node()].
on({create, _, Nodes}, _) -> Nodes;
on({add, _, Holders, _}, _) -> Holders;
on({remove, _, Holders, Out}, Members) ->
    lists:uniq([N || N <- Holders, not lists:member(N, Out)] ++ (Members -- Out));
on({delete, _, Holders, _}, _) -> Holders.

-doc "The step that undoes a step. The names of a group that was deleted do not come back.".
-spec undo(step()) -> step().
undo({create, Group, Nodes}) -> {delete, Group, Nodes, Nodes};
undo({add, Group, Holders, Nodes}) -> {remove, Group, Holders -- Nodes, Nodes};
undo({remove, Group, Holders, Nodes}) -> {add, Group, Holders, Nodes};
undo({delete, Group, _, Members}) -> {create, Group, Members}.

-doc """
The pairs of nodes that shared a group and no longer share one, as far as these steps and the plan
tell: for each node those with a greater name, and the groups that it left. (Groups beside the plan
may still need the link; the nodes know.)
""".
-spec parted(Done :: [step()], survey(), sderl_pattern:plan()) ->
    #{node() => {[node(), ...], Left :: [Group :: term()]}}.
parted(Done, Survey, #{groups := Groups}) ->
    Lost = lists:usort(lists:append([lost(Step, Survey, Groups) || Step <- Done])),
    Still = sets:from_list([{A, B} || #{nodes := Ns} <- Groups, A <- Ns, B <- Ns, A < B],
                           [{version, 2}]),
    Peers = maps:groups_from_list(fun({A, _}) -> A end, fun({_, B}) -> B end,
                                  [P || P <- Lost, not sets:is_element(P, Still)]),
    Left = [{G, Ns} || {Kind, G, _, Ns} <- Done, Kind =:= remove orelse Kind =:= delete],
    #{Node => {With, [G || {G, Ns} <- Left, lists:member(Node, Ns)]} || Node := With <- Peers}.

%% A node that was added meanwhile was linked to the members that were still there.
lost({remove, Group, _, Out}, Survey, Groups) ->
    Members = lists:usort(
        lists:append([Out] ++ [Ms || Own <- maps:values(Survey), {G, _, Ms} <- Own, G =:= Group]
                     ++ [Ns || #{name := G, nodes := Ns} <- Groups, G =:= Group])
    ),
    lists:usort([{min(A, B), max(A, B)} || A <- Out, B <- Members, A =/= B]);
lost({delete, _, _, Members}, _, _) -> [{A, B} || A <- Members, B <- Members, A < B];
lost(_, _, _) -> [].
