%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_verdict).
-moduledoc """
Whether one thing is faster than another, from the times of both.

The verdict follows from the interval of the ratio (`sderl_bench_sample:ratio/3`): *same* if all of
it is nearer to 1 than the smallest difference that counts, else *slower* or *faster* if 1 is
outside, else *undecided*. So a certain difference that is too small to matter is *same*, and few or
scattered values without a difference are *undecided*.

Several comparisons at once share the probability of a false alarm: each of `Count` comparisons has
a level with which all of them together are wrong in at most 1 of 100 cases.
""".

-export([level/1, of_times/4]).
-export_type([verdict/0]).

-type verdict() :: faster | slower | same | undecided.

%% The probability that some of the comparisons raise a false alarm.
-define(ALARM, 0.01).

-doc "The level of each of so many comparisons.".
-spec level(Count :: pos_integer()) -> float().
level(Count) -> 1 - ?ALARM / Count.

-doc """
`Counts` is the smallest relative difference that counts, 0.01 for 1 %. The ratio is that of the
times, so above 1 is slower.
""".
-spec of_times(Level :: float(), Counts :: float(), Before :: [number(), ...],
               After :: [number(), ...]) -> {verdict(), sderl_bench_sample:interval()}.
of_times(Level, Counts, Before, After) ->
    Ratio = sderl_bench_sample:ratio(Level, Before, After),
    {verdict(Ratio, Counts), Ratio}.

verdict(#{low := undefined}, _) -> undecided;
verdict(#{low := Low, high := High}, Counts) when Low >= 1 - Counts, High =< 1 + Counts -> same;
verdict(#{low := Low}, _) when Low > 1 -> slower;
verdict(#{high := High}, _) when High < 1 -> faster;
verdict(_, _) -> undecided.
