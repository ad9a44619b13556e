%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plant_tests).
-include_lib("eunit/include/eunit.hrl").

%% Beside the real core, which passes what the planted one does not.
planted_beside_the_real_one_test_() ->
    {timeout, 120, fun() ->
        Core = sderl_plant:core([{sderl_core_peers, "forget(S) -> S."}]),
        ?assertEqual(Core, sderl_plant:core([{sderl_core_peers, "forget(S) -> S."}])),
        Scenario = rule_6_nodes_that_never_come_back_are_forgotten,
        {_, _, Options} = lists:keyfind(Scenario, 1, sderl_sim_rules_tests:scenarios()),
        ?assertEqual(ok, sderl_sim:run(Options#{seed => 1})),
        ?assertMatch({failed, {check, {members, _}}, 1}, sderl_sim:run(Options#{seed => 1, core => Core})),
        ?assertEqual(ok, sderl_sim:run(Options#{seed => 1}))
    end}.

%% The function that is replaced can be called.
former_test_() -> {timeout, 120, fun former/0}.

former() ->
    Core = sderl_plant:core([{sderl_core, "batch_of(Seq) -> former_batch_of(Seq) + 1."}]),
    Seq = sderl_core:seq(7, 3),
    ?assertEqual({7, 8}, {sderl_core:batch_of(Seq), Core:batch_of(Seq)}),
    [{sderl_core, Beam}] = sderl_plant:beams([{sderl_core, "batch_of(_) -> 0."}]),
    ?assert(is_binary(Beam)).

what_is_not_there_is_an_error_test_() -> {timeout, 120, fun what_is_not_there/0}.

what_is_not_there() ->
    ?assertError({no_such_function, {sderl_core, batch_of, 2}, _}, sderl_plant:core([{sderl_core, "batch_of(_, _) -> 0."}])),
    ?assertError({planted_fault_does_not_compile, _}, sderl_plant:core([{sderl_core, "batch_of(_) -> X."}])).
