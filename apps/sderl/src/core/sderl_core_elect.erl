%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_elect).
-moduledoc false.
%% Who coordinates: takeover and handing over.
%%
%% Takeover: the lowest-named live member that is linked asks every other one to promise a higher
%% epoch (`collect`). Who still follows a living coordinator says no; who promised answers with
%% its position and last batch. The candidate brings everyone to the longest log (`lead`) and
%% that counts as a batch in flight: it is committed when all have it. Members that are linked
%% but silent are set aside and keep their names; members whose link is gone lose theirs.

-include("sderl_core.hrl").

-export([wake/1, alone/1, orphan/1, step_down/1, elect/1, candidate/1, finish/1, maybe_finish/1]).
-export([collect/5, joined/5, apart/5, nack/5, lead/6, lost_report/4, handover/3]).
-export([withdraw/1, leave_office/1, lead_info/1]).
-export([become_follower/2, become_orphan/1, lead_from/4, drops/2]).

-import(sderl_core_state, [fx/2, send/3, event/3, present/2]).

-spec wake(#s{}) -> #s{}.
wake(#s{role = orphan} = S) -> elect(S);
wake(S) -> S.

%% ---------------------------------------------------------------- takeover

-doc "A coordinator, or one that joins another, is none any more.".
-spec leave_office(#s{}) -> #s{}.
leave_office(#s{role = Role, lead = Self, self = Self,
                office = #office{snapshots = Snapshots}} = S0)
  when Role =:= coord; Role =:= joining ->
    S = lists:foldl(fun sderl_core_snapshot:stop/2, S0, maps:keys(Snapshots)),
    fx({index, drop}, S#s{lead = undefined, office = #office{}});
leave_office(S) -> S.

%% The first process of a node's life in this group is a component of its own, at the epoch it
%% came with: lowest for one that boots or joins, so that whatever runs already absorbs it.
-spec alone(#s{}) -> #s{}.
alone(#s{self = Self} = S) ->
    sderl_core_peers:waiters(sderl_core_peers:heartbeat(fx({index, build}, S#s{role = coord, lead = Self}))).

-spec orphan(#s{}) -> #s{}.
%% (One that the majority has not removed for certain has a say yet.)
orphan(#s{leaving = removed, mode = majority, num = Num, committed = C} = S) when C < Num -> step_down(S);
orphan(#s{leaving = Why} = S) when Why =/= undefined -> sderl_core_answer:leave(Why, S);
orphan(S) -> elect(step_down(S)).

-spec step_down(#s{}) -> #s{}.
step_down(S0) ->
    S = become_orphan(leave_office(S0)),
    Election = (S#s.election)#election{attempts = 0, shut_out_since = undefined},
    sderl_core_clients:resend(sderl_core_merge:give_up_joining(S#s{election = Election})).

%% Somebody leads.
elected(Election) ->
    Election#election{attempts = 0,
                      shut_out_since = undefined,
                      suspect = undefined}.

-doc "Nobody is followed any more, and nothing that a coordinator asked for is owed to it.".
-spec become_orphan(#s{}) -> #s{}.
become_orphan(#s{now = Now, election = Election} = S) ->
    S#s{role = orphan,
        lead = undefined,
        cand = undefined,
        ack = undefined,
        election = Election#election{orphan_since = Now}}.

-doc "A coordinator took this member in, by a takeover or with a snapshot.".
-spec become_follower(node(), #s{}) -> #s{}.
become_follower(Coordinator, #s{now = Now, election = Election} = S0) ->
    S = sderl_core_merge:give_up_joining(S0),
    S#s{role = follower,
        lead = Coordinator,
        lead_heard = Now,
        cand = undefined,
        election = elected(Election)}.

-spec elect(#s{}) -> #s{}.
elect(#s{groggy = [_ | _]} = S) -> S;
elect(#s{election = #election{not_before = At}, now = Now} = S) when Now < At -> S;
elect(#s{role = orphan, mode = majority} = S) -> sderl_core_quorum:elect(S);
elect(#s{role = orphan, self = Self, d = #d{view = V, syncing = Syncing}, now = Now,
         election = #election{orphan_since = At,
                              suspect = Suspect}, tick_ms = T, aside_ms = A} = S) ->
    Here = [N || N := _ <- V, present(N, S), N =/= Suspect],
    Live = [N || N <- Here, map_get(N, V) =:= live],
    %% A table that is not whole may lead nobody; alone it serves what it has.
    Can = lists:sort(case Live of [] -> [Self | lists:delete(Self, Here)]; _ -> Live end),
    Wait = expected(S),
    case Can of
        _ when Wait -> S;
        [Self | _] when not Syncing -> candidate(S);
        [Self] -> candidate(S);
        _ ->
            Rank = length(lists:takewhile(fun(N) -> N =/= Self end, Can)),
            Late = case Syncing of
                false -> lists:member(Self, Can) andalso Now - At > T * (1 + Rank);
                %% Those who were whole are gone, and it came to all the others as to us.
                true -> Live =:= [] andalso Now - At > 2 * A
            end,
            case Late of
                true -> candidate(S);
                false -> S
            end
    end;
elect(S) -> S.

%% Rule 9. Members that are linked and have not said hello (our process is a new one, or theirs
%% is) may follow a living coordinator; a coordinator that said hello calls us in, and so does a
%% candidate that has our promise: for a while we wait. Not for one that has just booted, and waits
%% for us: the epoch that it leads is below our log.
expected(#s{now = Now, election = #election{orphan_since = At},
            aside_ms = A})
  when Now - At > A -> false;
expected(#s{d = #d{epoch = {_, To} = E, lineage = Lin}, peers = P}) when E > Lin, is_map_key(To, P) -> true;
expected(#s{d = #d{view = V, lineage = Lin}, linked = L, peers = P, self = Self,
            election = #election{orphan_since = At}}) ->
    lists:any(fun(N) -> N =/= Self andalso is_map_key(N, L) andalso map_get(N, L) =/= away andalso
                  case P of
                      #{N := #peer{lead = Lead, said = T, epoch = E}} -> Lead =:= N andalso T >= At andalso E >= Lin;
                      _ -> true
                  end
              end, maps:keys(V)).

-spec candidate(#s{}) -> #s{}.
candidate(S) -> candidate(#{}, S).

candidate(Flags, #s{mode = majority} = S) -> sderl_core_quorum:candidate(Flags, S);
candidate(Flags, #s{self = Self, d = #d{view = V, epoch = Was, lineage = Lin} = D, now = Now} = S0) ->
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

-spec collect(epoch(), epoch(), map(), node(), #s{}) -> #s{}.
collect(E, _, Flags, N, #s{mode = majority} = S) -> sderl_core_quorum:promise(E, Flags, N, S);
collect(E, Lin, _, N, #s{lead = L, d = #d{lineage = Own}} = S) when Lin =/= Own -> send(N, {apart, E, Own, L}, S);
collect(E, _, _, N, #s{role = orphan, d = #d{syncing = true, lineage = Own}} = S) -> send(N, {apart, E, Own, undefined}, S);
collect(E, _, Flags, N, #s{d = #d{epoch = Mine, syncing = Sy} = D, role = R, lead = L} = S0) ->
    S = sderl_core_state:heard(E, S0),
    Agreed = is_map_key(handover, Flags) orelse L =:= N,
    if
        E =< Mine; Sy -> send(N, {nack, E, Mine, L}, S);
        R =:= coord; R =:= joining -> send(N, {nack, E, Mine, L}, S);
        R =:= follower, not Agreed -> send(N, {nack, E, Mine, L}, S);
        true ->
            %% What was in flight here counts: it is in the log that we answer with.
            S1 = become_orphan(S#s{d = D#d{epoch = E}}),
            send(N, {joined, E, S#s.num, S#s.last}, S1)
    end.

%% It is in another component by now, or holds no whole table: it has no part in this takeover. And
%% if it follows a higher one, we should too rather than take over (rule 9).
-spec apart(epoch(), epoch(), node() | undefined, node(), #s{}) -> #s{}.
apart(E, Lin, L, N, #s{role = candidate, cand = #cand{epoch = E, wait = W} = C, d = #d{lineage = Own}} = S) ->
    case Lin > Own andalso L =/= undefined andalso present(L, S) of
        true -> sderl_core_merge:give_up(L, Lin, withdraw(S));
        false -> maybe_finish(S#s{cand = C#cand{wait = lists:delete(N, W), elsewhere = [N | C#cand.elsewhere]}})
    end;
apart(_, _, _, _, S) -> S.

-spec joined(epoch(), non_neg_integer(), [term()], node(), #s{}) -> #s{}.
joined(E, Num, Items, N, #s{role = candidate, cand = #cand{epoch = E, wait = W, joined = J} = C} = S) ->
    maybe_finish(S#s{cand = C#cand{wait = lists:delete(N, W), joined = J#{N => {Num, Items}}}});
joined(_, _, _, _, S) -> S.

%% Somebody still follows a coordinator, or promised a higher epoch: back, and again a little later.
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
            S1 = sderl_core_state:heard(Theirs, withdraw(S0)),
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

%% Nobody sees more than that coordinator, or the role would have gone there by now: we are in no
%% star. We go on as a component of our own, without those who are in it.
secede(#s{self = Self, num = Num, last = Last, cand = C} = S) ->
    finish(S#s{cand = C#cand{wait = [], joined = #{Self => {Num, Last}}, alone = true}}).

%% Nobody else was told of this promise of our own.
-spec withdraw(#s{}) -> #s{}.
withdraw(#s{cand = #cand{was = Was}, d = D, now = Now, election = Election} = S) ->
    S#s{role = orphan,
        cand = undefined,
        election = Election#election{orphan_since = Now},
        d = D#d{epoch = Was}}.

-spec maybe_finish(#s{}) -> #s{}.
maybe_finish(#s{role = candidate, cand = #cand{wait = []}} = S) -> finish(S);
maybe_finish(S) -> S.

%% A batch that let a node go removed its names. Who was not there to see it does not undo that by
%% applying it, but brings its names back by a merge (a link to the old coordinator that broke a
%% moment before all of them did must not cost a name whose process lives).
-spec drops(node(), [term()]) -> boolean().
drops(Node, Items) ->
    lists:any(fun(#view{drops = Drops}) -> lists:member(Node, Drops);
                 (_) -> false
              end, Items).

%% Silence over a live link splits no group (rule 9): those that are linked and did not answer may be
%% led by the coordinator whose messages do not come through, or choose another. A candidate goes on
%% with more than half of the members that it is linked to; with half where no coordinator can be
%% among the others and it has the lowest-named of them; with fewer only after a time in which
%% those others, if they are well, have been heard.
-spec finish(#s{}) -> #s{}.
finish(#s{mode = majority} = S) -> sderl_core_quorum:finish(S);
finish(#s{election = #election{outnumbered_since = Before} = Election, now = Now} = S) ->
    Since = case Before of undefined -> Now; _ -> Before end,
    case is_outnumbered(S) andalso Now - Since =< sderl_core_peers:lone_ms(S) of
        false -> take_over(S#s{election = Election#election{outnumbered_since = undefined}});
        true ->
            %% Those that promised learn of it as of any takeover that came to nothing.
            #s{tick_ms = T, cand = #cand{epoch = {Counter, _}}} = S,
            fx({wake, T}, withdraw(S#s{highest = Counter,
                                       election = Election#election{outnumbered_since = Since}}))
    end.

is_outnumbered(#s{cand = #cand{alone = true}}) -> false;
is_outnumbered(#s{d = #d{syncing = true}}) -> false;
is_outnumbered(#s{cand = #cand{joined = Joined, elsewhere = Elsewhere}, self = Self} = S) ->
    #s{linked = Linked, election = #election{suspect = Suspect}, d = #d{view = V}} = S,
    Hung = sderl_core_peers:hung_aside(S),
    Reached = Hung ++ [N || N := live <- V, N =:= Self orelse maps:get(N, Linked, mute) =:= [], not lists:member(N, Elsewhere)],
    Silent = [N || N <- Reached, not is_map_key(N, Joined)],
    {All, Quiet} = {length(Reached), length(Silent)},
    2 * Quiet > All orelse
        (2 * Quiet =:= All andalso Quiet > 0 andalso
            (lists:member(Suspect, Silent) orelse lists:min(Silent) < lists:min(Reached -- Silent))).

take_over(#s{cand = #cand{joined = J}, num = Mine, self = Self, d = D} = S0) ->
    Max = lists:max([N || _ := {N, _} <- J]),
    %% (One that got there by a snapshot has the rows of the last batch and not the batch: then it is of
    %% no use to those who lack it.)
    {Items, Best} = lists:max([{I, N} || N := {Num, I} <- J, Num =:= Max]),
    case Max > Mine + 1 orelse (Max > Mine andalso (Items =:= [] orelse drops(Self, Items))) of
        true ->
            %% We were set aside, or let go, without knowing: the one with the longest log leads.
            send(Best, {handover, D#d.lineage}, withdraw(S0));
        false ->
            S1 = case Max > Mine of
                true -> sderl_core_write:apply_items(Max, Items, none, S0);
                false -> S0
            end,
            Least = case Items of [] -> Max; _ -> Max - 1 end,
            Joined = [N || N := {Num, _} <- J, Num >= Least],
            lead_from(Max, Items, Joined, S1)
    end.

%% This member coordinates from here on, with those that promised it and are at most one batch behind.
-spec lead_from(non_neg_integer(), [term()], [node()], #s{}) -> #s{}.
lead_from(Max, Items, Joined, #s{cand = #cand{epoch = E, alone = Alone}} = S0) ->
    #s{self = Self, now = Now, d = D, joining = Joining, office = Office} = S0,
    #d{view = V, mem = Mem, lineage = Old, history = H} = D,
    Majority = S0#s.mode =:= majority,
    %% (In a majority group nobody leads so while any member has a whole table.)
    Syncing = D#d.syncing andalso not Majority,
    Lost = [N || N := _ <- V, not Majority, N =/= Self, Alone orelse maps:get(N, S0#s.linked, mute) =:= mute],
    Place = fun(N, At) ->
        case lists:member(N, Joined) of
            true -> live;
            false when At =:= live -> {Old, Max};
            false -> At
        end
    end,
    {View, History, Clashes} = case Syncing of
        false ->
            {maps:map(Place, maps:without(Lost, (unplaced(S0))#{Self => live})),
             lists:sublist([{Old, Max} | H], ?HISTORY), D#d.clashes};
        %% What we have is neither all of that log nor all of anybody's names but our own.
        true -> {#{Self => live}, [], sderl_core_clash:own(Self, D)}
    end,
    Others = [N || N <- Joined, N =/= Self, is_map_key(N, View)],
    Missing = [N || N := live <- V, not Majority, N =/= Self, not lists:member(N, Others)],
    Unknown = sderl_core_answer:unknown_answers(Items, Missing),
    S1 = S0#s{role = coord,
              lead = Self,
              cand = undefined,
              election = elected(S0#s.election),
              office = Office#office{unknown_answers = Unknown},
              %% (A snapshot that ended early brought these rows: they are of no log that goes on.)
              joining = Joining#joining{session = undefined, shard = []},
              d = D#d{epoch = E, lineage = E, view = View, syncing = false, history = History, recovered = false,
                      clashes = Clashes, clashes_before = #{}}},
    Info = (lead_info(S1))#{prev => Old},
    S2 = lists:foldl(fun(N, S) -> send(N, {lead, E, Max, Items, Info}, S) end, S1, Others),
    %% A component drops names whose home left (rule 15), including departures that the last
    %% coordinator saw but died before ordering.
    Flight = #flight{num = Max,
                     wait = Others,
                     since = Now,
                     origins = sderl_core_write:origins(Items)},
    Gone = #change_view{drops = sderl_membership:members(Mem) -- maps:keys(View), live = []},
    S3 = S2#s{office = (S2#s.office)#office{flight = Flight, changes = [rehome, Gone]}},
    S4 = event(coordinator_changed, #{new => Self, epoch => E, live => lists:sort(Joined), lost => Lost},
               fx({index, build}, sderl_core_answer:forget_answers(S3))),
    S5 = sderl_core_peers:heartbeat(sderl_core_write:view_events(V, View, S4)),
    S6 = sderl_core_write:reorder(sderl_core_peers:waiters(sderl_core_clients:resend(S5))),
    case S0#s.leaving of
        undefined -> S6;
        %% When a majority has the batch by which it goes, which it leads them to.
        _ when Majority -> S6;
        Why -> sderl_core_answer:leave(Why, S6)
    end.

%% In a majority group names go by an ordered change only (rule 34). A member that no place is known of, because a
%% change was seen and never ordered or it was removed and added again, gets one, and its lease begins. A former
%% coordinator that was removed as it led has none.
unplaced(#s{mode = available, d = #d{view = V}}) -> V;
unplaced(#s{num = Num, d = #d{view = V, mem = Mem, lineage = Lin}}) ->
    Members = sderl_membership:members(Mem),
    maps:merge(maps:from_keys(Members, {Lin, Num}), maps:with(Members, V)).

-spec lead_info(#s{}) -> map().
lead_info(#s{d = #d{before = undefined, mem = Mem, view = V} = D}) ->
    %% (A successor that the last batch removes leads to that batch, and goes: it has no place with the others.)
    #{prev => D#d.lineage,
      history => D#d.history,
      view => maps:with(sderl_membership:members(Mem), V),
      mem => Mem,
      clashes => D#d.clashes};
lead_info(#s{d = #d{before = Before} = D} = S) ->
    (lead_info(S#s{d = D#d{before = undefined}}))#{before => Before}.

-spec lead(epoch(), non_neg_integer(), [term()], map(), node(), #s{}) -> #s{}.
lead(E, Num, Items, #{prev := Prev, history := H} = Info, N, #s{mode = majority, d = #d{lineage = Lin}} = S)
  when Prev =/= Lin, E =/= Lin ->
    case sderl_core_quorum:is_of_log(Lin, Prev, Num, H) of
        true -> lead(E, Num, Items, Info#{prev := Lin}, N, S);
        false -> led(E, Num, Items, Info, N, S)
    end;
lead(E, Num, Items, Info, N, #s{role = R, self = Self, num = Has, d = #d{epoch = Mine}} = S)
  when E >= Mine, Has =:= Num - 1, R =/= coord ->
    case drops(Self, Items) of
        true -> sderl_core_merge:give_up(N, E, become_orphan(S));
        false -> led(E, Num, Items, Info, N, S)
    end;
lead(E, Num, Items, Info, N, S) -> led(E, Num, Items, Info, N, S).

led(E, Num, Items, #{prev := Prev} = Info, N, #s{num = Has, role = R, d = D0} = S0)
  when E >= D0#d.epoch, not D0#d.syncing, (Prev =:= D0#d.lineage orelse E =:= D0#d.lineage),
       (Has =:= Num orelse (Has =:= Num - 1 andalso not D0#d.recovered)), R =/= coord ->
    S1 = case Has of
        Num -> S0;
        _ -> sderl_core_write:apply_items(Num, Items, none, S0)
    end,
    D = S1#s.d,
    #{history := H, view := V, mem := M, clashes := Clashes} = Info,
    S2 = (become_follower(N, S1))#s{
              ack = {E, Num},
              d = D#d{epoch = E, lineage = E, history = H, view = V, clashes = Clashes, recovered = false}},
    S3 = sderl_core_clients:resend(sderl_core_peers:waiters(S2)),
    sderl_core_quorum:gained(sderl_core_write:membership(M, S3));
led(E, Num, _, _, N, #s{d = #d{epoch = Mine}, lead = L} = S) ->
    case E < Mine of
        true -> send(N, {refused, Mine, L}, S);
        false -> send(N, {gap, E, Num}, S)
    end.

%% ---------------------------------------------------------------- partial cuts (rule 11)

%% A member that lost its coordinator reached another that did not, which passes the word on.
-spec lost_report(epoch(), node(), node(), #s{}) -> #s{}.
lost_report(E, Who, _N, #s{role = follower, lead = L, d = #d{lineage = E}} = S) ->
    send(L, {lost, E, Who}, S);
lost_report(E, Who, _N, #s{role = coord, d = #d{lineage = E, view = V}, self = Self, peers = P} = S0) ->
    Members = lists:usort([Who, Self | maps:keys(V)]),
    Sees = fun(Links, N) -> length([M || M <- Members, M =:= N orelse lists:member(M, Links)]) end,
    Ours = Sees(maps:keys(S0#s.linked), Self),
    Better = [{-Count, N} || N := live <- V, N =/= Self, #peer{links = Ls} <- [maps:get(N, P, none)],
                             Count <- [Sees(Ls, N)], Count > Ours],
    case lists:sort(Better) of
        [] -> S0;
        [{_, To} | _] ->
            hand_over(To, S0)
    end;
lost_report(_, _, _, S) -> S.

%% For a while we do not stand for election ourselves: its request may be slow on one link only.
hand_over(To, #s{now = Now, tick_ms = T, d = #d{lineage = E}, election = Election} = S) ->
    step_down(send(To, {handover, E}, S#s{election = Election#election{not_before = Now + 2 * T}})).

%% The coordinator agreed that we see more than it does.
-spec handover(epoch(), node(), #s{}) -> #s{}.
handover(E, _N, #s{role = R, mode = Mode, d = #d{lineage = E, syncing = Syncing}} = S)
  when (R =:= follower orelse R =:= orphan) andalso (not Syncing orelse Mode =:= majority) ->
    candidate(#{handover => true}, S);
handover(_, _, S) -> S.
