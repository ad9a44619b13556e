%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_scale_plot).
-moduledoc """
The results of `bin/sderl bench scale` as a picture: links of a node, messages of a registration and
the times of changes, over the size of groups, a line for each number of nodes. Both axes are
logarithmic.
""".

-export([svg/1]).

-define(W, 300).
-define(H, 240).
-define(LEFT, 56).
-define(TOP, 40).
-define(GAP, 90).
-define(COLOURS, ["#1f6feb", "#d1570a", "#1a7f37", "#8250df"]).

-doc "Results as `{Nodes, GroupSize, Metrics}`.".
-spec svg([{pos_integer(), pos_integer(), map()}]) -> iodata().
svg(Results) ->
    Panels = [
        {"links of a node", [{["groups, ", integer_to_list(N), " nodes"],
                              [{S, map_get(links_per_node_mean, M)} || {S, M} <- Of]}
                             || {N, Of} <- by_nodes(Results)] ++
                            [{["full mesh of ", integer_to_list(N)], [{S, N - 1} || {S, _} <- Of]}
                             || {N, Of} <- by_nodes(Results)]},
        {"messages of a registration", lists:append([
            [{["alone, ", integer_to_list(N)], [{S, map_get(alone_messages, M)} || {S, M} <- Of]},
             {["busy, ", integer_to_list(N)], [{S, map_get(busy_messages, M)} || {S, M} <- Of]}]
            || {N, Of} <- by_nodes(Results)])},
        {"ms (simulated), medians", lists:append([
            [{[Name, ", ", integer_to_list(N)],
              [{S, map_get(p50, map_get(Key, M))} || {S, M} <- Of]}
             || {Key, Name} <- [{admit_ms, "admit"}, {heal_ms, "heal"}, {takeover_ms, "take over"}]]
         || {N, Of} <- [lists:last(by_nodes(Results))]
        ])}
    ],
    Width = ?LEFT + length(Panels) * (?W + ?GAP),
    Lines = lists:max([length(Series) || {_, Series} <- Panels]),
    Height = ?TOP + ?H + 50 + 16 * Lines,
    [
        io_lib:format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ~w ~w\" "
                      "font-family=\"sans-serif\" font-size=\"12\">\n", [Width, Height]),
        io_lib:format("<rect width=\"~w\" height=\"~w\" fill=\"white\"/>\n", [Width, Height]),
        [panel(?LEFT + I * (?W + ?GAP), Title, Series)
         || {I, {Title, Series}} <- lists:enumerate(0, Panels)],
        "</svg>\n"
    ].

by_nodes(Results) ->
    [{N, [{S, M} || {N1, S, M} <- Results, N1 =:= N]}
     || N <- lists:usort([N || {N, _, _} <- Results])].

panel(X0, Title, Series) ->
    Xs = [X || {_, Points} <- Series, {X, _} <- Points],
    Ys = [max(Y, 1) || {_, Points} <- Series, {_, Y} <- Points],
    X = scale(lists:min(Xs), lists:max(Xs), X0, X0 + ?W),
    {YMin, YMax} = decades(lists:min(Ys), lists:max(Ys)),
    Y = scale(YMin, YMax, ?TOP + ?H, ?TOP),
    [
        text(X0, ?TOP - 16, "start", "#222", Title),
        [[line(X0, Y(V), X0 + ?W, Y(V), "#ddd"), text(X0 - 6, Y(V) + 4, "end", "#555", number(V))]
         || V <- steps(YMin, YMax)],
        [[line(X(V), ?TOP, X(V), ?TOP + ?H, "#eee"),
          text(X(V), ?TOP + ?H + 16, "middle", "#555", number(V))]
         || V <- lists:usort(Xs)],
        text(X0 + ?W / 2, ?TOP + ?H + 32, "middle", "#555", "members of a group"),
        [series(I, X0, Name, [{X(A), Y(max(B, 1))} || {A, B} <- lists:sort(Points)])
         || {I, {Name, Points}} <- lists:enumerate(0, Series)]
    ].

series(I, X0, Name, Points) ->
    Colour = lists:nth(I rem length(?COLOURS) + 1, ?COLOURS),
    Dash = case I >= length(?COLOURS) of true -> " stroke-dasharray=\"4 3\""; false -> "" end,
    Legend = ?TOP + ?H + 52 + 16 * I,
    [
        io_lib:format(
            "<polyline fill=\"none\" stroke=\"~s\" stroke-width=\"2\"~s points=\"~s\"/>\n",
            [
                Colour, Dash, lists:join(" ", [io_lib:format("~.1f,~.1f", [float(A), float(B)])
                                               || {A, B} <- Points])
            ]
        ),
        [io_lib:format("<circle cx=\"~.1f\" cy=\"~.1f\" r=\"3\" fill=\"~s\"/>\n",
                       [float(A), float(B), Colour])
         || {A, B} <- Points],
        io_lib:format("<line x1=\"~w\" y1=\"~w\" x2=\"~w\" y2=\"~w\" stroke=\"~s\" "
                      "stroke-width=\"2\"~s/>\n",
                      [X0, Legend - 4, X0 + 22, Legend - 4, Colour, Dash]),
        text(X0 + 28, Legend, "start", "#222", Name)
    ].

line(X1, Y1, X2, Y2, Colour) ->
    io_lib:format("<line x1=\"~.1f\" y1=\"~.1f\" x2=\"~.1f\" y2=\"~.1f\" stroke=\"~s\"/>\n",
                  [float(X1), float(Y1), float(X2), float(Y2), Colour]).

text(X, Y, Anchor, Colour, Text) ->
    io_lib:format("<text x=\"~.1f\" y=\"~.1f\" text-anchor=\"~s\" fill=\"~s\">~s</text>\n",
                  [float(X), float(Y), Anchor, Colour, Text]).

scale(Min, Max, From, To) when Min =:= Max -> fun(_) -> (From + To) / 2 end;
scale(Min, Max, From, To) ->
    fun(V) ->
        From + (math:log(V) - math:log(Min)) / (math:log(Max) - math:log(Min)) * (To - From)
    end.

decades(Min, Max) ->
    Low = floor(math:log10(Min)),
    High = max(Low + 1, ceil(math:log10(Max))),
    {pow(Low), pow(High)}.

steps(Min, Max) when Min > Max -> [];
steps(Min, Max) -> [Min | steps(10 * Min, Max)].

pow(E) -> round(math:pow(10, E)).

number(V) -> sderl_table:number(V).
