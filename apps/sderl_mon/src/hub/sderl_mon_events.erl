%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_events).
-moduledoc """
The events of a hub: numbered, each once, the newest 5,000. Pure.

An agent that takes over from another may repeat events of that one. An event with the same time (by
the node's clock, if known), kind, place and text as one of the last 5,000 is the same event, if
another agent reported that. An event that one agent reports twice happened twice.
""".

-export([new/0, add/3, inherit/2, to_list/1, count/1]).

-export_type([events/0]).

-opaque events() :: #{
    last := non_neg_integer(),
    count := non_neg_integer(),
    queue := queue:queue(sderl_mon_types:event()),
    %% By which agent, and the number of the last event then.
    told := #{{sderl_mon_types:t(), non_neg_integer()} => {teller(), non_neg_integer()}}
}.

-doc "An agent, by its scope and term.".
-type teller() :: {sderl_mon_types:scope(), integer()}.

-define(MOST, 5_000).
-define(TOLD, 5_000).

-doc "No event yet.".
-spec new() -> events().
new() -> #{last => 0, count => 0, queue => queue:new(), told => #{}}.

-doc "Takes events of an agent. Returns those that are new, with their ids.".
-spec add(teller(), [sderl_mon_types:new_event()], events()) ->
    {[sderl_mon_types:event()], events()}.
add(_Teller, [], Events) -> {[], Events};
add(Teller, Given, #{last := Last, count := Count, queue := Queue, told := Told} = Events) ->
    {New, Told1} = lists:foldl(fun(E, Acc) -> fresh(Teller, Last, E, Acc) end, {[], Told}, Given),
    {Numbered, Last1} = lists:mapfoldl(fun(E, Id) -> {E#{id => Id + 1}, Id + 1} end, Last,
                                       lists:reverse(New)),
    Kept = lists:foldl(fun queue:in/2, Queue, Numbered),
    {Numbered, bound(Events#{last := Last1, count := Count + length(New), queue := Kept,
                             told := forget(Last1, Told1)})}.

fresh(Teller, Last, Event, {New, Told}) ->
    Key = key(Event),
    case Told of
        #{Key := {Other, _}} when Other =/= Teller -> {New, Told};
        #{} -> {[Event | New], Told#{Key => {Teller, Last}}}
    end.

key(#{t := T} = Event) ->
    {maps:get(node_t, Event, T),
     erlang:phash2(maps:with([kind, text, node, group], Event), 1 bsl 32)}.

%% When there are twice as many, all but the 5,000 newest by arrival are forgotten. (Clocks of nodes
%% differ.)
forget(_Last, Told) when map_size(Told) =< 2 * ?TOLD -> Told;
forget(Last, Told) -> #{Key => By || Key := {_, At} = By <- Told, At >= Last - ?TOLD}.

bound(#{count := Count, queue := Queue} = Events) when Count > ?MOST ->
    bound(Events#{count := Count - 1, queue := queue:drop(Queue)});
bound(Events) ->
    Events.

-doc """
Puts the events of another hub before our own. Events that both have are kept once. All get new ids.
""".
-spec inherit([sderl_mon_types:event()], events()) -> events().
inherit(Given, #{queue := Queue} = Events) ->
    Known = #{key(Event) => true || Event <- Given},
    Own = [Event || Event <- queue:to_list(Queue), not is_map_key(key(Event), Known)],
    {Numbered, Last} = lists:mapfoldl(fun(E, Id) -> {E#{id => Id + 1}, Id + 1} end, 0,
                                      Given ++ Own),
    bound(Events#{last := Last, count := Last, queue := queue:from_list(Numbered)}).

-doc "All, oldest first.".
-spec to_list(events()) -> [sderl_mon_types:event()].
to_list(#{queue := Queue}) -> queue:to_list(Queue).

-doc "How many there are.".
-spec count(events()) -> non_neg_integer().
count(#{count := Count}) -> Count.
