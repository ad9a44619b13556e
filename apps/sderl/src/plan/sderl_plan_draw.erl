%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_draw).
-moduledoc """
A plan as a picture (SVG) and as a table of text.

In the picture each group is a box with the nodes whose home it is; a line goes from a gateway to
each other group that it is a member of. Gateways whose loss disconnects groups have a ring. With up
to 60 nodes each node has its name, with more a tooltip.
""".

-export([svg/1, text/1, text/2]).

-import(sderl_pattern_parts, [member/2]).

-define(MARGIN, 24).
-define(LABEL, 18).
-define(NAMED, 60).
-define(COLOURS, #{workers => "#f3f6fa", hub => "#fdf3e3", border => "#9aa4b2", node => "#5b6b7f",
                   gateway => "#d1570a", line => "#d1570a", single => "#c62828", text => "#1f2328",
                   faint => "#59636e"}).

-doc "The plan as an SVG document.".
-spec svg(sderl_pattern:plan()) -> unicode:chardata().
svg(#{groups := Groups, edges := Edges} = Plan) ->
    Named = length(sderl_pattern:nodes(Plan)) =< ?NAMED,
    Boxes = #{G => box(Group, sderl_pattern:home(G, Plan), Named)
              || #{name := G} = Group <- Groups},
    Placed = shift(place(Plan, Boxes)),
    Single = [N || {N, _} <- sderl_plan_graph:single_points(sderl_plan_graph:memberships(Plan))],
    Gateways = sderl_pattern:gateways(Plan),
    Dots = #{N => Dot
             || #{name := G} <- Groups, {N, Dot} <- dots(map_get(G, Boxes), map_get(G, Placed))},
    Width = max(460,
                lists:max([X + map_get(w, map_get(G, Boxes)) || G := {X, _} <- Placed]) + ?MARGIN),
    Bottom = lists:max([Y + map_get(h, map_get(G, Boxes)) || G := {_, Y} <- Placed]) + ?MARGIN,
    [
        format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ~w ~w\" width=\"~w\" "
               "height=\"~w\" font-family=\"sans-serif\">\n",
               [round(Width), round(Bottom + 24), round(Width), round(Bottom + 24)]),
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        [draw_box(map_get(G, Boxes), map_get(G, Placed))
         || #{name := G, role := workers} <- Groups],
        [draw_line(map_get(N, Dots), N, T, map_get(T, Boxes),
                   beside(I, length(Ns), map_get(T, Placed)))
         || #{to := To, gateways := Ns} <- Edges, {I, N} <- lists:enumerate(Ns), T <- To],
        %% Lines to one hub pass below another, and all below labels.
        [draw_box(map_get(G, Boxes), map_get(G, Placed)) || #{name := G, role := hub} <- Groups],
        [draw_label(map_get(G, Boxes), map_get(G, Placed)) || #{name := G} <- Groups],
        [draw_dot(N, Dot, lists:member(N, Gateways), lists:member(N, Single), Named)
         || N := Dot <- maps:iterator(Dots, ordered)],
        legend(Bottom + 4, Single),
        "</svg>\n"
    ].

%% ---------------------------------------------------------------- boxes

box(#{name := G, role := Role, nodes := Nodes}, Home, Named) ->
    {PitchX, PitchY} = case Named of true -> {46, 30}; false -> {15, 15} end,
    Columns = max(1, ceil(math:sqrt(length(Home) * PitchY / PitchX * 1.4))),
    Rows = (length(Home) + Columns - 1) div Columns,
    Label = label(G),
    Count = format("~b", [length(Nodes)]),
    Least = 7 * (string:length(Label) + string:length(Count)) + 24,
    #{group => G, role => Role, label => Label, count => Count, home => Home, columns => Columns,
      px => PitchX, py => PitchY, w => max(Columns * PitchX + 14, Least),
      h => ?LABEL + max(Rows, 1) * PitchY + 10}.

label(Name) ->
    Text = case is_tuple(Name) of
        true -> unicode:characters_to_list(lists:join(" ", [word(W) || W <- tuple_to_list(Name)]));
        false -> word(Name)
    end,
    case string:length(Text) > 28 of
        true -> string:slice(Text, 0, 27) ++ [16#2026];
        false -> Text
    end.

word(W) when is_binary(W) ->
    case unicode:characters_to_list(W) of
        Text when is_list(Text) -> Text;
        _ -> format("~0tp", [W])
    end;
word(W) ->
    case is_list(W) andalso W =/= [] andalso io_lib:printable_unicode_list(W) of
        true -> W;
        false when is_atom(W) -> atom_to_list(W);
        false -> format("~0tp", [W])
    end.

dots(#{home := Home, columns := Columns, px := PX, py := PY}, {X, Y}) ->
    [{N, {X + 7 + PX * (I rem Columns) + PX / 2,
          Y + ?LABEL + PY * (I div Columns) + min(PY, 18) / 2 + 2}}
     || {I, N} <- lists:enumerate(0, Home)].

draw_box(#{role := Role, w := W, h := H}, {X, Y}) ->
    format("<rect x=\"~.1f\" y=\"~.1f\" width=\"~.1f\" height=\"~.1f\" rx=\"6\" fill=\"~s\" "
           "stroke=\"~s\"/>\n",
           [f(X), f(Y), f(W), f(H), colour(Role), colour(border)]).

draw_label(#{label := Label, count := Count, w := W}, {X, Y}) ->
    [
        text(X + 8, Y + 13, "start", 11, text, Label),
        text(X + W - 8, Y + 13, "end", 11, faint, Count)
    ].

draw_dot(Node, {X, Y}, Gateway, Single, Named) ->
    {Radius, Colour} = case Gateway of true -> {5, gateway}; false -> {4, node} end,
    [
        [format("<circle cx=\"~.1f\" cy=\"~.1f\" r=\"8\" fill=\"none\" stroke=\"~s\" "
                "stroke-width=\"2\"/>\n", [f(X), f(Y), colour(single)])
         || Single],
        format("<circle cx=\"~.1f\" cy=\"~.1f\" r=\"~w\" fill=\"~s\"><title>~ts</title></circle>\n",
               [f(X), f(Y), Radius, colour(Colour), escape(atom_to_list(Node))]),
        [text(X, Y + 16, "middle", 9, faint, short(Node)) || Named]
    ].

short(Node) ->
    Name = hd(string:split(atom_to_list(Node), "@")),
    case string:length(Name) > 8 of
        true -> string:slice(Name, 0, 7) ++ [16#2026];
        false -> Name
    end.

%% Two gateways of an edge do not make one line.
beside(I, Count, {X, Y}) -> {X + 10 * (I - (Count + 1) / 2), Y + 10 * (I - (Count + 1) / 2)}.

%% To where the box begins.
draw_line({X, Y}, Node, To, #{w := W, h := H}, {BX, BY}) ->
    {CX, CY} = {BX + W / 2, BY + H / 2},
    {DX, DY} = {X - CX, Y - CY},
    Part = min(1.0, min(ratio(W / 2, abs(DX)), ratio(H / 2, abs(DY)))),
    format("<line x1=\"~.1f\" y1=\"~.1f\" x2=\"~.1f\" y2=\"~.1f\" stroke=\"~s\" "
           "stroke-width=\"1.2\" stroke-opacity=\"0.65\"><title>~ts: ~ts</title></line>\n",
           [f(X), f(Y), f(CX + DX * Part), f(CY + DY * Part), colour(line),
            escape(atom_to_list(Node)), escape(label(To))]).

ratio(_, D) when D < 0.001 -> 1.0;
ratio(A, D) -> A / D.

legend(Y, Single) ->
    [
        format("<circle cx=\"~w\" cy=\"~.1f\" r=\"4\" fill=\"~s\"/>",
               [?MARGIN + 4, f(Y), colour(node)]),
        text(?MARGIN + 14, Y + 4, "start", 11, faint, "node"),
        format("<circle cx=\"~w\" cy=\"~.1f\" r=\"5\" fill=\"~s\"/>",
               [?MARGIN + 64, f(Y), colour(gateway)]),
        text(?MARGIN + 76, Y + 4, "start", 11, faint,
             "gateway, with a line to each group it joins"),
        [[format("<circle cx=\"~w\" cy=\"~.1f\" r=\"8\" fill=\"none\" stroke=\"~s\" "
                 "stroke-width=\"2\"/>", [?MARGIN + 324, f(Y), colour(single)]),
          text(?MARGIN + 338, Y + 4, "start", 11, faint, "its loss parts groups")]
         || Single =/= []]
    ].

text(X, Y, Anchor, Size, Colour, Text) ->
    format("<text x=\"~.1f\" y=\"~.1f\" text-anchor=\"~s\" font-size=\"~w\" "
           "fill=\"~s\">~ts</text>\n",
           [f(X), f(Y), Anchor, Size, colour(Colour), escape(Text)]).

colour(Of) -> map_get(Of, ?COLOURS).

f(Number) -> float(Number).

escape(Text) ->
    [case C of
        $< -> "&lt;";
        $> -> "&gt;";
        $& -> "&amp;";
        $" -> "&quot;";
        _ when C < 32 -> 32;
        _ -> C
    end
     || C <- unicode:characters_to_list(sderl_visible:text(Text))].

format(Format, Args) -> unicode:characters_to_list(io_lib:format(Format, Args)).

%% ---------------------------------------------------------------- where boxes are

%% Each group's left upper corner.
place(#{pattern := star, groups := Groups}, Boxes) ->
    Hubs = [G || #{name := G, role := hub} <- Groups],
    around([G || #{name := G, role := workers} <- Groups], Hubs, Boxes);
place(#{pattern := ring, groups := Groups}, Boxes) ->
    around([G || #{name := G} <- Groups], [], Boxes);
place(#{pattern := grid, groups := Groups, options := Options}, Boxes) ->
    rows([G || #{name := G} <- Groups], maps:get(columns, Options, ceil(math:sqrt(length(Groups)))),
         false, Boxes);
place(#{pattern := tree} = Plan, Boxes) -> tree(Plan, Boxes);
place(#{groups := Groups}, Boxes) ->
    rows([G || #{name := G} <- Groups], ceil(math:sqrt(length(Groups) * 1.6)), true, Boxes).

shift(Placed) ->
    Left = lists:min([X || {X, _} <- maps:values(Placed)]),
    Top = lists:min([Y || {_, Y} <- maps:values(Placed)]),
    #{G => {X - Left + ?MARGIN, Y - Top + ?MARGIN} || G := {X, Y} <- Placed}.

largest(Key, Groups, Boxes) -> lists:max([0 | [map_get(Key, map_get(G, Boxes)) || G <- Groups]]).

around(Groups, Hubs, Boxes) ->
    W = largest(w, Groups, Boxes),
    H = largest(h, Groups, Boxes),
    Count = length(Groups),
    HubH = lists:sum([map_get(h, map_get(G, Boxes)) + 30 || G <- Hubs]),
    HubW = largest(w, Hubs, Boxes),
    %% Wide enough for boxes next to each other, and for what is in the middle.
    Radius = lists:max([(math:sqrt(W * W + H * H) + 12) * Count / (2 * math:pi()),
                        case Count of 1 -> 0; _ -> W / 2 + 20 end,
                        case Hubs of [] -> 0; _ -> max(HubW + W, HubH + H) / 2 + 50 end]),
    Ring = #{G => centred({Radius * math:sin(A), -Radius * math:cos(A)}, map_get(G, Boxes))
             || {I, G} <- lists:enumerate(0, Groups), A <- [2 * math:pi() * I / Count]},
    {Middle, _} = lists:mapfoldl(fun(G, Y) ->
        #{w := BW, h := BH} = map_get(G, Boxes),
        {{G, {-BW / 2, Y}}, Y + BH + 30}
    end, -(HubH - 30) / 2, Hubs),
    maps:merge(Ring, maps:from_list(Middle)).

centred({X, Y}, #{w := W, h := H}) -> {X - W / 2, Y - H / 2}.

%% With turns each second row runs backwards, so that neighbours in the list are neighbours in the
%% picture.
rows(Groups, Columns, Turns, Boxes) ->
    W = largest(w, Groups, Boxes) + 40,
    H = largest(h, Groups, Boxes) + 40,
    #{G => {W *
            case Turns andalso Row rem 2 =:= 1 of true -> Columns - 1 - Column; false -> Column end,
            H * Row}
      || {I, G} <- lists:enumerate(0, Groups), {Row, Column} <- [{I div Columns, I rem Columns}]}.

%% Each hub above those below it.
tree(#{groups := Groups, edges := Edges}, Boxes) ->
    Hubs = [G || #{name := G, role := hub} <- Groups],
    Below = fun(Hub) -> [F || #{from := F, to := To} <- Edges, member(Hub, To)] end,
    Under = [{F, [T || T <- To, not member(T, Hubs)]}
             || #{from := F, to := To} <- Edges, not member(F, Hubs)],
    Seconds = lists:append([Gs || {_, Gs} <- Under]),
    Lent = [F || #{from := F, to := To} <- Edges, lists:any(fun(T) -> member(T, Hubs) end, To)],
    Tops = [G || #{name := G} <- Groups, not member(G, Lent), not member(G, Seconds)],
    {_, Placed} = beside([subtree(G, Hubs, Below, Under, Boxes) || G <- Tops], 60),
    Placed.

%% {{Width, Height}, #{Group => Corner}} from its own corner on.
subtree(Group, Hubs, Below, Under, Boxes) ->
    case member(Group, Hubs) of
        true ->
            Children = Below(Group),
            Parts = [subtree(C, Hubs, Below, Under, Boxes) || C <- Children],
            {{W, H}, Placed} = case lists:any(fun(C) -> member(C, Hubs) end, Children) of
                true -> beside(Parts, 40);
                false -> block(Parts, 24)
            end,
            #{w := BW, h := BH} = map_get(Group, Boxes),
            Width = max(W, BW),
            Lower = #{G => {X + (Width - W) / 2, Y + BH + 50} || G := {X, Y} <- Placed},
            {{Width, H + BH + 50}, Lower#{Group => {(Width - BW) / 2, 0}}};
        false ->
            Bundle = [Group | lists:append([Gs || {F, Gs} <- Under, F =:= Group])],
            below([{{map_get(w, map_get(G, Boxes)), map_get(h, map_get(G, Boxes))}, #{G => {0, 0}}}
                   || G <- Bundle], 16)
    end.

beside(Parts, Gap) ->
    {Moved, Width} = lists:mapfoldl(fun({{W, _}, Placed}, X0) ->
        {#{G => {X + X0, Y} || G := {X, Y} <- Placed}, X0 + W + Gap}
    end, 0, Parts),
    {{Width - Gap, lists:max([H || {{_, H}, _} <- Parts])},
     lists:foldl(fun maps:merge/2, #{}, Moved)}.

below(Parts, Gap) ->
    {Moved, Height} = lists:mapfoldl(fun({{_, H}, Placed}, Y0) ->
        {#{G => {X, Y + Y0} || G := {X, Y} <- Placed}, Y0 + H + Gap}
    end, 0, Parts),
    {{lists:max([W || {{W, _}, _} <- Parts]), Height - Gap},
     lists:foldl(fun maps:merge/2, #{}, Moved)}.

block(Parts, Gap) ->
    Columns = case lists:max([map_size(P) || {_, P} <- Parts]) of
        1 -> ceil(math:sqrt(length(Parts)));
        _ -> length(Parts)
    end,
    below([beside(Row, Gap) || Row <- chunks(Parts, Columns)], Gap).

chunks(List, N) when length(List) =< N -> [List];
chunks(List, N) ->
    {Row, Rest} = lists:split(N, List),
    [Row | chunks(Rest, N)].

%% ---------------------------------------------------------------- text

-doc "`text/2` with the plan's own prediction.".
-spec text(sderl_pattern:plan()) -> unicode:chardata().
text(Plan) -> text(Plan, sderl_plan:predict(Plan)).

-doc "A table of the groups, and what `sderl_plan:predict/2` says of the plan.".
-spec text(sderl_pattern:plan(), sderl_plan:prediction()) -> unicode:chardata().
text(#{pattern := Pattern, groups := Groups, left_out := Out} = Plan, Prediction) ->
    Rows = [[label(G), integer_to_list(length(Nodes)), first_and_last(sderl_pattern:home(G, Plan)),
             gateways(G, Plan)]
            || #{name := G, nodes := Nodes} <- Groups],
    [
        table([["group", "members", "at home", "gateways"] | Rows]),
        "\n",
        facts([{"pattern", atom_to_list(Pattern)} | predicted(Prediction)]
              ++ [{"left out",
                   format("~b nodes that fill no group: ~ts", [length(Out), first_and_last(Out)])}
                  || Out =/= []])
    ].

first_and_last([]) -> "none but its gateways";
first_and_last([N]) -> format("~tp", [N]);
first_and_last(Ns) when length(Ns) =< 3 -> lists:join(" ", [format("~tp", [N]) || N <- Ns]);
first_and_last(Ns) -> format("~tp ... ~tp", [hd(Ns), lists:last(Ns)]).

gateways(Group, #{edges := Edges}) ->
    lists:join("; ", [[lists:join(" ", [format("~tp", [N]) || N <- Ns]), " to ",
                       lists:join(", ", [label(T) || T <- To])]
                      || #{from := F, to := To, gateways := Ns} <- Edges, F =:= Group]).

table(Rows) ->
    Widths = lists:foldl(fun(Row, Ws) ->
        lists:zipwith(fun(C, W) -> max(string:length(C), W) end, Row, Ws)
    end, [0, 0, 0, 0], Rows),
    [[string:trim(unicode:characters_to_list([[string:pad(C, W), "  "]
                                              || {C, W} <- lists:zip(Row, Widths)]), trailing),
      "\n"]
     || Row <- Rows].

facts(Facts) ->
    Width = lists:max([string:length(K) || {K, _} <- Facts]),
    [[string:pad(K, Width), "  ", V, "\n"] || {K, V} <- Facts].

predicted(#{nodes := N, groups := G, gateways := Gateways,
            group_size := #{min := Least, max := Most}, mesh_links := Mesh, single_points := Single,
            links := #{max := LMax, mean := LMean},
            hops := #{max := HMax, mean := HMean, unreachable := Lost}} = P) ->
    lists:append([
        [{"nodes",
          format("~b in ~ts, ~ts", [N, groups(G, Least, Most), counted(Gateways, "gateway")])},
         {"links", format("~b at most, ~.1f on average; ~b in a full mesh", [LMax, LMean, Mesh])},
         {"hops", format("~b at most, ~.2f on average", [HMax, HMean])}],
        [{"no way", format("between ~b pairs of nodes", [Lost div 2])} || Lost > 0],
        [{"traffic", format("~.2f hops of a message, ~.1f % stay in a group", [Mean, Inside * 100])}
         || #{traffic := #{mean := Mean, inside := Inside}} <- [P]],
        [{"names", format("~b at most on a node, ~b on average; ~b in one namespace",
                          [Max, round(Mean), All])}
         || #{names := #{max := Max, mean := Mean, mesh := All}} <- [P]],
        [{"single points", case Single of
            [] -> "none: no node's loss parts the groups";
            [{Node, _}] -> format("the loss of ~ts parts groups", [atom_to_list(Node)]);
            _ ->
                format("the loss of any of ~b nodes parts groups: ~ts",
                       [length(Single), first_and_last([Node || {Node, _} <- Single])])
        end}]
    ]).

groups(1, Size, Size) -> format("1 group of ~ts", [counted(Size, "member")]);
groups(G, Size, Size) -> format("~b groups of ~ts", [G, counted(Size, "member")]);
groups(G, Least, Most) -> format("~b groups of ~b to ~b members", [G, Least, Most]).

counted(1, What) -> ["1 ", What];
counted(N, What) -> format("~b ~tss", [N, What]).
