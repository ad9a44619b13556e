%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

some(Count) -> [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, Count)].

%% ---------------------------------------------------------------- prediction

%% Nodes 1 to 4 and 4 to 6, and two nobody reaches.
by_hand() ->
    #{version => 1, pattern => chain, options => #{}, left_out => [], edges => [],
      groups => [#{name => G, role => workers, masters => 0, nodes => Ns}
                 || {G, Ns} <- [{a, [n1, n2, n3, n4]}, {b, [n4, n5, n6]}, {c, [n7, n8]}]]}.

by_hand_test() ->
    ?assertEqual(ok, sderl_pattern:check(by_hand())),
    ?assertMatch(#{
        links := #{max := 5, each := #{n1 := 3, n4 := 5, n5 := 2, n7 := 1}}, nodes := 8,
        groups := 3, gateways := 1, mesh_links := 7, group_size := #{min := 2, max := 4},
        hops := #{max := 2, unreachable := 24}, single_points := [{n4, [b]}]
    }, sderl_plan:predict(by_hand())),
    #{hops := #{mean := Mean}} = sderl_plan:predict(by_hand()),
    %% Of 32 ways 12 take two links: three nodes of one group to two of the other, both ways.
    ?assertEqual((20 + 24) / 32, Mean).

traffic_test() ->
    ?assertMatch({ok, #{traffic := #{mean := 1.25, inside := 0.75, unreachable := +0.0}}},
                 sderl_plan:predict(by_hand(), #{traffic => [{n1, n2, 75}, {n1, [n5, n6], 25}]})),
    ?assertMatch({ok, #{traffic := #{unreachable := 0.5}}},
                 sderl_plan:predict(by_hand(), #{traffic => [{n1, n2, 1}, {n1, n7, 1}]})),
    [?assertEqual({error, {bad_traffic, Row}}, sderl_plan:predict(by_hand(), #{traffic => [Row]}))
     || Row <- [{n1, n2}, {n1, n2, -1}, {n1, "n2", 1}, {n1, [], 1}, x]].

names_test() ->
    {ok, #{names := Names}} = sderl_plan:predict(by_hand(),
                                                 #{names_per_node => 10, names_per_group => 1}),
    %% n4 is in two groups; without an edge that says so it is at home in both.
    ?assertMatch(#{max := 72, mesh := 93}, Names).

%% ---------------------------------------------------------------- proposals

proposals_test_() ->
    [{lists:flatten(io_lib:format("~p ~0p", [N, Limits])), fun() ->
        {ok, #{pattern := Pattern}, #{links := #{max := Links}}} =
            sderl_plan:propose(some(N), Limits)
    end} || {N, Limits, Pattern, Links} <- [
       {10, #{max_links => 20}, chain, 9},
       {100, #{max_links => 20}, star, 20},
       {100, #{max_links => 5}, ring, 5},
       {300, #{max_links => 20, max_group => 12}, grid, 19}
   ]].

impossible_test_() ->
    [{lists:flatten(io_lib:format("~p ~0p", [N, Limits])), fun() ->
        {error, Reason} = sderl_plan:propose(some(N), Limits),
        ?assertEqual(Expected, sderl_plan:format_error(Reason))
     end} || {N, Limits, Expected} <- [
         {100, #{max_links => 1},
          "no plan of 100 nodes keeps to max_links 1: the closest is a chain with max_links 5; "
          "allow that, or have one gateway of an edge"},
         {100, #{max_group => 3},
          "no plan of 100 nodes keeps to max_group 3: the closest is a chain with max_group 4; "
          "allow that, or have one gateway of an edge"},
         {0, #{}, "there are no nodes to plan for: give at least one"},
         {2, #{links => 3},
          "links is no limit of a plan: see sderl_plan:limits() for those that are"},
         {2, #{traffic => [x]},
          "x is no row of a traffic matrix: write {FromNodes, ToNodes, MessagesPerSecond}"}
     ]].

%% Ten services of ten nodes that talk among themselves, dealt out over the list: most messages stay
%% in a group.
by_traffic_test() ->
    Nodes = some(100),
    Service = fun(R) -> [N || {I, N} <- lists:enumerate(Nodes), I rem 10 =:= R] end,
    Traffic = [{Service(R), Service(R), 95} || R <- lists:seq(0, 9)] ++ [{Nodes, Nodes, 50}],
    {ok, Plan, #{traffic := #{inside := Inside, mean := Mean}}} =
        sderl_plan:propose(Nodes, #{max_links => 24, traffic => Traffic}),
    ?assert(Inside > 0.9 andalso Mean < 1.3),
    {ok, #{traffic := #{inside := Before}}} =
        sderl_plan:predict(element(2, {ok, _} = sderl_pattern:star(Nodes, #{size => 10})),
                           #{traffic => Traffic}),
    ?assert(Before < 0.2),
    ?assertEqual(100, length(sderl_pattern:nodes(Plan))).

proposal_test_() -> sderl_prop:eunit("a proposal keeps to its limits", 150, fun prop_propose/0).

prop_propose() ->
    ?FORALL({Count, Limits0, K, Seed}, {integer(1, 120), list(
        oneof([{max_links, integer(1, 40)}, {max_group, integer(1, 30)}])
    ), integer(1, 3), integer(0, 3)},
            begin
                Nodes = some(Count),
                Traffic = [{A, B, 1}
                           || Seed > 0, A <- Nodes, B <- Nodes,
                              erlang:phash2({A, B, Seed}, 20) =:= 0],
                Limits = maps:merge((maps:from_list(Limits0))#{gateways => K},
                                    maps:from_list([{traffic, Traffic} || Traffic =/= []])),
                case sderl_plan:propose(Nodes, Limits) of
                    {ok, #{groups := Groups} = Plan,
                     #{links := #{max := Links}, hops := #{unreachable := 0},
                       single_points := Single}} ->
                        sderl_pattern:check(Plan) =:= ok
                        andalso sderl_pattern:nodes(Plan) =:= lists:sort(Nodes)
                        andalso Links =< maps:get(max_links, Limits, Links)
                        andalso Links =:= lists:max([length(mates(N, Groups)) - 1 || N <- Nodes])
                        andalso lists:all(fun(#{nodes := Ns}) ->
                            length(Ns) =< maps:get(max_group, Limits, 1000)
                        end, Groups)
                        andalso (Single =:= [] orelse K =:= 1);
                    {error, Reason} ->
                        %% Only where one group of all does not keep to the limits.
                        is_list(sderl_plan:format_error(Reason)) andalso
                            (Count - 1 > maps:get(max_links, Limits, Count)
                             orelse Count > maps:get(max_group, Limits, Count))
                end
            end).

mates(Node, Groups) ->
    lists:usort([N || #{nodes := Ns} <- Groups, lists:member(Node, Ns), N <- Ns]).

%% ---------------------------------------------------------------- words

%% Those that the tests of what makes them do not come to.
words_test_() ->
    [{lists:flatten(io_lib:format("~0tp", [Reason])), fun() ->
        Text = sderl_plan:format_error(Reason),
        ?assert(is_list(Text) andalso io_lib:printable_unicode_list(Text)),
        ?assertNotEqual(lists:flatten(io_lib:format("~0tp", [Reason])), Text)
     end} || Reason <- [
         {groups_by_attribute}, {too_large, 5, 3}, {remainder, 3, 4}, {remainder, -3, 4},
         {cannot_write, "ä", eacces}, {cannot_read, "a", {1, erl_parse, "x"}},
         {not_one_term, "a", 2}, {not_in_plan, a}, {none_to_spare, {group, 1}},
         {too_few_nodes_for, ring, 3}, {full, grid},
         {limit, max_links, 3, 4}, {limit, max_group, 3, 4}, {no_plan, 3, #{max_links => 1}, none},
         {no_plan, 3, #{gateways => 1, max_links => 1}, {max_links, 2, chain}},
         {not_running}, {unreachable, a}, {no_library, a}, {too_old, a}, {no_answer, a, timeout},
         {refuses, a, connect_all}, {refuses, a, b},
         {other_identity, {group, 1}, [a, b]}, {left_out, {group, 1}, [{a, unreachable}, {b, x}]},
         {step_failed, {create, {group, 1}, [a]}, timeout},
         {no_member, {group, 1}}
     ]].

misuse_test_() ->
    [?_assertError({badarg, {sderl_plan, F, _}, #{argument := _, found := _, expected := _}},
                   apply(sderl_plan, F, Args))
     || {F, Args} <- [
         {predict, [x]}, {predict, [#{groups => []}, x]}, {propose, [[a, b], x]},
         {propose, [[a, b], #{max_links => few}]},
         {propose, [[a, b], #{patterns => [cube]}]}, {propose, [[a, b], #{names_per_node => -1}]}
     ]].
