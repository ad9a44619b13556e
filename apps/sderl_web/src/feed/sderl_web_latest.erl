%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_latest).
-moduledoc """
What the hub said last, each thing encoded once for all browsers, with the numbers that stand for
names in it. Belongs to the feed's process; pure.
""".

-export([new/0, replace/2, put/3, add_events/2, number/3]).
-export([encode/2, encode_events/2, snapshot/2]).
-export([present/1, life/1, ids/1, has_node/2]).
-export_type([latest/0, present/0, what/0]).

-doc """
What the hub said last, and whether of a cluster that there is. Before it has said anything:
`undefined`.
""".
-type present() :: #{
    mode := live | synthetic,
    topology := sderl_mon_types:topology() | undefined,
    frame := sderl_mon_types:frame() | undefined,
    findings := [sderl_mon_types:finding()]
}.

-doc "What a newer one of its kind replaces.".
-type what() :: topology | frame | findings | alarms.

-define(FIRST_EVENTS, 200).
-define(KEPT_EVENTS, 2000).

-record(latest, {
    life = none :: none | integer(),
    mode = live :: live | synthetic,
    interval_ms = 1000 :: pos_integer(),
    ids :: sderl_web_ids:ids(),
    topology :: sderl_mon_types:topology() | undefined,
    frame :: sderl_mon_types:frame() | undefined,
    findings = [] :: [sderl_mon_types:finding()],
    alarms = none :: none | sderl_alarms_server:snapshot(),
    %% Newest first.
    events = [] :: [sderl_mon_types:event()],
    encoded = #{} :: #{what() => binary()}
}).
-opaque latest() :: #latest{}.

-doc "Before the hub has said anything.".
-spec new() -> latest().
new() -> #latest{ids = sderl_web_ids:new()}.

-doc "Another life of a hub begins; names keep their numbers.".
-spec replace(sderl_mon_hub:snapshot(), latest()) -> latest().
replace(#{topology := Topology, frame := First, findings := Findings, events := Events,
          mode := Mode, interval_ms := Interval, life := Life},
        #latest{encoded = Encoded} = Latest) ->
    Frame = case First of none -> undefined; #{} -> First end,
    number(Topology, Frame, Latest#latest{
        life = Life, mode = Mode, interval_ms = Interval, topology = Topology, frame = Frame,
        findings = Findings, events = Events, encoded = maps:with([alarms], Encoded)
    }).

-doc "Replaces what there was of a kind.".
-spec put(what(), term(), latest()) -> latest().
put(topology, Topology, Latest) ->
    changed(topology, number(Topology, undefined, Latest#latest{topology = Topology}));
put(frame, Frame, Latest) ->
    changed(frame, number(undefined, Frame, Latest#latest{frame = Frame}));
put(findings, Findings, Latest) ->
    changed(findings, Latest#latest{findings = Findings});
put(alarms, Alarms, Latest) ->
    changed(alarms, Latest#latest{alarms = Alarms}).

changed(What, #latest{encoded = Encoded} = Latest) ->
    Latest#latest{encoded = maps:remove(What, Encoded)}.

-doc """
Events, the oldest first: those that were not there, encoded, and the number of the first. While the
feed subscribes again, events may be on their way that its new snapshot has already.
""".
-spec add_events([sderl_mon_types:event()], latest()) ->
    none | {binary(), First :: integer(), latest()}.
add_events([#{id := Id} | Later], #latest{events = [#{id := Last} | _]} = Latest) when Id =< Last ->
    add_events(Later, Latest);
add_events([], _) ->
    none;
add_events([First | _] = New, #latest{events = Events} = Latest) ->
    Kept = lists:sublist(lists:reverse(New) ++ Events, ?KEPT_EVENTS),
    {iolist_to_binary(sderl_web_json:events(New)), maps:get(id, First, 0),
     Latest#latest{events = Kept}}.

-doc "The table of numbers gets the names of these. It keeps those of the present topology.".
-spec number(sderl_mon_types:topology() | undefined, sderl_mon_types:frame() | undefined,
             latest()) -> latest().
number(Topology, Frame, #latest{ids = Ids0, topology = Present} = Latest) ->
    case named(Frame, named(Topology, Ids0)) of
        Ids0 -> Latest;
        %% Room for new names may have been made by forgetting others.
        Ids -> Latest#latest{ids = named(Present, Ids)}
    end.

named(undefined, Ids) -> Ids;
named(#{links := _} = Frame, Ids) -> sderl_web_ids:frame(Frame, Ids);
named(Topology, Ids) -> sderl_web_ids:topology(Topology, Ids).

-doc "The message that says it.".
-spec encode(what(), latest()) -> {binary(), latest()}.
encode(What, #latest{encoded = Encoded} = Latest) ->
    case Encoded of
        #{What := Message} ->
            {Message, Latest};
        #{} ->
            Message = iolist_to_binary(json(What, Latest)),
            {Message, Latest#latest{encoded = Encoded#{What => Message}}}
    end.

json(topology, #latest{topology = Topology, ids = Ids}) -> sderl_web_json:topology(Topology, Ids);
json(frame, #latest{frame = Frame, ids = Ids}) -> sderl_web_json:frame(Frame, Ids);
json(findings, #latest{findings = Findings}) -> sderl_web_json:findings(Findings);
json(alarms, #latest{alarms = Alarms}) -> sderl_web_json:term(sderl_web_alarms:shown(Alarms)).

-doc "The events from a number on; and how many of them are not kept any more.".
-spec encode_events(From :: integer(), latest()) -> {binary(), Gone :: non_neg_integer()}.
encode_events(From, #latest{events = Events}) ->
    Kept = lists:reverse([Event || Event <- Events, maps:get(id, Event, 0) >= From]),
    {iolist_to_binary(sderl_web_json:events(Kept)),
     max(0, maps:get(id, lists:last(Events), 0) - From)}.

-doc "All that is needed to begin: hello, topology, frame, findings, alarms, events.".
-spec snapshot(sderl_web_feed:settings(), latest()) -> {[binary()], latest()}.
snapshot(Settings, #latest{topology = Topology, frame = Frame, alarms = Alarms} = Latest0) ->
    {There, #latest{events = Events} = Latest} = lists:mapfoldl(
        fun encode/2,
        Latest0,
        [topology || Topology =/= undefined] ++ [frame || Frame =/= undefined] ++ [findings] ++
            [alarms || Alarms =/= none]
    ),
    Hello = iolist_to_binary(sderl_web_hello:live(hello(Settings, Latest), Topology)),
    First = lists:reverse(lists:sublist(Events, ?FIRST_EVENTS)),
    {[Hello | There] ++ [iolist_to_binary(sderl_web_json:events(First))], Latest}.

hello(Settings, #latest{mode = Mode, interval_ms = Interval, life = Life}) ->
    Settings#{mode => Mode, interval_ms => Interval, life => Life}.

-doc "What there is now, not encoded.".
-spec present(latest()) -> present().
present(#latest{mode = Mode, topology = Topology, frame = Frame, findings = Findings}) ->
    #{mode => Mode, topology => Topology, frame => Frame, findings => Findings}.

-doc "Which life of a hub it is of.".
-spec life(latest()) -> none | integer().
life(#latest{life = Life}) -> Life.

-doc "The table of numbers.".
-spec ids(latest()) -> sderl_web_ids:ids().
ids(#latest{ids = Ids}) -> Ids.

-doc "Whether the topology has a node.".
-spec has_node(Node :: binary(), latest()) -> boolean().
has_node(Node, #latest{topology = #{nodes := Nodes}}) -> is_map_key(Node, Nodes);
has_node(_, _) -> false.
