%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_tree_tests).

-include_lib("eunit/include/eunit.hrl").

%% As the published programs compute it.
find_max_level_test_() ->
    [
        ?_assertEqual({Nodes, P, Wanted}, {Nodes, P, sderl_aco_tree:find_max_level(Nodes, P)})
     || {Nodes, P, Wanted} <- [
         {150, 5, {3, 131}}, {5, 2, {2, 5}}, {11, 2, {3, 11}}, {23, 2, {4, 23}},
         {226, 15, {2, 226}}, {256, 15, {2, 226}}, {250, 5, {3, 131}}, {4, 2, {0, 0}},
         {10, 2, {2, 5}}, {10, 1, {0, 0}}, {1, 5, {0, 0}}
     ]
    ].

one_level_test() ->
    Layout = layout(ml, 4, 2, 6),
    ?assertMatch(#{shape := #{levels := 0, used := 4, colony_nodes := 4}, master := n0,
                   start := n0}, Layout),
    ?assertEqual(layout(tl, 4, 7, 6), Layout),
    ?assertEqual([{{aco, total}, [n0, n1, n2, n3, n4]}], sderl_aco_tree:groups(Layout)),
    ?assertEqual(
        [{n1, [{{colony, 1}, {colony, 1}}, {{colony, 5}, {colony, 1}}]},
         {n4, [{{colony, 4}, {colony, 4}}]}],
        [{Node, Members}
         || #{node := Node, members := Members} <- maps:get(seats, Layout),
            lists:member(Node, [n1, n4])]
    ).

%% Without a tree nodes beyond the colonies are not used.
few_colonies_test() ->
    ?assertEqual(#{levels => 0, used => 16, colony_nodes => 16},
                 sderl_aco_tree:shape(tl, 23, 2, 16)),
    ?assertEqual(#{levels => 0, used => 4, colony_nodes => 4}, sderl_aco_tree:shape(sr, 4, 2, 5)),
    ?assertEqual(#{levels => 4, used => 23, colony_nodes => 16},
                 sderl_aco_tree:shape(sr, 23, 2, 5)).

two_levels_test() ->
    Layout = layout(sr, 5, 2, 4),
    ?assertMatch(
        #{
            master := n1,
            group := {aco, start},
            seats := [#{
                supervisor := {supervisor, {1, 1}},
                node := n1,
                members := [
                    {{submaster, 1, 1, 1},
                     {submaster,
                      [#{node := n2, group := {aco, {process, 1, 1, 1}}}, #{node := n3}]}},
                    {{submaster, 1, 1, 2},
                     {submaster,
                      [#{node := n4}, #{node := n5, members := [{{colony, 4}, {colony, 4}}]}]}}
                ]
            }]
        },
        Layout
    ),
    ?assertEqual(
        [{{aco, start}, [n0, n1]}, {{aco, {process, 1, 1, 1}}, [n1, n2, n3]},
         {{aco, {process, 1, 1, 2}}, [n1, n4, n5]}],
        sderl_aco_tree:groups(Layout)
    ),
    ?assertEqual([{n0, 1}, {n1, 5}, {n2, 2}, {n3, 2}, {n4, 2}, {n5, 2}],
                 sderl_aco_tree:links(Layout)).

three_levels_test() ->
    Layout = layout(gr, 11, 2, 8),
    ?assertEqual(
        [
            {{aco, start}, [n0, n1]},
            {{aco, {node, 1, 1}}, [n1, n2, n3]},
            {{aco, {process, 2, 1, 1}}, [n2, n4, n5]},
            {{aco, {process, 2, 1, 2}}, [n2, n6, n7]},
            {{aco, {process, 2, 2, 1}}, [n3, n8, n9]},
            {{aco, {process, 2, 2, 2}}, [n3, n10, n11]}
        ],
        sderl_aco_tree:groups(Layout)
    ).

%% Every node has a place, each colony is there once, the groups have all nodes and no others, and
%% there are as many levels as fit.
properties_test_() ->
    [
        {lists:flatten(io_lib:format("~w ~w ~w", [Variant, Nodes, P])), fun() ->
            #{used := Used, colony_nodes := K, levels := X} =
                sderl_aco_tree:shape(Variant, Nodes, P, infinity),
            Colonies = K + Nodes rem 7,
            Layout = layout(Variant, Nodes, P, Colonies),
            All = sderl_aco_tree:all_nodes(Layout),
            ?assert(Used =< Nodes),
            ?assertEqual(Used + 1, length(All)),
            ?assertEqual(lists:sort(All), lists:usort(All)),
            ?assertEqual(lists:seq(1, Colonies), sderl_aco_tree:colonies(Layout)),
            ?assertEqual(lists:usort(All), lists:usort(
                [N || {_, Members} <- sderl_aco_tree:groups(Layout), N <- Members]
            )),
            ?assert(X < 2 orelse more(X + 1, P) > Nodes)
        end}
     || Variant <- [tl, ml, gr, sr],
        {Nodes, P} <- [{1, 2}, {3, 2}, {5, 2}, {13, 3}, {23, 2}, {31, 3}, {60, 4}, {150, 5}]
    ].

more(X, P) ->
    lists:sum([round(math:pow(P, L)) || L <- lists:seq(0, X - 2)]) + round(math:pow(P, X)).

layout(Variant, Nodes, P, Colonies) ->
    #{used := Used} = Shape = sderl_aco_tree:shape(Variant, Nodes, P, infinity),
    sderl_aco_tree:layout(Shape, P, Colonies,
                          [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(0, Used)]).
