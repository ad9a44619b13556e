%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_tally).
-moduledoc """
The counts, times and failures of clients: one value for each client, merged on its node and again
over all nodes.
""".

-export([new/0, count/2, count/3, time/3, times/3, fail/2, failures/1, merge/1, percentiles/2]).
-export_type([tally/0, percentiles/0]).

-doc "Counts and histograms by name, and failures with how often they were seen.".
-opaque tally() :: #{
    counts := #{atom() => non_neg_integer()},
    times := #{atom() => sderl_bench_histogram:histogram()},
    failures := sderl_demo_ledger:entries()
}.

-doc "Percentiles of a duration; `null` when nothing was timed.".
-type percentiles() :: #{p50 := number() | null, p99 := number() | null}.

-doc "An empty tally.".
-spec new() -> tally().
new() -> #{counts => #{}, times => #{}, failures => #{}}.

-doc "The count of a name.".
-spec count(atom(), tally()) -> non_neg_integer().
count(Name, #{counts := Counts}) -> maps:get(Name, Counts, 0).

-doc "Adds `More` to the count of a name.".
-spec count(atom(), non_neg_integer(), tally()) -> tally().
count(Name, More, #{counts := Counts} = Tally) ->
    Tally#{counts := maps:update_with(Name, fun(Count) -> Count + More end, More, Counts)}.

-doc "Adds one duration.".
-spec time(atom(), non_neg_integer(), tally()) -> tally().
time(Name, Value, #{times := Times} = Tally) ->
    Histogram = maps:get(Name, Times, sderl_bench_histogram:new()),
    Tally#{times := Times#{Name => sderl_bench_histogram:add(Value, Histogram)}}.

-doc "Puts a whole histogram under a name that has none.".
-spec times(atom(), sderl_bench_histogram:histogram(), tally()) -> tally().
times(Name, Histogram, #{times := Times} = Tally) ->
    Tally#{times := Times#{Name => Histogram}}.

-doc "Writes down a failure.".
-spec fail(sderl_demo_ledger:entry(), tally()) -> tally().
fail(Entry, #{failures := Failures} = Tally) ->
    Tally#{failures := maps:update_with(Entry, fun(Count) -> Count + 1 end, 1, Failures)}.

-doc "All failures.".
-spec failures(tally()) -> sderl_demo_ledger:entries().
failures(#{failures := Failures}) -> Failures.

-doc "The sum of several tallies.".
-spec merge([tally()]) -> tally().
merge(Tallies) -> lists:foldl(fun merge/2, new(), Tallies).

merge(A, B) ->
    Add = fun(_, X, Y) -> X + Y end,
    Join = fun(_, X, Y) -> sderl_bench_histogram:merge([X, Y]) end,
    #{
        counts => maps:merge_with(Add, maps:get(counts, A), maps:get(counts, B)),
        times => maps:merge_with(Join, maps:get(times, A), maps:get(times, B)),
        failures => maps:merge_with(Add, maps:get(failures, A), maps:get(failures, B))
    }.

-doc "The median and the 99th percentile of what was timed under a name, in its own unit.".
-spec percentiles(atom(), tally()) -> percentiles().
percentiles(Name, #{times := Times}) ->
    Histogram = maps:get(Name, Times, sderl_bench_histogram:new()),
    #{p50 => percentile(50, Histogram), p99 => percentile(99, Histogram)}.

percentile(Percent, Histogram) ->
    case sderl_bench_histogram:percentile(Percent, Histogram) of
        undefined -> null;
        Value -> Value
    end.
