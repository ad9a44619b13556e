%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_graph).
-moduledoc false.
%% The consequences of a plan for its nodes: links, paths, and the nodes whose loss disconnects it.
%% Only who is a member of what counts here, not what the plan says of its edges.
%%
%% Nodes that are in the same groups have the same paths, so paths are counted between *kinds* of
%% nodes (sets of groups). A path from node to node takes one link more than it crosses gateways.

-export([memberships/1, links/1, hops/1, hops/2, components/1, single_points/1]).
-export_type([memberships/0]).

-type memberships() :: #{node() => [Group :: term()]}.

-spec memberships(sderl_pattern:plan()) -> memberships().
memberships(#{groups := Groups}) ->
    maps:map(fun(_, Gs) -> lists:sort(Gs) end,
             maps:groups_from_list(fun({N, _}) -> N end, fun({_, G}) -> G end,
                                   [{N, G} || #{name := G, nodes := Ns} <- Groups, N <- Ns])).

-doc "How many nodes each node is linked to: all that it shares a group with.".
-spec links(sderl_pattern:plan()) -> #{node() => non_neg_integer()}.
links(#{groups := Groups} = Plan) ->
    Nodes = #{G => Ns || #{name := G, nodes := Ns} <- Groups},
    maps:map(fun
        (_, [G]) -> length(map_get(G, Nodes)) - 1;
        (_, Gs) -> length(lists:usort(lists:append([map_get(G, Nodes) || G <- Gs]))) - 1
    end, memberships(Plan)).

%% ---------------------------------------------------------------- paths

-doc """
Links on the way between two nodes: the most and the mean over all pairs, and how many pairs (in
both directions) have no way.
""".
-spec hops(memberships()) ->
    #{max := non_neg_integer(), mean := float(), unreachable := non_neg_integer()}.
hops(Of) ->
    Kinds = maps:to_list(maps:groups_from_list(fun({_, Gs}) -> Gs end, fun({N, _}) -> N end,
                                               maps:to_list(Of))),
    Distances = distances(Of),
    {Most, Sum, Pairs, Lost} = lists:foldl(fun({{A, As}, {B, Bs}}, {M, S, P, L}) ->
        Count = length(As) * (length(Bs) - case A =:= B of true -> 1; false -> 0 end),
        case Count > 0 andalso between(A, B, Distances) of
            false -> {M, S, P, L};
            none -> {M, S, P, L + Count};
            Hops -> {max(M, Hops), S + Hops * Count, P + Count, L}
        end
    end, {0, 0, 0, 0}, [{A, B} || A <- Kinds, B <- Kinds]),
    #{max => Most, mean => Sum / max(1, Pairs), unreachable => Lost}.

-doc """
Weighted by traffic: the mean, the share of it that stays within groups, and that which has no way.
""".
-spec hops(memberships(), #{{node(), node()} => number()}) ->
    #{mean := float(), inside := float(), unreachable := float()}.
hops(Of, Weights) ->
    Distances = distances(Of),
    {Sum, All, Inside, Lost} = maps:fold(fun({A, B}, W, {S, T, I, L}) ->
        case Of of
            #{A := As, B := Bs} ->
                case between(As, Bs, Distances) of
                    none -> {S, T, I, L + W};
                    1 -> {S + W, T + W, I + W, L};
                    Hops -> {S + W * Hops, T + W, I, L}
                end;
            _ -> {S, T, I, L + W}
        end
    end, {0, 0, 0, 0}, Weights),
    #{mean => ratio(Sum, All), inside => ratio(Inside, All + Lost),
      unreachable => ratio(Lost, All + Lost)}.

ratio(_, 0) -> 0.0;
ratio(_, +0.0) -> 0.0;
ratio(A, B) -> A / B.

between(As, Bs, Distances) ->
    case [D || A <- As, #{A := Row} <- [Distances], B <- Bs, #{B := D} <- [Row]] of
        [] -> none;
        Ds -> 1 + lists:min(Ds)
    end.

%% Between groups: how many gateways have to be crossed.
distances(Of) ->
    Next = adjacent(Of),
    maps:map(fun(G, _) -> search([G], Next, #{G => 0}, 1) end, Next).

adjacent(Of) ->
    Alone = #{G => [] || Gs <- maps:values(Of), G <- Gs},
    Shared = lists:usort([Gs || [_, _ | _] = Gs <- maps:values(Of)]),
    maps:map(fun(_, Gs) -> lists:usort(Gs) end, lists:foldl(fun(Gs, M) ->
        lists:foldl(fun(G, M1) -> M1#{G := Gs ++ map_get(G, M1)} end, M, Gs)
    end, Alone, Shared)).

search([], _, Seen, _) -> Seen;
search(Groups, Next, Seen, D) ->
    New = lists:usort([H || G <- Groups, H <- map_get(G, Next), not is_map_key(H, Seen)]),
    search(New, Next, maps:merge(Seen, #{G => D || G <- New}), D + 1).

%% ---------------------------------------------------------------- what holds together

-doc "The groups that gateways hold together, the largest lot first (by nodes).".
-spec components(memberships()) -> [[Group :: term()]].
components(Of) ->
    Next = adjacent(Of),
    Sizes = maps:fold(fun(_, Gs, M) ->
        lists:foldl(fun(G, A) -> maps:update_with(G, fun(V) -> V + 1 end, 1, A) end, M, Gs)
    end, #{}, Of),
    Lots = lots(lists:sort(maps:keys(Next)), Next),
    Weight = fun(Gs) -> lists:sum([map_get(G, Sizes) || G <- Gs]) end,
    lists:sort(fun(A, B) -> {-Weight(A), A} =< {-Weight(B), B} end, Lots).

lots([], _) -> [];
lots([G | Gs], Next) ->
    Lot = lists:sort(maps:keys(search([G], Next, #{G => 0}, 1))),
    [Lot | lots([H || H <- Gs, not lists:member(H, Lot)], Next)].

-doc """
The nodes whose loss leaves fewer groups held together than there were, each with the groups that
are cut off then from most of the others.
""".
-spec single_points(memberships()) -> [{node(), [Group :: term()]}].
single_points(Of) ->
    Whole = components(Of),
    Kinds = maps:groups_from_list(fun({_, Gs}) -> Gs end, fun({N, _}) -> N end,
                                  [{N, Gs} || N := [_, _ | _] = Gs <- Of]),
    %% Where there are two of a kind, either will do without the other.
    Alone = lists:sort([N || _ := [N] <- Kinds]),
    [{N, lists:append(Cut)}
     || N <- Alone, [_ | [_ | _] = Cut] <- [components(maps:remove(N, Of)) -- Whole]].
