%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_metrics).
-moduledoc """
`bin/sderl metrics`: which metrics a running monitor has, one of them over time, and the pages of
charts that people have saved, asked for over its HTTP interface.
""".

-behaviour(sderl_command).

-export([summary/0, completion/0, run/1]).

-import(sderl_command, [option/4, flag/2]).

-define(MINUTE_MS, 60_000).
-define(DAY_MS, 86_400_000).

-doc "One line for the list of commands.".
-spec summary() -> string().
summary() -> "metrics of a watched cluster: list them, show one over time, saved pages of charts".

-doc false.
-spec completion() -> sderl_completion:completed().
completion() -> {commands, [sderl_completion:command(Do, command(Do)) || Do <- commands()]}.

-doc "An error where the dashboard cannot be asked, or refuses.".
-spec run([string()]) -> sderl_command:result().
run(Args) ->
    sderl_command:run_one(Args, "metrics", commands(), #{help => fun help/0,
                                                        arguments => fun command/1,
                                                        do => fun do/2}).

help() ->
    [
        "usage: bin/sderl metrics COMMAND [options]\n\n"
        "Numbers of a cluster that \"bin/sderl mon\" or \"demo\" watches, the application's own\n"
        "among them. docs/metrics.md is the guide. The dashboard is named by --url or\n"
        "$SDERL_DASHBOARD: the address that it printed.\n\n",
        [io_lib:format("  ~-11ts ~ts~n", [Do, about(Do)]) || Do <- commands()],
        "\n\"bin/sderl metrics COMMAND --help\" lists a command's options.\n"
    ].

commands() -> [list, show, pages, page, completion].

about(list) -> "which there are, with their units";
about(show) -> "one of them over time, of a node, a group, a family or the cluster";
about(pages) -> "the pages of charts that people have put together and saved";
about(page) -> "the charts of one of them, a line each";
about(completion) -> "completion for bash or zsh".

command(Do) ->
    [First | Rest] = about(Do),
    #{help => [string:to_upper(First) | Rest] ++ "." ++ more(Do), arguments => arguments(Do)}.

more(show) ->
    "\nMETRIC is one that list tells, or one series of it. Several nodes are put together as list "
    "tells, too.\n\n"
    "  bin/sderl metrics show mem --place family:web --window day\n"
    "  bin/sderl metrics show 'orders{status=\"failed\"}' --place node:web1@host --json";
more(page) ->
    "\nNAME is one that pages lists. A line has the last value of a chart, and least, mean and "
    "most over the time of the page; each series is a line.";
more(completion) ->
    "\neval \"$(bin/sderl metrics completion bash)\", or "
    "source <(bin/sderl metrics completion zsh).";
more(_) -> "".

arguments(list) -> [option(tag, "TAG", string, "those with a tag, such as dev or op") | asking()];
arguments(show) ->
    [#{name => metric, type => string, help => {"METRIC", ["which one"]}},
     option(place, "PLACE", string,
            "cluster (where none is said), node:NODE, group:GROUP or family:FAMILY"),
     option(window, "W", {atom, windows()}, "the last 15m, hour, day, week or month (hour)"),
     option(points, "N", {integer, [{min, 1}, {max, 2000}]},
            "so many values at most (20; 300 with --json)") | asking()];
arguments(pages) -> asking();
arguments(page) ->
    [#{name => name, type => string, help => {"NAME", ["which page"]}} | asking()];
arguments(completion) ->
    [#{name => shell, type => {atom, [bash, zsh]}, help => {"SHELL", ["bash or zsh"]}}].

asking() -> [flag(json, "the answer as JSON") | sderl_cli_http:options()].

%% As on the page Metrics.
windows() -> ['15m', hour, day, week, month].

window_ms('15m') -> 15 * ?MINUTE_MS;
window_ms(hour) -> 60 * ?MINUTE_MS;
window_ms(day) -> ?DAY_MS;
window_ms(week) -> 7 * ?DAY_MS;
window_ms(month) -> 30 * ?DAY_MS.

do(completion, #{shell := Shell}) ->
    {commands, Commands} = completion(),
    {help, sderl_completion:script(Shell, "metrics", Commands)};
do(show, #{metric := ""}) ->
    {usage, "METRIC is empty: \"bin/sderl metrics list\" tells which there are"};
do(page, #{name := ""}) ->
    {usage, "NAME is empty: \"bin/sderl metrics pages\" tells which there are"};
do(page, #{name := Name} = Options) ->
    maybe
        {ok, Place} ?= sderl_cli_http:place(Options),
        Path = ["/fronts/", uri_string:quote(unicode:characters_to_binary(Name))],
        {ok, #{~"charts" := Charts} = Page} ?= sderl_cli_http:get(Place, Path),
        {ok, Window} ?= window(Page),
        Answers = [{Chart, chart(Chart, Window, Place)} || Chart <- Charts],
        case Options of
            #{json := true} -> sderl_cli_http:json(as_json(Page, Answers));
            #{} -> {help, sderl_cli_metrics_show:page(Page, Answers)}
        end
    end;
do(Do, Options) ->
    maybe
        {ok, Place} ?= sderl_cli_http:place(Options),
        sderl_cli_http:shown(sderl_cli_http:get(Place, path(Do, Options)), Options,
                             fun(Answer) -> show(Do, Answer) end)
    end.

%% A chart of a metric or a place that is gone does not stop the page.
chart(#{~"metric" := Metric, ~"place" := Of}, Window, Place) ->
    sderl_cli_http:get(Place, series_path(Metric, place(Of), Window, 300)).

window(#{~"window" := Text}) ->
    case [Window || Window <- windows(), atom_to_binary(Window) =:= Text] of
        [Window] -> {ok, Window};
        [] -> {error, ["the page is over \"", Text, "\", which this version does not know"]}
    end.

place(#{~"kind" := Kind, ~"name" := Name}) -> <<Kind/binary, $:, Name/binary>>;
place(#{~"kind" := Kind}) -> Kind.

as_json(Page, Answers) ->
    Page#{~"charts" := [case Answer of
        {ok, Series} -> Chart#{~"series" => Series};
        {error, Why} -> Chart#{~"error" => unicode:characters_to_binary(Why)}
    end || {Chart, Answer} <- Answers]}.

path(pages, _) ->
    "/fronts";
path(list, Options) ->
    ["/metrics?", uri_string:compose_query([{"tag", unicode:characters_to_binary(Tag)}
                                            || tag := Tag <- Options])];
path(show, #{metric := Metric, json := Json} = Options) ->
    series_path(unicode:characters_to_binary(Metric),
                unicode:characters_to_binary(maps:get(place, Options, "cluster")),
                maps:get(window, Options, hour),
                maps:get(points, Options, case Json of true -> 300; false -> 20 end)).

series_path(Metric, Place, Window, Points) ->
    Now = erlang:system_time(millisecond),
    Query = [{"place", Place}, {"from", integer_to_list(Now - window_ms(Window))},
             {"to", integer_to_list(Now)}, {"points", integer_to_list(Points)}],
    ["/metrics/", uri_string:quote(Metric), "/series?", uri_string:compose_query(Query)].

show(pages, Answer) -> sderl_cli_metrics_show:pages(Answer);
show(list, Answer) -> sderl_cli_metrics_show:list(Answer);
show(show, Answer) -> sderl_cli_metrics_show:series(Answer).
