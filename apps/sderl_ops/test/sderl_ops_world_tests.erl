%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_tests).
-moduledoc """
The reconciler in random worlds (`m:sderl_ops_world`), and that faults planted in it are found.

The short run is the same every time. `SDERL_LONG=1` makes it long, and new every time;
`SDERL_OPS_SEED` sets the first seed.
""".

-include_lib("eunit/include/eunit.hrl").
-include("../src/simulated/sderl_ops_world.hrl").

-export([random_problems/2, desired/1]).

random_test_() ->
    {"random worlds", {timeout, 3600, fun() ->
        {Count, First} = seeds(30),
        ?assertEqual([], failed(First, Count, #{}))
    end}}.

%% ---------------------------------------------------------------- one operation each

killed_at_every_step_test_() ->
    {timeout, 300, fun() ->
        [?assertEqual({Name, []}, {Name, killed_problems(Script, #{})})
         || {Name, Script} <- operations()]
    end}.

operations() ->
    [{bring_up, []},
     {upgrade, [{30_000, {operator, {revision, fun to_two/1}}}]},
     {roll_back, [{30_000, {operator, {revision, fun to_sick/1}}}]},
     {upgrade_but_drained, [{20_000, set_aside(~"web2")},
                            {30_000, {operator, {revision, fun to_two/1}}}]},
     {scale_down, [{30_000, {operator, {revision, fun without_web3/1}}}]},
     {made_hosts, made_hosts()}].

%% Hosts made by a program replace others, then there are fewer, then others.
made_hosts() ->
    [{Ms, {operator, {revision, fun(Desired) -> on_made(Count, Desired) end}}}
     || {Ms, Count} <- [{1, 2}, {60_000, 1}, {90_000, 3}]].

on_made(Count, #{instances := Instances} = Desired) ->
    Desired#{instances := #{Id => on_made_one(Count, Instance) || Id := Instance <- Instances}}.

on_made_one(Count, Instance) ->
    Instance#{candidates := [],
              pools => #{~"eu" => #{domain => ~"eu", provider => ~"cloud", hosts => Count,
                                    lost_after_s => 40, labels => #{}}}}.

%% Wherever the service is killed, all ends in the same way.
killed_problems(Script, Options) -> killed_problems_in(maps:merge(operation(Script), Options)).

killed_problems_in(Operation) ->
    Run = fun(Kill) -> sderl_ops_world:run(Operation#{kill_at => Kill}) end,
    #world{steps = Steps} = Whole = Run(never),
    sderl_ops_world_check:final(Whole)
        ++ [{Kill, Problems} || At <- lists:seq(1, Steps), When <- [before, 'after'],
                                Kill <- [{At, When}],
                                [_ | _] = Problems <- [killed_problems_of(Run(Kill), Whole)]].

killed_problems_of(World, Whole) ->
    sderl_ops_world_check:final(World)
        ++ [{ends_otherwise, ending(World)} || ending(World) =/= ending(Whole)]
        ++ [{rolled_back, Count} || Count <- [roll_backs(World)], Count =/= roll_backs(Whole)].

ending(#world{hosts = Hosts, groups = Groups}) ->
    {#{Name => {Host#host.releases, Host#host.instances} || Name := Host <- Hosts}, Groups}.

roll_backs(#world{notes = Notes}) ->
    length([roll_back || {_, Note} <- Notes, element(1, Note) =:= roll_back]).

operation(Script) ->
    Desired = desired(#{web => 3, db => 2}),
    Ids = lists:sort(maps:keys(maps:get(instances, Desired))),
    #{
        seed => 1,
        desired => Desired#{groups := [#{name => ~"all", members => Ids,
                                         consistency => available}]},
        bad => #{~"sick" => sick, ~"exits" => exits},
        script => Script
    }.

%% An alarm of the new release takes the family back, wherever the service is killed; one that was
%% raised before, or concerns others, is in nobody's way.
alarms_test_() ->
    {timeout, 300, fun() ->
        None = watched(raised_by(~"none")),
        Two = watched(raised_by(~"two")),
        ?assertEqual({[], []}, {killed_problems_in(None), killed_problems_in(Two)}),
        ?assertEqual(lists:duplicate(3, {~"two", running}), layouts(sderl_ops_world:run(None))),
        Back = sderl_ops_world:run(Two),
        ?assertEqual(lists:duplicate(3, {~"one", running}), layouts(Back)),
        [{alarms, Id, Raised}] = [Why || {_, {roll_back, _, _, _, Why}} <- Back#world.notes],
        ?assertEqual([<<"slow|", Id/binary>>], Raised),
        ?assertEqual(2, length([stop || {_, {stop, _}} <- Back#world.log]))
    end}.

%% While the alarms are unknown, nothing is replaced, and replaced instances are not judged.
alarms_unknown_test_() ->
    {timeout, 60, fun() ->
        Run = fun(From, To) ->
            sderl_ops_world:run((watched(known(From, To)))#{limit_ms => 200_000})
        end,
        #world{problems = [{not_done_by, _} | _], log = Log} = Run(0, 30_000),
        ?assertEqual([], [Id || {_, {stop, Id}} <- Log]),
        Late = Run(60_000, 66_000),
        ?assertMatch([{not_done_by, _} | _], Late#world.problems),
        ?assertEqual([~"web1"], [Id || {_, {stop, Id}} <- Late#world.log]),
        ?assertEqual([], [Note || {_, {roll_back, _, _, _, _} = Note} <- Late#world.notes])
    end}.

known(From, To) ->
    fun(#world{now = Now} = World) ->
        case Now >= From andalso Now < To of
            true -> (raised_by(~"none"))(World);
            false -> unknown
        end
    end.

watched(Alarms) ->
    #{desired := #{upgrade := Upgrade} = Desired} = Operation =
        operation([{30_000, {operator, {revision, fun to_two/1}}}]),
    Source = #{url => ~"http://there", token => {env, ~"T"}},
    Operation#{alarms => Alarms,
               desired := Desired#{upgrade := Upgrade#{alarms => Source}}}.

%% Whatever runs with a release is slow; and all the time others are, and one of the family is.
raised_by(Release) ->
    fun(#world{hosts = Hosts}) ->
        Slow = [Id || _ := #host{state = up, instances = Instances} <- Hosts,
                      Id := #{release := Of, state := running} <- Instances, Of =:= Release],
        maps:from_list([raised(<<"slow|", Id/binary>>, Id) || Id <- Slow]
                       ++ [raised(~"full|web2", ~"web2")])
    end.

raised(Alarm, Id) -> {{Alarm, 1}, #{instances => [Id], elsewhere => false, groups => [],
                     counts => true}}.

to_two(Desired) -> to_release(~"two", Desired).
to_sick(Desired) -> to_release(~"sick", Desired).

to_release(Release, #{instances := Instances} = Desired) ->
    with_releases(Desired#{instances := maps:map(
        fun(_, #{family := ~"web"} = Instance) -> Instance#{release := Release};
           (_, Instance) -> Instance
        end, Instances)}).

without_web3(#{instances := Instances, groups := Groups} = Desired) ->
    Desired#{instances := maps:remove(~"web3", Instances),
             groups := [Group#{members := Members -- [~"web3"]}
                        || #{members := Members} = Group <- Groups]}.

%% Instances that run as desired and are in their groups are left alone.
adopted_without_a_step_test_() ->
    {timeout, 60, fun() ->
        World = sderl_ops_world:run(adopting(operation([]))),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        ?assertEqual([], World#world.log)
    end}.

%% Wherever the service is killed: adopted nodes are restarted only to be replaced.
adopted_and_killed_test_() ->
    {timeout, 300, fun() ->
        [?assertEqual({Name, []}, {Name, killed_problems(Script, adopted())})
         || {Name, Script} <- operations(), Name =/= bring_up, Name =/= made_hosts]
    end}.

%% Only what died is laid out; the others go on.
adopted_and_dead_test_() ->
    {timeout, 60, fun() ->
        World = sderl_ops_world:run(adopting(operation(
            [{30_000, {exits, map_get(~"web1", map_get(adopted, adopted())), ~"web1"}}]))),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        ?assertEqual([~"web1"], lists:usort([sderl_ops_step:instance(Step)
                                             || {_, Step} <- World#world.log,
                                                sderl_ops_step:instance(Step) =/= undefined]))
    end}.

%% Nodes that were handed back are left alone by everything, and are replaced like others after they
%% were adopted again.
handed_back_test_() ->
    To = {60_000, {operator, {revision, fun to_two/1}}},
    {timeout, 60, fun() ->
        Released = sderl_ops_world:run(adopting(operation([{30_000, release(~"web2")}, To]))),
        ?assertEqual([], sderl_ops_world_check:final(Released)),
        ?assertEqual([~"web1", ~"web3"],
                     [Id || Id <- touched(Released), <<"web", _/binary>> <- [Id]]),
        Adopted = sderl_ops_world:run(adopting(operation(
            [{30_000, release(~"web2")}, To, {200_000, adopt(~"web2")}]))),
        ?assertEqual([], sderl_ops_world_check:final(Adopted)),
        ?assertEqual([~"web1", ~"web2", ~"web3"],
                     [Id || Id <- touched(Adopted), <<"web", _/binary>> <- [Id]])
    end}.

touched(World) ->
    lists:usort([sderl_ops_step:instance(Step) || {_, Step} <- World#world.log,
                                                  sderl_ops_step:instance(Step) =/= undefined]).

release(Id) -> {operator, {memory, released(fun(Memory) ->
    sderl_ops_released:release(Id, false, Memory)
end)}}.

adopt(Id) -> {operator, {memory, released(fun(Memory) ->
    sderl_ops_released:take_back(Id, Memory)
end)}}.

released(Change) ->
    fun(Memory) ->
        {ok, After} = Change(Memory),
        After
    end.

adopting(Options) -> maps:merge(Options, adopted()).

adopted() ->
    #{adopted => #{~"web1" => ~"far/a", ~"web2" => ~"far/b", ~"web3" => ~"here/h1",
                   ~"db1" => ~"far/c", ~"db2" => ~"far/c"}}.

random_adopted_test_() ->
    {"random worlds with adopted nodes", {timeout, 3600, fun() ->
        {Count, First} = seeds(15),
        ?assertEqual([], failed(First, Count, adopted()))
    end}}.

rolls_back_once_test_() ->
    [{atom_to_list(Kind), {timeout, 60, fun() ->
        ?assertEqual([], roll_back_problems(Kind, #{}))
    end}} || Kind <- [sick, exits]].

roll_back_problems(Kind, Options) ->
    Release = atom_to_binary(Kind),
    Change = fun(Desired) -> to_release(Release, Desired) end,
    World = sderl_ops_world:run(maps:merge(
        operation([{30_000, {operator, {revision, Change}}}]), Options)),
    Layouts = [Of || #host{instances = There} <- maps:values(World#world.hosts),
                     #{release := Of} <- maps:values(There)],
    sderl_ops_world_check:final(World)
        ++ [{rolled_back, Count} || Count <- [roll_backs(World)], Count =/= 1]
        ++ [{layouts, Layouts} || lists:usort(Layouts) =/= [~"one"]]
        %% One canary, and the roll-back.
        ++ [{taken_out, Count}
            || Count <- [length([stop || {_, {stop, _}} <- World#world.log])], Count =/= 2].

given_up_and_reported_test_() ->
    {timeout, 60, fun() -> ?assertEqual([], given_up_problems(#{})) end}.

given_up_problems(Options) ->
    World = sderl_ops_world:run(maps:merge((operation([]))#{
        fails => fun(Step) -> Step =:= {lay_out, ~"web2"} end, limit_ms => 100_000}, Options)),
    #world{log = Log, service = #service{memory = Memory}} = World,
    [{tries, Count} || Count <- [length([again || {_, {lay_out, ~"web2"}} <- Log])], Count =/= 5]
        ++ [not_reported || sderl_ops_memory:quarantined(Memory) =/=
                                [{{lay_out, ~"web2"}, failed}]]
        ++ [{others, Others} || Others <- [maps:keys(sderl_ops_world_check:up(World))],
                                lists:sort(Others) =/= [~"db1", ~"db2", ~"web1", ~"web3"]]
        ++ [{group, Groups} || Groups <- [World#world.groups],
                               Groups =/= #{~"all" => [~"db1", ~"db2", ~"web1", ~"web3"]}].

%% After the cause is mended, the same file is applied again.
given_up_mended_and_applied_again_test_() ->
    {timeout, 60, fun() ->
        [begin
             World = sderl_ops_world:run((operation([
                 {200_000, {operator, {revision, fun(Same) -> put(mended, true), Same end}}}
             ]))#{fails => fun(Of) -> Of =:= Step andalso get(mended) =/= true end}),
             erase(mended),
             ?assertMatch([_ | _], [Note || {_, {quarantined, _, _} = Note} <- World#world.notes]),
             ?assertEqual({Step, []}, {Step, sderl_ops_world_check:final(World)})
         end || Step <- [{fetch, ~"far/b", ~"one"}, {lay_out, ~"web2"}, {start, ~"web2"}, groups]]
    end}.

%% A lost host is replaced, and deleted when the other is there. A silent host is not, as long as
%% the service itself may be cut off.
replaced_test_() ->
    {timeout, 60, fun() ->
        Desired = on_made(3, desired(#{web => 3, db => 1})),
        World = sderl_ops_world:run(#{
            seed => 1, desired => Desired,
            script => [{60_000, {host, ~"cloud/eu-2", down}}]
        }),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        ?assertEqual([~"cloud/eu-1", ~"cloud/eu-3", ~"cloud/eu-4"],
                     lists:sort(maps:keys(World#world.made)))
    end}.

cut_off_test_() ->
    {timeout, 60, fun() ->
        Desired = on_made(2, desired(#{web => 2, db => 1})),
        All = [<<"cloud/eu-", N>> || N <- "123456789"],
        World = sderl_ops_world:run(#{
            seed => 1, desired => Desired, limit_ms => 600_000,
            script => [{Ms, {host, Id, down}} || Ms <- lists:seq(60_000, 300_000, 1_000),
                                                 Id <- All]
        }),
        %% It does not end, as no host is left.
        ?assertMatch([{not_done_by, _} | _], World#world.problems),
        ?assertEqual([~"cloud/eu-1", ~"cloud/eu-2", ~"cloud/eu-3", ~"cloud/eu-4"],
                     lists:sort(maps:keys(World#world.made))),
        ?assertEqual([], [Step || {_, {delete, _} = Step} <- World#world.log])
    end}.

%% A service without its memory adopts existing hosts; and hosts that a program cannot make are
%% reported.
forgotten_test_() ->
    {timeout, 60, fun() ->
        Desired = on_made(3, desired(#{web => 3, db => 1})),
        World = sderl_ops_world:run(#{
            seed => 1, desired => Desired, stores => false, script => [{60_000, kill}]
        }),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        ?assertEqual(3, length([Step || {_, {create, _} = Step} <- World#world.log]))
    end}.

cannot_be_made_test_() ->
    {timeout, 60, fun() ->
        Desired = on_made(2, desired(#{web => 2, db => 1})),
        World = sderl_ops_world:run(#{
            seed => 1, desired => Desired, limit_ms => 200_000, script => [],
            fails => fun(Step) -> Step =:= {create, ~"cloud/eu-2"} end
        }),
        #world{service = #service{memory = Memory}} = World,
        ?assertEqual([{{create, ~"cloud/eu-2"}, failed}], sderl_ops_memory:quarantined(Memory)),
        %% Nothing waits for it.
        ?assertEqual([~"db1", ~"web1", ~"web2"],
                     lists:sort(maps:keys(sderl_ops_world_check:up(World))))
    end}.

%% A host that hangs while much is to be done there leaves room for the others.
hanging_host_test_() ->
    {timeout, 60, fun() -> ?assertEqual([], hanging_problems(#{})) end}.

hanging_problems(Options) ->
    #{instances := Instances} = Desired = desired(#{web => 40, db => 1}),
    %% spread: every fifth is there.
    There = [<<"web", (integer_to_binary(N))/binary>> || N <- lists:seq(2, 37, 5)],
    World = sderl_ops_world:run(maps:merge(#{
        seed => 1,
        desired => Desired#{instances := maps:remove(~"db1", Instances)},
        script => [{60_000, {exits, ~"far/b", Id}} || Id <- There] ++
            [{63_000, {host, ~"far/b", hung}},
             {63_100, {exits, ~"far/c", ~"web3"}}],
        durations => fun({start, _}, Dice) -> {5_000, Dice}; (_, Dice) -> {50, Dice} end,
        limit_ms => 30_000
    }, Options)),
    Starts = [At || {At, {start, ~"web3"}} <- World#world.log, At > 63_100],
    [{not_seen_to_exit, World#world.log}
     || length([again || {At, {start, Id}} <- World#world.log, At > 60_000,
                         lists:member(Id, There)]) < 2]
        ++ [{started, Starts} || not lists:any(fun(At) -> At < 67_000 end, Starts)].

%% An instance that was started elsewhere is removed from its lost host when that is back.
lost_and_back_test_() ->
    {timeout, 60, fun() -> ?assertEqual([], lost_problems(#{})) end}.

lost_problems(Options) ->
    World = sderl_ops_world:run(maps:merge((operation([
        {20_000, {host, ~"far/a", hung}},
        {120_000, {host, ~"far/a", up}}
    ]))#{limit_ms => 100_000}, Options)),
    Starts = [At || {At, {start, ~"web1"}} <- World#world.log],
    sderl_ops_world_check:final(World) ++ [{starts, Starts} || length(Starts) =/= 2].

%% ---------------------------------------------------------------- drained instances

%% A drained instance stays down, holds up nothing, and comes back with what is desired by then.
drained_test_() ->
    Drain = [{30_000, set_aside(~"web2")}],
    Two = {60_000, {operator, {revision, fun to_two/1}}},
    Sick = {60_000, {operator, {revision, fun to_sick/1}}},
    One = {150_000, {operator, {revision, fun to_one/1}}},
    Undrain = {240_000, take_back(~"web2")},
    [{Name, {timeout, 60, fun() ->
        World = sderl_ops_world:run((operation(Script))#{limit_ms => 200_000}),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        ?assertEqual(Layouts, layouts(World))
    end}}
     || {Name, Script, Layouts} <- [
            {"upgrade", Drain ++ [Two], [{~"two", running}, {~"one", laid_out}, {~"two", running}]},
            {"upgrade, then undrained", Drain ++ [Two, Undrain],
             lists:duplicate(3, {~"two", running})},
            {"upgrade, undrained in between", Drain ++ [Two, {63_000, take_back(~"web2")}],
             lists:duplicate(3, {~"two", running})},
            {"there and back", Drain ++ [Two, One],
             [{~"one", running}, {~"one", laid_out}, {~"one", running}]},
            {"the canary is not well", Drain ++ [Sick],
             [{~"one", running}, {~"one", laid_out}, {~"one", running}]},
            {"goes back to where the others were well",
             Drain ++ [Two, {150_000, {operator, {revision, fun to_sick/1}}}],
             [{~"two", running}, {~"one", laid_out}, {~"two", running}]},
            {"the canary is drained", [{30_000, {operator, {revision, fun to_two/1}}},
                                       {32_000, set_aside(~"web1")}],
             [{~"one", laid_out}, {~"two", running}, {~"two", running}]},
            {"at the same time", [{60_000, set_aside(~"web2")}, Two],
             [{~"two", running}, {~"one", laid_out}, {~"two", running}]},
            {"its host is away", Drain ++ [{50_000, {host, ~"far/b", gone}}, Two],
             [{~"two", running}, {~"two", running}]}
        ]].

%% The last member of a group waits, with a hint what to do; then that is done.
last_of_a_group_test_() ->
    {timeout, 60, fun() ->
        #{desired := Desired0} = Operation = operation([]),
        Pair = #{name => ~"pair", members => [~"web1", ~"web2"], consistency => available},
        Desired = Desired0#{groups := [Pair]},
        Script = [{30_000, set_aside(~"web2")}, {60_000, {operator, {revision, fun to_two/1}}}],
        Run = fun(More) ->
            sderl_ops_world:run(Operation#{desired := Desired, script := Script ++ More,
                                           limit_ms => 100_000})
        end,
        #world{service = #service{result = #{waiting := Waiting}}} = Refused = Run([]),
        Why = {last_member, ~"pair", [~"web2"]},
        ?assertEqual([{{instance, ~"web1"}, {upgrade, {refused, Why}}}], Waiting),
        ?assertEqual([{~"one", running}, {~"one", laid_out}, {~"two", running}],
                     layouts(Refused)),
        ?assertEqual("web1 is the only member of the group pair that is not drained, which would "
                     "be gone while it is replaced; undrain web2 first",
                     unicode:characters_to_list(
                         sderl_ops_refusal:words(replace, {~"web1", Why}))),
        Force = fun(#{upgrade := Upgrade} = Of) -> Of#{upgrade := Upgrade#{force => true}} end,
        [begin
             World = Run([More]),
             ?assertEqual([], sderl_ops_world_check:final(World)),
             ?assertMatch([{~"two", running}, {_, Web2}, {~"two", running}]
                              when Web2 =:= State, layouts(World))
         end || {More, State} <- [{{100_000, take_back(~"web2")}, running},
                                  {{100_000, {operator, {revision, Force}}}, laid_out}]]
    end}.

%% Likewise the only node of two groups, also for an operator who wants to drain it.
last_of_an_edge_test_() ->
    {timeout, 60, fun() ->
        Run = fun(Script) -> sderl_ops_world:run(edge(Script)) end,
        Two = [{60_000, {operator, {revision, fun to_two/1}}}],
        #world{service = #service{result = #{waiting := Waiting}}} = Refused = Run(Two),
        ?assertEqual([{{instance, ~"web2"}, {upgrade, {refused, {only_gateway, ~"a", ~"b"}}}}],
                     Waiting),
        ?assertEqual([{~"two", running}, {~"one", running}, {~"two", running}], layouts(Refused)),
        Force = fun(#{upgrade := Upgrade} = Of) -> Of#{upgrade := Upgrade#{force => true}} end,
        Forced = Run(Two ++ [{100_000, {operator, {revision, Force}}}]),
        ?assertEqual([], sderl_ops_world_check:final(Forced)),
        ?assertEqual(lists:duplicate(3, {~"two", running}), layouts(Forced)),
        [begin
             Drained = Run([{60_000, Drain}]),
             ?assertEqual([], sderl_ops_world_check:final(Drained)),
             ?assertMatch([_, {~"one", Web2}, _] when Web2 =:= State, layouts(Drained))
         end || {Drain, State} <- [{{operator, {drain, ~"web2"}}, running},
                                   {set_aside(~"web2"), laid_out}]]
    end}.

%% web2 is the only node of two groups.
edge(Script) ->
    #{desired := Desired} = Operation = operation(Script),
    Groups = [#{name => Name, members => Members, consistency => available}
              || {Name, Members} <- [{~"a", [~"web1", ~"web2"]}, {~"b", [~"web2", ~"web3"]}]],
    Operation#{desired := Desired#{groups := Groups}, limit_ms => 100_000}.

edge_problems(Event, Options) ->
    sderl_ops_world_check:final(sderl_ops_world:run(maps:merge(edge([{60_000, Event}]), Options))).

%% Of a group of two, one may be drained and the other not; nor is one while the other is not there.
drained_one_after_the_other_test_() ->
    {timeout, 60, fun() ->
        #{desired := Desired0} = Operation = operation([]),
        Pair = #{name => ~"pair", members => [~"web1", ~"web2"], consistency => available},
        Run = fun(Script) ->
            World = sderl_ops_world:run(Operation#{desired := Desired0#{groups := [Pair]},
                                                   script := Script, limit_ms => 200_000}),
            ?assertEqual([], sderl_ops_world_check:final(World)),
            [State || {_, State} <- layouts(World)]
        end,
        Drain = fun(Ms, Id) -> {Ms, {operator, {drain, Id}}} end,
        Both = [Drain(60_000, ~"web2"), Drain(60_000, ~"web1")],
        ?assertEqual([running, laid_out, running], Run(Both)),
        ?assertEqual([running, laid_out, running], Run(Both ++ [Drain(90_000, ~"web1")])),
        ?assertEqual([laid_out, running, running],
                     Run(Both ++ [{90_000, take_back(~"web2")}, Drain(91_000, ~"web1"),
                                  Drain(120_000, ~"web1")])),
        ?assertEqual([running, running, running],
                     Run([{60_000, {host, ~"far/b", down}}, Drain(75_000, ~"web1"),
                          {80_000, {host, ~"far/b", up}}]))
    end}.

set_aside(Id) ->
    {operator, {memory, fun(Memory) -> sderl_ops_memory:set_aside(Id, Memory) end}}.

take_back(Id) ->
    {operator, {memory, fun(Memory) -> sderl_ops_memory:take_back(Id, Memory) end}}.

to_one(Desired) -> to_release(~"one", Desired).

%% A revision that comes while an instance is being laid out or drained: the release of the one is
%% in use, and the other is out of its groups, although the last look says otherwise.
in_the_middle_of_a_step_test_() ->
    Slow = fun({lay_out, _}, Dice) -> {4_000, Dice};
              ({drain, _}, Dice) -> {3_000, Dice};
              (_, Dice) -> {50, Dice}
           end,
    Fresh = #{seed => 1, desired => desired(#{web => 1, db => 0})},
    #{desired := #{upgrade := Upgrade} = Desired} = Operation = operation([]),
    AtOnce = Operation#{desired := Desired#{upgrade := Upgrade#{canaries := 0}}},
    Two = {30_000, {operator, {revision, fun to_two/1}}},
    [{Name, {timeout, 60, fun() ->
        [?assertEqual({Ms, []}, {Ms, sderl_ops_world_check:final(sderl_ops_world:run(
            World#{script => Script ++ [{Ms, {operator, {revision, Change}}}], durations => Slow}
        ))}) || Ms <- lists:seq(From, To, 200)]
    end}}
     || {Name, World, Script, Change, From, To} <- [
            {"laid out", Fresh, [], fun to_two/1, 1_000, 10_000},
            {"drained", AtOnce, [Two], fun to_one/1, 31_000, 50_000}
        ]].

%% What lies of the family, and in what state.
layouts(#world{hosts = Hosts}) ->
    There = maps:from_list([{Id, {Release, State}}
                            || _ := #host{state = up, instances = Instances} <- Hosts,
                               Id := #{release := Release, state := State} <- Instances]),
    [Of || <<"web", _/binary>> := Of <- maps:iterator(There, ordered)].

%% ---------------------------------------------------------------- planted faults

planted_test_() ->
    [{atom_to_list(Name), {timeout, 300, fun() -> ?assert(Finds(Options)) end}}
     || {Name, Options, Finds} <- planted()].

planted() ->
    Random = fun(Options) ->
        lists:any(fun(Seed) -> random_problems(Seed, Options) =/= [] end, lists:seq(1, 60))
    end,
    Killed = fun(Options) ->
        {_, Script} = lists:keyfind(roll_back, 1, operations()),
        Operation = (operation(Script))#{limit_ms => 100_000},
        Whole = sderl_ops_world:run(Operation),
        lists:any(fun(At) ->
            World = sderl_ops_world:run(maps:merge(Operation#{kill_at => {At, before}}, Options)),
            killed_problems_of(World, Whole) =/= []
        end, lists:seq(15, Whole#world.steps))
    end,
    Edge = fun(Event) ->
        fun(Options) ->
            Found = [element(1, Problem) || {_, Problem} <- edge_problems(Event, Options)],
            [edge_loses_its_last] =:= lists:usort(Found)
        end
    end,
    Back = fun(Options) -> roll_back_problems(sick, Options) =/= [] end,
    [
        {upgrades_forgotten, planted_memory(#{upgrades => #{}}), Random},
        {running_steps_forgotten, #{steps => fun running_forgotten/5}, Random},
        {refusals_ignored, #{steps => fun refusals_ignored/5},
         Edge({operator, {revision, fun to_two/1}})},
        {every_drain_allowed, #{refusals => fun(_, _, _, _) -> [] end},
         Edge({operator, {drain, ~"web2"}})},
        {groups_ignored, #{steps => fun groups_ignored/5}, Random},
        {others_of_the_same_name_unseen, #{steps => fun strays_unseen/5},
         fun(Options) -> lost_problems(Options) =/= [] end},
        {health_ignored, #{steps => fun health_ignored/5}, Back},
        {roll_back_forgotten, planted_memory(#{failed => #{}}), Back},
        {memory_not_stored, #{stores => false}, Killed},
        {failures_not_counted, #{ended => fun failures_ignored/4},
         fun(Options) -> given_up_problems(Options) =/= [] end},
        {all_for_one_host, #{steps => fun all_for_one_host/5},
         fun(Options) -> hanging_problems(Options) =/= [] end}
    ].

planted_memory(Changes) ->
    #{steps => fun(Desired, Observed, Memory, Running, Now) ->
        sderl_ops_reconcile:steps(Desired, Observed, maps:merge(Memory, Changes), Running, Now)
    end}.

running_forgotten(Desired, Observed, Memory, _, Now) ->
    sderl_ops_reconcile:steps(Desired, Observed, Memory, [], Now).

groups_ignored(Desired, Observed, Memory, Running, Now) ->
    sderl_ops_reconcile:steps(Desired#{groups := []}, Observed, Memory, Running, Now).

refusals_ignored(#{upgrade := Upgrade} = Desired, Observed, Memory, Running, Now) ->
    sderl_ops_reconcile:steps(Desired#{upgrade := Upgrade#{force => true}}, Observed, Memory,
                              Running, Now).

strays_unseen(Desired, #{hosts := Hosts} = Observed, #{assigned := Assigned} = Memory, Running,
              Now) ->
    Seen = #{Name => Host#{instances := maps:filter(fun(Id, _) ->
                 maps:get(Id, Assigned, Name) =:= Name
             end, There)} || Name := #{instances := There} = Host <- Hosts},
    sderl_ops_reconcile:steps(Desired, Observed#{hosts := Seen}, Memory, Running, Now).

health_ignored(Desired, #{nodes := Nodes} = Observed, Memory, Running, Now) ->
    Well = #{Id => Node#{health := ok} || Id := Node <- Nodes},
    sderl_ops_reconcile:steps(Desired, Observed#{nodes := Well}, Memory, Running, Now).

failures_ignored(Step, _, Memory, Now) -> sderl_ops_reconcile:ended(Step, ok, Memory, Now).

all_for_one_host(Desired, Observed, Memory, Running, Now) ->
    AtOnce = #{per_host => 8},
    sderl_ops_reconcile:steps(Desired#{at_once => AtOnce}, Observed, Memory, Running, Now).

%% ---------------------------------------------------------------- seeds

seeds(Short) ->
    {Count, Default} = case os:getenv("SDERL_LONG") of
        false -> {Short, 1};
        _ -> {5_000, rand:uniform(1_000_000_000)}
    end,
    First = case os:getenv("SDERL_OPS_SEED") of
        false -> Default;
        Given -> list_to_integer(Given)
    end,
    io:format(user, "operations: ~b random worlds, SDERL_OPS_SEED=~b~n", [Count, First]),
    {Count, First}.

failed(First, Count, Options) ->
    [{Seed, Problems} || Seed <- lists:seq(First, First + Count - 1),
                         [_ | _] = Problems <- [random_problems(Seed, Options)]].

%% ---------------------------------------------------------------- random worlds

-doc "The problems in the world of a seed.".
random_problems(Seed, Options) ->
    sderl_ops_world_check:final(random_world(Seed, Options)).

random_world(Seed, Options) ->
    Dice0 = rand:seed_s(exsss, Seed),
    {Desired, Dice1} = random_desired(Dice0),
    {Count, Dice2} = rand:uniform_s(4, Dice1),
    {Script, _} = lists:mapfoldl(fun(_, D) -> random_operator(D) end, Dice2, lists:seq(1, Count)),
    End = 120_000,
    sderl_ops_world:run(maps:merge(#{
        seed => Seed,
        desired => Desired,
        bad => #{~"sick" => sick, ~"exits" => exits},
        faults_ms => End,
        script => Script ++ [{End + 1_000, {operator, {revision, fun mended/1}}},
                             {End + 1_001, {operator, {memory, fun at_ease/1}}},
                             {End + 7_000, {operator, {revision, fun mended/1}}},
                             {End + 7_001, {operator, {memory, fun at_ease/1}}}]
    }, Options)).

%% In the end nothing prevents success: the releases are good, and every host has room.
mended(#{instances := Instances, upgrade := Upgrade} = Desired) ->
    Desired#{instances := #{Id => Instance#{release := good(Release)}
                            || Id := #{release := Release} = Instance <- Instances},
             releases := #{~"one" => #{}, ~"two" => #{}},
             upgrade := Upgrade#{force => true}}.

good(~"one") -> ~"one";
good(_) -> ~"two".

at_ease(Memory) -> (sderl_ops_memory:resume(Memory))#{aside := #{}}.

random_desired(Dice0) ->
    {Web, Dice1} = rand:uniform_s(4, Dice0),
    {Db, Dice2} = rand:uniform_s(3, Dice1),
    {Batch, Dice3} = rand:uniform_s(2, Dice2),
    {Canaries, Dice4} = rand:uniform_s(3, Dice3),
    Shape = #{web => Web, db => Db, batch => Batch, canaries => Canaries - 1},
    {Made, Dice} = rand:uniform_s(6, Dice4),
    Desired = desired(Shape),
    random_groups(case Made of
        _ when Made > 3 -> Desired;
        _ -> on_made(Made, Desired)
    end, Dice).

random_groups(#{instances := Instances} = Desired, Dice0) ->
    Ids = lists:sort(maps:keys(Instances)),
    {Count, Dice1} = rand:uniform_s(3, Dice0),
    {Groups, Dice} = lists:mapfoldl(fun(Index, D0) ->
        {Members, D} = lists:mapfoldl(fun(Id, D1) ->
            {Side, D2} = rand:uniform_s(3, D1),
            {{Side, Id}, D2}
        end, D0, Ids),
        {#{name => <<"group", ($0 + Index)>>, members => [Id || {Side, Id} <- Members, Side > 1],
           consistency => available}, D}
    end, Dice1, lists:seq(1, Count - 1)),
    {Desired#{groups := [Group || #{members := [_ | _]} = Group <- Groups]}, Dice}.

-doc "A desired state of two families on five hosts.".
desired(#{web := Web, db := Db} = Options) ->
    Hosts = [~"far/a", ~"far/b", ~"far/c", ~"here/h1", ~"here/h2"],
    Wide = #{candidates => Hosts, limits => #{}, select => spread},
    Narrow = Wide#{candidates := [~"here/h2", ~"far/c"]},
    #{
        cluster => ~"shop",
        names => short,
        revision => 1,
        releases => #{~"one" => #{}},
        settings => #{Hash => #{start_timeout_s => 20} || Hash <- [~"s1", ~"s2", ~"s3"]},
        hosts => #{Host => #{relay => true,
                             lost_after_s => case Host of
                                                 <<"far/", _/binary>> -> 40;
                                                 _ -> never
                                             end} || Host <- Hosts},
        at_once => maps:get(at_once, Options, #{}),
        instances => maps:merge(family(~"web", Web, Wide), family(~"db", Db, Narrow)),
        groups => [],
        upgrade => #{batch => maps:get(batch, Options, 1),
                     canaries => maps:get(canaries, Options, 1),
                     wait_s => 5, roll_back => true}
    }.

family(Name, Count, Rest) ->
    #{Id => Rest#{id => Id, family => Name, index => Index, release => ~"one", settings => ~"s1",
                  labels => #{}, node => undefined, host => undefined,
                  restart => #{policy => always, most => 5, within_s => 60}}
      || Index <- lists:seq(1, Count),
         Id <- [<<Name/binary, (integer_to_binary(Index))/binary>>]}.

random_operator(Dice0) ->
    {Ms, Dice1} = rand:uniform_s(110_000, Dice0),
    {Kind, Dice2} = rand:uniform_s(10, Dice1),
    {Seed, Dice} = rand:uniform_s(1_000_000, Dice2),
    What = case Kind of
        1 -> {memory, fun sderl_ops_memory:pause/1};
        2 -> {memory, fun sderl_ops_memory:resume/1};
        3 -> {drain, lists:nth(1 + Seed rem 3, [~"web1", ~"web2", ~"db1"])};
        4 -> {memory, fun(Memory) -> sderl_ops_memory:take_back(~"web1", Memory) end};
        5 -> {revision, fun(Desired) -> scaled(Desired, Seed) end};
        6 -> {revision, fun(Desired) -> regrouped(Desired, Seed) end};
        7 -> {revision, fun(Desired) -> moved(Desired, Seed) end};
        _ -> {revision, fun(Desired) -> upgraded(Desired, Seed) end}
    end,
    {{Ms, {operator, What}}, Dice}.

scaled(#{instances := Instances} = Desired, Seed) ->
    case [Instance || _ := #{family := ~"web"} = Instance <- Instances] of
        [#{release := Release, settings := Settings} = One | _] ->
            Others = #{Id => I || Id := #{family := ~"db"} = I <- Instances},
            Kept = maps:with([candidates, limits, select, pools], One),
            Webs = family(~"web", 1 + Seed rem 5, Kept),
            All = maps:merge(Others, #{Id => I#{release := Release, settings := Settings}
                                       || Id := I <- Webs}),
            regrouped(Desired#{instances := All}, Seed);
        [] -> Desired
    end.

regrouped(Desired, Seed) ->
    {Regrouped, _} = random_groups(Desired, rand:seed_s(exsss, Seed)),
    Regrouped.

moved(#{instances := Instances} = Desired, Seed) ->
    Candidates = case Seed rem 3 of
        0 -> [~"far/a", ~"far/b", ~"here/h1"];
        1 -> [~"far/c", ~"here/h2"];
        2 -> [~"here/h2", ~"here/h1", ~"far/a"]
    end,
    Desired#{instances := #{Id => moved_one(Candidates, Seed, Instance)
                            || Id := Instance <- Instances}}.

moved_one(_, Seed, #{pools := _} = Instance) when Seed rem 4 > 0 ->
    on_made_one(Seed rem 4, Instance);
moved_one(Candidates, _, Instance) ->
    (maps:remove(pools, Instance))#{candidates := Candidates}.

upgraded(#{instances := Instances} = Desired, Seed) ->
    Release = lists:nth(1 + Seed rem 5, [~"two", ~"one", ~"two", ~"sick", ~"exits"]),
    Settings = lists:nth(1 + Seed rem 3, [~"s1", ~"s2", ~"s3"]),
    Family = lists:nth(1 + Seed rem 2, [~"web", ~"db"]),
    with_releases(Desired#{instances := maps:map(
        fun(_, #{family := Of} = Instance) when Of =:= Family ->
                Instance#{release := Release, settings := Settings};
           (_, Instance) -> Instance
        end, Instances)}).

with_releases(#{instances := Instances} = Desired) ->
    Desired#{releases := #{Release => #{} || _ := #{release := Release} <- Instances}}.
