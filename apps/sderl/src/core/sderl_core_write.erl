%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_write).
-moduledoc false.
%% Writes: from a client's operation to its answer.
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

-define(LEARNER_LAG, 2048).
%% So long an operation on a name of a member that is set aside is asked again.
-define(WAIT_MS, 10_000).

-export([depart/1, op/3, again/3, default/1, flush/1, propose/3, req/4, ack/5, batch/6, commit/4, answers/4, gone/4, restore/2]).
-export([unhold/2, forget_list/2, origins/1, committed/2, leave_log/1, looked_up/2, look_up_removed/1, requeue/1, unknown_answers/2, forget_answers/1, told_committed/1, apply_items/4, resend/1, leave/2, left_out/2, reorder/1, membership/2, view_events/3]).

-import(sderl_core, [faulty/2, fx/2, send/3, event/3]).

%% ---------------------------------------------------------------- the member's side

-spec op(term(), sderl_core:op(), #s{}) -> #s{}.
%% Never sent, so never applied.
op(From, _Op, #s{majority = false, leaving = undefined} = S) when From =/= none ->
    fx({replies, [{From, {no, no_majority}}]}, S);
op(From, Op, #s{leaving = undefined, queue = Q} = S) -> S#s{queue = [{From, Op} | Q]};
op(From, _Op, S) -> fx({replies, [{From, {no, not_member}}]}, S).

%% A client that saw our predecessor die asks again under the same identity, maybe what we have
%% answered meanwhile.
-spec again(term(), sderl_core:op(), #s{}) -> #s{}.
again(From, Op, S) ->
    case faulty(rule_19, S) of
        false -> once(From, Op, S);
        true -> op(From, Op, S)
    end.

once(From, Op, #s{queue = Q, out = Out} = S) ->
    Known = lists:keymember(From, 1, Q)
        orelse lists:keymember(From, 2, S#s.deferred)
        orelse (Out =/= undefined andalso lists:keymember(From, 1, element(2, Out))),
    case {Known, S#s.old} of
        {true, _} -> S;
        {false, {answered, Rs}} ->
            case lists:keyfind(From, 1, Rs) of
                false -> op(From, Op, S);
                R -> fx({replies, [R]}, S)
            end;
        {false, _} -> op(From, Op, S)
    end.

%% At the end of every step: send what there is, in one message where an acknowledgement goes
%% the same way.
-spec flush(#s{}) -> #s{}.
flush(#s{groggy = [_ | _]} = S) -> S;
flush(S0) ->
    {Seg, S1} = next_list(S0),
    case S1 of
        #s{role = coord} when Seg =/= none -> enqueue(Seg, S1#s{ack = undefined});
        #s{ack = {E, Num}, lead = L, abroad = Abroad} ->
            send(L, {ack, E, Num, Seg}, S1#s{ack = undefined, abroad = case Seg of none -> Abroad; _ -> abroad(E, Abroad) end});
        #s{lead = L, abroad = Abroad, d = #d{lineage = E}} when Seg =/= none -> send(L, {req, E, Seg}, S1#s{abroad = abroad(E, Abroad)});
        _ -> S1
    end.

next_list(#s{role = R, leaving = L} = S) when R =/= coord, R =/= follower; L =/= undefined -> {none, S};
next_list(#s{out = undefined, queue = []} = S) -> {none, S};
next_list(#s{out = undefined, queue = Q, req = R} = S) ->
    List = spoiled(lists:reverse(Q), S),
    S1 = S#s{queue = [], req = R + 1, out = {R + 1, List}, send_out = false, abroad = []},
    {seg(R + 1, List, S1), fx({outbox, R + 1, List}, S1)};
next_list(#s{out = {R, List}, send_out = true} = S) ->
    {seg(R, List, S), S#s{send_out = false}};
next_list(S) -> {none, S}.

abroad(E, Abroad) -> [E | lists:delete(E, Abroad)].

%% A list as it is; as it should not be, where a test wants that.
spoiled(List, #s{faults = []}) -> List;
spoiled(List, S) ->
    lists:filtermap(fun({none, {d, Name, _}}) ->
                            not faulty(lose_down, S) andalso
                                (not faulty(unconditional_removal, S) orelse {true, {none, {Name}}});
                       ({From, {x, Name, Pid, _, Opts}}) ->
                            not faulty(rule_17, S) orelse {true, {From, {r, Name, Pid, Opts}}};
                       (_) -> true
                    end, List).

seg(R, List, #s{self = Self, d = #d{sid = Sid}}) -> {Self, Sid, R, [Op || {_, Op} <- List]}.

%% There is a new coordinator: what is not answered goes to it, under its old number.
-spec resend(#s{}) -> #s{}.
resend(#s{out = undefined} = S) -> S;
resend(S) -> S#s{send_out = true}.

-spec answers(term(), pos_integer(), [term()] | default, #s{}) -> #s{}.
answers(_E, R, As, #s{out = {R, List}} = S) when As =:= default; length(As) =:= length(List) ->
    reply(List, As, S#s{out = undefined, mine = undefined});
answers(_, _, _, S) -> S.

reply(List, As, #s{old = Old, deferred = Deferred, waited = Waited, now = Now} = S0) ->
    Answers = settled(List, As, S0),
    Later = [{maps:get(F, Waited, Now), F, Op} || {F, Op, {no, later}} <- Answers],
    S = S0#s{deferred = Later ++ Deferred, waited = maps:without([F || {F, _, _} <- Answers], Waited)},
    Rs = [{F, A} || {F, _, A} <- Answers, F =/= none, A =/= {no, later}],
    %% The list that our predecessor left: who saw it die may ask again after this answer.
    case Old of
        {asked, List} -> fx({replies, Rs}, S#s{old = {answered, Rs}});
        _ -> fx({replies, Rs}, S)
    end.

settled(List, default, #s{waited = Waited}) when map_size(Waited) =:= 0 ->
    [{F, Op, default(Op)} || {F, Op} <- List];
settled(List, default, S) ->
    [{F, Op, settled(F, Op, default(Op), S)} || {F, Op} <- List];
settled(List, As, S) ->
    [{F, Op, settled(F, Op, A, S)} || {{F, Op}, A} <- lists:zip(List, As)].

%% An answer as the client hears it. An operation that went to a coordinator whose log we left may
%% have been applied there, and stand at another home: `no` would say that it was not.
settled(_, _, {yes, _}, _) -> yes;
settled(_, _, {ok, Home}, _) when is_atom(Home) -> ok;
%% The name went while its home was set aside, maybe with that home, which will have it again.
settled(F, {_}, ok, #s{waited = Waited}) when is_map_key(F, Waited) -> unknown;
settled(_, Op, {no, _} = A, S) ->
    case elsewhere(Op, S) of
        true -> unknown;
        false -> A
    end;
settled(_, _, A, _) -> A.

elsewhere(Op, #s{abroad = Abroad, self = Self, d = #d{lineage = E}}) ->
    case {lists:delete(E, Abroad), pid_in(Op)} of
        {[], _} -> false;
        {_, none} -> false;
        {_, _} when element(1, Op) =:= rr -> true;
        {_, Pid} -> node(Pid) =/= Self
    end.

pid_in([_ | Pid]) -> Pid;
pid_in({r, _, Pid, _}) -> Pid;
pid_in({x, _, Pid, _, _}) -> Pid;
pid_in({rr, _, Pid, _}) -> Pid;
pid_in(_) -> none.

-doc """
Operations on names of members that are set aside wait: nobody but its home changes a frozen shard.
With every tick they are asked again, until nobody waits for their answers any more.
""".
-spec requeue(#s{}) -> #s{}.
requeue(#s{deferred = []} = S) -> S;
requeue(#s{deferred = Deferred, waited = Waited, queue = Queue, now = Now} = S) ->
    {Late, Again} = lists:partition(fun({At, F, _}) -> F =/= none andalso Now - At > ?WAIT_MS end, Deferred),
    fx({replies, [{F, unknown} || {_, F, _} <- Late]},
       S#s{deferred = [],
           waited = maps:merge(Waited, #{F => At || {At, F, _} <- Again, F =/= none}),
           queue = [{F, Op} || {_, F, Op} <- Again] ++ Queue}).

-doc """
This member takes its shard to another log. Its list may have been decided in the one that it leaves,
in a batch that it has not: what that did to names of other homes stands there, and its own rows are
as they were. A registration can be decided again, and an answer `no` to one that may stand elsewhere
is unknown (`elsewhere`). A removal that was done once must not be done again: of a name of our own
shard it was not, as far as anybody will know, and is asked for again if the same process holds the
name; of others its outcome is unknown.
""".
-spec leave_log(#s{}) -> #s{}.
leave_log(#s{out = {R, List}, abroad = [_ | _], self = Self, sessions = Sessions, d = #d{sid = Sid}} = S) ->
    case Sessions of
        %% Applied here, and not known to be on all members: what it did to others' names may be here alone.
        #{Self := {Sid, R, As}} when is_list(As) ->
            Own = {Sid, R, [case homes(A) of [] -> A; _ -> unknown end || A <- As]},
            Sessions1 = Sessions#{Self := Own},
            fx({sessions, Sessions1}, S#s{sessions = Sessions1});
        #{Self := {Sid, R, _}} -> S;
        _ ->
            {Once, Again0} = lists:partition(fun({F, Op}) ->
                F =/= none andalso lists:any(fun(Name) -> not is_own(Name, S) end, removed_by(Op))
            end, List),
            Again = [{F, again_if_held(Op, S)} || {F, Op} <- Again0],
            S1 = fx({replies, [{F, removed(Op, S)} || {F, Op} <- Once]}, S#s{old = undefined}),
            case Again of
                [] -> fx({outbox, R + 1, []}, S1#s{req = R + 1, out = undefined, abroad = []});
                _ -> fx({outbox, R + 1, Again}, S1#s{req = R + 1, out = {R + 1, Again}})
            end
    end;
leave_log(S) -> S.

%% A name that our table has not was free when its removal was asked for.
removed({Name}, #s{found = Found}) when not is_map_key(Name, Found) -> ok;
removed(_, _) -> unknown.

-doc "Asks for the rows of the names that our list would remove or replace, before its shard goes to another log.".
-spec look_up_removed(#s{}) -> #s{}.
look_up_removed(#s{out = {_, List}} = S) ->
    case lists:usort([Name || {_, Op} <- List, Name <- removed_by(Op)]) of
        [] -> S#s{found = #{}};
        Names -> fx({look_up, Names}, S#s{found = #{}})
    end;
look_up_removed(S) -> S#s{found = #{}}.

-doc "These rows our table has.".
-spec looked_up([sderl_core:row()], #s{}) -> #s{}.
looked_up(Rows, S) -> S#s{found = #{element(1, Row) => Row || Row <- Rows}}.

removed_by({Name}) -> [Name];
removed_by({rr, Name, _, _}) -> [Name];
removed_by(_) -> [].

is_own(Name, #s{self = Self, found = Found}) ->
    case Found of
        #{Name := {_, _, Self, _, _}} -> true;
        _ -> false
    end.

again_if_held({Name}, #s{found = Found}) -> {d, Name, element(2, map_get(Name, Found))};
again_if_held(Op, _) -> Op.

%% What an operation answers when nothing stands against it. A list of operations that all
%% answer so travels, and is kept, without its answers.
-spec default(sderl_core:op()) -> yes | ok.
default([_ | _]) -> yes;
default(Op) when tuple_size(Op) =:= 1 -> ok;
default(Op) when element(1, Op) =:= r; element(1, Op) =:= x; element(1, Op) =:= rr -> yes;
default(_) -> ok.

-spec batch(term(), non_neg_integer(), non_neg_integer(), [term()], node(), #s{}) -> #s{}.
batch(E, Num, Commit, Items, N, #s{d = #d{lineage = E, epoch = E}, lead = N, role = follower} = S0) ->
    S = (committed(Commit, amend(unknown_in(Items), S0)))#s{lead_heard = S0#s.now},
    case S#s.num of
        Have when Num =:= Have + 1 ->
            (apply_items(Num, Items, none, S))#s{ack = {E, Num}};
        Have when Num =< Have -> S#s{ack = {E, Have}};
        Have -> send(N, {gap, E, Have}, S)
    end;
batch(E, Num, _, Items, N, #s{d = #d{epoch = Mine}, lead = L} = S) when E < Mine ->
    case faulty(stale_coordinator, S) of
        true -> send(N, {ack, E, Num, none}, fx({apply, E, Num, Items, none}, S));
        false -> send(N, {refused, Mine, L}, S)
    end;
batch(_, _, _, _, _, S) -> S.

-spec commit(term(), non_neg_integer(), node(), #s{}) -> #s{}.
commit(E, Num, N, #s{d = #d{lineage = E}, lead = N, now = Now} = S) ->
    left(committed(Num, S#s{lead_heard = Now}));
commit(_, _, _, S) -> S.

%% The batch that removed us, or the coordinator, is on all members: only now it is true.
left(#s{leaving = undefined, lead = L, peers = P, d = #d{mem = M}} = S) ->
    case sderl_membership:is_member(L, M) of
        true -> S;
        false -> sderl_core_elect:orphan(S#s{peers = maps:remove(L, P)})
    end;
left(#s{leaving = Why, num = Num, committed = C} = S) when C >= Num -> leave(Why, S);
left(S) -> S.

%% (Never beyond what we have: a member that lags may end as the coordinator of a split.)
-spec committed(non_neg_integer(), #s{}) -> #s{}.
committed(Num, #s{num = Num, d = #d{before = Before, votes = Votes}} = S) when Before =/= undefined; not Votes ->
    kept(Num, sderl_core_quorum:confirmed(S));
committed(Num, S) -> kept(Num, S).

kept(Num, #s{mine = {At, As}, out = {_, List}} = S) when At =< Num ->
    reply(List, As, S#s{mine = undefined, out = undefined, committed = max(min(Num, S#s.num), S#s.committed)});
kept(Num, #s{committed = C, num = Has} = S) when Num > C -> S#s{committed = min(Num, Has)};
kept(_, S) -> S.

%% ---------------------------------------------------------------- applying a batch

%% What the items change in the protocol's own state; the rows are the shell's to change, from
%% the same items.
-spec apply_items(non_neg_integer(), [term()], [{pid(), [term()] | none}] | none, #s{}) -> #s{}.
apply_items(Num, Items, Index, S0) ->
    #s{d = #d{lineage = E, clashes = Clashes}} = S0,
    Rows = case faulty(skip_apply, S0) andalso S0#s.role =:= follower andalso Num rem 3 =:= 0 of
        true -> [];
        false -> Items
    end,
    S1 = fx({apply, E, Num, Rows, Index}, S0#s{num = Num, last = Items}),
    tell(Num, Items, Clashes, lists:foldl(fun(I, S) -> item(I, Num, S) end, S1, Items)).

%% The homes of those whose clash is settled tell them.
tell(Num, Items, Clashes, #s{self = Self} = S) ->
    Fx = [F || {settle, Name, _, _, All} <- Items, #{Name := Pair} <- [Clashes],
               F <- sderl_core_clash:effects_for(Self, All, Pair)],
    sderl_core_clash:tell(Num, Fx, S).

%% After a restart of the process: the tables are right, the state follows the last batch.
-spec restore([term()], #s{}) -> #s{}.
restore(Items, #s{num = Num, d = #d{clashes = Clashes}} = S) ->
    case tell(Num, Items, Clashes, lists:foldl(fun(I, A) -> item(I, Num, A) end, S, Items)) of
        #s{mine = undefined, self = Self, out = {R, _}, sessions = Sess, d = #d{lineage = E, sid = Sid, syncing = false}} = S1 ->
            case Sess of
                %% In an earlier batch: all have it.
                #{Self := {Sid, R, As}} -> answers(E, R, As, S1);
                _ -> S1
            end;
        S1 -> S1
    end.

item({seg, O, Sid, R, _Ops, As}, Num, #s{self = O, d = #d{sid = Sid}, out = {R, _}} = S) ->
    S#s{mine = {Num, As}, sessions = (S#s.sessions)#{O => {Sid, R, As}}};
item({seg, O, Sid, R, _Ops, As}, _Num, S) ->
    S#s{sessions = (S#s.sessions)#{O => {Sid, R, As}}};
item({view, View, _Drops, _Live, Unknown}, _Num, #s{d = D} = S0) ->
    #s{sessions = Sessions} = S = amend(Unknown, S0),
    S1 = S#s{d = D#d{view = View}, sessions = amend_sessions(Unknown, Sessions)},
    S2 = case Unknown of
        [] -> S1;
        _ -> fx({sessions, S1#s.sessions}, S1)
    end,
    view_events(D#d.view, View, sderl_core_peers:waiters(S2));
item({mem, Mem, Removed}, _Num, #s{self = Self, sessions = Sess, d = #d{lineage = {_, Coord}, clashes = Clashes} = D} = S) ->
    Rehomed = maps:map(fun(_, {A, B}) -> {rehome(A, Removed, Coord), rehome(B, Removed, Coord)} end, Clashes),
    new_mem(Mem, S#s{sessions = maps:without(lists:delete(Self, Removed), Sess), d = D#d{clashes = Rehomed}});
item(delete, _Num, S) -> S#s{leaving = deleted};
item({shard, N, _First, Rows, more}, _Num, #s{d = #d{view = V} = D} = S) ->
    fresh(Rows, S#s{sessions = maps:remove(N, S#s.sessions), d = D#d{view = V#{N => {partial, 0}}}});
item({shard, N, _First, Rows, {Place, Session}}, _Num, #s{sessions = Sessions, d = #d{view = V} = D} = S) ->
    View = V#{N => Place},
    S1 = S#s{d = D#d{view = View},
             sessions = case Session of
                 none -> case faulty(rule_3, S) of false -> maps:remove(N, Sessions); true -> Sessions end;
                 _ -> Sessions#{N => Session}
             end},
    view_events(maps:remove(N, V), View, fresh(Rows, S1));
item({clashes, Open}, _Num, #s{d = #d{clashes = Cl} = D} = S0) ->
    %% The same two rows may clash again: the resolver is asked again.
    Names = maps:keys(Open),
    S = S0#s{asked = maps:without(Names, S0#s.asked),
             decided = maps:without(Names, S0#s.decided),
             d = D#d{clashes = maps:merge(Cl, Open)}},
    case faulty(rule_18, S) of
        false -> S;
        true -> maps:fold(fun(Name, {A, B}, X) -> fx({resolve, Name, A, B}, X) end, S, maps:iterator(Open, ordered))
    end;
item({settle, Name, _, Row, _}, _Num, #s{d = #d{clashes = Cl} = D} = S0) ->
    S = S0#s{d = D#d{clashes = maps:remove(Name, Cl)}},
    case Row of
        {_, _, _, {_, _}, _} -> fresh([Row], S);
        _ -> S
    end.

rehome(Row, Removed, Coord) ->
    case lists:member(element(3, Row), Removed) of
        true -> setelement(3, Row, Coord);
        false -> Row
    end.

%% Rows that keep their version: a learner that had them before must not take them for old ones when
%% its snapshot ends.
fresh([_ | _] = Rows, #s{d = #d{syncing = true}} = S) -> fx({put_rows, Rows}, S);
fresh(_, S) -> S.

%% ---------------------------------------------------------------- answers that nobody will know

%% An operation may change a name of another home than its client's node. That home has it in its
%% own copy of its shard before anybody is answered, as it acknowledges the batch. Where it goes
%% without, set aside or let go, its copy may come back without the change: the answer is unknown.
%% The coordinator orders that with the change of the component, before it tells of the commit.

-doc "Of a batch: the answers about names of homes that went without acknowledging it.".
-spec unknown_answers([term()], [node()]) -> [{node(), integer(), pos_integer(), [pos_integer()]}].
unknown_answers(_, []) -> [];
unknown_answers(Items, Homes) ->
    [{O, Sid, R, Positions} || {seg, O, Sid, R, _, As} <- Items, is_list(As),
        [_ | _] = Positions <- [[I || {I, A} <- lists:enumerate(As), homes(A) -- Homes =/= homes(A)]]].

%% The homes that an answer depends on, beside its client's node.
homes({yes, [_ | _] = Homes}) -> Homes;
homes({yes, Home}) -> [Home];
homes({ok, Home}) when is_atom(Home) -> [Home];
homes(_) -> [].

unknown_in(Items) -> lists:append([U || {view, _, _, _, U} <- Items]).

amend([], S) -> S;
amend(Unknown, #s{self = Self, d = #d{sid = Sid}, mine = {At, As}, out = {R, _}} = S) ->
    case [Ps || {N, Of, Number, Ps} <- Unknown, N =:= Self, Of =:= Sid, Number =:= R] of
        [] -> S;
        Positions -> S#s{mine = {At, without_answers(lists:append(Positions), As)}}
    end;
amend(_, S) -> S.

amend_sessions(Unknown, Sessions) ->
    lists:foldl(fun({O, Sid, R, Positions}, Acc) ->
        case Acc of
            #{O := {Sid, R, As}} -> Acc#{O := {Sid, R, without_answers(Positions, As)}};
            _ -> Acc
        end
    end, Sessions, Unknown).

without_answers(_, default) -> default;
without_answers(Positions, As) ->
    [case lists:member(I, Positions) of true -> unknown; false -> A end || {I, A} <- lists:enumerate(As)].

-doc "Of the coordinator's own clients, as soon as it knows.".
-spec forget_answers(#s{}) -> #s{}.
forget_answers(#s{unknown_answers = Unknown} = S) -> amend(Unknown, S).

-doc "The last batch of which members may tell their clients.".
-spec told_committed(#s{}) -> non_neg_integer().
told_committed(#s{unknown_answers = [], committed = C}) -> C;
told_committed(#s{num = Num, committed = C}) -> min(C, Num - 1).

%% What subscribers and the log hear of a change of the component, on every member.
-spec view_events(#{node() => place()}, #{node() => place()}, #s{}) -> #s{}.
view_events(Old, New, S) when Old =:= New -> S;
view_events(Old, New, S0) ->
    S = case maps:keys(maps:without(maps:keys(New), Old)) of
        [] -> S0;
        Lost -> event(component_split, #{nodes => lists:sort(maps:keys(New)), lost => lists:sort(Lost)}, S0)
    end,
    maps:fold(fun(N, St, Acc) ->
        case Old of
            #{N := Was} when (Was =:= live) =:= (St =:= live) -> Acc;
            _ when St =:= live -> event(member_live, #{node => N}, Acc);
            _ -> event(member_aside, #{node => N}, Acc)
        end
    end, S, New).

%% A membership that came with a snapshot rather than in a batch.
-spec membership(sderl_membership:t(), #s{}) -> #s{}.
membership(Mem, S0) ->
    %% (Or the batch that came with it said that the group was deleted.)
    case new_mem(Mem, S0) of
        #s{leaving = undefined} = S -> S;
        #s{leaving = Why} = S -> left_out(Why, S)
    end.

new_mem(Mem, #s{d = #d{mem = Mem}} = S) -> S;
new_mem(Mem, #s{self = Self, d = #d{mem = Old, view = V} = D, linked = L} = S0) ->
    Was = sderl_membership:members(Old),
    Is = sderl_membership:members(Mem),
    %% (The batch is not committed yet: the coordinator has to tell who goes, and to be told.)
    Peers = case S0 of
        #s{role = coord} -> S0#s.peers;
        #s{mode = majority} -> S0#s.peers;
        _ -> maps:with([S0#s.lead | Is], S0#s.peers)
    end,
    Before = case S0#s.mode of majority -> Old; available -> undefined end,
    S1 = fx({members, Is}, S0#s{d = D#d{mem = Mem, view = maps:with(Is, V), before = Before},
                                down = maps:with(Is, S0#s.down), peers = Peers}),
    S2 = case Is -- Was of
        [] -> S1;
        In -> lists:foldl(fun(N, S) ->
                  case is_map_key(N, L) of
                      true when N =/= Self -> sderl_core:ask(N, S);
                      _ -> S
                  end
              end, event(members_added, #{nodes => In}, S1), In)
    end,
    {Forgotten, Out} = lists:partition(fun(N) -> sderl_membership:is_known(N, Mem) end, Was -- Is),
    S3 = lists:foldl(fun({Ns, Why}, S) -> event(members_removed, Why#{nodes => Ns}, S) end, S2,
                     [E || {[_ | _], _} = E <- [{Out, #{}}, {Forgotten, #{reason => forgotten}}]]),
    case lists:member(Self, Is) of
        true -> S3;
        false -> S3#s{leaving = removed}
    end.

%% The last thing this member does for the group (rule 5): answers that the last batch holds are
%% given, everything else was not applied.
-spec leave(removed | deleted, #s{}) -> #s{}.
leave(Why, #s{self = Self, out = Out, abroad = Abroad, sessions = Sess, d = #d{sid = Sid, lineage = E}} = S) ->
    case {Out, Sess, lists:delete(E, Abroad)} of
        {undefined, _, _} -> left(Why, S);
        {{R, List}, #{Self := {Sid, R, As}}, _} -> left(Why, reply(List, As, S));
        %% (Not in this log. A coordinator of another epoch, to which it went too, may have gone on with it without us.)
        {{_, List}, _, [_ | _]} when Why =:= removed -> left(Why, unsettled(List, S));
        {{_, List}, _, _} -> left(Why, refuse(List, S))
    end.

left(Why, #s{queue = Q, deferred = Deferred, d = #d{mem = Mem}} = S) ->
    Waiting = Q ++ [{F, Op} || {_, F, Op} <- Deferred],
    fx({left, Why, Mem}, refuse(Waiting, S#s{out = undefined, queue = [], deferred = [], leaving = Why})).

%% The same where no batch of our own log says so. A list that went to a coordinator may be in a batch that did not
%% reach us, and stand where they go on without us: `no` would say that it was not applied.
%% And a batch that did reach us may have reached nobody else, as long as nobody has said that all have it: `yes` would
%% be on this member alone.
-spec left_out(removed | deleted, #s{}) -> #s{}.
left_out(removed, #s{self = Self, abroad = [_ | _], out = {R, List}, sessions = Sess, mine = Mine, d = #d{sid = Sid}} = S) ->
    case Sess of
        #{Self := {Sid, R, _}} when Mine =:= undefined -> leave(removed, S);
        _ -> left(removed, unsettled(List, S))
    end;
left_out(Why, S) -> leave(Why, S).

%% The shell ends this member without waiting until the others have ordered that. They are told.
-spec depart(#s{}) -> #s{}.
depart(#s{self = Self, now = Now, clock = Clock, d = #d{mem = Mem} = D} = S0) ->
    Without = sderl_membership:remove([Self], (Now + Clock) div 1000, Mem),
    S = lists:foldl(fun(N, A) -> send(N, {mem, Without}, send(N, away, A)) end, S0, maps:keys(S0#s.peers)),
    left_out(removed, S#s{d = D#d{mem = Without}}).

%% Nobody here will ever know. (But that we are no member any more is so. Who asked for that and was told so by our
%% predecessor, which died as it left, has the same answer from us.)
unsettled(List, #s{self = Self, mine = Mine} = S) ->
    {Settled, Open} = lists:partition(fun({_, Op}) -> settles(Op, Self) end, List),
    {Out, Refused} = case Mine of
        {_, As} ->
            Ours = [{F, A} || {F, _, A} <- settled(List, As, S), F =/= none],
            lists:partition(fun({F, Op}) -> Op =/= delete andalso lists:member({F, ok}, Ours) end, Settled);
        undefined -> {[], Settled}
    end,
    Replies = [{F, unknown} || {F, _} <- Open, F =/= none] ++ [{F, ok} || {F, _} <- Out],
    %% (Who saw our predecessor die asks again, in this very step.)
    refuse(Refused, fx({replies, Replies}, S#s{mine = undefined, old = {answered, Replies}})).

settles({remove, Nodes, _}, Self) -> Nodes -- [Self] =:= [];
settles(Op, _) -> Op =:= delete.

refuse(List, S) -> fx({replies, [{F, {no, not_member}} || {F, _} <- List, F =/= none]}, S).

-spec gone(removed | deleted, sderl_membership:t(), node(), #s{}) -> #s{}.
%% (Nobody is left to say that all have the batch by which we go: we had promised to follow another.)
gone(_, _, _, #s{leaving = L, role = orphan} = S) when L =/= undefined -> left_out(L, S);
gone(_, _, _, #s{leaving = L} = S) when L =/= undefined -> S;
gone(deleted, _, N, S) ->
    case in_order(delete, N, S) of
        alone -> leave(deleted, S);
        S1 -> S1
    end;
gone(removed, Mem, N, #s{self = Self, now = Now, clock = Clock, d = #d{mem = Mine} = D} = S) ->
    M = sderl_core:union(Mem, Mine, S),
    case sderl_membership:is_member(Self, M) of
        %% It is it that is out, by an order that did not reach us.
        true -> sderl_core_peers:mem(Mem, N, S);
        false ->
            case in_order({remove, [Self], (Now + Clock) div 1000}, N, S) of
                alone -> left_out(removed, S#s{d = D#d{mem = M}});
                S1 -> S1
            end
    end.

%% Who is told this by another component does not vanish from its own: a coordinator would leave
%% followers that wait for it, a follower a batch that waits for its acknowledgement, and names
%% without a home. It is ordered as if a client had asked for it; meanwhile we are told again.
%% Nobody waits for an orphan whose own component tells it, or whose table is not whole.
%% And no component gives itself up to one that takes its coordinator for none of its members.
in_order(Op, Teller, #s{role = joining, self = Self, lead = Self} = S) ->
    in_order(Op, Teller, sderl_core_merge:resume(S));
in_order(Op, Teller, #s{role = R, self = Self, queue = Q, out = Out, d = #d{view = V, syncing = Syncing}} = S) ->
    Others = [N || N := live <- V, N =/= Self, sderl_core:present(N, S)],
    Asked = lists:keymember(none, 1, Q) orelse (Out =/= undefined andalso lists:keymember(none, 1, element(2, Out))),
    Left = R =:= orphan andalso (Syncing orelse lists:member(Teller, Others)),
    if
        Others =:= []; Left -> alone;
        Asked; R =/= coord, R =/= follower -> S;
        true -> op(none, Op, S)
    end.

%% ---------------------------------------------------------------- the coordinator's side

-spec req(term(), tuple(), node(), #s{}) -> #s{}.
req(E, Seg, _N, #s{lead = Self, self = Self, d = #d{lineage = E}} = S) ->
    enqueue(Seg, S);
req(_, _, N, #s{d = #d{epoch = E}} = S) -> send(N, {not_lead, E}, S).

%% (A member that is aside has not the names that it asks for: its own waits until it has them.)
enqueue({O, _, _, _} = Seg, #s{held = Held, d = #d{view = V}} = S) when is_tuple(map_get(O, V)) ->
    S#s{held = Held#{O => Seg}};
enqueue({O, Sid, R, _} = Seg, #s{reqs = Rs, d = #d{lineage = E}} = S) ->
    Sess = case faulty(forget_session, S) of true -> #{}; false -> S#s.sessions end,
    case Sess of
        #{O := {Sid, R, As}} ->
            %% Applied before: answered again, if it is still in flight once that has landed (a
            %% member that got the batch as part of a snapshot has no answers of its own).
            case S#s.flight of
                #flight{origins = Os, then = Then} = F ->
                    case lists:member(O, Os) of
                        true -> S#s{flight = F#flight{then = [{answer, O} | Then]}};
                        false -> answer_again(O, E, R, As, S)
                    end;
                undefined -> answer_again(O, E, R, As, S)
            end;
        #{O := {Sid, Newer, _}} when Newer > R -> S;
        _ -> S#s{reqs = [Seg | lists:keydelete(O, 1, Rs)]}
    end.

-doc "A member begins anew with us: lists that it sent before are not its last ones.".
-spec forget_list(node(), #s{}) -> #s{}.
forget_list(O, #s{held = Held, reqs = Reqs} = S) ->
    S#s{held = maps:remove(O, Held), reqs = lists:keydelete(O, 1, Reqs)}.

%% It counts again.
-spec unhold(node(), #s{}) -> #s{}.
unhold(O, #s{held = Held} = S) ->
    case Held of
        #{O := Seg} -> enqueue(Seg, S#s{held = maps:remove(O, Held)});
        _ -> S
    end.

answer_again(O, E, R, As, #s{self = O} = S) -> answers(E, R, As, S);
answer_again(O, E, R, As, S) -> send(O, {answers, E, R, As}, S).

-spec ack(term(), non_neg_integer(), tuple() | none, node(), #s{}) -> #s{}.
ack(E, Num, Seg, N, #s{lead = Self, self = Self, d = #d{lineage = E}} = S0) ->
    S1 = case Seg of none -> S0; _ -> enqueue(Seg, S0) end,
    S2 = case S1#s.syncs of
        #{N := Sy} = Syncs -> S1#s{syncs = Syncs#{N := Sy#sync{acked = Num}}};
        _ -> S1
    end,
    case S2#s.flight of
        #flight{num = Num, wait = W, had = Had} = F ->
            Has = case sderl_core_quorum:counts_acknowledgements(S2) of true -> [N | Had]; false -> Had end,
            landed(S2#s{flight = F#flight{wait = lists:delete(N, W), had = Has}});
        _ -> S2
    end;
ack(E, _Num, Seg, N, #s{d = #d{epoch = Mine}} = S) when Seg =/= none, E =< Mine ->
    send(N, {not_lead, Mine}, S);
ack(_, _, _, _, S) -> S.

%% Every live member has the batch. A coordinator that was itself stopped decides nothing before
%% it has exchanged epochs (rule 10).
landed(#s{flight = #flight{wait = []}, groggy = []} = S) ->
    case sderl_core_quorum:decides(S) of
        true -> commit_flight(S);
        false -> S
    end;
landed(S) -> S.

commit_flight(#s{flight = #flight{num = Num, origins = Os, then = Then}, self = Self, owed = Owed} = S0) ->
    S1 = committed(Num, S0#s{flight = undefined, owed = lists:usort(lists:delete(Self, Os) ++ Owed)}),
    S2 = sderl_core_quorum:committed(Num, lists:foldl(fun then/2, S1, Then)),
    case S2 of
        #s{leaving = undefined, role = joining} -> sderl_core_merge:disband(pay(S2));
        #s{leaving = undefined} -> S2;
        #s{leaving = Why} -> leave(Why, pay(S2))
    end.

then({adopt, Ns}, S) -> sderl_core_snapshot:start(Ns, S);
then({brought, N, Id, Last}, S) -> sderl_core_merge:brought(N, Id, Last, S);
then({answer, O}, #s{sessions = Sess, d = #d{lineage = E}} = S) ->
    case Sess of
        #{O := {_, R, As}} -> answer_again(O, E, R, As, S);
        _ -> S
    end;
then({left, Ns}, #s{self = Self, peers = P, committed = C, d = #d{lineage = E}} = S) ->
    %% Where we go ourselves all must know, to choose another.
    Tell = case lists:member(Self, Ns) of true -> maps:keys(P); false -> Ns end,
    S1 = lists:foldl(fun(N, A) -> send(N, {commit, E, C}, A) end, S, Tell),
    S1#s{peers = maps:without(Ns, P)}.

%% Tells the members whose lists were in the batch that it is committed.
pay(#s{owed = []} = S) -> S;
pay(#s{owed = Owed, unknown_answers = Unknown, d = #d{lineage = E}, committed = C} = S) ->
    %% Members whose answers are unknown hear so with the batch that says it.
    lists:foldl(fun(N, A) -> send(N, {commit, E, C}, A) end, S#s{owed = []},
                [N || N <- Owed, not lists:keymember(N, 1, Unknown)]).

%% Rechecks the flight after links or the view changed.
-spec reorder(#s{}) -> #s{}.
reorder(#s{flight = #flight{wait = W} = F, d = #d{view = V}} = S) ->
    landed(S#s{flight = F#flight{wait = [N || N <- W, maps:get(N, V, none) =:= live]}});
reorder(S) -> S.

-spec propose(module(), term(), #s{}) -> #s{}.
%% (A node that boots or joins does not decide alone what a member to which it has a link may decide.)
propose(Mod, Store, #s{role = coord, flight = undefined, groggy = [], leaving = undefined} = S0) ->
    S = sderl_core_clash:decisions(sderl_core_clash:ask(sderl_core_merge:take_offers(S0))),
    case sderl_core_peers:unmet(S) orelse not sderl_core_quorum:decides(S) of
        true -> S;
        false -> proposed(Mod, Store, S)
    end;
propose(_, _, S) -> S.

proposed(Mod, Store, S) ->
    Stalled = map_size(S#s.syncs) > 0 andalso faulty(rule_5, S),
    case S of
        #s{reqs = [], specials = []} -> pay(S);
        _ when Stalled -> S;
        _ -> pay(sent(sderl_core_decide:batch(Mod, Store, S)))
    end.

sent({[], _, _, S}) -> S;
sent({Items, Index, Then, S0}) ->
    #s{num = Prev, d = #d{lineage = E, view = View}, self = Self, now = Now, committed = C} = S0,
    Num = Prev + 1,
    %% The nodes that this batch removes still get it: it is the last they apply (rule 5).
    Out = case faulty(rule_5, S0) of
        false -> [];
        true -> lists:append([Ns || {mem, _, Ns} <- Items])
    end,
    Live = [N || N := live <- View, N =/= Self, is_map_key(N, S0#s.peers), not lists:member(N, Out)],
    %% A learner that does not keep up is let go before it costs memory; it starts again.
    Learners = [N || N := Sy <- S0#s.syncs, Num - Sy#sync.acked < ?LEARNER_LAG],
    Msg = {batch, E, Num, C, Items},
    S1 = lists:foldl(fun(N, A) -> send(N, Msg, A) end, S0#s{owed = []}, Live ++ Learners),
    %% A commit that was owed rode on the batch; who does not get the batch is told.
    S2 = pay(S1#s{owed = (S0#s.owed -- Live) -- Learners}),
    Syncs = maps:with(Learners, S2#s.syncs),
    S3 = (apply_items(Num, Items, Index, S2#s{syncs = Syncs}))#s{unknown_answers = []},
    Wait = case faulty(early_yes, S0) of true -> []; false -> Live end,
    Origins = origins(Items),
    landed(S3#s{flight = #flight{num = Num, wait = Wait, since = Now, then = Then, origins = Origins},
                abroad = case lists:member(Self, Origins) of true -> abroad(E, S3#s.abroad); false -> S3#s.abroad end}).

%% Members whose lists a batch answers.
-spec origins([term()]) -> [node()].
origins(Items) -> [O || {seg, O, _, _, _, _} <- Items].
