%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_view).
-moduledoc false.
%% The members that count in the component, the membership, and the effects of a change of either.

-include("sderl_core.hrl").

-export([change_view/3, view_events/3, waiters/1, unmet/1, membership/2, new_mem/2, drops/2]).

-import(sderl_core_state, [fx/2, event/3, order/2]).

-doc """
A change of the component is in force at once for the coordinator that decides it, and ordered for
all members with the next batch. If the coordinator dies in between, its successor sees the same
links gone and decides the same.
""".
-spec change_view(#{node() => place()}, [node()], #s{}) -> #s{}.
change_view(View, Drops, #s{last = Last, office = Office, d = D} = S0) ->
    #office{flight = Flight, unknown_answers = Before} = Office,
    Out = case Flight of undefined -> []; #flight{wait = Wait} -> Wait end,
    Live = [N || N := live <- View, maps:get(N, D#d.view, none) =/= live],
    Went = [N || N <- Out, maps:get(N, View, none) =/= live],
    %% A majority group has one log: the answer holds there, and the home gets the change when it is
    %% back.
    Unknown = case S0#s.mode of
        available -> sderl_core_answer:unknown_answers(Last, Went);
        majority -> []
    end,
    S1 = S0#s{office = Office#office{unknown_answers = Unknown ++ Before}},
    S = order(#change_view{drops = Drops, live = Live}, sderl_core_answer:forget_answers(S1)),
    view_events(D#d.view, View, S#s{d = D#d{view = View}}).

%% The events of a change of the component, for subscribers and the log, on every member.
-spec view_events(#{node() => place()}, #{node() => place()}, #s{}) -> #s{}.
view_events(Old, New, S) when Old =:= New -> S;
view_events(Old, New, S0) ->
    S = case maps:keys(maps:without(maps:keys(New), Old)) of
        [] -> S0;
        Lost ->
            event(component_split, #{nodes => lists:sort(maps:keys(New)), lost => lists:sort(Lost)},
                  S0)
    end,
    maps:fold(fun(N, St, Acc) ->
        case Old of
            #{N := Was} when (Was =:= live) =:= (St =:= live) -> Acc;
            _ when St =:= live -> event(member_live, #{node => N}, Acc);
            _ -> event(member_aside, #{node => N}, Acc)
        end
    end, S, maps:iterator(New, ordered)).

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
        _ ->
            fx({replies,
                [{F, {live, [N || N <- Ns, maps:get(N, V, none) =:= live]}} || {F, Ns, _} <- Done]},
               S)
    end.

%% Whether this node, which boots or joins, is linked to a member that has not told it yet whom it
%% follows, or has told it of a higher epoch, which it will join (rules 2, 9). Meanwhile it decides
%% nothing, and takes in no others, which would then outrank a running component. This holds for a
%% while only: a member whose library does not run never tells. Members that have told, and have no
%% coordinator or one that we cannot see, get as long as a member in a chain of links (rule 11), and
%% as long as it takes the followers of a hanging coordinator to elect another.
-spec unmet(#s{}) -> boolean().
unmet(#s{d = #d{lineage = {C, _}}}) when C >= 0 -> false;
unmet(#s{now = Now, election = #election{orphan_since = At}, aside_ms = A,
         tick_ms = T})
  when Now - At > 2 * A, Now - At > A + 4 * T -> false;
unmet(#s{self = Self, linked = L, peers = P, now = Now, election = #election{orphan_since = At},
         aside_ms = A, d = #d{lineage = E, mem = M, view = V}}) ->
    lists:any(fun(N) ->
        N =/= Self andalso not is_map_key(N, V) andalso sderl_membership:is_member(N, M) andalso
            case P of
                #{N := #peer{epoch = Theirs}} -> Theirs > E;
                _ -> Now - At =< A
            end
    end, [N || N := [] <- L]).

%% ---------------------------------------------------------------- memberships

%% A membership that came with a snapshot rather than in a batch.
-spec membership(sderl_membership:t(), #s{}) -> #s{}.
membership(Mem, S0) ->
    %% The batch that came with it may also have deleted the group.
    case new_mem(Mem, S0) of
        #s{leaving = undefined} = S -> S;
        #s{leaving = Why, self = Self, mode = Mode, d = #d{before = Before}} = S ->
            case sderl_membership:is_member(Self, Mem) of
                %% It still votes on its own removal, until a majority has that.
                false when Mode =:= majority, Before =/= undefined -> S;
                _ -> sderl_core_answer:left_out(Why, S)
            end
    end.

-doc "Puts an ordered membership in force.".
-spec new_mem(sderl_membership:t(), #s{}) -> #s{}.
new_mem(Mem, #s{d = #d{mem = Mem}} = S) -> S;
new_mem(Mem, #s{self = Self, d = #d{mem = Old, view = V} = D, linked = L} = S0) ->
    Was = sderl_membership:members(Old),
    Is = sderl_membership:members(Mem),
    %% The batch is not committed yet: the coordinator still exchanges messages with members that
    %% leave.
    Peers = case S0 of
        #s{role = coord} -> S0#s.peers;
        #s{mode = majority} -> S0#s.peers;
        _ -> maps:with([S0#s.lead | Is], S0#s.peers)
    end,
    %% A batch may change the membership more than once.
    Before = case S0#s.mode of
        majority when D#d.before =:= undefined -> Old;
        majority -> D#d.before;
        available -> undefined
    end,
    Changed = sderl_core_quorum:membership_changed(S0),
    S1 = fx({members, Is}, Changed#s{d = D#d{mem = Mem, view = maps:with(Is, V), before = Before},
                                     down = maps:with(Is, S0#s.down),
                                     peers = Peers}),
    S2 = case Is -- Was of
        [] -> S1;
        In -> lists:foldl(fun(N, S) ->
                  case is_map_key(N, L) of
                      true when N =/= Self -> sderl_core_state:ask(N, S);
                      _ -> S
                  end
              end, event(members_added, #{nodes => In}, S1), In)
    end,
    {Forgotten, Out} = lists:partition(fun(N) -> sderl_membership:is_known(N, Mem) end, Was -- Is),
    S3 = lists:foldl(fun({Ns, Why}, S) -> event(members_removed, Why#{nodes => Ns}, S) end, S2,
                     [E || {[_ | _], _} = E <- [{Out, #{}}, {Forgotten, #{reason => forgotten}}]]),
    case lists:member(Self, Is) of
        true -> S3;
        false -> S3#s{leaving = removed}
    end.

%% Whether the batch drops this node, and so removed its names elsewhere. The node does not apply
%% such a batch, but brings its names back by a merge: that its link to the old coordinator broke a
%% moment before the others' must not cost the name of a living process.
-spec drops(node(), [term()]) -> boolean().
drops(Node, Items) ->
    lists:any(fun(#view{drops = Drops}) -> lists:member(Node, Drops);
                 (_) -> false
              end, Items).
