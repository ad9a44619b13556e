%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core).
-moduledoc """
The group protocol as a pure state machine: one value per member of a group.

`step/3` takes everything that was in the mailbox and gives back effects to run in order;
`propose/4` is called after those effects have run and makes the next batch, if this member is
the coordinator and nothing is out. Neither touches a process, a clock or a table: names are
read through a store that the caller gives.

## What is promised

Within a component (a coordinator and the members that joined its epoch) writes are ordered in
batches, one out at a time; a batch is answered when every live member has applied it. So a
`yes` is on every live member, `no` means not applied, updates are seen in one order
everywhere, and members of one component differ by at most one batch. A takeover therefore only
has to bring everyone to the longest log, which is that last batch.

## Components merge, and nothing else

A booting node, a restarted node, a node added at run time, a member that was set aside and the
other side of a healed split are one case: a member of a component with a lower epoch, perhaps of
itself alone, that joins the coordinator with the higher one (`join`). It brings its own shard, the
rows whose home it is with its last answers, and nothing of anybody else's (`bring`, `shard`); then
a snapshot in acknowledged chunks brings it up to date while writes go on (`adopt`). A member whose
shard the higher component still holds (it was set aside, its link never went) brings nothing where
that component's log covers its own: the epochs that ended, with the last number of each, are part
of the log.

## Messages (all carry the group's uid and the protocol version, added by the shell)

| message | from, to | meaning |
|---|---|---|
| `hello`, `mem` | any, any | here I am: address, incarnation, membership, epoch; a membership seen |
| `hb`, `hb_ack` | coordinator, linked members | alive; last committed number; also the probe that finds other components |
| `low` | any, coordinator | your epoch is lower than one I promised |
| `req`, `answers` | member, coordinator | a list of operations; answers of a list applied before |
| `batch`, `ack`, `commit` | coordinator, member | the ordered operations; have them; all have them |
| `refused`, `not_lead`, `dropped` | any | a higher epoch rules here; I am no coordinator; you are not in my component any more |
| `collect`, `joined`, `promised`, `apart`, `nack`, `lead` | candidate, member | takeover; `promised` in majority groups |
| `lost`, `handover` | member, coordinator | a partial cut: give the role to a member that sees all |
| `join`, `bring`, `shard` | member, higher coordinator | merge: take me in; give me this piece of your shard; here it is |
| `found`, `follow` | member, its coordinator and back | a higher component was seen; go there, as we do |
| `adopt`, `chunk`, `chunk_ok`, `synced` | coordinator, learner | snapshot |
| `query`, `state` | member, members | exchange of epochs after a pause |
| `gone` | any | you were removed, or the group was deleted |
| `bye`, `away` | any | my process ends: with its names, or leaving them (it left an island) |

## Races answered here

The numbers are the rules of the protocol: see INTERNALS.md for the list.
""".

-include("sderl_core.hrl").

-export([default/1, init/1, handle/3, step/3, may_propose/1, propose/4]).
-export([highest/1, batch_of/1, seq/2, durable/1, moved/2, info/1, inspect/1, settled/1, role/1,
         members/1, live/1, lead/1, membership/1, peers/1, addr/2]).
-export_type([state/0, args/0, event/0, effect/0, row/0, op/0, info/0]).

-import(sderl_core_state, [fx/2, save/1, send/3, peer/2, is_member/2, is_known/2, union/3,
                           hello_msg/1, ask/2]).

-opaque state() :: #s{}.
-doc "A registered name as the protocol sees it. The version is the batch and the place in it.".
-type row() :: sderl_row:t().
-doc "An operation of a member's client; `sderl_op.hrl` describes them.".
-type op() :: operation().
-type event() ::
    {op | again, From :: term(), op()}
    | {msg, node(), term()}
    | {beat, node(), Heartbeat :: term(), At :: integer()}
    | {nodeup, node()} | {nodedown, node()}
    | tick | wake | depart
    | {chunk_read, node(), pos_integer(), [row()], Last :: boolean()}
    | {homes_read, node(), pos_integer(), [row()], Last :: boolean()}
    | {looked_up, [row()]}
    | {resolved, Name :: term(), row(), row(), Keep :: pid() | none, Effects :: [term()]}
    | {await_live, From :: term(), [node()], TimeoutMs :: non_neg_integer()}
    | {recover, From :: term(), Survivors :: [node()]}.
-type effect() ::
    {send, Addr :: term(), Msg :: term()}
    | {hello, node(), Msg :: term()}
    | {durable, term()}
    | {members, [node()]}
    | {outbox, Number :: term(), [{term(), term()}]}
    | {replies, [{From :: term(), Value :: term()}]}
    | {apply, Epoch :: term(), Num :: non_neg_integer(), Items :: [term()],
       Index :: [{pid(), [term()] | none}] | none}
    | {index, build | drop}
    | {sessions, #{node() => term()}}
    | {sync_begin, Epoch :: term(), Num :: non_neg_integer()} | {put_rows, [row()]} | sync_end
    | {read_chunk, node(), pos_integer()} | {read_homes, node(), pos_integer(), [node()]}
    | {read_stop, node()}
    | {look_up, Names :: [term()]}
    | {resolve, Name :: term(), row(), row()}
    | {clash_effects, [term()]}
    | {event, atom(), map()}
    | {left, removed | deleted, sderl_membership:t()}
    | {majority, lost | regained}
    | {wake, pos_integer()}.

%% Reads of the coordinator's store while it makes a batch.
-doc "The row of a name.".
-callback lookup(Store :: term(), Name :: term()) -> row() | none.
-doc "The name of a process.".
-callback name_of(Store :: term(), pid()) -> {ok, Name :: term()} | none.
-doc """
The names whose home is not the node of their process: that node was no member, or is one that is
not back yet. The coordinator watches these processes.
""".
-callback foreign(Store :: term()) -> [{Name :: term(), pid()}].

-doc "The tick, and the time before a silent member is set aside, where `init/1` is given none.".
-spec default(tick_ms | aside_ms) -> pos_integer().
default(tick_ms) -> 1000;
default(aside_ms) -> 4000.

-doc """
The state for people: `s_group:info/0` shows it. `number` is that of the last batch, `waiting`
counts operations of clients, `talking` are the members whose process is known.
""".
-type info() :: #{
    role := orphan | candidate | follower | coord | joining, coordinator := node() | undefined,
    epoch := epoch(), lineage := epoch(), number := non_neg_integer(),
    members := [node()], removed := [node()], forgotten := [node()],
    live := [node()], aside := [node()], linked := [node()], talking := [node()],
    waiting := non_neg_integer(), acknowledgements_missing := [node()],
    consistency := available | majority, answer := committed | applied, majority := boolean(),
    exchanging_epochs_with := [node()], learning := [node()], syncing := boolean(),
    unknown_messages := non_neg_integer(),
    %% Added by the process of the group:
    group => term(), uid => binary(), names => non_neg_integer()
}.

-doc "The state of a member that begins with these arguments (`sderl_core.hrl`).".
-spec init(args()) -> state().
init(#{group := G, uid := Uid, self := Self, addr := Addr, inc := Inc, now := Now, clock := Clock} =
         A) ->
    S0 = #s{group = G, uid = Uid, self = Self, addr = Addr, inc = Inc, now = Now,
            election = #election{orphan_since = Now}, clock = Clock - Now,
            tick_ms = maps:get(tick_ms, A, default(tick_ms)),
            aside_ms = maps:get(aside_ms, A, default(aside_ms)),
            forget_ms = maps:get(forget_ms, A, infinity), highest = maps:get(ceil, A, 0),
            linked = #{N => [] || N <- maps:get(linked, A, [])}, d = fresh(A, Self),
            mode = maps:get(mode, A, available), answer = maps:get(answer, A, committed),
            quorum = sderl_core_quorum:new(Now, maps:get(ceil, A, 0) > 0)},
    case A of
        #{durable := #d{} = D} ->
            %% Same life of the node, new process (rules 8, 30): the log row was written before
            %% the rows, so the shell has applied it again and it is what we have.
            {Num, Items} = maps:get(log, A, {0, []}),
            S1 = S0#s{d = D,
                      num = Num,
                      last = Items,
                      sessions = maps:get(sessions, A, #{})},
            S2 = sderl_core_clients:restore(maps:get(outbox, A, undefined), S1),
            %% If the log is of an earlier epoch, or the membership came by none of its batches, the
            %% durable state is newer than the log.
            Newer = D#d.recovered orelse maps:get(log_epoch, A, D#d.lineage) =/= D#d.lineage,
            Known = [Item || Item <- Items, not Newer orelse is_record(Item, seg)],
            sderl_core_write:restore(Known, sderl_core_quorum:restore(S2));
        _ ->
            S0#s{booting = true}
    end.

fresh(#{durable := D}, _) -> D;
fresh(#{mem := Mem} = A, Self) ->
    %% A node that creates the group outranks nodes that boot or join; among these the one that has
    %% waited longest does.
    Clock = maps:get(clock, A),
    C = case maps:get(found, A, false) of true -> Clock; false -> -Clock end,
    D = #d{mem = Mem, sid = Clock, epoch = {C, Self}, lineage = {C, Self}, view = #{Self => live}},
    case A of
        #{mode := majority} ->
            %% Promises of a former life bind this one.
            Founds = maps:get(found, A, false),
            D#d{epoch = max({C, Self}, {maps:get(ceil, A, 0), Self}), founding = Founds,
                votes = Founds orelse maps:get(fresh, A, false)};
        _ -> D
    end.

-doc """
The first half of a step: runs events and gives their effects, but sends neither the
acknowledgement nor the clients' operations that a step ends with. A shell that let answered
clients run in between sends their next operations along.
""".
-spec handle(integer(), [event() | start], state()) -> {[effect()], state()}.
handle(Now, Events, S) ->
    done(handle_all(Events, sderl_core_peers:look(at(Now, S)))).

-doc "Runs all events at monotonic time `Now` (ms) and gives the effects in order.".
-spec step(integer(), [event() | start], state()) -> {[effect()], state()}.
step(Now, Events, S0) ->
    S1 = handle_all(Events, sderl_core_peers:look(at(Now, S0))),
    done(sderl_core_write:flush(S1)).

%% The state is large, and most of what is done to it changes nothing.
at(Now, #s{now = Now} = S) -> S;
at(Now, S) -> S#s{now = Now}.

%% A promise is kept before anyone is told (save/1 in send/3) and before clients are answered;
%% nothing else needs an order.
done(S0) ->
    case save(S0) of
        #s{fx = []} = S -> {[], S};
        #s{fx = Fx} = S -> {lists:reverse(Fx), S#s{fx = []}}
    end.

-doc "Whether `propose/4` may make a batch now, or say anything else.".
-spec may_propose(state()) -> boolean().
may_propose(S) -> sderl_core_write:may_propose(S).

-doc """
The next batch, when this member coordinates, nothing is out and something waits. `Mod` is the
store, a module with this behaviour, and `Store` its state.
""".
-spec propose(integer(), module(), term(), state()) -> {[effect()], state()}.
propose(Now, Mod, Store, S0) ->
    S = at(Now, S0),
    case may_propose(S) of
        true -> done(sderl_core_write:propose(Mod, Store, sderl_core_admit:take_offers(S)));
        false -> done(S)
    end.

%% ---------------------------------------------------------------- reading the state

-doc "The part that the shell keeps in a table.".
-spec durable(state()) -> term().
durable(#s{d = D}) -> D.

-doc """
What a process left, for its successor in another island: the members are those of the new island.
Members of the former one alone will say hello by themselves, and a node that the former one had
removed may be a member of the new one.
""".
-spec moved(Durable :: term(), sderl_membership:t()) -> term().
moved(#d{view = V} = D, Mem) ->
    D#d{mem = Mem, view = maps:with(sderl_membership:members(Mem), V), recovered = true}.

-doc "The counter of the highest epoch that this member has promised or heard of.".
-spec highest(state()) -> integer().
highest(#s{highest = Highest, d = #d{epoch = {Counter, _}}}) -> max(Counter, Highest).

-doc """
Whether this member is in a component and counts there, and so is every member it can talk to.
""".
-spec settled(state()) -> boolean().
settled(#s{role = Role, d = #d{view = V, syncing = false}, self = Self, peers = P} = S)
  when Role =:= coord; Role =:= follower ->
    maps:get(Self, V, none) =:= live
        andalso lists:all(fun(N) -> is_map_key(N, V) orelse not is_member(N, S) end, maps:keys(P));
settled(_) -> false.

-doc "The role of this member.".
-spec role(state()) -> orphan | candidate | follower | coord | joining.
role(#s{role = R}) -> R.
-doc "The members of the group, sorted.".
-spec members(state()) -> [node()].
members(#s{d = #d{mem = M}}) -> sderl_membership:members(M).
-doc "The versioned membership.".
-spec membership(state()) -> sderl_membership:t().
membership(#s{d = #d{mem = M}}) -> M.
-doc "The members that count for answers in this component, sorted.".
-spec live(state()) -> [node()].
live(#s{d = #d{view = V}}) -> lists:sort([N || N := live <- V]).
-doc "The coordinator followed, if any.".
-spec lead(state()) -> node() | undefined.
lead(#s{lead = L}) -> L.
-doc "The members whose process is known.".
-spec peers(state()) -> [node()].
peers(#s{peers = P}) -> maps:keys(P).
-doc "Where to send to a member.".
-spec addr(node(), state()) -> term() | undefined.
addr(N, #s{peers = P}) ->
    case P of
        #{N := #peer{addr = A}} -> A;
        _ -> undefined
    end.

-spec info(state()) -> info().
info(#s{d = D, office = #office{flight = Flight, snapshots = Snapshots}} = S) ->
    #{role => S#s.role, coordinator => S#s.lead, epoch => D#d.epoch, lineage => D#d.lineage,
      number => S#s.num, members => members(S), removed => sderl_membership:removed(D#d.mem),
      forgotten => sderl_membership:forgotten(D#d.mem),
      live => live(S), aside => lists:sort([N || N := {_, _} <- D#d.view]),
      linked => lists:sort(maps:keys(S#s.linked)), talking => lists:sort(maps:keys(S#s.peers)),
      waiting => sderl_core_clients:waiting(S),
      acknowledgements_missing => unacknowledged(Flight),
      consistency => S#s.mode, answer => S#s.answer,
      majority => S#s.mode =:= available orelse sderl_core_quorum:status(S) =:= true,
      exchanging_epochs_with => lists:usort(S#s.unconfirmed), learning => maps:keys(Snapshots),
      syncing => D#d.syncing, unknown_messages => S#s.unknown}.

-doc """
What the promises speak of, for a checker that looks at every step. `flight` is the batch that is
out and the members whose acknowledgements are missing, `before` the membership before the last
batch where that changes it and may not be committed, `ordering` whether a change of the component
waits to be ordered, `pending` whether operations of clients are not answered yet.
""".
-spec inspect(state()) -> map().
inspect(#s{d = D, office = #office{flight = F, changes = Changes}} = S) ->
    #{role => S#s.role, lead => S#s.lead, epoch => D#d.epoch, lineage => D#d.lineage,
      num => S#s.num, last => S#s.last, mode => S#s.mode, majority => sderl_core_quorum:status(S),
      remembers => D#d.votes, history => D#d.history, view => D#d.view, membership => D#d.mem,
      before => D#d.before, clashes => D#d.clashes, syncing => D#d.syncing, session => D#d.sid,
      leaving => S#s.leaving, ordering => Changes =/= [],
      pending => sderl_core_clients:is_pending(S),
      flight => case F of undefined -> none; #flight{num = N} -> {N, unacknowledged(F)} end}.

unacknowledged(undefined) -> [];
unacknowledged(#flight{wait = Wait}) -> lists:sort(Wait).

-doc "A version's second element: the number of the batch, and the place of the operation in it.".
-spec seq(non_neg_integer(), non_neg_integer()) -> integer().
seq(Num, Pos) -> sderl_core_state:seq(Num, Pos).

-doc "The number of the batch that a version's second element speaks of.".
-spec batch_of(non_neg_integer()) -> non_neg_integer().
batch_of(Seq) -> sderl_core_state:batch_of(Seq).

%% ---------------------------------------------------------------- dispatch

handle_all([{op, _, _} | _] = Events, S0) ->
    {Others, S} = sderl_core_clients:ops(Events, S0),
    handle_all(Others, S);
handle_all([Event | Events], S) -> handle_all(Events, handle(Event, S));
handle_all([], S) -> S.

handle({again, From, Op}, S) -> sderl_core_clients:again(From, Op, S);
handle({msg, N, Msg}, #s{peers = P, now = Now} = S) ->
    case P of
        #{N := Peer} -> message(Msg, N, S#s{peers = P#{N := Peer#peer{heard = Now}}});
        _ -> message(Msg, N, stranger(N, Msg, S))
    end;
handle({beat, N, Msg, At}, #s{peers = P} = S) ->
    case P of
        #{N := Peer} ->
            Heard = S#s{peers = P#{N := Peer#peer{heard = max(At, Peer#peer.heard)}}},
            sderl_core_peers:heard_at(At, N, S, message(Msg, N, Heard));
        _ -> S
    end;
handle({nodeup, N}, S) -> nodeup(N, S);
handle({nodedown, N}, S) -> nodedown(N, S);
handle(start, S) -> start(S);
handle(tick, S) -> sderl_core_peers:tick(S);
handle(wake, S) -> sderl_core_elect:wake(S);
handle(depart, S) -> sderl_core_leave:depart(S);
handle({chunk_read, N, K, Rows, Last}, S) -> sderl_core_snapshot:chunk_read(N, K, Rows, Last, S);
handle({looked_up, Rows}, S) -> sderl_core_answer:looked_up(Rows, S);
handle({homes_read, N, K, Rows, Last}, S) -> sderl_core_join:shard_read(N, K, Rows, Last, S);
handle({resolved, Name, A, B, Keep, Fx}, S) -> sderl_core_clash:resolved(Name, A, B, Keep, Fx, S);
handle({recover, From, Survivors}, S) -> sderl_core_majority:recover(From, Survivors, S);
handle({await_live, From, Nodes, Ms}, #s{waiters = W, now = Now} = S) ->
    sderl_core_view:waiters(S#s{waiters = [{From, Nodes, Now + Ms} | W]}).

%% A node that does not know of its removal learns it from our membership.
stranger(N, Msg, S)
  when element(1, Msg) =:= hb; element(1, Msg) =:= hb_ack; element(1, Msg) =:= collect ->
    case is_member(N, S) of
        true -> S;
        false -> ask(N, S)
    end;
stranger(_, _, S) -> S.

start(#s{leaving = undefined, self = Self} = S) ->
    %% Our predecessor heard that it was removed, and died before it left.
    Out = not is_member(Self, S),
    Leaving = case Out of true -> S#s{leaving = removed}; false -> S end,
    case Out andalso sderl_core_quorum:may_go(Leaving) of
        true -> sderl_core_answer:left_out(removed, said_hello(S));
        false -> begun(said_hello(Leaving))
    end;
start(#s{leaving = Why, mode = Mode} = S) ->
    case sderl_core_quorum:may_go(S) of
        %% A deletion holds for every member that hears of it.
        true when Why =:= deleted, Mode =:= available -> sderl_core_answer:leave(Why, S);
        true -> sderl_core_answer:left_out(Why, S);
        false -> begun(said_hello(S))
    end.

said_hello(#s{linked = L} = S0) -> maps:fold(fun(N, _, S) -> hello(N, S) end, S0, L).

begun(#s{} = S1) ->
    case S1#s.booting of
        true when S1#s.mode =:= available -> sderl_core_lead:alone(S1);
        _ -> sderl_core_elect:orphan(S1)
    end.

%% Removed members are asked, too. One may have booted with a launch configuration that does not
%% name us: it would not say hello here, and we may be the only ones left to tell it.
hello(N, #s{d = #d{mem = Mem}} = S) ->
    Told = is_known(N, S) orelse lists:member(N, sderl_membership:removed(Mem)),
    case Told andalso N =/= S#s.self of
        true -> ask(N, S);
        false -> S
    end.

nodeup(N, #s{linked = L} = S) ->
    S1 = S#s{linked = L#{N => []}, down = maps:remove(N, S#s.down)},
    hello(N, S1).

%% A member's own nodedown removes no name: only the coordinator orders that (rule 14).
nodedown(N, #s{linked = L, peers = P, d = D} = S0) ->
    Broken = case is_map_key(N, D#d.view) of
        true -> (S0#s.broken)#{N => []};
        false -> S0#s.broken
    end,
    S1 = S0#s{linked = maps:remove(N, L), peers = maps:remove(N, P), broken = Broken},
    sderl_core_peers:lost(N, S1).

%% A process that came back is a new peer; a new life of its node is a node that went down first
%% (the nodedown of the old link came before; a restart of the application gives none).
message({hello, _, _, _, Info}, N, #s{mode = Mode} = S)
  when not is_map_key(mode, Info), Mode =/= available ->
    sderl_core_quorum:report_difference(N, available, S);
message({hello, _, _, _, #{mode := Theirs}}, N, #s{mode = Mode} = S) when Theirs =/= Mode ->
    sderl_core_quorum:report_difference(N, Theirs, S);
message({hello, Addr, Inc, Mem, Info}, N, S0) ->
    S1 = case peer(N, S0) of
        #peer{inc = Old} when Old =/= Inc -> nodedown(N, S0);
        _ -> S0
    end,
    Fresh = case peer(N, S1) of #peer{addr = Addr} -> false; _ -> true end,
    S2 = sderl_core_quorum:came_back(N, S1#s{linked = (S1#s.linked)#{N => []},
                                             broken = maps:remove(N, S1#s.broken),
                                             down = maps:remove(N, S1#s.down)}),
    Both = union(Mem, S2#s.d#d.mem, S2),
    case is_known(N, S2) orelse sderl_membership:is_known(N, Both) of
        false ->
            %% The removals of others that it knows of count all the same (rule 4).
            sderl_core_peers:mem(Mem, N, fx({send, Addr, {gone, removed, S2#s.d#d.mem}}, S2));
        true ->
            P = #peer{addr = Addr,
                      inc = Inc,
                      heard = S2#s.now,
                      said = S2#s.now,
                      lead = maps:get(lead, Info, undefined),
                      epoch = maps:get(epoch, Info, {0, N})},
            S3 = S2#s{peers = (S2#s.peers)#{N => P}},
            %% Answer one that does not know us; two that know each other fall silent.
            S4 = case Fresh orelse is_map_key(ask, Info) of
                true -> send(N, hello_msg(S3), S3);
                false -> S3
            end,
            %% It may know an older counter of its own than the one at which it was forgotten.
            Theirs = case sderl_membership:is_member(N, Both) of
                true -> Mem;
                false -> sderl_membership:recall(N, Both)
            end,
            sderl_core_hello:hello(N, Fresh, Theirs, Info, S4)
    end;
%% The library stopped on that node: as good as down, but the link stays up. If the library starts
%% again, our hello tells it that it is a member.
message(bye, N, S0) ->
    S = sderl_core_peers:ended(N, nodedown(N, S0)),
    S#s{linked = (S#s.linked)#{N => mute}};
%% The member's process ended, and its node goes on in another island: its names stay, and nobody
%% waits for it.
message(away, N, #s{linked = L, peers = P} = S) when is_map_key(N, L) ->
    sderl_core_peers:away(N, S#s{linked = L#{N := away}, peers = maps:remove(N, P)});
message(away, _, S) -> S;
message({gone, Why, Mem}, N, S) -> sderl_core_leave:gone(Why, Mem, N, S);
message({req, E, List}, N, S) -> sderl_core_write:req(E, List, N, S);
message({ack, E, Num, List}, N, S) -> sderl_core_write:ack(E, Num, List, N, S);
message({batch, E, Num, Commit, Items}, N, S) ->
    sderl_core_write:batch(E, Num, Commit, Items, N, S);
message({commit, E, Num}, N, S) -> sderl_core_leave:commit(E, Num, N, S);
message({answers, E, Req, As}, N, S) -> sderl_core_answer:told_again(E, Req, As, N, S);
message({gap, E, _Num}, N, S) -> sderl_core_admit:gap(E, N, S);
message({dropped, E}, N, S) -> sderl_core_peers:dropped(E, N, S);
message({refused, E, L}, N, S) -> sderl_core_peers:refused(E, L, N, S);
message({not_lead, E}, N, S) -> sderl_core_peers:not_lead(E, N, S);
message({hb, E, Num}, N, S) -> sderl_core_peers:hb(E, Num, N, S);
message({hb_ack, E, Links}, N, S) -> sderl_core_peers:hb_ack(E, Links, N, S);
message({low, E, L}, N, S) -> sderl_core_peers:low(E, L, N, S);
message({found, C, E}, N, S) -> sderl_core_peers:found(C, E, N, S);
message({follow, C, E}, N, S) -> sderl_core_peers:follow(C, E, N, S);
message({collect, E, Lin, Flags}, N, S) -> sderl_core_elect:collect(E, Lin, Flags, N, S);
message({joined, E, Num, Items}, N, S) -> sderl_core_elect:joined(E, Num, Items, N, S);
message({apart, E, Lin, L}, N, S) -> sderl_core_elect:apart(E, Lin, L, N, S);
message({nack, E, Mine, L}, N, S) -> sderl_core_elect:nack(E, Mine, L, N, S);
message({lead, E, Num, Items, Info}, N, S) -> sderl_core_lead:lead(E, Num, Items, Info, N, S);
message({lost, E, C}, N, S) -> sderl_core_elect:lost_report(E, C, N, S);
message({promised, E, Position, Items, Standing}, N, S) ->
    sderl_core_ballot:promised(E, {Position, Items, Standing}, N, S);
message({handover, E}, N, S) -> sderl_core_elect:handover(E, N, S);
message(query, N, S) -> send(N, {state, S#s.d#d.epoch, S#s.lead}, S);
message({mem, Mem}, N, S) -> sderl_core_peers:mem(Mem, N, S);
message({state, E, L}, N, S) -> sderl_core_peers:state(E, L, N, S);
message({join, E, Num}, N, S) -> sderl_core_admit:join(E, Num, N, S);
message({bring, E, Piece}, N, S) -> sderl_core_join:bring(E, Piece, N, S);
message({shard, E, Piece, Rows, End}, N, S) -> sderl_core_merge:shard(E, Piece, Rows, End, N, S);
message({adopt, E, Num, Info}, N, S) -> sderl_core_snapshot:adopt(E, Num, Info, N, S);
message({chunk, E, Id, K, Rows, Last}, N, S) ->
    sderl_core_snapshot:chunk(E, Id, K, Rows, Last, N, S);
message({chunk_ok, E, Id, K}, N, S) -> sderl_core_snapshot:chunk_ok(E, Id, K, N, S);
message({synced, E, Id}, N, S) -> sderl_core_admit:synced(E, Id, N, S);
message(_Unknown, _N, #s{unknown = U} = S) -> S#s{unknown = U + 1}.
