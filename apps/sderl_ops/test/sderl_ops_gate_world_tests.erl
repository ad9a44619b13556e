%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_gate_world_tests).
-moduledoc "Upgrades that alarms hold up, with other revisions and a silent dashboard.".

-include_lib("eunit/include/eunit.hrl").
-include("../src/simulated/sderl_ops_world.hrl").

%% ---------------------------------------------------------------- other revisions

%% Whatever is changed elsewhere: the alarm of the canary (web2, where the release is first) is that
%% of the new release.
another_revision_test_() ->
    {timeout, 60, fun() ->
        [begin
             World = run(#{}, slow([~"web2"]), [{30_000, to(~"web", ~"two")}, {40_000, Change}]),
             ?assertEqual({Name, [~"web2"]}, {Name, gone_back(~"web", World)}),
             ?assertEqual({Name, [~"one"]}, {Name, releases(~"web", World)})
         end || {Name, Change} <- [
                    {more_of_another, more(~"db")},
                    {more_of_it, more(~"web")},
                    {the_same, {operator, {revision, fun(Same) -> Same end}}}
                ]]
    end}.

%% Also when all are replaced and are only watched for a while.
another_revision_at_last_test_() ->
    {timeout, 60, fun() ->
        Late = fun(#world{now = Now} = World) when Now > 120_000 -> (slow([~"web3"]))(World);
                  (_) -> #{}
               end,
        World = run(#{batch => 3, canaries => 0, wait_s => 120}, Late,
                    [{30_000, to(~"web", ~"two")}, {100_000, more(~"db")}]),
        ?assertEqual([~"web3"], gone_back(~"web", World)),
        ?assertEqual([~"one"], releases(~"web", World))
    end}.

%% An alarm of a release does not count for the next release, which mends it.
another_release_test_() ->
    {timeout, 60, fun() ->
        Standing = fun(#world{now = Now}) when Now > 35_000 -> maps:from_list([raised(~"web2")]);
                      (_) -> #{}
                   end,
        World = run(#{}, Standing, [{30_000, to(~"web", ~"two")}, {42_000, to(~"web", ~"three")}]),
        ?assertEqual([], gone_back(~"web", World)),
        ?assertEqual([~"three"], releases(~"web", World))
    end}.

%% ---------------------------------------------------------------- several at a time

%% An instance that has an alarm before it was ever well holds up all others.
batch_test_() ->
    {timeout, 60, fun() ->
        World = run(#{batch => 2, canaries => 0}, slow([~"web2"]),
                    [{30_000, to(~"web", ~"two")}]),
        ?assertEqual([~"web2"], gone_back(~"web", World)),
        ?assertEqual([~"one"], releases(~"web", World)),
        %% It is seen when the third is down already.
        ?assertEqual([], [Id || {_, {stop, ~"web4" = Id}} <- World#world.log])
    end}.

%% ---------------------------------------------------------------- no way back

%% A client that waits is told that the upgrade is held up, and so is work that waits for its room.
stuck_test_() ->
    {timeout, 60, fun() ->
        World = run(#{roll_back => false}, slow([~"web2"]),
                    [{30_000, to(~"web", ~"two")}, {42_000, to(~"db", ~"two")}]),
        #world{service = #service{memory = Memory, observed = Observed, desired = Desired,
                                  result = #{waiting := Waiting, done := Done}}} = World,
        View = #{store => {~"shop", 3}, desired => Desired, memory => Memory,
                 observed => Observed, hosts => #{}, running => [], waiting => Waiting,
                 done => Done, trouble => none, quiet_ms => infinity},
        ?assertEqual({failed, Waiting}, {sderl_ops_status:state(View), Waiting}),
        ?assertMatch([<<"web cannot be replaced, revision 3", _/binary>>,
                      <<"web2: an alarm", _/binary>>],
                     sderl_ops_status:problems(View))
    end}.

%% Each time that an alarm holds up an upgrade is told, also while all are replaced and only
%% watched.
stuck_again_test_() ->
    {timeout, 60, fun() ->
        Alarms = fun(#world{now = Now} = World) ->
            case Now < 70_000 orelse Now > 90_000 of
                true -> (slow([~"web1"]))(World);
                false -> #{}
            end
        end,
        #world{notes = Notes} =
            run(#{web => 1, roll_back => false, wait_s => 60}, Alarms,
                [{30_000, to(~"web", ~"two")}]),
        ?assertMatch([{alarms, ~"web1", _}, {alarms, ~"web1", _}],
                     [Why || {_, {upgrade_stuck, ~"web", 2, Why}} <- Notes])
    end}.

%% ---------------------------------------------------------------- a dashboard that is away

%% Replaced instances whose health is unknown do not take the batch from another family that is
%% rolled back.
way_back_beside_unknown_test_() ->
    {timeout, 60, fun() ->
        Alarms = fun(World) ->
            case gone_back(~"db", World) of
                [] -> (slow([~"db1"]))(World);
                _ -> unknown
            end
        end,
        Late = fun(#world{now = Now}) when Now < 90_000 -> #{};
                  (World) -> Alarms(World)
               end,
        World = run(#{db => 4, batch => 2, canaries => 0, wait_s => 300}, Late,
                    [{30_000, to(~"web", ~"two")}, {30_000, to(~"db", ~"two")}]),
        ?assertEqual({[~"db1"], [~"one"]}, {gone_back(~"db", World), releases(~"db", World)}),
        ?assertEqual([~"two"], releases(~"web", World))
    end}.

%% A dashboard that fails now and then does not lengthen the time of an instance with an alarm.
flapping_test_() ->
    {timeout, 60, fun() ->
        Alarms = fun(#world{now = Now}) when Now rem 12_000 < 2_000 -> unknown;
                    (World) -> (slow([~"web2"]))(World)
                 end,
        #world{notes = Notes} = World = run(#{}, Alarms, [{30_000, to(~"web", ~"two")}]),
        ?assertEqual({[~"web2"], [~"one"]}, {gone_back(~"web", World), releases(~"web", World)}),
        [At] = [At || {At, {roll_back, _, _, _, _}} <- Notes],
        ?assert(At < 60_000)
    end}.

%% What holds up an upgrade is told once, when it begins.
told_test_() ->
    {timeout, 60, fun() ->
        Alarms = fun(#world{now = Now}) when Now >= 38_000, Now < 70_000 -> unknown;
                    (#world{now = Now} = World) when Now < 74_000 -> (slow([~"web2"]))(World);
                    (_) -> #{}
                 end,
        #world{notes = Notes} = World = run(#{}, Alarms, [{30_000, to(~"web", ~"two")}]),
        ?assertEqual({[], [~"two"]}, {gone_back(~"web", World), releases(~"web", World)}),
        Alarm = {alarms, ~"web2", [~"slow|web2"]},
        ?assertEqual([Alarm, {upgrade, {alarms_unknown, ~"sick"}}, Alarm],
                     lists:reverse([Why || {_, {upgrade_held, ~"web", 2, Why}} <- Notes]))
    end}.

%% While the dashboard does not answer, the time of an alarm stands still.
paused_test_() ->
    {timeout, 60, fun() ->
        Alarms = fun(#world{now = Now}) when Now >= 45_000, Now < 100_000 -> unknown;
                    (World) -> (slow([~"web2"]))(World)
                 end,
        #world{notes = Notes} = World = run(#{}, Alarms, [{30_000, to(~"web", ~"two")}]),
        ?assertEqual([~"web2"], gone_back(~"web", World)),
        [At] = [At || {At, {roll_back, _, _, _, _}} <- Notes],
        ?assertEqual({true, At}, {At > 100_000 andalso At < 115_000, At})
    end}.

%% ---------------------------------------------------------------- helpers

run(Options, Alarms, Script) ->
    #{upgrade := Upgrade0} = Desired = sderl_ops_world_tests:desired(
        maps:merge(#{web => 4, db => 2}, Options)),
    Upgrade = maps:merge(Upgrade0, maps:with([wait_s, roll_back], Options)),
    sderl_ops_world:run(#{
        seed => 1,
        desired => Desired#{upgrade := Upgrade#{alarms => #{url => ~"http://there",
                                                            token => {env, ~"T"}}}},
        alarms => Alarms,
        script => Script,
        limit_ms => 200_000
    }).

%% These are slow with the release two.
slow(Ids) ->
    fun(#world{hosts = Hosts}) ->
        maps:from_list([raised(Id) || _ := #host{state = up, instances = There} <- Hosts,
                                      Id := #{release := ~"two", state := running} <- There,
                                      lists:member(Id, Ids)])
    end.

raised(Id) ->
    {{<<"slow|", Id/binary>>, 1}, #{instances => [Id], elsewhere => false, groups => [],
                     counts => true}}.

to(Family, Release) ->
    {operator, {revision, fun(#{instances := Instances, releases := Releases} = Desired) ->
        Desired#{releases := Releases#{Release => #{}},
                 instances := maps:map(
                     fun(_, #{family := Of} = Instance) when Of =:= Family ->
                             Instance#{release := Release};
                        (_, Instance) -> Instance
                     end, Instances)}
    end}}.

more(Family) ->
    {operator, {revision, fun(#{instances := Instances} = Desired) ->
        First = <<Family/binary, "1">>,
        More = <<Family/binary, "9">>,
        #{First := Instance} = Instances,
        Desired#{instances := Instances#{More => Instance#{id := More, index := 9}}}
    end}}.

%% The instances whose alarms caused a roll-back.
gone_back(Family, #world{notes = Notes}) ->
    [Id || {_, {roll_back, Of, _, _, {alarms, Id, _}}} <- Notes, Of =:= Family].

releases(Family, #world{hosts = Hosts}) ->
    lists:usort([Of || _ := #host{instances = There} <- Hosts,
                       Id := #{release := Of} <- There, string:prefix(Id, Family) =/= nomatch]).
