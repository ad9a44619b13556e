%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_matrix).
-moduledoc false.
%% From the measured round trips to a value for each pair of nodes. There are three kinds:
%%
%% - `measured`, on a link.
%% - `estimated`, of two members of one group that did not probe each other, as each probes only
%%   some in large groups: over all ways between the two on measured legs of the group, the least of
%%   what is the longest leg of each. In an ultrametric nothing is nearer than that, and it is the
%%   value itself where what was measured inside of each cluster hangs together. (A sum of legs
%%   would be too large by far, and one such pair is enough to tear a cluster apart.)
%% - `composed`, of two nodes that share no group: the shortest sum of legs over gateways, nodes of
%%   two groups or more, as a message between the two would travel. (What the gateways need for
%%   passing it on is not in it.) The same over any nodes where even that is missing.

-export([complete/3]).
-export_type([leg/0, kind/0]).

-doc """
A round trip that was measured, in whole nanoseconds, so that sums do not depend on their order.
""".
-type leg() :: {node(), node(), Ns :: number()}.
-type kind() :: measured | estimated | composed.

-doc """
The matrix, how many pairs of each kind are in it, and the nodes that no leg connects with `From`.
Those are not in the matrix.
""".
-spec complete([leg()], Groups :: [[node()]], From :: node()) ->
    {sderl_dist_cluster:matrix(), #{kind() => non_neg_integer()}, Unconnected :: [node()]}.
complete(Legs, Groups, From) ->
    Measured = measured(Legs),
    %% Over any nodes: shows which nodes are connected at all, and is the last resort.
    Reached = shortest(From, Measured, fun(_) -> true end),
    Known = lists:usort([From | lists:append(Groups) ++ maps:keys(Measured)]),
    {Nodes, Unconnected} = lists:partition(fun(Node) -> is_map_key(Node, Reached) end, Known),
    Linked = linked(Nodes, Groups, Measured),
    Gateways = gateways(Groups),
    Kinds = #{Kind => 0 || Kind <- [measured, estimated, composed]},
    {Rows, Counts} = lists:mapfoldl(fun(Node, Acc) ->
        Own = maps:get(Node, Linked, #{}),
        %% Only nodes that share no group with this one need composed values.
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

%% The lesser value if both ends measured.
measured(Legs) ->
    lists:foldl(fun({A, B, Ns}, Acc) -> put(A, B, Ns, put(B, A, Ns, Acc)) end, #{},
                [L || {A, B, _} = L <- Legs, A =/= B]).

put(A, B, Ns, Rows) ->
    Row = maps:get(A, Rows, #{}),
    Rows#{A => Row#{B => min(Ns, maps:get(B, Row, Ns))}}.

gateways(Groups) ->
    Counts = lists:foldl(fun(Node, Acc) -> maps:update_with(Node, fun(C) -> C + 1 end, 1, Acc) end,
                         #{}, lists:append([lists:usort(G) || G <- Groups])),
    #{Node => true || Node := Count <- Counts, Count > 1}.

%% Measured legs, and for pairs of mates without one an estimate by the others.
linked(Nodes, Groups, Measured) ->
    Guessed = lists:foldl(fun(Group, Acc) ->
        lists:foldl(fun({A, B, Ns}, Acc1) -> put(A, B, Ns, put(B, A, Ns, Acc1)) end, Acc,
                    bottlenecks(lists:usort(Group), Measured))
    end, #{}, Groups),
    #{Node => maps:merge(
        #{Other => {estimated, Ns} || Other := Ns <- maps:get(Node, Guessed, #{})},
        #{Other => {measured, Ns} || Other := Ns <- maps:get(Node, Measured, #{})}
    ) || Node <- Nodes}.

%% The shortest legs first: a leg that joins two parts is the longest on the best way between any
%% two of their nodes.
bottlenecks(Group, Measured) ->
    Members = #{Node => true || Node <- Group},
    Legs = lists:sort([{Ns, A, B}
                       || A <- Group, B := Ns <- maps:get(A, Measured, #{}), A < B,
                          is_map_key(B, Members)]),
    {_, _, Pairs} = lists:foldl(fun({Ns, A, B}, {Part, Parts, Pairs}) ->
        case {map_get(A, Part), map_get(B, Part)} of
            {Same, Same} -> {Part, Parts, Pairs};
            {PartA, PartB} ->
                #{PartA := As, PartB := Bs} = Parts,
                {maps:merge(Part, #{Node => PartA || Node <- Bs}),
                 maps:remove(PartB, Parts#{PartA := As ++ Bs}),
                 [{X, Y, Ns} || X <- As, Y <- Bs] ++ Pairs}
        end
    end, {#{Node => Node || Node <- Group}, #{Node => [Node] || Node <- Group}, []}, Legs),
    Pairs.

values(Linked) -> #{Node => #{Other => Ns || Other := {_, Ns} <- Row} || Node := Row <- Linked}.

%% Dijkstra's shortest paths from one node, going on only from nodes of which Passes is true.
shortest(From, Rows, Passes) ->
    shortest(gb_sets:singleton({0, From}), #{}, Rows,
             fun(Node) -> Node =:= From orelse Passes(Node) end).

shortest(Queue, Done, Rows, Passes) ->
    case gb_sets:is_empty(Queue) of
        true -> Done;
        false ->
            case gb_sets:take_smallest(Queue) of
                {{_, Node}, Queue1} when is_map_key(Node, Done) ->
                    shortest(Queue1, Done, Rows, Passes);
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
