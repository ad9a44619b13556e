%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_relay_tests).
-moduledoc """
Who gives releases to whom: in worlds in which all is well, few archives leave the service and the
time grows with the logarithm of the hosts; in others everything arrives all the same.
""".

-include_lib("eunit/include/eunit.hrl").
-include("../src/simulated/sderl_ops_world.hrl").

-define(FETCH_MS, 10_000).

%% ---------------------------------------------------------------- all is well

%% A fetch takes 10 s, and a look and a decision a fraction of one.
rounds_test_() ->
    {timeout, 120, fun() ->
        Worlds = [{Hosts, bring_up(Hosts, #{})} || Hosts <- [1, 4, 6, 20, 60, 139]],
        [begin
            ?assertEqual([], sderl_ops_world_check:final(World)),
            ?assertEqual(Hosts, length(World#world.gifts)),
            ?assert(sent(World) =< 8),
            ?assertEqual(min(4, Hosts), length([first || {At, service, _} <- World#world.gifts,
                                                         At < ?FETCH_MS])),
            ?assert(most_at_once(World) =< 2)
        end || {Hosts, World} <- Worlds],
        Rounds = [{Hosts, rounds(World)} || {Hosts, World} <- Worlds],
        %% 4, then those and 4 more and 2 from each: 16; from then on three times as many.
        Most = #{1 => 1, 4 => 1, 6 => 2, 20 => 3, 60 => 4, 139 => 4},
        ?assertEqual([], [Round || {Hosts, Count} = Round <- Rounds, Count > map_get(Hosts, Most)])
    end}.

sent(#world{gifts = Gifts}) -> length([sent || {_, service, _} <- Gifts]).

rounds(#world{gifts = Gifts}) ->
    Last = lists:max([At || {At, _, _} <- Gifts]),
    (Last + ?FETCH_MS) div ?FETCH_MS.

%% To how many one host gives at a time.
most_at_once(#world{gifts = Gifts}) ->
    By = maps:groups_from_list(fun({_, Giver, _}) -> Giver end,
                               [Gift || {_, Giver, _} = Gift <- Gifts, Giver =/= service]),
    lists:max([0 | [length([also || {Also, _, _} <- Of, Also =< At, At < Also + ?FETCH_MS])
                    || _ := Of <- By, {At, _, _} <- Of]]).

%% Near ones first: of two racks each is served from within, once it has a giver.
near_first_test_() ->
    {timeout, 120, fun() ->
        Labels = fun(N) -> #{~"region" => ~"eu", ~"rack" => <<"r", ($0 + N rem 2)>>} end,
        World = bring_up(40, #{labels => Labels}),
        Racks = fun(Host) -> (binary_to_integer(lists:last(binary:split(Host, ~"/")))) rem 2 end,
        Given = [{Giver, Host} || {_, Giver, {fetch, Host, _}} <- World#world.gifts,
                                  Giver =/= service],
        Near = [Pair || {Giver, Host} = Pair <- Given, Racks(Giver) =:= Racks(Host)],
        ?assert(length(Given) >= 32),
        %% By chance it would be half of them.
        ?assert(length(Near) * 100 >= length(Given) * 65)
    end}.

%% Hosts never give across providers, nor without `relay`.
within_a_provider_test_() ->
    {timeout, 120, fun() ->
        World = bring_up(40, #{provider => fun(N) -> lists:nth(1 + N rem 2, [~"a", ~"b"]) end}),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        Provider = fun(Host) -> hd(binary:split(Host, ~"/")) end,
        [?assertEqual(Provider(Giver), Provider(Host))
         || {_, Giver, {fetch, Host, _}} <- World#world.gifts, Giver =/= service],
        ?assert(sent(World) =< 8),
        ?assertEqual(40, sent(bring_up(40, #{relay => false})))
    end}.

%% ---------------------------------------------------------------- what goes wrong

%% Hosts that do not reach each other are noticed soon, and told.
apart_test_() ->
    {timeout, 120, fun() ->
        World = bring_up(30, #{apart => fun(_, _) -> true end}),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        ?assertEqual(30, sent(World)),
        ?assert(length(World#world.gifts) - 30 =< 16),
        #world{service = #service{memory = Memory}, notes = Notes} = World,
        ?assertEqual([{~"lab", refused}], sderl_ops_relay:stars(Memory)),
        ?assertMatch([_], [Note || {_, {star, _, _} = Note} <- Notes]),
        ?assertEqual([], sderl_ops_memory:quarantined(Memory)),
        ?assertEqual([], sderl_ops_relay:stars(sderl_ops_memory:resume(Memory)))
    end}.

%% One host that no other reaches is served by the service; the others go on as a tree.
one_apart_test_() ->
    {timeout, 120, fun() ->
        World = bring_up(30, #{apart => fun(_, To) -> To =:= ~"lab/9" end}),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        ?assert(sent(World) =< 9),
        ?assertEqual([], sderl_ops_relay:stars(World#world.service#service.memory))
    end}.

%% Givers die, or hang, in the middle of what they give.
givers_fail_test_() ->
    [{lists:concat([State, " at ", Ms]), {timeout, 60, fun() ->
        Victims = [<<"lab/", (integer_to_binary(N))/binary>> || N <- lists:seq(1, 6)],
        World = bring_up(30, #{script => [{Ms, {host, Host, State}} || Host <- Victims]
                                   ++ [{Ms + 200_000, {host, Host, up}} || Host <- Victims]}),
        ?assertEqual([], sderl_ops_world_check:final(World)),
        %% All others have theirs long before these are back.
        ?assertEqual([], [Gift || {At, _, {fetch, Host, _}} = Gift <- World#world.gifts,
                                  not lists:member(Host, Victims), At > Ms + 60_000])
    end}} || State <- [down, hung], Ms <- [5_000, 15_000, 27_000]].

%% With random faults every host has its release in the end.
random_faults_test_() ->
    {timeout, 300, fun() ->
        Count = case os:getenv("SDERL_LONG") of false -> 8; _ -> 300 end,
        [begin
            Apart = fun(From, To) -> erlang:phash2({Seed, From, To}, 10) < Seed rem 6 end,
            World = bring_up(24, #{seed => Seed, apart => Apart, faults_ms => 90_000,
                                   script => [{91_000, {operator, {memory,
                                                fun sderl_ops_memory:resume/1}}}]}),
            ?assertEqual({Seed, []}, {Seed, sderl_ops_world_check:final(World)})
        end || Seed <- lists:seq(1, Count)]
    end}.

%% Several failures may have one cause that passes, so hosts give again later.
star_ends_test() ->
    Steps = [{fetch, <<"lab/", (integer_to_binary(N))/binary>>, ~"one"} || N <- lists:seq(1, 5)],
    Sources = #{Step => ~"lab/9" || Step <- Steps},
    Fail = fun(Step, {Memory, Notes, Now}) ->
        {again, After, More} =
            sderl_ops_relay:failed(Step, {relay, link, ~"no"},
                                   sderl_ops_relay:begin_steps([Step], Sources, Memory), Now),
        {After, Notes ++ More, Now}
    end,
    {Star, [{star, ~"lab", ~"no"}], _} =
        lists:foldl(Fail, {sderl_ops_memory:new(), [], 1_000}, lists:sublist(Steps, 4)),
    ?assertEqual([{~"lab", ~"no"}],
                 sderl_ops_relay:stars(sderl_ops_relay:tidy([], 600_999, Star))),
    Over = sderl_ops_relay:tidy([], 601_000, Star),
    ?assertEqual([], sderl_ops_relay:stars(Over)),
    Last = lists:last(Steps),
    {Again, [{star, _, _}], _} = Fail(Last, {Over, [], 601_000}),
    ?assertMatch([_], sderl_ops_relay:stars(sderl_ops_relay:tidy([], 601_001, Again))),
    %% One that succeeds shows that they do reach each other.
    Good = sderl_ops_relay:succeeded(Last, sderl_ops_relay:begin_steps([Last], Sources, Over)),
    ?assertMatch({_, [], _}, lists:foldl(Fail, {Good, [], 601_000}, lists:sublist(Steps, 3))).

%% A memory that a service without relays has stored.
former_memory_test() ->
    Former = maps:remove(relays, sderl_ops_memory:new()),
    Step = {fetch, ~"lab/1", ~"one"},
    #{start := [Step], memory := Begun} =
        sderl_ops_reconcile:steps(desired(1, #{}), seen([~"lab/1"]), Former, [], 1),
    ?assertEqual(service, sderl_ops_relay:source(Step, Begun)),
    ?assertMatch({#{attempts := #{Step := _}}, _},
                 sderl_ops_reconcile:ended(Step, {error, ~"no"}, Begun, 2)),
    ?assertMatch({#{}, _}, sderl_ops_reconcile:ended(Step, {error, ~"no"}, Former, 2)).

seen(Hosts) ->
    (sderl_ops_observed:new())#{hosts := #{Host => #{state => up, releases => [], instances => #{}}
                                           || Host <- Hosts}, groups := #{}}.

%% ---------------------------------------------------------------- worlds

%% One instance for each host.
bring_up(Hosts, Options) ->
    Given = maps:with([apart, script, faults_ms, seed], Options),
    sderl_ops_world:run(maps:merge(#{
        seed => 1,
        desired => desired(Hosts, Options),
        durations => fun({fetch, _, _}, Dice) -> {?FETCH_MS, Dice}; (_, Dice) -> {20, Dice} end,
        check => false
    }, Given)).

desired(Count, Options) ->
    Provider = maps:get(provider, Options, fun(_) -> ~"lab" end),
    Labels = maps:get(labels, Options, fun(_) -> #{} end),
    Relay = maps:get(relay, Options, true),
    Names = [{N, <<(Provider(N))/binary, "/", (integer_to_binary(N))/binary>>}
             || N <- lists:seq(1, Count)],
    #{
        cluster => ~"large", names => short, revision => 1,
        releases => #{~"one" => #{}},
        settings => #{~"s1" => #{start_timeout_s => 20}},
        hosts => #{Name => #{lost_after_s => 3_600, relay => Relay, labels => Labels(N)}
                   || {N, Name} <- Names},
        instances => #{Id => #{
            id => Id, family => ~"n", index => N, release => ~"one", settings => ~"s1",
            labels => #{}, node => undefined, host => undefined, select => spread,
            restart => #{policy => always, most => 50, within_s => 60},
            limits => #{per_host => 1}, candidates => [Name]
        } || {N, Name} <- Names, Id <- [<<"n", (integer_to_binary(N))/binary>>]},
        groups => [],
        upgrade => #{batch => 1, canaries => 1, wait_s => 5, roll_back => true},
        at_once => #{steps => 2 * Count}
    }.
