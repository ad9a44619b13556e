%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_tell).
-moduledoc """
Sends messages to other monitoring nodes and to monitored nodes: never waits for a link, and never
opens one. The sender learns when a message cannot be sent, and may count it; senders repeat their
state in time.
""".

-export([cast/3, message/2, master/4]).

-doc "Sends a cast to a registered process of a node, this one or another.".
-spec cast(node(), atom(), term()) -> boolean().
cast(Node, Name, Message) -> message({Name, Node}, {'$gen_cast', Message}).

-doc "Sends a message; returns whether it was sent.".
-spec message(pid() | {atom(), node()}, term()) -> boolean().
message(To, Message) -> erlang:send(To, Message, [noconnect, nosuspend]) =:= ok.

-doc """
Sends a message of the protocol of masters, version 1, to the master registered under a name there.
""".
-spec master(node(), Name :: atom(), sderl_mon_message:kind(), Payload :: term()) -> boolean().
master(Node, Name, Kind, Payload) -> cast(Node, Name, {sderl_mon, 1, Kind, node(), Payload}).
