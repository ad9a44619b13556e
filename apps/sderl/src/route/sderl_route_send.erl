%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_send).
-moduledoc false.
%% Frames that travel over gateways, and the first step of each, which the sending process itself
%% does.
%%
%% | frame | |
%% |---|---|
%% | `{sderl_to, 1, Hops, Hash, Group, What, From, Message}` | to a member of a group: the first on
%% the way |
%% | `{sderl_each, 1, Hops, Hash, [Group], What, From, Message}` | to members of several groups; it parts where their ways do |
%% | `{sderl_at, 1, Hops, Hash, Node, What, From, Message}` | to a node |
%% | `{sderl_many, 1, [Frame \| [Pid \| Message]]}` | a bundle: frames, and messages for processes of the node that gets it |
%%
%% `Hops` is how many more gateways may pass it on. `Hash`, of the sender and the group, chooses
%% among equal ways and among the forwarding processes of a node, so that messages from a process to
%% a group stay in order. `From` is the pid that gets a report if the frame cannot be delivered, an
%% alias that gets an answer in either case, or `none`.

-export([group/6, group_each_way/5, node_each_way/5, again/5, hash/1, node/5, node/6, pick/2,
         forwarder/1, hops/0]).
-export_type([what/0, at/0, from/0, failure/0]).

-define(VSN, 1).

-doc "The receivers in a group.".
-type what() :: {name | call | whois, Name :: term()} | {names, Pattern :: term()}
                | {nodes | call_any, Process :: atom()}.
-doc "The receivers on a node.".
-type at() :: {to, pid() | reference()} | {pids, [pid()]} | {process, atom()}
              | {call, pid() | atom()} | {whois | stream, pid()}
              | {straight, pid()} | probe | report | {group, Group :: term(), what()}
              | {groups, [Group :: term()], what()}.
-type from() :: pid() | reference() | none.
-doc """
Why a frame could not be delivered. `no_name`: the group has no such name. `no_route`: no gateway
leads there. `unreachable`: the way ends before the receiver's node. `busy`: the queue of a link or
a gateway on the way is full. `hop_limit`: it went through too many gateways.
""".
-type failure() :: no_name | no_route | unreachable | busy | hop_limit.

-doc """
Sends to a group that this node is no member of. Suspends the caller while the first link is full,
unless the options say `nosuspend`.
""".
-spec group(term(), what(), from(), term(), non_neg_integer(), [noconnect | nosuspend]) ->
    ok | {error, no_route | busy}.
group(Group, What, From, Message, Hash, Options) ->
    %% There are no routes to own groups.
    case sderl_router:first({group, Group}) of
        {} -> {error, no_route};
        First ->
            send_first(pick(First, Hash), First, forwarder(Hash),
                       {sderl_to, ?VSN, hops(), Hash, Group, What, From, Message}, Options)
    end.

-doc """
The same by every way at once, for messages that may arrive twice: if a call gets no answer, a
gateway may have failed that is not missed yet. Gives the number of frames that were sent.
""".
-spec group_each_way(term(), what(), from(), term(), [noconnect | nosuspend]) ->
    {ok, pos_integer()} | {error, no_route | busy}.
group_each_way(Group, What, From, Message, Options) ->
    each_way({group, Group},
             fun(Hash) -> {sderl_to, ?VSN, hops(), Hash, Group, What, From, Message} end, Options).

-doc "Likewise to a node: once, over the link, if there is one.".
-spec node_each_way(node(), at(), from(), term(), [noconnect | nosuspend]) ->
    {ok, pos_integer()} | {error, no_route | busy}.
node_each_way(Node, At, From, Message, Options) ->
    case sderl_links:is_up(Node) of
        true -> one(node(Node, At, From, Message, Options));
        false ->
            each_way({node, Node}, fun(Hash) -> frame(Node, At, From, Message, Hash) end, Options)
    end.

-doc """
Sends to a node, for a protocol that sends again until an answer comes, and tolerates duplicates:
the first time by one way, then by each. Does not suspend the caller.
""".
-spec again(node(), at(), from(), term(), Tries :: non_neg_integer()) ->
    ok | {error, no_route | busy}.
again(Node, At, From, Message, 0) -> node(Node, At, From, Message, [noconnect, nosuspend]);
again(Node, At, From, Message, _) ->
    case node_each_way(Node, At, From, Message, [noconnect, nosuspend]) of
        {ok, _} -> ok;
        Error -> Error
    end.

each_way(Key, Frame, Options) ->
    case sderl_router:first(Key) of
        {} -> {error, no_route};
        First ->
            Sent = [begin
                Hash = other(),
                erlang:send({forwarder(Hash), Node}, Frame(Hash), Options)
            end || Node <- tuple_to_list(First)],
            case {length([ok || ok <- Sent]), lists:member(nosuspend, Sent)} of
                {0, true} -> {error, busy};
                {0, false} -> {error, no_route};
                {N, _} -> {ok, N}
            end
    end.

one(ok) -> {ok, 1};
one(Error) -> Error.

-doc """
The hash for messages of the calling process to a group: all take one way, so that they stay in
order.
""".
-spec hash(term()) -> non_neg_integer().
hash(Group) -> erlang:phash2(self()) bxor erlang:phash2(Group).

-doc """
Sends to a node, over a link if there is one. `nosuspend`: fails instead of waiting for a full link.
""".
-spec node(node(), at(), from(), term(), [noconnect | nosuspend]) -> ok | {error, no_route | busy}.
node(Node, At, From, Message, Options) -> node(Node, At, From, Message, own, Options).

-doc "The same with a hash to choose the way.".
-spec node(node(), at(), from(), term(), own | non_neg_integer(), [noconnect | nosuspend]) ->
    ok | {error, no_route | busy}.
node(Node, {to, To} = At, From, Message, Hash, Options) ->
    case erlang:send(To, Message, Options) of
        ok -> ok;
        noconnect -> onward({node, Node}, frame(Node, At, From, Message, Hash), Options);
        nosuspend -> {error, busy}
    end;
node(Node, At, From, Message, Hash, Options) ->
    Frame = frame(Node, At, From, Message, Hash),
    case erlang:send({forwarder(element(4, Frame)), Node}, Frame, Options) of
        ok when Node =:= node() -> ok;
        ok -> sderl_traffic:sent(routing, Frame);
        noconnect -> onward({node, Node}, Frame, Options);
        nosuspend -> {error, busy}
    end.

frame(Node, At, From, Message, own) -> frame(Node, At, From, Message, hash_at(From, At));
frame(Node, At, From, Message, Hash) -> {sderl_at, ?VSN, hops(), Hash, Node, At, From, Message}.

%% The questions and answers of a call keep no order, and may take another way each time.
hash_at(_, {to, Alias}) when is_reference(Alias) -> other();
hash_at(_, probe) -> other();
hash_at(_, {group, Group, _}) -> hash(Group);
hash_at(From, At) -> erlang:phash2({From, At}, 1 bsl 27).

other() -> erlang:unique_integer([positive]) band (1 bsl 27 - 1).

-doc "How many gateways a frame that begins here may cross.".
-spec hops() -> pos_integer().
hops() ->
    case sderl_dir:options() of
        #{route_hops := Hops} -> Hops;
        #{} -> sderl_route_config:value(route_hops)
    end.

%% One step of a frame, by the routes of this node.
onward(Key, Frame, Options) ->
    Hash = element(4, Frame),
    case sderl_router:first(Key) of
        {} -> {error, no_route};
        First -> send_first(pick(First, Hash), First, forwarder(Hash), Frame, Options)
    end.

send_first(Node, First, Name, Frame, Options) ->
    case erlang:send({Name, Node}, Frame, Options) of
        ok -> sderl_traffic:sent(routing, Frame);
        nosuspend -> {error, busy};
        noconnect ->
            %% It died a moment ago.
            case lists:delete(Node, tuple_to_list(First)) of
                [] -> {error, no_route};
                [Next | _] = Rest -> send_first(Next, list_to_tuple(Rest), Name, Frame, Options)
            end
    end.

-doc """
Which of several equal first steps. Each node turns the hash its own way, or all would take the same
side.
""".
-spec pick({node()} | tuple(), non_neg_integer()) -> node().
pick({Node}, _) -> Node;
pick(First, Hash) -> element(1 + erlang:phash2({Hash, node()}, tuple_size(First)), First).

-doc "The forwarding process for a hash; every node has the same ones.".
-spec forwarder(non_neg_integer()) -> atom().
forwarder(Hash) ->
    case Hash band 7 of
        0 -> sderl_forward_1;
        1 -> sderl_forward_2;
        2 -> sderl_forward_3;
        3 -> sderl_forward_4;
        4 -> sderl_forward_5;
        5 -> sderl_forward_6;
        6 -> sderl_forward_7;
        7 -> sderl_forward_8
    end.
