%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_subscribers).
-moduledoc """
The subscribers of a hub. Runs in the hub's process, which monitors the subscribers and sends.

A subscriber with more than 100 messages in its queue gets no more. When fewer than half of them are
left, it gets the numbers of frames and events that it missed, and the present state. So no queue
grows without bound, and the hub never waits.
""".

-export([new/0, add/2, drop/2, count/1]).
-export([watch/3, unwatch/3, watched/1]).
-export([tell/3, details/2]).

-export_type([subscribers/0]).

-record(subscriber, {
    monitor :: reference(),
    %% Frames and events missed; none while it is in step.
    missed = none :: {non_neg_integer(), non_neg_integer()} | none,
    watches = #{} :: #{sderl_mon_types:id() => []}
}).

-opaque subscribers() :: #{pid() => #subscriber{}}.

-define(MOST, 1_000).
-define(SLOW, 100).

-doc "No subscribers.".
-spec new() -> subscribers().
new() -> #{}.

-doc "How many there are.".
-spec count(subscribers()) -> non_neg_integer().
count(Subs) -> map_size(Subs).

-doc "Adds a process of this node, whose queue can be read. Errors: `too_many`; `not_local`.".
-spec add(pid(), subscribers()) -> {ok, subscribers()} | {error, too_many | not_local}.
add(Pid, Subs) when is_map_key(Pid, Subs) -> {ok, Subs};
add(_Pid, Subs) when map_size(Subs) >= ?MOST -> {error, too_many};
add(Pid, Subs) when is_pid(Pid), node(Pid) =:= node() ->
    {ok, Subs#{Pid => #subscriber{monitor = monitor(process, Pid)}}};
add(_Pid, _Subs) -> {error, not_local}.

-doc "Removes a process, if it is there.".
-spec drop(pid(), subscribers()) -> subscribers().
drop(Pid, Subs) ->
    case maps:take(Pid, Subs) of
        {#subscriber{monitor = Monitor}, Subs1} ->
            true = demonitor(Monitor, [flush]),
            Subs1;
        error ->
            Subs
    end.

-doc "Sends a subscriber the details of a node from now on. Errors: `not_subscribed`.".
-spec watch(pid(), sderl_mon_types:id(), subscribers()) ->
    {ok, subscribers()} | {error, not_subscribed}.
watch(Pid, Node, Subs) -> watches(Pid, fun(Watches) -> Watches#{Node => []} end, Subs).

-doc "Ends `watch/3`. Errors: `not_subscribed`.".
-spec unwatch(pid(), sderl_mon_types:id(), subscribers()) ->
    {ok, subscribers()} | {error, not_subscribed}.
unwatch(Pid, Node, Subs) -> watches(Pid, fun(Watches) -> maps:remove(Node, Watches) end, Subs).

watches(Pid, Change, Subs) ->
    case Subs of
        #{Pid := #subscriber{watches = Watches} = Sub} ->
            {ok, Subs#{Pid := Sub#subscriber{watches = Change(Watches)}}};
        #{} -> {error, not_subscribed}
    end.

-doc "The nodes that somebody watches.".
-spec watched(subscribers()) -> [sderl_mon_types:id()].
watched(Subs) ->
    lists:usort(lists:append([maps:keys(Watches)
                              || #subscriber{watches = Watches} <- maps:values(Subs)])).

-doc "Sends a message to all. `Present` is sent first to a subscriber that was behind.".
-spec tell(Message :: tuple(), Present :: [tuple()], subscribers()) -> subscribers().
tell(Message, Present, Subs) ->
    maps:map(fun(Pid, Sub) -> tell_one(Pid, Message, Present, Sub) end, Subs).

tell_one(Pid, Message, Present, #subscriber{missed = Missed} = Sub) ->
    case process_info(Pid, message_queue_len) of
        {message_queue_len, N} when N > ?SLOW; is_tuple(Missed), N > ?SLOW div 2 ->
            Sub#subscriber{missed = missed(Message, Missed)};
        {message_queue_len, _N} when is_tuple(Missed) ->
            lists:foreach(fun(M) -> Pid ! M end, said(Missed) ++ Present ++ [Message]),
            Sub#subscriber{missed = none};
        _InStepOrDead ->
            Pid ! Message,
            Sub
    end.

%% Counts what a subscriber misses.
missed(Message, none) -> missed(Message, {0, 0});
missed({sderl_mon, frame, _}, {Frames, Events}) -> {Frames + 1, Events};
missed({sderl_mon, events, New}, {Frames, Events}) -> {Frames, Events + length(New)};
missed(_Other, Missed) -> Missed.

said({Frames, Events}) ->
    [{sderl_mon, missed, Frames}] ++ [{sderl_mon, events_missed, Events} || Events > 0].

-doc "Sends details to the subscribers that watch their nodes and are not behind.".
-spec details(#{sderl_mon_types:id() => sderl_mon_types:detail()}, subscribers()) -> ok.
details(New, Subs) when map_size(New) =:= 0; map_size(Subs) =:= 0 -> ok;
details(New, Subs) ->
    _ = [
        Pid ! {sderl_mon, detail, Node, Detail}
     || Pid := #subscriber{watches = Watches, missed = none} <- Subs, Node := _ <- Watches,
        #{Node := Detail} <- [New]
    ],
    ok.
