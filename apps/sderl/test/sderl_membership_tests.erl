%% SPDX-License-Identifier: Apache-2.0
-module(sderl_membership_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(M, sderl_membership).

%% ---------------------------------------------------------------- examples

rule_4_removals_win_over_presence_test() ->
    Start = ?M:new([a, b, c]),
    AB = ?M:remove([c], 10, Start),
    C = ?M:remove([a], 11, Start),
    Healed = ?M:merge(AB, C),
    ?assertEqual([b], ?M:members(Healed)),
    ?assertEqual([a, c], ?M:removed(Healed)),
    ?assertEqual(Healed, ?M:merge(C, AB)).

added_again_after_a_removal_test() ->
    Old = ?M:new([a, b]),
    Removed = ?M:remove([b], 5, Old),
    Again = ?M:add([b], Removed),
    ?assert(?M:is_member(b, Again)),
    %% Nobody who comes from the past takes it out or brings it back to the removed state.
    ?assertEqual(Again, ?M:merge(Again, Removed)),
    ?assertEqual(Again, ?M:merge(Old, Again)).

what_is_so_already_changes_nothing_test() ->
    M = ?M:remove([c], 7, ?M:new([a, b, c])),
    ?assertEqual(M, ?M:add([a, b], M)),
    ?assertEqual(M, ?M:remove([c, d], 9, M)).

pruned_after_a_time_test() ->
    M = ?M:remove([b], 20, ?M:remove([a], 10, ?M:new([a, b, c]))),
    ?assertEqual([b], ?M:removed(?M:prune(15, M))),
    ?assertEqual([c], ?M:members(?M:prune(100, M))),
    ?assertEqual([], ?M:removed(?M:prune(100, M))).

rule_6_forgetting_is_no_removal_test() ->
    Start = ?M:new([a, b, c]),
    AB = ?M:forget([c, d], 10, Start),
    ?assertEqual({[a, b], [c], []}, {?M:members(AB), ?M:forgotten(AB), ?M:removed(AB)}),
    ?assertEqual({false, true}, {?M:is_member(c, AB), ?M:is_known(c, AB)}),
    %% Who forgot the others meets them again: all are members.
    C = ?M:forget([a, b], 12, Start),
    ?assertEqual(Start, ?M:merge(AB, C)),
    ?assertEqual(Start, ?M:recall(c, AB)),
    ?assertEqual(Start, ?M:add([c], AB)),
    %% A removal stands, before it was forgotten and after.
    Removed = ?M:remove([c], 11, Start),
    ?assertEqual([c], ?M:removed(?M:merge(AB, Removed))),
    ?assertEqual([c], ?M:removed(?M:merge(Start, ?M:remove([c], 11, AB)))),
    ?assertEqual(Removed, ?M:recall(c, Removed)),
    %% Pruned it is unknown, and who comes back with the old membership is a member.
    ?assertNot(?M:is_known(c, ?M:prune(11, AB))),
    ?assertEqual(Start, ?M:merge(Start, ?M:prune(11, AB))).

%% ---------------------------------------------------------------- properties

some() -> list(oneof([a, b, c, d, e])).
change() -> oneof([{add, some()}, {remove, some(), range(1, 1000)}]).
changes() -> list(change()).
steps() -> list(oneof([change(), {forget, some(), range(0, 1000)}, {recall, oneof([a, b, c])}])).

do(Steps, M) ->
    lists:foldl(fun({add, Ns}, A) -> ?M:add(Ns, A);
                   ({remove, Ns, T}, A) -> ?M:remove(Ns, T, A);
                   ({forget, Ns, T}, A) -> ?M:forget(Ns, T, A);
                   ({recall, N}, A) -> ?M:recall(N, A)
                end, M, Steps).

membership() -> ?LET({Ns, Steps}, {some(), steps()}, do(Steps, ?M:new(Ns))).
all() -> [a, b, c, d, e].

%% What an entry is: a member, forgotten, removed, or none of these.
state(N, M) ->
    case {?M:is_member(N, M), lists:member(N, ?M:forgotten(M)), lists:member(N, ?M:removed(M))} of
        {true, false, false} -> member;
        {false, true, false} -> forgotten;
        {false, false, true} -> removed;
        {false, false, false} -> unknown
    end.

model({add, Ns}, S) -> lists:foldl(fun(N, A) -> A#{N => member} end, S, Ns);
model({remove, Ns, _}, S) ->
    maps:merge(S, #{N => removed
                    || N <- Ns, lists:member(maps:get(N, S, unknown), [member, forgotten])});
model({forget, Ns, _}, S) ->
    maps:merge(S, #{N => forgotten || N <- Ns, maps:get(N, S, unknown) =:= member});
model({recall, N}, S) ->
    case S of
        #{N := forgotten} -> S#{N := member};
        _ -> S
    end.

properties_test_() ->
    [sderl_prop:eunit("a merge does not depend on order or number", 300, fun() ->
        ?FORALL({A, B, C}, {membership(), membership(), membership()},
            ?M:merge(A, B) =:= ?M:merge(B, A)
                andalso ?M:merge(A, ?M:merge(B, C)) =:= ?M:merge(?M:merge(A, B), C)
                andalso ?M:merge(A, A) =:= A)
     end),
     sderl_prop:eunit("a node is what the last step made of it", 300, fun() ->
         ?FORALL({Ns, Steps}, {some(), steps()}, begin
             M = do(Steps, ?M:new(Ns)),
             Model = lists:foldl(fun model/2, #{N => member || N <- Ns}, Steps),
             Is = fun(State) -> [N || N <- all(), maps:get(N, Model, unknown) =:= State] end,
             ?M:members(M) =:= Is(member) andalso ?M:forgotten(M) =:= Is(forgotten)
                 andalso ?M:removed(M) =:= Is(removed)
                 andalso lists:all(fun(N) ->
                     ?M:is_known(N, M) =:= lists:member(N, Is(member) ++ Is(forgotten))
                 end, all())
         end)
     end),
     sderl_prop:eunit("where both sides know no removal, who is a member of one is a member", 300,
                      fun() ->
                         ?FORALL({A, B}, {membership(), membership()}, begin
                             Both = ?M:merge(A, B),
                             lists:all(fun(N) ->
                                 case lists:sort([state(N, A), state(N, B)]) of
                                     [forgotten, member] ->
                                         {{CA, _}, {CB, _}} = {maps:get(N, A), maps:get(N, B)},
                                         CA =/= CB orelse state(N, Both) =:= member;
                                     [Same, Same] -> state(N, Both) =:= Same;
                                     [S, unknown] -> state(N, Both) =:= S;
                                     _ -> true
                                 end
                             end, all())
                         end)
                      end),
     sderl_prop:eunit("after a split, what one side alone changed stands", 300, fun() ->
        ?FORALL({Ns, Left, Right}, {some(), changes(), changes()}, begin
            Start = ?M:new(Ns),
            {A, B} = {do(Left, Start), do(Right, Start)},
            Both = ?M:merge(A, B),
            Untouched = fun(N, M) -> maps:get(N, M, none) =:= maps:get(N, Start, none) end,
            lists:all(fun(N) ->
                case {Untouched(N, A), Untouched(N, B)} of
                    {true, _} -> ?M:is_member(N, Both) =:= ?M:is_member(N, B);
                    {_, true} -> ?M:is_member(N, Both) =:= ?M:is_member(N, A);
                    _ -> true
                end
            end, all())
        end)
     end),
     sderl_prop:eunit("members are never pruned", 300, fun() ->
         ?FORALL({M, T}, {membership(), range(0, 1001)}, begin
             P = ?M:prune(T, M),
             ?M:members(P) =:= ?M:members(M)
                 andalso lists:all(fun(N) -> element(2, maps:get(N, M)) >= T end,
                                   ?M:removed(P) ++ ?M:forgotten(P))
         end)
     end)].
