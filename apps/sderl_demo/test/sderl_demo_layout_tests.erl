%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_layout_tests).

-include_lib("eunit/include/eunit.hrl").

default_test() ->
    Layout = layout(24, 6),
    Groups = sderl_demo_layout:groups(Layout),
    ?assertEqual(
        [
            {g1, 6, [1, 2, 3, 4, 5, 6, 24]},
            {g2, 12, [6, 7, 8, 9, 10, 11, 12]},
            {g3, 18, [12, 13, 14, 15, 16, 17, 18]},
            {g4, 24, [18, 19, 20, 21, 22, 23, 24]}
        ],
        [
            {Name, Gateway, Members}
         || #{name := Name, gateway := Gateway, members := Members} <- Groups
        ]
    ),
    ?assertEqual([g1], sderl_demo_layout:groups_of(1, Layout)),
    ?assertEqual([g1, g2], sderl_demo_layout:groups_of(6, Layout)),
    ?assertEqual([g4, g1], sderl_demo_layout:groups_of(24, Layout)),
    ?assertEqual(
        ["g1 [1-5] ==6== g2 [7-11] ==12== g3 [13-17] ==18== g4 [19-23] ==24== g1"],
        picture(Layout)
    ).

own_and_other_names_test() ->
    Layout = layout(24, 6),
    Hosts = fun(Names) -> lists:usort([{Group, Host} || {Group, {server, Host, _}} <- Names]) end,
    ?assertEqual(
        [{g1, 2}, {g1, 3}, {g1, 4}, {g1, 5}, {g1, 6}, {g1, 24}],
        Hosts(sderl_demo_layout:own_names(1, Layout))
    ),
    %% Of both neighbours, a gateway away.
    ?assertEqual(
        [{g2, Host} || Host <- lists:seq(6, 12)] ++ [{g4, Host} || Host <- lists:seq(18, 24)],
        Hosts(sderl_demo_layout:other_names(1, Layout))
    ),
    %% A gateway has the groups next to its two.
    ?assertEqual(
        [{g3, Host} || Host <- lists:seq(12, 18)] ++ [{g4, Host} || Host <- lists:seq(18, 24)],
        Hosts(sderl_demo_layout:other_names(6, Layout))
    ).

single_group_test() ->
    Layout = layout(4, 4),
    ?assertMatch([#{gateway := none, members := [1, 2, 3, 4]}], sderl_demo_layout:groups(Layout)),
    ?assertEqual([], sderl_demo_layout:other_names(1, Layout)),
    ?assertEqual(["g1 [1-4]"], picture(Layout)).

two_groups_share_two_gateways_test() ->
    Layout = layout(6, 3),
    ?assertEqual([1, 2, 3, 6], sderl_demo_layout:members(g1, Layout)),
    ?assertEqual([3, 4, 5, 6], sderl_demo_layout:members(g2, Layout)),
    ?assertEqual([], sderl_demo_layout:other_names(3, Layout)).

picture_of_many_groups_test() ->
    ?assertEqual(
        [
            "g1 [1-3] ==4== g2 [5-7] ==8== g3 [9-11] ==12== g4 [13-15] ==16== g5 [17-19] ==20==",
            "g6 [21-23] ==24== g1"
        ],
        picture(layout(24, 4))
    ),
    ?assertMatch([_], picture(layout(20, 4))).

refused_test() ->
    ?assertEqual({error, too_few_nodes}, sderl_demo_layout:new(3, 2)),
    ?assertEqual({error, too_few_nodes}, sderl_demo_layout:new(-1, 2)),
    ?assertEqual({error, group_size_too_small}, sderl_demo_layout:new(4, 1)),
    ?assertEqual({error, group_size_above_nodes}, sderl_demo_layout:new(4, 5)).

%% What holds for every size.
every_size_test_() ->
    [
        {lists:flatten(io_lib:format("~w nodes in groups of ~w", [Nodes, Size])), fun() ->
            sound(Nodes, Size, layout(Nodes, Size))
        end}
     || Nodes <- [4, 5, 6, 7, 9, 10, 23, 24, 25, 40], Size <- [2, 3, 4, 6, 7, 10, 24], Size =< Nodes
    ].

sound(Nodes, Size, Layout) ->
    Groups = sderl_demo_layout:groups(Layout),
    ?assertEqual(lists:seq(1, Nodes), lists:append([Own || #{own := Own} <- Groups])),
    Sizes = [length(Own) || #{own := Own} <- Groups],
    ?assert(lists:max(Sizes) =< Size),
    ?assert(lists:max(Sizes) - lists:min(Sizes) =< 1),
    Names = sderl_demo_layout:names(Layout),
    ?assertEqual(length(Names), length(lists:usort(Names))),
    lists:foreach(fun(Index) -> sound_caller(Index, Layout) end, lists:seq(1, Nodes)).

sound_caller(Index, Layout) ->
    Groups = sderl_demo_layout:groups_of(Index, Layout),
    Own = sderl_demo_layout:own_names(Index, Layout),
    Other = sderl_demo_layout:other_names(Index, Layout),
    ?assertNotEqual([], Own),
    ?assertEqual([], (Own ++ Other) -- sderl_demo_layout:names(Layout)),
    ?assertEqual([], [S || {_, {server, Host, _}} = S <- Own ++ Other, Host =:= Index]),
    ?assertEqual([], [S || {Group, _} = S <- Own, not lists:member(Group, Groups)]),
    ?assertEqual([], [S || {Group, _} = S <- Other, lists:member(Group, Groups)]).

layout(Nodes, Size) ->
    {ok, Layout} = sderl_demo_layout:new(Nodes, Size),
    Layout.

picture(Layout) ->
    [lists:flatten(Line) || Line <- sderl_demo_layout:picture(Layout)].
