%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_regroup_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(OURS, [~"a", ~"b", ~"c", ~"d"]).

group(Name, Members) -> #{name => Name, members => Members, consistency => available}.

nothing_to_do_test() ->
    Seen = #{~"a" => #{~"g" => [~"a", ~"b"]}, ~"b" => #{~"g" => [~"a", ~"b"]}},
    ?assertEqual([], changes([group(~"g", [~"a", ~"b"])], [], Seen)).

created_by_those_that_run_test() ->
    Seen = #{~"a" => #{}, ~"b" => #{}},
    ?assertEqual([{create, ~"a", group(~"g", [~"a", ~"b"])}],
                 changes([group(~"g", [~"a", ~"b", ~"c"])], [], Seen)).

nobody_runs_test() ->
    ?assertEqual([], changes([group(~"g", [~"a"])], [], #{~"b" => #{}})).

added_before_others_are_removed_test() ->
    Desired = [group(~"g", [~"a", ~"c"])],
    Before = #{~"a" => #{~"g" => [~"a", ~"b"]}, ~"b" => #{~"g" => [~"a", ~"b"]}, ~"c" => #{}},
    ?assertEqual([{add, ~"a", ~"g", [~"c"]}], changes(Desired, [], Before)),
    All = [~"a", ~"b", ~"c"],
    Then = #{N => #{~"g" => All} || N <- All},
    ?assertEqual([{remove, ~"a", ~"g", [~"b"]}], changes(Desired, [], Then)).

%% The one that is removed is not asked to do it.
removed_by_one_that_stays_test() ->
    Seen = #{N => #{~"g" => [~"a", ~"b"]} || N <- [~"a", ~"b"]},
    ?assertEqual([{remove, ~"b", ~"g", [~"a"]}], changes([group(~"g", [~"b"])], [], Seen)).

%% It is in the others' lists, and does not hold the group itself.
listed_and_not_there_test() ->
    Seen = #{~"a" => #{~"g" => [~"a", ~"b"]}, ~"b" => #{}},
    ?assertEqual([{add, ~"a", ~"g", [~"b"]}], changes([group(~"g", [~"a", ~"b"])], [], Seen)).

strangers_stay_test() ->
    Seen = #{~"a" => #{~"g" => [~"a", ~"stranger"], ~"theirs" => [~"a"]}},
    ?assertEqual([], changes([group(~"g", [~"a"])], [], Seen)).

deleted_where_the_service_made_it_test() ->
    Seen = #{~"a" => #{~"old" => [~"a"]}},
    ?assertEqual([], changes([], [], Seen)),
    ?assertEqual([{delete, ~"a", ~"old"}], changes([], [~"old"], Seen)),
    ?assertEqual([], changes([], [~"old"], #{~"a" => #{}})).

%% Making the changes, round after round, ends with the desired groups.
ends_test_() ->
    {timeout, 60,
     fun() -> ?assert(proper:quickcheck(ends(), [{numtests, 300}, {to_file, user}])) end}.

ends() ->
    ?FORALL({Desired, Seen}, {desired(), seen()},
            begin
                Done = rounds(Desired, Seen, 10),
                [] =:= changes(Desired, [~"g", ~"h"], Done) andalso
                    lists:all(fun(#{name := Name, members := Members}) ->
                        Up = [M || M <- Members, is_map_key(M, Done)],
                        lists:all(fun(M) -> has(M, Name, Up, Done) end, Up)
                    end, Desired)
            end).

has(Member, Name, Up, Seen) ->
    case map_get(Member, Seen) of
        #{Name := Known} -> Up -- Known =:= [];
        #{} -> false
    end.

desired() ->
    ?LET({G, H}, {members(), members()},
         [group(Name, Members) || {Name, [_ | _] = Members} <- [{~"g", G}, {~"h", H}]]).

members() -> ?LET(Chosen, list(oneof(?OURS)), lists:usort(Chosen)).

%% Members of one group know each other.
seen() ->
    ?LET({Up, G, H}, {members(), members(), members()},
         #{N => #{Name => Members || {Name, Members} <- [{~"g", G}, {~"h", H}],
                                     lists:member(N, Members)} || N <- Up}).

rounds(_, Seen, 0) -> Seen;
rounds(Desired, Seen, N) ->
    rounds(Desired, lists:foldl(fun do/2, Seen, changes(Desired, [~"g", ~"h"], Seen)), N - 1).

do({create, _, #{name := Name, members := Members}}, Seen) -> set(Name, Members, Seen);
do({add, Via, Name, New}, Seen) ->
    set(Name, lists:usort(map_get(Name, map_get(Via, Seen)) ++ New), Seen);
do({remove, Via, Name, Gone}, Seen) ->
    set(Name, map_get(Name, map_get(Via, Seen)) -- Gone, drop(Name, Seen));
do({delete, _, Name}, Seen) -> drop(Name, Seen).

set(Name, Members, Seen) ->
    #{N => case lists:member(N, Members) of true -> Groups#{Name => Members}; false -> Groups end
      || N := Groups <- Seen}.

drop(Name, Seen) -> #{N => maps:remove(Name, Groups) || N := Groups <- Seen}.

changes(Desired, Made, Seen) -> sderl_ops_regroup:changes(Desired, Made, ?OURS, Seen).
