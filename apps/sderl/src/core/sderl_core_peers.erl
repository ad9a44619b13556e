%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_peers).
-moduledoc false.
%% Watches the other members, and whom they follow: ticks, suspicion, heartbeats, links and
%% processes that come and go, and the probes that find other components.
%%
%% A process that notices that its own tick is late was stopped or starved: its view of who is
%% silent is worth nothing. It decides and acknowledges nothing before it has heard the epoch of
%% every member it has a link to, or has waited the set-aside time at a regular tick (rule 10).

-include("sderl_core.hrl").

-define(MEMORY, 86_400).
%% How many peers an orphan asks with each tick.
-define(ASKED, 8).

-export([look/1, tick/1, lost/2, ended/2, away/2, mem/3, hb/4, hb_ack/4, heard_at/4, low/4]).
-export([found/4, follow/4, state/4, dropped/3, refused/4, not_lead/3]).

-import(sderl_core_state, [send/3, event/3, present/2, order/2, is_ordered/2, heard/2]).

%% ---------------------------------------------------------------- ticks

%% Whether we were stopped is checked before anything that came meanwhile is handled: all of it may
%% be in the mailbox before the next tick.
-spec look(#s{}) -> #s{}.
look(#s{now = Now, last_tick = Last, tick_ms = T} = S)
  when is_integer(Last), Now - Last > (5 * T) div 2 ->
    late(S#s{last_tick = Now});
look(S) -> S.

-spec tick(#s{}) -> #s{}.
tick(#s{now = Now} = S0) ->
    S = unconfirmed_tick(count_down(S0#s{last_tick = Now})),
    Looked = hellos(role_tick(sderl_core_majority:tick(S))),
    sderl_core_answer:requeue(sderl_core_view:waiters(Looked)).

late(#s{now = Now, peers = P, office = #office{flight = F} = Office, cand = C, mode = Mode,
        election = Election} = S0) ->
    Waiting = case F of undefined -> undefined; _ -> F#flight{since = Now} end,
    %% A peer that still owes us an answer when we are late again will send two; the first is stale.
    Asked = maps:keys(P),
    S1 = S0#s{unconfirmed = Asked ++ [N || N <- S0#s.unconfirmed, is_map_key(N, P)],
              unconfirmed_since = Now,
              lead_heard = Now,
              election = Election#election{orphan_since = Now},
              office = Office#office{flight = Waiting},
              %% A promise in a majority group holds for a fixed time, even if its candidate is
              %% stopped.
              cand = case C of #cand{} when Mode =:= available -> C#cand{since = Now}; _ -> C end,
              peers = maps:map(fun(_, X) -> X#peer{heard = Now} end, P)},
    lists:foldl(fun(N, S) -> send(N, query, S) end, S1, Asked).

unconfirmed_tick(#s{unconfirmed = [_ | _] = Silent, unconfirmed_since = G, now = Now,
                    aside_ms = A} = S)
  when Now - G > A ->
    awake(Silent, sderl_core_write:wait_again(Silent, S#s{unconfirmed = []}));
unconfirmed_tick(S) -> S.

awake(_, #s{role = orphan} = S) -> sderl_core_elect:elect(S);
%% A higher epoch was seen since this one began: we stand for election. A member that promised that
%% epoch may have said earlier that it follows us, and only whether it promises shows if it does; a
%% coordinator would refuse. And a silent peer may have followed another coordinator, which answered
%% the operations that it had sent us.
awake(Silent, #s{role = coord, mode = available, highest = Highest,
                 d = #d{lineage = {C, _}, view = V}} = S)
  when C >= 0 ->
    case Highest > C orelse lists:any(fun(N) -> maps:get(N, V, none) =:= live end, Silent) of
        true -> sderl_core_elect:candidate(sderl_core_role:leave_office(S));
        false -> sderl_core_write:reorder(S)
    end;
awake(_, S) -> sderl_core_write:reorder(S).

%% Asks the linked members that have not said hello. A coordinator also asks members that do not
%% answer its heartbeats: their process may have ended, and their node knows why.
hellos(#s{linked = L, peers = P, self = Self, role = R, now = Now, aside_ms = A, tick_ms = T,
          joining = #joining{to = To}} = S) ->
    Silent = fun(N) ->
        case P of
            %% The process to which we gave up our component may have ended, or its node may have
            %% moved to another group.
            #{N := #peer{heard = At}} when R =:= joining, element(1, To) =:= N -> Now - At > 2 * T;
            #{N := #peer{heard = At}} -> R =:= coord andalso Now - At > A;
            _ -> true
        end
    end,
    %% A member that an uncommitted batch removes is asked, too: the batch may wait only for the
    %% answer that it has left.
    Asked = [N || N <- maps:keys(L), N =/= Self, Silent(N), sderl_core_state:is_known(N, S)],
    lists:foldl(fun sderl_core_state:ask/2, S, Asked).

role_tick(#s{unconfirmed = [_ | _]} = S) -> S;
role_tick(#s{role = coord} = S) ->
    S1 = prune(forget(slow(sderl_core_role:heartbeat(S)))),
    sderl_core_merge:tick(sderl_core_snapshot:tick(S1));
role_tick(#s{role = follower, lead = Lead, lead_heard = H, now = Now, aside_ms = A, tick_ms = T,
             election = Election} = S)
  when Now - H > A + 2 * T ->
    S1 = event(coordinator_changed, #{old => Lead, reason => silent}, S),
    sderl_core_elect:orphan(S1#s{election = Election#election{suspect = Lead}});
role_tick(#s{role = candidate, cand = #cand{since = At} = C, now = Now, aside_ms = A} = S)
  when Now - At > A ->
    sderl_core_elect:finish(S#s{cand = C#cand{wait = []}});
%% A member that has left answers no candidate, but says that it has left when it is asked who it
%% is.
role_tick(#s{role = candidate, mode = majority, cand = #cand{wait = Wait}} = S) ->
    lists:foldl(fun sderl_core_state:ask/2, S, Wait);
role_tick(#s{role = orphan} = S0) ->
    case sderl_core_elect:elect(S0) of
        %% The others may have gone on without us, or removed us: ask.
        #s{role = orphan} = S -> ask_some(S);
        S -> S
    end;
role_tick(#s{role = joining, joining = #joining{to = {To, _, At}}, now = Now, aside_ms = A,
             lead = L, self = Self} = S) ->
    case Now - At > 2 * A orelse is_gone(To, S) of
        true -> sderl_core_elect:resume_elsewhere(S);
        false when L =:= Self -> slow(sderl_core_role:heartbeat(S));
        false -> S
    end;
role_tick(S) -> S.

%% Asks the next few peers in the order of names, from our own name on, so that each is asked within
%% some ticks. If all members are orphans and ask all, that is a message with the whole membership
%% for each pair of nodes in each tick: a hundred nodes would do nothing else, and remain orphans.
ask_some(#s{peers = P, election = #election{asked = Last} = Election, self = Self} = S) ->
    From = case Last of undefined -> Self; _ -> Last end,
    {Before, After} = lists:partition(fun(N) -> N =< From end, lists:sort(maps:keys(P))),
    case lists:sublist(After ++ Before, ?ASKED) of
        [] -> S;
        Next ->
            Asked = S#s{election = Election#election{asked = lists:last(Next)}},
            lists:foldl(fun sderl_core_state:ask/2, Asked, Next)
    end.

%% If we have heard that the node is no member any more, it takes nobody in. If its heartbeats go
%% on, another component has added it: the snapshot will tell us.
is_gone(To, #s{now = Now, tick_ms = T, peers = P, d = #d{mem = Mem}}) ->
    Talks = case P of
        #{To := #peer{heard = At}} -> Now - At =< 2 * T;
        _ -> false
    end,
    not (Talks orelse sderl_membership:is_known(To, Mem)).

%% Rule 12: a member that does not acknowledge in time no longer counts. If more than half of the
%% members are silent, it may be our messages that do not come through: then they elect another
%% coordinator, and we hear of it. We go on without them only after a longer time.
slow(#s{mode = majority} = S) -> sderl_core_majority:slow(S);
slow(#s{office = #office{flight = #flight{wait = [_ | _] = W, since = At}}, num = Num, now = Now,
        aside_ms = A, d = #d{lineage = E, view = V}} = S)
  when Now - At > A ->
    Silent = [N || N <- W, is_map_key(N, V)],
    Hung = sderl_core_elect:hung_aside(S),
    Outnumbered = 2 * length(Silent ++ Hung) > length([N || N := live <- V] ++ Hung),
    case Outnumbered andalso Now - At =< A + sderl_core_elect:lone_ms(S) of
        %% Members that the batch removed may have left without telling us.
        _ when Silent =:= [] -> sderl_core_write:reorder(forsake(W, S));
        true -> S;
        false ->
            View = maps:merge(V, #{N => {E, Num} || N <- Silent}),
            Aside = sderl_core_view:change_view(View, [], forsake(W -- Silent, S)),
            sderl_core_write:reorder(Aside)
    end;
slow(S) -> S.

forsake([], S) -> S;
forsake(Removed, S) -> order(#forsake{nodes = Removed}, S).

%% Every member counts how long each other member has been away: outside the component and without a
%% link to this node. So the count survives a takeover. A new process begins to count for all of
%% them, also for members whose death no living member has seen.
count_down(#s{forget_ms = infinity} = S) -> S;
count_down(#s{self = Self, linked = L, down = Down, now = Now, d = #d{mem = Mem, view = V}} = S) ->
    Away = [N || N <- sderl_membership:members(Mem), N =/= Self, not is_map_key(N, V),
                 maps:get(N, L, mute) =:= mute],
    S#s{down = #{N => maps:get(N, Down, Now) || N <- Away}}.

%% Rule 6: the coordinator forgets members that were away for `forget_ms`, because some node names
%% never come back; but not a member to which one of the others has a link. A forgotten node is not
%% removed: if it says hello it is a member again.
forget(#s{forget_ms = infinity} = S) -> S;
forget(#s{forget_ms = Ms, down = Down, now = Now, linked = L, peers = P} = S) ->
    Links = [Ls || _ := #peer{links = Ls} <- P],
    Seen = fun(N) ->
        not is_map_key(N, L) andalso lists:any(fun(Ls) -> lists:member(N, Ls) end, Links)
    end,
    Ordered = is_ordered(forget, S),
    case [N || N := At <- Down, Now - At > Ms, not Ordered, not Seen(N)] of
        [] -> S;
        Ns -> order(#forget{nodes = Ns, time = seconds(S)}, S)
    end.

%% Rule 1: removed members are remembered for a day, so that they are told when they return;
%% forgotten ones too, so that they are looked for.
prune(#s{d = #d{mem = Mem}} = S) ->
    Before = seconds(S) - ?MEMORY,
    case sderl_membership:prune(Before, Mem) =/= Mem of
        true -> order(#prune{before = Before}, S);
        false -> S
    end.

seconds(#s{now = Now, clock = Clock}) -> (Now + Clock) div 1000.

%% ------------------------------------------------------------ links and processes that come and go

-spec lost(node(), #s{}) -> #s{}.
%% A majority group cannot know whether the node or the link is lost, so names stay until their
%% lease is over.
lost(N, #s{mode = majority} = S) -> lost(N, keep, S);
lost(N, S) -> lost(N, drop, S).

-doc "The library stops on that node: the names that have their home there go.".
-spec ended(node(), #s{}) -> #s{}.
ended(N, #s{mode = majority} = S) -> lost(N, drop, S);
ended(_, S) -> S.

-doc "As `lost/2`, but the names that have their home there stay.".
-spec away(node(), #s{}) -> #s{}.
away(N, S) -> lost(N, keep, S).

lost(N, Names, #s{unconfirmed = G, office = #office{held = Held} = Office} = S0) ->
    S1 = S0#s{unconfirmed = [M || M <- G, M =/= N],
              office = Office#office{held = maps:remove(N, Held)}},
    Left = sderl_core_merge:forget_join(N, sderl_core_merge:forget_offer(N, S1)),
    S2 = sderl_core_snapshot:stop(N, Left),
    S3 = lost_as(N, Names, S2),
    case G =/= [] andalso S3#s.unconfirmed =:= [] of
        true -> awake([], S3);
        false -> S3
    end.

lost_as(N, Names, #s{lead = Self, self = Self, num = Num, d = #d{lineage = E, view = V}} = S0) ->
    S1 = case V of
        #{N := live} when Names =:= keep -> sderl_core_view:change_view(V#{N := {E, Num}}, [], S0);
        #{N := _} when Names =:= drop -> sderl_core_view:change_view(maps:remove(N, V), [N], S0);
        _ -> S0
    end,
    S2 = sderl_core_write:reorder(sderl_core_view:waiters(S1)),
    case S2#s.joining#joining.to of
        {N, _, _} -> sderl_core_elect:resume_elsewhere(S2);
        _ -> S2
    end;
lost_as(N, _, #s{role = joining, joining = #joining{to = {N, _, _}}} = S) ->
    sderl_core_elect:resume(S);
lost_as(N, _, #s{role = follower, lead = N} = S) -> sderl_core_elect:orphan(S);
lost_as(N, _, #s{role = candidate, cand = #cand{wait = W, joined = J} = C} = S) ->
    sderl_core_elect:maybe_finish(S#s{cand = C#cand{wait = lists:delete(N, W),
                                                    joined = maps:remove(N, J)}});
lost_as(_, _, #s{role = orphan} = S) -> sderl_core_elect:elect(S);
lost_as(_, _, S) -> S.

%% Rule 4. Only the coordinator changes the membership; a member that hears of another one tells it.
-spec mem(sderl_membership:t(), node(), #s{}) -> #s{}.
mem(Mem, _N, #s{d = #d{mem = Mem}} = S) -> S;
%% In a majority group only ordered changes count. But a node speaks for itself: a forgotten one
%% returns, and one that heard of its adding, which was not committed then, is added now.
mem(Mem, N, #s{mode = majority, role = R, d = #d{mem = Mine}} = S) ->
    With = sderl_membership:recall(N, sderl_membership:merge(maps:with([N], Mem), Mine)),
    Returns = sderl_membership:is_member(N, With) andalso not sderl_membership:is_member(N, Mine),
    case R =:= coord andalso Returns andalso not is_ordered(merge_membership, S) of
        true -> order(#merge_membership{membership = With, from = N}, S);
        false -> S
    end;
mem(Mem, N, #s{role = R, d = #d{mem = Mine}, office = #office{changes = Changes}, lead = L} = S) ->
    case sderl_core_state:union(Mem, Mine, S) of
        Mine -> S;
        Merged when R =:= coord ->
            Change = #merge_membership{membership = Mem, from = N},
            case lists:member(Change, Changes) of
                true -> S;
                false ->
                    %% The return of a forgotten node is not a difference of configurations.
                    Known = sderl_membership:members(Mine) ++ sderl_membership:forgotten(Mine),
                    Diff = {sderl_membership:members(Merged) -- Known,
                            sderl_membership:members(Mine) -- sderl_membership:members(Merged)},
                    S1 = case Diff of
                        {[], []} -> S;
                        {In, Out} ->
                            event(config_differs, #{node => N, added => In, removed => Out}, S)
                    end,
                    %% The snapshot begins anew once the change is ordered.
                    sderl_core_snapshot:stop(N, order(Change, S1))
            end;
        _ when R =:= follower, L =/= N -> send(L, {mem, Mem}, S);
        _ -> S
    end.

%% ---------------------------------------------------------------- heartbeats, probes, epochs

-spec hb(epoch(), non_neg_integer(), node(), #s{}) -> #s{}.
hb(E, Num, N, #s{role = follower, lead = N, d = #d{lineage = E}} = S0) ->
    S = (sderl_core_write:committed(Num, S0))#s{lead_heard = S0#s.now},
    case Num > S#s.num of
        true -> send(N, {gap, E, S#s.num}, S);
        false -> send(N, {hb_ack, E, lists:sort(maps:keys(S#s.linked))}, S)
    end;
%% In a majority group the sender need not be the coordinator of our log.
hb(E, Num, N, #s{mode = majority, role = candidate, cand = #cand{joined = J, was = Was},
                 d = #d{lineage = Lin}} = S)
  when map_size(J) =:= 1, E > Lin, E >= Was -> hb(E, Num, N, sderl_core_role:withdraw(S));
%% The coordinator that we want to replace lives. We do not answer with the epoch that we promised
%% ourselves, because that coordinator would then take a new epoch.
hb(E, Num, N, #s{role = candidate, cand = #cand{joined = J}, d = #d{lineage = E}} = S) ->
    case map_size(J) of
        1 -> hb(E, Num, N, sderl_core_role:withdraw(S));
        _ -> S
    end;
hb(E, _, N, #s{d = #d{epoch = Mine}, lead = L} = S) when E < Mine ->
    send(N, {low, Mine, L}, introduced(N, heard(E, S)));
hb(E, _, N, #s{role = orphan, d = #d{lineage = E}} = S) ->
    send(N, sderl_core_state:hello_msg(S), S);
hb(E, _, N, #s{role = orphan, unconfirmed = []} = S) -> sderl_core_join:give_up(N, E, S);
hb(E, _, N, #s{role = coord, unconfirmed = []} = S) -> sderl_core_join:give_up(N, E, S);
%% A majority promised that epoch: ours has ended, and our coordinator does not know it yet.
hb(E, _, N, #s{mode = majority, role = follower, lead = L} = S) when L =/= N ->
    sderl_core_join:give_up(N, E, sderl_core_role:step_down(S));
hb(E, _, N, #s{role = follower, lead = L} = S) when L =/= N -> send(L, {found, N, E}, S);
hb(_, _, N, #s{role = follower} = S) ->
    %% Our own coordinator leads another epoch, and we missed its takeover.
    sderl_core_elect:orphan(send(N, sderl_core_state:hello_msg(S), S));
%% The coordinator could not take our offer when it came, or dropped it with its office: we offer
%% again.
hb(E, _, N, #s{role = joining, joining = #joining{to = {N, _, At}},
               office = #office{flight = undefined}, now = Now, tick_ms = T} = S)
  when Now - At >= 2 * T ->
    sderl_core_join:send_join(N, E, S);
hb(E, _, N, #s{role = joining} = S) -> low(E, N, N, leads(E, N, S));
hb(_, _, _, S) -> S.

%% We may go to that coordinator next.
leads(E, N, #s{peers = P, now = Now} = S) ->
    case P of
        #{N := Peer} -> S#s{peers = P#{N := Peer#peer{lead = N, said = Now, epoch = E}}};
        _ -> S
    end.

%% The hello of a new member came while we had no coordinator to tell of it: we ask for it again.
introduced(N, #s{mode = available, role = follower} = S) ->
    case sderl_core_state:is_member(N, S) of
        true -> S;
        false -> sderl_core_state:ask(N, S)
    end;
introduced(_, S) -> S.

-spec hb_ack(epoch(), [node()], node(), #s{}) -> #s{}.
hb_ack(E, Links, N, #s{role = coord, d = #d{lineage = E, view = V}, peers = P} = S0) ->
    S = case P of
        #{N := Peer} -> S0#s{peers = P#{N := Peer#peer{links = Links}}};
        _ -> S0
    end,
    case is_tuple(maps:get(N, V, none)) andalso not sderl_core_snapshot:is_learner(N, S) of
        true when S#s.mode =:= majority ->
            case sderl_core_quorum:has_committed(S) of
                true -> sderl_core_snapshot:start([N], S);
                false -> sderl_core_state:ask(N, S)
            end;
        true -> sderl_core_snapshot:start([N], S);
        false -> S
    end;
hb_ack(_, _, _, S) -> S.

-doc """
The node of the coordinator has sent a heartbeat for it (`sderl_heart`): the follower counts as
having heard it at the time when the other process is known to have run, not when it looked.
""".
-spec heard_at(integer(), node(), #s{}, #s{}) -> #s{}.
heard_at(At, N, #s{role = follower, lead = N, lead_heard = Heard},
         #s{role = follower, lead = N} = S) ->
    S#s{lead_heard = max(At, Heard)};
heard_at(_, _, _, S) -> S.

%% Our heartbeat met a member that has promised a higher epoch. If it has a coordinator, that one
%% will probe us. If it promised a candidate that failed, it follows nobody, and only a higher epoch
%% brings it back.
-spec low(epoch(), node() | undefined, node(), #s{}) -> #s{}.
low(E, L, N, #s{role = coord, self = Self, unconfirmed = [], d = #d{lineage = Mine}} = S0)
  when E > Mine ->
    %% In any case it no longer waits to be taken in by us.
    #s{peers = P} = S1 = heard(E, sderl_core_merge:forget_offer(N, S0)),
    S = S1#s{peers = case P of #{N := Peer} -> P#{N := Peer#peer{epoch = E}}; _ -> P end},
    case L of
        undefined ->
            %% It may have the log of a group that ran before we booted, and will lead it or follow
            %% its coordinator.
            case sderl_core_view:unmet(S) of
                true -> S;
                false -> sderl_core_elect:candidate(sderl_core_role:leave_office(S))
            end;
        Self -> S;
        _ -> send(L, sderl_core_state:hello_msg(S), S)
    end;
%% The coordinator that we want to join joins another one itself: we go there, too.
low(E, L, N, #s{role = joining, joining = #joining{to = {To, Offered, _}}, self = Self} = S0)
  when E > Offered orelse N =:= To, L =/= undefined, L =/= To, L =/= Self ->
    S = heard(E, S0),
    case S of
        #s{office = #office{flight = undefined}, peers = #{L := _}} ->
            sderl_core_join:send_join(L, E, S);
        #s{peers = #{L := _}} -> sderl_core_join:join_next(L, E, S);
        _ -> S
    end;
low(_, _, _, S) -> S.

-spec found(node(), epoch(), node(), #s{}) -> #s{}.
found(C, E, N, #s{role = coord, unconfirmed = G, d = #d{lineage = Mine, view = V}} = S)
  when E > Mine ->
    case {present(C, S), V} of
        {true, _} -> sderl_core_join:give_up(C, E, S);
        %% We cannot go there, but some member may see all of us and that coordinator, too (rule
        %% 11). The member that told us could go there alone, but would lose others that we see: the
        %% other component would stay as it is, and one of these would tell us next.
        {false, #{N := live}} when G =:= [] ->
            sderl_core_elect:lost_report(Mine, C, N, heard(E, S));
        _ -> S
    end;
%% We gave our component up when this member could not yet see the coordinator that we joined.
found(C, E, N, #s{role = R, lead = L} = S) when R =/= joining, L =/= N, L =/= S#s.self ->
    send(N, {follow, C, E}, S);
found(_, _, _, S) -> S.

%% Our coordinator sends us to another one, whose component we had told it of. An election among
%% ourselves first would make a third component.
-spec follow(node(), epoch(), node(), #s{}) -> #s{}.
follow(C, E, N, #s{role = follower, lead = N, d = #d{epoch = Mine}} = S) when E >= Mine ->
    case present(C, S) of
        true -> sderl_core_join:give_up(C, E, sderl_core_role:become_orphan(S));
        false -> sderl_core_elect:orphan(S)
    end;
follow(_, _, _, S) -> S.

-spec state(epoch(), node() | undefined, node(), #s{}) -> #s{}.
state(E, L, N, #s{unconfirmed = G} = S0) ->
    S1 = heard(E, S0#s{unconfirmed = lists:delete(N, G)}),
    #s{role = R, self = Self, d = #d{view = V, lineage = Mine}} = S1,
    case R =:= coord andalso E > Mine andalso L =/= undefined andalso L =/= Self
         andalso is_map_key(N, V) of
        true -> ruled(true, E, L, N, S1#s{unconfirmed = []});
        false when G =/= [], S1#s.unconfirmed =:= [] -> awake([], S1);
        false -> S1
    end.

-spec dropped(epoch(), node(), #s{}) -> #s{}.
dropped(E, N, #s{role = orphan, unconfirmed = [], d = #d{lineage = E, epoch = E}} = S) ->
    sderl_core_join:give_up(N, E, S);
dropped(E, N, #s{role = follower, lead = N, unconfirmed = [],
                 d = #d{lineage = E, epoch = E}} = S) ->
    sderl_core_join:give_up(N, E, sderl_core_role:step_down(S));
dropped(_, _, S) -> S.

%% Rule 9: a coordinator whose batch is refused for a higher epoch drops its unanswered tail and
%% goes there alone: if it waited for the others, or led them in a new epoch, it would answer
%% operations that they do not have. A coordinator with no batch out takes its component along.
-spec refused(epoch(), node() | undefined, node(), #s{}) -> #s{}.
refused(E, L, N, #s{role = R, self = Self, lead = Self, office = #office{flight = F},
                    d = #d{lineage = Mine}} = S)
  when E > Mine, (R =:= coord orelse R =:= joining) ->
    Out = F =/= undefined andalso lists:member(N, F#flight.wait),
    ruled(Out, E, L, N, S);
refused(_, _, _, S) -> S.

ruled(_, E, undefined, N, #s{role = coord} = S) -> low(E, undefined, N, S);
ruled(true, E, L, _, S0) ->
    S = heard(E, S0),
    case L =/= undefined andalso present(L, S) of
        true -> sderl_core_join:give_up(L, E, sderl_core_role:step_down(S));
        false -> sderl_core_elect:orphan(S)
    end;
ruled(false, E, L, _, #s{role = coord} = S) ->
    case present(L, S) of
        true -> sderl_core_join:give_up(L, E, S);
        false -> S
    end;
ruled(false, _, _, _, S) -> S.

-spec not_lead(epoch(), node(), #s{}) -> #s{}.
not_lead(E, N, #s{role = follower, lead = N} = S) -> sderl_core_elect:orphan(heard(E, S));
not_lead(_, _, S) -> S.
