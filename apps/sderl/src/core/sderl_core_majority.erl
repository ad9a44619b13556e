%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_majority).
-moduledoc false.
%% Groups with `consistency => majority` as time passes: the majority is kept, lost and found again,
%% names are freed when a lease is over, and an operator can say that a majority is lost for good.

-include("sderl_core.hrl").

-export([tick/1, slow/1, recover/3]).

-import(sderl_core_state, [fx/2, send/3, event/3]).

-doc "What a member of a majority group looks at with every tick, before its role does.".
-spec tick(#s{}) -> #s{}.
tick(#s{mode = available} = S) -> S;
tick(#s{unconfirmed = [_ | _]} = S) -> S;
tick(S) -> watch(free_names(hold_office(S))).

%% A coordinator resigns if it hears less than a majority, or hears them and cannot make them count.
%% The founder of a new group waits for the others instead: nobody else can lead it.
hold_office(#s{role = coord, lead = Self, self = Self, d = #d{founding = false}} = S) ->
    #s{now = Now, aside_ms = A, tick_ms = T, peers = Peers,
       quorum = #quorum{had_at = At, leads_since = Since}} = S,
    Heard = [N || N := #peer{heard = Last} <- Peers, Now - Last =< A + 2 * T],
    case sderl_core_quorum:can_decide([Self | Heard], S)
         andalso (Now - max(At, Since) =< 3 * A orelse sderl_core_quorum:decides(S)
                  orelse learns(S)) of
        true -> S;
        false -> resign(S)
    end;
hold_office(S) -> S.

%% A snapshot of a large table may take long, and the next coordinator would begin it anew, so a
%% coordinator whose snapshots proceed stays. (A snapshot that stops proceeding is given up; one
%% that has just begun does not count, or it could be begun again and again.)
learns(#s{office = #office{snapshots = Snapshots}}) ->
    lists:any(fun(#sync{chunk = Chunk}) -> Chunk > 1 end, maps:values(Snapshots)).

%% The followers are told, so they need not wait until they miss heartbeats.
resign(#s{self = Self, peers = Peers, d = #d{epoch = E}} = S0) ->
    S = event(coordinator_changed, #{old => Self, reason => no_majority}, S0),
    Told = lists:foldl(fun(N, X) -> send(N, {not_lead, E}, X) end, S, maps:keys(Peers)),
    sderl_core_elect:orphan(Told).

%% Rule 34: names whose home has been out of reach for the lease go, by a change that is ordered.
free_names(#s{role = coord, self = Self, lead = Self, quorum = #quorum{leases = Before} = Quorum,
              now = Now, linked = Linked, d = #d{view = V}} = S) ->
    Leases = #{N => maps:get(N, Before, Now)
               || N := {_, _} <- V, maps:get(N, Linked, mute) =:= mute},
    Over = case sderl_core_quorum:decides(S) of
        true -> [N || N := Since <- Leases, Now - Since > sderl_core_quorum:lease_ms(S)];
        false -> []
    end,
    case Over of
        [] -> S#s{quorum = Quorum#quorum{leases = Leases}};
        _ ->
            S1 = S#s{quorum = Quorum#quorum{leases = maps:without(Over, Leases)}},
            sderl_core_write:reorder(sderl_core_view:change_view(maps:without(Over, V), Over, S1))
    end;
free_names(S) -> S.

-doc "Rule 12: silent members count no more, as long as those who are left are a majority.".
-spec slow(#s{}) -> #s{}.
slow(#s{office = #office{flight = #flight{wait = [_ | _] = Wait, since = At}}, now = Now,
        aside_ms = A} = S)
  when Now - At > A ->
    #s{num = Num, d = #d{lineage = E, view = V}} = S,
    View = maps:merge(V, #{N => {E, Num} || N <- Wait, maps:get(N, V, none) =:= live}),
    case View =:= V orelse sderl_core_quorum:decides(S#s{d = (S#s.d)#d{view = View}}) of
        %% Members that the batch removed may have left without telling us.
        true when View =:= V -> sderl_core_write:reorder(S);
        true -> sderl_core_write:reorder(sderl_core_view:change_view(View, [], S));
        false -> S
    end;
slow(S) -> S.

watch(#s{now = Now, quorum = #quorum{had_at = At, has = Is} = Quorum} = S) ->
    Patience = patience(S),
    case sderl_core_quorum:has(S) of
        true -> sderl_core_quorum:gained(S#s{quorum = Quorum#quorum{had_at = Now}});
        false when Is =/= false, Now - At > Patience -> lost(S);
        false -> S
    end.

%% An empty member has no coordinator before it may join one (`may_join`), and no names that anybody
%% could rely on.
patience(#s{aside_ms = A, tick_ms = T} = S) ->
    case sderl_core_quorum:is_empty(S) of
        true -> 2 * A + 2 * T;
        false -> A
    end.

lost(#s{peers = Peers, self = Self, d = #d{mem = Mem} = D, quorum = Quorum} = S0) ->
    S1 = let_go(S0#s{quorum = Quorum#quorum{has = false}, d = D#d{lost = true}}),
    S2 = event(majority_lost, #{members => sderl_membership:members(Mem),
                                live => lists:sort([Self | maps:keys(Peers)])}, S1),
    S3 = fx({majority, lost}, S2),
    case S3#s.leaving of
        undefined -> S3;
        %% No member is left that could tell us that our removal is committed.
        Why ->
            case sderl_core_quorum:may_go(S3) of
                true -> sderl_core_answer:left_out(Why, S3);
                false -> S3
            end
    end.

let_go(#s{self = Self} = S) -> sderl_core_clients:let_go(sderl_core_write:forget_list(Self, S)).

%% ---------------------------------------------------------------- the operator's call

-doc "A majority is lost for good: the survivors are the membership from here on.".
-spec recover(term(), [node()], #s{}) -> #s{}.
recover(From, Survivors, #s{now = Now, clock = Clock, d = #d{mem = Mem} = D} = S0) ->
    case refuses(Survivors, S0) of
        false ->
            Lost = sderl_membership:members(Mem) -- Survivors,
            Left = sderl_membership:remove(Lost, (Now + Clock) div 1000, Mem),
            S1 = sderl_core_role:step_down(let_go(S0#s{d = D#d{before = undefined}})),
            #s{d = Changed} = S2 = sderl_core_view:membership(Left, S1),
            S3 = S2#s{d = Changed#d{before = undefined, recovered = true}},
            sderl_core_elect:elect(fx({replies, [{From, ok}]}, S3));
        Why -> fx({replies, [{From, {no, Why}}]}, S0)
    end.

refuses(_, #s{mode = available}) -> available_mode;
refuses(Survivors, #s{self = Self, d = #d{mem = Mem}} = S) ->
    Members = lists:all(fun(N) -> sderl_membership:is_member(N, Mem) end, Survivors),
    case Members andalso lists:member(Self, Survivors) of
        false -> not_member;
        true -> sderl_core_quorum:has(S) andalso has_majority
    end.
