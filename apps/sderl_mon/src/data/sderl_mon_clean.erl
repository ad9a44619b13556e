%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_clean).
-moduledoc """
Checks data from other nodes: an agent of another version, or one whose update was cut, must not
bring down a hub. Pure.

Wrong entries of a map are left out and counted; of a node's or a group's numbers only the wrong
numbers. A term that is no update at all is an error. Texts, details of events and details of nodes
are bounded.
""".

-export([update/1, topology/1, packed_topology/1, remembered/1]).

-define(TEXT_BYTES, 1_000).
-define(DETAIL_WORDS, 500).
-define(NODE_DETAIL_WORDS, 50_000).
-define(EVENTS, 2_000).
-define(METRICS, 64).
-define(MOST_FLOAT, 1.0e100).
%% Ten times the longest interval that can be set.
-define(SPAN_MS, 600_000).

-doc "The usable part of an update, and how many entries were left out.".
-spec update(term()) ->
    {ok, sderl_mon_types:update(), Bad :: non_neg_integer()} | {error, not_an_update}.
update(#{agent := {Scope, Term}, t := T, span_ms := Span} = Update) when
    is_integer(Term), is_integer(T), is_integer(Span), Span > 0, Span =< ?SPAN_MS
->
    case id(Scope) of
        true -> usable(Update);
        false -> {error, not_an_update}
    end;
update(_Other) ->
    {error, not_an_update}.

usable(#{agent := {Scope, Term}, t := T, span_ms := Span} = Update) ->
    {Parts, Bad} = lists:mapfoldl(
        fun({Key, Good}, Count) ->
            {Kept, Wrong} = entries(maps:get(Key, Update, #{}), Good),
            {Usable, Odd} = case is_of_samples(Key) of
                true -> numbers(Kept);
                false -> {Kept, 0}
            end,
            {{Key, Usable}, Count + Wrong + Odd}
        end,
        0,
        [
            {nodes, fun is_sample/1},
            {links, fun link_flow/1},
            {kinds, fun kind_flow/1},
            {groups, fun is_sample/1},
            {routed, fun routed/1},
            {details, fun detail/1},
            {lost, fun lost/1}
        ]
    ),
    {Events, BadEvents} = events(maps:get(events, Update, [])),
    Base = #{agent => {Scope, Term}, t => T, span_ms => Span, events => Events},
    {ok, maps:merge(Base, maps:from_list(Parts)), Bad + BadEvents}.

entries(Map, Good) when is_map(Map) ->
    Kept = maps:filter(fun(Key, Value) -> Good({Key, Value}) end, Map),
    {Kept, map_size(Map) - map_size(Kept)};
entries(_Other, _Good) ->
    {#{}, 1}.

id(Id) -> sderl_mon_shape:fits(id, Id).

is_sample({Id, Sample}) ->
    #{series := Series} = sderl_mon_app_metrics:limits(),
    id(Id) andalso is_map(Sample) andalso map_size(Sample) =< ?METRICS + Series.

is_of_samples(Key) -> Key =:= nodes orelse Key =:= groups.

%% One odd number of an application must not cost its node all others.
numbers(Samples) ->
    maps:fold(fun(Id, Sample, {Kept, Bad}) ->
        case [Metric || Metric := V <- Sample, not (metric(Metric) andalso number(V))] of
            [] -> {Kept, Bad};
            Odd -> {Kept#{Id := maps:without(Odd, Sample)}, Bad + length(Odd)}
        end
    end, {Samples, 0}, Samples).

metric(Metric) -> is_atom(Metric) orelse sderl_mon_app_metrics:is_series(Metric).

%% Larger integers are no counts of anything here and have no place in a float. A float that large
%% could not be multiplied by a span.
number(V) when is_float(V) -> abs(V) < ?MOST_FLOAT;
number(V) -> is_integer(V) andalso abs(V) < 1 bsl 60.

link_flow({{From, To}, Flow}) -> id(From) andalso id(To) andalso flow(Flow);
link_flow(_Other) -> false.

routed({{From, To}, Msgs}) -> id(From) andalso id(To) andalso number(Msgs) andalso Msgs >= 0;
routed(_Other) -> false.

kind_flow({Kind, Flow}) -> is_atom(Kind) andalso flow(Flow).

flow({Msgs, Bytes}) -> number(Msgs) andalso number(Bytes) andalso Msgs >= 0 andalso Bytes >= 0;
flow(_Other) -> false.

lost({Key, N}) -> is_atom(Key) andalso is_integer(N) andalso N >= 0 andalso N < 1 bsl 60.

detail({Id, #{t := T, node := Id} = Detail}) ->
    id(Id) andalso is_integer(T) andalso erts_debug:flat_size(Detail) =< ?NODE_DETAIL_WORDS;
detail(_Other) ->
    false.

events(Events) -> events(Events, ?EVENTS, [], 0).

%% The tail of an improper list counts as a wrong entry.
events([], _, Kept, Bad) ->
    {lists:reverse(Kept), Bad};
events([Event | Rest], Left, Kept, Bad) when Left > 0 ->
    case is_event(Event) of
        true -> events(Rest, Left - 1, [event(Event) | Kept], Bad);
        false -> events(Rest, Left - 1, Kept, Bad + 1)
    end;
events([_ | Rest], 0, Kept, Bad) ->
    events(Rest, 0, Kept, Bad + 1);
events(_Other, _, Kept, Bad) ->
    {lists:reverse(Kept), Bad + 1}.

is_event(#{t := T, kind := Kind, level := Level, text := Text} = Event) ->
    is_integer(T) andalso is_integer(maps:get(node_t, Event, T)) andalso is_atom(Kind) andalso
        is_binary(Text) andalso
        lists:member(Level, [info, notice, warning, error]) andalso
        lists:all(fun(Key) -> not is_map_key(Key, Event) orelse id(maps:get(Key, Event)) end,
                  [node, group]);
is_event(_Other) ->
    false.

-doc """
The numbered events in a list from another hub or a recording. (A kind for which this VM has no atom
is a text.)
""".
-spec remembered(term()) -> [sderl_mon_types:event()].
remembered(Events) when length(Events) >= 0 ->
    [
        Event
     || #{id := Id, t := T, kind := Kind, level := Level, text := Text} = Event <- Events,
        is_integer(Id), is_integer(T), is_name(Kind), is_name(Level), is_binary(Text)
    ];
remembered(_) ->
    [].

is_name(Kind) -> is_atom(Kind) orelse is_binary(Kind).

event(#{text := Text} = Event) ->
    Known = maps:with([t, node_t, kind, level, node, group], Event#{text := Text}),
    details(Event, Known#{text => sderl_mon_text:cut(Text, ?TEXT_BYTES)}).

details(#{details := Details}, Event) when is_map(Details) ->
    case erts_debug:flat_size(Details) =< ?DETAIL_WORDS of
        true -> Event#{details => Details};
        false -> Event#{details => #{cut => true}}
    end;
details(_None, Event) ->
    Event.

-doc "The topology that was packed; `none` if the bytes are damaged or hold something else.".
-spec packed_topology(binary()) -> {ok, sderl_mon_types:topology()} | none.
packed_topology(Packed) ->
    maybe
        {ok, Term} ?= sderl_mon_pack:unpack(Packed),
        {ok, Topology} ?= topology(Term),
        {ok, Topology}
    else
        {error, _} -> none
    end.

-doc "Whether a term is a topology.".
-spec topology(term()) -> {ok, sderl_mon_types:topology()} | {error, not_a_topology}.
topology(
    #{epoch := Epoch, t := T, nodes := Nodes, groups := Groups, monitors := Monitors} = Topology
)
  when is_integer(Epoch), is_integer(T), is_map(Nodes), is_map(Groups) ->
    Good = infos(node_info(), Nodes) andalso infos(group_info(), Groups)
        andalso sderl_mon_shape:fits({list, monitor_info()}, Monitors),
    case Good of
        true -> {ok, maps:with([epoch, t, nodes, groups, monitors], Topology)};
        false -> {error, not_a_topology}
    end;
topology(_Other) ->
    {error, not_a_topology}.

infos(Shape, Infos) ->
    maps:fold(fun(Id, Info, Ok) -> Ok andalso id(Id) andalso sderl_mon_shape:fits(Shape, Info) end,
              true, Infos).

node_info() ->
    {fields,
        #{
            status => {either, [{value, up}, {value, down}, {value, unreachable}]},
            groups => {list, id},
            hidden => boolean,
            source => {either, [{value, probe}, {value, stock}, {value, none}]}
        },
        #{home => maybe_id(), agent => id, why => binary, otp => binary, library => boolean}}.

group_info() ->
    {fields, #{nodes => {list, id}, names => integer}, #{
        coordinator => maybe_id(),
        live => {list, id},
        minority => {list, id},
        agent => maybe_id()
    }}.

monitor_info() ->
    {fields,
     #{node => id, status => {either, [{value, up}, {value, down}]}, master => boolean,
       agents => integer},
     #{}}.

maybe_id() -> {either, [{value, undefined}, id]}.
