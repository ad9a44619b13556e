%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_html_tests).
-include_lib("eunit/include/eunit.hrl").

html(Pages) -> html(sderl_report_sample:start(), Pages).

html(Start, Pages) ->
    unicode:characters_to_list(sderl_report_html:html(Start, [{P, [none || _ <- Plots]}
                                                              || #{plots := Plots} = P <- Pages])).

has(Html, Text) -> ?assertNotEqual({nomatch, Text}, {string:find(Html, Text), Text}).

parts_test_() ->
    Html = html(sderl_report_sample:pages()),
    [?_test(has(Html, unicode:characters_to_list(sderl_report_html:escape(Text))))
     || Text <- [
         "Published results, repeated", "2 cores, 24,105 MiB, OTP 29.1.1", "2026-01-31T10:00:00Z",
         "medium: 100 nodes",
         "38 of 40 minutes"
         | [Text
            || #{id := Id, title := Title, question := Question, claim := Claim,
                 verdict_text := Verdict, notes := Notes, command := Command, plots := Plots,
                 tables := Tables} <- sderl_report_sample:pages(),
               Text <- [Id, Title, Question, Claim, Verdict, Command] ++ Notes ++
                       [T || #{title := T} <- Plots ++ Tables]]
     ]] ++ [?_test(has(Html, Text))
            || Text <- [
                "✓</span> confirmed", "✗</span> refuted", "–</span> not shown at this scale",
                "<a href=\"#page-c1\">C1</a>", "<section class=\"page\" id=\"page-c4\"",
                "Nothing of this was measured"
            ]].

%% Each link leads to a section that is there, and each name is there once.
anchors_test() ->
    [One, Two | Pages] = sderl_report_sample:pages(),
    %% Names that are equal when only letters and digits are left.
    Html = html([One#{id := ~"f(1,2)"}, Two#{id := ~"f(12)"} | Pages]),
    All = fun(Pattern) ->
        case re:run(Html, Pattern, [global, unicode, {capture, all_but_first, list}]) of
            {match, Found} -> lists:append(Found);
            nomatch -> []
        end
    end,
    Ids = All(" id=\"([^\"]*)\""),
    ?assertEqual(lists:sort(Ids), lists:usort(Ids)),
    ?assertEqual([], lists:usort(All("href=\"#([^\"]*)\"")) -- Ids),
    ?assertEqual([], lists:usort(All("aria-labelledby=\"([^\" ]*)")) -- Ids).

%% HTML in the data is shown as text everywhere.
escaping_test() ->
    Bad = <<"<script>alert('x')</script>&\"quoted\"\x00">>,
    Axis = #{label => Bad, unit => Bad, scale => linear},
    Page = #{
        id => Bad, title => Bad, question => Bad, claim => Bad, verdict => refuted,
        verdict_text => Bad, command => Bad, notes => [Bad],
        plots => [#{title => Bad,
                    x => Axis,
                    y => Axis,
                    series => [#{name => Bad, points => [#{x => 1, y => 2, low => 1, high => 3}]}],
                    marks => [#{x => 1, text => Bad}]}],
        tables => [#{title => Bad, header => [Bad, Bad], rows => [[Bad, 12345.678]]}]
    },
    Start = #{title => Bad, lead => [Bad], facts => [{Bad, Bad}], remarks => [Bad], command => Bad,
              measured => Bad},
    Svg = <<"<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"marks\" width=\"10\" height=\"20\" "
            "viewBox=\"0 0 10 20\"><g/></svg>">>,
    [
        begin
            Html = unicode:characters_to_list(sderl_report_html:html(Start, [{Page, [Drawn]}])),
            ?assertEqual(nomatch, string:find(Html, "<script")),
            ?assertEqual(nomatch, string:find(Html, "\"quoted")),
            ?assertEqual(nomatch, string:find(Html, [0])),
            has(Html, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;quoted&quot;"),
            has(Html, "id=\"page-scriptalertxscriptquoted\""),
            has(Html, "<td>12,346</td>"),
            ?assertEqual([], sderl_report_sample:loads(Html))
        end
     || Drawn <- [none, #{wide => Svg, narrow => Svg}]
    ].

code_test() ->
    [Page | _] = sderl_report_sample:pages(),
    Html = html([Page#{notes := [<<"the lock of `global<1>` and `pg`">>, <<"an odd ` one">>,
                                 <<"`a` and an odd ` one">>]}]),
    has(Html, "<li>the lock of <code>global&lt;1&gt;</code> and <code>pg</code></li>"),
    has(Html, "<li>an odd ` one</li>"),
    has(Html, "<li><code>a</code> and an odd ` one</li>").

stands_alone_test() ->
    ?assertEqual([], sderl_report_sample:loads(html(sderl_report_sample:pages()))).

%% The root element of a drawing has a title and a description.
drawing_test() ->
    [Page = #{plots := [Plot | _]} | _] = sderl_report_sample:pages(),
    Svg = fun(W) ->
        unicode:characters_to_binary(["<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", W,
                                      "\" height=\"20\" viewBox=\"0 0 10 20\"><path "
                                      "d=\"M0,0\"/></svg>"])
    end,
    Html = unicode:characters_to_list(sderl_report_html:html(sderl_report_sample:start(),
        [{Page#{plots := [Plot]}, [#{wide => Svg("700"), narrow => Svg("340")}]}])),
    [has(Html, Text)
     || Text <- [
         "<svg class=\"wide\" role=\"img\"", "<svg class=\"narrow\" role=\"img\"",
         "viewBox=\"0 0 700 20\"",
         "aria-labelledby=\"page-c1-plot-1-wide-t page-c1-plot-1-wide-d\"",
         "<title id=\"page-c1-plot-1-wide-t\">Latency of global operations",
         "stock, 1 % global: from 2.06 at 10 to 20.6 at 100.", "Line: 8 times that of 10 nodes.",
         "<path d=\"M0,0\"/></svg>",
         "<details><summary>The numbers of this plot</summary>"
     ]],
    ?assertEqual([], sderl_report_sample:loads(Html)).

%% Without a drawing the numbers of a plot are shown, with their spread.
table_test() ->
    Html = html([hd(sderl_report_sample:pages())]),
    has(Html, "<th scope=\"col\">stock, 1 % global (ms)</th>"),
    has(Html, "<th scope=\"row\">20</th>"),
    has(Html, "<td>4.12 (3.91..4.39)</td>"),
    ?assertEqual(nomatch, string:find(Html, "<svg")),
    ?assertEqual(nomatch, string:find(Html, "<details")).

%% All colours that the style sheet and the plots name are defined: light, dark and for print.
colours_test() ->
    Css = unicode:characters_to_list(sderl_report_style:css()),
    [
        ?assertMatch({_, {match, [_, _, _]}}, {Name, re:run(Css, [Name, ": *#"], [global])})
     || Name <- ["--paper", "--ink", "--quiet", "--rule" | [string:slice(
         C, 4, string:length(C) - 5
     ) || I <- lists:seq(1, 12), #{colour := C} <- [sderl_report_spec:style(I)]]]
    ].
