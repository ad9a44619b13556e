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

forgotten_after_a_time_test() ->
    M = ?M:remove([b], 20, ?M:remove([a], 10, ?M:new([a, b, c]))),
    ?assertEqual([b], ?M:removed(?M:prune(15, M))),
    ?assertEqual([c], ?M:members(?M:prune(100, M))),
    ?assertEqual([], ?M:removed(?M:prune(100, M))).

%% ---------------------------------------------------------------- properties

some() -> list(oneof([a, b, c, d, e])).
step() -> oneof([{add, some()}, {remove, some(), range(1, 1000)}]).
steps() -> list(step()).

do(Steps, M) ->
    lists:foldl(fun({add, Ns}, A) -> ?M:add(Ns, A);
                   ({remove, Ns, T}, A) -> ?M:remove(Ns, T, A)
                end, M, Steps).

membership() -> ?LET({Ns, Steps}, {some(), steps()}, do(Steps, ?M:new(Ns))).

properties_test_() ->
    [sderl_prop:eunit("a merge does not depend on order or number", 300, fun() ->
        ?FORALL({A, B, C}, {membership(), membership(), membership()},
            ?M:merge(A, B) =:= ?M:merge(B, A)
                andalso ?M:merge(A, ?M:merge(B, C)) =:= ?M:merge(?M:merge(A, B), C)
                andalso ?M:merge(A, A) =:= A)
     end),
     sderl_prop:eunit("members are those last added, sorted, and never among the removed", 300, fun() ->
        ?FORALL({Ns, Steps}, {some(), steps()}, begin
            M = do(Steps, ?M:new(Ns)),
            Model = lists:foldl(fun({add, X}, S) -> lists:usort(X ++ S);
                                   ({remove, X, _}, S) -> [N || N <- S, not lists:member(N, X)]
                                end, lists:usort(Ns), Steps),
            ?M:members(M) =:= Model andalso [N || N <- Model, lists:member(N, ?M:removed(M))] =:= []
                andalso lists:all(fun(N) -> ?M:is_member(N, M) end, Model)
        end)
     end),
     sderl_prop:eunit("after a split, what one side alone changed stands", 300, fun() ->
        ?FORALL({Ns, Left, Right}, {some(), steps(), steps()}, begin
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
            end, [a, b, c, d, e])
        end)
     end),
     sderl_prop:eunit("members are never forgotten", 300, fun() ->
        ?FORALL({M, T}, {membership(), range(0, 1001)},
            ?M:members(?M:prune(T, M)) =:= ?M:members(M)
                andalso lists:all(fun(N) -> element(2, maps:get(N, M)) >= T end, ?M:removed(?M:prune(T, M))))
     end)].
