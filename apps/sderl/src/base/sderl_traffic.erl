%% SPDX-License-Identifier: Apache-2.0
-module(sderl_traffic).
-moduledoc """
What the library itself sends to other nodes, by kind, and what was written in each group.

Counted where it is sent, at some ten nanoseconds a message: a message here is one message of the
distribution, whatever it holds (a batch of a thousand registrations is one), as the counters of a
link count. All counts only grow for as long as the node runs, over restarts of the application too.

| kind | |
|---|---|
| `registration` | what clients of a node ask its groups' coordinators, and their answers |
| `replication` | batches to the members and their acknowledgements, snapshots, and what is merged after a split |
| `control` | heartbeats, elections, who is in which group, closing of links, tables of routes |
| `routing` | frames and bundles of frames over gateways |
| `attributes` | attributes of nodes, loads among them |

Bytes are estimated: the external size of the first 128 messages of each kind, then of one in 128.

For monitoring there are also the registrations of each group that clients on this node asked for,
and how many routed messages went over this gateway from one node to the next (`edges`). The
messages of a bundle all count for the origin of its first message.
""".

-export([new/0, read/0, sample/0]).
-export([send/4, sent/2, group/1, forget/1, answered/4, crossed/3, routed/0]).

-export_type([kind/0, tally/0]).

-type kind() :: registration | replication | control | routing | attributes.
-doc "Of one group: registrations, removals and refusals that clients here asked for.".
-opaque tally() :: counters:counters_ref().

-define(TABLE, ?MODULE).
-define(EXACT, 128).
%% How many pairs of nodes are counted apart.
-define(EDGES, 10_000).
%% Behind messages and bytes of the five kinds.
-define(WRITES, 11).

-doc "Makes the table, which the calling process owns, and the counters if there are none.".
-spec new() -> ets:table().
new() ->
    _ = case persistent_term:get(?MODULE, none) of
        none -> persistent_term:put(?MODULE, counters:new(13, []));
        _ -> ok
    end,
    Table = ets:new(?TABLE, [named_table, public, {write_concurrency, true}]),
    true = ets:insert(Table, {routed, counters:new(3, [write_concurrency])}),
    Table.

-doc """
Messages and bytes sent to other nodes so far, by kind; nothing on a node where the application has
not run.
""".
-spec read() -> #{kind() => {Messages :: non_neg_integer(), Bytes :: non_neg_integer()}}.
read() ->
    case persistent_term:get(?MODULE, none) of
        none -> #{};
        C -> #{Kind => {counters:get(C, I), counters:get(C, I + 1)}
               || Kind <- [registration, replication, control, routing, attributes],
                  I <- [index(Kind)]}
    end.

-doc "All there is to know for monitoring.".
-spec sample() -> sderl_observed:traffic().
sample() ->
    C = persistent_term:get(?MODULE),
    {Yes, Gone, No} = three(C, ?WRITES),
    {D, F, U} = three(routed(), 1),
    %% Nearly all rows are asked for: one look at the table costs less than two at a part of it.
    Rows = ets:tab2list(?TABLE),
    #{kinds => read(),
      counters => #{registrations => Yes, unregistrations => Gone, failed_registrations => No,
                    delivered => D, forwarded => F, undelivered => U},
      groups => [{G, three(T, 1)} || {{group, G}, T} <- Rows, G =/= undefined],
      edges => [{From, Next, N} || {{edge, From, Next}, N} <- Rows]}.

three(C, I) -> {counters:get(C, I), counters:get(C, I + 1), counters:get(C, I + 2)}.

index(registration) -> 1;
index(replication) -> 3;
index(control) -> 5;
index(routing) -> 7;
index(attributes) -> 9.

%% ---------------------------------------------------------------- where it happens

-doc """
Sends a message of the library if there is a link, and counts it; `Message` is the part that is
measured.
""".
-spec send(pid() | {atom(), node()}, term(), kind() | group, term()) -> ok.
send(To, Frame, Kind, Message) ->
    case erlang:send(To, Frame, [noconnect]) of
        ok -> sent(Kind, Message);
        noconnect -> ok
    end.

-doc "Counts a message to another node.".
-spec sent(kind() | group, term()) -> ok.
sent(group, Message) -> sent(of_group(Message), Message);
sent(Kind, Message) ->
    case persistent_term:get(?MODULE, none) of
        none -> ok;
        C ->
            I = index(Kind),
            ok = counters:add(C, I, 1),
            case counters:get(C, I) of
                N when N =< ?EXACT -> counters:add(C, I + 1, erlang:external_size(Message));
                N when N rem ?EXACT =:= 0 ->
                    counters:add(C, I + 1, ?EXACT * erlang:external_size(Message));
                _ -> ok
            end
    end.

%% Messages between members of a group (`sderl_core`).
of_group({batch, _, _, _, _}) -> replication;
of_group({ack, _, _, none}) -> replication;
of_group({ack, _, _, _}) -> registration;
of_group({req, _, _}) -> registration;
of_group({answers, _, _, _}) -> registration;
of_group(Message) when is_tuple(Message) ->
    case element(1, Message) of
        Tag
          when Tag =:= commit; Tag =:= gap; Tag =:= adopt; Tag =:= chunk; Tag =:= chunk_ok;
               Tag =:= bring; Tag =:= shard ->
            replication;
        _ -> control
    end;
of_group(_) -> control.

-doc """
Counters of routed messages since the start of the application: delivered, forwarded, failed.
""".
-spec routed() -> counters:counters_ref().
routed() -> ets:lookup_element(?TABLE, routed, 2).

-doc "The counts of a group of this node.".
-spec group(term()) -> tally().
group(Group) ->
    Key = {group, Group},
    _ = ets:member(?TABLE, Key) orelse ets:insert_new(?TABLE, {Key, counters:new(3, [])}),
    ets:lookup_element(?TABLE, Key, 2).

-doc "Forgets a group that this node left.".
-spec forget(term()) -> true.
forget(Group) -> ets:delete(?TABLE, {group, Group}).

-doc "So many registrations, removals and refusals were answered at once.".
-spec answered(tally(), non_neg_integer(), non_neg_integer(), non_neg_integer()) -> ok.
answered(Tally, Yes, Gone, No) ->
    C = persistent_term:get(?MODULE),
    add(Yes, 1, Tally, C),
    add(Gone, 2, Tally, C),
    add(No, 3, Tally, C).

add(0, _, _, _) -> ok;
add(N, I, Tally, C) ->
    ok = counters:add(Tally, I, N),
    counters:add(C, ?WRITES - 1 + I, N).

-doc "So many routed messages from processes of a node went on to the next node.".
-spec crossed(node(), node(), pos_integer()) -> ok.
crossed(From, Next, N) ->
    Key = {edge, From, Next},
    %% Nearly always it is there: one look at the table.
    try
        ets:update_counter(?TABLE, Key, N)
    of
        _ -> ok
    catch
        error:badarg ->
            Edge = case ets:info(?TABLE, size) < ?EDGES of
                true -> Key;
                false -> {edge, other, other}
            end,
            _ = ets:update_counter(?TABLE, Edge, N, {Edge, 0}),
            ok
    end.
