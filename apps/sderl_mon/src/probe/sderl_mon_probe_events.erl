%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_events).
-moduledoc """
The events that a probe has for its owner: those of the sample under way, and newer ones. At most
500 are kept; only their texts are made.
""".

-export([new/0, add/4, fresh/1, count/1, send/1, acknowledge/1, take_back/1]).
-export([describe_told/3, describe_link/3]).
-export_type([events/0, text/0]).

-import(sderl_mon_probe_text, [id/1, text/1, text/2, cut/2]).

-define(MOST, 500).

-record(events, {
    %% Of the sample under way; newer ones; the last first in both.
    sent = [] :: [sderl_mon_samples:event()],
    fresh = [] :: [sderl_mon_samples:event()],
    %% How many events are in both.
    count = 0 :: non_neg_integer()
}).
-opaque events() :: #events{}.

-doc "A text, a format with arguments, or the report of an event of the library.".
-type text() :: binary() | {io:format(), [term()]} | {told, logger:report()}.

-doc "No events.".
-spec new() -> events().
new() -> #events{}.

-doc "Keeps an event, if there is room. `More` are its other fields.".
-spec add({Kind :: atom(), Level :: atom()}, text(), More :: map(), events()) ->
    {ok, events()} | full.
add(_, _, _, #events{count = Count}) when Count >= ?MOST -> full;
add({Kind, Level}, Text, More, #events{fresh = Fresh, count = Count} = Events) ->
    Event = maps:merge(#{kind => Kind, level => Level, t => erlang:system_time(millisecond),
                         text => worded(Text)}, More),
    {ok, Events#events{fresh = [Event | Fresh], count = Count + 1}}.

worded({told, Report}) ->
    try sderl_mon_probe_library:describe_event(Report) of {Format, Args} -> text(Format, Args)
    catch _:_ -> text(Report)
    end;
worded({Format, Args}) -> text(Format, Args);
worded(Text) -> cut(Text, 400).

-doc "The events that were not sent yet, the oldest first.".
-spec fresh(events()) -> [sderl_mon_samples:event()].
fresh(#events{fresh = Fresh}) -> lists:reverse(Fresh).

-doc "How many are kept.".
-spec count(events()) -> non_neg_integer().
count(#events{count = Count}) -> Count.

-doc "The fresh events were sent.".
-spec send(events()) -> events().
send(#events{fresh = Fresh} = Events) -> Events#events{sent = Fresh, fresh = []}.

-doc "The sent events have arrived.".
-spec acknowledge(events()) -> events().
acknowledge(#events{fresh = Fresh}) -> #events{fresh = Fresh, count = length(Fresh)}.

-doc "Events under way may not have arrived, so they are sent again.".
-spec take_back(events()) -> events().
take_back(#events{sent = Sent, fresh = Fresh} = Events) ->
    Events#events{sent = [], fresh = Fresh ++ Sent}.

-doc "The level and the other fields of an event of the library.".
-spec describe_told(Kind :: atom(), logger:level(), map()) -> {Level :: atom(), text(), map()}.
describe_told(Kind, Level, Meta) ->
    Nodes = case Meta of #{nodes := Ns} -> Ns; #{node := N} -> [N]; _ -> [] end,
    Details = maps:merge(#{nodes => named_nodes(Nodes)},
                         #{lost => named_nodes(Lost) || #{lost := Lost} <- [Meta]}),
    More = maps:merge(#{details => Details}, #{group => id(G) || #{group := G} <- [Meta]}),
    {level(Level), {told, Meta#{event => Kind}}, More}.

%% The nodes of an event, bounded. The guard fails for an improper list.
named_nodes(Nodes) when length(Nodes) >= 0 ->
    [atom_to_binary(N) || N <- lists:sublist(Nodes, 20), is_atom(N)];
named_nodes(_) -> [].

level(debug) -> info;
level(Level) when Level =:= info; Level =:= notice; Level =:= warning -> Level;
level(_) -> error.

-doc "The event of a link to a node that is up, or down.".
-spec describe_link(nodeup | nodedown, node(), map()) ->
    {node_up | node_down, Level :: atom(), text(), map()}.
describe_link(Up, Node, Info) ->
    Type = maps:get(node_type, Info, visible),
    Details = #{details => #{peer => atom_to_binary(Node)}},
    case Up of
        nodeup ->
            {node_up, info, {"link to ~ts is up (~ts)", [Node, Type]}, Details};
        nodedown ->
            %% A hidden node is no member: a shell or a tool that has ended, or a monitoring node,
            %% which the masters report.
            Level = case Type of hidden -> info; _ -> warning end,
            Reason = maps:get(nodedown_reason, Info, unknown),
            {node_down, Level, {"link to ~ts is down: ~0tP", [Node, Reason, 20]}, Details}
    end.
