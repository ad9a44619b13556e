%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_tree).
-moduledoc """
The tree of communication distances, as a value.

Nodes are the leaves. Two nodes are the closer, the more edges the paths from the root to them
share: with `l` shared edges their distance is `2^-l`, so 1.0 where they have only the root in
common, and 0.0 from a node to itself. This is an *ultrametric*: of three distances between three
nodes the two largest are equal. It means that around a node there are discs within discs
(machine, rack, site, ...), each of which has the same members for all its members.

A distance depends on how deep the branch is, not on how many nodes are in it. Where branches are of
different depth, equal distances in two of them need not mean the same to a stopwatch.

Source: the `dist` library published with SD Erlang (Chechina et al., *Evaluating Scalable
Distributed Erlang*, IEEE TPDS 2017; reference to its format in `m:sderl_dist`).
""".

-export([parse/1, empty/0]).
-export([term/1, root/1, nodes/1, distance/3, distances/3, nearest/3, max/1, min/1]).

-export_type([t/0, network/0, vertex/0, error/0, path/0]).

-doc "The published format: an inner vertex, with or without a name, or a node.".
-type network() ::
    {network, [network()]}
    | {network, Name :: term(), [network()]}
    | {node, node()}.

-doc """
A vertex as a picture needs it. Vertices without a name are numbered in the order of the text.
""".
-type vertex() :: {vertex, Name :: term(), [vertex()]} | {leaf, node()}.

-doc "Positions of elements, outermost first: `[2, 1]` is the first element of the second.".
-type path() :: [pos_integer() | node].

-doc """
Where the bad term stands, the term, and what should be there (`m:sderl_dist` has the words).
""".
-type error() :: {bad_network, path(), Found :: term(), Expected :: atom() | {unique_node, path()}}.

%% The places are what distances are computed from: for each node the vertices above it, from the
%% root down, by number.
-opaque t() :: #{
    term := network(),
    root := vertex(),
    nodes := [node()],
    places := #{node() => [non_neg_integer()]},
    max := float(),
    min := float()
}.

%% 2^-l is above zero down to there, with room.
-define(DEEPEST, 1000).

-doc "The tree without nodes: what there is until another is set.".
-spec empty() -> t().
empty() ->
    {ok, Tree} = parse({network, []}),
    Tree.

-doc "Checks a term and makes a tree of it. A vertex may be empty; no node may be there twice.".
-spec parse(term()) -> {ok, t()} | {error, error()}.
parse(Term) ->
    maybe
        {ok, Root, Seen} ?= vertex(Term, [], #{}),
        {Named, _} = number(Root, 1),
        {Places, _} = places(Root, [], #{}, 0),
        Spans = spans(Root),
        {ok, #{
            term => Term,
            root => Named,
            nodes => lists:reverse(leaves(Root, [])),
            places => maps:with(maps:keys(Seen), Places),
            max => distance(lists:min([none | Spans])),
            min => distance(lists:max([-1 | Spans]))
        }}
    end.

%% Reading: the path is kept innermost first. `anonymous` until the vertices are numbered.

vertex({node, Node}, Path, Seen) when is_atom(Node) ->
    case Seen of
        #{Node := First} -> bad([node | Path], Node, {unique_node, lists:reverse(First)});
        #{} -> {ok, {leaf, Node}, Seen#{Node => Path}}
    end;
vertex({node, Other}, Path, _) ->
    bad([node | Path], Other, node_name);
vertex(Term, Path, _) when length(Path) >= ?DEEPEST ->
    bad(Path, Term, less_depth);
vertex({network, Inner}, Path, Seen) ->
    inner({network, Inner}, anonymous, Inner, Path, Seen);
vertex({network, Name, Inner}, Path, Seen) ->
    inner({network, Name, Inner}, {name, Name}, Inner, Path, Seen);
vertex(Other, Path, _) ->
    bad(Path, Other, network).

inner(Term, Name, Inner, Path, Seen) ->
    %% length/1 is a guard here: it fails on an improper list.
    case Inner of
        _ when length(Inner) >= 0 ->
            maybe
                {ok, Vertices, Seen1} ?= each(Inner, 1, Path, Seen, []),
                {ok, {vertex, Name, Vertices}, Seen1}
            end;
        _ ->
            bad(Path, Term, network)
    end.

each([], _, _, Seen, Vertices) ->
    {ok, lists:reverse(Vertices), Seen};
each([Term | Terms], Position, Path, Seen, Vertices) ->
    maybe
        {ok, Vertex, Seen1} ?= vertex(Term, [Position | Path], Seen),
        each(Terms, Position + 1, Path, Seen1, [Vertex | Vertices])
    end.

bad(Path, Found, Expected) ->
    {error, {bad_network, lists:reverse(Path), Found, Expected}}.

%% As published, `<v1>`, `<v2>`, ...; a text, as no more atoms should be made than there are.
number({leaf, _} = Leaf, Next) ->
    {Leaf, Next};
number({vertex, anonymous, Inner}, Next) ->
    {Numbered, After} = lists:mapfoldl(fun number/2, Next + 1, Inner),
    {{vertex, <<"<v", (integer_to_binary(Next))/binary, ">">>, Numbered}, After};
number({vertex, {name, Name}, Inner}, Next) ->
    {Numbered, After} = lists:mapfoldl(fun number/2, Next, Inner),
    {{vertex, Name, Numbered}, After}.

leaves({leaf, Node}, Nodes) -> [Node | Nodes];
leaves({vertex, _, Inner}, Nodes) -> lists:foldl(fun leaves/2, Nodes, Inner).

places({leaf, Node}, Above, Places, Next) ->
    {Places#{Node => lists:reverse(Above)}, Next};
places({vertex, _, Inner}, Above, Places, Next) ->
    lists:foldl(
        fun(Vertex, {Acc, Free}) -> places(Vertex, [Next | Above], Acc, Free) end,
        {Places, Next + 1},
        Inner
    ).

%% The depths at which paths of two nodes part: those of vertices with nodes on two branches or
%% more.
spans(Root) ->
    {_, Spans} = spans(Root, 0, []),
    Spans.

spans({leaf, _}, _, Spans) ->
    {true, Spans};
spans({vertex, _, Inner}, Depth, Spans) ->
    {Populated, Below} = lists:foldl(
        fun(Vertex, {Count, Acc}) ->
            case spans(Vertex, Depth + 1, Acc) of
                {true, Acc1} -> {Count + 1, Acc1};
                {false, Acc1} -> {Count, Acc1}
            end
        end,
        {0, Spans},
        Inner
    ),
    {Populated > 0, [Depth || Populated > 1] ++ Below}.

%% Questions

-doc "The term that the tree was made of.".
-spec term(t()) -> network().
term(#{term := Term}) -> Term.

-doc "The tree from its root, with a name for each vertex.".
-spec root(t()) -> vertex().
root(#{root := Root}) -> Root.

-doc "All nodes, in the order of the text.".
-spec nodes(t()) -> [node()].
nodes(#{nodes := Nodes}) -> Nodes.

-doc "How far apart two nodes are: 0.0 to 1.0.".
-spec distance(node(), node(), t()) -> float() | {error, {node_not_found, node()}}.
distance(A, B, #{places := Places}) ->
    case Places of
        #{A := _} when A =:= B -> 0.0;
        #{A := PlaceA, B := PlaceB} -> apart(PlaceA, PlaceB);
        #{A := _} -> {error, {node_not_found, B}};
        #{} -> {error, {node_not_found, A}}
    end.

-doc """
The same from one node to many. Nodes that the tree does not have are left out, and so are all if it
lacks the first.
""".
-spec distances(From :: node(), [node()], t()) -> #{node() => float()}.
distances(From, Nodes, #{places := Places}) ->
    case Places of
        #{From := Place} ->
            #{Node => case Node of
                From -> 0.0;
                _ -> apart(Place, map_get(Node, Places))
            end || Node <- Nodes, is_map_key(Node, Places)};
        #{} ->
            #{}
    end.

-doc """
The nodes that are nearest to one: several if equally near. Nodes that the tree does not have are
farther than any other; if it lacks the first, all are.
""".
-spec nearest(From :: node(), [node()], t()) -> [node()].
nearest(From, Nodes, #{places := Places}) ->
    case Places of
        #{From := Above} ->
            nearest(Nodes, From, lists:nthtail(min(1, length(Above)), Above), Places, -1, []);
        #{} -> Nodes
    end.

%% The depth at which a place parts from the first one decides as the distance does.
nearest([], _, _, _, _, Nearest) ->
    lists:reverse(Nearest);
nearest([Node | Nodes], From, Place, Places, Deepest, Nearest) ->
    Depth =
        case Places of
            #{Node := _} when Node =:= From -> ?DEEPEST + 1;
            #{Node := [_ | Other]} -> shared(Place, Other, 0);
            #{} -> -1
        end,
    if
        Depth > Deepest -> nearest(Nodes, From, Place, Places, Depth, [Node]);
        Depth =:= Deepest -> nearest(Nodes, From, Place, Places, Deepest, [Node | Nearest]);
        true -> nearest(Nodes, From, Place, Places, Deepest, Nearest)
    end.

-doc """
The largest distance of two nodes: 1.0 if the root has nodes on two branches. 0.0 if there are less
than two nodes.
""".
-spec max(t()) -> float().
max(#{max := Max}) -> Max.

-doc "The least distance of two distinct nodes; 0.0 if there are less than two.".
-spec min(t()) -> float().
min(#{min := Min}) -> Min.

%% The root is always shared.
apart([_ | A], [_ | B]) -> distance(shared(A, B, 0)).

shared([Vertex | A], [Vertex | B], Count) -> shared(A, B, Count + 1);
shared(_, _, Count) -> Count.

%% No depth: no two nodes.
distance(Depth) when is_integer(Depth), Depth >= 0 -> math:pow(0.5, Depth);
distance(_) -> 0.0.
