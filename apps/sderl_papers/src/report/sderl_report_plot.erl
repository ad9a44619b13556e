%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_plot).
-moduledoc """
The content of a plot (`t:sderl_claim:plot/0`): the points that can be drawn, its numbers as a
table, and its content in words.
""".

-export([series/1, draw/2, left_out/1, names/1, title/1, table/1, describe/1]).

-doc """
The series that have points that can be drawn, with these points from left to right. On a
logarithmic axis nothing at or below 0 can.
""".
-spec series(sderl_claim:plot()) ->
    [{Name :: binary(), [#{x := number(), y := number(), low := number(), high := number()}]}].
series(#{series := Series} = Plot) ->
    [{text(Name), Points}
     || #{name := Name, points := Given} <- Series, Points <- [drawable(Plot, Given)],
        Points =/= []].

drawable(#{x := X, y := Y}, Points) ->
    lists:sort([
        #{x => Px, y => Py, low => low(Y, Point),
          high => max(Py, maps:get(high, measured(Point), Py))}
     || #{x := Px, y := Py} = Point <- Points, on(X, Px), on(Y, Py)
    ]).

low(Axis, #{y := Y} = Point) ->
    case maps:get(low, measured(Point), Y) of
        Low when Low < Y -> case on(Axis, Low) of true -> Low; false -> Y end;
        _ -> Y
    end.

measured(Point) -> #{Key => Value || Key := Value <- Point, is_number(Value)}.

on(#{scale := log}, Value) -> is_number(Value) andalso Value > 0;
on(_, Value) -> is_number(Value).

-doc "How the series of a name is drawn: as points, as a line, or as both.".
-spec draw(sderl_claim:plot(), Name :: binary()) -> line | points | both.
draw(#{series := Series}, Name) ->
    hd([maps:get(draw, Of, both) || #{name := Same} = Of <- Series, text(Same) =:= Name]).

-doc "How many points were measured and cannot be drawn.".
-spec left_out(sderl_claim:plot()) -> non_neg_integer().
left_out(#{series := Series} = Plot) ->
    length([P
            || #{points := Ps} <- Series, #{x := X, y := Y} = P <- Ps, is_number(X),
               is_number(Y)]) -
        length(lists:append([Points || {_, Points} <- series(Plot)])).

-doc """
The names of all series, each once, in their order: a name looks the same in all plots of a page.
""".
-spec names([sderl_claim:plot()]) -> [binary()].
names(Plots) ->
    lists:uniq([text(Name) || #{series := Series} <- Plots, #{name := Name} <- Series]).

-doc "The title of an axis with its unit: `latency (ms)`.".
-spec title(sderl_claim:axis()) -> binary().
title(#{label := Label} = Axis) ->
    Notes = [U || #{unit := U} <- [Axis], text(U) =/= <<>>] ++
        ["log scale" || #{scale := log} <- [Axis]],
    text([Label, [[" (", lists:join(", ", Notes), ")"] || Notes =/= []]]).

-doc """
The plot's numbers: a row for each x, a column for each series; after a value its least and
greatest. Where there are measured points, computed lines have values at the same x only.
""".
-spec table(sderl_claim:plot()) -> {Header :: [binary()], Rows :: [[binary()]]}.
table(#{x := X, y := Y, series := Series}) ->
    Unit = [[" (", U, ")"] || #{unit := U} <- [Y], text(U) =/= <<>>],
    Measured = [Of || Of <- Series, maps:get(draw, Of, both) =/= line],
    Xs = lists:usort([V || #{points := Points} <- case Measured of [] -> Series; _ -> Measured end,
                           #{x := V} <- Points]),
    {
        [title(maps:without([scale], X)) | [text([Name, Unit]) || #{name := Name} <- Series]],
        [[text(number(V)) | [cell(V, Points) || #{points := Points} <- Series]] || V <- Xs]
    }.

cell(X, Points) ->
    text(lists:join("; ", case [value(Point) || #{x := Px} = Point <- Points, Px == X] of
        [] -> ["-"];
        Values -> Values
    end)).

value(#{y := Y} = Point) ->
    case Point of
        #{low := Low, high := High}
          when is_number(Y), is_number(Low), is_number(High), Low < High ->
            [number(Y), " (", number(Low), "..", number(High), ")"];
        #{} -> number(Y)
    end.

%% A number of nodes may come as a float.
number(V) when is_float(V), V == round(V) -> sderl_table:number(round(V));
number(V) -> sderl_table:number(V).

-doc "The content in words, for those who cannot see it.".
-spec describe(sderl_claim:plot()) -> binary().
describe(#{x := X, y := Y} = Plot) ->
    text([
        "Across: ", title(X), ". Upwards: ", title(Y), ".",
        [[" ", Name, ": ", ends(Points), "."] || {Name, Points} <- series(Plot)],
        [[" Line: ", Text, "."] || #{text := Text} <- maps:get(marks, Plot, [])]
    ]).

ends([#{x := X, y := Y}]) -> [number(Y), " at ", number(X)];
ends([#{x := X, y := Y} | _] = Points) ->
    #{x := LastX, y := LastY} = lists:last(Points),
    ["from ", number(Y), " at ", number(X), " to ", number(LastY), " at ", number(LastX)].

text(Text) -> sderl_claim_points:text(Text).
