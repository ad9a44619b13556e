%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_quorum).
-moduledoc false.
%% Groups with `consistency => majority`.
%%
%% Such a group has one log. A coordinator is promised its epoch by more than half of the membership,
%% and a batch is committed when all live members have it and those are more than half (rule 32). Any two
%% such halves have a member in common, so that no two sides of a split decide, and every coordinator
%% begins with all that was ever answered. Nothing is merged, therefore: who comes back takes a
%% snapshot, and what was not committed in its own log is dropped.
%%
%% A member that comes back *empty*, after a restart of its node or application, knows neither its log nor
%% whom it promised. It does not vote (rule 33) until a coordinator has taken it in that has a majority
%% without it, and lets itself be taken in only when no candidate can be left that counts on a promise of
%% its former life. Where all members take part an empty one counts: nobody else can know more.
%%
%% A member whose link is gone is set aside, as one that is silent, and its names stay for a time in which
%% it has noticed that it has no majority any more (the lease, rule 34).

-include("sderl_core.hrl").

-export([new/2, restore/1, status/1, report_difference/3, is_newcomer/2]).
-export([ended/3, came_back/2, membership_changed/1]).
-export([decides/1, counts_acknowledgements/1, is_voter/1, lease_ms/1]).
-export([tick/1, slow/1, take_in/3, counts/3, committed/2, confirmed/1, gained/1, may_join/2]).
-export([elect/1, candidate/2, promise/4, promised/4, finish/1, is_of_log/4]).
-export([recover/3]).

-import(sderl_core_state, [fx/2, send/3, event/3, present/2, set_flight/2]).
-import(sderl_membership, [is_majority/2]).

-doc "The part of the state, as a process begins; whether a file told whom a former life promised.".
-spec new(integer(), boolean()) -> #quorum{}.
new(Now, Remembers) -> #quorum{began = Now, had_at = Now, remembers = Remembers}.

-doc "A former process of this life may have told its clients that there is no majority.".
-spec restore(#s{}) -> #s{}.
restore(#s{d = #d{lost = false}} = S) -> S;
restore(#s{quorum = Quorum} = S) -> S#s{quorum = Quorum#quorum{has = false}}.

-doc "Whether there is a majority, as clients are told.".
-spec status(#s{}) -> unknown | boolean().
status(#s{quorum = #quorum{has = Is}}) -> Is.

-doc "Two members of a group were given different promises: neither can keep them with the other.".
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
        (Before =:= undefined orelse is_majority(maps:merge(acknowledged(S), Live), Before)).

%% A majority, or all that have not left: their removal cannot be ordered before that.
is_all_there_is(Nodes, Mem, #s{quorum = #quorum{ended = Ended}}) ->
    is_majority(Nodes, Mem)
        orelse sderl_membership:members(Mem) -- maps:keys(maps:merge(Ended, Nodes)) =:= [].

%% Members that a batch removes acknowledge it too, and are in no view any more.
acknowledged(#s{office = #office{flight = undefined}, quorum = #quorum{ended = Ended}}) -> Ended;
acknowledged(#s{self = Self, office = #office{flight = #flight{had = Had}},
                quorum = #quorum{ended = Ended}, d = #d{view = V}}) ->
    maps:merge(Ended, set([N || N <- [Self | Had], not is_map_key(N, V)])).

-doc "A node says that it has left. It has no say any more, and agreed to its removal.".
-spec ended(node(), sderl_membership:t(), #s{}) -> #s{}.
ended(N, Mem, #s{mode = majority, quorum = #quorum{ended = Ended} = Quorum, role = R,
                 d = #d{mem = Mine}} = S0) ->
    Both = sderl_membership:merge(Mem, Mine),
    Own = maps:with([N], Both),
    S = S0#s{quorum = Quorum#quorum{ended = Ended#{N => []}}},
    case {sderl_membership:is_member(N, Both), sderl_membership:is_member(N, Mine)} of
        {true, _} -> S0;
        {false, true} when R =:= coord ->
            Change = #merge_membership{membership = maps:merge(Mine, Own), from = N},
            case sderl_core_state:is_ordered(merge_membership, S) of
                true -> S;
                false -> sderl_core_state:order(Change, S)
            end;
        _ -> S
    end;
ended(_, _, S) -> S.

-doc "A node that had left says hello.".
-spec came_back(node(), #s{}) -> #s{}.
came_back(N, #s{quorum = #quorum{ended = Ended} = Quorum} = S) when is_map_key(N, Ended) ->
    S#s{quorum = Quorum#quorum{ended = maps:remove(N, Ended)}};
came_back(_, S) -> S.

-doc "What those say who left, of the membership before, is of no meaning for the new one.".
-spec membership_changed(#s{}) -> #s{}.
membership_changed(#s{quorum = Quorum} = S) -> S#s{quorum = Quorum#quorum{ended = #{}}}.

set(Nodes) -> maps:from_keys(Nodes, []).

-doc "Whether it has to be known who acknowledged a batch, beside the live members.".
-spec counts_acknowledgements(#s{}) -> boolean().
counts_acknowledgements(#s{mode = majority, d = #d{before = Before}}) -> Before =/= undefined;
counts_acknowledgements(_) -> false.

-doc "Whether this member's promise counts (rule 33).".
-spec is_voter(#s{}) -> boolean().
is_voter(#s{d = #d{syncing = Syncing, votes = Votes}}) -> Votes andalso not Syncing.

is_empty(#s{d = #d{lineage = {C, _}}}) -> C < 0.

members(#s{d = #d{mem = Mem, before = undefined}}) -> sderl_membership:members(Mem);
members(#s{d = #d{mem = Mem, before = Before}}) ->
    lists:usort(sderl_membership:members(Mem) ++ sderl_membership:members(Before)).

%% Of those that take part, the voters have to be a majority, unless nobody is missing.
is_enough(_, _, #s{d = #d{founding = true}}) -> true;
is_enough(Voters, All, #s{quorum = #quorum{ended = Ended},
                          d = #d{mem = Mem, before = Before}} = S) ->
    (members(S) -- All) -- maps:keys(Ended) =:= []
        orelse (is_majority(set(Voters), Mem) andalso
                (Before =:= undefined orelse is_majority(maps:merge(Ended, set(Voters)), Before))).

-doc """
So long names of an unreachable home stay, in milliseconds. In it that home has declared that it has no
majority: its coordinator steps down `aside_ms` and three ticks after the last word of the majority, a
follower that hears no more of that one gives it up as much later, and says so `aside_ms` after that.
Three ticks are left for clocks, pauses and delays.
""".
-spec lease_ms(#s{}) -> pos_integer().
lease_ms(#s{aside_ms = A, tick_ms = T}) -> 3 * A + 10 * T.

%% ---------------------------------------------------------------- time

-doc "What a member of a majority group looks at with every tick, before its role does.".
-spec tick(#s{}) -> #s{}.
tick(#s{mode = available} = S) -> S;
tick(#s{groggy = [_ | _]} = S) -> S;
tick(S) -> watch(free_names(hold_office(S))).

%% A coordinator that hears less than a majority is none any more, nor one that hears them and cannot
%% make them count. Who makes a new group waits for the others instead: nobody else can lead it.
hold_office(#s{role = coord, lead = Self, self = Self, d = #d{founding = false}} = S) ->
    #s{now = Now, aside_ms = A, tick_ms = T, peers = Peers,
       quorum = #quorum{had_at = At, leads_since = Since}, d = #d{mem = Mem}} = S,
    Heard = [N || N := #peer{heard = Last} <- Peers, Now - Last =< A + 2 * T],
    case is_all_there_is(set([Self | Heard]), Mem, S) andalso (Now - max(At, Since) =< 3 * A orelse decides(S)) of
        true -> S;
        false -> resign(S)
    end;
hold_office(S) -> S.

%% Its followers need not wait until they miss its heartbeats.
resign(#s{self = Self, peers = Peers, d = #d{epoch = E}} = S0) ->
    S = event(coordinator_changed, #{old => Self, reason => no_majority}, S0),
    Told = lists:foldl(fun(N, X) -> send(N, {not_lead, E}, X) end, S, maps:keys(Peers)),
    sderl_core_elect:orphan(Told).

%% Rule 34: names whose home has been out of reach for the lease go, by a change that is ordered.
free_names(#s{role = coord, self = Self, lead = Self, quorum = #quorum{leases = Before} = Quorum,
              now = Now, linked = Linked, d = #d{view = V}} = S) ->
    Leases = #{N => maps:get(N, Before, Now) || N := {_, _} <- V, maps:get(N, Linked, mute) =:= mute},
    Over = case decides(S) of
        true -> [N || N := Since <- Leases, Now - Since > lease_ms(S)];
        false -> []
    end,
    case Over of
        [] -> S#s{quorum = Quorum#quorum{leases = Leases}};
        _ ->
            S1 = S#s{quorum = Quorum#quorum{leases = maps:without(Over, Leases)}},
            sderl_core_write:reorder(sderl_core_write:change_view(maps:without(Over, V), Over, S1))
    end;
free_names(S) -> S.

-doc "Rule 12: silent members count no more, as long as those who are left are a majority.".
-spec slow(#s{}) -> #s{}.
slow(#s{office = #office{flight = #flight{wait = [_ | _] = Wait, since = At}}, now = Now,
        aside_ms = A} = S)
  when Now - At > A ->
    #s{num = Num, d = #d{lineage = E, view = V}} = S,
    View = maps:merge(V, #{N => {E, Num} || N <- Wait, maps:get(N, V, none) =:= live}),
    case View =:= V orelse decides(S#s{d = (S#s.d)#d{view = View}}) of
        %% (Those that the batch removed may have gone without a word.)
        true when View =:= V -> sderl_core_write:reorder(S);
        true -> sderl_core_write:reorder(sderl_core_write:change_view(View, [], S));
        false -> S
    end;
slow(S) -> S.

%% ---------------------------------------------------------------- to have a majority, and to lose it

has(#s{role = follower}) -> true;
has(#s{role = coord} = S) -> decides(S);
has(_) -> false.

watch(#s{now = Now, quorum = #quorum{had_at = At, has = Is} = Quorum} = S) ->
    Patience = patience(S),
    case has(S) of
        true -> gained(S#s{quorum = Quorum#quorum{had_at = Now}});
        false when Is =/= false, Now - At > Patience -> lost(S);
        false -> S
    end.

%% An empty member has no coordinator before it may join one (`may_join`), and no names that it could
%% believe in.
patience(#s{aside_ms = A, tick_ms = T} = S) ->
    case is_empty(S) of
        true -> 2 * A + 2 * T;
        false -> A
    end.

-doc """
This member may have a coordinator with a majority again. Holders of names hear so when the table is whole:
before, it has names that went meanwhile.
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

lost(#s{peers = Peers, self = Self, d = #d{mem = Mem} = D, quorum = Quorum} = S0) ->
    S1 = let_go(S0#s{quorum = Quorum#quorum{has = false}, d = D#d{lost = true}}),
    S2 = event(majority_lost,
               #{members => sderl_membership:members(Mem), live => lists:sort([Self | maps:keys(Peers)])}, S1),
    S3 = fx({majority, lost}, S2),
    case S3#s.leaving of
        undefined -> S3;
        %% Nobody is left to say that it was ordered.
        Why -> sderl_core_answer:left_out(Why, S3)
    end.

let_go(#s{self = Self} = S) -> sderl_core_clients:let_go(sderl_core_write:forget_list(Self, S)).

%% ---------------------------------------------------------------- members that come back

-doc "A coordinator takes a member in: its place in the view, and a snapshot.".
-spec take_in(position(), node(), #s{}) -> #s{}.
take_in({{Counter, _}, _} = Position, N, S) ->
    case Counter < 0 andalso not has_waited(N, S) of
        true -> S;
        false -> take_in(Counter < 0, Position, N, S)
    end.

%% An empty member asks at once whom it has promised (`may_join`). That is right where its promise counted.
has_waited(_, #s{d = #d{founding = true}}) -> true;
has_waited(N, #s{now = Now, aside_ms = A, tick_ms = T,
                 quorum = #quorum{leads_since = Since}} = S) ->
    is_promised(N, S) orelse Now - Since > A + 2 * T.

is_promised(N, #s{quorum = #quorum{promised = Promised}, peers = Peers}) ->
    case {Promised, Peers} of
        {#{N := Life}, #{N := #peer{inc = Life}}} -> true;
        _ -> false
    end.

take_in(Empty, Position, N, #s{d = #d{view = V}} = S0) ->
    S1 = sderl_core_write:forget_list(N, S0),
    S2 = case V of
        #{N := {_, _} = Place} when not Empty; Place =:= Position -> S1;
        %% Of a new life, the names of the former one are of processes that are no more.
        _ ->
            Drops = [N || Empty, is_map_key(N, V)],
            sderl_core_write:reorder(sderl_core_write:change_view(V#{N => Position}, Drops, S1))
    end,
    sderl_core_snapshot:start([N], note_newcomer(N, S2)).

%% Rule 33. Who promised this epoch in its present life counts; and nobody else leads a new group.
note_newcomer(N, #s{quorum = #quorum{newcomers = New} = Quorum, d = #d{founding = false}} = S) ->
    case is_promised(N, S) of
        true -> S;
        false -> S#s{quorum = Quorum#quorum{newcomers = New#{N => not_live}}}
    end;
note_newcomer(_, S) -> S.

-doc "Whether the member came back empty, and does not vote yet.".
-spec is_newcomer(node(), #s{}) -> boolean().
is_newcomer(N, #s{quorum = #quorum{newcomers = New}}) -> is_map_key(N, New).

-doc "A member has caught up, and acknowledged so far. It counts; of a batch that is out when it has that, too.".
-spec counts(node(), non_neg_integer(), #s{}) -> #s{}.
counts(_, _, #s{mode = available} = S) -> S;
counts(N, _, #s{quorum = #quorum{newcomers = New} = Quorum, num = Num} = S)
  when is_map_key(N, New) ->
    S#s{quorum = Quorum#quorum{newcomers = New#{N := Num + 1}}};
counts(N, Acked, #s{office = #office{flight = #flight{num = Num, wait = Wait} = F}} = S)
  when Acked < Num ->
    set_flight(F#flight{wait = [N | Wait]}, S);
counts(_, _, S) -> S.

-doc "A batch was committed.".
-spec committed(non_neg_integer(), #s{}) -> #s{}.
committed(_, #s{mode = available} = S) -> S;
committed(Num, #s{quorum = #quorum{newcomers = New, promised = Promised} = Quorum, peers = Peers,
                  d = D} = S) ->
    Confirmed = [N || N := At <- New, At =/= not_live, At =< Num],
    Lives = #{N => Life || N <- Confirmed, #peer{inc = Life} <- [maps:get(N, Peers, none)]},
    gained(S#s{quorum = Quorum#quorum{newcomers = maps:without(Confirmed, New),
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
Whether this member may ask the coordinator of an epoch to take it in. A former life of an empty one may
have promised another to a candidate, which is none any more after this time; a file of the node says which.
What it promised in this life it may do at once.
""".
-spec may_join(epoch(), #s{}) -> boolean().
may_join(_, #s{mode = available}) -> true;
may_join(E, #s{now = Now, aside_ms = A, tick_ms = T, d = #d{votes = Votes, epoch = Mine}} = S) ->
    #s{quorum = #quorum{began = Began, remembers = Remembers}} = S,
    E =:= Mine orelse not is_empty(S) orelse Votes orelse Remembers orelse Now - Began > A + 2 * T.

%% ---------------------------------------------------------------- elections

-doc "Rule 32. Who could be elected with those it sees stands, the lowest name first.".
-spec elect(#s{}) -> #s{}.
elect(#s{leaving = undefined, self = Self, election = #election{orphan_since = At}, now = Now,
         tick_ms = T} = S) ->
    Seen = [N || N <- members(S), present(N, S), not is_silent(N, S)],
    Voters = case is_voter(S) of true -> Seen; false -> [] end,
    Rank = length(lists:takewhile(fun(N) -> N =/= Self end, Seen)),
    case is_enough(Voters, Seen, S) andalso not is_expected(S) of
        true when Rank =:= 0; Now - At > T * (1 + Rank) -> candidate(#{}, S);
        _ -> S
    end;
elect(S) -> S.

%% The coordinator that was given up because it fell silent, until it is heard again.
is_silent(N, #s{election = #election{suspect = N}, peers = P, now = Now, aside_ms = A}) ->
    case P of
        #{N := #peer{heard = At}} -> Now - At > A;
        _ -> true
    end;
is_silent(_, _) -> false.

%% A coordinator that said hello since we are alone calls us in, and so does a candidate that has our
%% promise: for a while we wait. And for members whose process has said nothing yet.
is_expected(#s{d = #d{founding = true}}) -> false;
is_expected(#s{now = Now, election = #election{orphan_since = At},
               aside_ms = A})
  when Now - At > A -> false;
is_expected(#s{d = #d{epoch = {_, To} = E, lineage = Lin}, self = Self, peers = P})
  when E > Lin, To =/= Self, is_map_key(To, P) -> true;
is_expected(#s{linked = Linked, peers = P, election = #election{orphan_since = At}, self = Self,
               d = #d{lineage = Lin}} = S) ->
    lists:any(fun(N) ->
        N =/= Self andalso maps:get(N, Linked, none) =:= [] andalso
            case P of
                #{N := #peer{lead = Lead, said = Said, epoch = E}} -> Lead =:= N andalso Said >= At andalso E >= Lin;
                _ -> true
            end
    end, members(S)).

-spec candidate(map(), #s{}) -> #s{}.
candidate(Flags, #s{self = Self, now = Now, d = #d{epoch = Was, lineage = Lin} = D} = S0) ->
    {C, Self} = E = sderl_core_state:epoch(S0),
    Ask = [N || N <- members(S0), N =/= Self, present(N, S0)],
    Cand = #cand{epoch = E, wait = [N || N <- Ask, not is_silent(N, S0)], since = Now, was = Was,
                 joined = #{Self => vote(S0)}},
    S1 = S0#s{role = candidate, lead = undefined, d = D#d{epoch = E}, cand = Cand, highest = C},
    sderl_core_elect:maybe_finish(lists:foldl(fun(N, S) -> send(N, {collect, E, Lin, Flags}, S) end, S1, Ask)).

vote(#s{num = Num, last = Last, d = #d{lineage = Lin}} = S) -> {{Lin, Num}, Last, standing(S)}.

standing(#s{d = #d{syncing = true}}) -> partial;
standing(S) ->
    case is_voter(S) of
        true -> votes;
        false -> whole
    end.

-doc "A candidate asks for our promise.".
-spec promise(epoch(), map(), node(), #s{}) -> #s{}.
promise(E, Flags, N, #s{role = R, lead = L, d = #d{epoch = Mine} = D} = S0) ->
    S = sderl_core_state:heard(E, S0),
    Agreed = is_map_key(handover, Flags) orelse L =:= N orelse joins(N, S0),
    Follows = R =:= coord orelse ((R =:= joining orelse R =:= follower) andalso not Agreed),
    %% (Also to one that became a member where we have not heard of it.)
    case present(N, S) of
        false -> S;
        true when E =< Mine; Follows -> send(N, {nack, E, Mine, L}, S);
        true ->
            {Position, Items, Standing} = vote(S),
            S1 = sderl_core_elect:become_orphan(S#s{d = D#d{epoch = E}}),
            send(N, {promised, E, Position, Items, Standing}, S1)
    end.

%% The coordinator that we would join is none any more, and stands again.
joins(N, #s{role = joining, lead = undefined, joining = #joining{to = {N, _, _}}}) -> true;
joins(_, _) -> false.

-doc "A member promised, with its log and whether it votes.".
-spec promised(epoch(), {position(), [term()], votes | whole | partial}, node(), #s{}) -> #s{}.
promised(E, Vote, N, #s{role = candidate, cand = #cand{epoch = E, wait = W, joined = J} = C} = S) ->
    Cand = C#cand{wait = lists:delete(N, W), joined = confirmed_votes(J#{N => Vote})},
    sderl_core_elect:maybe_finish(S#s{cand = Cand});
promised(_, _, _, S) -> S.

%% Who came back empty and has not heard that the batch is committed by which it counts: another has the next one.
confirmed_votes(J) ->
    Ends = maps:fold(fun(_, {{Lin, Num}, _, _}, Acc) -> Acc#{Lin => max(Num, maps:get(Lin, Acc, 0))} end, #{}, J),
    maps:map(fun(N, {{Lin, Num} = Position, Items, whole}) when map_get(Lin, Ends) > Num ->
                     case [V || #view{places = V} <- Items, maps:get(N, V, none) =:= live] of
                         [] -> {Position, Items, whole};
                         _ -> {Position, Items, votes}
                     end;
                (_, Vote) -> Vote
             end, J).

-doc "Ends an election: this member leads, or the one with the longest log, or nobody.".
-spec finish(#s{}) -> #s{}.
finish(#s{cand = #cand{joined = J, since = At, epoch = {C, _}}, now = Now, aside_ms = A, tick_ms = T} = S) ->
    %% (A promise is good for a time: who gave it may have come back empty since.)
    case is_enough(of_standing(votes, J), maps:keys(J), S) andalso Now - At =< A + T of
        true -> lead_or_hand_over(S);
        false -> fx({wake, T}, sderl_core_elect:withdraw(S#s{highest = C}))
    end.

of_standing(Standing, J) -> [N || N := {_, _, Of} <- J, Of =:= Standing].

%% The log of the latest epoch, and of those the longest, has all that was committed: also a whole table of one
%% that has no vote is of a log that a majority promised. Where there is none all take part, and what the
%% fullest table has is all that there is.
lead_or_hand_over(#s{cand = #cand{joined = J}, self = Self} = S) ->
    Had = maps:filter(fun(_, {{{C, _}, _}, _, _}) -> C >= 0 end, J),
    Kinds = [of_standing(votes, J) ++ of_standing(whole, Had), of_standing(partial, Had), maps:keys(J)],
    [Those | _] = [Ns || [_ | _] = Ns <- Kinds],
    Best = best(Those, J, Self),
    {{Lin, Max}, Items, _} = map_get(Best, J),
    {{MyLin, Mine}, _, MyStanding} = map_get(Self, J),
    Behind = MyStanding =/= partial andalso Lin =:= MyLin andalso Max =:= Mine + 1 andalso Items =/= []
        andalso not sderl_core_elect:drops(Self, Items) andalso not S#s.d#d.recovered,
    if
        Best =:= Self -> lead(Max, Items, J, S);
        Behind -> lead_applied(Max, Items, J, S);
        true -> send(Best, {handover, Lin}, sderl_core_elect:withdraw(S))
    end.

best(Those, J, Self) ->
    {_, _, _, N} = lists:max([{Position, Items =/= [], N =:= Self, N} || N <- Those, {Position, Items, _} <- [map_get(N, J)]]),
    N.

%% The batch that we lack may have changed the membership, and with it what a majority is.
lead_applied(Max, Items, J, S0) ->
    S = sderl_core_write:apply_items(Max, Items, none, S0),
    case is_enough(of_standing(votes, J), maps:keys(J), S) of
        true -> lead(Max, Items, J, S);
        false -> fx({wake, S#s.tick_ms}, sderl_core_elect:withdraw(S))
    end.

lead(Max, Items, J, #s{self = Self, now = Now, peers = Peers, quorum = Quorum,
                       d = #d{lineage = Lin, history = H, recovered = Recovered}} = S) ->
    %% (The homes of names in a batch are told by the membership before it.)
    Least = case Items =:= [] orelse Recovered of true -> Max; false -> Max - 1 end,
    Joined = [N || N := {{L, Num}, _, Standing} <- J,
                   N =:= Self orelse
                       (Standing =/= partial andalso is_of_log(L, Lin, Max, H)
                        andalso Num >= Least andalso Num =< Max)],
    Had = [N || N := {{L, Num}, _, _} <- J, L =:= Lin, Num =:= Max],
    Counting = case (members(S) -- maps:keys(J)) -- maps:keys(S#s.quorum#quorum.ended) of
        [] -> maps:keys(J);
        _ -> of_standing(votes, J)
    end,
    Promised = #{N => Life || N <- Counting, #peer{inc = Life} <- [maps:get(N, Peers, none)]},
    S1 = S#s{quorum = Quorum#quorum{promised = Promised,
                                    newcomers = #{},
                                    leases = #{},
                                    leads_since = Now}},
    Led = sderl_core_elect:lead_from(Max, Items, Joined, S1),
    case tell_removed(Max, Items, Lin, Joined, Led) of
        #s{office = #office{flight = #flight{} = F}} = S2 ->
            sderl_core_write:reorder(set_flight(F#flight{had = Had}, S2));
        S2 -> S2
    end.

%% Those that the batch removes have a say in that, too.
tell_removed(Max, Items, Old, Joined, #s{d = #d{epoch = E, view = V}} = S0) ->
    Info = (sderl_core_elect:lead_info(S0))#{prev => Old},
    lists:foldl(fun(N, S) -> send(N, {lead, E, Max, Items, Info}, S) end, S0,
                [N || N <- Joined, not is_map_key(N, V)]).

-doc """
Whether a log of an epoch is that of another at this number, but for its last batch: the epochs that came after it
brought none.
""".
-spec is_of_log(epoch(), epoch(), non_neg_integer(), [position()]) -> boolean().
is_of_log(Lineage, Lineage, _, _) -> true;
is_of_log(Lineage, _, Num, History) -> lists:member({Lineage, Num}, History).

%% ---------------------------------------------------------------- the operator's call

-doc "A majority is lost for good: the survivors are the membership from here on.".
-spec recover(term(), [node()], #s{}) -> #s{}.
recover(From, Survivors, #s{now = Now, clock = Clock, d = #d{mem = Mem} = D} = S0) ->
    case refuses(Survivors, S0) of
        false ->
            Lost = sderl_membership:members(Mem) -- Survivors,
            Left = sderl_membership:remove(Lost, (Now + Clock) div 1000, Mem),
            S1 = sderl_core_elect:step_down(let_go(S0#s{d = D#d{before = undefined}})),
            #s{d = Changed} = S2 = sderl_core_write:membership(Left, S1),
            S3 = S2#s{d = Changed#d{before = undefined, recovered = true}},
            sderl_core_elect:elect(fx({replies, [{From, ok}]}, S3));
        Why -> fx({replies, [{From, {no, Why}}]}, S0)
    end.

refuses(_, #s{mode = available}) -> available_mode;
refuses(Survivors, #s{self = Self, d = #d{mem = Mem}} = S) ->
    Members = lists:all(fun(N) -> sderl_membership:is_member(N, Mem) end, Survivors),
    case Members andalso lists:member(Self, Survivors) of
        false -> not_member;
        true -> has(S) andalso has_majority
    end.
