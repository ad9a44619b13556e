%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_matrix).
-moduledoc false.
%% From the round trips that were measured to one for each pair of nodes. There are three kinds:
%%
%% - `measured`, on a link.
%% - `estimated`, of two members of one group that did not probe each other, as each probes only some in large groups:
%%   the least over all nodes that both have a measurement with, of the larger of the two. In an ultrametric that is an
%%   upper bound, and the value itself if that node is as near as any.
%% - `composed`, of two nodes that share no group: the shortest sum of legs over gateways, nodes of two groups
%%   or more, as a message between the two would travel. (What the gateways need for passing it on is not in
%%   it.) The same over any nodes where even that is missing.

-export([complete/3]).
-export_type([leg/0, kind/0]).

-doc "A round trip that was measured, in whole nanoseconds, so that sums do not depend on their order.".
-type leg() :: {node(), node(), Ns :: number()}.
-type kind() :: measured | estimated | composed.

-doc """
The matrix, how many pairs of each kind are in it, and the nodes that no leg connects with `From`. Those are not in the matrix.
""".
-spec complete([leg()], Groups :: [[node()]], From :: node()) ->
    {sderl_dist_cluster:matrix(), #{kind() => non_neg_integer()}, Unconnected :: [node()]}.
complete(Legs, Groups, From) ->
    Measured = measured(Legs),
    %% Over any nodes: says who is there at all, and is the last resort.
    Reached = shortest(From, Measured, fun(_) -> true end),
    Known = lists:usort([From | lists:append(Groups) ++ maps:keys(Measured)]),
    {Nodes, Unconnected} = lists:partition(fun(Node) -> is_map_key(Node, Reached) end, Known),
    Mates = mates(Groups),
    Linked = estimated(Nodes, Mates, Measured),
    Gateways = gateways(Groups),
    Kinds = #{Kind => 0 || Kind <- [measured, estimated, composed]},
    {Rows, Counts} = lists:mapfoldl(fun(Node, Acc) ->
        Own = maps:get(Node, Linked, #{}),
        %% A member of no other node's group needs no way around.
        Around = case [N || N <- Nodes, N =/= Node, not is_map_key(N, Own)] of
            [] -> #{};
            _ -> shortest(Node, values(Linked), fun(N) -> is_map_key(N, Gateways) end)
        end,
        {Row, Acc1} = lists:mapfoldl(fun(Other, Acc0) ->
            {Kind, Ns} = case {Own, Around, Reached} of
                {#{Other := Direct}, _, _} -> Direct;
                {_, #{Other := Sum}, _} -> {composed, Sum};
                {_, _, #{Node := There, Other := Back}} -> {composed, There + Back}
            end,
            {{Other, Ns}, maps:update_with(Kind, fun(C) -> C + 1 end, Acc0)}
        end, Acc, Nodes -- [Node]),
        {{Node, maps:from_list(Row)}, Acc1}
    end, Kinds, Nodes),
    {maps:from_list(Rows), #{Kind => Count div 2 || Kind := Count <- Counts}, Unconnected}.

%% The least, where both ends measured.
measured(Legs) ->
    lists:foldl(fun({A, B, Ns}, Acc) -> put(A, B, Ns, put(B, A, Ns, Acc)) end, #{}, [L || {A, B, _} = L <- Legs, A =/= B]).

put(A, B, Ns, Rows) ->
    Row = maps:get(A, Rows, #{}),
    Rows#{A => Row#{B => min(Ns, maps:get(B, Row, Ns))}}.

mates(Groups) ->
    lists:foldl(fun(Group, Acc) ->
        Members = #{Node => true || Node <- Group},
        lists:foldl(fun(Node, Acc1) -> Acc1#{Node => maps:merge(maps:get(Node, Acc1, #{}), Members)} end, Acc, Group)
    end, #{}, Groups).

gateways(Groups) ->
    Counts = lists:foldl(fun(Node, Acc) -> maps:update_with(Node, fun(C) -> C + 1 end, 1, Acc) end, #{},
                         lists:append([lists:usort(G) || G <- Groups])),
    #{Node => true || Node := Count <- Counts, Count > 1}.

%% Measured legs with those that can be told from them.
estimated(Nodes, Mates, Measured) ->
    #{Node => begin
        Row = maps:get(Node, Measured, #{}),
        Missing = [M || M := _ <- maps:get(Node, Mates, #{}), M =/= Node, not is_map_key(M, Row)],
        Guesses = #{Mate => {estimated, Ns} || Mate <- Missing, Ns <- between(Row, maps:get(Mate, Measured, #{}))},
        maps:merge(Guesses, #{Other => {measured, Ns} || Other := Ns <- Row})
    end || Node <- Nodes}.

between(RowA, RowB) ->
    case [max(Ns, map_get(Node, RowB)) || Node := Ns <- RowA, is_map_key(Node, RowB)] of
        [] -> [];
        Larger -> [lists:min(Larger)]
    end.

values(Linked) -> #{Node => #{Other => Ns || Other := {_, Ns} <- Row} || Node := Row <- Linked}.

%% Dijkstra's shortest paths from one node, going on only from nodes of which Passes is true.
shortest(From, Rows, Passes) ->
    shortest(gb_sets:singleton({0, From}), #{}, Rows, fun(Node) -> Node =:= From orelse Passes(Node) end).

shortest(Queue, Done, Rows, Passes) ->
    case gb_sets:is_empty(Queue) of
        true -> Done;
        false ->
            case gb_sets:take_smallest(Queue) of
                {{_, Node}, Queue1} when is_map_key(Node, Done) -> shortest(Queue1, Done, Rows, Passes);
                {{Ns, Node}, Queue1} ->
                    Next = case Passes(Node) of
                        true -> maps:get(Node, Rows, #{});
                        false -> #{}
                    end,
                    Queue2 = maps:fold(fun(Other, Leg, Q) ->
                        case is_map_key(Other, Done) of
                            true -> Q;
                            false -> gb_sets:add({Ns + Leg, Other}, Q)
                        end
                    end, Queue1, Next),
                    shortest(Queue2, Done#{Node => Ns}, Rows, Passes)
            end
    end.
