%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_stuck_tests).
-moduledoc """
Members that waited for something that never comes, and learners that missed what a batch did to
their own rows. Found by the simulator, and reduced here to the few messages that it takes.
""".
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['n1@t', 'n2@t', 'n3@t', 'n4@t']).
-define(EPOCH, {10_000, 'n2@t'}).

%% The batch that removes a member reaches it when it has no coordinator: it takes no batch then,
%% hears from another member that it is removed, and leaves without an acknowledgement.
a_removed_member_that_left_is_not_waited_for_test() ->
    Client = make_ref(),
    {S0, Store} = coordinator(),
    {_, S1} = sderl_core:step(20, [{op, Client, {remove, ['n4@t'], 1}}], S0),
    {Fx1, S2} = sderl_core:propose(20, sderl_sim_store, Store, S1),
    [{Epoch, Num}] = lists:usort([{E, N} || {send, _, {batch, E, N, _, _}} <- Fx1]),
    {_, S3} = sderl_core:step(30, [{msg, 'n3@t', {ack, Epoch, Num, none}},
                                   hello('n4@t', undefined)], S2),
    ?assertEqual({Num, ['n4@t']}, maps:get(flight, sderl_core:inspect(S3))),
    {Fx, _} = ticks(1000, 6000, S3),
    ?assertEqual([{Client, ok}], replies(Fx)).

%% The coordinator goes before its snapshot ends. The only other live member has been removed, by a
%% batch that did not reach this one: it will not lead.
a_learner_whose_live_members_are_gone_goes_on_alone_test() ->
    Client = make_ref(),
    View = #{'n1@t' => {{-1000, 'n1@t'}, 0}, 'n2@t' => live, 'n3@t' => live},
    {_, S1} = sderl_core:step(20,
                              [{op, Client, [x | self()]}, {nodedown, 'n4@t'}, {nodedown, 'n2@t'}],
                              learner(View)),
    ?assertEqual({orphan, true}, {sderl_core:role(S1), syncing(S1)}),
    Gone = {msg, 'n3@t', {gone, removed, sderl_membership:remove(['n3@t'], 1, membership())}},
    {_, S2} = sderl_core:step(30, [Gone], S1),
    {_, S3} = ticks(1000, 12_000, S2),
    ?assertEqual({coord, false}, {sderl_core:role(S3), syncing(S3)}),
    Store = sderl_sim_store:index(build, sderl_sim_store:new(?NODES)),
    {_, S4} = sderl_core:propose(12_000, sderl_sim_store, Store, S3),
    {Fx, _} = sderl_core:propose(12_000, sderl_sim_store, Store, S4),
    ?assertEqual([{Client, yes}], replies(Fx)).

%% The higher coordinator was added by a batch that this member has not heard of. The member brings
%% its shard in as many pieces as it takes. (It began anew with every tick.)
an_unheard_of_coordinator_is_joined_once_test() ->
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => 'n1@t', addr => addr('n1@t'),
                           inc => 1, now => 0, clock => 1000, mem => membership(), found => true,
                           linked => ['n5@t']}),
    {_, S1} = sderl_core:step(10, [start], S0),
    Epoch = {20_000, 'n5@t'},
    Hello = {msg, 'n5@t',
             {hello, addr('n5@t'), 1, sderl_membership:add(['n5@t'], membership()),
              #{epoch => Epoch, lineage => Epoch, num => 7, lead => 'n5@t', syncing => false}}},
    Beat = {msg, 'n5@t', {hb, Epoch, 7}},
    {Fx1, S2} = sderl_core:step(20, [Hello, Beat], S1),
    {Fx2, S3} = sderl_core:step(1000, [tick, Beat], S2),
    ?assertMatch([_], [E || {send, _, {join, _, _}} = E <- Fx1 ++ Fx2]),
    ?assertEqual(joining, sderl_core:role(S3)),
    %% It stops waiting for a silent node that is no member as far as it knows.
    {_, S4} = ticks(2000, 4000, S3),
    ?assertEqual(coord, sderl_core:role(S4)).

%% A coordinator says hello while this member waits to be taken in by others, and the member does
%% not pass that on: the others do not know of that coordinator, which could not join them and would
%% send heartbeats here for ever.
a_coordinator_that_nobody_else_knows_is_told_of_test() ->
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => 'n1@t', addr => addr('n1@t'),
                           inc => 1, now => 0, clock => 1000, mem => membership(),
                           linked => ['n2@t', 'n5@t']}),
    Beat = {msg, 'n2@t', {hb, ?EPOCH, 6}},
    {_, S1} = sderl_core:step(10, [start, hello('n2@t', 'n2@t'), Beat], S0),
    ?assertEqual(joining, sderl_core:role(S1)),
    Own = {5_000, 'n5@t'},
    With = sderl_membership:add(['n5@t'], membership()),
    Hello = {msg, 'n5@t', {hello, addr('n5@t'), 1, With,
                           #{epoch => Own, lineage => Own, num => 1, lead => 'n5@t',
                             syncing => false}}},
    View = maps:from_keys(?NODES, live),
    Info = #{history => [], view => View#{'n1@t' := {{-1000, 'n1@t'}, 0}}, mem => membership(),
             clashes => #{}, sessions => #{}, sync => 1, prev => ?EPOCH},
    {_, S2} = sderl_core:step(20, [Hello, {msg, 'n2@t', {adopt, ?EPOCH, 6, Info}},
                                   {msg, 'n2@t', {chunk, ?EPOCH, 1, 1, [], true}}], S1),
    ?assertEqual(follower, sderl_core:role(S2)),
    {Fx3, S3} = sderl_core:step(30, [{msg, 'n5@t', {hb, Own, 1}}], S2),
    ?assertMatch([{hello, _, _, _, #{ask := true}}], [Asked || {hello, 'n5@t', Asked} <- Fx3]),
    {Fx4, _} = sderl_core:step(40, [Hello], S3),
    ?assertEqual([With], [Mem || {send, To, {mem, Mem}} <- Fx4, To =:= addr('n2@t')]),
    %% The members are not asked.
    {Fx5, _} = sderl_core:step(30, [{msg, 'n3@t', {hb, Own, 1}}], S2),
    ?assertEqual([], [Asked || {hello, 'n3@t', Asked} <- Fx5]).

%% The higher coordinator is removed before it takes any member in. It answers each question with
%% that; a member that took the answers for a sign of life waited on, like others that waited for
%% it.
a_coordinator_that_has_left_is_not_waited_for_test() ->
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => 'n1@t', addr => addr('n1@t'),
                           inc => 1, now => 0, clock => 1000, mem => membership(), found => true,
                           linked => ['n2@t']}),
    {_, S1} = sderl_core:step(10, [start], S0),
    Epoch = {20_000, 'n2@t'},
    Hello = {msg, 'n2@t',
             {hello, addr('n2@t'), 1, membership(),
              #{epoch => Epoch, lineage => Epoch, num => 7, lead => 'n2@t', syncing => false}}},
    {_, S2} = sderl_core:step(20, [Hello, {msg, 'n2@t', {hb, Epoch, 7}}], S1),
    ?assertEqual(joining, sderl_core:role(S2)),
    Without = sderl_membership:remove(['n2@t'], 1, membership()),
    {_, S3} = sderl_core:step(30, [{msg, 'n2@t', {gone, removed, Without}}], S2),
    ?assertEqual(coord, sderl_core:role(S3)).

%% A list that a member sent in its former log reaches its coordinator after its snapshot has begun.
%% The answer `not_lead` would make the member give the coordinator up, which would take it for a
%% learner until that took too long. Other members get that answer.
a_learner_keeps_its_coordinator_test_() ->
    {S0, _} = coordinator(),
    #{lineage := Epoch} = sderl_core:inspect(S0),
    Refused = fun(Asks) ->
        {Fx, _} = sderl_core:step(20, [{msg, 'n4@t', {gap, Epoch, 3}} | Asks], S0),
        ?assertEqual([addr('n4@t')], [To || {send, To, {adopt, _, _, _}} <- Fx]),
        [To || {send, To, {not_lead, E}} <- Fx, E =:= Epoch]
    end,
    List = fun(N) -> {N, 1000, 1, [[x | self()]]} end,
    Both = fun(Ask) -> [{msg, N, Ask(List(N))} || N <- ['n4@t', 'n3@t']] end,
    [{Kind, ?_assertEqual([addr('n3@t')], Refused(Both(Ask)))}
     || {Kind, Ask} <- [{"asks", fun(L) -> {req, ?EPOCH, L} end},
                        {"asks as it acknowledges", fun(L) -> {ack, ?EPOCH, 7, L} end}]].

%% A member without a coordinator asks eight of the others with each tick, and each of them within
%% some ticks, even if ticks come at other times than planned.
an_orphan_asks_all_test_() ->
    Others = [list_to_atom(lists:concat([n, I, '@t'])) || I <- lists:seq(1, 17)],
    [Lead | Left] = Others,
    Members = sderl_membership:new(['z@t' | Others]),
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => 'z@t', addr => addr('z@t'),
                           inc => 1, now => 0, clock => 1000, mem => Members, linked => Others}),
    View = (maps:from_keys(Others, live))#{'z@t' => {{-1000, 'z@t'}, 0}},
    Info = #{history => [], view => View, clashes => #{}, sessions => #{}, mem => Members,
             sync => 1, prev => ?EPOCH},
    {_, S1} = sderl_core:step(10, [start] ++ [hello(N, Lead) || N <- Others] ++
                                  [{msg, Lead, {hb, ?EPOCH, 6}},
                                   {msg, Lead, {adopt, ?EPOCH, 6, Info}},
                                   {msg, Lead, {chunk, ?EPOCH, 1, 1, [], true}},
                                   {nodedown, Lead}], S0),
    ?assertEqual(orphan, sderl_core:role(S1)),
    [{integer_to_list(Every), ?_assertEqual(lists:sort(Left), asked(2, Every, S1))}
     || Every <- [250, 1000, 2000]].

asked(Ticks, Every, S0) ->
    {Asked, _} = lists:foldl(fun(I, {Nodes, S}) ->
        {Fx, Next} = sderl_core:step(I * Every, [tick], S),
        {[N || {hello, N, {hello, _, _, _, #{ask := true}}} <- Fx] ++ Nodes, Next}
    end, {[], S0}, lists:seq(1, Ticks)),
    lists:sort(Asked).

%% A learner holds its own rows back until the snapshot ends. Changes that a batch makes to one of
%% them meanwhile count.
a_batch_changes_rows_that_a_learner_holds_test_() ->
    Row = {x, self(), 'n1@t', {?EPOCH, 1}, []},
    Theirs = {x, self(), 'n3@t', {?EPOCH, 1}, []},
    Again = sderl_membership:add(['n1@t'], sderl_membership:remove(['n1@t'], 1, membership())),
    [{What, ?_assertEqual(Put, rows_after(Items, Row))}
     || {What, Items, Put} <-
            [{"nothing", [], [Row]},
             {"settled for nobody", [{settle, x, [self()], none, []}], []},
             {"brought by another", [{shard, 'n3@t', false, [Theirs], more}], [Theirs]},
             {"its home was removed and added", [{mem, Again, ['n1@t']}],
              [setelement(3, Row, 'n2@t')]},
             {"another home went",
              [{view, maps:from_keys(?NODES -- ['n4@t'], live), ['n4@t'], [], []}], [Row]}]].

rows_after(Items, Row) ->
    View = (maps:from_keys(?NODES, live))#{'n1@t' := {{-1000, 'n1@t'}, 0}},
    {Fx, S} = sderl_core:step(11, [{msg, 'n2@t', {chunk, ?EPOCH, 1, 1, [Row], false}},
                                   {msg, 'n2@t', {batch, ?EPOCH, 7, 6, Items}},
                                   {msg, 'n2@t', {chunk, ?EPOCH, 1, 2, [], true}}], learner(View)),
    ?assertEqual(false, syncing(S)),
    lists:append([Rows || {put_rows, Rows} <- Fx]).

%% A member has brought its shard to another component, with a list that is out under a new number.
%% That component goes before it takes the member in; and the old log has the list, under its old
%% number.
a_list_that_is_decided_twice_is_not_denied_test() ->
    Client = make_ref(),
    Other = {20_000, 'n3@t'},
    {Fx1, S1} = sderl_core:step(20, [{op, Client, [x | self()]}], follower()),
    [{'n1@t', Sid, 1, Ops}] = lists(Fx1),
    {Fx2, S2} = sderl_core:step(30, [{msg, 'n2@t', {follow, 'n3@t', Other}},
                                     {msg, 'n3@t', {bring, Other, {1, 1}}},
                                     {looked_up, []},
                                     {homes_read, 'n3@t', 1, [], true}], S1),
    ?assertMatch([_], [E || {send, _, {shard, _, _, _, {last, _}}} = E <- Fx2]),
    Info = #{history => [], view => maps:from_keys(?NODES, live), mem => membership(),
             clashes => #{}, prev => ?EPOCH},
    {Fx3, S3} = sderl_core:step(40, [{nodedown, 'n3@t'},
                                     {msg, 'n2@t', {hb, ?EPOCH, 7}},
                                     {msg, 'n2@t', {lead, ?EPOCH, 8,
                                                    [{seg, 'n1@t', Sid, 1, Ops, default}], Info}}],
                                S2),
    ?assertEqual([{'n1@t', Sid, 2, Ops}], lists(Fx3)),
    No = {seg, 'n1@t', Sid, 2, Ops, [{no, name_or_pid_already_registered}]},
    {Fx, _} = sderl_core:step(
        50, [{msg, 'n2@t', {batch, ?EPOCH, 9, 8, [No]}}, {msg, 'n2@t', {commit, ?EPOCH, 9}}], S3
    ),
    ?assertEqual([{Client, unknown}], replies(Fx)).

%% The last batch of a lost coordinator removes the new one, which has it from another member. It
%% leads all to that batch, and leaves: the view that it sends has no place for it, as otherwise its
%% processes could not be registered again.
a_successor_that_was_removed_has_no_place_test() ->
    Removed = sderl_membership:remove(['n1@t'], 1, membership()),
    {Fx1, S1} = sderl_core:step(20, [{nodedown, 'n2@t'}], follower()),
    [Epoch] = lists:usort([E || {send, _, {collect, E, _, _}} <- Fx1]),
    {Fx2, _} = sderl_core:step(21, [{msg, 'n3@t', {joined, Epoch, 8, [{mem, Removed, ['n1@t']}]}},
                                    {msg, 'n4@t', {joined, Epoch, 7, []}}], S1),
    [#{view := View}] = lists:usort([Info || {send, _, {lead, _, _, _, Info}} <- Fx2]),
    ?assertEqual(['n3@t', 'n4@t'], lists:sort(maps:keys(View))).

%% A coordinator that runs only once in some seconds finds the answers to its question among its
%% messages, and that it was late again: since these answers others may have become coordinators.
answers_from_before_it_was_late_again_say_nothing_test() ->
    Client = make_ref(),
    {S0, Store} = coordinator(),
    {_, S1} = sderl_core:step(20, [tick, {op, Client, [x | self()]}], S0),
    {Fx1, S2} = sderl_core:propose(20, sderl_sim_store, Store, S1),
    [{Epoch, Num}] = lists:usort([{E, N} || {send, _, {batch, E, N, _, _}} <- Fx1]),
    {Fx2, S3} = sderl_core:step(4000, [], S2),
    ?assertMatch([_, _], [To || {send, To, query} <- Fx2]),
    States = [{msg, N, {state, Epoch, 'n1@t'}} || N <- ['n3@t', 'n4@t']],
    {Fx3, S4} = sderl_core:step(
        8000, States ++ [{msg, N, {ack, Epoch, Num, none}} || N <- ['n3@t', 'n4@t']], S3
    ),
    ?assertEqual([], replies(Fx3)),
    {Fx4, _} = sderl_core:step(8010, States, S4),
    ?assertEqual([{Client, yes}], replies(Fx4)).

%% A coordinator that was stopped is told by a member that it follows, just before the member gives
%% it up, and waits for another answer that does not come. Meanwhile it hears of the promise of a
%% higher epoch, and asks about that before it goes on.
a_coordinator_that_was_stopped_goes_on_if_nobody_else_leads_test() ->
    {S0, Store} = coordinator(),
    #{lineage := {Counter, _} = Epoch} = sderl_core:inspect(S0),
    {_, S1} = sderl_core:step(20, [tick, {op, make_ref(), [x | self()]}], S0),
    {_, S2} = sderl_core:step(4000, [{msg, 'n3@t', {state, Epoch, 'n1@t'}},
                                     {msg, 'n3@t', {collect, {Counter + 1, 'n3@t'}, Epoch, #{}}}],
                              S1),
    {Fx, S3} = ticks(5000, 9000, S2),
    ?assertEqual(candidate, sderl_core:role(S3)),
    ?assertMatch([_ | _], [E || {send, _, {collect, E, _, _}} <- Fx, E > {Counter + 1, 'n3@t'}]),
    ?assertMatch({[], _}, sderl_core:propose(9000, sderl_sim_store, Store, S3)).

%% A list waits at the coordinator. Its member gives it up, and sends another one when it is set
%% aside. That one is ordered when the member counts again, and not the former one.
the_last_list_of_a_member_that_was_aside_is_ordered_test() ->
    {S0, Store0} = coordinator(),
    #{lineage := Epoch} = sderl_core:inspect(S0),
    Lists = [{'n4@t', 1000, R, [[Name | self()]]} || {R, Name} <- [{10, former}, {12, last}]],
    [Former, Last] = [{msg, 'n4@t', {req, Epoch, List}} || List <- Lists],
    {Fx, S1} = sderl_core:step(
        20, [Former, {msg, 'n4@t', {gap, Epoch, 3}}, Last, {op, make_ref(), [x | self()]}], S0
    ),
    [Sync] = [Id || {send, _, {adopt, _, _, #{sync := Id}}} <- Fx],
    {[_], S2, Store1} = committed(['n3@t'], S1, Store0),
    {[{seg, 'n1@t', _, _, _, _}], S3, Store2} = committed(['n3@t'], S2, Store1),
    {_, S4} = sderl_core:step(30, [{msg, 'n4@t', {synced, Epoch, Sync}}], S3),
    {[_], S5, Store3} = committed(['n3@t', 'n4@t'], S4, Store2),
    {Items, _, _} = committed(['n3@t', 'n4@t'], S5, Store3),
    ?assertMatch([{seg, 'n4@t', 1000, 12, _, _}], Items).

%% The next batch, which these members have acknowledged.
committed(Followers, S0, Store0) ->
    {Fx, S1} = sderl_core:propose(25, sderl_sim_store, Store0, S0),
    [{Epoch, Num, Items, Index}] = [{E, N, I, X} || {apply, E, N, I, X} <- Fx],
    {Store, _} = sderl_sim_store:apply(Store0, Epoch, Num, Items, Index),
    {_, S} = sderl_core:step(25, [{msg, N, {ack, Epoch, Num, none}} || N <- Followers], S1),
    {Items, S, Store}.

lists(Fx) ->
    [List || {send, _, {req, _, List}} <- Fx] ++ [List || {send, _, {ack, _, _, List}} <- Fx].

%% ---------------------------------------------------------------- a member of four

%% The first member is the coordinator of the third and the fourth; the second went.
coordinator() ->
    {Fx, S1} = sderl_core:step(15, [{nodedown, 'n2@t'}], follower()),
    [{Epoch, Lineage}] = lists:usort([{E, L} || {send, _, {collect, E, L, _}} <- Fx]),
    ?assertEqual(?EPOCH, Lineage),
    {_, S2} = sderl_core:step(16, [{msg, N, {joined, Epoch, 7, []}} || N <- ['n3@t', 'n4@t']], S1),
    ?assertEqual(coord, sderl_core:role(S2)),
    {_, S3} = sderl_core:step(17, [{msg, N, {ack, Epoch, 7, none}} || N <- ['n3@t', 'n4@t']], S2),
    Store = sderl_sim_store:index(build, sderl_sim_store:new(?NODES)),
    {Fx4, S4} = sderl_core:propose(18, sderl_sim_store, Store, S3),
    [{Num, Items, Index}] = [{N, I, X} || {apply, _, N, I, X} <- Fx4],
    {Store1, _} = sderl_sim_store:apply(Store, Epoch, Num, Items, Index),
    {_, S5} = sderl_core:step(19, [{msg, N, {ack, Epoch, Num, none}} || N <- ['n3@t', 'n4@t']], S4),
    ?assertEqual(none, maps:get(flight, sderl_core:inspect(S5))),
    {S5, Store1}.

%% The coordinator is stopped while a batch with the removal of the first member's name is out, and
%% the third member goes on with it. The first one, which lacks that batch, brings its shard there,
%% with the name. Before the snapshot comes, the old coordinator goes on, sends it the batch, and
%% answers the client that the name is gone.
what_was_removed_after_it_was_brought_is_brought_anew_test() ->
    Row = {x, self(), 'n1@t', {?EPOCH, 1}, []},
    Higher = {20_000, 'n3@t'},
    {_, S1} = ticks(1000, 7000, follower()),
    ?assertEqual(candidate, sderl_core:role(S1)),
    #{epoch := Mine} = sderl_core:inspect(S1),
    {Fx1, S2} = sderl_core:step(7010, [{msg, 'n3@t', {apart, Mine, Higher, 'n3@t'}}], S1),
    ?assertMatch([_], [Join || {send, _, {join, ?EPOCH, 7} = Join} <- Fx1]),
    {Fx2, S3} = sderl_core:step(7020, [{msg, 'n3@t', {bring, Higher, {1, 1}}},
                                       {homes_read, 'n3@t', 1, [Row], true}], S2),
    ?assertMatch([[Row]], [Rows || {send, _, {shard, _, _, Rows, _}} <- Fx2]),
    View = maps:from_keys(?NODES, live),
    Removal = {seg, 'n2@t', 1, 1, [{x}], [{ok, 'n1@t'}]},
    Info = #{history => [], view => View, mem => membership(), clashes => #{}, prev => ?EPOCH},
    {Fx3, S4} = sderl_core:step(7030, [{msg, 'n2@t', {lead, ?EPOCH, 8, [Removal], Info}}], S3),
    ?assertMatch([_], [Ack || {send, _, {ack, ?EPOCH, 8, none} = Ack} <- Fx3]),
    Theirs = Info#{history => [{?EPOCH, 8}], view => #{'n1@t' => {?EPOCH, 7}, 'n3@t' => live},
                   sessions => #{}, sync => 1, prev => Higher},
    {Fx4, _} = sderl_core:step(7040, [{msg, 'n3@t', {adopt, Higher, 8, Theirs}}], S4),
    ?assertEqual([], [Begun || {sync_begin, _, _} = Begun <- Fx4]).

%% The others answer a candidate that they have a higher log, and no coordinator. The candidate
%% waits for their coordinator as long as any minority does, and as long again if it has followed
%% one meanwhile.
a_minority_waits_for_the_coordinator_of_a_higher_log_test() ->
    {_, S1} = ticks(1000, 6000, follower()),
    {At, S2} = stood_back(7000, S1),
    {Led, _} = leads(At, S2),
    Waited = Led - At,
    ?assert(Waited > 10_000),
    Epoch = {15_000, 'n3@t'},
    Collect = {msg, 'n3@t', {collect, Epoch, ?EPOCH, #{}}},
    {Fx, S3} = sderl_core:step(At + 1000, [tick, Collect], S2),
    ?assertMatch([_], [Joined || {send, _, {joined, E, 7, _} = Joined} <- Fx, E =:= Epoch]),
    Info = #{history => [],
             view => maps:from_keys(?NODES, live),
             mem => membership(),
             clashes => #{},
             prev => ?EPOCH},
    {_, S4} = sderl_core:step(At + 1010, [{msg, 'n3@t', {lead, Epoch, 7, [], Info}}], S3),
    ?assertEqual(follower, sderl_core:role(S4)),
    {Again, S5} = stood_back(At + 2000, S4),
    {LedAgain, _} = leads(Again, S5),
    ?assertEqual(Waited, LedAgain - Again).

%% The link to a member broke and is back without a hello: its node has a new life, which may not be
%% in this group. A new coordinator drops it like a member without a link, and keeps the names of
%% one that is only silent.
whose_link_broke_and_is_mute_since_is_let_go_test() ->
    Lost = [{nodedown, 'n2@t'}],
    ?assertEqual(['n1@t', 'n3@t', 'n4@t'], led_with(Lost)),
    Back = Lost ++ [{nodedown, 'n4@t'}, {nodeup, 'n4@t'}],
    ?assertEqual(['n1@t', 'n3@t'], led_with(Back)),
    ?assertEqual(['n1@t', 'n3@t', 'n4@t'], led_with(Back ++ [hello('n4@t', undefined)])).

%% The members in the view of the first member when it leads and only the third answers it.
led_with(Events) ->
    S0 = joined_by_third(20, Events, follower()),
    S = lists:foldl(fun(Now, X) -> joined_by_third(Now, [tick], X) end, S0,
                    lists:seq(1000, 10_000, 1000)),
    ?assertEqual(coord, sderl_core:role(S)),
    lists:sort(maps:keys(maps:get(view, sderl_core:inspect(S)))).

joined_by_third(Now, Events, S0) ->
    {Fx, S1} = sderl_core:step(Now, Events, S0),
    Joined = [{msg, 'n3@t', {joined, E, 7, []}}
              || {send, {addr, 'n3@t'}, {collect, E, _, _}} <- Fx],
    {_, S} = sderl_core:step(Now + 10, Joined, S1),
    S.

%% The first tick with which it stands for election, and its state when it has its answers.
stood_back(Now, S0) ->
    case answered(Now, S0) of
        {[], S} ->
            stood_back(Now + 1000, S);
        {_, S} ->
            ?assertEqual(orphan, sderl_core:role(S)),
            {Now, S}
    end.

leads(Now, S) when Now < 100_000 ->
    case sderl_core:role(S) of
        coord ->
            {Now, S};
        _ ->
            {_, Next} = answered(Now + 1000, S),
            leads(Now + 1000, Next)
    end.

%% A tick, and the answers of those that it asks for a promise.
answered(Now, S0) ->
    {Fx, S1} = sderl_core:step(Now, [tick], S0),
    Asked = [{msg, N, {apart, E, {20_000, 'n3@t'}, undefined}}
             || {send, {addr, N}, {collect, E, _, _}} <- Fx],
    {_, S} = sderl_core:step(Now + 10, Asked, S1),
    {Asked, S}.

%% The first member follows the second, with all others.
follower() ->
    View = maps:from_keys(?NODES, live),
    S = learner(View#{'n1@t' := {{-1000, 'n1@t'}, 0}}),
    {_, S1} = sderl_core:step(11, [{msg, 'n2@t', {chunk, ?EPOCH, 1, 1, [], true}},
                                   {msg, 'n2@t',
                                    {batch, ?EPOCH, 7, 6, [{view, View, [], ['n1@t'], []}]}}], S),
    ?assertEqual({follower, 7, false}, {sderl_core:role(S1), number(S1), syncing(S1)}),
    S1.

%% The first member, to which the second sends a snapshot.
learner(View) ->
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => 'n1@t', addr => addr('n1@t'),
                           inc => 1, now => 0, clock => 1000, mem => membership(),
                           linked => ?NODES -- ['n1@t']}),
    Info = #{history => [], view => View, mem => membership(), clashes => #{}, sessions => #{},
             sync => 1, prev => ?EPOCH},
    {_, S} = sderl_core:step(10, [start] ++ [hello(N, 'n2@t') || N <- ?NODES, N =/= 'n1@t'] ++
                                 [{msg, 'n2@t', {hb, ?EPOCH, 6}},
                                  {msg, 'n2@t', {adopt, ?EPOCH, 6, Info}}], S0),
    ?assertEqual({follower, true}, {sderl_core:role(S), syncing(S)}),
    S.

hello(N, Lead) ->
    {msg, N, {hello, addr(N), 1, membership(),
              #{epoch => ?EPOCH, lineage => ?EPOCH, num => 7, lead => Lead, syncing => false}}}.

addr(N) -> {addr, N}.

membership() -> sderl_membership:new(?NODES).

%% A tick a second, until then.
ticks(From, To, S0) ->
    lists:foldl(fun(Now, {Fx, S}) ->
        {More, Next} = sderl_core:step(Now, [tick], S),
        {Fx ++ More, Next}
    end, {[], S0}, lists:seq(From, To, 1000)).

number(S) -> maps:get(num, sderl_core:inspect(S)).

syncing(S) -> maps:get(syncing, sderl_core:inspect(S)).

replies(Fx) -> lists:append([Rs || {replies, Rs} <- Fx]).
