%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_html).
-moduledoc """
The report as one self-contained HTML file: style, pages and drawings are in it, it has no script,
and it loads nothing. Everything that comes from data is escaped.
""".

-export([html/2, escape/1]).
-export_type([start/0, drawn/0]).

-doc """
The content of the start page. `facts` are about the machine, the time and the scale; `remarks`
about what went wrong or is missing; `measured` is on each page and says where and at which scale it
was measured.
""".
-type start() :: #{
    title := unicode:chardata(),
    lead := [unicode:chardata()],
    facts := [{Label :: unicode:chardata(), Value :: unicode:chardata()}],
    remarks := [unicode:chardata()],
    command := unicode:chardata(),
    measured := unicode:chardata()
}.

-doc """
The drawings of a page's plots, in their order, as SVG from `m:sderl_report_draw`, or `none`: then
the plot's numbers are shown as a table in its place.
""".
-type drawn() :: [#{sderl_report_spec:shape() => binary()} | none].

-doc "The whole file.".
-spec html(start(), [{sderl_claim:page(), drawn()}]) -> iodata().
html(#{title := Title} = Start, Drawn) ->
    Pages = [Page || {Page, _} <- Drawn],
    Anchored = lists:zip(anchors(Pages), Pages),
    sderl_claim_points:text([
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
        "<meta name=\"color-scheme\" content=\"light dark\">\n",
        element_of("title", Title), "\n",
        "<style>\n", sderl_report_style:css(), "</style>\n</head>\n<body>\n",
        navigation(Anchored),
        "<main>\n",
        start(Start, Anchored),
        [page(Start, Anchor, Page, Svgs)
         || {{Anchor, Page}, {_, Svgs}} <- lists:zip(Anchored, Drawn)],
        "</main>\n</body>\n</html>\n"
    ]).

navigation(Pages) ->
    [
        "<nav aria-label=\"Pages of this report\"><ul>\n<li><a href=\"#start\">",
        case judged(Pages) of true -> "Verdicts"; false -> "Programs" end, "</a></li>\n",
        [["<li><a href=\"#", Anchor, "\">", escape(Id), "</a></li>\n"]
         || {Anchor, #{id := Id}} <- Pages],
        "</ul></nav>\n"
    ].

%% An HTML identifier for each page. Where names differ only in characters that it cannot have, a
%% number is added.
anchors(Pages) ->
    {Anchors, _} = lists:mapfoldl(
        fun(Page, Seen) ->
            Plain = anchor(Page),
            Count = maps:get(Plain, Seen, 0) + 1,
            {case Count of
                1 -> Plain;
                _ -> [Plain, $-, integer_to_list(Count)]
            end, Seen#{Plain => Count}}
        end,
        #{},
        Pages
    ),
    Anchors.

anchor(#{id := Id}) ->
    ["page-", [C
               || C <- unicode:characters_to_list(string:lowercase(Id)),
                  C >= $a andalso C =< $z orelse C >= $0 andalso C =< $9]].

%% ---------------------------------------------------------------- start page

start(#{title := Title, lead := Lead, facts := Facts, remarks := Remarks, command := Command},
      Pages) ->
    [
        "<section id=\"start\" aria-labelledby=\"start-title\">\n",
        "<h1 id=\"start-title\">", escape(Title), "</h1>\n",
        [["<p class=\"lead\">", prose(Text), "</p>\n"] || Text <- Lead],
        verdicts(Pages),
        [["<p class=\"remark\" role=\"note\">", prose(Remark), "</p>\n"] || Remark <- Remarks],
        "<dl>\n",
        [["<div><dt>", escape(Label), "</dt><dd>", escape(Value), "</dd></div>\n"]
         || {Label, Value} <- Facts],
        "</dl>\n",
        repeats("To repeat all of it", Command),
        "</section>\n"
    ].

verdicts(Pages) ->
    [
        "<div class=\"scroll\"><table class=\"verdicts",
        case judged(Pages) of true -> ""; false -> " unjudged" end, "\">\n"
        "<thead><tr><th scope=\"col\">Experiment</th>",
        ["<th scope=\"col\">Verdict</th>" || judged(Pages)],
        "<th scope=\"col\">What was measured</th></tr></thead>\n<tbody>\n",
        [
            [
                "<tr><th scope=\"row\"><a href=\"#", Anchor, "\"><span class=\"id\">",
                escape(Id), "</span> ", escape(Title), "</a></th>",
                [["<td>", chip(Verdict), "</td>"] || Verdict =/= none],
                "<td>", prose(Text), "</td></tr>\n"
            ]
         || {Anchor, #{id := Id, title := Title, verdict := Verdict, verdict_text := Text}} <- Pages
        ],
        "</tbody>\n</table></div>\n"
    ].

%% Pages of measurements that nothing was published about have no verdict.
judged(Pages) -> lists:any(fun({_, #{verdict := Verdict}}) -> Verdict =/= none end, Pages).

%% A sign and a word, as well as a colour.
chip(none) -> "";
chip(confirmed) ->
    "<span class=\"chip confirmed\"><span aria-hidden=\"true\">✓</span> confirmed</span>";
chip(refuted) -> "<span class=\"chip refuted\"><span aria-hidden=\"true\">✗</span> refuted</span>";
chip(not_shown) ->
    "<span class=\"chip not-shown\"><span aria-hidden=\"true\">–</span> not shown at this "
    "scale</span>".

%% ---------------------------------------------------------------- page of an experiment

page(#{measured := Measured}, Anchor,
     #{id := Id, title := Title, question := Question, claim := Claim, verdict := Verdict,
       verdict_text := Text} = Page, Drawn) ->
    #{plots := Plots, tables := Tables, notes := Notes, command := Command} = Page,
    [
        "<section class=\"page\" id=\"", Anchor, "\" aria-labelledby=\"", Anchor, "-title\">\n",
        "<h2 id=\"", Anchor, "-title\"><span class=\"id\">", escape(Id), "</span> ", escape(Title),
        "</h2>\n",
        "<p class=\"lead\">", prose(Question), "</p>\n",
        [["<h3>Published</h3>\n<p class=\"claim\">", prose(Claim), "</p>\n"] || Claim =/= <<>>],
        "<div class=\"verdict\">", chip(Verdict), "<p>", prose(Text), "</p></div>\n",
        [
            figure([Anchor, "-plot-", integer_to_list(I)], Plot, Svgs)
         || {I, {Plot, Svgs}} <- lists:enumerate(lists:zip(Plots, Drawn))
        ],
        [table(Table) || Table <- Tables],
        [["<h3>Notes</h3>\n<ul class=\"notes\">\n",
          [["<li>", prose(Note), "</li>\n"] || Note <- Notes], "</ul>\n"]
         || Notes =/= []],
        repeats("To repeat it", Command),
        "<p class=\"small measured\">", escape(Measured), "</p>\n",
        "</section>\n"
    ].

repeats(Title, Command) ->
    ["<h3>", escape(Title), "</h3>\n<pre class=\"command\" tabindex=\"0\"><code>", escape(Command),
     "</code></pre>\n"].

figure(Id, #{title := Title} = Plot, Svgs) ->
    {Header, Rows} = sderl_report_plot:table(Plot),
    [
        "<figure>\n<figcaption>", escape(Title), "</figcaption>\n",
        case Svgs of
            none -> grid(Title, Header, Rows);
            #{} ->
                [
                    [drawing([Id, $-, atom_to_list(Shape)], Shape, Plot, Svg)
                     || Shape := Svg <- maps:iterator(Svgs, ordered)],
                    left_out(sderl_report_plot:left_out(Plot)),
                    "<details><summary>The numbers of this plot</summary>\n",
                    grid(Title, Header, Rows), "</details>\n"
                ]
        end,
        "</figure>\n"
    ].

left_out(0) -> "";
left_out(1) ->
    "<p class=\"small\">One point is at 0 and not on this logarithmic plot; the table has "
    "it.</p>\n";
left_out(N) ->
    ["<p class=\"small\">", integer_to_list(N),
     " points are at 0 and not on this logarithmic plot; the table has them.</p>\n"].

%% The root element of the SVG is replaced by one with a title and a description, and without
%% namespaces, which HTML does not need.
drawing(Id, Shape, #{title := Title} = Plot, Svg) ->
    {match, [Root, Width, Height]} = re:run(
        Svg, "^<svg[^>]* width=\"([0-9.]+)\" height=\"([0-9.]+)\"[^>]*>", [{capture, all, binary}]
    ),
    <<_:(byte_size(Root))/binary, Content/binary>> = Svg,
    [
        "<svg class=\"", atom_to_list(Shape),
        "\" role=\"img\" preserveAspectRatio=\"xMinYMid\" aria-labelledby=\"", Id, "-t ", Id,
        "-d\" viewBox=\"0 0 ", Width, " ", Height,
        "\" width=\"", Width, "\" height=\"", Height, "\"><title id=\"", Id, "-t\">", escape(Title),
        "</title><desc id=\"", Id, "-d\">",
        escape(sderl_report_plot:describe(Plot)), "</desc>", Content, "\n"
    ].

table(#{title := Title, header := Header, rows := Rows}) ->
    ["<h3>", escape(Title), "</h3>\n", grid(Title, Header, Rows)].

%% Wide tables scroll, also by keyboard.
grid(_Title, _Header, []) ->
    "<p>Nothing of this was measured.</p>\n";
grid(Title, Header, Rows) ->
    [
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"", escape(Title),
        "\"><table class=\"numbers\">\n<thead><tr>",
        [["<th scope=\"col\">", escape(Cell), "</th>"] || Cell <- Header],
        "</tr></thead>\n<tbody>\n",
        [["<tr>", row(Row), "</tr>\n"] || Row <- Rows],
        "</tbody>\n</table></div>\n"
    ].

row([]) -> "";
row([First | Cells]) ->
    ["<th scope=\"row\">", cell(First), "</th>", [["<td>", cell(Cell), "</td>"] || Cell <- Cells]].

cell(Number) when is_number(Number) -> sderl_table:number(Number);
cell(Text) -> escape(Text).

element_of(Tag, Text) -> ["<", Tag, ">", escape(Text), "</", Tag, ">"].

%% Text between `backquotes` is code.
prose(Text) ->
    [
        case I rem 2 of
            1 -> escape(Part);
            0 -> element_of("code", Part)
        end
     || {I, Part} <- lists:enumerate(paired(string:split(Text, "`", all)))
    ].

%% A last backquote without a second one stands for itself.
paired(Parts) when length(Parts) rem 2 =:= 1 -> Parts;
paired(Parts) ->
    {Whole, [Open, Rest]} = lists:split(length(Parts) - 2, Parts),
    Whole ++ [[Open, "`", Rest]].

-doc """
Text for HTML, between tags and in attributes with quotation marks. Control characters, which HTML
does not allow, are left out.
""".
-spec escape(unicode:chardata()) -> unicode:chardata().
escape(Text) ->
    [escaped(Char)
     || Char <- unicode:characters_to_list(Text),
        Char >= 32 orelse Char =:= $\n orelse Char =:= $\t].

escaped($&) -> "&amp;";
escaped($<) -> "&lt;";
escaped($>) -> "&gt;";
escaped($") -> "&quot;";
escaped($') -> "&#39;";
escaped(Char) -> Char.
