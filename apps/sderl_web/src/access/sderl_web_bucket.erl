%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_bucket).
-moduledoc """
A bucket of requests that fills with time: a burst at once, and a rate after that. Pure.
""".

-export([new/2, take/3, is_full/3]).
-export_type([bucket/0, rate/0]).

-doc "So many a second, and so many at once.".
-type rate() :: {PerSecond :: number(), Burst :: pos_integer()}.

-doc "How many may come, and when that was counted (monotonic milliseconds).".
-opaque bucket() :: {Left :: number(), At :: integer()}.

-spec new(rate(), Now :: integer()) -> bucket().
new({_, Burst}, Now) -> {Burst, Now}.

-doc "Takes one request, or says after how many milliseconds there is one.".
-spec take(rate(), Now :: integer(), bucket()) ->
    {ok, bucket()} | {wait, pos_integer(), bucket()}.
take({PerSecond, _} = Rate, Now, Bucket) ->
    case filled(Rate, Now, Bucket) of
        Left when Left >= 1 -> {ok, {Left - 1, Now}};
        Left -> {wait, max(1, ceil((1 - Left) * 1000 / PerSecond)), {Left, Now}}
    end.

-doc "Whether it is as full as a new one.".
-spec is_full(rate(), Now :: integer(), bucket()) -> boolean().
is_full({_, Burst} = Rate, Now, Bucket) -> filled(Rate, Now, Bucket) >= Burst.

filled({PerSecond, Burst}, Now, {Left, At}) ->
    min(Burst, Left + max(0, Now - At) * PerSecond / 1000).
