%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_learns_tests).
-moduledoc """
A member whose table a snapshot is replacing. In a majority group it votes if another member has all
that it ever had, and tells candidates that it is learning. Its clients get the answers of the log
when it has the rows.
""".
-include_lib("eunit/include/eunit.hrl").
-include("../src/core/sderl_op.hrl").

-define(SELF, 'n3@t').
-define(EPOCH, {10_000, 'n1@t'}).
-define(TICK, 1000).

%% Of three members the coordinator is lost. The learner has acknowledged no more than the log of
%% which it was to get a snapshot has: this member leads if it has that log, and only with a member
%% that remembers its promise.
whose_vote_counts_test() ->
    Led = fun(Num, Standing) ->
        {E, S} = candidate(),
        {_, Voted} = step(8000, [{msg, 'n2@t', {promised, E, {?EPOCH, Num}, [], Standing}}], S),
        sderl_core:role(Voted)
    end,
    ?assertEqual(coord, Led(7, learns)),
    ?assertEqual(orphan, Led(8, learns)),
    ?assertEqual(orphan, Led(7, partial)).

%% A candidate of an older version knows only three of the votes.
who_is_told_test() ->
    {_, S} = step(20, [adopt()], follower(true)),
    ?assertEqual([learns], standings(#{learns => true}, S)),
    ?assertEqual([partial], standings(#{}, S)),
    {_, Empty} = step(20, [adopt()], follower(false)),
    ?assertEqual([partial], standings(#{learns => true}, Empty)).

%% A coordinator that resigns says so. Its learner promises another candidate its epoch at once.
a_learner_hears_that_its_coordinator_resigned_test() ->
    {_, S} = step(20, [adopt()], follower(true)),
    {_, Left} = step(30, [{msg, 'n1@t', {not_lead, ?EPOCH}}], S),
    ?assertEqual(orphan, sderl_core:role(Left)),
    Collect = {collect, {20_000, 'n2@t'}, ?EPOCH, #{learns => true}},
    {Fx, _} = step(40, [{msg, 'n2@t', Collect}], Left),
    ?assertMatch([_], [Promise || {send, _, {promised, _, _, _, learns} = Promise} <- Fx]).

%% The coordinator dropped the member while it was learning, and answers its list, which is in the
%% log, again. The member's own rows are still the old ones, so its clients would not find the
%% names.
a_learner_answers_when_it_has_its_rows_test() ->
    {_, Asks} = step(20, [{op, client, ?REGISTER(name, self())}], follower(true)),
    Answers = {msg, 'n1@t', {answers, ?EPOCH, 1, default}},
    Replies = fun(Events) ->
        {Fx, _} = step(30, Events, Asks),
        lists:append([Rs || {replies, Rs} <- Fx])
    end,
    Last = {msg, 'n1@t', {chunk, ?EPOCH, 2, 1, [], true}},
    ?assertEqual([], Replies([adopt(), Answers])),
    ?assertEqual([{client, yes}], Replies([adopt(), Last, Answers])).

%% The member was stopped, and set aside before it had the batch with its list. Its coordinator's
%% answer is true in a log that the member lacks, and it may go on without that log.
who_has_given_its_coordinator_up_hears_no_answer_test() ->
    {_, Asks} = step(20, [{op, client, ?REGISTER(name, self())}], follower(true)),
    Replies = fun(Now, Events, S) ->
        {Fx, S1} = step(Now, Events, S),
        {lists:append([Rs || {replies, Rs} <- Fx]), S1}
    end,
    Answers = {msg, 'n1@t', {answers, ?EPOCH, 1, default}},
    ?assertMatch({[{client, yes}], _}, Replies(30, [Answers], Asks)),
    ?assertMatch({[], _}, Replies(30, [{msg, 'n2@t', element(3, Answers)}], Asks)),
    {_, Left} = Replies(30, [{msg, 'n1@t', {not_lead, ?EPOCH}}], Asks),
    ?assertEqual(orphan, sderl_core:role(Left)),
    ?assertMatch({[], _}, Replies(40, [Answers], Left)),
    Last = {msg, 'n1@t', {chunk, ?EPOCH, 2, 1, [], true}},
    {[], Again} = Replies(40, [Answers, adopt(), Last], Left),
    ?assertMatch({[{client, yes}], _}, Replies(50, [Answers], Again)).

standings(Flags, S) ->
    {Fx, _} = step(30,
                   [{nodedown, 'n1@t'}, {msg, 'n2@t', {collect, {20_000, 'n2@t'}, ?EPOCH, Flags}}],
                   S),
    [Standing || {send, _, {promised, _, _, _, Standing}} <- Fx].

%% A member at batch 7 that asks the other one.
candidate() ->
    {_, Alone} = step(20, [{nodedown, 'n1@t'}], follower(true)),
    {Fx, S} = lists:foldl(fun(I, {Said, S}) ->
        {Fx, S1} = step(20 + I * ?TICK, [tick], S),
        {Said ++ Fx, S1}
    end, {[], Alone}, lists:seq(1, 6)),
    ?assertEqual(candidate, sderl_core:role(S)),
    {lists:last([E || {send, _, {collect, E, _, _}} <- Fx]), S}.

step(Now, Events, S) -> sderl_core:step(Now, Events, S).

adopt() -> {msg, 'n1@t', {adopt, ?EPOCH, 7, info(2)}}.

info(Sync) ->
    #{history => [], view => #{'n1@t' => live, 'n2@t' => live, ?SELF => {{-1000, ?SELF}, 0}},
      mem => members(), clashes => #{}, sessions => #{}, sync => Sync, prev => ?EPOCH}.

members() -> sderl_membership:new(['n1@t', 'n2@t', ?SELF]).

%% A member that has taken a snapshot of the first one's log; it votes, or came back empty.
follower(Votes) ->
    Others = ['n1@t', 'n2@t'],
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => ?SELF, addr => self, inc => 1,
                           now => 0, clock => 1000, mem => members(), linked => Others,
                           mode => majority, fresh => Votes}),
    Known = #{epoch => ?EPOCH, lineage => ?EPOCH, num => 7, lead => 'n1@t', syncing => false,
              mode => majority},
    Hellos = [{msg, N, {hello, {addr, N}, 1, members(), Known}} || N <- Others],
    Taken = [{msg, 'n1@t', {adopt, ?EPOCH, 7, info(1)}},
             {msg, 'n1@t', {chunk, ?EPOCH, 1, 1, [], true}}],
    {_, S} = step(10, [start | Hellos] ++ Taken, S0),
    ?assertEqual(follower, sderl_core:role(S)),
    S.
