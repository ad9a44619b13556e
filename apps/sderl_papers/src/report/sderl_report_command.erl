%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_command).
-moduledoc """
`bin/sderl report DIR`: what `bin/sderl reproduce` measured, as one HTML file with a page for each
claim; with `--markdown` the table of verdicts alone. `bin/sderl report FILE`: what `bin/sderl bench
vm` measured, with a page for each program; with `--before OTHER` what became slower since that
other file.

Nothing is measured here. Plots are drawn if Node.js is there, and the library that draws them is
installed or can be; otherwise there are tables of their numbers.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

%% Percent.
-define(THRESHOLD, "1").

-doc false.
-spec summary() -> string().
summary() -> "what \"reproduce\" measured, as one HTML file with plots and verdicts".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> sderl_completion:command(arguments()).

-doc "Writes the report. An error where there is nothing to report, or it cannot be written.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    maybe
        {ok, Options = #{'DIR' := Dir}} ?= sderl_command:parse(Args, ["report"], arguments()),
        ok ?= together(Options),
        false ?= filelib:is_regular(Dir),
        {ok, Run, Pages} ?= sderl_reproduce:pages(Dir),
        ok ?= something(Dir, Run),
        case Options of
            #{markdown := true} -> io:put_chars(sderl_reproduce:markdown(Run, Pages));
            #{tables := Tables} ->
                report(Run, Pages, Tables,
                       maps:get(out, Options, filename:join(Dir, "report.html")))
        end
    else
        true -> of_file(sderl_command:parse(Args, ["report"], arguments()));
        Other -> Other
    end.

of_file({ok, #{markdown := true}}) ->
    {usage, "--markdown is for what \"reproduce\" measured: a folder"};
of_file({ok, #{'DIR' := After, before := Before} = Options}) ->
    maybe
        {ok, Percent} ?= sderl_bench_experiment:real(
            "--threshold", maps:get(threshold, Options, ?THRESHOLD), 0, 50),
        {ok, Start, Pages} ?= sderl_report_compare:pages(Before, After, Percent / 100),
        of_file(Start, Pages, ".compared.html", Options)
    end;
of_file({ok, #{'DIR' := File} = Options}) ->
    maybe
        {ok, Start, Pages} ?= sderl_report_vm:pages(File),
        of_file(Start, Pages, ".html", Options)
    end.

of_file(Start, Pages, Ending, #{'DIR' := File, tables := Tables} = Options) ->
    {Drawn, NoPlots} = drawings(Pages, Tables),
    Out = maps:get(out, Options, filename:rootname(File) ++ Ending),
    written(Out, sderl_report_html:html(Start, lists:zip(Pages, Drawn)), "", NoPlots).

arguments() ->
    #{
        help =>
            """
            Makes one HTML file of what "bin/sderl reproduce --out DIR" measured: a page for each
            claim with plots, tables and a verdict; or of the file that "bin/sderl bench vm"
            wrote: a page for each program, or with --before what has changed. The HTML file needs
            no other file. Node.js draws the plots (its packages are installed once, below _build);
            without it there are tables instead.
            """,
        arguments => [
            #{name => 'DIR', type => string,
              help => {"DIR", ["the folder with what was measured, or a file of \"bench vm\""]}},
            #{name => out, long => "-out", type => string, required => false,
              help => {"[--out FILE]", ["the file (DIR/report.html, FILE.html, or with --before "
                                 "FILE.compared.html)"]}},
            #{name => before, long => "-before", type => string, required => false,
              help => {"[--before FILE]",
                       ["compare the file of \"bench vm\" with this one, which was before it"]}},
            #{name => threshold, long => "-threshold", type => string,
              required => false,
              help => {"[--threshold PCT]",
                       ["with --before, differences below count as none (" ?THRESHOLD ")"]}},
            #{name => tables, long => "-tables", type => boolean, default => false,
              help => {"[--tables]", ["tables in place of plots: nothing is installed or drawn"]}},
            #{name => markdown, long => "-markdown", type => boolean, default => false,
              help => {"[--markdown]",
                       ["print the table of verdicts as Markdown, and write no file"]}}
        ]
    }.

together(#{markdown := true, out := _}) ->
    {usage, "--markdown writes no file: leave --out or --markdown out"};
together(#{markdown := true, tables := true}) ->
    {usage, "--markdown has no plots: leave --tables or --markdown out"};
together(#{before := _, markdown := true}) ->
    {usage, "--before and --markdown: leave one out"};
together(#{threshold := _} = Options) when not is_map_key(before, Options) ->
    {usage, "--threshold is for --before"};
together(#{before := _, 'DIR' := Dir}) ->
    case {filelib:is_dir(Dir), filelib:is_regular(Dir)} of
        {true, _} ->
            {usage, ["--before compares files of \"bench vm\", and ", Dir, " is a folder"]};
        {false, true} -> ok;
        {false, false} -> {error, ["there are no results in ", Dir]}
    end;
together(_) -> ok.

something(_, #{points := Points}) when Points > 0 -> ok;
something(Dir, #{command := Command}) ->
    {error, ["nothing has been measured in ", Dir, " yet: run ", Command]}.

report(Run, Pages, Tables, Out) ->
    {Drawn, NoPlots} = drawings(Pages, Tables),
    Html = sderl_report_html:html(sderl_report_facts:start(Run, Pages, NoPlots),
                                  lists:zip(Pages, Drawn)),
    written(Out, Html, sderl_reproduce:text(Pages), NoPlots).

drawings(Pages, Tables) ->
    case drawn(Pages, Tables) of
        {ok, Drawings} -> {Drawings, none};
        {error, Why} -> {[[none || _ <- Plots] || #{plots := Plots} <- Pages], Why}
    end.

written(Out, Html, Text, NoPlots) ->
    case file:write_file(Out, Html) of
        ok ->
            io:put_chars([
                Text,
                [["\nplots are tables, because ", NoPlots, "\n"] || NoPlots =/= none],
                [$\n || Text =/= ""], "report: ", Out, "\n"
            ]);
        {error, Reason} ->
            {error, ["cannot write ", Out, ": ", file:format_error(Reason)]}
    end.

drawn(_, true) -> {error, "--tables asks for that"};
drawn(Pages, false) -> sderl_report_draw:pages(Pages).
