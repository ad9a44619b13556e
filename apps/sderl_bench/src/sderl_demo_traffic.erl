%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_traffic).
-moduledoc """
What a node's distribution connections are and what went over them.

Only what a node *sent* is read, so that the sum over all nodes counts every byte between
them once. The numbers are those of the sockets: distribution protocol included, TCP and
IP headers not; a packet is one write to a socket.
""".

-export([snapshot/0, sum/1, since/2]).
-export_type([snapshot/0, total/0]).

-doc "One node: the nodes it is connected with and what it has sent to them so far.".
-type snapshot() :: #{
    links := [node()], bytes := non_neg_integer(), packets := non_neg_integer()
}.

-doc "All nodes: links counted once, and what they sent.".
-type total() :: #{
    links_total := non_neg_integer(),
    links_per_node_max := non_neg_integer(),
    links_per_node_mean := float(),
    bytes := non_neg_integer(),
    packets := non_neg_integer()
}.

-doc "This node's connections, hidden ones included, and their counters.".
-spec snapshot() -> snapshot().
snapshot() ->
    Controllers = erlang:system_info(dist_ctrl),
    Stats = [sent(Controller) || {_Node, Controller} <- Controllers],
    #{
        links => [Node || {Node, _} <- Controllers],
        bytes => lists:sum([Bytes || {Bytes, _} <- Stats]),
        packets => lists:sum([Packets || {_, Packets} <- Stats])
    }.

sent(Port) when is_port(Port) ->
    case inet:getstat(Port, [send_oct, send_cnt]) of
        {ok, Values} ->
            #{send_oct := Bytes, send_cnt := Packets} = maps:from_list(Values),
            {Bytes, Packets};
        %% The connection went down since it was listed.
        {error, _} -> {0, 0}
    end;
%% A distribution over something other than a TCP port has no socket to ask.
sent(_Process) ->
    {0, 0}.

-doc "Adds up the snapshots of all nodes, at least one.".
-spec sum([snapshot(), ...]) -> total().
sum(Snapshots) ->
    Counts = [length(Links) || #{links := Links} <- Snapshots],
    #{
        links_total => lists:sum(Counts) div 2,
        links_per_node_max => lists:max(Counts),
        links_per_node_mean => lists:sum(Counts) / length(Counts),
        bytes => lists:sum([Bytes || #{bytes := Bytes} <- Snapshots]),
        packets => lists:sum([Packets || #{packets := Packets} <- Snapshots])
    }.

-doc "What was sent between an earlier and a later total; the links are the later ones.".
-spec since(Earlier :: total(), Later :: total()) -> total().
since(#{bytes := Bytes, packets := Packets}, Later) ->
    maps:merge_with(
        fun(_, Now, Then) -> max(0, Now - Then) end,
        Later,
        #{bytes => Bytes, packets => Packets}
    ).
