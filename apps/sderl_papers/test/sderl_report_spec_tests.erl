%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_spec_tests).
-include_lib("eunit/include/eunit.hrl").

plot(Scale, Series) ->
    #{
        title => <<"t">>, x => #{label => <<"nodes">>, unit => <<>>, scale => Scale},
        y => #{label => <<"p50">>, unit => <<"ms">>, scale => Scale},
        series => [#{name => Name,
                     points => [#{x => X, y => Y, low => L, high => H} || {X, Y, L, H} <- Points]}
                   || {Name, Points} <- Series]
    }.

%% ---------------------------------------------------------------- axes

axis_test_() ->
    Log = fun(Values) -> ends(sderl_report_axis:new(#{scale => log}, Values)) end,
    Linear = fun(Zero, Values) ->
        ends(sderl_report_axis:new(#{scale => linear, zero => Zero}, Values))
    end,
    [
        ?_assertEqual({0, 2000, [0, 500, 1000, 1500, 2000]}, Linear(true, [620, 1730])),
        ?_assertEqual({0, 0.3, [0, 0.1, 0.2, 0.3]}, clean(Linear(true, [0.11, 0.3]))),
        ?_assertEqual({-20, 40, [-20, 0, 20, 40]}, Linear(true, [-20, 40])),
        ?_assertEqual({95, 101, [95, 96, 97, 98, 99, 100, 101]}, Linear(false, [95.5, 100.5])),
        ?_assertEqual({2, 300, [2, 5, 10, 20, 50, 100, 200]}, Log([2.2, 250])),
        ?_assertEqual({0.08, 30, [0.1, 0.2, 0.5, 1, 2, 5, 10, 20]}, Log([0.09, 21])),
        ?_assertEqual({1, 100_000, [1, 10, 100, 1000, 10_000, 100_000]}, Log([1, 100_000])),
        ?_assertEqual({20, 50, [20, 30, 40, 50]}, Log([22, 48]))
    ].

ends(#{low := Low, high := High, ticks := Ticks}) -> {Low, High, Ticks}.

clean({Low, High, Ticks}) -> {Low, High, [case T == 0 of true -> 0; false -> T end || T <- Ticks]}.

%% Any values are on the axis, and it has ticks, in order, at different places.
any_values_test_() ->
    Values = [[5], [0], [0, 0], [-3], [7, 7], [1.0e-6, 1.0e9], [0.1, 0.30000001],
              [99.99999999, 100.00000001], [1.0e15, 2.0e15], [3.1e-7]],
    [
        {lists:flatten(io_lib:format("~w ~w ~w", [Scale, Zero, Vs])), fun() ->
            Axis = #{low := Low, high := High, ticks := Ticks} =
                sderl_report_axis:new(#{scale => Scale, zero => Zero}, Vs),
            ?assert(Low < High),
            [?assert(V >= Low andalso V =< High) || V <- Vs],
            ?assert(length(Ticks) >= 2 andalso length(Ticks) =< 12),
            ?assertEqual(Ticks, lists:usort(Ticks)),
            [?assert(T >= Low andalso T =< High) || T <- Ticks],
            ?assert(abs(sderl_report_axis:position(Axis, Low)) < 1.0e-9),
            ?assert(abs(sderl_report_axis:position(Axis, High) - 1) < 1.0e-9)
        end}
     || Scale <- [linear, log], Zero <- [true, false], Vs <- Values,
        Scale =:= linear orelse lists:all(fun(V) -> V > 0 end, Vs)
    ].

%% Ticks are at the numbers of nodes that were measured, where these are few.
measured_ticks_test() ->
    ?assertMatch(#{low := 10, high := 100, ticks := [10, 20, 50, 100]},
                 sderl_report_axis:new(#{scale => log}, [100, 10, 50, 20, 20], 8)),
    ?assertMatch(#{low := 0, high := 80, ticks := [0, 1, 40, 80]},
                 sderl_report_axis:new(#{scale => linear, zero => true}, [1, 40, 80], 8)),
    ?assertMatch(#{low := 0, high := 60, ticks := [0, 20, 40, 60]},
                 sderl_report_axis:new(#{scale => linear, zero => true}, lists:seq(1, 60), 8)).

large_numbers_test() ->
    ?assertMatch(#{format := <<"~s">>},
                 sderl_report_axis:new(#{scale => linear, zero => true}, [60_000_000])),
    ?assertMatch(#{format := <<",~r">>},
                 sderl_report_axis:new(#{scale => linear, zero => true}, [1500])).

%% ---------------------------------------------------------------- specifications

spec_test() ->
    Plot = plot(log, [{<<"stock">>, [{10, 2, 1.8, 2.5}, {100, 20, 20, 20}]},
                      {<<"pg">>, [{10, 0.1, 0.1, 0.1}]}]),
    Spec = #{layer := Layers} = sderl_report_spec:spec(Plot, wide, [<<"stock">>, <<"pg">>]),
    %% Only a point with a spread has an error bar.
    [Bars] = [Values
              || #{mark := #{type := errorbar}, data := #{values := Values}} <- Layers,
                 Values =/= []],
    ?assertEqual([#{x => 10, y => 2, low => 1.8, high => 2.5}], Bars),
    ?assertMatch([[#{x := 10, y := 2}, #{x := 100, y := 20}], [#{x := 10, y := 0.1}]],
                 [V || #{mark := #{type := line}, data := #{values := V}} <- Layers]),
    Lines = [M || #{mark := #{type := line} = M} <- Layers],
    [?assertEqual(2, length(lists:usort([map_get(K, L) || L <- Lines])))
     || K <- [color, strokeDash]],
    [#{encoding := #{x := X, y := Y}} | _] = Layers,
    ?assertMatch(#{scale := #{type := log, domain := [10, 100]},
                   axis := #{title := [<<"nodes (log scale)">>]}}, X),
    ?assertMatch(#{scale := #{type := log, domain := [0.1, 20]},
                   axis := #{title := [<<"p50 (ms, log scale)">>]}}, Y),
    ?assertEqual(Spec, sderl_report_spec:spec(Plot, wide, [<<"stock">>, <<"pg">>])),
    %% The specification can be written as JSON, and refers to no address.
    ?assertEqual(nomatch, string:find(iolist_to_binary(json:encode(Spec)), "url")).

linear_test() ->
    Plot = plot(linear, [{<<"a">>, [{10, 3, 2, 4}, {20, 5, 5, 5}]}]),
    ?assertMatch(#{scale := #{type := linear, domain := [0, 5]}}, axis(y, Plot)),
    ?assertMatch(#{scale := #{domain := [10, 20]}}, axis(x, Plot)),
    #{x := X, y := Y} = Plot,
    ?assertMatch(#{scale := #{domain := [0, 20]}}, axis(x, Plot#{x := X#{zero => true}})),
    ?assertMatch(#{scale := #{domain := [2, 5]}}, axis(y, Plot#{y := Y#{zero => false}})).

axis(Name, Plot) ->
    #{layer := [#{encoding := #{Name := Axis}} | _]} =
        sderl_report_spec:spec(Plot, narrow, [<<"a">>]),
    Axis.

%% Many points are drawn as a band and a line.
many_test() ->
    Plot = plot(linear, [{<<"a">>, [{X, X, X - 1, X + 1} || X <- lists:seq(1, 60)]}]),
    #{layer := Layers} = sderl_report_spec:spec(Plot, wide, [<<"a">>]),
    ?assertMatch([_], [L || #{mark := #{type := area}} = L <- Layers]),
    ?assertMatch([false], [P || #{mark := #{type := line, point := P}} <- Layers]).

%% Values that a logarithmic axis cannot show are left out and counted.
nothing_at_zero_test() ->
    Plot = plot(log, [{<<"a">>, [{1, 0, 0, 0}, {2, 5, 0, 6}]}, {<<"b">>, [{1, 0, 0, 0}]},
                      {<<"c">>, []}]),
    ?assertEqual([{<<"a">>, [#{x => 2, y => 5, low => 5, high => 6}]}],
                 sderl_report_plot:series(Plot)),
    ?assertEqual(2, sderl_report_plot:left_out(Plot)),
    ?assertEqual(none,
                 sderl_report_spec:spec(plot(log, [{<<"b">>, [{1, 0, 0, 0}]}]), wide, [<<"b">>])),
    ?assertEqual(none, sderl_report_spec:spec(plot(log, []), wide, [])),
    ?assertEqual(none, sderl_report_spec:spec(plot(linear, [{<<"c">>, []}]), wide, [<<"c">>])).

%% The same name looks the same in every plot of a page, and eight series are eight looks.
style_test() ->
    ?assertEqual([<<"a">>, <<"b">>, <<"c">>],
                 sderl_report_plot:names([plot(log, [{<<"a">>, []}, {<<"b">>, []}]),
                                          plot(log, [{<<"b">>, []}, {<<"c">>, []}])])),
    Looks = [maps:remove(colour, sderl_report_spec:style(I)) || I <- lists:seq(1, 6)],
    ?assertEqual(6, length(lists:usort(Looks))),
    ?assertEqual(12, length(lists:usort([sderl_report_spec:style(I) || I <- lists:seq(1, 12)]))).

%% Names of lines that end at one height are apart, and within the plot's height.
names_apart_test() ->
    Series = [{integer_to_binary(I), [{1, 1, 1, 1}, {2, 1, 1, 1}]} || I <- lists:seq(1, 6)],
    #{layer := Layers, height := Height} =
        sderl_report_spec:spec(plot(linear, Series ++ [{<<"7">>, [{1, 9, 9, 9}]}]), wide,
                               [integer_to_binary(I) || I <- lists:seq(1, 7)]),
    Ys = lists:sort([Y
                     || #{layer := [#{encoding := #{x2 := _, y := #{value := Y}}} | _]} <- Layers]),
    ?assertEqual(7, length(Ys)),
    [?assert(B - A >= 16) || {A, B} <- lists:zip(lists:droplast(Ys), tl(Ys))],
    ?assert(lists:last(Ys) =< Height + 10).

marks_test() ->
    Plot = (plot(log, [{<<"a">>, [{10, 1, 1, 1}, {100, 2, 2, 2}]}]))#{
        marks => [#{y => 8, text => <<"8 times">>}, #{x => 40, text => <<"here">>},
                  #{y => 0, text => <<"never">>}]
    },
    #{layer := Layers} = sderl_report_spec:spec(Plot, wide, [<<"a">>]),
    ?assertEqual([<<"8 times">>, <<"here">>],
                 [T
                  || #{layer := [#{mark := #{type := rule}}, _,
                                 #{encoding := #{text := #{value := T}}}],
                       data := #{values := [V]}} <- Layers,
                     map_size(V) > 0]),
    #{scale := #{domain := [_, High]}} = map_get(y, map_get(encoding, hd(Layers))),
    ?assert(High >= 8).

table_test() ->
    Plot = plot(log, [{<<"a">>, [{10, 2, 1.5, 3}, {20, 5000, 5000, 5000}]},
                      {<<"b">>, [{20.0, 0.1234, 0.1234, 0.1234}]}]),
    ?assertEqual({[<<"nodes">>, <<"a (ms)">>, <<"b (ms)">>],
                  [[<<"10">>, <<"2 (1.50..3)">>, <<"-">>], [<<"20">>, <<"5,000">>, <<"0.12">>]]},
                 sderl_report_plot:table(Plot)).

%% A computed series has a line and no points; a series of single values has points and no line. The
%% ticks of the axis and the rows of the table are at measured values.
draws_test() ->
    #{series := [Of, Law, Values]} = Plot0 =
        plot(linear, [{<<"a">>, [{1, 1, 1, 1}, {2, 2, 1, 3}]},
                      {<<"law">>, [{1, 1, 1, 1}, {1.5, 1.4, 1.4, 1.4}, {2, 1.8, 1.8, 1.8}]},
                      {<<"values">>, [{1, 3, 3, 3}, {1, 4, 4, 4}]}]),
    Plot = Plot0#{series := [Of, Law#{draw => line}, Values#{draw => points}]},
    #{layer := Layers} = sderl_report_spec:spec(Plot, wide, [<<"a">>, <<"law">>, <<"values">>]),
    Marks = [Mark || #{mark := #{type := Type} = Mark} <- Layers, Type =/= errorbar],
    ?assertMatch([#{type := line, point := #{}, xOffset := A},
                  #{type := line, point := false, xOffset := 0},
                  #{type := point, xOffset := B}] when A < B, Marks),
    [Ticks] = lists:usort([At || #{encoding := #{x := #{axis := #{values := At}}}} <- Layers]),
    ?assertNot(lists:member(1.5, Ticks)),
    ?assertMatch({_, [[<<"1">>, _, _, <<"3; 4">>], [<<"2">> | _]]},
                 sderl_report_plot:table(Plot)).
