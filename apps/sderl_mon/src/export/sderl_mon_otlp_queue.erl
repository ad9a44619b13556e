%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_otlp_queue).
-moduledoc """
The requests of `m:sderl_mon_otlp` that wait to be sent, and when the next try is. Pure.

At most 60 requests and 16 MiB wait, with the one that is being sent; beyond that the oldest that
waits goes, and is counted. The one that is being sent stays, and so does the newest. After a
failure the next try comes later and later, at most a minute, each by a random part earlier, so that
monitors do not come together.
""".

-export([new/0, add/2, take/2, sent/1, refused/1, failed/3, info/1]).
-export_type([queue/0]).

-define(MOST, 60).
-define(MOST_BYTES, 16_777_216).
-define(FIRST_MS, 1_000).
-define(LONGEST_MS, 60_000).

-record(queue, {
    waiting = queue:new() :: queue:queue(binary()),
    %% The one that is being sent. It is among those that are counted.
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

-doc "One more.".
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
What is to be sent now, or how long there is to wait; `none` also while something is being sent.
""".
-spec take(Now :: integer(), queue()) ->
    {send, binary(), queue()} | {wait, pos_integer()} | none.
take(_, #queue{under_way = Request}) when is_binary(Request) -> none;
take(_, #queue{count = 0}) -> none;
take(Now, #queue{next = Next}) when is_integer(Next), Next > Now -> {wait, Next - Now};
take(_, #queue{waiting = Waiting} = Q) ->
    {{value, Request}, Rest} = queue:out(Waiting),
    {send, Request, Q#queue{waiting = Rest, under_way = Request}}.

%% The batch that was being sent is over.
done(#queue{under_way = Request, count = Count, bytes = Bytes} = Q) when is_binary(Request) ->
    Q#queue{under_way = none, count = Count - 1, bytes = Bytes - byte_size(Request), tries = 0,
            next = none}.

-doc "It was taken.".
-spec sent(queue()) -> queue().
sent(#queue{sent = Sent} = Q) -> (done(Q))#queue{sent = Sent + 1}.

-doc "It was refused for good: another try would be in vain.".
-spec refused(queue()) -> queue().
refused(#queue{refused = Refused} = Q) -> (done(Q))#queue{refused = Refused + 1}.

-doc """
It could not be sent, or not now, and is the first that waits. `Part` is a random number from 0 to
1.
""".
-spec failed(Now :: integer(), Part :: float(), queue()) -> queue().
failed(Now, Part, #queue{waiting = Waiting, under_way = Request, tries = Tries} = Q)
  when is_binary(Request) ->
    Longest = min(?LONGEST_MS, ?FIRST_MS bsl min(Tries, 16)),
    Q#queue{waiting = queue:in_r(Request, Waiting), under_way = none, tries = Tries + 1,
            next = Now + round(Longest * (1 - Part / 2))}.

-doc "How many wait, and how many were sent, refused and dropped.".
-spec info(queue()) -> #{waiting | bytes | sent | refused | dropped := non_neg_integer()}.
info(#queue{count = Count, bytes = Bytes, sent = Sent, refused = Refused, dropped = Dropped}) ->
    #{waiting => Count, bytes => Bytes, sent => Sent, refused => Refused, dropped => Dropped}.
