%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_concurrency).
-moduledoc """
How many processes run, and how many could, over time: the mean of each of so many equal parts of a
range. Pure. An interval costs the same however long it is.
""".

-export([new/3, add/4, result/1]).
-export_type([concurrency/0, point/0]).

-record(concurrency, {
    from :: integer(),
    width :: pos_integer(),
    parts :: pos_integer(),
    %% By series and part: nanoseconds of intervals that begin or end within it.
    partly = #{} :: #{{atom(), non_neg_integer()} => integer()},
    %% Intervals that cover all parts from this one on, less those that no longer do.
    wholly = #{} :: #{{atom(), non_neg_integer()} => integer()}
}).
-opaque concurrency() :: #concurrency{}.

-doc "A part: when it begins, and the mean of each series.".
-type point() :: #{from := integer(), atom() => float()}.

-doc "So many parts of a range.".
-spec new(From :: integer(), To :: integer(), Parts :: pos_integer()) -> concurrency().
new(From, To, Parts) ->
    #concurrency{from = From, parts = Parts, width = max(1, (To - From + Parts - 1) div Parts)}.

-doc """
One more of a series (`running`, `runnable`) in this interval; what is outside does not count.
""".
-spec add(atom(), integer(), integer(), concurrency()) -> concurrency().
add(Series, From0, To0, #concurrency{from = Begin, width = Width, parts = Parts} = C) ->
    From = max(0, From0 - Begin),
    To = min(Width * Parts, To0 - Begin),
    case To > From of
        true -> covered(Series, From, To, From div Width, To div Width, C);
        false -> C
    end.

covered(Series, From, To, Part, Part, #concurrency{partly = Partly} = C) ->
    C#concurrency{partly = plus({Series, Part}, To - From, Partly)};
covered(Series, From, To, First, Last, #concurrency{partly = Partly, width = Width} = C) ->
    Partly1 = plus({Series, First}, (First + 1) * Width - From, Partly),
    Partly2 = case To - Last * Width of
        0 -> Partly1;
        Rest -> plus({Series, Last}, Rest, Partly1)
    end,
    C1 = C#concurrency{partly = Partly2},
    case Last - First of
        1 -> C1;
        _ ->
            Wholly = plus({Series, First + 1}, 1, C1#concurrency.wholly),
            C1#concurrency{wholly = plus({Series, Last}, -1, Wholly)}
    end.

plus(Key, N, Map) ->
    case Map of
        #{Key := Before} -> Map#{Key := Before + N};
        _ -> Map#{Key => N}
    end.

-doc "The parts in order, with the series `running` and `runnable`.".
-spec result(concurrency()) -> [point()].
result(#concurrency{parts = Parts} = C) ->
    Running = series(running, C),
    Runnable = series(runnable, C),
    [#{from => C#concurrency.from + N * C#concurrency.width, running => A, runnable => B}
     || {N, A, B} <- lists:zip3(lists:seq(0, Parts - 1), Running, Runnable)].

series(Series, #concurrency{parts = Parts, width = Width, partly = Partly, wholly = Wholly}) ->
    {Means, _} = lists:mapfoldl(fun(Part, Covering) ->
        Now = Covering + maps:get({Series, Part}, Wholly, 0),
        {Now + maps:get({Series, Part}, Partly, 0) / Width, Now}
    end, 0, lists:seq(0, Parts - 1)),
    Means.
