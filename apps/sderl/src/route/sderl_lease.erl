%% SPDX-License-Identifier: Apache-2.0
-module(sderl_lease).
-moduledoc """
Watching processes over gateways, at the end that watches: what to send to which node, and what
becomes of a watch when no answer comes.

All processes that a node watches on another one are in one lease. Every 2 s (`?RENEW_MS`) this end
sends `want`: the watches that the other end has not confirmed, those that are over, the deaths that
this end has heard of. The other end (`m:sderl_leased`) answers `have`. While something is not
confirmed, or an answer is missing, `want` is sent every 0.5 s (`?AGAIN_MS`), by all ways. Both ends
may get a message twice; a message that was overtaken is ignored by its number.

| what happened | a watch ends with |
|---|---|
| the process ended | its exit reason, `noproc` if it was gone before |
| the node runs again in another life | `noconnection` |
| for 2 s (`?GONE_MS`) all neighbours of the node said that they have no link to it | `noconnection` |
| for 10 s (`?LOST_MS`) no message came from the node, nor any about it | `lost_route` |

An end that was itself stopped, which its late tick shows, does not count that time as silence of
others.

Both ends may be restarted, and forget. All messages carry the run of the node, and a number that
grows whenever earlier messages no longer count. A late message with a lower number is ignored, and
if the two ends find that they have different watches, they begin again. The protocol assumes that
no message of a node is under way for longer than it takes to restart the node.

Pure: `step(Now, Event, State)` gives effects and a state. `sderl_monitor` runs it.
""".

-export([new/0, step/3, watched/1, is_have/1]).
-export_type([lease/0, event/0, effect/0, want/0, have/0, life/0]).

-define(TICK_MS, 500).
-define(AGAIN_MS, 500).
-define(RENEW_MS, 2000).
-define(GONE_MS, 2000).
-define(LOST_MS, 10_000).

-doc """
The life of a node, and that of the memory of a process on it: a greater one when the process has
forgotten all that the two nodes had sent each other.
""".
-type life() :: {Creation :: non_neg_integer(), Memory :: term()}.
-type want() :: {want, Number :: pos_integer(), Add :: [{reference(), pid()}],
                 Over :: [reference()], Seen :: [reference()]}.
-doc """
The number of the `want` that it answers, and how many processes it watches then; 0 if it only
reports a death.
""".
-type have() :: {have, Number :: non_neg_integer(), Alive :: non_neg_integer(),
                 Added :: [reference()], Ended :: [reference()],
                 Down :: [{reference(), Reason :: term()}]}.
-type event() ::
    {watch, reference(), pid()}
    | {unwatch, reference()}
    | {message, node(), life(), have()}
    | {failed, node(), sderl_route_send:failure()}
    | tick.
-doc """
`Try` counts messages without an answer: from the second on they go by all ways. `Memory` goes with
them as part of the life. `lost`: how many watches ended together.
""".
-type effect() ::
    {send, node(), Try :: non_neg_integer(), Memory :: pos_integer(), want()}
    | {down, reference(), Reason :: term()}
    | {lost, node(), noconnection | lost_route, pos_integer()}
    | {forget, node()}.

-record(peer, {
    %% Another one when a node was given up and is watched again: it may still have old watches.
    id :: pos_integer(),
    life :: life() | undefined,
    number = 0 :: non_neg_integer(),
    %% Watches: not confirmed, confirmed, and over without a confirmation.
    add = #{} :: #{reference() => pid()},
    watching = #{} :: #{reference() => pid()},
    over = #{} :: #{reference() => []},
    heard :: integer(),
    sent :: integer(),
    open = 0 :: non_neg_integer(),
    unlinked :: integer() | undefined
}).
-record(l, {
    peers = #{} :: #{node() => #peer{}},
    nodes = #{} :: #{reference() => node()},
    last :: integer() | undefined,
    next = 1 :: pos_integer()
}).
-opaque lease() :: #l{}.

-spec new() -> lease().
new() -> #l{}.

-doc "Whether a term is an answer of the other end.".
-spec is_have(term()) -> boolean().
is_have({have, Number, Alive, Added, Ended, Down})
  when is_integer(Number), is_integer(Alive), length(Added) >= 0, length(Ended) >= 0,
       length(Down) >= 0 ->
    lists:all(fun is_reference/1, Added)
        andalso lists:all(fun is_reference/1, Ended)
        andalso lists:all(fun({Ref, _Reason}) -> is_reference(Ref); (_) -> false end, Down);
is_have(_) -> false.

-doc "What is watched, and where.".
-spec watched(lease()) -> #{reference() => node()}.
watched(#l{nodes = Nodes}) -> Nodes.

-spec step(Now :: integer(), event(), lease()) -> {[effect()], lease()}.
step(Now, {watch, Ref, Pid}, #l{peers = Peers, nodes = Nodes, next = Next} = L) ->
    Node = node(Pid),
    Peer = case Peers of #{Node := P} -> P; #{} -> #peer{id = Next, heard = Now, sent = Now} end,
    %% This watch alone: the others have been sent, and will be again when they are due.
    {Send, P1} = want(Now, Node, #{Ref => Pid}, [], Peer#peer{add = (Peer#peer.add)#{Ref => Pid}}),
    {[Send], L#l{peers = Peers#{Node => P1}, nodes = Nodes#{Ref => Node},
                 next = max(Next, Peer#peer.id + 1)}};
step(_, {unwatch, Ref}, #l{peers = Peers, nodes = Nodes} = L) ->
    case Nodes of
        #{Ref := Node} ->
            #{Node := #peer{over = Over} = Peer} = Peers,
            {[], L#l{peers = Peers#{Node := (drop(Ref, Peer))#peer{over = Over#{Ref => []}}},
                     nodes = maps:remove(Ref, Nodes)}};
        #{} -> {[], L}
    end;
step(Now, {message, Node, {Creation, Memory} = Life, {have, _, _, _, _, _} = Have},
     #l{peers = Peers} = L) ->
    case Peers of
        %% Overtaken by a message of a later memory.
        #{Node := #peer{life = {Creation, Later}}} when Memory < Later -> {[], L};
        #{Node := Peer} ->
            have(Now, Node, Life, Have, Peer#peer{heard = Now, open = 0, unlinked = undefined}, L);
        %% Nothing is watched there any more.
        #{} -> {[], L}
    end;
step(Now, {failed, Node, unreachable}, #l{peers = Peers} = L) ->
    case Peers of
        #{Node := #peer{unlinked = undefined} = Peer} ->
            {[], L#l{peers = Peers#{Node := Peer#peer{unlinked = Now}}}};
        #{} -> {[], L}
    end;
step(_, {failed, _, _}, L) -> {[], L};
step(Now, tick, #l{last = Last, peers = Peers} = L) ->
    Late = case Last of undefined -> 0; _ -> Now - Last - ?TICK_MS end,
    Stopped = case Late > 2 * ?TICK_MS of true -> Late; false -> 0 end,
    maps:fold(fun(Node, Peer, {Effects, Acc}) ->
        {More, Acc1} = tick(Now, Node, later(Stopped, Peer), Acc),
        {More ++ Effects, Acc1}
    end, {[], L#l{last = Now}}, Peers).

later(0, Peer) -> Peer;
later(Ms, #peer{heard = Heard, unlinked = Unlinked} = Peer) ->
    Peer#peer{heard = Heard + Ms,
              unlinked = case Unlinked of undefined -> undefined; _ -> Unlinked + Ms end}.

drop(Ref, #peer{add = Add, watching = Watching} = Peer) ->
    Peer#peer{add = maps:remove(Ref, Add), watching = maps:remove(Ref, Watching)}.

%% ---------------------------------------------------------------- sending

want(Now, Node, Add, Seen, #peer{number = N, over = Over, open = Open} = Peer) ->
    {{send, Node, Open, Peer#peer.id, {want, N + 1, maps:to_list(Add), maps:keys(Over), Seen}},
     Peer#peer{number = N + 1, sent = Now, open = Open + 1}}.

tick(Now, Node, #peer{heard = Heard, unlinked = Unlinked} = Peer, L) ->
    Gone = Unlinked =/= undefined andalso Now - Unlinked >= ?GONE_MS,
    Lost = Now - Heard >= ?LOST_MS,
    if
        Gone; Lost, Unlinked =/= undefined -> lost(Node, noconnection, Peer, L);
        Lost -> lost(Node, lost_route, Peer, L);
        true -> renew(Now, Node, Peer, L)
    end.

renew(Now, Node,
      #peer{add = Add, watching = Watching, over = Over, sent = Sent, open = Open} = Peer,
      #l{peers = Peers} = L) ->
    Nothing = map_size(Add) + map_size(Watching) + map_size(Over) =:= 0,
    Due = case Open > 0 orelse map_size(Add) + map_size(Over) > 0 of
        true -> ?AGAIN_MS;
        false -> ?RENEW_MS
    end,
    if
        Nothing -> {[{forget, Node}], L#l{peers = maps:remove(Node, Peers)}};
        Now - Sent >= Due ->
            {Send, P} = want(Now, Node, Add, [], Peer),
            {[Send], L#l{peers = Peers#{Node := P}}};
        true -> {[], L#l{peers = Peers#{Node := Peer}}}
    end.

lost(Node, Reason, #peer{add = Add, watching = Watching}, #l{peers = Peers, nodes = Nodes} = L) ->
    Refs = maps:keys(Add) ++ maps:keys(Watching),
    {[{lost, Node, Reason, length(Refs)} || Refs =/= []] ++ [{down, Ref, Reason} || Ref <- Refs] ++
     [{forget, Node}],
     L#l{peers = maps:remove(Node, Peers), nodes = maps:without(Refs, Nodes)}}.

%% ---------------------------------------------------------------- answers

have(Now, Node, Life, {have, Number, Alive, Added, Ended, Down}, Peer0,
     #l{peers = Peers, nodes = Nodes0, next = Next} = L) ->
    {Died, #peer{add = Add, watching = Watching, over = Over} = Peer1} = life(Life, Peer0),
    New = maps:with(Added, Add),
    Peer2 = Peer1#peer{add = maps:without(Added, Add), watching = maps:merge(Watching, New),
                       over = maps:without(Ended, Over)},
    Downs = [{down, Ref, noconnection} || Ref <- Died]
        ++ [{down, Ref, Reason}
            || {Ref, Reason} <- Down, is_map_key(Ref, Nodes0), not lists:member(Ref, Died)],
    Over1 = [Ref || {down, Ref, _} <- Downs],
    Peer3 = same(Number, Alive, Next, lists:foldl(fun drop/2, Peer2, Over1)),
    {Sends, Peer} = case Down of
        [] -> {[], Peer3};
        _ ->
            {S, P} = want(Now, Node, #{}, [Ref || {Ref, _} <- Down], Peer3),
            {[S], P#peer{open = 0}}
    end,
    {Downs ++ Sends,
     L#l{peers = Peers#{Node := Peer}, nodes = maps:without(Over1, Nodes0), next = Next + 1}}.

%% When all is confirmed the two ends should agree. If they do not, because of a message of a former
%% life of either, they begin again.
same(Number, Alive, Next,
     #peer{number = Number, add = Add, over = Over, watching = Watching} = Peer)
  when Alive =/= map_size(Watching), map_size(Add) =:= 0, map_size(Over) =:= 0 ->
    Peer#peer{id = Next, life = undefined, add = Watching, watching = #{}};
same(_, _, _, Peer) -> Peer.

%% In another life of the node nothing is left of what was watched; another memory has to be told.
%% An ended watch stays until it is confirmed: the new process may have heard of it already.
life(Life, #peer{life = Life} = Peer) -> {[], Peer};
life(Life, #peer{life = undefined} = Peer) -> {[], Peer#peer{life = Life}};
life({Creation, _} = Life, #peer{life = {Creation, _}, add = Add, watching = Watching} = Peer) ->
    {[], Peer#peer{life = Life, add = maps:merge(Add, Watching), watching = #{}}};
life(Life, #peer{watching = Watching} = Peer) ->
    {maps:keys(Watching), Peer#peer{life = Life, watching = #{}}}.
