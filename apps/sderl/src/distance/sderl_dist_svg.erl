%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_svg).
-moduledoc false.
%% A tree of distances as a picture: a dendrogram from left to right, each node with a row of its
%% own in a column at the right, above it a scale. A vertical line is a vertex; it stands at the
%% distance of the nodes that part there.
%%
%% Nothing lies on anything else, whatever the tree: a node or an empty vertex has a row, so two
%% vertices of one depth are a row apart at least; a vertex's name lies on the line that leads to
%% it, in a column as wide as the longest such name.

-export([draw/2]).

-define(ROW, 20).
%% Common monospaced fonts are 0.6 of their size wide, and this is a little more of the size in
%% style().
-define(CHAR, 7.4).
-define(PAD, 10).
-define(MARGIN, 16).
-define(LONGEST, 40).
%% From so many rows on the scale is repeated below.
-define(TALL, 40).

%% Rows count from 0; a vertex may be between two.
-record(leaf, {label :: string(), row :: number()}).
-record(inner, {
    label :: string(), depth :: non_neg_integer(), row :: number(), nodes :: non_neg_integer(),
    below :: [#leaf{} | #inner{}]
}).

-spec draw(sderl_dist_tree:vertex(), Title :: unicode:chardata()) -> unicode:chardata().
draw(Root, Title) ->
    {Placed, Rows} = place(Root, 0, 0),
    Columns = columns(Placed),
    %% The word "distance" stands above them.
    {Names, Leaf} = {max(80, names_width(Placed)), x(leaf, Columns)},
    Top = ?MARGIN + 24 * length([title || not string:is_empty(Title)]),
    First = Top + 36,
    Last = First + ?ROW * (max(1, Rows) - 1),
    Tall = Rows >= ?TALL,
    Height = Last + ?ROW + ?MARGIN + 20 * length([tall || Tall]),
    Width = max(Leaf + Names + ?MARGIN, ?MARGIN * 2 + width(Title)),
    Place = {Columns, First, Names},
    [
        io_lib:format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"~b\" height=\"~b\" "
                      "viewBox=\"0 0 ~b ~b\" "
                      "role=\"img\">\n", [ceil(Width), Height, ceil(Width), Height]),
        ["<title>",
         escape(case string:is_empty(Title) of true -> "Distances of nodes"; false -> Title end),
         "</title>\n"],
        style(),
        "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
        [text(?MARGIN, ?MARGIN + 10, "title", Title) || not string:is_empty(Title)],
        scale(Columns, Top + 10, First - 14, Last + 14),
        [scale_numbers(Columns, Last + ?ROW + 18) || Tall],
        item(Placed, Place),
        "</svg>\n"
    ].

%% ---------------------------------------------------------------- places

place({leaf, Node}, Row, _) ->
    {#leaf{label = label(Node), row = Row}, Row + 1};
place({vertex, Name, []}, Row, Depth) ->
    {#inner{label = label(Name), depth = Depth, row = Row, nodes = 0, below = []}, Row + 1};
place({vertex, Name, Inner}, Row, Depth) ->
    {Below, Next} = lists:mapfoldl(fun(V, Free) -> place(V, Free, Depth + 1) end, Row, Inner),
    Middle = (row(hd(Below)) + row(lists:last(Below))) / 2,
    {#inner{label = label(Name), depth = Depth, row = Middle,
            nodes = lists:sum([nodes_of(B) || B <- Below]), below = Below}, Next}.

row(#leaf{row = Row}) -> Row;
row(#inner{row = Row}) -> Row.

nodes_of(#leaf{}) -> 1;
nodes_of(#inner{nodes = Nodes}) -> Nodes.

label(Name) -> unicode:characters_to_list(sderl_dist_dot:label(Name)).

short(Label) ->
    case string:length(Label) > ?LONGEST of
        true -> string:slice(Label, 0, ?LONGEST - 1) ++ [16#2026];
        false -> Label
    end.

%% Where the vertices of each depth stand, and the nodes: x by depth, with `leaf` for those.
columns(Placed) ->
    Widths = widths(Placed, #{}),
    Deepest = maps:size(Widths) - 1,
    {Columns, End} = lists:foldl(fun(Depth, {Acc, X}) ->
        At = X + max(40, map_get(Depth, Widths) + 2 * ?PAD),
        {Acc#{Depth => At}, At}
    end, {#{}, ?MARGIN}, lists:seq(0, Deepest)),
    Columns#{leaf => End + 44}.

widths(#leaf{}, Widths) ->
    Widths;
widths(#inner{label = Label, depth = Depth, below = Below}, Widths) ->
    Width = width(short(Label)),
    lists:foldl(fun widths/2, maps:update_with(Depth, fun(W) -> max(W, Width) end, Width, Widths),
                Below).

names_width(#leaf{label = Label}) -> width(Label) + 2 * ?PAD;
names_width(#inner{below = Below}) -> lists:max([0 | [names_width(B) || B <- Below]]).

width(Text) -> ceil(?CHAR * lists:sum([cells(C) || C <- unicode:characters_to_list(Text)])).

%% East Asian characters and emoji are two cells wide.
cells(C) when C >= 16#1100 -> 2;
cells(_) -> 1.

x(Column, Columns) -> map_get(Column, Columns).

y(Row, {_, First, _}) -> First + ?ROW * Row.

%% ---------------------------------------------------------------- drawing

scale(Columns, Numbers, From, To) ->
    [
        [line(X, From, X, To, "guide") || _ := X <- Columns],
        scale_numbers(Columns, Numbers)
    ].

scale_numbers(Columns, Y) ->
    [
        [text(X, Y, "scale", distance(Column)) || Column := X <- Columns],
        text(x(leaf, Columns) + ?PAD, Y, "unit", "distance")
    ].

distance(leaf) -> "0";
distance(0) -> "1";
distance(Depth) when Depth =< 4 -> float_to_list(math:pow(0.5, Depth), [short]);
distance(Depth) when Depth =< 20 -> ["1/", integer_to_list(1 bsl Depth)];
distance(Depth) -> ["2^-", integer_to_list(Depth)].

item(#leaf{label = Label, row = Row}, {Columns, _, Names} = Place) ->
    {X, Y} = {x(leaf, Columns), y(Row, Place)},
    [rectangle(X, Y - 8, Names, 16), text(X + ?PAD, Y + 4, "node", Label)];
item(#inner{label = Label, depth = Depth, row = Row, nodes = Nodes, below = Below},
     {Columns, _, _} = Place) ->
    {X, Y} = {x(Depth, Columns), y(Row, Place)},
    Start = case Depth of 0 -> ?MARGIN; _ -> x(Depth - 1, Columns) end,
    Lead = case Depth of 0 -> []; _ -> line(Start, Y, X, Y, "edge") end,
    [
        Lead,
        [[line(X, y(row(hd(Below)), Place), X, y(row(lists:last(Below)), Place), "edge")]
         || Below =/= []],
        [line(X, y(Leaf, Place), x(leaf, Columns), y(Leaf, Place), "edge")
         || #leaf{row = Leaf} <- Below],
        ["<circle class=\"vertex\" cx=\"",
         number(X),
         "\" cy=\"",
         number(Y),
         "\" r=\"3.5\"><title>",
         escape(io_lib:format("~ts: ~b node~ts, ~ts",
                              [Label, Nodes, plural(Nodes), distance(Depth)])),
         "</title></circle>\n"],
        text(Start + ?PAD, Y - 5, "name", short(Label)),
        [item(B, Place) || B <- Below]
    ].

plural(1) -> "";
plural(_) -> "s".

line(X1, Y1, X2, Y2, Class) ->
    ["<line class=\"", Class, "\" x1=\"", number(X1), "\" y1=\"", number(Y1),
     "\" x2=\"", number(X2), "\" y2=\"", number(Y2), "\"/>\n"].

rectangle(X, Y, Width, Height) ->
    ["<rect class=\"leaf\" rx=\"3\" x=\"", number(X), "\" y=\"", number(Y), "\" width=\"",
     number(Width),
     "\" height=\"", number(Height), "\"/>\n"].

text(X, Y, Class, Text) ->
    ["<text class=\"", Class, "\" x=\"", number(X), "\" y=\"", number(Y), "\">", escape(Text),
     "</text>\n"].

number(N) when is_integer(N) -> integer_to_list(N);
number(N) -> float_to_list(N, [{decimals, 1}]).

escape(Text) ->
    [case C of
         $< -> "&lt;";
         $> -> "&gt;";
         $& -> "&amp;";
         $" -> "&quot;";
         _ -> C
     end || C <- unicode:characters_to_list(Text)].

style() ->
    """
    <style>
    text {
      font: 12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1a202c;
      white-space: pre;
    }
    .title { font-size: 14px; font-weight: bold }
    .name { fill: #2d3748 }
    .scale { text-anchor: middle; fill: #718096 }
    .unit { fill: #718096 }
    .paper { fill: #ffffff }
    .guide { stroke: #e2e8f0; stroke-dasharray: 2 3 }
    .edge { stroke: #4a5568; stroke-width: 1.2; stroke-linecap: square }
    .vertex { fill: #4a5568 }
    .leaf { fill: #ebf4ff; stroke: #4a78b5 }
    </style>

    """.
