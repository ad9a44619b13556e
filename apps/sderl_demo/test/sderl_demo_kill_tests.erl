%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_kill_tests).

-include_lib("eunit/include/eunit.hrl").

same_seed_same_plan_test() ->
    Layout = layout(),
    ?assertEqual(sderl_demo_kill:plan(Layout, 3, 7), sderl_demo_kill:plan(Layout, 3, 7)),
    ?assertNotEqual(sderl_demo_kill:plan(Layout, 3, 7), sderl_demo_kill:plan(Layout, 3, 8)).

plan_test() ->
    Layout = layout(),
    Names = sderl_demo_layout:names(Layout),
    Orders = [
        {At, Watcher, Server}
     || Watcher := Orders <- sderl_demo_kill:plan(Layout, 3, 7), {At, Server} <- Orders
    ],
    {Times, _, Servers} = lists:unzip3(lists:sort(Orders)),
    ?assertEqual(lists:seq(0, 2960, 40), Times),
    %% Everyone once before anyone twice.
    First = lists:sublist(Servers, length(Names)),
    ?assertEqual(lists:sort(Names), lists:sort(First)),
    %% The watcher is a member of the group on another node.
    lists:foreach(
        fun({_, Watcher, {Group, {server, Host, _}}}) ->
            ?assertNotEqual(Host, Watcher),
            ?assert(lists:member(Watcher, sderl_demo_layout:members(Group, Layout)))
        end,
        Orders
    ).

short_phase_kills_one_test() ->
    ?assertMatch([[{0, _}]], maps:values(sderl_demo_kill:plan(layout(), 0.01, 7))).

layout() ->
    {ok, Layout} = sderl_demo_layout:new(24, 6),
    Layout.
