%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_leave).
-moduledoc false.
%% A member leaves the group, or hears that it, or another member, has left.

-include("sderl_core.hrl").

-export([depart/1, commit/4, gone/4]).

-import(sderl_core_state, [send/3]).

%% The shell ends this member and does not wait until that is ordered; the others are told.
-spec depart(#s{}) -> #s{}.
depart(#s{self = Self, now = Now, clock = Clock, d = #d{mem = Mem} = D} = S0) ->
    Without = sderl_membership:remove([Self], (Now + Clock) div 1000, Mem),
    S = lists:foldl(fun(N, A) -> send(N, {mem, Without}, send(N, away, A)) end, S0,
                    maps:keys(S0#s.peers)),
    sderl_core_answer:left_out(removed, S#s{d = D#d{mem = Without}}).

-spec commit(term(), non_neg_integer(), node(), #s{}) -> #s{}.
commit(E, Num, N, #s{d = #d{lineage = E}, lead = N, now = Now} = S) ->
    left(sderl_core_write:committed(Num, S#s{lead_heard = Now}));
commit(_, _, _, S) -> S.

%% The batch that removed us, or the coordinator, is on all members: only now we leave.
left(#s{leaving = undefined, lead = L, peers = P, d = #d{mem = M}} = S) ->
    case sderl_membership:is_member(L, M) of
        true -> S;
        false -> sderl_core_elect:orphan(S#s{peers = maps:remove(L, P)})
    end;
left(#s{leaving = Why, num = Num, committed = C} = S) when C >= Num ->
    sderl_core_answer:leave(Why, S);
left(S) -> S.

-spec gone(removed | deleted, sderl_membership:t(), node(), #s{}) -> #s{}.
%% No member is left that could tell us that all have the batch by which we leave, because we had
%% promised to follow another coordinator.
gone(Why, Mem, N, #s{leaving = L, role = Role, mode = Mode} = S) when L =/= undefined ->
    TellerIn = sderl_membership:is_member(N, Mem),
    case Role =:= orphan andalso (TellerIn orelse sderl_core_quorum:may_go(S)) of
        true -> sderl_core_answer:left_out(L, S);
        false when Mode =:= majority, Why =:= removed -> count_out(N, Mem, S);
        false -> S
    end;
gone(deleted, _, N, S) ->
    case in_order(delete, N, S) of
        alone -> sderl_core_answer:left_out(deleted, S);
        S1 -> S1
    end;
gone(removed, Mem, N, #s{self = Self, now = Now, clock = Clock, d = #d{mem = Mine} = D} = S) ->
    M = sderl_core_state:union(Mem, Mine, S),
    TellerIn = sderl_membership:is_member(N, Mem),
    case sderl_membership:is_member(Self, M) of
        true -> sderl_core_peers:mem(Mem, N, count_out(N, Mem, S));
        %% The member that says so may itself have left by a batch that a majority does not have.
        false when S#s.mode =:= majority, not TellerIn -> count_out(N, Mem, S);
        false ->
            case in_order(#remove{nodes = [Self], time = (Now + Clock) div 1000}, N, S) of
                alone -> sderl_core_answer:left_out(removed, S#s{d = D#d{mem = M}});
                S1 -> S1
            end
    end.

%% The sender is removed itself, by a batch that may not have reached us. The batch that removes it,
%% or both of us, may have waited for it alone.
count_out(N, Mem, #s{d = #d{mem = Mine}} = S) ->
    Out = sderl_core_quorum:ended(N, Mem, S),
    sderl_core_write:reorder(not_awaited(N, sderl_core_state:union(Mem, Mine, S), Out)).

%% The sender's process has ended, whatever our view says: it will not lead us. (If it is added
%% again, it says hello.)
not_awaited(N, Mem, #s{mode = available, role = orphan, peers = P} = S) ->
    case sderl_membership:is_member(N, Mem) of
        true -> S;
        false -> S#s{peers = maps:remove(N, P)}
    end;
%% Nor will it take us in, however often it answers us.
not_awaited(N, Mem, #s{mode = available, role = joining, joining = #joining{to = {N, _, _}}} = S) ->
    case sderl_membership:is_member(N, Mem) of
        true -> S;
        false -> sderl_core_elect:resume(S)
    end;
not_awaited(N, Mem, #s{mode = majority, role = candidate, cand = #cand{wait = Wait} = Cand} = S) ->
    case sderl_membership:is_member(N, Mem) of
        true -> S;
        false -> sderl_core_elect:maybe_finish(S#s{cand = Cand#cand{wait = lists:delete(N, Wait)}})
    end;
not_awaited(_, _, S) -> S.

%% A member that is told by another component that it is removed does not leave its own component at
%% once: followers would wait for their coordinator, or a batch for a follower's acknowledgement,
%% and names would be left without a home. The removal is ordered here as if a client had asked for
%% it, and we are told again meanwhile. An orphan leaves at once if its own component tells it, or
%% if its table is not whole: nobody waits for it. No component joins one that does not count its
%% coordinator as a member.
in_order(Op, Teller, #s{role = joining, self = Self, lead = Self} = S) ->
    in_order(Op, Teller, sderl_core_elect:resume(S));
in_order(Op, Teller,
         #s{role = R, self = Self, mode = Mode, d = #d{view = V, syncing = Syncing}} = S) ->
    Others = [N || N := live <- V, N =/= Self, sderl_core_state:present(N, S)],
    Asked = sderl_core_clients:is_asked(none, S),
    %% In a majority group nobody waits for a candidate, or for a member that waits to be taken in,
    %% either; they would wait for ever.
    Alone = R =:= orphan orelse (Mode =:= majority andalso (R =:= candidate orelse R =:= joining)),
    Left = Alone andalso
        (Syncing orelse lists:member(Teller, Others) orelse follows_later(Teller, S)),
    if
        Others =:= []; Left -> alone;
        Asked; R =/= coord, R =/= follower -> S;
        true -> sderl_core_clients:op(none, Op, S)
    end.

%% In a majority group a log of an epoch later than ours, and later than any that we promised, has
%% all committed batches, whichever members our view says are in it.
follows_later(N,
              #s{mode = majority, cand = Cand, peers = P, d = #d{epoch = Epoch, lineage = Lin}}) ->
    Promised = case Cand of #cand{was = Was} -> Was; undefined -> Epoch end,
    case P of
        #{N := #peer{lead = Lead, epoch = E}} -> Lead =/= undefined andalso E > max(Promised, Lin);
        _ -> false
    end;
follows_later(_, _) -> false.
