%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_tally).
-moduledoc """
The counts of one node's clients, in counters that they share, so that counting takes no message.

| count | of |
|---|---|
| `sent_all`, `delivered_all` | messages of the whole run, each once |
| `sent`, `delivered`, `below` | those that were sent in the measured time; delivered; delivered within the threshold |
| `in_time` | those that were delivered in the measured time |
| `received`, `twice` | at receivers: messages, and those that came again |
| `again` | sent again, as no acknowledgement came |

Latencies are half of the time from sending to the acknowledgement, in microseconds, of messages
sent in the measured time.
""".

-export([new/2, window/3, sent/2, delivered/3, received/1, twice/1, again/1, read/1, merge/1]).
-export_type([tally/0, counts/0]).

-opaque tally() :: #{
    counters := counters:counters_ref(),
    seconds := counters:counters_ref(),
    size := pos_integer(),
    window := atomics:atomics_ref(),
    latency := sderl_bench_histogram:recorder(),
    threshold := pos_integer()
}.

-doc """
`timeline` has the messages delivered in each second since the beginning of the measured time.
""".
-type counts() :: #{
    latency := sderl_bench_histogram:histogram(),
    timeline := [non_neg_integer()],
    atom() => non_neg_integer()
}.

-define(COUNTS, [sent_all, delivered_all, sent, delivered, below, in_time, received, twice, again]).

-doc "For so many seconds of measured time; the threshold in microseconds.".
-spec new(Seconds :: pos_integer(), ThresholdUs :: pos_integer()) -> tally().
new(Seconds, ThresholdUs) ->
    #{
        counters => counters:new(length(?COUNTS), []),
        seconds => counters:new(Seconds, []),
        size => Seconds,
        window => atomics:new(2, [{signed, true}]),
        latency => sderl_bench_histogram:recorder(),
        threshold => ThresholdUs
    }.

-doc """
When the measured time begins and ends, on this node's clock (`erlang:monotonic_time(microsecond)`).
""".
-spec window(tally(), From :: integer(), Until :: integer()) -> ok.
window(#{window := Window}, From, Until) ->
    ok = atomics:put(Window, 1, From),
    atomics:put(Window, 2, Until).

-doc "A message was sent at this time.".
-spec sent(tally(), AtUs :: integer()) -> ok.
sent(Tally, At) ->
    count(sent_all, Tally),
    within(At, Tally) andalso count(sent, Tally),
    ok.

-doc "A message was acknowledged.".
-spec delivered(tally(), SentUs :: integer(), NowUs :: integer()) -> ok.
delivered(#{latency := Latency, threshold := Threshold} = Tally, SentUs, Now) ->
    count(delivered_all, Tally),
    Us = (Now - SentUs) div 2,
    _ = within(SentUs, Tally) andalso begin
        count(delivered, Tally),
        _ = Us < Threshold andalso count(below, Tally),
        sderl_bench_histogram:record(Latency, Us)
    end,
    _ = within(Now, Tally) andalso begin
        count(in_time, Tally),
        second(Now, Tally)
    end,
    ok.

second(Now, #{seconds := Seconds, size := Size, window := Window}) ->
    counters:add(Seconds, min(Size, 1 + (Now - atomics:get(Window, 1)) div 1_000_000), 1).

-doc "A message has come.".
-spec received(tally()) -> ok.
received(Tally) -> count(received, Tally).

-doc "A message came once more.".
-spec twice(tally()) -> ok.
twice(Tally) -> count(twice, Tally).

-doc "A message is sent again.".
-spec again(tally()) -> ok.
again(Tally) -> count(again, Tally).

count(What, #{counters := Counters}) -> counters:add(Counters, index(What, ?COUNTS, 1), 1).

index(What, [What | _], I) -> I;
index(What, [_ | Rest], I) -> index(What, Rest, I + 1).

within(At, #{window := Window}) -> At >= atomics:get(Window, 1) andalso At < atomics:get(Window, 2).

-doc "The counts so far.".
-spec read(tally()) -> counts().
read(#{counters := Counters, seconds := Seconds, size := Size, latency := Latency}) ->
    Counts = #{What => counters:get(Counters, I) || {I, What} <- lists:enumerate(?COUNTS)},
    Counts#{
        latency => sderl_bench_histogram:read(Latency),
        timeline => [counters:get(Seconds, I) || I <- lists:seq(1, Size)]
    }.

-doc "The counts of several nodes, added up.".
-spec merge([counts(), ...]) -> counts().
merge([First | Rest]) ->
    lists:foldl(
        fun(Counts, Sum) ->
            maps:merge_with(
                fun
                    (latency, A, B) -> sderl_bench_histogram:merge([A, B]);
                    (timeline, A, B) -> lists:zipwith(fun(X, Y) -> X + Y end, A, B);
                    (_, A, B) -> A + B
                end,
                Counts,
                Sum
            )
        end,
        First,
        Rest
    ).
