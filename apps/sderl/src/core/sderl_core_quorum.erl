%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_quorum).
-moduledoc false.
%% Groups with `consistency => majority`.
%%
%% Such a group has one log. More than half of the members promise a coordinator its epoch, and a
%% batch is committed when all live members have it and those are more than half (rule 32). Any two
%% such majorities have a member in common, so no two sides of a split decide, and every coordinator
%% begins with all that was ever answered. Nothing is merged: a member that comes back takes a
%% snapshot, and what was not committed in its own log is dropped.
%%
%% A member that comes back *empty*, after a restart of its node or application, knows neither its
%% log nor what it promised. It does not vote (rule 33) until a coordinator with a majority of
%% others has taken it in, and it asks for this only when no candidate can be left that counts on a
%% promise of its former life. In an election in which all members take part empty ones count:
%% nobody else can know more.
%%
%% A member whose link is gone is set aside like a silent one, and its names stay so long that it
%% has noticed by then that it has no majority any more (the lease, rule 34).

-include("sderl_core.hrl").

-export([new/2, restore/1, status/1, report_difference/3, decides/1, can_decide/2, ended/3,
         may_go/1]).
-export([has_say/3, is_needed/2, came_back/2, membership_changed/1, counts_acknowledgements/1,
         is_voter/1]).
-export([is_empty/1, members/1, missing/2, is_enough/3, lease_ms/1, has/1, gained/1,
         is_promised/2]).
-export([has_committed/1, may_learn/2]).
-export([note_newcomer/2, is_newcomer/2, counts/3, committed/2, confirmed/1, may_join/2]).

-import(sderl_core_state, [fx/2, event/3, set_flight/2]).
-import(sderl_membership, [is_majority/2]).

-doc "The state of a new process; `true`: a file says what a former life of the node promised.".
-spec new(integer(), boolean()) -> #quorum{}.
new(Now, Remembers) -> #quorum{began = Now, had_at = Now, remembers = Remembers}.

-doc "A former process of this life may have told its clients that there is no majority.".
-spec restore(#s{}) -> #s{}.
restore(#s{d = #d{lost = false}} = S) -> S;
restore(#s{quorum = Quorum} = S) -> S#s{quorum = Quorum#quorum{has = false}}.

-doc "Whether there is a majority, as clients are told.".
-spec status(#s{}) -> unknown | boolean().
status(#s{quorum = #quorum{has = Is}}) -> Is.

-doc "Two members give the group different consistencies, so they cannot be in one component.".
-spec report_difference(node(), available | majority, #s{}) -> #s{}.
report_difference(N, Theirs, #s{mode = Ours, quorum = #quorum{differs = Told} = Quorum} = S) ->
    case lists:member(N, Told) of
        true -> S;
        false ->
            event(consistency_differs, #{node => N, ours => Ours, theirs => Theirs},
                  S#s{quorum = Quorum#quorum{differs = [N | Told]}})
    end.

%% ---------------------------------------------------------------- what a majority is

-doc "Whether the members that count in this component may order and commit.".
-spec decides(#s{}) -> boolean().
decides(#s{mode = available}) -> true;
decides(#s{quorum = #quorum{newcomers = New}, d = #d{mem = Mem, before = Before, view = V}} = S) ->
    Live = maps:filter(fun(N, Place) -> Place =:= live andalso not is_map_key(N, New) end, V),
    is_all_there_is(Live, Mem, S) andalso
        (Before =:= undefined orelse is_all_there_is(maps:merge(acknowledged(S), Live), Before, S)).

%% A majority, or all that have not left: the removal of those could not be ordered otherwise.
is_all_there_is(Nodes, Mem, #s{quorum = #quorum{ended = Ended}}) ->
    is_majority(Nodes, Mem)
        orelse sderl_membership:members(Mem) -- maps:keys(maps:merge(Ended, Nodes)) =:= [].

-doc "Whether these members would be enough to decide.".
-spec can_decide([node()], #s{}) -> boolean().
can_decide(Nodes, #s{d = #d{mem = Mem}} = S) -> is_all_there_is(set(Nodes), Mem, S).

%% Members that a batch removes acknowledge it too, but are not in the view any more.
acknowledged(#s{office = #office{flight = undefined}} = S) -> agreed(S);
acknowledged(#s{self = Self, office = #office{flight = #flight{had = Had}},
                quorum = #quorum{newcomers = New}, d = #d{view = V}} = S) ->
    Voters = [N || N <- [Self | Had], not is_map_key(N, V), not is_map_key(N, New)],
    maps:merge(agreed(S), set(Voters)).

%% Former members that agreed to the batch that removed them.
agreed(#s{quorum = #quorum{ended = Ended}}) ->
    maps:filter(fun(_, How) -> How =:= agreed end, Ended).

-doc """
Whether a node, by the end of its log, which is of this epoch, has a say in the batch that removes
it. It gets that batch again, for its acknowledgement, and is not taken in.
""".
-spec has_say(node(), hello_info(), #s{}) -> boolean().
has_say(N, #{num := Has, syncing := false}, #s{num = Num, d = #d{before = Before}})
  when Before =/= undefined, Num - Has >= 0, Num - Has =< 1 ->
    sderl_membership:is_member(N, Before);
has_say(_, _, _) -> false.

-doc """
Whether the last batch removes this member, and its acknowledgement of that counts. The
acknowledgement may be needed, and the member may have another log or lack more than the batch, so
it gets a snapshot, without a place in the view.
""".
-spec is_needed(node(), #s{}) -> boolean().
is_needed(_, #s{d = #d{before = undefined}}) -> false;
is_needed(N, #s{d = #d{mem = Mem, before = Before}} = S) ->
    sderl_membership:is_member(N, Before) andalso not sderl_membership:is_member(N, Mem)
        andalso is_promised(N, S).

-doc """
A node says that it has left, with the membership by which it went. It has no say any more, and has
agreed to that membership alone. If that has members which ours lacks, they know more than we do,
and the node counts as missing.
""".
-spec ended(node(), sderl_membership:t(), #s{}) -> #s{}.
ended(N, Mem, #s{mode = majority, quorum = #quorum{ended = Ended} = Quorum, role = R,
                 d = #d{mem = Mine}} = S0) ->
    Both = sderl_membership:merge(Mem, Mine),
    Own = maps:with([N], Both),
    Without = case {Mem, sderl_membership:members(Mem) -- members(S0)} of
        {Mine, _} -> Ended#{N => agreed};
        {_, []} -> maps:merge(Ended, Own);
        _ -> Ended
    end,
    S = S0#s{quorum = Quorum#quorum{ended = Without}},
    case {sderl_membership:is_member(N, Both), sderl_membership:is_member(N, Mine)} of
        {true, _} -> S0;
        {false, true} when R =:= coord ->
            %% All of them are removed together: if they were removed one after the other, the
            %% remaining members might be no majority while others are still to go.
            Left = maps:merge(maps:filter(fun(_, How) -> How =/= agreed end, Without), Own),
            Change = #merge_membership{membership = maps:merge(Mine, Left), from = N},
            case sderl_core_state:is_ordered(merge_membership, S) of
                true -> S;
                false -> sderl_core_state:order(Change, S)
            end;
        _ -> S
    end;
ended(_, _, S) -> S.

-doc """
Whether this member may leave by the batch that removes it before it knows that the batch is
committed. By leaving it agrees to the batch (`ended`), so it must have a vote, and must not have
promised another epoch since, which may begin without that batch.
""".
-spec may_go(#s{}) -> boolean().
may_go(#s{mode = majority, leaving = removed, d = #d{before = Before} = D})
  when Before =/= undefined ->
    D#d.votes andalso D#d.epoch =:= D#d.lineage;
may_go(_) -> true.

-doc "A node that had left says hello.".
-spec came_back(node(), #s{}) -> #s{}.
came_back(N, #s{quorum = #quorum{ended = Ended} = Quorum} = S) when is_map_key(N, Ended) ->
    S#s{quorum = Quorum#quorum{ended = maps:remove(N, Ended)}};
came_back(_, S) -> S.

-doc "What members that have left said of the former membership means nothing for the new one.".
-spec membership_changed(#s{}) -> #s{}.
membership_changed(#s{quorum = Quorum} = S) -> S#s{quorum = Quorum#quorum{ended = #{}}}.

set(Nodes) -> maps:from_keys(Nodes, []).

-doc "Whether acknowledgements of other than live members have to be counted.".
-spec counts_acknowledgements(#s{}) -> boolean().
counts_acknowledgements(#s{mode = majority, d = #d{before = Before}}) -> Before =/= undefined;
counts_acknowledgements(_) -> false.

-doc "Whether this member's promise counts (rule 33).".
-spec is_voter(#s{}) -> boolean().
is_voter(#s{d = #d{syncing = Syncing, votes = Votes}}) -> Votes andalso not Syncing.

-doc "Whether this member came back empty, or never was in the log.".
-spec is_empty(#s{}) -> boolean().
is_empty(#s{d = #d{lineage = {C, _}}}) -> C < 0.

-doc "The members of this membership, and of the one before while its members have a say.".
-spec members(#s{}) -> [node()].
members(#s{d = #d{mem = Mem, before = undefined}}) -> sderl_membership:members(Mem);
members(#s{d = #d{mem = Mem, before = Before}}) ->
    lists:usort(sderl_membership:members(Mem) ++ sderl_membership:members(Before)).

-doc "The members that are not among these and have not left.".
-spec missing([node()], #s{}) -> [node()].
missing(Nodes, #s{quorum = #quorum{ended = Ended}} = S) ->
    (members(S) -- Nodes) -- maps:keys(Ended).

-doc "Whether the voters of those that take part are a majority, or no member is missing.".
-spec is_enough(Voters :: [node()], All :: [node()], #s{}) -> boolean().
is_enough(_, _, #s{d = #d{founding = true}}) -> true;
is_enough(Voters, All, #s{d = #d{mem = Mem, before = Before}} = S) ->
    missing(All, S) =:= []
    orelse (is_majority(set(Voters), Mem) andalso
            (Before =:= undefined orelse is_majority(maps:merge(agreed(S), set(Voters)), Before))).

-doc """
How long names of an unreachable home stay, in milliseconds. By then that home has declared that it
has no majority: its coordinator steps down `aside_ms` and three ticks after it last heard the
majority, a follower that hears no more of its coordinator gives it up after as long again, and
declares the loss `aside_ms` after that. Three ticks are left for clocks, pauses and delays.
""".
-spec lease_ms(#s{}) -> pos_integer().
lease_ms(#s{aside_ms = A, tick_ms = T}) -> 3 * A + 10 * T.

%% -------------------------------------------------------------- to have a majority, and to lose it

-doc "Whether this member has a coordinator with a majority, as far as it knows.".
-spec has(#s{}) -> boolean().
has(#s{role = follower}) -> true;
has(#s{role = coord} = S) -> decides(S);
has(_) -> false.

-doc """
This member may have a coordinator with a majority again. Holders of names are told when the table
is whole: until then it may have names that were removed meanwhile.
""".
-spec gained(#s{}) -> #s{}.
gained(#s{mode = majority, quorum = #quorum{has = Is} = Quorum, lead = Lead, now = Now,
          d = #d{syncing = false} = D} = S) when Is =/= true ->
    case has(S) of
        true when D#d.lost ->
            S1 = fx({majority, regained}, S#s{quorum = Quorum#quorum{has = true, had_at = Now},
                                              d = D#d{lost = false}}),
            event(majority_regained, #{coordinator => Lead}, S1);
        true -> S#s{quorum = Quorum#quorum{has = true, had_at = Now}};
        false -> S
    end;
gained(S) -> S.

%% ---------------------------------------------------------------- members that come back

-doc "Whether the member has promised this epoch in its present life.".
-spec is_promised(node(), #s{}) -> boolean().
is_promised(N, #s{quorum = #quorum{promised = Promised}, peers = Peers}) ->
    case {Promised, Peers} of
        {#{N := Life}, #{N := #peer{inc = Life}}} -> true;
        _ -> false
    end.

-doc "Whether a batch of this coordinator's epoch is committed.".
-spec has_committed(#s{}) -> boolean().
has_committed(#s{quorum = #quorum{has_committed = Has}}) -> Has.

-doc """
Rule 35. Whether the member's table may be replaced by a snapshot: the member has no copy of the
log, or a majority has ours, or it has promised us and lacks more than the last batch (one that
lacks less needs no snapshot: `sderl_core_hello`). Any other member may have the only other copy of
what was committed, and would lose it with the first rows.
""".
-spec may_learn(node(), #s{}) -> boolean().
may_learn(N, #s{d = #d{view = V}} = S) ->
    Empty = case V of
        #{N := {{Counter, _}, _}} -> Counter < 0;
        _ -> false
    end,
    Empty orelse has_committed(S) orelse is_promised(N, S).

-doc """
Rule 33. A member that promised this epoch in its present life counts. The founder of a group counts
all members, because nobody else can lead it.
""".
-spec note_newcomer(node(), #s{}) -> #s{}.
note_newcomer(N, #s{quorum = #quorum{newcomers = New} = Quorum, d = #d{founding = false}} = S) ->
    case is_promised(N, S) of
        true -> S;
        false -> S#s{quorum = Quorum#quorum{newcomers = New#{N => not_live}}}
    end;
note_newcomer(_, S) -> S.

-doc "Whether the member came back empty, and does not vote yet.".
-spec is_newcomer(node(), #s{}) -> boolean().
is_newcomer(N, #s{quorum = #quorum{newcomers = New}}) -> is_map_key(N, New).

-doc """
A member has caught up, and acknowledged batches up to this number. From here on it counts: a later
batch that is out waits for it, too.
""".
-spec counts(node(), non_neg_integer(), #s{}) -> #s{}.
counts(_, _, #s{mode = available} = S) -> S;
counts(N, _, #s{quorum = #quorum{newcomers = New} = Quorum, num = Num} = S)
  when is_map_key(N, New) ->
    S#s{quorum = Quorum#quorum{newcomers = New#{N := Num + 1}}};
counts(N, Acked, #s{office = #office{flight = #flight{num = Num, wait = Wait} = F}} = S)
  when Acked < Num ->
    set_flight(F#flight{wait = [N | lists:delete(N, Wait)]}, S);
counts(_, _, S) -> S.

-doc "A batch was committed.".
-spec committed(non_neg_integer(), #s{}) -> #s{}.
committed(_, #s{mode = available} = S) -> S;
committed(Num, #s{quorum = #quorum{newcomers = New, promised = Promised} = Quorum, peers = Peers,
                  d = D} = S) ->
    Confirmed = [N || N := At <- New, At =/= not_live, At =< Num],
    Lives = #{N => Life || N <- Confirmed, #peer{inc = Life} <- [maps:get(N, Peers, none)]},
    gained(S#s{quorum = Quorum#quorum{has_committed = true,
                                      newcomers = maps:without(Confirmed, New),
                                      promised = maps:merge(Promised, Lives)},
               d = D#d{founding = false}}).

-doc "All batches that this member has are committed.".
-spec confirmed(#s{}) -> #s{}.
confirmed(#s{mode = available} = S) -> S;
confirmed(#s{self = Self, quorum = Quorum, d = D} = S) ->
    #d{view = V, syncing = Syncing, votes = Votes} = D,
    Counts = maps:get(Self, V, none) =:= live andalso not Syncing,
    gained(S#s{quorum = Quorum#quorum{ended = #{}},
               d = D#d{before = undefined, votes = Votes orelse Counts}}).

-doc """
Whether this member may ask the coordinator of an epoch to take it in. A former life of an empty
member may have promised another epoch to a candidate, which has given up after this time; the
node's file, if any, says which epoch it was. It may join the epoch that it promised in this life at
once.
""".
-spec may_join(epoch(), #s{}) -> boolean().
may_join(_, #s{mode = available}) -> true;
may_join(E, #s{now = Now, aside_ms = A, tick_ms = T, d = #d{votes = Votes, epoch = Mine}} = S) ->
    #s{quorum = #quorum{began = Began, remembers = Remembers}} = S,
    E =:= Mine orelse not is_empty(S) orelse Votes orelse Remembers orelse Now - Began > A + 2 * T.
