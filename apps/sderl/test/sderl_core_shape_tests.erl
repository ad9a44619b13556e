%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_shape_tests).
-moduledoc """
The pure core from outside: what a step costs its callers and the wire (rules 28 and 29).
""".
-include_lib("eunit/include/eunit.hrl").

-define(OPS, 100).

%% A hundred clients that ask at once are one step, one batch and one application. The batch holds
%% what they asked and nothing else: no reference of a client, no version of a row; where all
%% answers are as expected, none of these.
rule_28_one_step_and_one_application_for_all_that_waits_test() ->
    {Clients, Ops, Fx, _} = hundred(),
    ?assertMatch([{apply, _, _, [{seg, _, _, _, Ops, default}], _}],
                 [E || {apply, _, _, _, _} = E <- Fx]),
    ?assertEqual([[{C, yes} || C <- Clients]], [R || {replies, R} <- Fx]).

rule_29_nothing_in_a_batch_but_what_was_asked_test() ->
    {_, Ops, Fx, _} = hundred(),
    [Items] = [I || {apply, _, _, I, _} <- Fx],
    Asked = byte_size(term_to_binary(Ops)),
    %% Of the list: whose it is and its number.
    ?assert(byte_size(term_to_binary(Items)) < Asked + 60).

%% The same for removals; and only the coordinator has an index.
rule_29_removals_test() ->
    {_, _, _, {S0, Store}} = hundred(),
    Ops = [{{name, K}} || K <- lists:seq(1, ?OPS)],
    {Fx1, S1} = sderl_core:step(2, [{op, make_ref(), Op} || Op <- Ops], S0),
    {Fx2, _} = sderl_core:propose(2, sderl_sim_store, Store, S1),
    ?assertMatch([{apply, _, _, [{seg, _, _, _, Ops, default}], _}],
                 [E || {apply, _, _, _, _} = E <- Fx1 ++ Fx2]).

hundred() ->
    Mem = sderl_membership:new([node()]),
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => node(), addr => self(), inc => 1,
                           now => 0, clock => 1000, mem => Mem, found => true}),
    {Fx0, S1} = sderl_core:step(0, [start], S0),
    ?assertEqual([{index, build}], [E || {index, _} = E <- Fx0]),
    Store0 = sderl_sim_store:index(build, sderl_sim_store:new([node()])),
    Clients = [make_ref() || _ <- lists:seq(1, ?OPS)],
    Ops = [[{name, K} | spawn(fun() -> ok end)] || K <- lists:seq(1, ?OPS)],
    {Fx1, S2} = sderl_core:step(1, [{op, C, Op} || {C, Op} <- lists:zip(Clients, Ops)], S1),
    {Fx2, S3} = sderl_core:propose(1, sderl_sim_store, Store0, S2),
    Fx = Fx1 ++ Fx2,
    [{Epoch, Num, Items, Index}] = [{E, N, I, X} || {apply, E, N, I, X} <- Fx],
    {Store, _} = sderl_sim_store:apply(Store0, Epoch, Num, Items, Index),
    {Clients, Ops, Fx, {S3, Store}}.
