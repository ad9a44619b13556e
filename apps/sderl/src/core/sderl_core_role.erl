%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_role).
-moduledoc false.
%% Changes of a member's role: what of the state goes with the old role and what stays.

-include("sderl_core.hrl").

-export([leave_office/1, step_down/1, become_orphan/1, become_follower/2, elected/1, withdraw/1]).
-export([in_order/2, lead_info/1, heartbeat/1]).

-import(sderl_core_state, [fx/2, send/3]).

-doc "This member stops coordinating, or joining another coordinator.".
-spec leave_office(#s{}) -> #s{}.
leave_office(#s{role = Role, lead = Self, self = Self,
                office = #office{snapshots = Snapshots}} = S0)
  when Role =:= coord; Role =:= joining ->
    S = lists:foldl(fun(N, S1) -> fx({read_stop, N}, S1) end, S0,
                    lists:sort(maps:keys(Snapshots))),
    fx({index, drop}, S#s{lead = undefined, office = #office{}});
leave_office(S) -> S.

-spec step_down(#s{}) -> #s{}.
step_down(S0) ->
    S = become_orphan(leave_office(S0)),
    Election = (S#s.election)#election{attempts = 0, shut_out_since = undefined},
    sderl_core_clients:resend(give_up_joining(S#s{election = Election})).

-doc "This member has no coordinator any more, and owes none an answer.".
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
    S = give_up_joining(S0),
    S#s{role = follower,
        lead = Coordinator,
        lead_heard = Now,
        cand = undefined,
        election = elected(Election)}.

-doc "There is a coordinator.".
-spec elected(#election{}) -> #election{}.
elected(Election) ->
    Election#election{attempts = 0,
                      shut_out_since = undefined,
                      outnumbered_since = undefined,
                      suspect = undefined}.

%% Nobody else was told of this promise of our own.
-spec withdraw(#s{}) -> #s{}.
withdraw(#s{cand = #cand{was = Was}, d = D, now = Now, election = Election} = S) ->
    S#s{role = orphan,
        cand = undefined,
        election = Election#election{orphan_since = Now},
        d = D#d{epoch = Was}}.

-doc """
Members in the order in which they stand for election. The last coordinator comes first, if it is
here with a new process: it still has the index of all names that a coordinator needs.
""".
-spec in_order([node()], #s{}) -> [node()].
in_order(Nodes, #s{d = #d{lineage = {_, Last}}}) ->
    {First, Others} = lists:partition(fun(N) -> N =:= Last end, lists:sort(Nodes)),
    First ++ Others.

-spec lead_info(#s{}) -> lead_info().
lead_info(#s{d = #d{before = undefined, mem = Mem, view = V} = D}) ->
    %% A new coordinator that the last batch removes leads until that batch is committed, and then
    %% leaves: it is not in the view.
    #{prev => D#d.lineage,
      history => D#d.history,
      view => maps:with(sderl_membership:members(Mem), V),
      mem => Mem,
      clashes => D#d.clashes};
lead_info(#s{d = #d{before = Before} = D} = S) ->
    (lead_info(S#s{d = D#d{before = undefined}}))#{before => Before}.

-doc "This member joins nobody any more.".
-spec give_up_joining(#s{}) -> #s{}.
give_up_joining(#s{joining = Joining} = S) ->
    S#s{joining = Joining#joining{to = undefined, bringing = undefined}}.

-spec heartbeat(#s{}) -> #s{}.
heartbeat(#s{peers = P, d = #d{lineage = E}} = S0) ->
    C = sderl_core_answer:told_committed(S0),
    maps:fold(fun(N, _, S) -> send(N, {hb, E, C}, S) end, S0, P).
