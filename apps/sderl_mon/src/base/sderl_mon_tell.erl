%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_tell).
-moduledoc """
How monitoring nodes tell each other, and monitored nodes, anything: never waiting for a link, and never opening
one. A message that cannot go is told to the sender, who counts it; everything is told again in time.
""".

-export([cast/3, message/2, peer/3]).

-doc "A cast to a registered process of a node, this one or another.".
-spec cast(node(), atom(), term()) -> boolean().
cast(Node, Name, Message) -> message({Name, Node}, {'$gen_cast', Message}).

-doc "Whether the message is on its way.".
-spec message(pid() | {atom(), node()}, term()) -> boolean().
message(To, Message) -> erlang:send(To, Message, [noconnect, nosuspend]) =:= ok.

-doc "A message of the protocol between masters, of version 1.".
-spec peer(node(), Kind :: atom(), term()) -> boolean().
peer(Node, Kind, Payload) -> cast(Node, sderl_mon_master, {sderl_mon, 1, Kind, node(), Payload}).
