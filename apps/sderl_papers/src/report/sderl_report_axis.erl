%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_axis).
-moduledoc """
An axis of a plot: from where to where it goes, where its ticks are, and how far along it a value
is.

They are computed here, and not by the library that draws, because the names of series are placed
beside the ends of their lines, which must be known beforehand.
""".

-export([new/2, new/3, position/2]).
-export_type([axis/0, kind/0]).

-type kind() :: linear | log.

-doc "Ends and ticks; `format` is one of d3-format.".
-type axis() ::
    #{kind := kind(), low := number(), high := number(), ticks := [number()], format := binary()}.

%% Steps of a decade, from few to many: the first that give so many ticks are taken.
-define(STEPS, [[1], [1, 2, 5], [1, 2, 3, 4, 5, 6, 8],
                [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9]]).
-define(TICKS, 4).
%% Where a logarithmic axis may end.
-define(ENDS, [1, 1.5, 2, 3, 4, 5, 6, 8]).

-doc """
An axis that ends at round numbers, with all values on it. From 0 where `zero` asks for it. Values
of a `log` axis are above 0.
""".
-spec new(#{scale => kind(), zero => boolean(), _ => _}, Values :: [number(), ...]) -> axis().
new(#{scale := log}, Values) ->
    {Least, Most} = apart(lists:min(Values), lists:max(Values), fun(V) -> {V / 2, V * 2} end),
    Ends = marks(Least, Most, ?ENDS),
    Low = lists:last([M || M <- Ends, M =< Least]),
    High = hd([M || M <- Ends, M >= Most]),
    axis(log, Low, High, log_ticks(Low, High, ?STEPS));
new(Options, Given) ->
    Values = [0 || maps:get(zero, Options, false)] ++ Given,
    {Least, Most} = apart(lists:min(Values), lists:max(Values),
                          fun(V) -> {V - max(1, abs(V) / 2), V + max(1, abs(V) / 2)} end),
    Step = step((Most - Least) / 5),
    Ticks = [trimmed(I * Step) || I <- lists:seq(floor(Least / Step), ceil(Most / Step))],
    axis(linear, hd(Ticks), lists:last(Ticks), Ticks).

-doc """
An axis whose ticks are the values themselves, where there are at most `Most` different ones.
""".
-spec new(#{scale => kind(), zero => boolean(), _ => _}, Values :: [number(), ...],
          Most :: pos_integer()) -> axis().
new(Options, Values, Most) ->
    case lists:usort(Values) of
        [_, _ | _] = Ticks when length(Ticks) =< Most ->
            Kind = maps:get(scale, Options, linear),
            Low = case Options of
                #{zero := true} when Kind =:= linear -> min(0, hd(Ticks));
                #{} -> hd(Ticks)
            end,
            axis(Kind, Low, lists:last(Ticks), lists:usort([Low | Ticks]));
        _ ->
            new(Options, Values)
    end.

-doc "How far along the axis a value is: 0 at its low end, 1 at its high end.".
-spec position(axis(), number()) -> float().
position(#{kind := log, low := Low, high := High}, Value) ->
    (math:log(Value) - math:log(Low)) / (math:log(High) - math:log(Low));
position(#{low := Low, high := High}, Value) ->
    (Value - Low) / (High - Low).

axis(Kind, Low, High, Ticks) ->
    #{kind => Kind, low => Low, high => High, ticks => Ticks, format => format(Ticks)}.

%% 0.5, 1,000, 20,000; 200k and 60M where all are large.
format(Ticks) ->
    Sizes = [abs(T) || T <- Ticks, T /= 0],
    case Sizes =/= [] andalso lists:max(Sizes) >= 100_000 andalso lists:min(Sizes) >= 1 of
        true -> <<"~s">>;
        false -> <<",~r">>
    end.

apart(Same, Same, Around) -> Around(Same);
apart(Least, Most, _) -> {Least, Most}.

%% ---------------------------------------------------------------- logarithmic

log_ticks(Low, High, [Steps | Finer]) ->
    Ticks = [M || M <- marks(Low, High, Steps), M >= Low, M =< High],
    case length(Ticks) < ?TICKS andalso Finer =/= [] of
        true -> log_ticks(Low, High, Finer);
        false -> thinned(Ticks)
    end.

%% Round numbers of all decades from `Low` to `High`, and somewhat beyond.
marks(Low, High, Steps) ->
    [trimmed(S * math:pow(10, E))
     || E <- lists:seq(floor(math:log10(Low)) - 1, ceil(math:log10(High))), S <- Steps].

%% Ten decades need no more than every other one.
thinned(Ticks) when length(Ticks) =< 9 -> Ticks;
thinned(Ticks) -> thinned([T || {I, T} <- lists:enumerate(Ticks), I rem 2 =:= 1]).

%% ---------------------------------------------------------------- linear

%% The round number at or above.
step(Size) ->
    Decade = math:pow(10, floor(math:log10(Size))),
    hd([S * Decade || S <- [1, 2, 2.5, 5, 10], S * Decade >= Size / 1.000001]).

%% 3 * 0.1 is 0.30000000000000004.
trimmed(Value) when Value == 0 -> 0;
trimmed(Value) ->
    case round(Value) of
        Whole when abs(Value - Whole) < 1.0e-9, abs(Value) >= 0.5 -> Whole;
        _ -> binary_to_float(float_to_binary(Value, [{scientific, 11}]))
    end.
