%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plant_tests).
-include_lib("eunit/include/eunit.hrl").

%% The planted core runs beside the real one: the real core passes the scenario, the planted one
%% fails.
planted_beside_the_real_one_test_() ->
    {timeout, 120, fun() ->
        Core = sderl_plant:core([{sderl_core_peers, "forget(S) -> S."}]),
        ?assertEqual(Core, sderl_plant:core([{sderl_core_peers, "forget(S) -> S."}])),
        Scenario = rule_6_nodes_that_never_come_back_are_forgotten,
        {_, _, Options} = lists:keyfind(Scenario, 1, sderl_sim_rules_tests:scenarios()),
        ?assertEqual(ok, sderl_sim:run(Options#{seed => 1})),
        ?assertMatch({failed, {check, {members, _}}, 1},
                     sderl_sim:run(Options#{seed => 1, core => Core})),
        ?assertEqual(ok, sderl_sim:run(Options#{seed => 1}))
    end}.

%% The new function can call the one that it replaces, as `former_NAME`.
former_test_() -> {timeout, 120, fun former/0}.

former() ->
    Core = sderl_plant:core([{sderl_core, "batch_of(Seq) -> former_batch_of(Seq) + 1."}]),
    Seq = sderl_core:seq(7, 3),
    ?assertEqual({7, 8}, {sderl_core:batch_of(Seq), Core:batch_of(Seq)}),
    [{sderl_core, Beam}] = sderl_plant:beams([{sderl_core, "batch_of(_) -> 0."}]),
    ?assert(is_binary(Beam)).

%% A fault may replace one expression by another. Several faults in one module or function go
%% together.
pieces_test_() -> {timeout, 120, fun pieces/0}.

pieces() ->
    [{sderl_core, Beam}] = sderl_plant:beams([{sderl_core, "S0#s{booting = true}", "S0"}]),
    ?assert(is_binary(Beam)),
    Whole = sderl_plant:module(sderl_core, [{sderl_core_state, "Seq bsr 24", "Seq"}]),
    ?assertEqual(7, Whole:batch_of(7)),
    ?assertEqual(ok, sderl_plant:check([{sderl_core_state, "Seq  bsr\n24", "Seq"}])),
    ?assertMatch([{sderl_core, _}, {sderl_core_admit, _}, {sderl_core_clients, _},
                  {sderl_hello, _}],
                 sderl_plant:beams([rule_1, rule_2, lose_down, rule_16, rule_17])).

%% Only modules that change are copied; otherwise the name is that of the module itself.
copies_test_() -> {timeout, 120, fun copies/0}.

copies() ->
    ?assertEqual(sderl_core, sderl_plant:core([])),
    ?assertEqual(sderl_core, sderl_plant:core([rule_24])),
    ?assertEqual(sderl_hello, sderl_plant:module(sderl_hello, [rule_7])),
    Hello = sderl_plant:module(sderl_hello, [rule_1, rule_2]),
    ?assertNotEqual(sderl_hello, Hello),
    Uid = fun(Members) -> Hello:launched(#{name => g, members => Members}, <<>>) end,
    ?assertNotEqual(Uid([a]), Uid([b])).

what_is_not_there_is_an_error_test_() -> {timeout, 120, fun what_is_not_there/0}.

what_is_not_there() ->
    ?assertError({no_such_function, {sderl_core, batch_of, 2}, _},
                 sderl_plant:core([{sderl_core, "batch_of(_, _) -> 0."}])),
    ?assertError({not_once, {sderl_core, "batch_of(Sequence)", {found, 0}}, _},
                 sderl_plant:check([{sderl_core, "batch_of(Sequence)", "0"}])),
    ?assertError({unknown_faults, [rule_99], _}, sderl_plant:core([rule_99])),
    ?assertError({planted_fault_does_not_compile, _},
                 sderl_plant:core([{sderl_core, "batch_of(_) -> X."}])).
