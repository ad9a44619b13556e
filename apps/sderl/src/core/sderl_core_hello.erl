%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_hello).
-moduledoc false.
%% A member says hello: over a new link, as a new process, or because it was asked. What follows
%% depends on its log and on our role.

-include("sderl_core.hrl").

-export([hello/5]).

-import(sderl_core_state, [send/3]).

-doc "`Fresh`: the member's process, or our link to it, is a new one.".
-spec hello(node(), boolean(), sderl_membership:t(), hello_info(), #s{}) -> #s{}.
hello(N, Fresh, Mem, Info, S0) ->
    S = sderl_core_peers:mem(Mem, N, S0),
    hello_as(N, Fresh, Info, S).

hello_as(N, Fresh, Info, #s{role = coord, self = Self, mode = Mode, d = #d{view = V, lineage = E},
                            num = Num} = S) ->
    Majority = Mode =:= majority,
    Newcomer = sderl_core_quorum:is_newcomer(N, S),
    Learns = sderl_core_snapshot:is_learner(N, S),
    Nearly = Majority andalso not Learns andalso has_nearly(N, Info, S),
    case V of
        %% It said hello before it had our `lead`, which it will answer. (A hello that its node's
        %% server passes on comes late.) If it were set aside for that it would need a snapshot, and
        %% in a large group all members would.
        #{N := live} when not Fresh, map_get(lineage, Info) < E, map_get(epoch, Info) =< E -> S;
        #{N := live} when Fresh; map_get(lead, Info) =/= Self ->
            %% Its process is a new one, or did not see us, or has yet to hear that we lead. If it
            %% is one batch behind it gets the last batch, otherwise a snapshot.
            case Info of
                #{lineage := Log, num := Has, syncing := false}
                  when Has =:= Num orelse Has =:= Num - 1, not Newcomer ->
                    lead_again(N, Log, S);
                _ -> sderl_core_admit:set_aside(N, S)
            end;
        #{N := live} -> S;
        %% Rule 35: only its link was gone, for which it was set aside in a majority group, or it
        %% was away in the election. Not a member that came back empty: it would see itself among
        %% the live members, and vote too early.
        #{N := {_, _}} when Nearly, not Newcomer ->
            S1 = sderl_core_view:change_view(V#{N := live}, [], S),
            S2 = lead_once_more(N, map_get(lineage, Info), S1),
            sderl_core_write:reorder(sderl_core_quorum:counts(N, Num - 1, S2));
        %% It gave up bringing its shard, or died meanwhile: it begins anew.
        #{N := {partial, _}} -> send(N, {dropped, E}, S);
        #{N := {_, _}} when Fresh; not Learns -> sderl_core_snapshot:start([N], S);
        #{N := {_, _}} -> S;
        _ when Learns, not Fresh -> S;
        %% Our link broke and came back: we have dropped it, and it waits for us.
        _ when Majority -> removed(N, Info, S);
        _ when map_get(lineage, Info) =:= E -> send(N, {dropped, E}, S);
        _ -> send(N, {hb, E, sderl_core_answer:told_committed(S)}, S)
    end;
%% Its process is a new one, which does not know that we join it.
hello_as(N, true, Info, #s{role = joining, joining = #joining{to = {N, _, _}}, lead = Self,
                           self = Self} = S) ->
    hello_as(N, true, Info, sderl_core_elect:resume(S));
hello_as(N, true, _, #s{role = follower, lead = N} = S) -> sderl_core_elect:orphan(S);
hello_as(N, true, _, #s{role = candidate, cand = #cand{wait = W, epoch = E}} = S) ->
    case lists:member(N, W) of
        true -> send(N, {collect, E, S#s.d#d.lineage, #{}}, S);
        false -> S
    end;
hello_as(_, true, _, #s{role = orphan} = S) -> sderl_core_elect:elect(S);
hello_as(_, _, _, S) -> S.

%% In a majority group, a node without a place in our view: the last batch may remove it.
removed(N, #{lineage := Log} = Info, #s{num = Num, d = #d{lineage = E, history = H}} = S) ->
    Has = sderl_core_quorum:has_say(N, Info, S) andalso sderl_core_lead:is_of_log(Log, E, Num, H),
    Needed = sderl_core_quorum:is_needed(N, S),
    if
        Has -> lead_once_more(N, Log, S);
        Log =:= E -> send(N, {dropped, E}, S);
        Needed -> sderl_core_snapshot:start([N], S);
        true -> send(N, {hb, E, sderl_core_answer:told_committed(S)}, S)
    end.

%% Whether the member lacks at most the last batch of our log, and may follow us. (A member that the
%% last batch drops does not apply it.)
has_nearly(N, #{epoch := Epoch, lineage := Log, num := Has, syncing := false},
           #s{num = Num, last = Last, d = #d{lineage = E, history = H}})
  when Epoch =< E, Has =:= Num orelse (Has =:= Num - 1 andalso Last =/= []) ->
    sderl_core_lead:is_of_log(Log, E, Num, H)
        andalso (Has =:= Num orelse not sderl_core_view:drops(N, Last));
has_nearly(_, _, _) -> false.

%% A member that promised our epoch may still have the log that we took over. Until a snapshot is
%% complete the member, and so perhaps a majority, would have neither log.
lead_again(N, Log, #s{num = Num, d = #d{lineage = E, history = H}} = S) ->
    case sderl_core_lead:is_of_log(Log, E, Num, H) of
        true -> lead_once_more(N, Log, S);
        false -> sderl_core_admit:set_aside(N, S)
    end.

%% It gets the last batch with that, if it lacks it.
lead_once_more(N, Log, #s{num = Num, last = Last, d = #d{lineage = E}} = S) ->
    send(N, {lead, E, Num, Last, (sderl_core_role:lead_info(S))#{prev := Log}}, S).
