%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_metrics_show).
-moduledoc "What `bin/sderl metrics` prints of the answers of a dashboard. Pure.".

-export([list/1, series/1, pages/1, page/2]).

-import(sderl_cli_time, [time/1]).

%% More series do not fit beside each other on a terminal.
-define(MOST_COLUMNS, 6).

-doc "A line for each metric.".
-spec list(map()) -> unicode:chardata().
list(#{~"metrics" := []}) -> "no metrics\n";
list(#{~"metrics" := Metrics}) ->
    Rows = [[Name, Total, Unit, About]
            || #{~"name" := Name, ~"total" := Total, ~"unit" := Unit, ~"about" := About}
                   <- Metrics],
    Widths = lists:foldl(fun(Row, Most) -> lists:zipwith(fun max/2, widths(Row), Most) end,
                         [0, 0, 0, 0], Rows),
    [[string:trim(lists:zipwith(fun(Cell, Width) -> string:pad(Cell, Width + 2) end, Row, Widths),
                  trailing), $\n]
     || Row <- Rows].

widths(Row) -> [string:length(Cell) || Cell <- Row].

-doc """
The values, one line for each time, and least, mean and most of them; each series of a metric of the
application is a column.
""".
-spec series(map()) -> unicode:chardata().
series(#{~"metric" := Metric, ~"place" := Place, ~"columns" := Columns})
  when map_size(Columns) =:= 0 ->
    ["nothing of ", Place, " has told ", Metric, " in that time\n"];
series(#{~"metric" := Metric, ~"unit" := Unit, ~"total" := Total, ~"place" := Place,
         ~"t" := Times, ~"columns" := Columns}) ->
    All = lists:sort(maps:to_list(Columns)),
    Shown = lists:sublist(All, ?MOST_COLUMNS),
    [
        Metric, " of ", Place, [[", ", Unit] || Unit =/= ~""],
        [[" (", Total, " of its nodes)"] || not is_node(Place)], "\n\n",
        sderl_table:text(
            ["time" | [heading(Name, Metric) || {Name, _} <- Shown]],
            [[time(T) | [sderl_table:number(V) || V <- Values]]
             || {T, Values} <- lists:zip(Times, rows([Values || {_, Values} <- Shown], Times))]
                ++ [[Name | [sderl_table:number(Of(Values)) || {_, Values} <- Shown]]
                    || {Name, Of} <- sums()]
        ),
        more(All -- Shown)
    ].

-doc "A line for each saved page of charts.".
-spec pages(map()) -> unicode:chardata().
pages(#{~"pages" := []} = Answer) -> ["no saved pages\n", unread(Answer)];
pages(#{~"pages" := Pages} = Answer) ->
    [sderl_table:text(["page", "window", "charts"],
                      [[Name, Window, integer_to_list(length(Charts))]
                       || #{~"name" := Name, ~"window" := Window, ~"charts" := Charts} <- Pages]),
     unread(Answer)].

unread(#{~"problem" := Problem}) when is_binary(Problem), Problem =/= ~"" -> [Problem, $\n];
unread(_) -> "".

-doc "The charts of a page with their numbers; of those without, the reason.".
-spec page(map(), [{Chart :: map(), {ok, Series :: map()} | {error, unicode:chardata()}}]) ->
    unicode:chardata().
page(#{~"name" := Name, ~"window" := Window}, Charts) ->
    Rows = lists:append([rows_of(Series) || {_, {ok, Series}} <- Charts]),
    [
        "page ", Name, ", the last ", Window, $\n,
        [["\n", sderl_table:text(["metric", "of", "unit", "last", "least", "mean", "most"], Rows)]
         || Rows =/= []],
        [["\n", Metric, ": ", Why, "\n"] || {#{~"metric" := Metric}, {error, Why}} <- Charts]
    ].

rows_of(#{~"metric" := Metric, ~"place" := Place, ~"columns" := Columns})
  when map_size(Columns) =:= 0 ->
    [[Metric, Place, "", "-", "-", "-", "-"]];
rows_of(#{~"place" := Place, ~"unit" := Unit, ~"columns" := Columns}) ->
    [[Series, Place, Unit | [sderl_table:number(Of(Values)) || {_, Of} <- [last() | sums()]]]
     || Series := Values <- maps:iterator(Columns, ordered)].

last() ->
    {"last", fun(Values) -> of_known(fun lists:last/1, Values) end}.

is_node(<<"node:", _/binary>>) -> true;
is_node(_) -> false.

%% The metric is told above; of a series its tags.
heading(Metric, Metric) -> Metric;
heading(Name, Metric) ->
    case string:prefix(Name, Metric) of
        nomatch -> Name;
        Tags -> string:trim(Tags, both, "{}")
    end.

rows(Columns, Times) ->
    lists:foldr(fun(Values, Rows) -> lists:zipwith(fun(V, Row) -> [V | Row] end, Values, Rows) end,
                [[] || _ <- Times], Columns).

sums() ->
    [{"least", fun(Values) -> of_known(fun lists:min/1, Values) end},
     {"mean", fun(Values) ->
          of_known(fun(Known) -> lists:sum(Known) / length(Known) end, Values)
      end},
     {"most", fun(Values) -> of_known(fun lists:max/1, Values) end}].

of_known(Of, Values) ->
    case [Value || Value <- Values, is_number(Value)] of
        [] -> null;
        Known -> Of(Known)
    end.

more([]) -> "";
more(Others) ->
    ["\nand ", integer_to_list(length(Others)), " more series; --json has all, and each can be "
     "shown by its name, such as '", element(1, hd(Others)), "'\n"].
