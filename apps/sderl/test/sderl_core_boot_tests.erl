%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_boot_tests).
-moduledoc """
A member that boots, beside others that boot, while it may have heard of a running component: until
that has called it in it takes no others in, which would outrank the running component, and decides
nothing (rule 2).
""".
-include_lib("eunit/include/eunit.hrl").

-define(NODES, ['n1@t', 'n2@t', 'n3@t', 'n4@t']).
-define(RUNS, {20_000, 'n1@t'}).
-define(TICK, 1000).
-define(ASIDE, 4000).

%% The other node just booted: its epoch is lower than ours, because it is younger.
-define(BOOTS(N), {-11_000, N}).

takes_in_who_boots_beside_it_test() ->
    {Fx, _} = step(20, [offers('n2@t')], booted()),
    ?assertMatch([_], takes_in(Fx)).

%% The other node may be about to tell us of a running component.
waits_for_one_that_is_linked_and_silent_test() ->
    {Fx, S} = step(20, [{nodeup, 'n3@t'}, offers('n2@t')], booted()),
    ?assertEqual([], takes_in(Fx)),
    {Fx2, _} = step(40, [hello('n3@t', ?BOOTS('n3@t'), 'n3@t')], S),
    ?assertMatch([{bring, _, _}], takes_in(Fx2)).

waits_no_longer_than_that_test() ->
    {_, S} = step(20, [{nodeup, 'n3@t'}, offers('n2@t')], booted()),
    ?assertEqual([], takes_in(element(1, ticks(20, ?ASIDE - ?TICK, [offers('n2@t')], S)))),
    ?assertMatch([_ | _], takes_in(element(1, ticks(20, ?ASIDE + 2 * ?TICK, [offers('n2@t')], S)))).

%% The other node was taken in since it said hello, which its answer to our heartbeat shows.
heeds_who_answers_a_heartbeat_test() ->
    {_, S1} = step(20, [hello('n3@t', ?BOOTS('n3@t'), 'n3@t')], booted()),
    {Fx, S2} = step(30, [{msg, 'n3@t', {low, ?RUNS, 'n1@t'}}, offers('n2@t')], S1),
    ?assertEqual([], takes_in(Fx)),
    {_, S3} = step(40, [{op, asked, [alpha | self()]}], S2),
    ?assertEqual([], [R || {replies, R} <- element(1, ticks(40, 2 * ?TICK, [], S3))]).

%% The node that waited here was called in by the running component; our state stays.
an_offer_that_was_taken_elsewhere_is_no_more_test() ->
    {_, S1} = step(20, [hello('n3@t', ?RUNS, 'n1@t'), offers('n2@t')], booted()),
    {_, S2} = step(30, [{msg, 'n2@t', {low, ?RUNS, 'n1@t'}}], S1),
    {Fx, S3} = step(40, [{nodedown, 'n3@t'}], S2),
    ?assertEqual([], takes_in(Fx)),
    ?assertMatch(#{epoch := {C, _}} when C < 0, sderl_core:info(S3)).

an_offer_is_of_then_test() ->
    {_, S1} = step(20, [hello('n3@t', ?RUNS, 'n1@t'), offers('n2@t')], booted()),
    {Fx, S2} = ticks(20, 6 * ?TICK, [], S1),
    ?assertEqual([], takes_in(Fx)),
    {Fx2, S3} = step(20 + 6 * ?TICK + 1, [{nodedown, 'n3@t'}], S2),
    ?assertEqual([], takes_in(Fx2)),
    ?assertMatch(#{epoch := {C, _}} when C < 0, sderl_core:info(S3)),
    {Fx3, _} = step(20 + 6 * ?TICK + 2, [offers('n2@t')], S3),
    ?assertMatch([_], takes_in(Fx3)).

%% The coordinator of the running component hangs: its followers give it up after the set-aside time
%% and two ticks, and then elect another.
waits_until_one_that_hangs_is_given_up_test() ->
    {_, S} = step(20, [hello('n3@t', ?RUNS, 'n1@t'), {op, asked, [alpha | self()]}],
                  booted(#{aside_ms => ?TICK})),
    ?assertEqual(
        [],
        [R || {replies, R} <- element(1, ticks(20, 4 * ?TICK, [hello('n3@t', ?RUNS, 'n1@t')], S))]
    ),
    ?assertMatch(
        [_],
        [R || {replies, R} <- element(1, ticks(20, 7 * ?TICK, [hello('n3@t', ?RUNS, 'n1@t')], S))]
    ).

%% The coordinator that called this node in goes, or is silent, before it has taken it in. Another
%% node that booted waited for the same coordinator, leads now, and would decide beside this one.
goes_to_the_next_that_calls_test_() ->
    Older = {-9_000, 'n3@t'},
    Runs = {msg, 'n1@t', {hb, ?RUNS, 6}},
    Calls = {msg, 'n3@t', {hb, Older, 0}},
    {_, S1} = step(20, [hello('n1@t', ?RUNS, 'n1@t'), Runs, hello('n3@t', Older, 'n3@t'),
                        {op, asked, [alpha | self()]}], booted()),
    {_, S2} = ticks(20, 3 * ?ASIDE, [Runs, Calls], S1),
    Since = 20 + 3 * ?ASIDE,
    {Gone, Next} = step(Since + 10, [{nodedown, 'n1@t'}], S2),
    {Silent, _} = ticks(Since, 2 * ?ASIDE + ?TICK, [Calls], S2),
    {Alone, _} = step(Since + 20, [{nodedown, 'n3@t'}], Next),
    [{"is gone", ?_assertEqual({['n3@t'], []}, {joins(Gone), answered(Gone)})},
     {"is silent", ?_assertEqual({['n3@t'], []}, {joins(Silent), answered(Silent)})},
     {"both are gone", ?_assertEqual({[], [{asked, yes}]}, {joins(Alone), answered(Alone)})}].

joins(Fx) -> [N || {send, {addr, N}, {join, _, _}} <- Fx].

answered(Fx) -> lists:append([Replies || {replies, Replies} <- Fx]).

%% The founder of a majority group leads with the promises of all members that accepted, whatever
%% its name: a member that has not promised would have to wait before it may be taken in. The
%% founder does not wait long for a member that does not come.
asks_all_who_accepted_test() ->
    S = booted(#{mode => majority, found => true, fresh => true}),
    [One, Two, Three] = [accepts(N) || N <- ['n1@t', 'n2@t', 'n3@t']],
    {None, Waits} = step(20, [One, Two], S),
    ?assertEqual([], collects(None)),
    ?assertEqual(['n1@t', 'n2@t', 'n3@t'], collects(element(1, step(30, [Three], Waits)))),
    {Fx, Waits2} = ticks(30, ?TICK, [], Waits),
    ?assertEqual([], collects(Fx)),
    ?assertEqual(['n1@t', 'n2@t'], collects(element(1, ticks(30 + ?TICK, ?TICK, [], Waits2)))).

accepts(N) ->
    {msg, N, {hello, Addr, Inc, Mem, Info}} = hello(N, ?BOOTS(N), undefined),
    {msg, N, {hello, Addr, Inc, Mem, Info#{mode => majority}}}.

collects(Fx) -> lists:usort([N || {send, {addr, N}, M} <- Fx, element(1, M) =:= collect]).

%% ---------------------------------------------------------------- a member in the making

booted() -> booted(#{}).

%% The fourth member: alone so far, linked to the second, which boots too.
booted(Opts) ->
    S0 = sderl_core:init(maps:merge(#{group => g, uid => <<"u">>, self => 'n4@t',
                                      addr => {addr, 'n4@t'}, inc => 1, now => 0, clock => 10_000,
                                      mem => sderl_membership:new(?NODES), linked => [],
                                      tick_ms => ?TICK, aside_ms => ?ASIDE}, Opts)),
    {_, S} = step(10, [start, {nodeup, 'n2@t'}, hello('n2@t', ?BOOTS('n2@t'), 'n2@t')], S0),
    S.

hello(N, Epoch, Lead) ->
    {msg, N, {hello, {addr, N}, 1, sderl_membership:new(?NODES),
              #{epoch => Epoch, lineage => Epoch, num => 0, lead => Lead, syncing => false}}}.

offers(N) -> {msg, N, {join, ?BOOTS(N), 0}}.

takes_in(Fx) -> [M || {send, _, M} <- Fx, element(1, M) =:= bring].

%% A step, and what the coordinator decides after it.
step(Now, Events, S0) ->
    {Fx1, S1} = sderl_core:step(Now, Events, S0),
    {Fx2, S} = sderl_core:propose(Now, sderl_sim_store,
                                  sderl_sim_store:index(build, sderl_sim_store:new(?NODES)),
                                  S1),
    {Fx1 ++ Fx2, S}.

%% Time passes, and something comes with each tick.
ticks(From, Ms, Events, S0) ->
    lists:foldl(fun(At, {Fx, S}) ->
        {More, S1} = step(At, [tick | Events], S),
        {Fx ++ More, S1}
    end, {[], S0}, lists:seq(From + ?TICK, From + Ms, ?TICK)).
