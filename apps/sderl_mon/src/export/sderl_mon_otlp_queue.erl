%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_otlp_queue).
-moduledoc """
The requests of `m:sderl_mon_otlp` that wait to be sent, and when the next try is. Pure.

At most 60 requests and 16 MiB wait, including the one that is being sent; beyond that the oldest
waiting one is dropped and counted, but not the newest. After each failure the pause until the next
try doubles, up to a minute, less a random part, so that monitors do not try at the same time.
""".

-export([new/0, add/2, take/2, sent/1, refused/1, failed/3, info/1]).
-export_type([queue/0, info/0]).

-define(MOST, 60).
-define(MOST_BYTES, 16_777_216).
-define(FIRST_MS, 1_000).
-define(LONGEST_MS, 60_000).

-record(queue, {
    waiting = queue:new() :: queue:queue(binary()),
    %% The one that is being sent; `count` and `bytes` include it.
    under_way = none :: none | binary(),
    count = 0 :: non_neg_integer(),
    bytes = 0 :: non_neg_integer(),
    tries = 0 :: non_neg_integer(),
    next = none :: none | integer(),
    sent = 0 :: non_neg_integer(),
    refused = 0 :: non_neg_integer(),
    dropped = 0 :: non_neg_integer()
}).

-opaque queue() :: #queue{}.

-doc "Nothing waits.".
-spec new() -> queue().
new() -> #queue{}.

-doc "Adds a request.".
-spec add(binary(), queue()) -> queue().
add(Request, #queue{waiting = Waiting, count = Count, bytes = Bytes} = Q) ->
    bound(Q#queue{waiting = queue:in(Request, Waiting), count = Count + 1,
                  bytes = Bytes + byte_size(Request)}).

bound(#queue{waiting = Waiting, count = Count, bytes = Bytes, dropped = Dropped} = Q)
  when Count > ?MOST; Bytes > ?MOST_BYTES ->
    {{value, Oldest}, Rest} = queue:out(Waiting),
    case queue:is_empty(Rest) of
        true -> Q;
        false ->
            bound(Q#queue{waiting = Rest, count = Count - 1, bytes = Bytes - byte_size(Oldest),
                          dropped = Dropped + 1})
    end;
bound(Q) ->
    Q.

-doc """
The request to send now, or how long to wait; `none` also while one is being sent.
""".
-spec take(Now :: integer(), queue()) ->
    {send, binary(), queue()} | {wait, pos_integer()} | none.
take(_, #queue{under_way = Request}) when is_binary(Request) -> none;
take(_, #queue{count = 0}) -> none;
take(Now, #queue{next = Next}) when is_integer(Next), Next > Now -> {wait, Next - Now};
take(_, #queue{waiting = Waiting} = Q) ->
    {{value, Request}, Rest} = queue:out(Waiting),
    {send, Request, Q#queue{waiting = Rest, under_way = Request}}.

%% The request that was being sent is done with.
done(#queue{under_way = Request, count = Count, bytes = Bytes} = Q) when is_binary(Request) ->
    Q#queue{under_way = none, count = Count - 1, bytes = Bytes - byte_size(Request), tries = 0,
            next = none}.

-doc "The request was accepted.".
-spec sent(queue()) -> queue().
sent(#queue{sent = Sent} = Q) -> (done(Q))#queue{sent = Sent + 1}.

-doc "The request was refused for good: it is not tried again.".
-spec refused(queue()) -> queue().
refused(#queue{refused = Refused} = Q) -> (done(Q))#queue{refused = Refused + 1}.

-doc """
The request could not be sent, and is the first that waits again. `Part` is a random number from 0
to 1.
""".
-spec failed(Now :: integer(), Part :: float(), queue()) -> queue().
failed(Now, Part, #queue{waiting = Waiting, under_way = Request, tries = Tries} = Q)
  when is_binary(Request) ->
    Longest = min(?LONGEST_MS, ?FIRST_MS bsl min(Tries, 16)),
    Q#queue{waiting = queue:in_r(Request, Waiting), under_way = none, tries = Tries + 1,
            next = Now + round(Longest * (1 - Part / 2))}.

-doc "How many requests wait, and how many were sent, refused and dropped.".
-type info() :: #{waiting := non_neg_integer(), bytes := non_neg_integer(),
                  sent := non_neg_integer(), refused := non_neg_integer(),
                  dropped := non_neg_integer()}.

-doc "Counts.".
-spec info(queue()) -> info().
info(#queue{count = Count, bytes = Bytes, sent = Sent, refused = Refused, dropped = Dropped}) ->
    #{waiting => Count, bytes => Bytes, sent => Sent, refused => Refused, dropped => Dropped}.
