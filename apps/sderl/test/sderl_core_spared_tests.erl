%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_spared_tests).
-moduledoc """
Rule 35, in a majority group: a snapshot replaces no table that may be the only other copy of what
was committed. A member that lacks at most the last batch is led without a snapshot.
""".
-include_lib("eunit/include/eunit.hrl").

-define(SELF, 'n3@t').
-define(OLD, {10_000, 'n1@t'}).
-define(NUM, 7).

%% The member promised, did not hear that this one leads, and asks to be taken in. It has our log.
who_did_not_hear_is_led_test() ->
    {Fx1, S1} = sderl_core:step(7000, [{msg, 'n2@t', {join, ?OLD, ?NUM}}], elected()),
    ?assertEqual([], taken(Fx1)),
    {Fx2, S2} = sderl_core:step(7010, [hello('n2@t', #{})], S1),
    ?assertEqual([{lead, 'n2@t'}], taken(Fx2)),
    {_, S3} = sderl_core:step(7020, [ack('n2@t', S2)], S2),
    ?assertEqual(none, maps:get(flight, sderl_core:inspect(S3))).

%% The member promised, and its link was gone before it heard that this one leads.
whose_link_was_gone_is_led_test() ->
    S0 = elected(),
    {_, S1} = sderl_core:step(7000, [{nodedown, 'n2@t'}], S0),
    ?assertMatch(#{'n2@t' := {_, ?NUM}}, view(S1)),
    {Fx, S2} = sderl_core:step(7010, [hello('n2@t', #{num => ?NUM})], S1),
    ?assertEqual([{lead, 'n2@t'}], taken(Fx)),
    ?assertMatch(#{'n2@t' := live}, view(S2)),
    %% It counts, and so do its acknowledgements.
    {_, S3} = sderl_core:step(7020, [ack('n2@t', S2)], S2),
    ?assertEqual(none, maps:get(flight, sderl_core:inspect(S3))).

%% The member was away in the election: to follow is a promise.
who_was_away_is_led_test() ->
    {_, S1} = sderl_core:step(7000, [{nodedown, 'n2@t'}], elected()),
    {Fx, S2} = sderl_core:step(7010, [hello('n1@t', #{num => ?NUM})], S1),
    ?assertEqual([{lead, 'n1@t'}], taken(Fx)),
    {_, S3} = sderl_core:step(7020, [ack('n1@t', S2)], S2),
    ?assertEqual(none, maps:get(flight, sderl_core:inspect(S3))).

%% Its log may have batches that ours lacks: it keeps that log until a majority has ours.
who_lacks_more_waits_for_a_commit_test() ->
    S0 = elected(),
    #{lineage := Epoch} = sderl_core:inspect(S0),
    Behind = hello('n1@t', #{num => ?NUM - 2}),
    Joins = {msg, 'n1@t', {join, ?OLD, ?NUM - 2}},
    {Fx1, S1} = sderl_core:step(7000, [Behind, Joins], S0),
    ?assertEqual([], taken(Fx1)),
    %% Its hello says where its log ends.
    ?assertMatch([_], [ok || {hello, 'n1@t', {hello, _, _, _, #{ask := true}}} <- Fx1]),
    {Fx2, S2} = sderl_core:step(7010, [Behind, {msg, 'n1@t', {gap, Epoch, ?NUM - 2}}], S1),
    ?assertEqual([], taken(Fx2)),
    {Fx3, _} = sderl_core:step(7020, [ack('n2@t', S2), Joins], S2),
    ?assertEqual([{adopt, 'n1@t'}], taken(Fx3)).

%% An empty member, and one that promised and lacks more, have nothing that a majority lacks.
who_has_no_copy_learns_at_once_test() ->
    S0 = elected(),
    #{lineage := Epoch} = sderl_core:inspect(S0),
    {_, Waits} = ticks(7000, 15_000, [{msg, 'n2@t', {hb_ack, Epoch, []}}], S0),
    Empty = {-2000, 'n1@t'},
    Boots = [hello('n1@t', #{lineage => Empty, epoch => Empty, num => 0}),
             {msg, 'n1@t', {join, Empty, 0}}],
    {Fx1, _} = sderl_core:step(15_010, Boots, Waits),
    ?assertEqual([{adopt, 'n1@t'}], taken(Fx1)),
    Far = elected({?OLD, ?NUM - 2}),
    ?assertMatch(#{'n2@t' := {_, _}}, view(Far)),
    {Fx2, _} = sderl_core:step(7000, [hello('n2@t', #{num => ?NUM - 2})], Far),
    ?assertEqual([{adopt, 'n2@t'}], taken(Fx2)).

%% A member that has promised a later epoch follows no earlier one.
who_would_not_follow_is_not_led_test() ->
    {_, S} = sderl_core:step(7000, [{nodedown, 'n2@t'}], elected()),
    Later = hello('n1@t', #{num => ?NUM, epoch => {1_000_000, 'n1@t'}}),
    {Fx, _} = sderl_core:step(7010, [Later], S),
    ?assertEqual([], taken(Fx)).

%% ---------------------------------------------------------------- the third of three members

%% The third member leads, with the promise of the second; the first, which led before, is not
%% there. No batch of its epoch is committed.
elected() -> elected({?OLD, ?NUM}).

elected(Position) ->
    {_, Alone} = sderl_core:step(20, [{nodedown, 'n1@t'}], follower()),
    {Fx, S} = ticks(1000, 6000, Alone),
    ?assertEqual(candidate, sderl_core:role(S)),
    Epoch = lists:last([E || {send, _, {collect, E, _, _}} <- Fx]),
    Promise = {promised, Epoch, Position, [], votes},
    {_, Led} = sderl_core:step(6010, [{msg, 'n2@t', Promise}], S),
    ?assertEqual(coord, sderl_core:role(Led)),
    Led.

follower() ->
    Others = ['n1@t', 'n2@t'],
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => ?SELF, addr => addr(?SELF),
                           inc => 1, now => 0, clock => 1000, mem => members(), linked => Others,
                           mode => majority, fresh => true}),
    Info = #{history => [], view => #{'n1@t' => live, 'n2@t' => live, ?SELF => {{-1000, ?SELF}, 0}},
             mem => members(), clashes => #{}, sessions => #{}, sync => 1, prev => ?OLD},
    View = maps:from_keys([?SELF | Others], live),
    {_, S} = sderl_core:step(
        10,
        [start, hello('n1@t', #{lead => 'n1@t'}), hello('n2@t', #{lead => 'n1@t'}),
         {msg, 'n1@t', {adopt, ?OLD, ?NUM - 1, Info}},
         {msg, 'n1@t', {chunk, ?OLD, 1, 1, [], true}},
         {msg, 'n1@t', {batch, ?OLD, ?NUM, ?NUM - 1, [{view, View, [], [], []}]}}],
        S0
    ),
    ?assertEqual(follower, sderl_core:role(S)),
    S.

%% The members that are led, and those that get a snapshot.
taken(Fx) ->
    [{element(1, Msg), N}
     || {send, {addr, N}, Msg} <- Fx, is_tuple(Msg), lists:member(element(1, Msg), [lead, adopt])].

hello(N, Known) ->
    Info = #{epoch => ?OLD, lineage => ?OLD, num => ?NUM, lead => undefined, syncing => false,
             mode => majority},
    {msg, N, {hello, addr(N), 1, members(), maps:merge(Info, Known)}}.

ack(N, S) ->
    #{lineage := Epoch, num := Num} = sderl_core:inspect(S),
    {msg, N, {ack, Epoch, Num, none}}.

addr(N) -> {addr, N}.

members() -> sderl_membership:new(['n1@t', 'n2@t', ?SELF]).

view(S) -> maps:get(view, sderl_core:inspect(S)).

ticks(From, To, S) -> ticks(From, To, [], S).

ticks(From, To, Events, S0) ->
    lists:foldl(fun(Now, {Fx, S}) ->
        {More, Next} = sderl_core:step(Now, Events ++ [tick], S),
        {Fx ++ More, Next}
    end, {[], S0}, lists:seq(From, To, 1000)).
