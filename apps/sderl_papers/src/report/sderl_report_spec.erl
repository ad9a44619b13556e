%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_spec).
-moduledoc """
A plot as a specification of Vega-Lite, in two shapes: `wide` for a page, and `narrow` for a phone.

A series has its name beside the end of its line (above a narrow plot), and differs from the others
in dashes and shapes as well as in colour. Colours are names of the page's style sheet, so that they
follow light and dark.

A linear `y` begins at 0 unless its axis says otherwise.
""".

-export([spec/3, style/1]).
-export_type([shape/0]).

-type shape() :: wide | narrow.

%% In pixels. A page's column is 720 wide; 60 of them are the axis.
-define(SIZES, #{wide => #{total => 720, height => 320}, narrow => #{total => 340, height => 260}}).
-define(AXIS, 60).
-define(LINE_HEIGHT, 17).
-define(FONT, 13).
%% Mean width of a character.
-define(CHAR, 6.9).
%% Pixels between the bars of two series; more series take no more room than three.
-define(ASIDE, 4).
%% More points than this are drawn as a line with a band, and not one by one.
-define(MANY, 30).

-define(DASHES, [[], [8, 3], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2]]).
-define(SHAPES, [<<"circle">>, <<"square">>, <<"triangle-up">>, <<"diamond">>, <<"triangle-down">>,
                 <<"cross">>]).

-doc """
How the I-th series looks, from 1. The seventh has the colour of the first and the dashes of the
second.
""".
-spec style(pos_integer()) -> #{colour := binary(), dash := [pos_integer()], shape := binary()}.
style(I) ->
    N = length(?DASHES),
    #{
        colour => text(io_lib:format("var(--s~w)", [(I - 1) rem N + 1])),
        dash => lists:nth((I - 1 + (I - 1) div N) rem N + 1, ?DASHES),
        shape => lists:nth((I - 1 + (I - 1) div N) rem N + 1, ?SHAPES)
    }.

-doc """
The specification as terms for JSON; `none` for a plot without a point that can be drawn. The place
of a series in `Names` decides its style.
""".
-spec spec(sderl_claim:plot(), shape(), Names :: [binary()]) -> map() | none.
spec(Plot, Shape, Names) ->
    case sderl_report_plot:series(Plot) of
        [] -> none;
        Series ->
            spec(Plot, Shape, Series,
                 [{Name, (style(index(Name, Names)))#{draw => sderl_report_plot:draw(Plot, Name)}}
                  || {Name, _} <- Series])
    end.

index(Name, [Name | _]) -> 1;
index(Name, [_ | Names]) -> 1 + index(Name, Names).

spec(#{x := X, y := Y} = Plot, Shape, Series, Styles) ->
    #{total := Total, height := Height} = map_get(Shape, ?SIZES),
    Keys = [{Name, wrapped(Name, case Shape of wide -> 28; narrow -> 44 end)}
            || {Name, _} <- Series],
    Width = case Shape of
        wide ->
            Total - ?AXIS - 44 - round(?CHAR * lists:max([longest(Lines) || {_, Lines} <- Keys]));
        narrow -> Total - ?AXIS
    end,
    Marks = marks(Plot),
    Asides = asides(Series, Styles),
    XAxis = sderl_report_axis:new(
        X, [V || Ps <- measured(Series, Styles), #{x := V} <- Ps] ++ [V || #{x := V} <- Marks], 8
    ),
    YAxis = sderl_report_axis:new(
        maps:merge(#{zero => true}, Y),
        [V || {_, Ps} <- Series, #{low := L, high := H} <- Ps, V <- [L, H]] ++
        [V || #{y := V} <- Marks]
    ),
    YTitle = wrapped(sderl_report_plot:title(Y), round((Total - 20) / ?CHAR)),
    Axes = #{
        x => axis(XAxis, #{title => wrapped(sderl_report_plot:title(X), round(Width / ?CHAR)),
                           grid => false, titlePadding => 8}),
        y => axis(YAxis, #{title => YTitle, titleAngle => 0, titleAlign => left,
                           titleBaseline => bottom, titleX => -46, titleY => -10, grid => true,
                           domain => false, ticks => false, labelPadding => 12})
    },
    Places = case Shape of
        wide -> beside(Series, Keys, YAxis, Width, Height);
        narrow -> above(Keys, length(YTitle))
    end,
    #{
        width => Width,
        height => Height,
        padding => 4,
        layer => lists:append([
            [spread(Points, Style, Aside, Axes)
             || {{_, Points}, {_, Style}, Aside} <- lists:zip3(Series, Styles, Asides)],
            [line(Points, Style, Aside, Axes)
             || {{_, Points}, {_, Style}, Aside} <- lists:zip3(Series, Styles, Asides)],
            [mark(Mark, I, Series, XAxis, YAxis, Axes, Width)
             || {I, Mark} <- lists:enumerate(0, Marks)],
            [key(Place, Lines, Style)
             || {Place, {_, Lines}, {_, Style}} <- lists:zip3(Places, Keys, Styles)]
        ]),
        config => config()
    }.

config() ->
    Ink = <<"var(--ink)">>,
    #{
        aria => false,
        background => null,
        font => <<"inherit">>,
        view => #{stroke => null},
        text => #{fontSize => ?FONT, fill => Ink, lineBreak => <<"\n">>},
        axis => #{
            labelFontSize => ?FONT, titleFontSize => ?FONT, titleFontWeight => normal,
            labelColor => <<"var(--quiet)">>, titleColor => Ink, titleLimit => 0,
            gridColor => <<"var(--rule)">>, domainColor => <<"var(--quiet)">>,
            tickColor => <<"var(--quiet)">>, labelOverlap => greedy, labelFlush => false,
            labelSeparation => 5, labelPadding => 5
        }
    }.

%% ---------------------------------------------------------------- axes

axis(#{kind := Kind, low := Low, high := High, ticks := Ticks, format := Format}, Options) ->
    #{
        type => quantitative,
        scale => #{type => Kind, domain => [Low, High], nice => false, zero => false},
        axis => Options#{values => Ticks, format => Format}
    }.

encoded(Fields, Axes) ->
    #{Channel => (map_get(Axis, Axes))#{field => Field} || {Channel, Axis, Field} <- Fields}.

%% ---------------------------------------------------------------- series

%% The points of the measured series, or of all where all were computed. The axis has ticks at
%% these.
measured(Series, Styles) ->
    case [Points || {{_, Points}, {_, #{draw := Draw}}} <- lists:zip(Series, Styles),
                    Draw =/= line] of
        [] -> [Points || {_, Points} <- Series];
        Measured -> Measured
    end.

%% Bars that would hide each other are drawn a few pixels apart, and so are single points. A line
%% that was computed is not moved.
asides(Series, Styles) ->
    Draws = [Draw || {_, #{draw := Draw}} <- Styles],
    Measured = measured(Series, Styles),
    Bars = lists:any(fun(Points) ->
        lists:any(fun(#{low := Low, high := High}) -> Low < High end, Points)
    end, Measured),
    Few = lists:all(fun(Points) -> length(Points) =< ?MANY end, Measured),
    case lists:member(points, Draws) orelse (Bars andalso Few) of
        true ->
            Count = length(Measured),
            Step = min(?ASIDE, 2 * ?ASIDE / max(1, Count - 1)),
            aside(Draws, Step, -Step * (Count - 1) / 2);
        false -> [0 || _ <- Series]
    end.

aside([], _, _) -> [];
aside([line | Draws], Step, At) -> [0 | aside(Draws, Step, At)];
aside([_ | Draws], Step, At) -> [At | aside(Draws, Step, At + Step)].

line(Points, #{draw := points, colour := Colour, shape := Shape}, Aside, Axes) ->
    #{
        data => #{values => [maps:with([x, y], P) || P <- Points]},
        mark => #{type => point, shape => Shape, size => 40, color => Colour, filled => true,
                  opacity => 0.6, xOffset => Aside},
        encoding => encoded([{x, x, x}, {y, y, y}], Axes)
    };
line(Points, #{draw := Draw, colour := Colour, dash := Dash, shape := Shape}, Aside, Axes) ->
    #{
        data => #{values => [maps:with([x, y], P) || P <- Points]},
        mark => #{
            type => line, color => Colour, strokeDash => Dash, strokeWidth => 2,
            strokeJoin => round, xOffset => Aside,
            point => case Draw =:= line orelse length(Points) > ?MANY of
                true -> false;
                false ->
                    #{shape => Shape, size => 64, color => Colour, filled => true, opacity => 1,
                      xOffset => Aside}
            end
        },
        encoding => encoded([{x, x, x}, {y, y, y}], Axes)
    }.

%% From the least to the greatest value: bars, or a band where there are many.
spread(Points, #{colour := Colour}, Aside, Axes) ->
    Encoding = (encoded([{x, x, x}, {y, y, low}], Axes))#{y2 => #{field => high}},
    case length(Points) > ?MANY of
        true ->
            #{data => #{values => Points},
              mark => #{type => area, color => Colour, opacity => 0.18}, encoding => Encoding};
        false ->
            #{
                data => #{values => [P || #{low := Low, high := High} = P <- Points, Low < High]},
                mark => #{
                    type => errorbar, color => Colour, opacity => 0.75,
                    ticks => #{size => 7, thickness => 1.5, xOffset => Aside},
                    rule => #{strokeWidth => 1.5, xOffset => Aside}
                },
                encoding => Encoding
            }
    end.

%% ---------------------------------------------------------------- marks

marks(#{x := X, y := Y} = Plot) ->
    [Mark || Mark <- maps:get(marks, Plot, []), drawable(Mark, X, Y)].

drawable(#{x := V}, Axis, _) -> on(Axis, V);
drawable(#{y := V}, _, Axis) -> on(Axis, V);
drawable(_, _, _) -> false.

on(#{scale := log}, V) -> is_number(V) andalso V > 0;
on(_, V) -> is_number(V).

%% A line and its text, which is legible over other lines.
mark(Mark, I, Series, XAxis, YAxis, Axes, Width) ->
    {Fields, Place, Look} = case Mark of
        #{x := X} ->
            %% Text of a line in the right half is on its left side.
            {Align, Dx} = case sderl_report_axis:position(XAxis, X) > 0.5 of
                true -> {right, -6};
                false -> {left, 6}
            end,
            {[{x, x, x}], #{y => value(?LINE_HEIGHT * I + 12)}, #{align => Align, dx => Dx}};
        #{y := Y} ->
            %% At the end where the lines are farther from the mark, and on the other side of it.
            At = sderl_report_axis:position(YAxis, Y),
            Nearest = fun(End) ->
                hd(lists:sort([{abs(P - At), P > At}
                               || {_, Points} <- Series, P <- [
                                   sderl_report_axis:position(YAxis, map_get(y, End(Points)))
                               ]]))
            end,
            {{Align, X}, {_, Above}} = case {Nearest(fun hd/1), Nearest(fun lists:last/1)} of
                {Left, Right} when Right > Left -> {{right, Width - 4}, Right};
                {Left, _} -> {{left, 4}, Left}
            end,
            {[{y, y, y}], #{x => value(X)},
             #{align => Align, dy => case Above of true -> 10; false -> -7 end}}
    end,
    Encoding = encoded(Fields, Axes),
    Text = fun(More) ->
        #{
            mark => maps:merge(Look#{type => text, fill => <<"var(--quiet)">>}, More),
            encoding => maps:merge(Encoding, Place#{text => value(text(map_get(text, Mark)))})
        }
    end,
    #{
        data => #{values => [maps:with([x, y], Mark)]},
        layer => [
            #{mark => #{type => rule, color => <<"var(--quiet)">>, strokeDash => [4, 4],
                        strokeWidth => 1.25},
              encoding => Encoding},
            Text(#{stroke => <<"var(--paper)">>, strokeWidth => 5, strokeJoin => round}),
            Text(#{})
        ]
    }.

%% ---------------------------------------------------------------- names of series

%% Beside the ends of the lines, moved apart where they would overlap.
beside(Series, Keys, YAxis, Width, Height) ->
    Ends =
        [{Height * (1 - sderl_report_axis:position(YAxis, map_get(y, lists:last(Points)))),
          ?LINE_HEIGHT * length(Lines), I}
         || {I, {_, Points}, {_, Lines}} <- lists:zip3(lists:seq(1, length(Series)), Series, Keys)],
    Placed = up(down(lists:sort(Ends)), Height),
    [{Width + 16, Y} || {_, Y} <- lists:sort([{I, Y} || {Y, _, I} <- Placed])].

%% From the top: each below the one before.
down([First | Rest]) ->
    {Placed, _} = lists:mapfoldl(
        fun({Y0, Size, I}, {Above, SizeAbove}) ->
            Y = max(Y0, Above + (SizeAbove + Size) / 2),
            {{Y, Size, I}, {Y, Size}}
        end,
        {element(1, First), -element(2, First)},
        [First | Rest]
    ),
    Placed.

%% From the bottom: none beyond the plot's foot.
up(Placed, Height) ->
    {Up, _} = lists:mapfoldr(
        fun({Y0, Size, I}, Foot) ->
            Y = min(Y0, Foot - Size / 2),
            {{Y, Size, I}, Y - Size / 2}
        end,
        Height + ?LINE_HEIGHT,
        Placed
    ),
    Up.

above(Keys, TitleLines) ->
    Sizes = [?LINE_HEIGHT * length(Lines) + 3 || {_, Lines} <- Keys],
    Top = -16 - ?LINE_HEIGHT * TitleLines - lists:sum(Sizes),
    {Places, _} = lists:mapfoldl(fun(Size, Y) -> {{-46, Y + Size / 2}, Y + Size} end, Top, Sizes),
    Places.

key({X, Y}, Lines, #{draw := Draw, colour := Colour, dash := Dash, shape := Shape}) ->
    Height = value(Y),
    Line = #{
        mark => #{type => rule, color => Colour, strokeDash => Dash, strokeWidth => 2},
        encoding => #{x => value(X), x2 => value(X + 26), y => Height}
    },
    Point = #{
        mark => #{type => point, filled => true, color => Colour, shape => Shape,
                  size => 64, opacity => 1},
        encoding => #{x => value(X + 13), y => Height}
    },
    #{
        data => #{values => [#{}]},
        layer => [Line || Draw =/= points] ++ [Point || Draw =/= line] ++ [
            #{
                mark => #{type => text, align => left, baseline => middle,
                          lineHeight => ?LINE_HEIGHT - 2},
                encoding => #{x => value(X + 33),
                              y => value(Y - (length(Lines) - 1) * (?LINE_HEIGHT - 2) / 2),
                              text => value(text(lists:join($\n, Lines)))}
            }
        ]
    }.

value(V) -> #{value => V}.

%% Lines of at most so many characters, parted at blanks.
wrapped(Text, Most) ->
    [text(Line) || Line <- lines(string:lexemes(Text, " "), Most)].

lines([], _) -> [""];
lines([Word | Words], Most) ->
    lists:reverse(
        lists:foldl(
            fun(Next, [Line | Lines]) ->
                case string:length(Line) + 1 + string:length(Next) > Most of
                    true -> [Next, Line | Lines];
                    false -> [[Line, $\s, Next] | Lines]
                end
            end,
            [Word],
            Words
        )
    ).

longest(Lines) -> lists:max([string:length(Line) || Line <- Lines]).

text(Text) -> sderl_claim_points:text(Text).
