%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_tell).
-moduledoc """
How monitoring nodes tell each other, and monitored nodes, anything: never waiting for a link, and
never opening one. A message that cannot go is told to the sender, who counts it; everything is told
again in time.
""".

-export([cast/3, message/2, master/4]).

-doc "A cast to a registered process of a node, this one or another.".
-spec cast(node(), atom(), term()) -> boolean().
cast(Node, Name, Message) -> message({Name, Node}, {'$gen_cast', Message}).

-doc "Whether the message is on its way.".
-spec message(pid() | {atom(), node()}, term()) -> boolean().
message(To, Message) -> erlang:send(To, Message, [noconnect, nosuspend]) =:= ok.

-doc """
A message of the protocol of masters, of version 1, to the one that is registered under a name
there.
""".
-spec master(node(), Name :: atom(), sderl_mon_message:kind(), Payload :: term()) -> boolean().
master(Node, Name, Kind, Payload) -> cast(Node, Name, {sderl_mon, 1, Kind, node(), Payload}).
