%% SPDX-License-Identifier: Apache-2.0
-module(sderl_table).
-moduledoc "Tables as text for a terminal and as Markdown, and numbers as people read them.".

-export([text/2, markdown/2, one_line/1]).
-export([number/1, spread/1, spread/2, median/1]).

-doc "Columns lined up: the first to the left, the others to the right.".
-spec text(Header :: [unicode:chardata()], Rows :: [[unicode:chardata()]]) -> unicode:chardata().
text(Header, Rows) ->
    Widths = widths([Header | Rows]),
    Rule = [lists:duplicate(Width, $-) || Width <- Widths],
    [[line(Row, Widths, "  "), $\n] || Row <- [Header, Rule | Rows]].

-doc "The same as a Markdown table.".
-spec markdown(Header :: [unicode:chardata()], Rows :: [[unicode:chardata()]]) ->
    unicode:chardata().
markdown(Header, Rows) ->
    Rule = ["---" | ["---:" || _ <- tl(Header)]],
    [["| ", lists:join(" | ", Row), " |\n"] || Row <- [Header, Rule | Rows]].

-doc "Several lines as one, for a cell of a table.".
-spec one_line(unicode:chardata()) -> unicode:chardata().
one_line(Text) ->
    Lines = [string:trim(Line) || Line <- string:split(Text, "\n", all)],
    lists:join(" | ", [Line || Line <- Lines, not string:is_empty(Line)]).

widths(Rows) ->
    lists:foldl(
        fun(Row, Widths) ->
            lists:zipwith(fun max/2, [string:length(Cell) || Cell <- Row], Widths)
        end,
        [0 || _ <- hd(Rows)],
        Rows
    ).

line([First | Rest], [Width | Widths], Gap) ->
    [
        string:pad(First, Width),
        [[Gap, string:pad(Cell, W, leading)] || {Cell, W} <- lists:zip(Rest, Widths)]
    ].

-doc """
A number with two or three significant digits, or as a whole one: `12,345`, `123`, `12.3`, `0.12`,
`0.0034`; `-` for what was not measured.
""".
-spec number(number() | undefined | null) -> unicode:chardata().
number(N) when not is_number(N) -> "-";
number(N) when N < 0 -> [$- | number(-N)];
number(N) when is_integer(N); N >= 99.95 -> thousands(integer_to_list(round(N)));
number(N) when N >= 9.995 -> float_to_binary(float(N), [{decimals, 1}]);
number(N) when N >= 0.0995; N == 0 -> float_to_binary(float(N), [{decimals, 2}]);
number(N) -> float_to_binary(N, [{decimals, min(1 - floor(math:log10(N)), 9)}]).

thousands(Digits) ->
    case length(Digits) of
        L when L > 3 ->
            {Head, Tail} = lists:split(L - 3, Digits),
            thousands(Head) ++ "," ++ Tail;
        _ ->
            Digits
    end.

-doc "The median, and behind it least and greatest when there are several values that differ.".
-spec spread([number() | undefined]) -> unicode:chardata().
spread(Values) ->
    case lists:sort([V || V <- Values, is_number(V)]) of
        [] -> "-";
        [Least | _] = Sorted ->
            case lists:last(Sorted) of
                Greatest when Greatest == Least -> number(Least);
                Greatest ->
                    [number(median(Sorted)), " (", number(Least), "..", number(Greatest), ")"]
            end
    end.

-doc "As `spread/1`, of the value under this path of keys in each run.".
-spec spread([term()], Runs :: [map()]) -> unicode:chardata().
spread(Path, Runs) -> spread([lists:foldl(fun maps:get/2, Run, Path) || Run <- Runs]).

-doc "The middle one of the values, or the mean of the middle two; `undefined` for none.".
-spec median([number()]) -> number() | undefined.
median([]) ->
    undefined;
median(Values) ->
    Sorted = lists:sort(Values),
    Half = length(Sorted) div 2,
    case length(Sorted) rem 2 of
        1 -> lists:nth(Half + 1, Sorted);
        0 -> (lists:nth(Half, Sorted) + lists:nth(Half + 1, Sorted)) / 2
    end.
