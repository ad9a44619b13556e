%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_histogram).
-moduledoc """
Counts of durations in buckets whose width grows with the value: 32 buckets to each
doubling, so that a percentile is off by at most 1.6 %, whatever the range.

A *histogram* is a value: it can be sent, added to and merged. A *recorder* is the same in
mutable form, shared by the processes of a node, for use inside a measured loop: one
`record/2` takes about 20 ns.

Values are whole numbers of any unit; below 64 they are exact, those above 2^40 are counted
as 2^40 (18 minutes in nanoseconds).
""".

-export([new/0, add/2, merge/1, total/1, percentile/2, us/2, of_us/1]).
-export([recorder/0, record/2, read/1]).
-export_type([histogram/0, recorder/0]).

-doc "Bucket to count; only buckets that are not empty.".
-opaque histogram() :: #{non_neg_integer() => pos_integer()}.

-doc "A histogram that several processes of one node fill.".
-opaque recorder() :: counters:counters_ref().

%% 2^5 buckets to a doubling; values of 2^40 and more go into the last one.
-define(BITS, 5).
-define(HIGHEST, (1 bsl 40)).
-define(BUCKETS, ((40 - ?BITS + 2) bsl ?BITS)).

-doc "No values.".
-spec new() -> histogram().
new() -> #{}.

-doc "Adds one value; below zero counts as zero.".
-spec add(integer(), histogram()) -> histogram().
add(Value, Histogram) ->
    maps:update_with(bucket(Value), fun(Count) -> Count + 1 end, 1, Histogram).

-doc "The values of all histograms.".
-spec merge([histogram()]) -> histogram().
merge(Histograms) ->
    lists:foldl(
        fun(A, B) -> maps:merge_with(fun(_, X, Y) -> X + Y end, A, B) end, #{}, Histograms
    ).

-doc "How many values.".
-spec total(histogram()) -> non_neg_integer().
total(Histogram) ->
    maps:fold(fun(_, Count, Sum) when is_integer(Count) -> Sum + Count end, 0, Histogram).

-doc """
The least bucket such that at least `Percent` % of the values are in it or below it, given
by its middle. `undefined` when there are no values.
""".
-spec percentile(Percent :: number(), histogram()) -> number() | undefined.
percentile(Percent, Histogram) when Percent >= 0, Percent =< 100 ->
    Rank = max(1, ceil(Percent * total(Histogram) / 100)),
    at(Rank, lists:sort(maps:to_list(Histogram))).

at(_Rank, []) -> undefined;
at(Rank, [{Bucket, Count} | _]) when Count >= Rank -> middle(Bucket);
at(_Rank, [{Bucket, _}]) -> middle(Bucket);
at(Rank, [{_, Count} | Rest]) -> at(Rank - Count, Rest).

-doc "`percentile/2` of nanoseconds, in us.".
-spec us(Percent :: number(), histogram()) -> float() | undefined.
us(Percent, Histogram) ->
    case percentile(Percent, Histogram) of
        undefined -> undefined;
        Ns -> Ns / 1000
    end.

-doc "The percentiles of durations in us: `p50`, `p99`, `max`.".
-spec of_us([number()]) -> #{p50 | p99 | max := number() | undefined}.
of_us(Us) ->
    Histogram = lists:foldl(fun(Took, H) -> add(round(Took * 1000), H) end, new(), Us),
    #{Key => us(Percent, Histogram) || {Key, Percent} <- [{p50, 50}, {p99, 99}, {max, 100}]}.

-doc "A recorder without values. It goes when no process refers to it.".
-spec recorder() -> recorder().
recorder() ->
    counters:new(?BUCKETS, []).

-doc "Adds one value.".
-spec record(recorder(), integer()) -> ok.
record(Recorder, Value) ->
    counters:add(Recorder, bucket(Value) + 1, 1).

-doc "What was recorded so far.".
-spec read(recorder()) -> histogram().
read(Recorder) ->
    #{
        Bucket => Count
     || Bucket <- lists:seq(0, ?BUCKETS - 1),
        Count <- [counters:get(Recorder, Bucket + 1)],
        Count > 0
    }.

%% A value is cut to its first six binary digits; the bucket is these and the number of
%% digits cut off. The two join without a gap: 63 is bucket 63, 64 and 65 are bucket 64.
bucket(Value) when Value =< 0 -> 0;
bucket(Value) when Value < 1 bsl (?BITS + 1) -> Value;
bucket(Value) when Value < ?HIGHEST ->
    Cut = high_bit(Value) - ?BITS,
    (Cut bsl ?BITS) + (Value bsr Cut);
bucket(_) ->
    bucket(?HIGHEST - 1).

middle(Bucket) when Bucket < 1 bsl (?BITS + 1) -> Bucket;
middle(Bucket) ->
    Cut = (Bucket bsr ?BITS) - 1,
    Low = (Bucket - (Cut bsl ?BITS)) bsl Cut,
    Low + ((1 bsl Cut) - 1) / 2.

%% Position of the highest set bit, counted from 0.
high_bit(V) when V >= 1 bsl 32 -> 32 + high_bit(V bsr 32);
high_bit(V) when V >= 1 bsl 16 -> 16 + high_bit(V bsr 16);
high_bit(V) when V >= 1 bsl 8 -> 8 + high_bit(V bsr 8);
high_bit(V) when V >= 1 bsl 4 -> 4 + high_bit(V bsr 4);
high_bit(V) when V >= 1 bsl 2 -> 2 + high_bit(V bsr 2);
high_bit(V) when V >= 2 -> 1;
high_bit(_) -> 0.
