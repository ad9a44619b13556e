%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_admit).
-moduledoc false.
%% Members that a coordinator takes in: those that join it, and those that were set aside.

-include("sderl_core.hrl").

-define(OFFER_TICKS, 4).

-export([join/4, take_offers/1, set_aside/2, gap/3, synced/4]).

-import(sderl_core_state, [send/3]).

-doc "A member, whose log ends at this epoch and number, wants to join.".
-spec join(epoch(), non_neg_integer(), node(), #s{}) -> #s{}.
join(E, Num, N, #s{role = coord, unconfirmed = [], d = #d{lineage = Mine}} = S) when E =< Mine ->
    #s{office = #office{offers = Offers} = Office, now = Now} = S,
    case is_member(N, S) of
        true ->
            %% Two nodes that boot together do not outrank a running component, which may call us in
            %% at any moment (rule 2).
            case sderl_core_view:unmet(S) of
                true -> S#s{office = Office#office{offers = Offers#{N => {Now, {E, Num}}}}};
                false -> take({E, Num}, N, found(S))
            end;
        false ->
            case sderl_core_quorum:is_needed(N, S) andalso sderl_core_quorum:has_committed(S) of
                true -> sderl_core_snapshot:start([N], S);
                %% Another component may have added it: then its hello says so. Or all that it lacks
                %% is the batch that removes it.
                false -> sderl_core_state:ask(N, S)
            end
    end;
%% We join or follow another coordinator ourselves, which will take it in.
join(_, _, N, #s{role = joining, joining = #joining{to = {A, E, _}}} = S) when A =/= N ->
    send(N, {low, E, A}, S);
join(_, _, N, #s{role = follower, lead = L, d = #d{epoch = E}} = S) when L =/= N ->
    send(N, {low, E, L}, S);
join(_, _, _, S) -> S.

is_member(N, #s{self = Self, d = #d{mem = Mem}}) ->
    N =/= Self andalso sderl_membership:is_member(N, Mem).

-doc "Takes in the members whose offers waited until no component was left that may outrank us.".
-spec take_offers(#s{}) -> #s{}.
take_offers(#s{office = #office{offers = Offers}} = S) when map_size(Offers) =:= 0 -> S;
take_offers(#s{office = #office{offers = Offers} = Office, now = Now, tick_ms = T} = S0) ->
    case sderl_core_view:unmet(S0) of
        true -> S0;
        false ->
            S1 = S0#s{office = Office#office{offers = #{}}},
            %% A member that still waits repeats its offer at each heartbeat, so older offers are
            %% dropped.
            Recent = maps:filter(fun(_, {At, _}) -> Now - At =< ?OFFER_TICKS * T end, Offers),
            maps:fold(fun(N, {_, {E, Num}}, S) -> join(E, Num, N, S) end, S1,
                      maps:iterator(Recent, ordered))
    end.

take({{Counter, _}, _} = Position, N, #s{mode = majority} = S) ->
    case Counter < 0 orelse sderl_core_quorum:has_committed(S) of
        true -> take_in(Position, N, S);
        %% It does not follow us, or not yet, whatever our view says. Its hello says whether it
        %% lacks no more than the last batch (rule 35).
        false -> sderl_core_state:ask(N, set_place(N, S))
    end;
take({{Counter, _}, _} = Position, N, #s{d = D0} = S0) ->
    S1 = sderl_core_clash:came_back(N, Counter < 0, sderl_core_write:forget_list(N, S0)),
    S = case D0#d.view of
        #{N := live} -> set_place(N, S1);
        _ -> S1
    end,
    case sderl_core_join:covered(N, Position, S#s.d) of
        true -> sderl_core_snapshot:start([N], sderl_core_merge:forget_join(N, S));
        false -> sderl_core_merge:ask_for_shard(Position, N, S)
    end.

%% A component that was one booting node becomes a running one when it takes in its first member:
%% from then on it outranks the nodes that boot. Nobody else has promised anything to it yet.
found(#s{self = Self, num = Num, office = #office{flight = undefined},
         d = #d{lineage = {C, Self} = Old, epoch = Old} = D} = S)
  when C < 0, map_size(D#d.view) =:= 1 ->
    New = sderl_core_state:epoch(S),
    S#s{d = D#d{lineage = New, epoch = New, history = [{Old, Num} | D#d.history]}};
found(S) -> S.

-doc "A coordinator takes a member in: its place in the view, and a snapshot.".
-spec take_in(position(), node(), #s{}) -> #s{}.
take_in({{Counter, _}, _} = Position, N, S) ->
    case Counter < 0 andalso not has_waited(N, S) of
        true -> S;
        false -> take_in(Counter < 0, Position, N, S)
    end.

take_in(Empty, Position, N, #s{d = #d{view = V}} = S0) ->
    S1 = sderl_core_write:forget_list(N, S0),
    S2 = case V of
        #{N := {_, _} = Place} when not Empty; Place =:= Position -> S1;
        %% In a new life of the node, the processes of the former life's names are gone.
        _ ->
            Drops = [N || Empty, is_map_key(N, V)],
            sderl_core_write:reorder(sderl_core_view:change_view(V#{N => Position}, Drops, S1))
    end,
    sderl_core_snapshot:start([N], sderl_core_quorum:note_newcomer(N, S2)).

%% An empty member asks the coordinator that it has promised at once (`may_join`). That is right if
%% its promise counted.
has_waited(_, #s{d = #d{founding = true}}) -> true;
has_waited(N, #s{now = Now, aside_ms = A, tick_ms = T,
                 quorum = #quorum{leads_since = Since}} = S) ->
    sderl_core_quorum:is_promised(N, S) orelse Now - Since > A + 2 * T.

%% ---------------------------------------------------------------- set aside, and counted again

-doc "A member counts no longer; its shard is frozen as our log has it.".
-spec set_place(node(), #s{}) -> #s{}.
set_place(N, #s{num = Num, d = #d{lineage = E, view = V}} = S) ->
    case V of
        #{N := live} ->
            sderl_core_write:reorder(sderl_core_view:change_view(V#{N := {E, Num}}, [], S));
        _ -> S
    end.

-doc "A member has to catch up.".
-spec set_aside(node(), #s{}) -> #s{}.
%% After a pause we wait: the member may have gone on without us, and has been asked. It will say
%% again that it lacks batches.
set_aside(_, #s{unconfirmed = [_ | _]} = S) -> S;
set_aside(N, S) -> sderl_core_snapshot:start([N], set_place(N, S)).

-doc "A member says that it lacks a batch.".
-spec gap(epoch(), node(), #s{}) -> #s{}.
gap(E, N, #s{role = coord, d = #d{lineage = E, view = V}} = S) when is_map_key(N, V) ->
    set_aside(N, S);
gap(E, N, #s{role = coord, d = #d{lineage = E}} = S) -> send(N, {dropped, E}, S);
gap(_, _, S) -> S.

%% The member has everything up to the last batch that was sent, and later batches reach it in
%% order: it counts from the next batch on. (The answer to a snapshot that was begun anew since is
%% ignored.)
-spec synced(epoch(), pos_integer(), node(), #s{}) -> #s{}.
synced(E, Id, N, #s{role = coord, office = Office, d = #d{lineage = E, view = V}} = S) ->
    case {Office#office.snapshots, V} of
        {#{N := #sync{id = Id, acked = Acked}} = Snapshots, #{N := {_, _}}} ->
            Done = sderl_core_snapshot:set_snapshots(maps:remove(N, Snapshots), S),
            S1 = sderl_core_view:change_view(V#{N => live}, [], Done),
            S2 = sderl_core_write:reorder(sderl_core_quorum:counts(N, Acked, S1)),
            S3 = sderl_core_clash:came_back(N, false, S2),
            sderl_core_write:unhold(N, sderl_core_view:waiters(S3));
        {#{N := #sync{id = Id, acked = Acked}} = Snapshots, _} when not is_map_key(N, V) ->
            Done = sderl_core_snapshot:set_snapshots(maps:remove(N, Snapshots), S),
            sderl_core_write:ack(E, Acked, none, N, Done);
        _ -> S
    end;
synced(_, _, _, S) -> S.
