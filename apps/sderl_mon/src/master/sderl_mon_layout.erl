%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_layout).
-moduledoc """
Which agents there are, which nodes each watches, and on which monitoring node each runs.

Pure. One agent watches one *scope*: a group, or a free node. A node in several groups is watched by
one of their agents alone, that of the first in the order of terms (its *home*), so that nothing is
read or counted twice. Scopes stay where they are as long as their monitoring node lives and the
load is even enough: a move costs the history of rates that the agent has, so it must be worth it.
""".

-export([scopes/1, home/1, place/3, weight/1]).

-type scope() :: sderl_mon_message:scope().
-type placement() :: sderl_mon_message:placement().

-doc "The home of a node that is in these groups.".
-spec home({node(), [Group :: term()]}) -> scope().
home({Node, []}) -> {free, Node};
home({_, Groups}) -> {group, hd(lists:sort(Groups))}.

-doc """
All scopes with the nodes that each watches, each node in exactly one. A group whose members all
have their homes elsewhere has a scope without nodes.
""".
-spec scopes(#{node() => [Group :: term()]}) -> #{scope() => [node()]}.
scopes(Nodes) ->
    Empty = #{{group, Group} => [] || _ := Groups <- Nodes, Group <- Groups},
    Homes = maps:groups_from_list(fun home/1, fun({Node, _}) -> Node end,
                                  lists:sort(maps:to_list(Nodes))),
    maps:merge(Empty, Homes).

-doc "The cost of a scope for its monitoring node: its nodes, and a little for the agent itself.".
-spec weight([node()]) -> pos_integer().
weight(Nodes) -> 1 + length(Nodes).

-doc """
A monitoring node for each scope.

`Present` says where scopes run now. They stay there, except for those of monitoring nodes that are
not in `Monitors`, and those that must move to even out the load when it differs by more than a
quarter of the mean (and more than 4).
""".
-spec place(#{scope() => [node()]}, Present :: placement(), Monitors :: [node()]) -> placement().
place(_, _, []) ->
    #{};
place(Scopes, Present, Monitors) ->
    Kept = #{Scope => Monitor
             || Scope := Monitor <- Present, is_map_key(Scope, Scopes),
                lists:member(Monitor, Monitors)},
    Weights = #{Scope => weight(Nodes) || Scope := Nodes <- Scopes},
    %% The heaviest first: the lighter ones then fill the gaps.
    New = lists:sort([{-Weight, Scope} || Scope := Weight <- Weights, not is_map_key(Scope, Kept)]),
    Loads0 = maps:merge(#{M => 0 || M <- Monitors}, loads(Kept, Weights)),
    {Placed, Loads} = lists:foldl(
        fun({Minus, Scope}, {Acc, Ls}) ->
            {_, Least} = least(Ls),
            {Acc#{Scope => Least}, Ls#{Least := maps:get(Least, Ls) - Minus}}
        end,
        {Kept, Loads0},
        New
    ),
    even(Placed, Loads, Weights, slack(Loads)).

loads(Placement, Weights) ->
    maps:fold(
        fun(Scope, Monitor, Acc) ->
            Weight = maps:get(Scope, Weights),
            maps:update_with(Monitor, fun(L) -> L + Weight end, Weight, Acc)
        end,
        #{},
        Placement
    ).

slack(Loads) -> max(4, lists:sum(maps:values(Loads)) div map_size(Loads) div 4).

least(Loads) -> lists:min([{L, M} || M := L <- Loads]).

%% Each move decreases the sum of the squares of the loads, so this ends.
even(Placement, Loads, Weights, Slack) ->
    {Least, To} = least(Loads),
    {Most, From} = lists:max([{L, M} || M := L <- Loads]),
    Gap = Most - Least,
    Movable = [{abs(Gap - 2 * W), Scope, W}
               || Scope := M <- Placement, M =:= From, W <- [maps:get(Scope, Weights)], W < Gap],
    case Movable of
        [_ | _] when Gap > Slack ->
            {_, Scope, Weight} = lists:min(Movable),
            Moved = Loads#{From := Most - Weight, To := Least + Weight},
            even(Placement#{Scope := To}, Moved, Weights, Slack);
        _ ->
            Placement
    end.
