%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_write).
-moduledoc false.
%% Writes: from a client's operation to its answer (`sderl_core_answer` says what the client hears).
%%
%% A member has one list of operations out at a time (`out`), numbered since it became a member. The
%% coordinator decides all lists it has in one batch; every live member applies and acknowledges
%% it; then it is committed and each member answers its own clients from its own copy of the
%% batch. The notice of commit rides on the next batch where there is one, an acknowledgement
%% carries the member's next list.
%%
%% A list that is sent again (new coordinator, new process of the member) gets its first answer:
%% the last number and answers of every member are part of the replicated state (rule 8).

-include("sderl_core.hrl").

-export([flush/1, batch/6, committed/2, apply_items/4, restore/2, req/4, forget_list/2]).
-export([unhold/2, ack/5, reorder/1, wait_again/2, may_propose/1, propose/3, origins/1]).

-import(sderl_core_state, [fx/2, send/3, set_flight/2]).

%% ---------------------------------------------------------------- the member's side

%% At the end of every step: sends the next list and the acknowledgement, in one message if both go
%% to the same member.
-spec flush(#s{}) -> #s{}.
flush(#s{unconfirmed = [_ | _]} = S) -> S;
flush(S0) ->
    {List, S1} = sderl_core_clients:next_list(S0),
    case S1 of
        #s{role = coord} when List =/= none -> enqueue(List, S1#s{ack = undefined});
        #s{ack = {E, Num}, lead = L} ->
            S2 = case List of
                none -> S1;
                _ -> sderl_core_clients:sent_to(E, S1)
            end,
            send(L, {ack, E, Num, List}, S2#s{ack = undefined});
        #s{lead = L, d = #d{lineage = E}} when List =/= none ->
            send(L, {req, E, List}, sderl_core_clients:sent_to(E, S1));
        _ -> S1
    end.

-spec batch(term(), non_neg_integer(), non_neg_integer(), [term()], node(), #s{}) -> #s{}.
batch(E, Num, Commit, Items, N,
      #s{d = #d{lineage = E, epoch = E}, lead = N, role = follower} = S0) ->
    Unknown = sderl_core_answer:unknown_in(Items),
    S = (committed(Commit, sderl_core_answer:amend(Unknown, S0)))#s{lead_heard = S0#s.now},
    case S#s.num of
        Have when Num =:= Have + 1 ->
            sderl_core_answer:at_once((apply_items(Num, Items, none, S))#s{ack = {E, Num}});
        Have when Num =< Have -> S#s{ack = {E, Have}};
        Have -> send(N, {gap, E, Have}, S)
    end;
batch(E, _, _, _, N, #s{d = #d{epoch = Mine}, lead = L} = S) when E < Mine ->
    send(N, {refused, Mine, L}, S);
batch(_, _, _, _, _, S) -> S.

%% Our committed number never exceeds the last batch that we have: a member that lags may become the
%% coordinator of one side of a split.
-spec committed(non_neg_integer(), #s{}) -> #s{}.
committed(Num, #s{num = Num, d = #d{before = Before, votes = Votes}} = S)
  when Before =/= undefined; not Votes ->
    kept(Num, sderl_core_quorum:confirmed(S));
committed(Num, S) -> kept(Num, S).

kept(Num, #s{clients = #clients{answers = {At, As}, out = {_, List}} = Clients} = S)
  when At =< Num ->
    S1 = S#s{clients = Clients#clients{answers = undefined, out = undefined},
             committed = max(min(Num, S#s.num), S#s.committed)},
    sderl_core_answer:reply(List, As, S1);
kept(Num, #s{committed = C, num = Has} = S) when Num > C -> S#s{committed = min(Num, Has)};
kept(_, S) -> S.

%% ---------------------------------------------------------------- applying a batch

%% Applies the items to the protocol's own state; the shell changes the rows, from the same items.
-spec apply_items(non_neg_integer(), [term()], [{pid(), [term()] | none}] | none, #s{}) -> #s{}.
apply_items(Num, Items, Index, S0) ->
    #s{pending_exits = Exits, d = #d{lineage = E, clashes = Clashes}} = S0,
    Next = (without_before(S0))#s{num = Num, last = Items},
    S1 = fx({apply, E, Num, Items, Index}, sderl_core_snapshot:fresh(Items, Next)),
    S2 = lists:foldl(fun(I, S) -> item(I, Num, S) end, S1, Items),
    tell(Num, Items, Clashes, sderl_core_clash:forget_told(Exits, S2)).

%% The batch before this one is committed, or this one would not be ordered.
without_before(#s{d = #d{before = undefined}} = S) -> S;
without_before(#s{d = D} = S) -> S#s{d = D#d{before = undefined}}.

%% Homes tell their own processes of clashes that are settled.
tell(Num, Items, Clashes, #s{self = Self} = S) ->
    Fx = [F || #settle{name = Name, effects = All} <- Items, #{Name := Pair} <- [Clashes],
               F <- sderl_core_clash:effects_for(Self, All, Pair)],
    sderl_core_clash:tell(Num, Fx, S).

%% After a restart of the process: the tables are right, the state follows the last batch.
-spec restore([term()], #s{}) -> #s{}.
restore(Items, #s{num = Num, d = #d{clashes = Clashes}} = S) ->
    case tell(Num, Items, Clashes, lists:foldl(fun(I, A) -> item(I, Num, A) end, S, Items)) of
        #s{clients = #clients{answers = undefined, out = {R, _}}, self = Self, sessions = Sess,
           d = #d{sid = Sid, syncing = false}} = S1 ->
            case Sess of
                %% The list was in an earlier batch, which all have.
                #{Self := {Sid, R, As}} -> sderl_core_answer:answers(R, As, S1);
                _ -> S1
            end;
        S1 -> S1
    end.

item(#seg{member = O, session = Sid, number = R, answers = As}, Num,
     #s{self = O, d = #d{sid = Sid}, clients = #clients{out = {R, _}} = Clients} = S) ->
    S#s{clients = Clients#clients{answers = {Num, As}},
        sessions = (S#s.sessions)#{O => {Sid, R, As}}};
item(#seg{member = O, session = Sid, number = R, answers = As}, _Num, S0) ->
    S = S0#s{sessions = (S0#s.sessions)#{O => {Sid, R, As}}},
    sderl_core_answer:decided_before(O, {Sid, R, As}, S);
item(#view{places = View, drops = Drops, live = Live, unknown = Unknown}, _Num, #s{d = D} = S0) ->
    Viewed = sderl_core_snapshot:view(Drops, Live, S0),
    #s{sessions = Sessions} = S = sderl_core_answer:amend(Unknown, Viewed),
    S1 = S#s{d = D#d{view = View},
             sessions = sderl_core_answer:amend_sessions(Unknown, Sessions)},
    S2 = case Unknown of
        [] -> S1;
        _ -> fx({sessions, S1#s.sessions}, S1)
    end,
    sderl_core_view:view_events(D#d.view, View, sderl_core_view:waiters(S2));
item(#mem{membership = Mem, removed = Removed}, _Num, S0) ->
    #s{self = Self, sessions = Sess, d = D} = S0,
    #d{lineage = {_, Coord}, clashes = Clashes} = D,
    Moved = case lists:member(Self, Removed) of
        true -> sderl_core_snapshot:moved(fun(_) -> Coord end, S0);
        false -> S0
    end,
    %% Rows that removed members have brought have their home here now: if they become members again
    %% they bring their rows anew.
    S = lists:foldl(fun sderl_core_merge:forget_join/2, Moved, Removed),
    Rehome = fun(Row) -> rehome(Row, Removed, Coord) end,
    Rehomed = #{Name => sderl_core_clash:map_rows(Rehome, Clash) || Name := Clash <- Clashes},
    %% In the one log of a majority group no member brings its session: one that was removed and
    %% added again without hearing of it asks with the old one.
    Kept = case S#s.mode of
        available -> [Self];
        majority -> sderl_membership:members(Mem) ++ sderl_membership:removed(Mem)
    end,
    sderl_core_view:new_mem(Mem, S#s{sessions = maps:without(Removed -- Kept, Sess),
                                     d = D#d{clashes = Rehomed}});
item(delete, _Num, S) -> S#s{leaving = deleted};
item(#shard{member = N, rows = Rows, rest = more}, _Num, #s{d = #d{view = V} = D} = S0) ->
    S = superseded(Rows, S0),
    S#s{sessions = maps:remove(N, S#s.sessions), d = D#d{view = V#{N => {partial, 0}}}};
item(#shard{member = N, rows = Rows, rest = {Place, Session}}, _Num, S0) ->
    #s{sessions = Sessions, d = #d{view = V} = D} = S0,
    S = superseded(Rows, S0),
    View = V#{N => Place},
    {Lineage, _} = Place,
    S1 = S#s{d = D#d{view = View, elsewhere_until = (D#d.elsewhere_until)#{N => Lineage}},
             sessions = case Session of
                 none -> maps:remove(N, Sessions);
                 _ -> Sessions#{N => Session}
             end},
    sderl_core_view:view_events(maps:remove(N, V), View, S1);
item(#clashes{clashes = Open}, _Num, #s{d = #d{clashes = Cl} = D} = S) ->
    sderl_core_clash:forget(maps:keys(Open), S#s{d = D#d{clashes = maps:merge(Cl, Open)}});
item(#settle{name = Name, effects = Fx}, _Num, S0) ->
    #s{d = #d{clashes = Cl} = D} = S = sderl_core_clash:note_pending_exits(Name, Fx, S0),
    sderl_core_snapshot:superseded([Name], S#s{d = D#d{clashes = maps:remove(Name, Cl)}}).

superseded(Rows, S) -> sderl_core_snapshot:superseded([sderl_row:name(Row) || Row <- Rows], S).

rehome(?ROW_AT(Home) = Row, Removed, Coord) ->
    case lists:member(Home, Removed) of
        true -> sderl_row:with_home(Coord, Row);
        false -> Row
    end.

%% ---------------------------------------------------------------- the coordinator's side

-spec req(term(), list_of_operations(), node(), #s{}) -> #s{}.
req(E, List, _N, #s{lead = Self, self = Self, d = #d{lineage = E}} = S) ->
    enqueue(List, S);
req(_, _, N, S) -> not_lead(N, S).

%% A learner sent this list in its former log, and will send it again in the log that it gets. If it
%% gave us up now, we would still take it for a learner while it waits for us.
not_lead(N, #s{d = #d{epoch = E}} = S) ->
    case sderl_core_snapshot:is_learner(N, S) of
        true -> S;
        false -> send(N, {not_lead, E}, S)
    end.

%% A member that is set aside lacks names that its operations concern, so its list waits until it
%% has them. Only its last list counts, because it has given up earlier ones.
enqueue(?LIST(O, _, _, _) = List, #s{office = Office, d = #d{view = V}} = S)
  when is_tuple(map_get(O, V)) ->
    #office{held = Held, requests = Requests} = Office,
    S#s{office = Office#office{held = Held#{O => List},
                               requests = lists:keydelete(O, ?LIST_MEMBER, Requests)}};
enqueue(?LIST(O, Sid, R, _) = List, #s{office = Office, d = #d{lineage = E}} = S) ->
    #office{requests = Requests, held = Held, flight = Flight} = Office,
    case S#s.sessions of
        #{O := {Sid, R, As}} ->
            %% Applied before: answered again; if its batch is still in flight, once that is
            %% committed. (A member that got the batch with a snapshot does not have the answers.)
            case Flight of
                #flight{origins = Os, then = Then} = F ->
                    case lists:member(O, Os) of
                        true -> set_flight(F#flight{then = [{answer, O} | Then]}, S);
                        false -> answer_again(O, E, R, As, S)
                    end;
                undefined -> answer_again(O, E, R, As, S)
            end;
        #{O := {Sid, Newer, _}} when Newer > R -> S;
        _ ->
            S#s{office = Office#office{requests = [List | without_list(O, Requests)],
                                       held = maps:remove(O, Held)}}
    end.

%% Nearly always there is no such list, and a look costs less than a copy of the others.
without_list(O, Requests) ->
    case lists:keymember(O, ?LIST_MEMBER, Requests) of
        true -> lists:keydelete(O, ?LIST_MEMBER, Requests);
        false -> Requests
    end.

-doc "A member begins anew with us: lists that it sent before are out of date.".
-spec forget_list(node(), #s{}) -> #s{}.
forget_list(O, #s{office = #office{held = Held, requests = Reqs} = Office} = S) ->
    S#s{office = Office#office{held = maps:remove(O, Held),
                               requests = lists:keydelete(O, ?LIST_MEMBER, Reqs)}}.

%% The member counts again: its list is no longer held.
-spec unhold(node(), #s{}) -> #s{}.
unhold(O, #s{office = #office{held = Held} = Office} = S) ->
    case Held of
        #{O := List} -> enqueue(List, S#s{office = Office#office{held = maps:remove(O, Held)}});
        _ -> S
    end.

answer_again(O, _, R, As, #s{self = O} = S) -> sderl_core_answer:answers(R, As, S);
answer_again(O, E, R, As, S) -> send(O, {answers, E, R, As}, S).

-spec ack(term(), non_neg_integer(), list_of_operations() | none, node(), #s{}) -> #s{}.
ack(E, Num, List, N, #s{lead = Self, self = Self, d = #d{lineage = E}} = S0) ->
    S1 = case List of
        none -> S0;
        _ -> enqueue(List, S0)
    end,
    S2 = sderl_core_snapshot:acknowledged(N, Num, S1),
    case S2#s.office#office.flight of
        #flight{num = Num, wait = W, had = Had} = F ->
            Has = case sderl_core_quorum:counts_acknowledgements(S2) of
                true -> [N | Had];
                false -> Had
            end,
            landed(set_flight(F#flight{wait = lists:delete(N, W), had = Has}, S2));
        _ -> S2
    end;
ack(E, _Num, List, N, #s{d = #d{epoch = Mine}} = S) when List =/= none, E =< Mine -> not_lead(N, S);
ack(_, _, _, _, S) -> S.

%% Every live member has the batch. A coordinator that was itself stopped decides nothing before
%% it has exchanged epochs (rule 10).
landed(#s{office = #office{flight = #flight{wait = []}}, unconfirmed = []} = S) ->
    case sderl_core_quorum:decides(S) of
        true -> commit_flight(S);
        false -> S
    end;
landed(S) -> S.

commit_flight(#s{self = Self, office = #office{flight = Flight, owed = Owed} = Office} = S0) ->
    #flight{num = Num, origins = Origins, then = Then} = Flight,
    Owes = lists:usort(lists:delete(Self, Origins) ++ Owed),
    S1 = committed(Num, S0#s{office = Office#office{flight = undefined, owed = Owes}}),
    S2 = sderl_core_quorum:committed(Num, lists:foldl(fun then/2, S1, Then)),
    case S2 of
        #s{leaving = undefined, role = joining} -> sderl_core_join:disband(pay(S2));
        #s{leaving = undefined} -> S2;
        #s{leaving = Why} -> sderl_core_answer:leave(Why, pay(S2))
    end.

then({adopt, Ns}, S) -> sderl_core_snapshot:start(Ns, S);
then({brought, N, Id, Last}, S) -> sderl_core_merge:brought(N, Id, Last, S);
then({answer, O}, #s{sessions = Sess, d = #d{lineage = E}} = S) ->
    case Sess of
        #{O := {_, R, As}} -> answer_again(O, E, R, As, S);
        _ -> S
    end;
then({tell, Home, Effect}, S) -> sderl_core_clash:tell_outside(Home, Effect, S);
then({left, Ns}, #s{self = Self, peers = P, committed = C, d = #d{lineage = E}} = S) ->
    %% If we are removed ourselves all members must know, to elect another coordinator.
    Tell = case lists:member(Self, Ns) of true -> maps:keys(P); false -> Ns end,
    S1 = lists:foldl(fun(N, A) -> send(N, {commit, E, C}, A) end, S, Tell),
    S1#s{peers = maps:without(gone(Ns, S), P)}.

%% Not members that the same batch added again: they may have been taken in already.
gone(Ns, #s{leaving = undefined, d = #d{view = V}}) -> [N || N <- Ns, not is_map_key(N, V)];
gone(Ns, _) -> Ns.

%% Tells the members whose lists were in the batch that it is committed.
pay(#s{office = #office{owed = []}} = S) -> S;
pay(#s{office = #office{owed = Owed, unknown_answers = Unknown}} = S) ->
    #s{committed = C, d = #d{lineage = E}} = S,
    %% Members whose answers are unknown hear this with the batch that orders it.
    lists:foldl(fun(N, A) -> send(N, {commit, E, C}, A) end, set_owed([], S),
                [N || N <- Owed, not lists:keymember(N, 1, Unknown)]).

set_owed(Owed, #s{office = Office} = S) -> S#s{office = Office#office{owed = Owed}}.

%% Rechecks the flight after links or the view changed.
-spec reorder(#s{}) -> #s{}.
reorder(#s{office = #office{flight = #flight{wait = W} = F}, d = #d{view = V}} = S) ->
    landed(set_flight(F#flight{wait = [N || N <- W, maps:get(N, V, none) =:= live]}, S));
reorder(S) -> S.

-doc """
We were stopped, and these members have not told us since whom they follow. So their acknowledgement
of the batch that is out counts no more, and they get the batch again.
""".
-spec wait_again([node()], #s{}) -> #s{}.
wait_again(Silent, #s{mode = available, office = #office{flight = #flight{wait = W} = F}} = S) ->
    #s{num = Num, last = Items, committed = C, d = #d{lineage = E, view = V}} = S,
    Gone = [N || N := live <- V, lists:member(N, Silent), not lists:member(N, W)],
    S1 = set_flight(F#flight{wait = W ++ Gone}, S),
    lists:foldl(fun(N, A) -> send(N, {batch, E, Num, C, Items}, A) end, S1, Gone);
wait_again(_, S) -> S.

-doc "Whether this member may make a batch now, if there is something to order.".
-spec may_propose(#s{}) -> boolean().
may_propose(#s{role = coord, office = Office, unconfirmed = [], leaving = undefined}) ->
    Office#office.flight =:= undefined;
may_propose(_) -> false.

-doc """
Makes the next batch. A node that boots or joins does not decide alone what a member to which it
has a link may decide.
""".
-spec propose(module(), term(), #s{}) -> #s{}.
propose(Mod, Store, S0) ->
    S = sderl_core_clash:decisions(sderl_core_clash:ask(S0)),
    case sderl_core_view:unmet(S) orelse not sderl_core_quorum:decides(S) of
        true -> S;
        false -> proposed(Mod, Store, S)
    end.

proposed(Mod, Store, S) ->
    case S of
        #s{office = #office{requests = [], changes = []}} -> pay(S);
        _ -> pay(sent(sderl_core_decide:batch(Mod, Store, without_frozen(S))))
    end.

%% The names of a member that is set aside are dropped before it is removed: with the membership
%% that another component told, or, as that is a scan, in the batch before the one with the list
%% that asks for the removal. (In the one log of a majority group they stay as they are in the log.)
without_frozen(
    #s{mode = available, office = #office{requests = Requests, changes = Changes}} = S
) ->
    #s{d = #d{mem = Mem, view = V}} = S,
    Aside = map_size(V) > length([N || N := live <- V]),
    Asked = [N || Aside, ?LIST(O, _, _, Ops) <- Requests, maps:get(O, V, none) =:= live,
                  #remove{nodes = Nodes} <- Ops, N <- Nodes],
    Heard = [N || #merge_membership{membership = Theirs} <- Changes,
                  N <- sderl_membership:members(Mem)
                           -- sderl_membership:members(sderl_core_state:union(Theirs, Mem, S))],
    sderl_core_merge:drop_frozen(Asked ++ Heard, S);
without_frozen(S) -> S.

sent({[], _, _, S}) -> S;
sent({Items, Index, Then, S0}) ->
    #s{num = Prev, d = #d{lineage = E, view = View}, self = Self, now = Now, committed = C} = S0,
    Num = Prev + 1,
    %% The nodes that this batch removes still get it: it is the last they apply (rule 5).
    Live = [N || N := live <- View, N =/= Self, is_map_key(N, S0#s.peers)],
    {Learners, #s{office = #office{owed = Owed}} = S1} = sderl_core_snapshot:keep_up(Num, S0),
    Msg = {batch, E, Num, C, Items},
    S2 = lists:foldl(fun(N, A) -> send(N, Msg, A) end, S1, Live ++ Learners),
    %% The batch carries the notice of commit that is owed; members that do not get it are told.
    S3 = pay(set_owed((Owed -- Live) -- Learners, S2)),
    #s{office = Office} = S4 = sderl_core_answer:at_once(apply_items(Num, Items, Index, S3)),
    Origins = origins(Items),
    S5 = case lists:member(Self, Origins) of
        true -> sderl_core_clients:sent_to(E, S4);
        false -> S4
    end,
    Flight = #flight{num = Num, wait = Live, since = Now, then = Then, origins = Origins},
    landed(S5#s{office = Office#office{flight = Flight, unknown_answers = []}}).

%% Members whose lists a batch answers.
-spec origins([term()]) -> [node()].
origins(Items) -> [Member || #seg{member = Member} <- Items].
