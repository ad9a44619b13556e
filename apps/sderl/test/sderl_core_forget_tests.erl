%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_forget_tests).
-moduledoc "Members that were forgotten say hello, whatever they know of their own past (rule 6).".
-include_lib("eunit/include/eunit.hrl").

-define(SELF, 'n1@t').
-define(BACK, 'n2@t').

%% The member was removed and added again before it was forgotten, and knows of neither.
one_that_knows_less_of_itself_is_a_member_again_test() ->
    Known = #{?SELF => {1, 0}, ?BACK => {3, 7}},
    {Fx, S} = greeted(Known, #{?SELF => {1, 0}, ?BACK => {1, 0}}),
    ?assertEqual(#{?SELF => {1, 0}, ?BACK => {3, 0}}, sderl_core:membership(S)),
    ?assertEqual([], [gone || {send, _, {gone, _, _}} <- Fx]).

%% A day later nothing is known of it.
one_that_was_pruned_is_a_member_again_test() ->
    {Fx, S} = greeted(#{?SELF => {1, 0}}, #{?SELF => {1, 0}, ?BACK => {1, 0}}),
    ?assertEqual([?SELF, ?BACK], sderl_core:members(S)),
    ?assertEqual([], [gone || {send, _, {gone, _, _}} <- Fx]).

one_that_was_removed_is_told_test() ->
    Known = #{?SELF => {1, 0}, ?BACK => {2, 7}},
    {Fx, S} = greeted(Known, #{?SELF => {1, 0}, ?BACK => {1, 0}}),
    ?assertEqual(Known, sderl_core:membership(S)),
    ?assertMatch([_], [gone || {send, _, {gone, removed, _}} <- Fx]).

%% A member does not leave when it hears that others have forgotten it.
one_that_hears_that_it_was_forgotten_stays_test() ->
    {Fx, S} = greeted(#{?SELF => {1, 0}}, #{?SELF => {3, 7}, ?BACK => {1, 0}}),
    ?assertEqual(#{?SELF => {3, 0}, ?BACK => {1, 0}}, sderl_core:membership(S)),
    ?assertEqual([], [left || Effect <- Fx, element(1, Effect) =:= left]).

%% New epochs are above the one in the file, whatever the clock says.
epochs_lie_above_the_kept_one_test() ->
    Kept = 5_000_000,
    {_, S0} = sderl_core:step(
        0, [start], sderl_core:init((args(sderl_membership:new([?SELF, ?BACK])))#{ceil => Kept})
    ),
    ?assertEqual(Kept, sderl_core:highest(S0)),
    Join = {join, {-1100, ?BACK}, 0},
    {_, S1} = sderl_core:step(1, [hello(sderl_membership:new([?SELF, ?BACK])), {msg, ?BACK, Join}],
                              S0),
    {_, S2} = sderl_core:propose(1, sderl_sim_store, store(), S1),
    #{epoch := {Counter, ?SELF}} = sderl_core:info(S2),
    ?assert(Counter > Kept),
    ?assertEqual(Counter, sderl_core:highest(S2)).

%% A coordinator with this membership gets a hello with that one, and orders what follows from it.
greeted(Known, Theirs) ->
    S0 = sderl_core:init((args(Known))#{found => true}),
    {Fx0, S1} = sderl_core:step(0, [start], S0),
    {Fx1, S2} = sderl_core:step(1, [hello(Theirs)], S1),
    {Fx2, S3} = sderl_core:propose(1, sderl_sim_store, store(), S2),
    {Fx0 ++ Fx1 ++ Fx2, S3}.

args(Mem) ->
    #{group => g, uid => <<"u">>, self => ?SELF, addr => self(), inc => 1, now => 0, clock => 1000,
      mem => Mem}.

store() -> sderl_sim_store:index(build, sderl_sim_store:new([?SELF])).

hello(Mem) ->
    Epoch = {-1100, ?BACK},
    Info = #{epoch => Epoch, lineage => Epoch, num => 0, lead => ?BACK, syncing => false},
    {msg, ?BACK, {hello, {addr, ?BACK}, 1, Mem, Info}}.
