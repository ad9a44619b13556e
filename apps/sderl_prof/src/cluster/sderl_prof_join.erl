%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_join).
-moduledoc """
Finds the send to each receive of a message between two nodes. Pure; sends and receives come in the
order of time.

A receive tells the node that it came from, and not the process. Messages between two nodes go over
one connection, and those from one process to another arrive in the order in which they were sent.
So the next receive of a process belongs to the oldest send to it from that node that has as many
bytes. What a sender has sent to it before that one is not received any more.

Recordings do not begin at the same moment. Of sends before the receiver's begin nobody knows
whether it received them before that, too. At the first receive they count as received before,
unless nothing else can be what came.

A node tells of a send when the message is on its way, so one whose process is interrupted just
then is told late, maybe behind its receive. A receive without a send waits for the next one, and
when the next receive has none again, it was of a message from before the sender was recorded.

Sends that are never received, because their receiver is not recorded or does not look, are kept up
to a limit; then those of the receivers for which most of them wait are given up.
""".

-export([new/2, sent/5, received/6, finish/1]).
-export_type([join/0, process/0, result/0, match/0]).

%% A receive looks at so many of the oldest sends.
-define(LOOK, 64).
%% A send is told behind its receive by at most so many nanoseconds.
-define(LATE, 1_000_000_000).

-doc "A node's number, and the key or the number of a process there.".
-type process() :: {Node :: non_neg_integer(), Process :: non_neg_integer()}.
-doc "When, how many bytes, and the sender.".
-type send() :: {Time :: integer(), Bytes :: non_neg_integer(), Sender :: non_neg_integer()}.
-doc "When, how many bytes, and what the caller wants to know of it.".
-type receive_() :: {Time :: integer(), Bytes :: non_neg_integer(), Mark :: term()}.
-type match() :: {send(), receive_()}.
-type way() :: {FromNode :: non_neg_integer(), To :: process()}.

-record(way, {
    sends = queue:new() :: queue:queue(send()),
    count = 0 :: non_neg_integer(),
    has_received = false :: boolean(),
    %% A receive that waits for its send, and the send that it has got, if that is the right one.
    owed = none :: none | receive_(),
    paid = none :: none | match()
}).
-record(join, {
    %% When each node's recording begins.
    begins :: #{non_neg_integer() => integer()},
    limit :: pos_integer(),
    %% With more ways than this, those that need not be known are looked for.
    most_ways :: pos_integer(),
    ways = #{} :: #{way() => #way{} | given_up},
    waiting = 0 :: non_neg_integer(),
    matched = 0 :: non_neg_integer(),
    early = 0 :: non_neg_integer(),
    skipped = 0 :: non_neg_integer(),
    unsent = 0 :: non_neg_integer(),
    given_up = 0 :: non_neg_integer()
}).
-opaque join() :: #join{}.

-doc """
`matched`: messages with send and receive; `early`: sends from before the receiver was recorded;
`unreceived`: other sends without a receive; `unsent`: receives without a send; `given_up`: sends
and receives that were given up.
""".
-type result() :: #{matched := non_neg_integer(), early := non_neg_integer(),
                    unreceived := non_neg_integer(), unsent := non_neg_integer(),
                    given_up := non_neg_integer()}.

-doc "No messages yet. `Limit`: sends that are kept at a time.".
-spec new(Begins :: #{non_neg_integer() => integer()}, Limit :: pos_integer()) -> join().
new(Begins, Limit) -> #join{begins = Begins, limit = Limit, most_ways = 2 * Limit}.

-doc "One was sent; what is certain now.".
-spec sent(process(), process(), integer(), non_neg_integer(), join()) -> {[match()], join()}.
sent({FromNode, Sender}, To, Time, Bytes, #join{ways = Ways, given_up = GivenUp} = J) ->
    Key = {FromNode, To},
    case maps:get(Key, Ways, #way{}) of
        given_up -> {[], J#join{given_up = GivenUp + 1}};
        Way ->
            {Matches, Way1, J1} = certain(Way, J),
            {Matches, send({Time, Bytes, Sender}, Key, Way1, J1)}
    end.

%% A further send shows that the match was right.
certain(#way{paid = none} = Way, J) -> {[], Way, J};
certain(#way{paid = Match} = Way, J) ->
    {[Match], Way#way{paid = none}, J#join{matched = J#join.matched + 1}}.

send({Time, Bytes, _} = Send, Key, #way{owed = {Received, Bytes, _} = Owed, count = 0} = Way,
     #join{ways = Ways} = J) when Time - Received =< ?LATE ->
    J#join{ways = Ways#{Key => Way#way{owed = none, paid = {Send, Owed}}}};
send(Send, Key, Way, J0) ->
    {#way{sends = Sends, count = Count} = Way1, #join{ways = Ways} = J} = unpaid(Way, J0),
    Way2 = Way1#way{sends = queue:in(Send, Sends), count = Count + 1},
    bounded(J#join{ways = Ways#{Key => Way2}, waiting = J#join.waiting + 1}).

unpaid(#way{owed = none} = Way, J) -> {Way, J};
unpaid(Way, J) -> {Way#way{owed = none}, J#join{unsent = J#join.unsent + 1}}.

%% When too many sends wait, the ways with most of them are given up, until half of the room is
%% free. A way without waiting sends needs no entry. A way that was given up stays marked, so that a
%% later send is not matched with an old receive. Entries are looked through again only when their
%% number has doubled.
bounded(#join{waiting = Waiting, limit = Limit, ways = Ways} = J) when Waiting > Limit ->
    Counted = lists:sort(fun(A, B) -> A >= B end,
                         [{N, Key} || Key := #way{count = N} <- Ways, N > 0]),
    give_up(Counted, Limit div 2, J);
bounded(#join{limit = Limit, most_ways = Most, ways = Ways} = J) when map_size(Ways) > Most ->
    %% A receive that waits for its send does so in vain.
    Owed = length([Key || Key := #way{count = 0, owed = Owed} <- Ways, Owed =/= none]),
    Kept = maps:filter(fun
        (_, #way{count = 0, paid = none}) -> false;
        (_, _) -> true
    end, Ways),
    J#join{ways = Kept, most_ways = 2 * max(Limit, map_size(Kept)), unsent = J#join.unsent + Owed};
bounded(J) -> J.

give_up([{Count, Key} | Rest], Limit, #join{ways = Ways, waiting = Waiting} = J)
  when Waiting > Limit ->
    %% Of what was not certain yet, both are given up.
    More = case map_get(Key, Ways) of
        #way{paid = {_, _}} -> 2;
        #way{owed = {_, _, _}} -> 1;
        _ -> 0
    end,
    give_up(Rest, Limit, J#join{ways = Ways#{Key := given_up}, waiting = Waiting - Count,
                                given_up = J#join.given_up + Count + More});
give_up(_, _, J) -> J.

-doc "One was received from a node; what is certain now. `Mark` comes back with it.".
-spec received(FromNode :: non_neg_integer(), process(), integer(), non_neg_integer(),
               Mark :: term(), join()) -> {[match()], join()}.
received(FromNode, {ToNode, _} = To, Time, Bytes, Mark, #join{ways = Ways} = J) ->
    Key = {FromNode, To},
    Receive = {Time, Bytes, Mark},
    case maps:get(Key, Ways, #way{}) of
        given_up -> {[], J#join{given_up = J#join.given_up + 1}};
        #way{has_received = false, count = Count} = Way when Count > 0 ->
            Begin = maps:get(ToNode, J#join.begins, none),
            next(Receive, Key, without_early(Begin, Bytes, Way), J);
        Way -> next(Receive, Key, {Way, 0}, J)
    end.

%% Without the sends that were received before anybody recorded it.
without_early(none, _, Way) -> {Way, 0};
without_early(Begin, Bytes, #way{sends = Sends} = Way) ->
    {Early, Rest} = lists:splitwith(fun({Time, _, _}) -> Time < Begin end, queue:to_list(Sends)),
    case is_a_first(Bytes, lists:sublist(Rest, ?LOOK), []) of
        true -> kept(Rest, length(Early), Way);
        false ->
            %% The last one that can be it.
            Behind = lists:takewhile(fun({_, B, _}) -> B =/= Bytes end, lists:reverse(Early)),
            case length(Early) - length(Behind) of
                0 -> {Way, 0};
                N -> kept(lists:nthtail(N - 1, Early) ++ Rest, N - 1, Way)
            end
    end.

%% Of what each sender sent after the begin, its first is received first.
is_a_first(_, [], _) -> false;
is_a_first(Bytes, [{_, B, Sender} | Sends], Seen) ->
    case lists:member(Sender, Seen) of
        false when B =:= Bytes -> true;
        false -> is_a_first(Bytes, Sends, [Sender | Seen]);
        true -> is_a_first(Bytes, Sends, Seen)
    end.

kept(Sends, Dropped, Way) ->
    {Way#way{sends = queue:from_list(Sends), count = length(Sends)}, Dropped}.

next({_, Bytes, _} = Receive, Key, {#way{sends = Sends, count = Count} = Way0, Early}, J0) ->
    J1 = J0#join{early = J0#join.early + Early, waiting = J0#join.waiting - Early},
    case find(Bytes, Sends, []) of
        {Send, Rest, Skipped} ->
            {Matches, Way, J} = certain(Way0, J1),
            Way1 = Way#way{sends = Rest, count = Count - Skipped - 1, has_received = true},
            {Matches ++ [{Send, Receive}],
             put_way(Key, Way1, J#join{matched = J#join.matched + 1,
                                       skipped = J#join.skipped + Skipped,
                                       waiting = J#join.waiting - Skipped - 1})};
        none -> without_send(Receive, Key, Way0, J1)
    end.

put_way(Key, Way, #join{ways = Ways} = J) -> J#join{ways = Ways#{Key => Way}}.

%% Twice in turn there was none: the first one had come without.
without_send({_, Bytes, _} = Receive, Key,
             #way{paid = {{_, Bytes, _} = Send, _}, count = 0} = Way, J) ->
    {[{Send, Receive}],
     put_way(Key, Way#way{paid = none, has_received = true},
             J#join{matched = J#join.matched + 1, unsent = J#join.unsent + 1})};
without_send(Receive, Key, Way0, J0) ->
    {Matches, Way1, J1} = certain(Way0, J0),
    {#way{sends = Sends, count = Count} = Way, J} = unpaid(Way1, J1),
    case Count > ?LOOK of
        true ->
            %% A send that no receive matches is dropped: it holds up the others.
            {Matches, put_way(Key, Way#way{sends = queue:drop(Sends), count = Count - 1,
                                           has_received = true},
                              J#join{unsent = J#join.unsent + 1, skipped = J#join.skipped + 1,
                                     waiting = J#join.waiting - 1})};
        false -> {Matches, put_way(Key, Way#way{owed = Receive}, J)}
    end.

find(_, _, Passed) when length(Passed) >= ?LOOK -> none;
find(Bytes, Sends, Passed) ->
    case queue:out(Sends) of
        {{value, {_, Bytes, Sender} = Send}, Rest} ->
            %% Of other senders, what was passed may still come.
            Kept = [S || {_, _, From} = S <- Passed, From =/= Sender],
            {Send, lists:foldl(fun queue:in_r/2, Rest, Kept), length(Passed) - length(Kept)};
        {{value, Other}, Rest} -> find(Bytes, Rest, [Other | Passed]);
        {empty, _} -> none
    end.

-doc "What is certain when all has come, and the counts.".
-spec finish(join()) -> {[match()], result()}.
finish(#join{ways = Ways, matched = Matched, early = Early, skipped = Skipped, unsent = Unsent,
             given_up = GivenUp, waiting = Waiting}) ->
    Paid = [Match || _ := #way{paid = {_, _} = Match} <- Ways],
    Owed = length([1 || _ := #way{owed = {_, _, _}} <- Ways]),
    {Paid, #{matched => Matched + length(Paid), early => Early, unreceived => Skipped + Waiting,
             unsent => Unsent + Owed, given_up => GivenUp}}.
