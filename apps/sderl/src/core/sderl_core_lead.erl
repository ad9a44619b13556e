%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_lead).
-moduledoc false.
%% A new coordinator: what it begins with, and how the members follow it.

-include("sderl_core.hrl").

-export([alone/1, lead_from/4, lead/6, is_of_log/4]).

-import(sderl_core_state, [fx/2, send/3, event/3]).

%% The first process of a node's life in this group is a component of its own, with the epoch that
%% it was given: a low one if the node boots or joins, so that any running component takes it in.
-spec alone(#s{}) -> #s{}.
alone(#s{self = Self} = S) ->
    S1 = fx({index, build}, S#s{role = coord, lead = Self}),
    sderl_core_view:waiters(sderl_core_role:heartbeat(S1)).

%% This member coordinates from here on, with those that promised it and are at most one batch
%% behind.
-spec lead_from(non_neg_integer(), [term()], [node()], #s{}) -> #s{}.
lead_from(Max, Items, Joined, #s{cand = #cand{epoch = E, alone = Alone}} = S0) ->
    #s{self = Self, now = Now, d = D, joining = Joining, office = Office} = S0,
    #d{view = V, mem = Mem, lineage = Old, history = H} = D,
    Majority = S0#s.mode =:= majority,
    %% In a majority group no member with an incomplete table leads while another has a whole one.
    Syncing = D#d.syncing andalso not Majority,
    Lost = [N || N := _ <- V, not Majority, N =/= Self, Alone orelse is_lost(N, S0)],
    Place = fun
        %% It is bringing its shard, and our log does not have all of it. It may lack the last
        %% batch, which has the first piece.
        (_, {partial, _} = At) -> At;
        (N, At) ->
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
        %% Our table is not whole: only our own names are complete.
        true -> {#{Self => live}, [], sderl_core_clash:own(Self, D)}
    end,
    Others = [N || N <- Joined, N =/= Self, is_map_key(N, View)],
    Missing = [N || N := live <- V, not Majority, N =/= Self, not lists:member(N, Others)],
    Unknown = sderl_core_answer:unknown_answers(Items, Missing),
    S1 = S0#s{role = coord,
              lead = Self,
              cand = undefined,
              election = sderl_core_role:elected(S0#s.election),
              office = Office#office{unknown_answers = Unknown},
              %% These rows came with a snapshot that ended early: no log goes on with them.
              joining = Joining#joining{session = undefined, shard = []},
              d = D#d{epoch = E, lineage = E, view = View, syncing = false, history = History,
                      recovered = false, clashes = Clashes, clashes_before = #{}}},
    Info = (sderl_core_role:lead_info(S1))#{prev => Old},
    S2 = lists:foldl(fun(N, S) -> send(N, {lead, E, Max, Items, Info}, S) end, S1, Others),
    %% If we leave by that batch, all members must know that it is committed, so that they elect
    %% another coordinator.
    Flight = #flight{num = Max,
                     wait = Others,
                     since = Now,
                     then = [{left, [Self]} || S0#s.leaving =/= undefined],
                     origins = origins(Items, S0)},
    %% An incomplete table may still have names of the former log whose home was removed in the log
    %% of the snapshot. They are dropped, as we do not know what became of them; they are not names
    %% of processes outside the group.
    Homes = case Syncing of true -> maps:keys(Mem); false -> sderl_membership:members(Mem) end,
    %% A component drops names whose home left (rule 15), including departures that the last
    %% coordinator saw but died before ordering.
    Gone = #change_view{drops = lists:sort(Homes) -- maps:keys(View), live = []},
    S3 = S2#s{office = (S2#s.office)#office{flight = Flight, changes = [rehome, Gone]}},
    S4 = event(coordinator_changed,
               #{new => Self, epoch => E, live => lists:sort(Joined), lost => lists:sort(Lost)},
               fx({index, build}, sderl_core_answer:forget_answers(S3))),
    S5 = sderl_core_role:heartbeat(sderl_core_view:view_events(V, View, S4)),
    S6 = sderl_core_write:reorder(sderl_core_view:waiters(sderl_core_clients:resend(S5))),
    case S0#s.leaving of
        undefined -> S6;
        %% It leaves when a majority has the batch that removes it.
        _ when Majority -> S6;
        Why -> sderl_core_answer:leave(Why, S6)
    end.

%% Members whose answers wait until the last batch of the log is committed. If that batch came with
%% a snapshot, its lists are not known, and a majority may lack it: then all members.
origins([], #s{mode = majority, sessions = Sessions}) -> maps:keys(Sessions);
origins(Items, _) -> sderl_core_write:origins(Items).

%% Whether the names of this member go: its link broke, or its library said that it stops. A link
%% that came up since counts only after a hello: the node may have restarted, and may run another
%% group of this name, or no library, and then nobody else would drop the names of its former life.
is_lost(N, #s{linked = Linked, broken = Broken}) ->
    maps:get(N, Linked, mute) =:= mute orelse is_map_key(N, Broken).

%% In a majority group names go by an ordered change only (rule 34). A member without a place in the
%% view, because a change of the view was not ordered, or because it was removed and added again,
%% gets one, and its lease begins. A former coordinator that was removed while it led has none.
unplaced(#s{mode = available, d = #d{view = V}}) -> V;
unplaced(#s{num = Num, d = #d{view = V, mem = Mem, lineage = Lin}}) ->
    Members = sderl_membership:members(Mem),
    maps:merge(maps:from_keys(Members, {Lin, Num}), maps:with(Members, V)).

-spec lead(epoch(), non_neg_integer(), [term()], lead_info(), node(), #s{}) -> #s{}.
lead(E, Num, Items, #{prev := Prev, history := H} = Info, N,
     #s{mode = majority, d = #d{lineage = Lin}} = S)
  when Prev =/= Lin, E =/= Lin ->
    case is_of_log(Lin, Prev, Num, H) of
        true -> lead(E, Num, Items, Info#{prev := Lin}, N, S);
        false -> led(E, Num, Items, Info, N, S)
    end;
lead(E, Num, Items, Info, N, #s{role = R, self = Self, num = Has, d = #d{epoch = Mine}} = S)
  when E >= Mine, Has =:= Num - 1, R =/= coord ->
    case sderl_core_view:drops(Self, Items) of
        true -> sderl_core_join:give_up(N, E, sderl_core_role:become_orphan(S));
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
    S2 = (sderl_core_role:become_follower(N, S1))#s{
        ack = {E, Num},
        d = D#d{epoch = E, lineage = E, history = H, view = V, clashes = Clashes, recovered = false}
    },
    S3 = sderl_core_clients:resend(sderl_core_view:waiters(S2)),
    sderl_core_quorum:gained(sderl_core_view:membership(M, S3));
led(E, Num, _, _, N, #s{d = #d{epoch = Mine}, lead = L} = S) ->
    case E < Mine of
        true -> send(N, {refused, Mine, L}, S);
        false -> send(N, {gap, E, Num}, S)
    end.

-doc """
Whether, at this number, the logs of two epochs are the same but for the last batch: no batch was
ordered in the epochs after the first.
""".
-spec is_of_log(epoch(), epoch(), non_neg_integer(), [position()]) -> boolean().
is_of_log(Lineage, Lineage, _, _) -> true;
is_of_log(Lineage, _, Num, History) -> lists:member({Lineage, Num}, History).
