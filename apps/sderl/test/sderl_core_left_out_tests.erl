%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_left_out_tests).
-moduledoc """
What a member answers its clients when it hears from others that it was removed, while its own
component has no coordinator. Found by the simulator: the coordinator had died while a batch was at
some members and not at this one; they went on with the batch, and the client was told `no`.
""".
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['n1@t', 'n2@t', 'n3@t']).
-define(EPOCH, {10_000, 'n1@t'}).

%% Operations that went to the coordinator may be applied: for names and other members the outcome
%% is unknown. That this node is no member is certain with the removal. Operations that were not
%% sent are not applied.
a_list_that_was_out_has_no_known_outcome_test() ->
    [R, N, D, A, In, Out, Both, Late] = [make_ref() || _ <- lists:seq(1, 8)],
    S0 = follower(),
    {Fx1, S1} = sderl_core:step(20, [{op, R, [x | self()]},
                                     {op, N, {y}},
                                     {op, none, {d, z, self()}},
                                     {op, D, {remove, ['n3@t'], 1}},
                                     {op, A, {rr, w, self(), #{}}},
                                     {op, In, {add, ['n4@t']}},
                                     {op, Out, {remove, ['n2@t'], 1}},
                                     {op, Both, {remove, ['n2@t', 'n3@t'], 1}}], S0),
    ?assertMatch([{req, ?EPOCH, {'n3@t', _, 1, [_, _, _, _, _, _, _, _]}}],
                 [M || {send, addr1, M} <- Fx1]),
    {_, S2} = sderl_core:step(30, [{nodedown, 'n1@t'}], S1),
    ?assertEqual(orphan, sderl_core:role(S2)),
    {_, S3} = sderl_core:step(40, [{op, Late, [v | self()]}], S2),
    {Fx, _} = sderl_core:step(50, [{msg, 'n2@t',
                                    {gone, removed,
                                     sderl_membership:remove(['n3@t'], 1, membership())}}], S3),
    ?assertMatch([{left, removed, _}], [E || {left, _, _} = E <- Fx]),
    ?assertEqual(lists:sort([{Open, unknown} || Open <- [R, N, A, In, Out, Both]] ++
                            [{D, {no, not_member}}, {Late, {no, not_member}}]), replies(Fx)).

%% The same if the group was deleted in another component: until others hear of it they have the
%% batch.
a_list_that_was_out_as_the_group_was_deleted_has_no_known_outcome_test() ->
    [R, Late] = [make_ref(), make_ref()],
    {_, S1} = sderl_core:step(20, [{op, R, [x | self()]}], follower()),
    {_, S2} = sderl_core:step(30, [{nodedown, 'n1@t'}, {op, Late, [v | self()]}], S1),
    {Fx, _} = sderl_core:step(50, [{msg, 'n2@t', {gone, deleted, membership()}}], S2),
    ?assertMatch([{left, deleted, _}], [E || {left, _, _} = E <- Fx]),
    ?assertEqual(lists:sort([{R, unknown}, {Late, {no, not_member}}]), replies(Fx)).

%% The batch is here, and the coordinator went before it said that all have it. Once it has said so,
%% the outcome is known.
a_batch_that_only_this_member_may_have_is_not_answered_test() ->
    [R, D] = [make_ref(), make_ref()],
    Removed = {msg, 'n2@t', {gone, removed, sderl_membership:remove(['n3@t'], 1, membership())}},
    {Fx0, S1} = sderl_core:step(20, [{op, R, [x | self()]}, {op, D, {d, y, self()}}], follower()),
    [{req, ?EPOCH, {'n3@t', Sid, 1, Ops}}] = [M || {send, addr1, M} <- Fx0],
    {_, S2} = sderl_core:step(
        30, [{msg, 'n1@t', {batch, ?EPOCH, 8, 7, [{seg, 'n3@t', Sid, 1, Ops, default}]}}], S1
    ),
    {Fx, _} = sderl_core:step(50, [{nodedown, 'n1@t'}, Removed], S2),
    ?assertMatch([{left, removed, _}], [E || {left, _, _} = E <- Fx]),
    ?assertEqual(lists:sort([{R, unknown}, {D, unknown}]), replies(Fx)),
    {FxC, _} =
        sderl_core:step(50, [{msg, 'n1@t', {commit, ?EPOCH, 8}}, {nodedown, 'n1@t'}, Removed], S2),
    ?assertEqual(lists:sort([{R, yes}, {D, ok}]), replies(FxC)).

%% If the log has the batch that removes this member, operations that are not in the log were not
%% applied.
a_removal_that_is_ordered_leaves_nothing_open_test() ->
    R = make_ref(),
    {_, S1} = sderl_core:step(20, [{op, R, [x | self()]}], follower()),
    Mem = sderl_membership:remove(['n3@t'], 1, membership()),
    {_, S2} = sderl_core:step(30, [{msg, 'n1@t', {batch, ?EPOCH, 8, 7, [{mem, Mem, ['n3@t']}]}}],
                              S1),
    {Fx, _} = sderl_core:step(40, [{msg, 'n1@t', {commit, ?EPOCH, 8}}], S2),
    ?assertMatch([{left, removed, _}], [E || {left, _, _} = E <- Fx]),
    ?assertEqual([{R, {no, not_member}}], replies(Fx)).

%% The list went to a coordinator that others may still follow; then this member coordinated alone,
%% and heard of its removal.
what_went_to_another_epoch_stays_open_test() ->
    R = make_ref(),
    {_, S1} = sderl_core:step(20, [{op, R, [x | self()]}], follower()),
    {_, S2} = sderl_core:step(30, [{nodedown, 'n2@t'}, {nodedown, 'n1@t'}], S1),
    ?assertEqual(coord, sderl_core:role(S2)),
    Mem = sderl_membership:remove(['n3@t'], 1, membership()),
    {_, S3} = sderl_core:step(40, [{msg, 'n2@t', {mem, Mem}}], S2),
    Store = sderl_sim_store:index(build, sderl_sim_store:new(?NODES)),
    {Fx, _} = sderl_core:propose(40, sderl_sim_store, Store, S3),
    ?assertMatch([{left, removed, _}], [E || {left, _, _} = E <- Fx]),
    ?assertEqual([{R, unknown}], replies(Fx)).

replies(Fx) -> lists:sort(lists:append([Rs || {replies, Rs} <- Fx])).

membership() -> sderl_membership:new(?NODES).

%% The third member, which follows the first and is linked to both.
follower() ->
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => 'n3@t', addr => addr3, inc => 1,
                           now => 0, clock => 1000, mem => membership(),
                           linked => ['n1@t', 'n2@t']}),
    Hello = fun(N, Addr) ->
        {msg, N, {hello, Addr, 1, membership(), #{epoch => ?EPOCH, lineage => ?EPOCH, num => 7,
                                                  lead => 'n1@t', syncing => false}}}
    end,
    Info = #{history => [],
             view => #{'n1@t' => live, 'n2@t' => live, 'n3@t' => {{-1000, 'n3@t'}, 0}},
             mem => membership(),
             clashes => #{},
             sessions => #{},
             sync => 1,
             prev => ?EPOCH},
    {_, S} = sderl_core:step(10, [start,
                                  Hello('n1@t', addr1),
                                  Hello('n2@t', addr2),
                                  {msg, 'n1@t', {hb, ?EPOCH, 7}},
                                  {msg, 'n1@t', {adopt, ?EPOCH, 7, Info}},
                                  {msg, 'n1@t', {chunk, ?EPOCH, 1, 1, [], true}}], S0),
    ?assertEqual(follower, sderl_core:role(S)),
    S.
