%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_ballot).
-moduledoc false.
%% Elections of groups with `consistency => majority` (`sderl_core_quorum` says what a majority is).

-include("sderl_core.hrl").

-export([elect/1, candidate/2, promise/4, promised/4, finish/1]).

-import(sderl_core_state, [fx/2, send/3, present/2]).

-doc "Rule 32. A member stands, in its turn, if those that it sees are enough to elect it.".
-spec elect(#s{}) -> #s{}.
elect(#s{leaving = undefined, self = Self, election = #election{orphan_since = At}, now = Now,
         tick_ms = T, quorum = #quorum{ended = Ended}} = S) ->
    %% A member that has left promises nothing. A candidate that counts on it would stand again and
    %% again in vain, and each time get the promise of another member, which could be elected and is
    %% kept waiting.
    Seen = sderl_core_role:in_order(
             [N || N <- sderl_core_quorum:members(S), present(N, S), not is_silent(N, S),
                   not is_map_key(N, Ended)], S),
    Voters = case sderl_core_quorum:is_voter(S) of true -> Seen; false -> [] end,
    Rank = length(lists:takewhile(fun(N) -> N =/= Self end, Seen)),
    case sderl_core_quorum:is_enough(Voters, Seen, S) andalso not is_expected(S) of
        true when Rank =:= 0; (S#s.d)#d.founding; Now - At > T * (1 + Rank) -> candidate(#{}, S);
        _ -> S
    end;
elect(S) -> S.

%% Whether this is the coordinator that was given up for its silence, and not heard since.
is_silent(N, #s{election = #election{suspect = N}, peers = P, now = Now, aside_ms = A}) ->
    case P of
        #{N := #peer{heard = At}} -> Now - At > A;
        _ -> true
    end;
is_silent(_, _) -> false.

%% Whether we wait for others for a while. A coordinator that said hello since we are orphans will
%% call us in, and so will a candidate that has our promise; and there may be members whose process
%% has said nothing yet. The founder of a group waits for the members that it invited: one that has
%% not promised would have to wait until it can be taken in.
is_expected(#s{now = Now, tick_ms = T, election = #election{orphan_since = At},
               d = #d{founding = true}} = S) ->
    Now - At =< 2 * T andalso
        lists:any(fun(N) -> not present(N, S) end, sderl_core_quorum:members(S));
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
                #{N := #peer{lead = Lead, said = Said, epoch = E}} ->
                    Lead =:= N andalso Said >= At andalso E >= Lin;
                _ -> true
            end
    end, sderl_core_quorum:members(S)).

-spec candidate(collect_flags(), #s{}) -> #s{}.
candidate(Flags, #s{self = Self, now = Now, d = #d{epoch = Was, lineage = Lin} = D} = S0) ->
    {C, Self} = E = sderl_core_state:epoch(S0),
    #s{quorum = #quorum{ended = Ended}} = S0,
    %% A candidate that waited for a member that has left would be overtaken by the next one.
    Ask = [N || N <- sderl_core_quorum:members(S0), N =/= Self, present(N, S0),
                not is_map_key(N, Ended)],
    Cand = #cand{epoch = E, wait = [N || N <- Ask, not is_silent(N, S0)], since = Now, was = Was,
                 joined = #{Self => vote(S0)}, handed = is_map_key(handover, Flags)},
    S1 = S0#s{role = candidate, lead = undefined, d = D#d{epoch = E}, cand = Cand, highest = C},
    Collect = {collect, E, Lin, Flags#{learns => true}},
    maybe_finish(lists:foldl(fun(N, S) -> send(N, Collect, S) end, S1, Ask)).

vote(#s{num = Num, last = Last, d = #d{lineage = Lin}} = S) -> {{Lin, Num}, Last, standing(S)}.

standing(#s{d = #d{syncing = true, votes = true}}) -> learns;
standing(#s{d = #d{syncing = true}}) -> partial;
standing(S) ->
    case sderl_core_quorum:is_voter(S) of
        true -> votes;
        false -> whole
    end.

-doc "A candidate asks for our promise.".
-spec promise(epoch(), collect_flags(), node(), #s{}) -> #s{}.
promise(E, Flags, N, #s{role = R, lead = L, d = #d{epoch = Mine} = D} = S0) ->
    S = sderl_core_state:heard(E, S0),
    Agreed = is_map_key(handover, Flags) orelse L =:= N orelse joins(N, S0),
    Follows = R =:= coord orelse ((R =:= joining orelse R =:= follower) andalso not Agreed),
    %% The candidate may be a member by a change that we have not heard of: it gets a promise, too.
    case present(N, S) of
        false -> S;
        true when E =< Mine; Follows -> send(N, {nack, E, Mine, L}, S);
        true ->
            {Position, Items, Standing} = vote(S),
            S1 = sderl_core_role:become_orphan(S#s{d = D#d{epoch = E}}),
            send(N, {promised, E, Position, Items, said(Standing, Flags)}, S1)
    end.

%% For a candidate of an older version, which does not know `learns`: the vote of an empty member.
said(learns, Flags) when not is_map_key(learns, Flags) -> partial;
said(Standing, _) -> Standing.

%% The coordinator that we were joining has stopped coordinating, and stands again.
joins(N, #s{role = joining, lead = undefined, joining = #joining{to = {N, _, _}}}) -> true;
joins(_, _) -> false.

-doc "A member promised, with its log and whether it votes.".
-spec promised(epoch(), vote(), node(), #s{}) -> #s{}.
promised(E, Vote, N, #s{mode = majority, role = candidate,
                        cand = #cand{epoch = E, wait = W, joined = J} = C} = S) ->
    Cand = C#cand{wait = lists:delete(N, W), joined = confirmed_votes(J#{N => Vote})},
    maybe_finish(S#s{cand = Cand});
promised(_, _, _, S) -> S.

%% A batch makes a member that came back empty count. Until it has heard that this batch is
%% committed, it votes only if another member has the next batch.
confirmed_votes(J) ->
    Ends = maps:fold(fun(_, {{Lin, Num}, _, _}, Acc) ->
        Acc#{Lin => max(Num, maps:get(Lin, Acc, 0))}
    end, #{}, J),
    maps:map(fun(N, {{Lin, Num} = Position, Items, whole}) when map_get(Lin, Ends) > Num ->
                     case [V || #view{places = V} <- Items, maps:get(N, V, none) =:= live] of
                         [] -> {Position, Items, whole};
                         _ -> {Position, Items, votes}
                     end;
                (_, Vote) -> Vote
             end, J).

maybe_finish(#s{cand = #cand{wait = []}} = S) -> finish(S);
maybe_finish(S) -> S.

-doc "Ends an election: this member leads, or the member with the longest log, or none.".
-spec finish(#s{}) -> #s{}.
finish(#s{cand = #cand{joined = J, since = At, epoch = {C, _}}, now = Now, aside_ms = A,
          tick_ms = T} = S) ->
    %% A promise holds for a limited time: the member may have come back empty since.
    Enough = sderl_core_quorum:is_enough(voters(J), maps:keys(J), S),
    case Enough andalso Now - At =< A + T of
        true -> lead_or_hand_over(S);
        false ->
            %% We do not wait for the coordinator that fell silent. It may have left by a batch that
            %% we do not know to be committed: it answers no candidate, but tells us when it is
            %% asked.
            Silent = [N || N <- sderl_core_quorum:missing(maps:keys(J), S), present(N, S)],
            lists:foldl(fun sderl_core_state:ask/2,
                        fx({wake, T}, sderl_core_role:withdraw(pass_on(S#s{highest = C}))), Silent)
    end.

%% We cannot win, but a member that promised us may: it may know that the batch by which some
%% members have left is committed, or have a later batch. It would never stand, as each time it
%% promises a candidate before its turn comes, so we ask it to. (A candidate that was asked so asks
%% nobody.)
pass_on(#s{cand = #cand{handed = true}} = S) -> S;
pass_on(#s{cand = #cand{joined = J}, self = Self, election = Election, d = #d{before = B}} = S) ->
    #election{attempts = Attempts} = Election,
    {Mine, _, _} = map_get(Self, J),
    Others = [{N, Lin}
              || N := {{Lin, _} = Position, _, Standing} <- J, N =/= Self, is_whole(Standing),
                 Position > Mine orelse (Position =:= Mine andalso B =/= undefined)],
    case lists:sort(Others) of
        [] -> S;
        Sorted ->
            {Next, Lin} = lists:nth(1 + Attempts rem length(Sorted), Sorted),
            send(Next, {handover, Lin}, S#s{election = Election#election{attempts = Attempts + 1}})
    end.

of_standing(Standing, J) -> [N || N := {_, _, Of} <- J, Of =:= Standing].

%% A member whose table a snapshot was replacing knows its promise, but has lost its log. It has
%% acknowledged no more than the snapshot's log has at that point. So it votes if some member has a
%% whole table of a log that goes as far.
voters(J) ->
    Logs = [Position || _ := {Position, _, Standing} <- J, is_whole(Standing)],
    of_standing(votes, J) ++
        [N || N := {Position, _, learns} <- J, lists:any(fun(Log) -> Log >= Position end, Logs)].

is_whole(Standing) -> Standing =:= votes orelse Standing =:= whole.

%% The longest log of the latest epoch has all that was committed; a member without a vote may have
%% it, as its whole table is of a log that a majority promised, too. If no table is whole all
%% members take part, and the fullest table has all that there is.
lead_or_hand_over(#s{cand = #cand{joined = J}, self = Self} = S) ->
    Had = maps:filter(fun(_, {{{C, _}, _}, _, _}) -> C >= 0 end, J),
    Kinds = [of_standing(votes, J) ++ of_standing(whole, Had),
             of_standing(learns, Had) ++ of_standing(partial, Had), maps:keys(J)],
    [Those | _] = [Ns || [_ | _] = Ns <- Kinds],
    Best = best(Those, J, Self),
    {{Lin, Max}, Items, _} = map_get(Best, J),
    {{MyLin, Mine}, _, MyStanding} = map_get(Self, J),
    Behind = is_whole(MyStanding) andalso Lin =:= MyLin andalso Max =:= Mine + 1
        andalso Items =/= []
        andalso not sderl_core_view:drops(Self, Items) andalso not S#s.d#d.recovered,
    if
        Best =:= Self -> lead(Max, Items, J, S);
        Behind -> lead_applied(Max, Items, J, S);
        true -> send(Best, {handover, Lin}, sderl_core_role:withdraw(S))
    end.

best(Those, J, Self) ->
    {_, _, _, N} = lists:max([{end_of(Position), Items =/= [], N =:= Self, N}
                              || N <- Those, {Position, Items, _} <- [map_get(N, J)]]),
    N.

%% All empty tables are alike: another member may not know who has left, and could not be elected.
end_of({{Counter, _}, _}) when Counter < 0 -> empty;
end_of(Position) -> Position.

%% The batch that we lack may change the membership, and so what a majority is.
lead_applied(Max, Items, J, S0) ->
    S = sderl_core_write:apply_items(Max, Items, none, S0),
    case sderl_core_quorum:is_enough(voters(J), maps:keys(J), S) of
        true -> lead(Max, Items, J, S);
        false -> fx({wake, S#s.tick_ms}, sderl_core_role:withdraw(S))
    end.

lead(Max, Items, J, #s{self = Self, now = Now, peers = Peers, quorum = Quorum,
                       d = #d{lineage = Lin, history = H, recovered = Recovered}} = S) ->
    %% The homes of names in a batch follow from the membership before that batch.
    Least = case Items =:= [] orelse Recovered of true -> Max; false -> Max - 1 end,
    Joined = [N || N := {{L, Num}, _, Standing} <- J,
                   N =:= Self orelse
                       (is_whole(Standing) andalso sderl_core_lead:is_of_log(L, Lin, Max, H)
                        andalso Num >= Least andalso Num =< Max)],
    Counting = case sderl_core_quorum:missing(maps:keys(J), S) of
        [] -> maps:keys(J);
        _ -> voters(J)
    end,
    Promised = #{N => Life || N <- Counting, #peer{inc = Life} <- [maps:get(N, Peers, none)]},
    S1 = S#s{quorum = Quorum#quorum{promised = Promised,
                                    newcomers = #{},
                                    leases = #{},
                                    leads_since = Now,
                                    has_committed = false}},
    Led = sderl_core_lead:lead_from(Max, Items, Joined, S1),
    tell_removed(Max, Items, Lin, Joined, Led).

%% Members that the batch removes have a say in it, too, by acknowledging it in this epoch. It is
%% not enough that they had it when they promised: a log of an epoch in between, without the batch,
%% would still win over theirs.
tell_removed(Max, Items, Old, Joined, #s{d = #d{epoch = E, view = V}} = S0) ->
    Info = (sderl_core_role:lead_info(S0))#{prev => Old},
    lists:foldl(fun(N, S) -> send(N, {lead, E, Max, Items, Info}, S) end, S0,
                [N || N <- Joined, not is_map_key(N, V)]).
