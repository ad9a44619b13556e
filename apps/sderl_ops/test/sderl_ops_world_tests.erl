%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_tests).
-moduledoc """
The reconciler in random worlds (`m:sderl_ops_world`), and that faults planted in it are found.

The short run is the same every time. `SDERL_LONG=1` makes it long, and new every time;
`SDERL_OPS_SEED` sets the first seed.
""".

-include_lib("eunit/include/eunit.hrl").
-include("sderl_ops_world.hrl").

-export([random_problems/2, desired/1]).

random_test_() ->
    {"random worlds", {timeout, 3600, fun() ->
        {Count, First} = seeds(60),
        ?assertEqual([], failed(First, Count, #{}))
    end}}.

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

-doc "What is wrong in the world of a seed.".
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

%% In the end all is possible: the releases are good, and every host has room.
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
    random_groups(desired(Shape), Dice4).

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
        hosts => #{Host => #{lost_after_s => case Host of
                                                 <<"far/", _/binary>> -> 40;
                                                 _ -> never
                                             end} || Host <- Hosts},
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
        3 -> {memory, fun(Memory) -> sderl_ops_memory:set_aside(~"web1", Memory) end};
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
            Webs = family(~"web", 1 + Seed rem 5, maps:with([candidates, limits, select], One)),
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
    Desired#{instances := #{Id => Instance#{candidates := Candidates}
                            || Id := Instance <- Instances}}.

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
