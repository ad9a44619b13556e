%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_buckets).
-moduledoc """
A bucket of requests for each asker, in a table of bounded size. Pure.

A full bucket is as good as none, so full ones are dropped when the table is full. That is done at
most once a second, because it goes through the whole table. Askers for whom there is no room share
one bucket: an attack from many addresses slows down new askers only.
""".

-export([new/1, take/4, size/1]).
-export_type([buckets/0]).

-record(buckets, {
    most :: pos_integer(),
    of_each = #{} :: #{term() => {sderl_web_bucket:rate(), sderl_web_bucket:bucket()}},
    swept = none :: none | integer()
}).
-opaque buckets() :: #buckets{}.

-define(SWEEP_MS, 1_000).

-doc "A table for at most so many askers; all others share one bucket more.".
-spec new(Most :: pos_integer()) -> buckets().
new(Most) -> #buckets{most = Most}.

-doc "How many there are.".
-spec size(buckets()) -> non_neg_integer().
size(#buckets{of_each = Of}) -> map_size(Of).

-doc "Takes a request of somebody, or says how many milliseconds it has to wait.".
-spec take(Who :: term(), sderl_web_bucket:rate(), Now :: integer(), buckets()) ->
    {ok | {wait, pos_integer()}, buckets()}.
take(Who, Rate, Now, #buckets{of_each = Of, most = Most} = Buckets0) ->
    case Of of
        #{Who := {_, Bucket}} -> taken(Who, Rate, Now, Bucket, Buckets0);
        #{} when map_size(Of) < Most ->
            taken(Who, Rate, Now, sderl_web_bucket:new(Rate, Now), Buckets0);
        #{} ->
            #buckets{of_each = Swept} = Buckets = sweep(Now, Buckets0),
            Key = case map_size(Swept) < Most of
                true -> Who;
                false -> others
            end,
            Bucket = case Swept of
                #{Key := {_, Known}} -> Known;
                #{} -> sderl_web_bucket:new(Rate, Now)
            end,
            taken(Key, Rate, Now, Bucket, Buckets)
    end.

taken(Key, Rate, Now, Bucket, #buckets{of_each = Of} = Buckets) ->
    case sderl_web_bucket:take(Rate, Now, Bucket) of
        {ok, Left} -> {ok, Buckets#buckets{of_each = Of#{Key => {Rate, Left}}}};
        {wait, Ms, Left} -> {{wait, Ms}, Buckets#buckets{of_each = Of#{Key => {Rate, Left}}}}
    end.

sweep(Now, #buckets{swept = Swept} = Buckets) when Swept =/= none, Now - Swept < ?SWEEP_MS ->
    Buckets;
sweep(Now, #buckets{of_each = Of} = Buckets) ->
    Buckets#buckets{swept = Now, of_each = maps:filter(fun(_, {Rate, Bucket}) ->
        not sderl_web_bucket:is_full(Rate, Now, Bucket)
    end, Of)}.
