%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_elect).
-moduledoc false.
%% Chooses the coordinator: takeover and handing over.
%%
%% Takeover: the first of the live members that are linked (the last coordinator, if only its
%% process is a new one, otherwise the lowest-named) asks all others to promise a higher epoch
%% (`collect`). A member that still follows a living coordinator refuses; the others answer with
%% their position and last batch. The candidate brings all to the longest log (`lead`), whose last
%% batch counts as in flight: it is committed when all have it. Members that are linked but silent
%% are set aside and keep their names; members whose link is gone lose theirs.

-include("sderl_core.hrl").

-export([wake/1, orphan/1, elect/1, candidate/1, collect/5, apart/5, joined/5, nack/5]).
-export([maybe_finish/1, finish/1, lost_report/4, handover/3, hung_aside/1, lone_ms/1]).
-export([resume/1, resume_elsewhere/1]).

-import(sderl_core_state, [fx/2, send/3, present/2]).

-spec wake(#s{}) -> #s{}.
wake(#s{role = orphan} = S) -> elect(S);
wake(S) -> S.

%% ---------------------------------------------------------------- takeover

-spec orphan(#s{}) -> #s{}.
%% A member still votes as long as it is not certain that a majority has removed it.
orphan(#s{leaving = removed, mode = majority, num = Num, committed = C} = S) when C < Num ->
    sderl_core_role:step_down(S);
orphan(#s{leaving = Why} = S) when Why =/= undefined -> sderl_core_answer:leave(Why, S);
orphan(S) -> elect(sderl_core_role:step_down(S)).

-spec elect(#s{}) -> #s{}.
elect(#s{unconfirmed = [_ | _]} = S) -> S;
elect(#s{election = #election{not_before = At}, now = Now} = S) when Now < At -> S;
elect(#s{role = orphan, mode = majority} = S) -> sderl_core_ballot:elect(S);
elect(#s{role = orphan, self = Self, d = #d{view = V, syncing = Syncing}, now = Now,
         election = #election{orphan_since = At, suspect = Suspect},
         tick_ms = T, aside_ms = A} = S) ->
    Here = [N || N := _ <- V, present(N, S), N =/= Suspect],
    Live = [N || N <- Here, map_get(N, V) =:= live],
    %% A member whose table is not whole may not lead; if it is alone it serves what it has.
    Can = sderl_core_role:in_order(
        case Live of [] -> [Self | lists:delete(Self, Here)]; _ -> Live end, S
    ),
    Wait = expected(S),
    case Can of
        _ when Wait -> S;
        [Self | _] when not Syncing -> candidate(S);
        [Self] -> candidate(S);
        _ ->
            Rank = length(lists:takewhile(fun(N) -> N =/= Self end, Can)),
            Late = case Syncing of
                false -> lists:member(Self, Can) andalso Now - At > T * (1 + Rank);
                %% The members with a whole table are gone; the tables of all others are like ours.
                true -> Live =:= [] andalso Now - At > 2 * A
            end,
            case Late of
                true -> candidate(S);
                false -> S
            end
    end;
elect(S) -> S.

%% Rule 9. Whether we wait for others, for a while, before we stand for election. A linked member
%% that has not said hello (its process, or ours, is a new one) may follow a living coordinator; a
%% coordinator that said hello will call us in, and so will a candidate that has our promise. We do
%% not wait for a node that has just booted and waits for us: the epoch that it leads is below our
%% log.
expected(#s{now = Now, election = #election{orphan_since = At},
            aside_ms = A})
  when Now - At > A -> false;
expected(#s{d = #d{epoch = {_, To} = E, lineage = Lin}, peers = P})
  when E > Lin, is_map_key(To, P) ->
    true;
expected(#s{d = #d{view = V, lineage = Lin}, linked = L, peers = P, self = Self,
            election = #election{orphan_since = At}}) ->
    lists:any(fun(N) ->
                  N =/= Self andalso is_map_key(N, L) andalso map_get(N, L) =/= away andalso
                      case P of
                          #{N := #peer{lead = Lead, said = T, epoch = E}} ->
                              Lead =:= N andalso T >= At andalso E >= Lin;
                          _ -> true
                      end
              end, maps:keys(V)).

-spec candidate(#s{}) -> #s{}.
candidate(S) -> candidate(#{}, S).

candidate(Flags, #s{mode = majority} = S) -> sderl_core_ballot:candidate(Flags, S);
candidate(Flags,
          #s{self = Self, d = #d{view = V, epoch = Was, lineage = Lin} = D, now = Now} = S0) ->
    {C, Self} = E = sderl_core_state:epoch(S0),
    Live = [N || N := live <- V, N =/= Self, present(N, S0)],
    Ask = case maps:get(Self, V, live) of
        _ when D#d.syncing -> [];
        {_, _} when Live =:= [] -> [N || N := _ <- V, N =/= Self, present(N, S0)];
        _ -> Live
    end,
    #s{election = #election{suspect = Suspect}} = S0,
    Cand = #cand{epoch = E, wait = lists:delete(Suspect, Ask), since = Now, was = Was,
                 joined = #{Self => {S0#s.num, S0#s.last}}},
    S1 = S0#s{role = candidate, lead = undefined, d = D#d{epoch = E}, cand = Cand, highest = C},
    maybe_finish(lists:foldl(fun(N, S) -> send(N, {collect, E, Lin, Flags}, S) end, S1, Ask)).

-spec collect(epoch(), epoch(), collect_flags(), node(), #s{}) -> #s{}.
collect(E, _, Flags, N, #s{mode = majority} = S) -> sderl_core_ballot:promise(E, Flags, N, S);
collect(E, Lin, _, N, #s{lead = L, d = #d{lineage = Own}} = S) when Lin =/= Own ->
    send(N, {apart, E, Own, L}, S);
collect(E, _, _, N, #s{role = orphan, d = #d{syncing = true, lineage = Own}} = S) ->
    send(N, {apart, E, Own, undefined}, S);
collect(E, _, Flags, N, #s{d = #d{epoch = Mine, syncing = Sy} = D, role = R, lead = L} = S0) ->
    S = sderl_core_state:heard(E, S0),
    Agreed = is_map_key(handover, Flags) orelse L =:= N,
    if
        E =< Mine; Sy -> send(N, {nack, E, Mine, L}, S);
        R =:= coord; R =:= joining -> send(N, {nack, E, Mine, L}, S);
        R =:= follower, not Agreed -> send(N, {nack, E, Mine, L}, S);
        true ->
            %% A batch in flight here counts: it is in the log that we answer with.
            S1 = sderl_core_role:become_orphan(S#s{d = D#d{epoch = E}}),
            send(N, {joined, E, S#s.num, S#s.last}, S1)
    end.

%% The member is in another component by now, or its table is not whole: it has no part in this
%% takeover. If its component is a higher one, we should join it rather than take over (rule 9). If
%% that one has no coordinator it may be choosing one: a candidate of a minority waits for that.
-spec apart(epoch(), epoch(), node() | undefined, node(), #s{}) -> #s{}.
apart(E, Lin, L, N,
      #s{role = candidate, cand = #cand{epoch = E, wait = W} = C, d = #d{lineage = Own}} = S) ->
    case Lin > Own andalso L =/= undefined andalso present(L, S) of
        true -> sderl_core_join:give_up(L, Lin, sderl_core_role:withdraw(S));
        false ->
            Outranked = C#cand.outranked orelse (Lin > Own andalso L =:= undefined),
            maybe_finish(S#s{cand = C#cand{wait = lists:delete(N, W),
                                           elsewhere = [N | C#cand.elsewhere],
                                           outranked = Outranked}})
    end;
apart(_, _, _, _, S) -> S.

-spec joined(epoch(), non_neg_integer(), [term()], node(), #s{}) -> #s{}.
joined(E, Num, Items, N, #s{mode = available, role = candidate,
                            cand = #cand{epoch = E, wait = W, joined = J} = C} = S) ->
    maybe_finish(S#s{cand = C#cand{wait = lists:delete(N, W), joined = J#{N => {Num, Items}}}});
joined(_, _, _, _, S) -> S.

%% A member still follows a coordinator, or has promised a higher epoch: this candidate withdraws,
%% and tries again a little later.
-spec nack(epoch(), epoch(), node() | undefined, node(), #s{}) -> #s{}.
nack(E, Theirs, L, N, #s{role = candidate, cand = #cand{epoch = E}} = S0) ->
    #s{now = Now, tick_ms = Tick, aside_ms = A,
       election = #election{attempts = T, shut_out_since = ShutOut}} = S0,
    %% Rule 11: it follows a coordinator that we cannot see.
    Unseen = L =/= undefined andalso not present(L, S0),
    Alone = Unseen andalso S0#s.mode =:= available,
    Since = case ShutOut of undefined -> Now; At -> At end,
    case Alone andalso Now - Since > 2 * A of
        true -> secede(S0);
        false ->
            S1 = sderl_core_state:heard(Theirs, sderl_core_role:withdraw(S0)),
            #s{self = Self, election = Election, d = #d{lineage = Lin}} = S1,
            Again = Election#election{attempts = T + 1},
            S2 = case Unseen of
                true ->
                    Shut = Again#election{shut_out_since = Since},
                    send(N, {lost, Lin, Self}, S1#s{election = Shut});
                false -> S1#s{election = Again#election{shut_out_since = undefined}}
            end,
            fx({wake, min(Tick, 20 bsl min(T, 6))}, S2)
    end;
nack(_, _, _, _, S) -> S.

%% No member sees more than the coordinator that we cannot reach, or it would have been given the
%% role by now. We go on as a component of our own, without the members that follow that
%% coordinator.
secede(#s{self = Self, num = Num, last = Last, cand = C} = S) ->
    finish(S#s{cand = C#cand{wait = [], joined = #{Self => {Num, Last}}, alone = true}}).

-spec maybe_finish(#s{}) -> #s{}.
maybe_finish(#s{role = candidate, cand = #cand{wait = []}} = S) -> finish(S);
maybe_finish(S) -> S.

%% Silence over a live link splits no group (rule 9): linked members that did not answer may be led
%% by the coordinator whose messages do not come through, or be choosing another. A candidate goes
%% on with more than half of the members that it is linked to; with half of them if no coordinator
%% can be among the others and the lowest-named member is on its side; with fewer only after a time
%% in which the others, if they are well, would have been heard.
-spec finish(#s{}) -> #s{}.
finish(#s{mode = majority} = S) -> sderl_core_ballot:finish(S);
finish(#s{election = #election{outnumbered_since = Before} = Election, now = Now} = S) ->
    Since = case Before of undefined -> Now; _ -> Before end,
    case is_outnumbered(S) andalso Now - Since =< lone_ms(S) of
        false -> take_over(S#s{election = Election#election{outnumbered_since = undefined}});
        true ->
            %% Members that promised find out as with any takeover that fails.
            #s{tick_ms = T, cand = #cand{epoch = {Counter, _}}} = S,
            fx({wake, T}, sderl_core_role:withdraw(S#s{highest = Counter,
                                       election = Election#election{outnumbered_since = Since}}))
    end.

is_outnumbered(#s{cand = #cand{alone = true}}) -> false;
is_outnumbered(#s{d = #d{syncing = true}}) -> false;
is_outnumbered(#s{cand = Candidate, self = Self} = S) ->
    #cand{joined = Joined, elsewhere = Elsewhere, outranked = Outranked} = Candidate,
    #s{linked = Linked, election = #election{suspect = Suspect}, d = #d{view = V}} = S,
    Hung = hung_aside(S),
    Here = [N || N := _ <- V, N =:= Self orelse maps:get(N, Linked, mute) =:= []],
    Reached = Hung ++ [N || N <- Here, map_get(N, V) =:= live, not lists:member(N, Elsewhere)],
    Silent = [N || N <- Reached, not is_map_key(N, Joined)],
    {All, Quiet} = {length(Reached), length(Silent)},
    %% All other members may be with the higher component, also those that are set aside here.
    (Outranked andalso 2 * map_size(Joined) =< length(Here)) orelse
    2 * Quiet > All orelse
    (2 * Quiet =:= All andalso Quiet > 0 andalso
        (lists:member(Suspect, Silent) orelse lists:min(Silent) < lists:min(Reached -- Silent))).

take_over(#s{cand = #cand{joined = J}, num = Mine, self = Self, d = D} = S0) ->
    Max = lists:max([N || _ := {N, _} <- J]),
    %% A member that got the last batch within a snapshot has its rows, but not the batch to send to
    %% members that lack it.
    {Items, Best} = lists:max([{I, N} || N := {Num, I} <- J, Num =:= Max]),
    Useless = Items =:= [] orelse sderl_core_view:drops(Self, Items),
    case Max > Mine + 1 orelse (Max > Mine andalso Useless) of
        true ->
            %% We were set aside or dropped without knowing: the member with the longest log leads.
            send(Best, {handover, D#d.lineage}, sderl_core_role:withdraw(S0));
        false ->
            S1 = case Max > Mine of
                true -> sderl_core_write:apply_items(Max, Items, none, S0);
                false -> S0
            end,
            Least = case Items of [] -> Max; _ -> Max - 1 end,
            Joined = [N || N := {Num, _} <- J, Num >= Least],
            sderl_core_lead:lead_from(Max, Items, Joined, S1)
    end.

%% ---------------------------------------------------------------- partial cuts (rule 11)

%% A member that lost its coordinator reports it to a member that still sees it, which passes the
%% report on.
-spec lost_report(epoch(), node(), node(), #s{}) -> #s{}.
lost_report(E, Who, _N, #s{role = follower, lead = L, d = #d{lineage = E}} = S) ->
    send(L, {lost, E, Who}, S);
lost_report(E, Who, _N,
            #s{role = coord, d = #d{lineage = E, view = V}, self = Self, peers = P} = S0) ->
    Members = lists:usort([Who, Self | maps:keys(V)]),
    Sees = fun(Links, N) -> length([M || M <- Members, M =:= N orelse lists:member(M, Links)]) end,
    Ours = Sees(maps:keys(S0#s.linked), Self),
    Better = [{-Count, N}
              || N := live <- V, N =/= Self, #peer{links = Ls} <- [maps:get(N, P, none)],
                 Count <- [Sees(Ls, N)], Count > Ours],
    case lists:sort(Better) of
        [] -> S0;
        [{_, To} | _] ->
            hand_over(To, S0)
    end;
lost_report(_, _, _, S) -> S.

%% For a while we do not stand ourselves: the new candidate's request may be slow on one link only.
hand_over(To, #s{now = Now, tick_ms = T, d = #d{lineage = E}, election = Election} = S) ->
    Later = Election#election{not_before = Now + 2 * T},
    sderl_core_role:step_down(send(To, {handover, E}, S#s{election = Later})).

%% The coordinator hands its role to us: we see more members than it does.
-spec handover(epoch(), node(), #s{}) -> #s{}.
handover(E, _N, #s{role = R, mode = Mode, d = #d{lineage = E, syncing = Syncing}} = S)
  when (R =:= follower orelse R =:= orphan) andalso (not Syncing orelse Mode =:= majority) ->
    candidate(#{handover => true}, S);
handover(_, _, S) -> S.

-doc """
Members that were set aside, are linked, and have been silent for long. They count as silent when
the silent members are compared with the others: otherwise one after the other could be set aside,
until one is left.
""".
-spec hung_aside(#s{}) -> [node()].
hung_aside(#s{linked = Linked, peers = Peers, now = Now, aside_ms = A, tick_ms = T,
              d = #d{view = V}}) ->
    [N || N := {_, _} <- V, maps:get(N, Linked, mute) =:= [],
          case Peers of #{N := #peer{heard = At}} -> Now - At > A + 2 * T; _ -> true end].

-doc """
How long a minority of the linked members waits for the others, in milliseconds: long enough for the
others to give up a coordinator that they do not hear, elect another, and announce it to us.
""".
-spec lone_ms(#s{}) -> pos_integer().
lone_ms(#s{aside_ms = A, tick_ms = T}) -> 2 * A + 4 * T.

-doc "Nobody took this member in.".
-spec resume(#s{}) -> #s{}.
resume(#s{role = joining, lead = Self, self = Self, joining = Joining} = S) ->
    %% If our shard was brought, our own list here has been sent under another number since.
    Coordinator = S#s{role = coord, joining = Joining#joining{to = undefined}},
    sderl_core_write:reorder(sderl_core_clients:resend(Coordinator));
resume(#s{role = joining, joining = Joining} = S) ->
    orphan(S#s{joining = Joining#joining{to = undefined}});
resume(S) -> S.

-doc """
The coordinator that this member joins is gone, or does not take it in. Before anything is decided
here, the member goes to another coordinator that called it meanwhile; that one may be gone as well.
""".
-spec resume_elsewhere(#s{}) -> #s{}.
resume_elsewhere(#s{joining = #joining{to = {To, _, _}}} = S0) ->
    case resume(S0) of
        #s{role = coord, unconfirmed = [], peers = P, now = Now, tick_ms = T,
           d = #d{lineage = E}} = S ->
            Calling = [{Theirs, N}
                       || N := #peer{lead = Lead, said = At, epoch = Theirs} <- P,
                          Lead =:= N, N =/= To, Theirs > E, Now - At =< 2 * T],
            case Calling of
                [] -> S;
                _ ->
                    {Highest, N} = lists:max(Calling),
                    sderl_core_join:give_up(N, Highest, S)
            end;
        S -> S
    end.
