%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_master_tests).

%% The masters' decisions, on simulated nodes.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(CLUSTER, #{'a@h' => [g1], 'b@h' => [g1, g2], 'c@h' => [g2], 'd@h' => []}).
-define(MONITORS, ['m1@h', 'm2@h', 'm3@h']).

%% The lowest leads, all follow it, each node is watched once.
first_test() ->
    #{leaders := Leaders, masters := Masters, scopes := Scopes} =
        Seen = sderl_mon_sim:seen(run([{wait, 4000}])),
    ?assertEqual({['m1@h'], ['m1@h']}, {Leaders, Masters}),
    ?assertEqual([{{free, 'd@h'}, ['d@h']}, {{group, g1}, ['a@h', 'b@h']}, {{group, g2}, ['c@h']}],
                 Scopes),
    ?assertEqual(ok, right(Seen)).

%% Of groups whose members all have their homes elsewhere no agent runs, and none is counted.
many_groups_test() ->
    Groups = lists:sort([list_to_atom(lists:concat([g, I])) || I <- lists:seq(1, 50)]),
    Sim = sderl_mon_sim:op({wait, 4000}, sderl_mon_sim:new(
        ['m1@h'], #{'a@h' => Groups, 'b@h' => Groups, 'c@h' => [g9]}
    )),
    #{scopes := Scopes, topologies := #{'m1@h' := #{groups := Shown, monitors := Monitors}}} =
        sderl_mon_sim:seen(Sim),
    ?assertEqual([{{group, g1}, ['a@h', 'b@h']}, {{group, g9}, ['c@h']}], Scopes),
    ?assertMatch([#{agents := 2}], Monitors),
    ?assertEqual(50, map_size(Shown)).

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

%% A takeover tells what the leader before did not, and no old news, as of a node that joined a
%% second group: its agent stayed the same.
takeover_news_test() ->
    Taken = [{monitor_down, ~"the monitoring node m1@h is down; its agents run elsewhere"},
             {master_changed, ~"m2@h is the master now"}],
    {_, Begun} = sderl_mon_sim:told(run([{wait, 4000}])),
    {Told, Sim} = sderl_mon_sim:told(
        ops([{groups, 'a@h', [g1, g2]}, {wait, 4000}], Begun)
    ),
    ?assertEqual([{members_added, ~"g2: new members a@h"}], news(Told)),
    {ToldOld, _} = sderl_mon_sim:told(ops([{kill, 'm1@h'}, {wait, 4000}], Sim)),
    ?assertEqual(Taken, news(ToldOld)),
    {ToldNew, _} = sderl_mon_sim:told(
        ops([{pause, 'm1@h'}, {groups, 'a@h', [g1]}, {down, 'c@h'}, {wait, 2000}, {kill, 'm1@h'},
             {wait, 4000}], Sim)
    ),
    ?assertEqual([{node_down, ~"c@h is down: down"},
                  {members_removed, ~"g2: no members any more: a@h"},
                  {coordinator_changed, ~"g2: the coordinator is b@h now"} | Taken],
                 news(ToldNew)).

news(Told) -> [{Kind, Text} || {_, Kind, Text} <- Told].

%% A master that begins anew, alone or not, gives its agents the orders that they have.
adopts_test() ->
    lists:foreach(
        fun(Monitors) ->
            Sim0 = sderl_mon_sim:op({wait, 4000}, sderl_mon_sim:new(Monitors, ?CLUSTER)),
            #{running := Before} = Sim0,
            Sim = ops([{crash, 'm1@h'}, {wait, 4000}], Sim0),
            #{running := After} = Sim,
            ?assertEqual(where(Before), where(After)),
            ?assertEqual(ok, right(sderl_mon_sim:seen(Sim)))
        end,
        [['m1@h'], ?MONITORS]
    ).

%% It leads once it has read what its agents report, however long that takes it, unless one of them
%% does not report for 3 s.
reports_are_read_test() ->
    Specs = [#{scope => Scope, term => 7, nodes => [Node], monitors => ['m1@h'], hubs => ['m1@h'],
               config => maps:get(config, shared())} || {Scope, Node} <- [{a, 'a@h'}, {b, 'b@h'}]],
    Report = fun(Scope, Node) ->
        {peer, report, 'm1@h', #{scope => Scope, term => 7, nodes => #{
            Node => #{status => up, why => <<>>, source => probe, facts => #{}, peers => []}}}}
    end,
    Leads = fun(Core) -> sderl_mon_master_core:leads(Core) end,
    At = fun(Events, Core) ->
        lists:foldl(fun({Now, Event}, C) ->
            element(2, sderl_mon_master_core:step(Event, Now, C))
        end, Core, Events)
    end,
    New = At([{0, {adopted, Specs}}, {1000, Report(a, 'a@h')}, {1000, tick}],
             sderl_mon_master_core:new('m1@h', shared(), 0)),
    ?assertNot(Leads(New)),
    ?assert(Leads(At([{1100, Report(b, 'b@h')}, {1200, tick}], New))),
    ?assertNot(Leads(At([{2400, tick}], New))),
    ?assert(Leads(At([{2400, tick}, {3200, tick}], New))),
    %% Its virtual machine stood still, and the tick is read first.
    Still = At([{9000, tick}], New),
    ?assertNot(Leads(Still)),
    ?assert(Leads(At([{9000, Report(b, 'b@h')}, {9200, tick}], Still))).

shared() -> sderl_mon_shared:new(sderl_mon_config:defaults()).

where(Running) ->
    #{M => lists:sort([{S, Ns} || #{scope := S, nodes := Ns} <- Specs]) || M := Specs <- Running}.

%% Two that are cut off from each other alone, and a third hears both: one leads, under one term,
%% and each node is watched once; also where the other led before. When it dies, the other does.
apart_test() ->
    Apart = {cut, 'm1@h', 'm2@h'},
    First = run([{wait, 4000}]),
    Cut = ops([Apart, {wait, 10_000}], First),
    ?assertEqual({['m1@h'], maps:get(terms, sderl_mon_sim:seen(First))},
                 {maps:get(leaders, sderl_mon_sim:seen(Cut)),
                  maps:get(terms, sderl_mon_sim:seen(Cut))}),
    Anew = run([{wait, 4000}, {kill, 'm1@h'}, Apart, {wait, 4000}, {restart, 'm1@h'},
                {wait, 10_000}]),
    [
        begin
            ?assertMatch(#{leaders := ['m1@h'], monitored := ['a@h', 'b@h', 'c@h', 'd@h']},
                         sderl_mon_sim:seen(Sim)),
            ?assertMatch(#{leaders := ['m2@h'], monitored := ['a@h', 'b@h', 'c@h', 'd@h']},
                         sderl_mon_sim:seen(ops([{kill, 'm1@h'}, {wait, 1000}], Sim))),
            ?assertEqual(ok, right(sderl_mon_sim:seen(ops([heal, {wait, 3000}], Sim))))
        end
     || Sim <- [Cut, Anew]
    ],
    %% Not heard for a moment by one of them.
    ?assertEqual(ok, right(
        sderl_mon_sim:seen(ops([{cut, 'm1@h', 'm3@h'}, {wait, 3500}, heal, {wait, 3000}], First))
    )).

%% A node that is down stays in its groups, as its fellow members say.
down_test() ->
    #{topologies := #{'m2@h' := #{nodes := #{<<"a@h">> := A},
                                  groups := #{<<"g1">> := #{nodes := G1}}}}} =
        sderl_mon_sim:seen(run([{wait, 4000}, {down, 'a@h'}, {wait, 3000}])),
    ?assertMatch(#{status := down, groups := [<<"g1">>], why := <<"down">>}, A),
    ?assertEqual([<<"a@h">>, <<"b@h">>], G1).

%% What is set holds everywhere, also where it is set at a node that does not lead, knows no leader
%% yet, or cannot tell it.
set_test() ->
    Set = {set, 'm3@h', #{interval_ms => 250}},
    Sims = [run([Set, {wait, 5000}]), run([{wait, 4000}, Set, {wait, 2000}]),
            run([{wait, 4000}, {cut, 'm1@h', 'm3@h'}, Set, {wait, 1000}, heal, {wait, 3000}])],
    ?assertMatch([[#{interval_ms := 250}], [#{interval_ms := 250}], [#{interval_ms := 250}]],
                 [maps:get(configs, sderl_mon_sim:seen(Sim)) || Sim <- Sims]).

%% Set at a leader that another takes the lead from in that moment, or that dies once it told.
set_at_a_leader_test_() ->
    Stands = [{wait, 4000}, {pause, 'm1@h'}, {wait, 3500}],
    Set = fun(M) -> {set, M, #{interval_ms => 250}} end,
    Deposed = [Stands ++ [Set('m2@h'), {wait, Ms}, {resume, 'm1@h'}, {wait, 4000}]
               || Ms <- [0, 50, 100, 150, 250]],
    Stood = [[{wait, 4000}, {pause, 'm1@h'}, Set('m1@h'), {wait, 3500}, {resume, 'm1@h'},
              {wait, 4000}]],
    Dies = [[{wait, 4000}, Set('m1@h'), {wait, Ms}, {kill, 'm1@h'}, {wait, 4000},
             {restart, 'm1@h'}, {wait, 4000}]
            || Ms <- [100, 150, 250]],
    [?_assertMatch(#{leaders := ['m1@h'], configs := [#{interval_ms := 250}]},
                   sderl_mon_sim:seen(run(Ops)))
     || Ops <- Deposed ++ Stood ++ Dies].

%% The first message is lost; a beat says so, also where none of the two leads.
set_while_cut_off_test() ->
    Cut = [{cut, M, 'm3@h'} || M <- ['m1@h', 'm2@h']],
    Sim = run([{wait, 4000}] ++ Cut ++ [{set, 'm3@h', #{interval_ms => 250}}, {wait, 1000}, heal,
              {cut, 'm1@h', 'm3@h'}, {wait, 1500}, {kill, 'm3@h'}, {wait, 4000}]),
    ?assertMatch(#{leaders := ['m1@h'], configs := [#{interval_ms := 250}]},
                 sderl_mon_sim:seen(Sim)).

%% What any master that lives has heard of holds in the end, whoever led meanwhile.
settings_hold_test_() ->
    sderl_prop:eunit("what was set and is known to a master that lives holds", 1000,
                     fun prop_settings_hold/0).

prop_settings_hold() ->
    ?FORALL(Ops, list(frequency([{5, op()}, {1, set()}])),
        begin
            Before = run(Ops),
            Known = lists:foldl(fun sderl_mon_shared:merge/2, #{config => #{}, stamps => #{}},
                                known(Before)),
            After = lists:usort(known(sderl_mon_sim:quiet(12_000, Before))),
            ?WHENFAIL(io:format("known ~p~nafterwards ~p~n", [Known, After]),
                      length(After) =< 1
                      andalso lists:all(fun(Its) -> holds(Known, Its) end, After))
        end).

%% One that was on its way from a master that died may have come, if it was later.
holds(#{config := Config, stamps := Stamps} = Known, #{config := Its} = After) ->
    #{stamps := Later} = sderl_mon_shared:merge(Known, After),
    After =:= sderl_mon_shared:merge(Known, After)
    andalso [] =:= [Key || Key := Stamp <- Stamps, maps:get(Key, Later) =:= Stamp,
                           maps:get(Key, Its) =/= maps:get(Key, Config)].

set() ->
    Option = oneof([{interval_ms, range(100, 999)}, {inject, boolean()}]),
    ?LET({M, {Key, Value}}, {oneof(?MONITORS), Option}, {set, M, #{Key => Value}}).

%% By masters and by the settings of their nodes.
known(Sim) ->
    #{shared := Shared} = sderl_mon_sim:seen(Sim),
    lists:append([[Core, Settings] || _ := {Core, Settings} <- Shared]).

run(Ops) -> ops(Ops, sderl_mon_sim:new(?MONITORS, ?CLUSTER)).

ops(Ops, Sim) -> lists:foldl(fun sderl_mon_sim:op/2, Sim, Ops).

%% Whatever happened: once nothing happens any more, one leads, all know it, each node is watched by
%% the agent of its home alone, and all hubs show what is so.
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
        {1, set()},
        {8, {wait, oneof([50, 100, 500, 1000, 4000])}},
        {2, {kill, M}}, {3, {restart, M}}, {2, {crash, M}}, {2, {pause, M}}, {2, {resume, M}},
        {2, {cut, M, M}}, {1, heal},
        {3, {groups, N, list(oneof([g1, g2, g3]))}}, {1, {down, N}}, {2, {up, N}}
    ]).

right(#{live := [Lowest | _] = Live, leaders := Leaders, masters := Masters, terms := Terms,
        topologies := Topologies} = Seen) ->
    #{scopes := Scopes, configs := Configs, monitored := Monitored, cluster := Cluster,
      down := Down} = Seen,
    Up = maps:without(Down, Cluster),
    Wrong = [
        {leaders, Leaders} || Leaders =/= [Lowest]
    ] ++ [{masters, Masters} || Masters =/= [Lowest]] ++ [{terms, Terms} || length(Terms) =/= 1] ++
        [{scopes, Scopes} || [S || {S, _} <- Scopes] =/= lists:usort([S || {S, _} <- Scopes])] ++
        [{configs, Configs} || length(Configs) > 1] ++
        [{monitored, Monitored} || Monitored =/= lists:sort(maps:keys(Cluster))] ++
        [{home, N, S}
         || {S, Ns} <- Scopes, N <- Ns, is_map_key(N, Up),
            S =/= sderl_mon_layout:home({N, maps:get(N, Cluster)})] ++
        [{topology, M, T} || M <- Live, T <- [maps:get(M, Topologies)], not shows(T, Up)],
    case Wrong of [] -> ok; _ -> Wrong end.

shows(#{nodes := Nodes}, Up) ->
    #{sderl_mon_types:id(N) => [sderl_mon_types:id({group, G}) || G <- Gs] || N := Gs <- Up} =:=
        #{N => Gs || N := #{status := up, groups := Gs} <- Nodes};
shows(_, _) -> false.
