%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_elect).
-moduledoc false.
%% Who coordinates: ticks, suspicion, epochs, takeover, and the probes that find other components.
%%
%% Takeover: the lowest-named live member that is linked asks every other one to promise a higher
%% epoch (`collect`). Who still follows a living coordinator says no; who promised answers with
%% its position and last batch. The candidate brings everyone to the longest log (`lead`) and
%% that counts as a batch in flight: it is committed when all have it. Members that are linked
%% but silent are set aside and keep their names; members whose link is gone lose theirs.
%%
%% A process that notices that its own tick is late was stopped or starved: its view of who is
%% silent is worth nothing. It decides and acknowledges nothing before it has heard the epoch of
%% every member it has a link to, or has waited the set-aside time at a regular tick (rule 10).

-include("sderl_core.hrl").

-define(MEMORY, 86_400).

-export([look/1, tick/1, wake/1, alone/1, orphan/1, lost/2, hello/5, waiters/1, mem/3]).
-export([hb/4, hb_ack/4, low/4, found/4, follow/4, state/4, dropped/3, refused/4, not_lead/3]).
-export([collect/5, joined/5, apart/5, nack/5, lead/6, lost_report/4, handover/3]).
-export([stop_leading/1, lead_info/1]).

-import(sderl_core, [fx/2, send/3, event/3, present/2, change_view/3]).

%% ---------------------------------------------------------------- ticks

%% Whether we were stopped is seen before anything is done with what came meanwhile: it may be that
%% all of it lies before the next tick.
-spec look(#s{}) -> #s{}.
look(#s{now = Now, last_tick = Last, tick_ms = T} = S) when is_integer(Last), Now - Last > (5 * T) div 2 ->
    late(S#s{last_tick = Now});
look(S) -> S.

-spec tick(#s{}) -> #s{}.
tick(#s{now = Now} = S) -> waiters(hellos(role_tick(groggy_tick(S#s{last_tick = Now})))).

late(#s{now = Now, peers = P, flight = F, cand = C} = S0) ->
    S1 = S0#s{groggy = maps:keys(P), groggy_since = Now, lead_heard = Now, orphan_since = Now,
              flight = case F of undefined -> undefined; _ -> F#flight{since = Now} end,
              cand = case C of undefined -> undefined; _ -> C#cand{since = Now} end,
              peers = maps:map(fun(_, X) -> X#peer{heard = Now} end, P)},
    lists:foldl(fun(N, S) -> send(N, query, S) end, S1, S1#s.groggy).

groggy_tick(#s{groggy = [_ | _], groggy_since = G, now = Now, aside_ms = A} = S) when Now - G > A ->
    awake(S#s{groggy = []});
groggy_tick(S) -> S.

awake(#s{role = orphan} = S) -> elect(S);
awake(S) -> sderl_core_write:reorder(S).

%% Members that are linked and have not said hello. And of a coordinator, whose heartbeats all
%% answer: those who do not; it may be that their process is no more, and their node knows why.
hellos(#s{linked = L, peers = P, self = Self, role = R, now = Now, aside_ms = A} = S) ->
    Silent = fun(N) ->
        case P of
            #{N := #peer{heard = At}} -> R =:= coord andalso Now - At > A;
            _ -> true
        end
    end,
    lists:foldl(fun sderl_core:ask/2, S, [N || N <- maps:keys(L), N =/= Self, Silent(N), sderl_membership:is_member(N, S#s.d#d.mem)]).

role_tick(#s{groggy = [_ | _]} = S) -> S;
role_tick(#s{role = coord} = S) ->
    sderl_core_merge:tick(prune(forget(slow(heartbeat(S)))));
role_tick(#s{role = follower, lead_heard = H, now = Now, aside_ms = A, tick_ms = T} = S)
  when Now - H > A + 2 * T ->
    orphan(event(coordinator_changed, #{old => S#s.lead, reason => silent}, S#s{suspect = S#s.lead}));
role_tick(#s{role = candidate, cand = #cand{since = At} = C, now = Now, aside_ms = A} = S) when Now - At > A ->
    finish(S#s{cand = C#cand{wait = []}});
role_tick(#s{role = orphan} = S0) ->
    case elect(S0) of
        %% They may have gone on without us, or removed us: ask.
        #s{role = orphan, peers = P} = S -> lists:foldl(fun sderl_core:ask/2, S, maps:keys(P));
        S -> S
    end;
role_tick(#s{role = surrender, to = {_, _, At}, now = Now, aside_ms = A} = S) when Now - At > 2 * A ->
    sderl_core_merge:resume(S);
role_tick(#s{role = surrender, lead = Self, self = Self} = S) -> slow(heartbeat(S));
role_tick(S) -> S.

heartbeat(#s{peers = P, d = #d{lineage = E}, committed = C} = S0) ->
    maps:fold(fun(N, _, S) -> send(N, {hb, E, C}, S) end, S0, P).

%% Rule 12: who does not acknowledge in time no longer counts.
slow(#s{flight = #flight{wait = [_ | _] = W, since = At}, num = Num, now = Now, aside_ms = A, d = #d{lineage = E, view = V}} = S0)
  when Now - At > A ->
    View = maps:merge(V, #{N => {E, Num} || N <- W, is_map_key(N, V)}),
    sderl_core_write:reorder(change_view(View, [], S0));
slow(S) -> S.

%% Rule 6: names of nodes that never come back leave the membership.
forget(#s{forget_ms = infinity} = S) -> S;
forget(#s{forget_ms = Ms, down = Down, now = Now} = S) ->
    case [N || N := At <- Down, Now - At > Ms] of
        [] -> S;
        Ns -> sderl_core_write:op(none, {remove, Ns, seconds(S)}, S#s{down = maps:without(Ns, Down)})
    end.

%% Rule 1: removed members are remembered for a day, so that one that returns is told.
prune(#s{d = #d{mem = Mem}, specials = Sp} = S) ->
    Before = seconds(S) - ?MEMORY,
    case sderl_membership:removed(Mem) =/= [] andalso sderl_membership:prune(Before, Mem) =/= Mem of
        true -> S#s{specials = [{prune, Before} | Sp]};
        false -> S
    end.

seconds(#s{now = Now, clock = Clock}) -> (Now + Clock) div 1000.

-spec wake(#s{}) -> #s{}.
wake(#s{role = orphan} = S) -> elect(S);
wake(S) -> S.

-spec waiters(#s{}) -> #s{}.
waiters(#s{waiters = []} = S) -> S;
waiters(#s{waiters = W, now = Now, d = #d{view = V, mem = M}} = S0) ->
    {Done, Wait} = lists:partition(fun({_, Ns, Until}) ->
        Now >= Until orelse lists:all(fun(N) ->
            maps:get(N, V, none) =:= live orelse not sderl_membership:is_member(N, M) end, Ns)
    end, W),
    S = S0#s{waiters = Wait},
    case Done of
        [] -> S;
        _ -> fx({replies, [{F, {live, [N || N <- Ns, maps:get(N, V, none) =:= live]}} || {F, Ns, _} <- Done]}, S)
    end.

%% ---------------------------------------------------------------- links and processes that come and go

-spec lost(node(), #s{}) -> #s{}.
lost(N, #s{groggy = G, absorbs = Ab, syncs = Sy} = S0) ->
    S1 = S0#s{groggy = lists:delete(N, G), absorbs = maps:remove(N, Ab), syncs = maps:remove(N, Sy)},
    S2 = case is_map_key(N, Sy) of true -> fx({read_stop, N}, S1); false -> S1 end,
    S3 = lost_as(N, S2),
    case G =/= [] andalso S3#s.groggy =:= [] of
        true -> awake(S3);
        false -> S3
    end.

lost_as(N, #s{role = R, d = #d{view = V}} = S0) when R =:= coord; R =:= surrender ->
    S1 = case is_map_key(N, V) of
        true -> change_view(maps:remove(N, V), [N], S0);
        false -> S0
    end,
    S2 = sderl_core_write:reorder(waiters(S1)),
    case S2#s.to of
        {N, _, _} -> sderl_core_merge:resume(S2);
        _ -> S2
    end;
lost_as(N, #s{role = follower, lead = N} = S) -> orphan(S);
lost_as(N, #s{role = candidate, cand = #cand{wait = W, joined = J} = C} = S) ->
    maybe_finish(S#s{cand = C#cand{wait = lists:delete(N, W), joined = maps:remove(N, J)}});
lost_as(_, #s{role = orphan} = S) -> elect(S);
lost_as(_, S) -> S.

-spec hello(node(), boolean(), sderl_membership:t(), map(), #s{}) -> #s{}.
hello(N, Fresh, Mem, Info, S0) ->
    S = mem(Mem, N, S0),
    hello_as(N, Fresh, Info, S).

hello_as(N, Fresh, Info, #s{role = coord, self = Self, d = #d{view = V, lineage = E}, num = Num} = S) ->
    case V of
        #{N := live} when Fresh; map_get(lead, Info) =/= Self ->
            %% Its process is a new one, or lost sight of us. One batch behind is what the last
            %% batch mends, anything else is a snapshot.
            case Info of
                #{lineage := E, num := Has, syncing := false} when Has =:= Num; Has =:= Num - 1 ->
                    send(N, {lead, E, Num, S#s.last, lead_info(S)}, S);
                _ -> sderl_core_merge:set_aside(N, S)
            end;
        #{N := live} -> S;
        #{N := {_, _}} when Fresh; not is_map_key(N, S#s.syncs) -> sderl_core_merge:start_syncs([N], S);
        #{N := {_, _}} -> S;
        %% Our link broke and came back: we have let it go, and it waits for us.
        _ when map_get(lineage, Info) =:= E -> send(N, {dropped, E}, S);
        _ -> send(N, {hb, E, S#s.committed}, S)
    end;
hello_as(N, true, _, #s{role = follower, lead = N} = S) -> orphan(S);
hello_as(N, true, _, #s{role = candidate, cand = #cand{wait = W, epoch = E}} = S) ->
    case lists:member(N, W) of
        true -> send(N, {collect, E, S#s.d#d.lineage, #{}}, S);
        false -> S
    end;
hello_as(_, true, _, #s{role = orphan} = S) -> elect(S);
hello_as(_, _, _, S) -> S.

%% Rule 4. Only the coordinator changes the membership; who hears of another one tells it.
-spec mem(sderl_membership:t(), node(), #s{}) -> #s{}.
mem(Mem, _N, #s{d = #d{mem = Mem}} = S) -> S;
mem(Mem, N, #s{role = R, d = #d{mem = Mine}, specials = Sp, lead = L} = S) ->
    case sderl_membership:merge(Mem, Mine) of
        Mine -> S;
        Merged when R =:= coord ->
            case lists:member({mem, Mem, N}, Sp) of
                true -> S;
                false ->
                    Diff = {sderl_membership:members(Merged) -- sderl_membership:members(Mine),
                            sderl_membership:members(Mine) -- sderl_membership:members(Merged)},
                    S1 = case Diff of
                        {[], []} -> S;
                        {In, Out} -> event(config_differs, #{node => N, added => In, removed => Out}, S)
                    end,
                    %% Who knew of it before is adopted with it.
                    sderl_core_merge:stop_sync(N, S1#s{specials = [{mem, Mem, N} | Sp]})
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
        false -> send(N, {hb_ack, E, maps:keys(S#s.linked)}, S)
    end;
hb({C, _} = E, _, N, #s{d = #d{epoch = Mine}, lead = L} = S0) when E < Mine ->
    send(N, {low, Mine, L}, S0#s{ceil = max(C, S0#s.ceil)});
hb(E, _, N, #s{role = orphan, d = #d{lineage = E}} = S) ->
    send(N, sderl_core:hello_msg(S), S);
hb(E, _, N, #s{role = orphan, groggy = []} = S) -> sderl_core_merge:give_up(N, E, S);
hb(E, _, N, #s{role = coord, groggy = []} = S) -> sderl_core_merge:give_up(N, E, S);
hb(E, _, N, #s{role = follower, lead = L} = S) when L =/= N -> send(L, {found, N, E}, S);
hb(_, _, N, #s{role = follower} = S) ->
    %% Our own coordinator leads another epoch and we missed its taking over.
    orphan(send(N, sderl_core:hello_msg(S), S));
hb(_, _, _, S) -> S.

-spec hb_ack(epoch(), [node()], node(), #s{}) -> #s{}.
hb_ack(E, Links, N, #s{role = coord, d = #d{lineage = E, view = V}, peers = P} = S0) ->
    S = case P of
        #{N := Peer} -> S0#s{peers = P#{N := Peer#peer{links = Links}}};
        _ -> S0
    end,
    case V of
        #{N := {_, _}} when not is_map_key(N, S#s.syncs) -> sderl_core_merge:start_syncs([N], S);
        _ -> S
    end;
hb_ack(_, _, _, S) -> S.

%% Our heartbeat met a higher promise. Its coordinator will probe us; one that promised a
%% candidate that came to nothing follows nobody, and only a higher epoch gets it back.
-spec low(epoch(), node() | undefined, node(), #s{}) -> #s{}.
low({C, _} = E, L, _N, #s{role = coord, d = #d{lineage = Mine}, self = Self, groggy = []} = S0) when E > Mine ->
    S = S0#s{ceil = max(C, S0#s.ceil)},
    case L of
        undefined -> candidate(stop_leading(S));
        Self -> S;
        _ -> send(L, sderl_core:hello_msg(S), S)
    end;
low(_, _, _, S) -> S.

-spec found(node(), epoch(), node(), #s{}) -> #s{}.
found(C, E, _N, #s{role = coord, d = #d{lineage = Mine}} = S) when E > Mine ->
    case present(C, S) of
        true -> sderl_core_merge:give_up(C, E, S);
        false -> S
    end;
%% We gave our component up when the one it went to could not see this member yet.
found(C, E, N, #s{role = R, lead = L} = S) when R =/= surrender, L =/= N, L =/= S#s.self ->
    send(N, {follow, C, E}, S);
found(_, _, _, S) -> S.

%% Our coordinator is none any more, and we had told it whom we saw. To elect among ourselves
%% first would make a third component.
-spec follow(node(), epoch(), node(), #s{}) -> #s{}.
follow(C, E, N, #s{role = follower, lead = N, d = #d{epoch = Mine}} = S) when E >= Mine ->
    case present(C, S) of
        true -> sderl_core_merge:give_up(C, E, S#s{role = orphan, lead = undefined, ack = undefined,
                                                   orphan_since = S#s.now});
        false -> orphan(S)
    end;
follow(_, _, _, S) -> S.

-spec state(epoch(), node() | undefined, node(), #s{}) -> #s{}.
state({C, _} = E, L, N, #s{groggy = G} = S0) ->
    S1 = S0#s{groggy = lists:delete(N, G), ceil = max(C, S0#s.ceil)},
    #s{role = R, self = Self, d = #d{view = V, lineage = Mine}} = S1,
    case R =:= coord andalso E > Mine andalso L =/= undefined andalso L =/= Self andalso is_map_key(N, V) of
        true -> orphan(S1#s{groggy = []});
        false when G =/= [], S1#s.groggy =:= [] -> awake(S1);
        false -> S1
    end.

-spec dropped(epoch(), node(), #s{}) -> #s{}.
dropped(E, N, #s{role = orphan, groggy = [], d = #d{lineage = E, epoch = E}} = S) -> sderl_core_merge:give_up(N, E, S);
dropped(_, _, S) -> S.

%% Rule 9: a coordinator that a higher epoch refuses drops its unanswered tail; catching up
%% overwrites what its own table has of it.
-spec refused(epoch(), node() | undefined, node(), #s{}) -> #s{}.
refused(E, undefined, N, S) -> low(E, undefined, N, S);
refused({C, _} = E, L, _N, #s{role = coord, d = #d{lineage = Mine}} = S) when E > Mine ->
    orphan(send(L, sderl_core:hello_msg(S), S#s{ceil = max(C, S#s.ceil)}));
refused(_, _, _, S) -> S.

-spec not_lead(epoch(), node(), #s{}) -> #s{}.
not_lead({C, _}, N, #s{role = follower, lead = N} = S) -> orphan(S#s{ceil = max(C, S#s.ceil)});
not_lead(_, _, S) -> S.

%% ---------------------------------------------------------------- takeover

-spec stop_leading(#s{}) -> #s{}.
stop_leading(#s{role = R, syncs = Sy} = S0) when R =:= coord; R =:= surrender ->
    S1 = lists:foldl(fun(N, S) -> fx({read_stop, N}, S) end, S0, maps:keys(Sy)),
    fx({index, drop}, S1#s{flight = undefined, reqs = [], specials = [], owed = [], syncs = #{},
                           absorbs = #{}, to = undefined});
stop_leading(S) -> S.

%% The first process of a node's life in this group is a component of its own, at the epoch it
%% came with: lowest for one that boots or joins, so that whatever runs already absorbs it.
-spec alone(#s{}) -> #s{}.
alone(#s{self = Self} = S) ->
    waiters(heartbeat(fx({index, build}, S#s{role = coord, lead = Self}))).

-spec orphan(#s{}) -> #s{}.
orphan(#s{leaving = Why} = S) when Why =/= undefined -> sderl_core_write:leave(Why, S);
orphan(#s{now = Now} = S0) ->
    S = stop_leading(S0),
    elect(sderl_core_write:resend(S#s{role = orphan, lead = undefined, cand = undefined, ack = undefined,
                                      orphan_since = Now, tries = 0})).

elect(#s{groggy = [_ | _]} = S) -> S;
elect(#s{role = orphan, self = Self, d = #d{view = V, syncing = Syncing}, now = Now,
         orphan_since = At, tick_ms = T} = S) ->
    Here = [N || N := _ <- V, present(N, S), N =/= S#s.suspect],
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
            case not Syncing andalso lists:member(Self, Can) andalso Now - At > T * (1 + Rank) of
                true -> candidate(S);
                false -> S
            end
    end;
elect(S) -> S.

%% Rule 9. Members that are linked and have not said hello (our process is a new one, or theirs
%% is) may follow a living coordinator; a coordinator that said hello calls us in, and so does a
%% candidate that has our promise: for a while we wait.
expected(#s{now = Now, orphan_since = At, aside_ms = A}) when Now - At > A -> false;
expected(#s{d = #d{epoch = {_, To} = E, lineage = Lin}, peers = P}) when E > Lin, is_map_key(To, P) -> true;
expected(#s{d = #d{view = V}, linked = L, peers = P, self = Self, orphan_since = At}) ->
    lists:any(fun(N) -> N =/= Self andalso is_map_key(N, L) andalso
                  case P of
                      #{N := #peer{lead = Lead, said = T}} -> Lead =:= N andalso T >= At;
                      _ -> true
                  end
              end, maps:keys(V)).

candidate(S) -> candidate(#{}, S).

candidate(Flags, #s{self = Self, d = #d{view = V, epoch = Was, lineage = Lin} = D, now = Now} = S0) ->
    {C, Self} = E = sderl_core:epoch(S0),
    Live = [N || N := live <- V, N =/= Self, present(N, S0)],
    Ask = case maps:get(Self, V, live) of
        {_, _} when Live =:= [] -> [N || N := _ <- V, N =/= Self, present(N, S0)];
        _ -> Live
    end,
    Cand = #cand{epoch = E, wait = lists:delete(S0#s.suspect, Ask), since = Now, was = Was,
                 joined = #{Self => {S0#s.num, S0#s.last}}},
    S1 = S0#s{role = candidate, lead = undefined, d = D#d{epoch = E}, cand = Cand, ceil = C},
    maybe_finish(lists:foldl(fun(N, S) -> send(N, {collect, E, Lin, Flags}, S) end, S1, Ask)).

-spec collect(epoch(), epoch(), map(), node(), #s{}) -> #s{}.
collect(E, Lin, _, N, #s{lead = L, d = #d{lineage = Own}} = S) when Lin =/= Own -> send(N, {apart, E, Own, L}, S);
collect(E, _, _, N, #s{role = orphan, d = #d{syncing = true, lineage = Own}} = S) -> send(N, {apart, E, Own, undefined}, S);
collect({C, _} = E, _, Flags, N, #s{d = #d{epoch = Mine, syncing = Sy} = D, role = R, lead = L} = S0) ->
    S = S0#s{ceil = max(C, S0#s.ceil)},
    Agreed = is_map_key(handover, Flags) orelse L =:= N,
    if
        E =< Mine; Sy -> send(N, {nack, E, Mine, L}, S);
        R =:= coord; R =:= surrender -> send(N, {nack, E, Mine, L}, S);
        R =:= follower, not Agreed -> send(N, {nack, E, Mine, L}, S);
        true ->
            %% What was in flight here counts: it is in the log that we answer with.
            S1 = S#s{role = orphan, lead = undefined, cand = undefined, ack = undefined,
                     orphan_since = S#s.now, d = D#d{epoch = E}},
            send(N, {joined, E, S#s.num, S#s.last}, S1)
    end.

%% It is in another component by now, or holds no whole table: it has no part in this takeover. And
%% if it follows a higher one, we should too rather than take over (rule 9).
-spec apart(epoch(), epoch(), node() | undefined, node(), #s{}) -> #s{}.
apart(E, Lin, L, N, #s{role = candidate, cand = #cand{epoch = E, wait = W} = C, d = #d{lineage = Own}} = S) ->
    case Lin > Own andalso L =/= undefined andalso present(L, S) of
        true -> sderl_core_merge:give_up(L, Lin, withdraw(S));
        false -> maybe_finish(S#s{cand = C#cand{wait = lists:delete(N, W)}})
    end;
apart(_, _, _, _, S) -> S.

-spec joined(epoch(), non_neg_integer(), [term()], node(), #s{}) -> #s{}.
joined(E, Num, Items, N, #s{role = candidate, cand = #cand{epoch = E, wait = W, joined = J} = C} = S) ->
    maybe_finish(S#s{cand = C#cand{wait = lists:delete(N, W), joined = J#{N => {Num, Items}}}});
joined(_, _, _, _, S) -> S.

%% Somebody still follows a coordinator, or promised a higher epoch: back, and again a little later.
-spec nack(epoch(), epoch(), node() | undefined, node(), #s{}) -> #s{}.
nack(E, {C, _}, L, N, #s{role = candidate, cand = #cand{epoch = E}, tries = T, tick_ms = Tick} = S0) ->
    #s{d = #d{lineage = Lin}} = S1 = (withdraw(S0))#s{ceil = max(C, S0#s.ceil), tries = T + 1},
    %% Rule 11: it follows a coordinator that we cannot see.
    S2 = case L =/= undefined andalso not present(L, S1) of
        true -> send(N, {lost, Lin, S1#s.self}, S1);
        false -> S1
    end,
    fx({wake, min(Tick, 20 bsl min(T, 6))}, S2);
nack(_, _, _, _, S) -> S.

%% Nobody else was told of this promise of our own.
withdraw(#s{cand = #cand{was = Was}, d = D, now = Now} = S) ->
    S#s{role = orphan, cand = undefined, orphan_since = Now, d = D#d{epoch = Was}}.

maybe_finish(#s{role = candidate, cand = #cand{wait = []}} = S) -> finish(S);
maybe_finish(S) -> S.

finish(#s{cand = #cand{epoch = E, joined = J}, num = Mine, self = Self, d = D, now = Now} = S0) ->
    Max = lists:max([N || _ := {N, _} <- J]),
    if
        Max > Mine + 1 ->
            %% We were set aside without knowing: the one with the longest log leads.
            [Best | _] = [N || N := {Num, _} <- J, Num =:= Max],
            send(Best, {handover, D#d.lineage}, withdraw(S0));
        true ->
            [Items | _] = [I || _ := {Num, I} <- J, Num =:= Max],
            S1 = case Max > Mine of
                true -> sderl_core_write:apply_items(Max, Items, none, S0);
                false -> S0
            end,
            #s{d = #d{view = V, mem = Mem, lineage = Old, history = H} = D1} = S1,
            Joined = [N || N := {Num, _} <- J, Num >= Max - 1],
            Lost = [N || N := _ <- V, N =/= Self, maps:get(N, S1#s.linked, mute) =:= mute],
            Place = fun(N, At) ->
                case lists:member(N, Joined) of
                    true -> live;
                    false when At =:= live -> {Old, Max};
                    false -> At
                end
            end,
            View = maps:map(Place, maps:without(Lost, V#{Self => live})),
            S2 = S1#s{role = coord, lead = Self, cand = undefined, suspect = undefined, tries = 0, sessions = S1#s.sessions,
                      d = D1#d{epoch = E, lineage = E, view = View, syncing = false,
                               history = lists:sublist([{Old, Max} | H], ?HISTORY)}},
            Others = [N || N <- Joined, N =/= Self, is_map_key(N, View)],
            Info = (lead_info(S2))#{prev => Old},
            S3 = lists:foldl(fun(N, S) -> send(N, {lead, E, Max, Items, Info}, S) end, S2, Others),
            Origins = [O || {seg, O, _, _, _, _} <- Items],
            %% Whose home is outside has no name here (rule 15): also those that our predecessor saw
            %% go and did not live to order.
            %% Our own table may have been on the way to become whole: what we know to be gone goes.
            Tombs = [{tombs, maps:with([Self], D1#d.tomb)} || D1#d.syncing],
            %% What was not decided is asked again.
            Open = [{resolve, Name, A, B} || Name := {A, B} <- D1#d.clashes],
            S4 = S3#s{flight = #flight{num = Max, wait = Others, since = Now, origins = Origins, then = Open},
                      specials = [rehome, {view, sderl_membership:members(Mem) -- maps:keys(View)} | Tombs]},
            S5 = sderl_core_write:view_events(V, View, event(coordinator_changed,
                     #{new => Self, epoch => E, live => lists:sort(Joined), lost => Lost}, fx({index, build}, S4))),
            Last = S5#s.leaving,
            S6 = sderl_core_write:reorder(waiters(sderl_core_write:resend(heartbeat(S5)))),
            case Last of
                undefined -> S6;
                Why -> sderl_core_write:leave(Why, S6)
            end
    end.

-spec lead_info(#s{}) -> map().
lead_info(#s{d = D}) ->
    #{prev => D#d.lineage, history => D#d.history, view => D#d.view, mem => D#d.mem, tomb => D#d.tomb,
      clashes => D#d.clashes}.

-spec lead(epoch(), non_neg_integer(), [term()], map(), node(), #s{}) -> #s{}.
lead(E, Num, Items, #{prev := Prev} = Info, N, #s{d = #d{epoch = Mine, lineage = Lin, syncing = false}, num = Has, role = R} = S0)
  when E >= Mine, (Prev =:= Lin orelse E =:= Lin), (Has =:= Num orelse Has =:= Num - 1), R =/= coord ->
    S1 = case Has of
        Num -> S0;
        _ -> sderl_core_write:apply_items(Num, Items, none, S0)
    end,
    D = S1#s.d,
    #{history := H, view := V, mem := M, tomb := T, clashes := Cl} = Info,
    S2 = S1#s{role = follower, lead = N, lead_heard = S1#s.now, cand = undefined, suspect = undefined, to = undefined, tries = 0,
              ack = {E, Num}, d = D#d{epoch = E, lineage = E, history = H, view = V, tomb = T, clashes = Cl}},
    sderl_core_write:membership(M, sderl_core_write:resend(waiters(S2)));
lead(E, Num, _, _, N, #s{d = #d{epoch = Mine}, lead = L} = S) ->
    case E < Mine of
        true -> send(N, {refused, Mine, L}, S);
        false -> send(N, {gap, E, Num}, S)
    end.

%% ---------------------------------------------------------------- partial cuts (rule 11)

%% A member that lost its coordinator reached another that did not, which passes the word on.
-spec lost_report(epoch(), node(), node(), #s{}) -> #s{}.
lost_report(E, Who, _N, #s{role = follower, lead = L, d = #d{lineage = E}} = S) ->
    send(L, {lost, E, Who}, S);
lost_report(E, Who, _N, #s{role = coord, d = #d{lineage = E, view = V}, self = Self, peers = P, now = Now} = S0) ->
    Members = lists:usort([Who, Self | maps:keys(V)]),
    Sees = fun(Links, N) -> length([M || M <- Members, M =:= N orelse lists:member(M, Links)]) end,
    Ours = Sees(maps:keys(S0#s.linked), Self),
    Better = [{-Count, N} || N := live <- V, N =/= Self, #peer{links = Ls} <- [maps:get(N, P, none)],
                             Count <- [Sees(Ls, N)], Count > Ours],
    case lists:sort(Better) of
        [] -> S0;
        [{_, To} | _] ->
            S = send(To, {handover, E}, stop_leading(S0)),
            S#s{role = orphan, lead = undefined, orphan_since = Now}
    end;
lost_report(_, _, _, S) -> S.

%% The coordinator agreed that we see more than it does.
-spec handover(epoch(), node(), #s{}) -> #s{}.
handover(E, _N, #s{role = R, d = #d{lineage = E, syncing = false}} = S) when R =:= follower; R =:= orphan ->
    candidate(#{handover => true}, S);
handover(_, _, S) -> S.
