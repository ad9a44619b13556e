%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_clean).
-moduledoc """
What comes from other nodes, checked: an agent of another version, or one whose update was cut, must
not bring down a hub. Pure.

Of a map of many entries the wrong ones are left out and counted; a term that is no update at all is
an error. What is bounded here: texts, the size of an event's details, the entries of a detail.
""".

-export([update/1, topology/1]).

-define(TEXT_BYTES, 1_000).
-define(ID_BYTES, 1_024).
-define(DETAIL_WORDS, 500).
-define(NODE_DETAIL_WORDS, 50_000).
-define(EVENTS, 2_000).
-define(METRICS, 64).
%% Ten times the longest interval that can be set.
-define(SPAN_MS, 600_000).

-doc "The usable part of an update, and how many entries were not.".
-spec update(term()) -> {ok, sderl_mon_types:update(), Bad :: non_neg_integer()} | {error, not_an_update}.
update(#{agent := {Scope, Term}, t := T, span_ms := Span} = Update) when
    is_binary(Scope), byte_size(Scope) =< ?ID_BYTES, is_integer(Term), is_integer(T), is_integer(Span), Span > 0, Span =< ?SPAN_MS
->
    {Parts, Bad} = lists:mapfoldl(
        fun({Key, Good}, Count) ->
            {Kept, Wrong} = entries(maps:get(Key, Update, #{}), Good),
            {{Key, Kept}, Count + Wrong}
        end,
        0,
        [
            {nodes, fun sample/1},
            {links, fun link_flow/1},
            {kinds, fun kind_flow/1},
            {groups, fun sample/1},
            {details, fun detail/1},
            {lost, fun lost/1}
        ]
    ),
    {Events, BadEvents} = events(maps:get(events, Update, [])),
    Base = #{agent => {Scope, Term}, t => T, span_ms => Span, events => Events},
    {ok, maps:merge(Base, maps:from_list(Parts)), Bad + BadEvents};
update(_Other) ->
    {error, not_an_update}.

entries(Map, Good) when is_map(Map) ->
    Kept = maps:filter(fun(Key, Value) -> Good({Key, Value}) end, Map),
    {Kept, map_size(Map) - map_size(Kept)};
entries(_Other, _Good) ->
    {#{}, 1}.

id(Id) -> is_binary(Id) andalso byte_size(Id) > 0 andalso byte_size(Id) =< ?ID_BYTES andalso is_text(Id).

%% What is no UTF-8 could be sent to no browser.
is_text(Bytes) -> is_binary(unicode:characters_to_binary(Bytes)).

sample({Id, Sample}) ->
    id(Id) andalso is_map(Sample) andalso map_size(Sample) =< ?METRICS andalso
        maps:fold(fun(Metric, V, Ok) -> Ok andalso is_atom(Metric) andalso number(V) end, true, Sample).

%% Larger integers are no counts of anything here and have no place in a float.
number(V) -> is_float(V) orelse (is_integer(V) andalso abs(V) < 1 bsl 60).

link_flow({{From, To}, Flow}) -> id(From) andalso id(To) andalso flow(Flow);
link_flow(_Other) -> false.

kind_flow({Kind, Flow}) -> is_atom(Kind) andalso flow(Flow).

flow({Msgs, Bytes}) -> number(Msgs) andalso number(Bytes) andalso Msgs >= 0 andalso Bytes >= 0;
flow(_Other) -> false.

lost({Key, N}) -> is_atom(Key) andalso is_integer(N) andalso N >= 0 andalso N < 1 bsl 60.

detail({Id, #{t := T, node := Id} = Detail}) ->
    id(Id) andalso is_integer(T) andalso erts_debug:flat_size(Detail) =< ?NODE_DETAIL_WORDS;
detail(_Other) ->
    false.

events(Events) when is_list(Events), length(Events) =< ?EVENTS ->
    Kept = [event(E) || E <- Events, is_event(E)],
    {Kept, length(Events) - length(Kept)};
events(Events) when is_list(Events) ->
    {First, Rest} = lists:split(?EVENTS, Events),
    {Kept, Bad} = events(First),
    {Kept, Bad + length(Rest)};
events(_Other) ->
    {[], 1}.

is_event(#{t := T, kind := Kind, level := Level, text := Text} = Event) ->
    is_integer(T) andalso is_integer(maps:get(node_t, Event, T)) andalso is_atom(Kind) andalso is_binary(Text) andalso
        lists:member(Level, [info, notice, warning, error]) andalso
        lists:all(fun(Key) -> not is_map_key(Key, Event) orelse id(maps:get(Key, Event)) end, [node, group]);
is_event(_Other) ->
    false.

event(#{text := Text} = Event) ->
    Known = maps:with([t, node_t, kind, level, node, group], Event#{text := Text}),
    details(Event, Known#{text => cut(Text)}).

details(#{details := Details}, Event) when is_map(Details) ->
    case erts_debug:flat_size(Details) =< ?DETAIL_WORDS of
        true -> Event#{details => Details};
        false -> Event#{details => #{cut => true}}
    end;
details(_None, Event) ->
    Event.

cut(Text) ->
    Cut = binary:part(Text, 0, min(byte_size(Text), ?TEXT_BYTES)),
    case unicode:characters_to_binary(Cut) of
        Good when is_binary(Good) -> binary:copy(Good);
        %% In the middle of a character, or no UTF-8 at all.
        {_Why, Good, _Rest} -> Good
    end.

-doc "Whether a term is a topology.".
-spec topology(term()) -> {ok, sderl_mon_types:topology()} | {error, not_a_topology}.
topology(#{epoch := Epoch, t := T, nodes := Nodes, groups := Groups, monitors := Monitors} = Topology) when
    is_integer(Epoch), is_integer(T), is_map(Nodes), is_map(Groups), is_list(Monitors)
->
    Good =
        maps:fold(fun(Id, Node, Ok) -> Ok andalso id(Id) andalso node_info(Node) end, true, Nodes) andalso
            maps:fold(fun(Id, Group, Ok) -> Ok andalso id(Id) andalso group_info(Group) end, true, Groups) andalso
            lists:all(fun monitor_info/1, Monitors),
    case Good of
        true -> {ok, maps:with([epoch, t, nodes, groups, monitors], Topology)};
        false -> {error, not_a_topology}
    end;
topology(_Other) ->
    {error, not_a_topology}.

node_info(#{status := Status, groups := Groups, hidden := Hidden, source := Source}) ->
    lists:member(Status, [up, down, unreachable]) andalso ids(Groups) andalso is_boolean(Hidden) andalso
        lists:member(Source, [probe, stock, none]);
node_info(_Other) ->
    false.

group_info(#{nodes := Nodes, names := Names}) -> ids(Nodes) andalso is_integer(Names);
group_info(_Other) -> false.

monitor_info(#{node := Node, status := Status, master := Master, agents := Agents}) ->
    id(Node) andalso lists:member(Status, [up, down]) andalso is_boolean(Master) andalso is_integer(Agents);
monitor_info(_Other) ->
    false.

ids(Ids) -> is_list(Ids) andalso lists:all(fun id/1, Ids).
