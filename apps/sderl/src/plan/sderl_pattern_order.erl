%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pattern_order).
-moduledoc false.
%% Puts nodes together that belong together: neighbourhoods by distance, or by traffic.
%%
%% Two steps. Clusters are merged pair by pair as long as they fit a group: by distance the nearest
%% pair of nodes first (which is exact where distances are a tree, as in `sderl_dist`); by traffic
%% the two clusters with the most messages for each pair of their nodes. Then clusters go into
%% groups, the largest first, whole where one has room for them, next to what they belong to.

-export([neighbourhoods/3, pairs/1]).

-type bin() :: {Id :: term(), Least :: non_neg_integer(), Most :: pos_integer()}.
-type weights() :: #{{node(), node()} => number()}.

-doc "Fills bins with all the nodes, no bin beyond its most, each with its least.".
-spec neighbourhoods({distance, sderl_pattern:distances()} | {traffic, sderl_pattern:traffic()},
                     [node()], [bin(), ...]) ->
    {ok, #{term() => [node()]}} | {error, sderl_pattern:reason()}.
neighbourhoods({distance, Distances}, Nodes, Bins) ->
    maybe
        {ok, Matrix} ?= matrix(Distances, Nodes),
        Sorted = lists:sort([{D, A, B} || {A, B} := D <- Matrix]),
        Clusters = nearest(Sorted, Nodes, most(Bins)),
        %% An unknown distance is worse than any other.
        Far = 1 + lists:max([0 | maps:values(Matrix)]),
        {ok, pack(Clusters, Bins, #{Pair => Far - D || Pair := D <- Matrix}, fun mean/3)}
    end;
neighbourhoods({traffic, Traffic}, Nodes, Bins) ->
    maybe
        {ok, All} ?= pairs(Traffic),
        Known = #{N => [] || N <- Nodes},
        Weights = #{Pair => W
                    || {A, B} = Pair := W <- All, is_map_key(A, Known), is_map_key(B, Known)},
        Clusters = busiest(Weights, Nodes, most(Bins)),
        {ok, pack(Clusters, Bins, Weights, fun sum/3)}
    end.

most(Bins) -> lists:max([M || {_, _, M} <- Bins]).

matrix(Distances, Nodes) -> matrix(Distances, Nodes, #{}).

matrix(_, [], Matrix) -> {ok, Matrix};
matrix(Distances, [A | Nodes], Matrix) ->
    case row(Distances, A, Nodes, Matrix) of
        {ok, More} -> matrix(Distances, Nodes, More);
        Error -> Error
    end.

row(_, _, [], Matrix) -> {ok, Matrix};
row(Distances, A, [B | Nodes], Matrix) ->
    case distance(Distances, A, B) of
        D when is_number(D), D >= 0 -> row(Distances, A, Nodes, Matrix#{pair(A, B) => D});
        _ -> {error, {no_distance, A, B}}
    end.

distance(Map, A, B) when is_map(Map) ->
    case Map of
        #{A := #{B := D}} -> D;
        #{B := #{A := D}} -> D;
        _ -> none
    end;
distance(Fun, A, B) -> Fun(A, B).

pair(A, B) when A < B -> {A, B};
pair(A, B) -> {B, A}.

-doc """
Traffic by pairs of nodes, each with the lesser first; what a node sends to itself is left out.
""".
-spec pairs(sderl_pattern:traffic()) -> {ok, weights()} | {error, sderl_pattern:reason()}.
pairs(Traffic) -> pairs(Traffic, #{}).

pairs([], Weights) -> {ok, Weights};
pairs([{From, To, Rate} | Rest], Weights) when is_number(Rate), Rate >= 0 ->
    case {set(From), set(To)} of
        {[_ | _] = As, [_ | _] = Bs} ->
            Pairs = [pair(A, B) || A <- As, B <- Bs, A =/= B],
            Share = Rate / max(1, length(Pairs)),
            pairs(Rest, lists:foldl(fun(P, W) ->
                maps:update_with(P, fun(X) -> X + Share end, Share, W)
            end, Weights, Pairs));
        _ -> {error, {bad_traffic, {From, To, Rate}}}
    end;
pairs([Row | _], _) -> {error, {bad_traffic, Row}};
pairs(Other, _) -> {error, {bad_traffic, Other}}.

set(Node) when is_atom(Node) -> [Node];
set(Nodes) when length(Nodes) >= 0 ->
    case lists:all(fun is_atom/1, Nodes) of true -> lists:usort(Nodes); false -> [] end;
set(_) -> [].

%% ---------------------------------------------------------------- clusters

%% Pairs of nodes, nearest first.
nearest(Sorted, Nodes, Most) ->
    Of = #{N => N || N <- Nodes},
    {_, Clusters} = lists:foldl(fun({_, A, B}, {O, Cs} = Acc) ->
        case {map_get(A, O), map_get(B, O)} of
            {C, C} -> Acc;
            {C, D} ->
                #{C := As, D := Bs} = Cs,
                case length(As) + length(Bs) =< Most of
                    true ->
                        {lists:foldl(fun(N, M) -> M#{N := C} end, O, Bs),
                         maps:remove(D, Cs#{C := As ++ Bs})};
                    false -> Acc
                end
        end
    end, {Of, #{N => [N] || N <- Nodes}}, Sorted),
    in_order(maps:values(Clusters), Nodes).

%% Clusters that have the most traffic for each pair of their nodes. `Links` holds for each cluster
%% the others it talks to.
busiest(Weights, Nodes, Most) ->
    Links = maps:fold(fun({A, B}, W, M) ->
        M#{A := (map_get(A, M))#{B => W}, B := (map_get(B, M))#{A => W}}
    end, #{N => #{} || N <- Nodes}, Weights),
    Queue = gb_sets:from_list([{-W, A, B} || {A, B} := W <- Weights, W > 0]),
    merge(Queue, Links, #{N => [N] || N <- Nodes}, Nodes, Most).

merge(Queue0, Links, Clusters, Nodes, Most) ->
    case gb_sets:is_empty(Queue0) of
        true -> in_order(maps:values(Clusters), Nodes);
        false ->
            {{Key, A, B}, Queue} = gb_sets:take_smallest(Queue0),
            case {Clusters, Links} of
                {#{A := As, B := Bs}, #{A := #{B := W}}}
                  when length(As) + length(Bs) =< Most, Key =:= -(W / (length(As) * length(Bs)));
                       length(As) + length(Bs) =< Most, length(As) =:= 1, length(Bs) =:= 1 ->
                    {Queue1, Links1, Clusters1} =
                        merged(A, B, Queue, Links, Clusters#{A := As ++ Bs}),
                    merge(Queue1, Links1, Clusters1, Nodes, Most);
                %% The clusters have changed since, or are too large together.
                _ -> merge(Queue, Links, Clusters, Nodes, Most)
            end
    end.

merged(A, B, Queue, Links, Clusters) ->
    #{A := ToA, B := ToB} = Links,
    To = maps:without([A, B], maps:merge_with(fun(_, X, Y) -> X + Y end, ToA, ToB)),
    Others = maps:map(fun(C, L) ->
        case To of #{C := W} -> (maps:remove(B, L))#{A => W}; _ -> L end
    end, maps:remove(B, Links)),
    #{A := As} = Clusters,
    Queued = maps:fold(fun(C, W, Q) ->
        {X, Y} = pair(A, C),
        gb_sets:add({-(W / (length(As) * length(map_get(C, Clusters)))), X, Y}, Q)
    end, Queue, To),
    {Queued, Others#{A := To}, maps:remove(B, Clusters)}.

%% In the order in which the nodes were given, so that equal input gives equal plans.
in_order(Clusters, Nodes) ->
    Place = maps:from_list([{N, I} || {I, N} <- lists:enumerate(Nodes)]),
    By = fun(A, B) -> map_get(A, Place) =< map_get(B, Place) end,
    lists:sort(fun(A, B) ->
        {-length(A), map_get(hd(A), Place)} =< {-length(B), map_get(hd(B), Place)}
    end,
               [lists:sort(By, C) || C <- Clusters]).

%% ---------------------------------------------------------------- into groups

%% The largest clusters open the bins; the others go where their affinity is greatest.
pack(Clusters, Bins, Weights, Affinity) ->
    Empty = [{Id, Most, []} || {Id, _, Most} <- Bins],
    Filled = lists:foldl(fun(Cluster, Bs) -> put_in(Cluster, Bs, Weights, Affinity) end, Empty,
                         Clusters),
    level(#{Id => Ns || {Id, _, Ns} <- Filled}, #{Id => Least || {Id, Least, _} <- Bins}).

put_in(Cluster, Bins, Weights, Affinity) ->
    Size = length(Cluster),
    case [Id || {Id, Most, []} <- Bins, Most >= Size] of
        [Id | _] -> into(Id, Cluster, Bins);
        [] ->
            case [{Affinity(Cluster, Ns, Weights), length(Ns), Id}
                  || {Id, Most, Ns} <- Bins, Most - length(Ns) >= Size] of
                %% The greatest affinity, then the most room.
                [_ | _] = Room ->
                    {_, _, Id} = lists:last(
                        lists:sort(fun({A, L, _}, {B, M, _}) -> {A, -L} =< {B, -M} end, Room)
                    ),
                    into(Id, Cluster, Bins);
                [] ->
                    {One, Rest} = lists:split(1, Cluster),
                    put_in(Rest, put_in(One, Bins, Weights, Affinity), Weights, Affinity)
            end
    end.

into(Id, Cluster, Bins) ->
    [case B of {Id, Most, Ns} -> {Id, Most, Ns ++ Cluster}; _ -> B end || B <- Bins].

mean(As, Bs, Weights) -> sum(As, Bs, Weights) / max(1, length(As) * length(Bs)).

sum(As, Bs, Weights) -> lists:sum([maps:get(pair(A, B), Weights, 0) || A <- As, B <- Bs]).

%% A cell with too few nodes gets some from the cell with most to spare.
level(Homes, Least) ->
    case [Id || Id := Ns <- Homes, length(Ns) < map_get(Id, Least)] of
        [] -> Homes;
        [Poor | _] ->
            {_, Rich} = lists:max([{length(Ns) - map_get(Id, Least), Id} || Id := Ns <- Homes]),
            #{Poor := Few, Rich := Many} = Homes,
            {Kept, [Moved]} = lists:split(length(Many) - 1, Many),
            level(Homes#{Poor := Few ++ [Moved], Rich := Kept}, Least)
    end.
