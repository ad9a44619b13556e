%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_master_tests).

%% The masters' decisions, on simulated nodes.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(CLUSTER, #{'a@h' => [g1], 'b@h' => [g1, g2], 'c@h' => [g2], 'd@h' => []}).
-define(MONITORS, ['m1@h', 'm2@h', 'm3@h']).

%% The lowest leads, all follow it, each node is watched once.
first_test() ->
    #{leaders := Leaders, masters := Masters, scopes := Scopes} = Seen = sderl_mon_sim:seen(run([{wait, 4000}])),
    ?assertEqual({['m1@h'], ['m1@h']}, {Leaders, Masters}),
    ?assertEqual([{{free, 'd@h'}, ['d@h']}, {{group, g1}, ['a@h', 'b@h']}, {{group, g2}, ['c@h']}], Scopes),
    ?assertEqual(ok, right(Seen)).

%% Killed: at once. Standing still: after 3 s.
takeover_test_() ->
    [
        ?_assertEqual(ok, taken({kill, 'm1@h'}, 1000)),
        ?_assertEqual(ok, taken({pause, 'm1@h'}, 4000))
    ].

taken(Op, Ms) ->
    #{running := Running} = Sim = run([{wait, 4000}, Op, {wait, Ms}]),
    #{leaders := Leaders} = sderl_mon_sim:seen(Sim),
    ?assert(lists:member('m2@h', Leaders)),
    Nodes = [N || M <- ['m2@h', 'm3@h'], #{nodes := Ns} <- maps:get(M, Running), N <- Ns],
    ?assertEqual(['a@h', 'b@h', 'c@h', 'd@h'], lists:sort(Nodes)),
    ok.

%% A master that begins anew, alone or not, gives its agents the orders that they have.
adopts_test() ->
    lists:foreach(
        fun(Monitors) ->
            Sim0 = sderl_mon_sim:op({wait, 4000}, sderl_mon_sim:new(Monitors, ?CLUSTER)),
            #{running := Before} = Sim0,
            Sim = lists:foldl(fun sderl_mon_sim:op/2, Sim0, [{crash, 'm1@h'}, {wait, 4000}]),
            #{running := After} = Sim,
            ?assertEqual(where(Before), where(After)),
            ?assertEqual(ok, right(sderl_mon_sim:seen(Sim)))
        end,
        [['m1@h'], ?MONITORS]
    ).

where(Running) -> #{M => lists:sort([{S, Ns} || #{scope := S, nodes := Ns} <- Specs]) || M := Specs <- Running}.

%% A node that is down stays in its groups, as its fellow members say.
down_test() ->
    #{topologies := #{'m2@h' := #{nodes := #{<<"a@h">> := A}, groups := #{<<"g1">> := #{nodes := G1}}}}} =
        sderl_mon_sim:seen(run([{wait, 4000}, {down, 'a@h'}, {wait, 3000}])),
    ?assertMatch(#{status := down, groups := [<<"g1">>], why := <<"down">>}, A),
    ?assertEqual([<<"a@h">>, <<"b@h">>], G1).

run(Ops) -> lists:foldl(fun sderl_mon_sim:op/2, sderl_mon_sim:new(?MONITORS, ?CLUSTER), Ops).

%% Whatever happened: once nothing happens any more, one leads, all know it, each node is watched by the agent of its
%% home alone, and all hubs show what is so.
settles_test_() -> sderl_prop:eunit("a shadow network settles", 2000, fun prop_settles/0).

prop_settles() ->
    ?FORALL(Ops, list(op()),
        begin
            Sim = sderl_mon_sim:quiet(12_000, sderl_mon_sim:op({restart, 'm2@h'}, run(Ops))),
            Result = right(sderl_mon_sim:seen(Sim)),
            ?WHENFAIL(io:format("~p~n", [Result]), Result =:= ok)
        end).

op() ->
    M = oneof(?MONITORS),
    N = oneof(maps:keys(?CLUSTER)),
    frequency([
        {8, {wait, oneof([50, 100, 500, 1000, 4000])}},
        {2, {kill, M}}, {3, {restart, M}}, {2, {crash, M}}, {2, {pause, M}}, {2, {resume, M}}, {2, {cut, M, M}}, {1, heal},
        {3, {groups, N, list(oneof([g1, g2, g3]))}}, {1, {down, N}}, {2, {up, N}}
    ]).

right(#{live := [Lowest | _] = Live, leaders := Leaders, masters := Masters, terms := Terms, topologies := Topologies} = Seen) ->
    #{scopes := Scopes, monitored := Monitored, cluster := Cluster, down := Down} = Seen,
    Up = maps:without(Down, Cluster),
    Wrong = [
        {leaders, Leaders} || Leaders =/= [Lowest]
    ] ++ [{masters, Masters} || Masters =/= [Lowest]] ++ [{terms, Terms} || length(Terms) =/= 1] ++
        [{scopes, Scopes} || [S || {S, _} <- Scopes] =/= lists:usort([S || {S, _} <- Scopes])] ++
        [{monitored, Monitored} || Monitored =/= lists:sort(maps:keys(Cluster))] ++
        [{home, N, S} || {S, Ns} <- Scopes, N <- Ns, is_map_key(N, Up), S =/= sderl_mon_layout:home({N, maps:get(N, Cluster)})] ++
        [{topology, M, T} || M <- Live, T <- [maps:get(M, Topologies)], not shows(T, Up)],
    case Wrong of [] -> ok; _ -> Wrong end.

shows(#{nodes := Nodes}, Up) ->
    #{sderl_mon_types:id(N) => [sderl_mon_types:id({group, G}) || G <- Gs] || N := Gs <- Up} =:=
        #{N => Gs || N := #{status := up, groups := Gs} <- Nodes};
shows(_, _) -> false.
