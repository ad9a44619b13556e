%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_draw).
-moduledoc """
The plots of a report as SVG, drawn by Vega-Lite in Node.js (`priv/report/draw.mjs`), without a
browser.
""".

-export([pages/1, pages/2]).

%% For one plot, on a busy machine.
-define(PLOT_MS, 60_000).

-doc """
The drawings of each page, `none` for a plot without points. An error says why none could be drawn.
""".
-spec pages([sderl_claim:page()]) ->
    {ok, [sderl_report_html:drawn()]} | {error, sderl_command:text()}.
pages(Pages) ->
    case sderl_report_node:ready() of
        {ok, Installed} -> pages(Pages, Installed);
        Error -> Error
    end.

-doc "As `pages/1`, with a library that is installed.".
-spec pages([sderl_claim:page()], sderl_report_node:installed()) ->
    {ok, [sderl_report_html:drawn()]} | {error, sderl_command:text()}.
pages(Pages, #{node := Node, script := Script}) ->
    Specs = [
        {[P, I, Shape], Spec}
     || {P, #{plots := Plots}} <- lists:enumerate(Pages),
        {I, Plot} <- lists:enumerate(Plots),
        Shape <- [wide, narrow],
        Spec <- [sderl_report_spec:spec(Plot, Shape, sderl_report_plot:names(Plots))],
        Spec =/= none
    ],
    Lines = [json:encode(#{id => Id, spec => Spec}) || {Id, Spec} <- Specs],
    Draw = sderl_progress:reporter("drawing"),
    Seen = fun(N) -> Draw(N, length(Lines)) end,
    Answers = sderl_bench_program:ask(Node, [Script], Lines, #{timeout => ?PLOT_MS, seen => Seen}),
    sderl_progress:done(),
    case Answers of
        {ok, Answered} ->
            svgs([{Id, json:decode(Answer)} || {{Id, _}, Answer} <- lists:zip(Specs, Answered)],
                 Pages);
        {error, timeout} ->
            {error, "the program that draws them did not answer"};
        {error, {exit_status, Status}} ->
            {error, io_lib:format("the program that draws them ended with status ~w", [Status])};
        {error, {exit, Reason}} ->
            {error, io_lib:format("the program that draws them did not run: ~0tp", [Reason])}
    end.

svgs(Answers, Pages) ->
    case [Text || {_, #{<<"error">> := Text}} <- Answers] of
        [] ->
            Svgs = #{Id => Svg || {Id, #{<<"svg">> := Svg}} <- Answers},
            {ok, [
                [
                    case Svgs of
                        #{[P, I, wide] := Wide, [P, I, narrow] := Narrow} ->
                            #{wide => Wide, narrow => Narrow};
                        #{} -> none
                    end
                 || {I, _} <- lists:enumerate(Plots)
                ]
             || {P, #{plots := Plots}} <- lists:enumerate(Pages)
            ]};
        [Text | _] ->
            {error, ["the library that draws them says: ", Text]}
    end.
