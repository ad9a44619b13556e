%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_status_tests).
-moduledoc "The state of a cluster in one word.".

-include_lib("eunit/include/eunit.hrl").

state_test_() ->
    Bad = #{~"web1" => #{state => up, health => {problems, ["no link to web2"]}}},
    Good = #{~"web1" => #{state => up, health => ok}},
    [
        {Name, ?_assertEqual(State, sderl_ops_status:state(maps:merge(view(Nodes), Changes)))}
     || {Name, State, Nodes, Changes} <- [
            {"all is well", steady, Good, #{}},
            {"nothing was ever asked for", none, #{}, #{store => none}},
            {"something is to be done", working, Good, #{done => false}},
            {"all of it was given up", failed, Bad,
             #{done => false, waiting => [{groups, {quarantined, ~"no"}}]}},
            {"what is left is refused", failed, Good,
             #{done => false, waiting => [refused()],
               memory => (sderl_ops_memory:new())#{upgrades := #{~"web" => upgrade(#{})}}}},
            {"the rest of an upgrade that goes on", working, Good,
             #{done => false, waiting => [refused()],
               memory => (sderl_ops_memory:new())#{
                   upgrades := #{~"web" => upgrade(#{~"web2" => 1000})}
               }}},
            {"an alarm may be over before its time is", working, Good,
             #{done => false, waiting => [alarmed(), after_others()],
               memory => (sderl_ops_memory:new())#{
                   upgrades := #{~"web" => upgrade(#{~"web1" => 1000})}
               }}},
            {"no way back from an alarm", failed, Good,
             #{done => false, waiting => [alarmed(), after_others(),
                                          {{instance, ~"web2"}, {upgrade, {stuck, why()}}}],
               memory => stuck()}},
            {"nodes that were just started", working, Bad, #{quiet_ms => 2000}},
            {"a node that stays so", failed, Bad, #{quiet_ms => 60_000}},
            {"so it was found", failed, Bad, #{}},
            {"its cookie cannot be read", failed, Good, #{trouble => "no cookie"}},
            {"nothing is left", destroyed, #{},
             #{desired => #{revision => 1, instances => #{}}}}
        ]
    ].

refused() -> {{instance, ~"web1"}, {upgrade, {refused, {only_gateway, ~"a", ~"b"}}}}.

alarmed() -> {{instance, ~"web1"}, {upgrade, {alarms, [~"slow|web1"]}}}.

after_others() -> {{instance, ~"db1"}, {upgrade, batch}}.

why() -> {alarms, ~"web1", [~"slow|web1"]}.

stuck() ->
    Stuck = (upgrade(#{~"web1" => 1000}))#{stuck => why()},
    (sderl_ops_memory:new())#{upgrades := #{~"db" => upgrade(#{}), ~"web" => Stuck}}.

what_holds_up_is_told_test() ->
    View = (view(#{}))#{done := false, waiting := [alarmed(), after_others()]},
    Alarm = <<"web1: an alarm was raised since it was replaced: slow|web1; acknowledge what does "
              "not matter">>,
    ?assertEqual([Alarm], sderl_ops_status:problems(View)),
    ?assertEqual([<<"web cannot be replaced, revision 1: since the upgrade began an alarm was "
                    "raised that concerns web1: slow|web1">>, Alarm],
                 sderl_ops_status:problems(View#{memory := stuck()})).

upgrade(Taken) -> #{revision => 1, back => false, taken => Taken, proven => #{}}.

what_is_refused_beside_drained_ones_is_told_test() ->
    Refused = {{instance, ~"web1"},
               {upgrade, {refused, {last_gateway, ~"a", ~"b", [~"web2", ~"web3"]}}}},
    [Problem] = sderl_ops_status:problems((view(#{}))#{waiting := [Refused]}),
    ?assertEqual("web1 is the only node that is in both a and b and is not drained, which would be "
                 "apart while it is replaced; undrain web2 or web3 first: `apply --force` does it "
                 "all the same", binary_to_list(Problem)).

what_is_refused_is_told_test() ->
    [Problem] = sderl_ops_status:problems((view(#{}))#{waiting := [refused()]}),
    ?assertEqual("web1 is the only node that is in both a and b, which would be apart while it is "
                 "replaced: `apply --force` does it all the same", binary_to_list(Problem)).

view(Nodes) ->
    #{
        store => {~"shop", 1},
        desired => #{revision => 1, instances => #{~"web1" => #{}}},
        memory => sderl_ops_memory:new(),
        observed => (sderl_ops_observed:new())#{nodes := Nodes},
        hosts => #{},
        running => [],
        waiting => [],
        done => true,
        trouble => none,
        quiet_ms => infinity
    }.

a_revision_that_is_refused_test() ->
    View = (view(#{}))#{desired := undefined, trouble := "revision 1 cannot be kept"},
    ?assertMatch(#{state := failed, problems := [~"revision 1 cannot be kept"], instances := [],
                   groups := []}, sderl_ops_status:status(View)).

%% Work that was given up has no progress, whatever was counted before.
progress_test() ->
    Desired = sderl_ops_cases:desired(2, ~"sum", []),
    Of = fun(Changes) ->
        View = maps:merge(view(#{}), Changes#{desired => Desired,
                                              doing => [{start, ~"web1"}],
                                              progress => #{done => 3, total => 12}}),
        maps:with([state, progress, doing], sderl_ops_status:status(View))
    end,
    ?assertEqual(#{state => working, progress => #{done => 3, total => 12},
                   doing => [~"start web1"]}, Of(#{done => false})),
    ?assertMatch(#{progress := undefined},
                 Of(#{done => false, waiting => [{{start, ~"web1"}, {quarantined, ~"no"}}]})).

%% An instance that was handed back is shown with its node and host.
handed_back_test() ->
    Desired = sderl_ops_cases:desired(2, ~"sum", [~"web1", ~"web2"]),
    Of = #{node => ~"web2@h.x", host => ~"here/h1", as => ~"as"},
    Memory = (sderl_ops_memory:new())#{released => #{~"web2" => Of}},
    #{instances := Instances, groups := Groups} =
        sderl_ops_status:status((view(#{}))#{desired := Desired, memory := Memory}),
    ?assertMatch([_, #{id := ~"web2", state := released, node := ~"web2@h.x",
                       host := ~"here/h1"}], Instances),
    ?assertMatch([#{name := ~"some", members := 1}], Groups).

%% A group in which only drained members are missing is shown as drained.
group_of_drained_test() ->
    Desired = #{groups := [#{members := Members} = Group]} =
        sderl_ops_cases:desired(2, ~"sum", [~"web1", ~"web2"]),
    State = fun(Running, Aside) ->
        Seen = (sderl_ops_observed:new())#{groups := #{~"some" => Running}},
        Memory = lists:foldl(fun sderl_ops_memory:set_aside/2, sderl_ops_memory:new(), Aside),
        #{groups := [#{state := Its}]} = sderl_ops_status:status(
            (view(#{}))#{desired := Desired#{groups := [Group]}, memory := Memory,
                         observed := Seen}),
        Its
    end,
    ?assertEqual(whole, State(Members, [])),
    ?assertEqual(drained, State([~"web1"], [~"web2"])),
    ?assertEqual(incomplete, State([~"web1"], [])),
    ?assertEqual(incomplete, State([], [~"web2"])).

%% Every revision is shown with its result.
history_test() ->
    Revision = fun(Number) ->
        {Number, #{at => 0, by => ~"ann", why => ~"apply /f", prepared => #{}, force => false}}
    end,
    Outcomes = #{2 => {replaced, 3}, 3 => {failed, [~"one", ~"two"]}, 4 => done},
    Memory = (sderl_ops_memory:new())#{
        good := #{~"db" => 1},
        failed := #{~"web" => #{revision => 5, to => 4, why => {no_good_health, ~"web1"}}}
    },
    Results = fun(Last, Of) ->
        [{Number, Result, Why}
         || #{revision := Number, result := Result, why := Why, who := ~"ann"}
                <- sderl_ops_status:history([Revision(N) || N <- lists:seq(0, Last)], Outcomes, Of)]
    end,
    Earlier = [{5, ~"rolled back: web", ~"web1 was not well in time"}, {4, ~"good", undefined},
               {3, ~"failed", ~"one; two"},
               {2, ~"replaced", ~"by revision 3 before it was done"},
               {1, ~"good", undefined}, {0, ~"not recorded", undefined}],
    ?assertEqual(Earlier, Results(5, Memory)),
    ?assertEqual([{6, ~"running", undefined} | Earlier], Results(6, Memory)),
    ?assertEqual([{6, ~"paused", undefined} | Earlier], Results(6, Memory#{paused := true})),
    ?assertEqual([], sderl_ops_status:history([], #{}, Memory)).

reasons_of_steps_test() ->
    Words = fun(Why) ->
        unicode:characters_to_list(sderl_ops_note:words({failed, {start, ~"web1"}, Why}))
    end,
    ?assertEqual("could not start web1: no port free", Words(~"no port free")),
    ?assertEqual("could not start web1: {exited,5}", Words({exited, 5})),
    ?assertEqual("could not start web1: it ended by itself 5 times in 300 s",
                 Words({exited, 5, times_within_s, 300})).

roll_back_in_words_test_() ->
    Start = {start, ~"web1"},
    [
        ?_assertEqual("web goes back from revision 2 to 1: " ++ Words,
                      unicode:characters_to_list(
                          sderl_ops_note:words({roll_back, ~"web", 2, 1, Why})))
     || {Words, Why} <- [
            {"web1 was not well in time", {no_good_health, ~"web1"}},
            {"could not start web1: no port free", {Start, ~"no port free"}},
            {"could not make the groups as the file says: no", {groups, ~"no"}}
        ]
    ].

problems_test() ->
    Nodes = #{~"web1" => #{state => up, health => {problems, ["one", "two"]}}},
    ?assertEqual([~"web1: one", ~"web1: two"], sderl_ops_status:problems(view(Nodes))).
