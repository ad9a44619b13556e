%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_cluster).
-moduledoc false.
%% From a matrix of round trips to a tree: hierarchical clustering with complete linkage, as the
%% published library was validated, and the dendrogram cut into levels.
%%
%% Complete linkage: the distance of two clusters is the largest of their members'. So a cluster at
%% height `h` has no two members further apart than `h`, which is what a disc is.
%%
%% Clustering follows chains of nearest neighbours: from any cluster to its nearest, to that one's
%% nearest, and so on, until two are each other's; these are merged, and the chain goes on from
%% before them. With complete linkage a merge makes nothing nearer, so what is left of the chain is
%% still one. Each step looks at one row, and there are at most 3n of them: O(n^2) comparisons, and
%% as many updates of the matrix.
%%
%% A dendrogram has up to n - 1 heights, which are mostly noise. Levels are the heights between two
%% natural gaps: places in the ordered heights where the next one is `gap` times as large or more (2
%% by default: the published tree halves distances from level to level) and larger by the resolution
%% at least. The tree has a vertex for each cluster at each level, so that one level is one distance
%% everywhere in the tree.

-export([dendrogram/1, pairs/1, levels/3, tree/3]).
-export_type([matrix/0, dendrogram/0, level/0]).

-doc "A row for each node; symmetric and complete.".
-type matrix() :: #{node() => #{node() => number()}}.

-type dendrogram() :: {node, node()} | {merge, Height :: number(), dendrogram(), dendrogram()}.

-doc "The least and the largest height of a level.".
-type level() :: {number(), number()}.

-spec dendrogram(matrix()) -> none | dendrogram().
dendrogram(Matrix) when map_size(Matrix) =:= 0 -> none;
dendrogram(Matrix) ->
    %% Small numbers as names are quicker, and their order decides ties: the same matrix gives the
    %% same tree.
    Nodes = lists:enumerate(lists:sort(maps:keys(Matrix))),
    Ids = #{Node => Id || {Id, Node} <- Nodes},
    Rows = #{Id => #{map_get(Other, Ids) => D
                     || Other := D <- map_get(Node, Matrix), Other =/= Node}
             || {Id, Node} <- Nodes},
    chain([], Rows, #{Id => {node, Node} || {Id, Node} <- Nodes}, length(Nodes) + 1).

chain(_, Rows, Clusters, _) when map_size(Rows) =:= 1 ->
    [Dendrogram] = maps:values(Clusters),
    Dendrogram;
chain([], Rows, Clusters, Next) ->
    chain([lists:min(maps:keys(Rows))], Rows, Clusters, Next);
chain([Top | Below] = Chain, Rows, Clusters, Next) ->
    case {nearest(Below, map_get(Top, Rows)), Below} of
        {{Height, Mate}, [Mate | Rest]} ->
            #{Top := Right, Mate := Left} = Clusters,
            Merged = Clusters#{Next => {merge, Height, Left, Right}},
            chain(Rest, merge(Top, Mate, Next, Rows), maps:without([Top, Mate], Merged), Next + 1);
        {{_, Mate}, _} ->
            chain([Mate | Chain], Rows, Clusters, Next)
    end.

%% The one below in the chain if it is as near as any: otherwise ties could lead in circles.
nearest([Before | _], Row) -> nearest({map_get(Before, Row), 0, Before}, maps:to_list(Row));
nearest([], Row) -> nearest({infinity, none, none}, maps:to_list(Row));
nearest({D, _, Id}, []) -> {D, Id};
nearest({D, Rank, _}, [{Id, Less} | Row]) when Less < D; Less =:= D, Id < Rank ->
    nearest({Less, Id, Id}, Row);
nearest(Best, [_ | Row]) -> nearest(Best, Row).

merge(A, B, New, Rows) ->
    {RowA, Rows1} = maps:take(A, Rows),
    {RowB, Rows2} = maps:take(B, Rows1),
    Row = #{Id => max(D, map_get(Id, RowB)) || Id := D <- RowA, Id =/= B},
    Others = maps:map(fun(Id, R) ->
        (maps:remove(A, maps:remove(B, R)))#{New => map_get(Id, Row)}
    end, Rows2),
    Others#{New => Row}.

-doc "The height at which each two nodes meet.".
-spec pairs(none | dendrogram()) -> [{node(), node(), Height :: number()}].
pairs(none) -> [];
pairs(Dendrogram) ->
    {_, Pairs} = pairs(Dendrogram, []),
    Pairs.

pairs({node, Node}, Acc) -> {[Node], Acc};
pairs({merge, Height, Left, Right}, Acc) ->
    {As, Acc1} = pairs(Left, Acc),
    {Bs, Acc2} = pairs(Right, Acc1),
    {As ++ Bs, [{A, B, Height} || A <- As, B <- Bs] ++ Acc2}.

-doc """
The levels of a dendrogram, least first: between them the heights grow by a factor and a difference.
""".
-spec levels(none | dendrogram(), Gap :: number(), Resolution :: number()) -> [level()].
levels(none, _, _) -> [];
levels(Dendrogram, Gap, Resolution) -> cut(lists:usort(heights(Dendrogram, [])), Gap, Resolution).

heights({node, _}, Heights) -> Heights;
heights({merge, Height, Left, Right}, Heights) -> heights(Left, heights(Right, [Height | Heights])).

cut([], _, _) -> [];
cut([Height | Heights], Gap, Resolution) -> cut(Heights, {Height, Height}, Gap, Resolution).

cut([], Level, _, _) -> [Level];
cut([H | Hs], {Least, Most}, Gap, Resolution) when H >= Most * Gap, H - Most >= Resolution ->
    [{Least, Most} | cut(Hs, {H, H}, Gap, Resolution)];
cut([H | Hs], {Least, _}, Gap, Resolution) -> cut(Hs, {Least, H}, Gap, Resolution).

-doc """
The tree in the published format. `Name` names the vertices of a level, which is given by its number
from 1, the nearest.
""".
-spec tree(none | dendrogram(), [level()], fun((pos_integer()) -> term())) ->
    sderl_dist_tree:network().
tree(none, _, _) -> {network, []};
tree({node, Node}, _, _) -> {network, [{node, Node}]};
tree(Dendrogram, Levels, Name) ->
    {_, Tree} = vertex(Dendrogram, length(Levels), [Most || {_, Most} <- Levels], Name),
    Tree.

%% With its least node, by which vertices are put in order.
vertex({node, Node}, _, _, _) -> {Node, {node, Node}};
vertex(Dendrogram, Level, Bounds, Name) ->
    Parts = lists:sort([vertex(Part, Level - 1, Bounds, Name)
                        || Part <- parts(Dendrogram, below(Level, Bounds))]),
    {element(1, hd(Parts)), {network, Name(Level), [Vertex || {_, Vertex} <- Parts]}}.

below(1, _) -> -1;
below(Level, Bounds) -> lists:nth(Level - 1, Bounds).

parts({merge, Height, Left, Right}, Below) when Height > Below ->
    parts(Left, Below) ++ parts(Right, Below);
parts(Part, _) -> [Part].
