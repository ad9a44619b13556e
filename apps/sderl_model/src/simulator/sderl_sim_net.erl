%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_net).
-moduledoc """
The links of the simulated world, which behave as Erlang's do.

A link keeps its order, independently of other links. Its two ends learn of it, and of its end, at
different times: nodedown comes after everything that the old link delivers and before nodeup of the
new one; the rest is lost. Nodes that share a group connect again and again, unless the pair is cut.
""".
-include("sderl_sim.hrl").

-export([pair/2, connect/3, relink/1, send/5, deliver/4, cut/4, unlink/2]).
-export([silence/3, speak/3, speak_all/1]).
-export([linked/3, linked_since/3, stands/3, connection/3, unlinked_since/3, reach/3]).

-import(sderl_sim_world, [rnd/3, chance/2, at/3, in/3, node/2, up/2, tell/2]).

-define(SLOWER, 10).

-doc "The key of a pair of nodes.".
-spec pair(node(), node()) -> {node(), node()}.
pair(A, B) when A < B -> {A, B};
pair(A, B) -> {B, A}.

-doc "Pairs without a link try again, as the nodes' own processes do.".
-spec relink(#w{}) -> #w{}.
relink(#w{apart = Apart} = W) when map_size(Apart) =:= 0 -> W;
relink(#w{apart = Apart} = W0) ->
    lists:foldl(fun({A, B} = P, #w{now = Now, apart = Ap, cuts = Cuts} = W) ->
        case is_map_key(P, Cuts) orelse Now < map_get(P, Ap)
             orelse not (ready(A, W) andalso ready(B, W)) of
            true -> W;
            false ->
                {D, W1} = rnd(1, 600, W),
                in(D, {connect, A, B}, W1#w{apart = Ap#{P := Now + D + 1}})
        end
    end, W0, lists:sort(maps:keys(Apart))).

ready(N, W) ->
    #n{up = Up, paused = Paused} = node(N, W),
    Up andalso not Paused.

-spec connect(node(), node(), #w{}) -> #w{}.
connect(A, B, #w{apart = Apart, cuts = Cuts, ids = Id} = W0) ->
    P = pair(A, B),
    case ready(A, W0) andalso ready(B, W0) andalso not is_map_key(P, Cuts)
         andalso known_link(P, W0) =:= none of
        false -> W0;
        true ->
            tell({linked, A, B}, W0),
            W1 = keep_link(P, #l{id = Id, a = A, b = B},
                           W0#w{apart = maps:remove(P, Apart), ids = Id + 1}),
            transmit(B, A, Id, nodeup, transmit(A, B, Id, nodeup, W1))
    end.

%% By the lower end and then by the other: with pairs as keys the lookups, one for each message,
%% take longer.
known_link({A, B}, #w{links = Links}) ->
    case Links of
        #{A := #{B := Link}} -> Link;
        _ -> none
    end.

keep_link({A, B}, Link, #w{links = Links} = W) ->
    Of = maps:get(A, Links, #{}),
    W#w{links = Links#{A => Of#{B => Link}}}.

%% Puts an item on a link, after everything that was sent before in the same direction.
transmit(From, To, Id, Item, #w{last = Last, delays = Delays} = W0) ->
    {D, W2} = case Delays of
        #{{From, To} := {Min, Max}} -> rnd(Min, Max, W0);
        _ ->
            {Min, Max} = maps:get(delay, W0#w.opts, {1, 20}),
            {D0, W1} = rnd(Min, Max, W0),
            case chance(maps:get(late, W0#w.opts, 2), W1) of
                {true, Wa} -> {D0 * ?SLOWER, Wa};
                {false, Wa} -> {D0, Wa}
            end
    end,
    Sent = maps:get(From, Last, #{}),
    T = max(W2#w.now + D, maps:get(To, Sent, 0)),
    at(T, {deliver, {pair(From, To), Id}, To, {From, Item}},
       W2#w{last = Last#{From => Sent#{To => T}}}).

-doc "Sends, if there is a link that the sender knows of; else the message is lost.".
-spec send(node(), node(), term(), term(), #w{}) -> #w{}.
send(From, To, Addr, Msg, W) ->
    case known_link(pair(From, To), W) of
        #l{id = Id, up = #{From := up}} ->
            #n{version = V} = node(From, W),
            on_its_way(From, To, Id, {V, Addr, stamped(Msg, W)}, counted(Msg, W));
        _ -> W
    end.

%% A heartbeat that the node may send for its processes, with the time at which they gave it.
stamped(Msg, #w{now = Now} = W) when element(1, Msg) =:= hb; element(1, Msg) =:= hb_ack ->
    case sderl_sim_world:option(beats, false, W) of
        true -> {beat, Now, Msg};
        false -> Msg
    end;
stamped(Msg, _) -> Msg.

on_its_way(From, To, Id, Item, #w{silent = Silent} = W) ->
    case Silent of
        #{{From, To} := Held} -> W#w{silent = Silent#{{From, To} := [{Id, Item} | Held]}};
        _ -> transmit(From, To, Id, Item, W)
    end.

-doc "From now on what one node sends to another is held back, and no link is lost.".
-spec silence(node(), node(), #w{}) -> #w{}.
silence(From, To, #w{silent = Silent} = W) when is_map_key({From, To}, Silent); From =:= To -> W;
silence(From, To, #w{silent = Silent} = W) -> W#w{silent = Silent#{{From, To} => []}}.

-doc """
Releases the held messages in their order; those of a link that is lost by then do not arrive.
""".
-spec speak(node(), node(), #w{}) -> #w{}.
speak(From, To, #w{silent = Silent} = W0) ->
    case maps:take({From, To}, Silent) of
        {Held, Left} ->
            lists:foldl(fun({Id, Item}, W) -> transmit(From, To, Id, Item, W) end,
                        W0#w{silent = Left}, lists:reverse(Held));
        error -> W0
    end.

-doc "Releases the held messages of all pairs.".
-spec speak_all(#w{}) -> #w{}.
speak_all(#w{silent = Silent} = W0) ->
    lists:foldl(fun({From, To}, W) -> speak(From, To, W) end, W0, lists:sort(maps:keys(Silent))).

counted(_, #w{sent = none} = W) -> W;
counted(Msg, #w{sent = Sent} = W) ->
    Kind = case is_tuple(Msg) of true -> element(1, Msg); false -> Msg end,
    {K, B} = maps:get(Kind, Sent, {0, 0}),
    %% The message has the form in which the process of a group sends it: with the version, the
    %% group's uid and its own node.
    Size = erlang:external_size({sderl, 1, <<0:128>>, node(), Msg}),
    W#w{sent = Sent#{Kind => {K + 1, B + Size}}}.

-doc "An item of a link arrives. Gives what its node gets, or `none`.".
-spec deliver({{node(), node()}, pos_integer()}, node(), {node(), term()}, #w{}) ->
    {none | term(), #w{}}.
deliver({P, Id}, To, {From, Item}, W) ->
    case known_link(P, W) of
        #l{id = Id, cutoff = Cut} = L when Item =:= nodedown; Cut =:= none; W#w.now =< Cut ->
            arrived(Item, From, To, P, L, W);
        _ -> {none, W}
    end.

arrived(nodeup, From, To, P, #l{up = Up} = L, #w{now = Now, unlinked = Unlinked} = W) ->
    Known = W#w{unlinked = maps:remove({To, From}, Unlinked)},
    {{nodeup, From}, keep_link(P, L#l{up = Up#{To => up}, since = Now}, Known)};
arrived(nodedown, From, To, P, #l{up = Up} = L, #w{now = Now, unlinked = Unlinked} = W) ->
    Item = case Up of #{To := up} -> {nodedown, From}; _ -> none end,
    {Item, noticed(To, P, L#l{up = Up#{To => down}}, W#w{unlinked = Unlinked#{{To, From} => Now}})};
arrived({V, Addr, Msg}, From, To, _, _, W) ->
    %% A node understands the version before its own, and a newer node uses that one to it.
    case node(To, W) of
        #n{version = Mine} when abs(V - Mine) > 1 -> {none, W};
        _ -> {{msg, Addr, From, Msg}, W}
    end.

%% An end was told; the link is forgotten when both were told, or have died.
noticed(N, P, #l{a = A, b = B, down = Down0} = L, W) ->
    Down = [N | Down0],
    case lists:all(fun(X) -> lists:member(X, Down) orelse not up(X, W) end, [A, B]) of
        true -> forget(P, W);
        false -> keep_link(P, L#l{down = Down}, W)
    end.

forget({A, B} = P, #w{links = Links, apart = Apart, now = Now} = W) ->
    #{A := Of} = Links,
    W#w{links = Links#{A := maps:remove(B, Of)}, apart = Apart#{P => Now}}.

-doc """
The link breaks: what is under way may still arrive for a moment, then the ends notice at different
times. `slow`: they notice it only by silence.
""".
-spec cut(node(), node(), fast | slow, #w{}) -> #w{}.
cut(A, B, How, W0) ->
    P = pair(A, B),
    case known_link(P, W0) of
        #l{cutoff = none, id = Id} = L ->
            tell({cut, A, B, How}, W0),
            {C, W1} = rnd(0, 20, W0),
            Cutoff = W1#w.now + C,
            W2 = sderl_sim_world:broke(keep_link(P, L#l{cutoff = Cutoff}, W1)),
            lists:foldl(fun({X, Y}, W) ->
                {D, Wa} = case How of fast -> rnd(0, 100, W); slow -> rnd(0, 9000, W) end,
                at(Cutoff + D, {deliver, {P, Id}, Y, {X, nodedown}}, Wa)
            end, W2, [{X, Y} || {X, Y} <- [{A, B}, {B, A}], up(Y, W2)]);
        _ -> W0
    end.

-doc "Breaks all links of a node that has died; the node itself notices nothing.".
-spec unlink(node(), #w{}) -> #w{}.
unlink(N, W0) ->
    #n{groups = Gs} = node(N, W0),
    Others = lists:usort(lists:append([sderl_sim_world:nodes_of(G, W0) || G <- Gs])),
    lists:foldl(fun(P, W) ->
        case known_link(P, W) of
            #l{up = Up} = L -> noticed(N, P, L#l{up = Up#{N => down}}, W);
            none -> W
        end
    end, W0, [pair(N, M) || M <- Others, M =/= N]).

-doc "The nodes of a group to which a node has a link that it knows of.".
-spec linked(node(), term(), #w{}) -> [node()].
linked(N, G, W) ->
    [M
     || M <- sderl_sim_world:nodes_of(G, W), M =/= N,
        #l{up = #{N := up}} <- [known_link(pair(N, M), W)]].

-doc "Whether there is a link that both ends know of, and that has not broken.".
-spec stands(node(), node(), #w{}) -> boolean().
stands(A, B, W) ->
    case known_link(pair(A, B), W) of
        #l{cutoff = none, up = #{A := up, B := up}} -> true;
        _ -> false
    end.

-doc "Since when both ends have a link that works without delay; `never` if they do not.".
-spec linked_since(node(), node(), #w{}) -> integer() | never.
linked_since(A, B, #w{delays = Delays, silent = Silent} = W) ->
    case known_link(pair(A, B), W) of
        #l{cutoff = none, since = T, up = #{A := up, B := up}}
          when not is_map_key({A, B}, Delays), not is_map_key({B, A}, Delays),
               not is_map_key({A, B}, Silent), not is_map_key({B, A}, Silent) -> T;
        _ -> never
    end.

-doc "The link to another that a node knows of.".
-spec connection(node(), node(), #w{}) -> pos_integer() | none.
connection(N, M, W) ->
    case known_link(pair(N, M), W) of
        #l{id = Id, up = #{N := up}} -> Id;
        _ -> none
    end.

-doc "Since when a node knows of no link to another; `linked` if it knows of one.".
-spec unlinked_since(node(), node(), #w{}) -> integer() | linked.
unlinked_since(N, M, #w{unlinked = Unlinked} = W) ->
    case known_link(pair(N, M), W) of
        #l{up = #{N := up}} -> linked;
        _ -> maps:get({N, M}, Unlinked, 0)
    end.

-doc "The nodes of a group that a running node reaches over links, also through others.".
-spec reach(node(), term(), #w{}) -> [node()].
reach(N, G, W) -> reach([N], lists:delete(N, sderl_sim_world:nodes_of(G, W)), [N], W).

reach([], _, Found, _) -> Found;
reach([N | Ns], Others, Found, W) ->
    {Here, Not} = lists:partition(fun(M) -> stands(N, M, W) end, Others),
    reach(Here ++ Ns, Not, Here ++ Found, W).
