%% SPDX-License-Identifier: Apache-2.0
-module(sderl_core_gone_tests).
-moduledoc """
Majority groups: how members that have left count. A removed member that has left agreed to the
batch by which it left, and to no other; it knew all members of that time; and a member whose vote
does not count agrees to nothing.
""".
-include_lib("eunit/include/eunit.hrl").

-define(SELF, 'n3@t').
-define(EPOCH, {10_000, 'n1@t'}).
-define(TICK, 1000).

%% All other members have left: this one is the group. Unless those had further members, of which it
%% never heard.
all_that_is_left_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF],
    {_, Alone} = step(20, [{nodedown, 'n1@t'}, {nodedown, 'n2@t'}], follower(Nodes, true)),
    Mem = sderl_membership:remove(['n1@t', 'n2@t'], 1, sderl_membership:new(Nodes)),
    Grown = sderl_membership:add(['n4@t', 'n5@t', 'n6@t'], Mem),
    ?assertEqual(coord, sderl_core:role(told_gone(['n1@t', 'n2@t'], Mem, Alone))),
    ?assertEqual(orphan, sderl_core:role(told_gone(['n1@t', 'n2@t'], Grown, Alone))).

%% A member counts as having left also if it left by a batch that this one lacks and that removes
%% both.
who_went_by_a_batch_that_removes_us_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF],
    {_, Alone} = step(20, [{nodedown, 'n1@t'}, {nodedown, 'n2@t'}], follower(Nodes, true)),
    Mem = sderl_membership:remove(['n2@t', ?SELF], 1, sderl_membership:new(Nodes)),
    Nobody = sderl_membership:remove(['n1@t'], 1, Mem),
    Waits = told_gone(['n2@t'], Mem, Alone),
    ?assertEqual(orphan, sderl_core:role(Waits)),
    ?assertEqual(coord, sderl_core:role(told_gone(['n1@t'], Nobody, Waits))).

%% The member serves alone. Once it leads it removes the others, by one batch: while some are still
%% to be removed it would be no majority. The batch is committed when they have said once more that
%% they left. If one of them comes back before that, this member decides nothing alone.
the_last_one_serves_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF],
    {_, Alone} = step(20, [{nodedown, 'n1@t'}, {nodedown, 'n2@t'}], follower(Nodes, true)),
    Mem = sderl_membership:remove(['n1@t', 'n2@t'], 1, sderl_membership:new(Nodes)),
    Told = [gone('n1@t', Mem), gone('n2@t', Mem)],
    Last = told_gone(['n1@t', 'n2@t'], Mem, Alone),
    {Fx1, S1} = asked([x | self()], 10_000, Last),
    ?assertEqual({[yes], Nodes}, {answers(Fx1), sderl_core:members(S1)}),
    {_, S2} = step(11_000, Told, S1),
    {Fx2, S3} = asked([y | list_to_pid("<0.0.0>")], 11_000, S2),
    ?assertEqual({[], [?SELF]}, {answers(Fx2), sderl_core:members(S3)}),
    {_, S4} = step(12_000, Told, S3),
    {Fx4, S5} = asked({x}, 12_000, S4),
    {Fx5, _} = asked({x}, 13_000, S5),
    ?assertEqual({[yes], [ok, ok]}, {answers(Fx4), answers(Fx5)}),
    Hello = {hello, {addr, 'n1@t'}, 2, sderl_membership:new(Nodes),
             #{epoch => {-1, 'n1@t'}, lineage => {-1, 'n1@t'}, num => 0, lead => undefined,
               syncing => false, mode => majority}},
    {_, Back} = step(12_000, [{nodeup, 'n1@t'}, {msg, 'n1@t', Hello}], S1),
    {Fx6, _} = asked({x}, 12_000, Back),
    ?assertEqual([], answers(Fx6)).

asked(Op, Now, S0) ->
    Store = sderl_sim_store:index(build, sderl_sim_store:new(sderl_core:members(S0))),
    {Fx1, S1} = step(Now, [{op, make_ref(), Op}], S0),
    {Fx2, S2} = sderl_core:propose(Now, sderl_sim_store, Store, S1),
    {Fx3, S} = sderl_core:propose(Now, sderl_sim_store, Store, S2),
    {Fx1 ++ Fx2 ++ Fx3, S}.

answers(Fx) -> [V || {replies, Replies} <- Fx, {_, V} <- Replies].

%% Of five members two are removed. Two members have the batch, and with one of the removed ones
%% they are a majority of the five: if that one left by this batch, and not by another one that
%% other members may have.
who_went_by_this_batch_agreed_to_it_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF, 'n4@t', 'n5@t'],
    {_, S} = step(20, [removal(['n1@t', 'n2@t'], Nodes)], follower(Nodes, true)),
    {_, Alone} = step(30, [{nodedown, N} || N <- ['n1@t', 'n2@t', 'n5@t']], S),
    Ours = sderl_membership:remove(['n1@t', 'n2@t'], 1, sderl_membership:new(Nodes)),
    Theirs = sderl_membership:remove(['n2@t', 'n5@t'], 1, sderl_membership:new(Nodes)),
    ?assertEqual(candidate, sderl_core:role(told_gone(['n2@t'], Ours, Alone))),
    ?assertEqual(orphan, sderl_core:role(told_gone(['n2@t'], Theirs, Alone))).

%% A removed member that loses the majority leaves. One that came back empty may have made a promise
%% in a former life, which it does not know: it leaves when the batch is known to be committed.
who_does_not_vote_does_not_go_unheard_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF],
    Unheard = fun(Votes) ->
        {_, S} = step(20, [removal([?SELF], Nodes)], follower(Nodes, Votes)),
        step(30, [{nodedown, 'n1@t'}, {nodedown, 'n2@t'}], S)
    end,
    {_, Voter} = Unheard(true),
    ?assertMatch({[{left, removed, _}], _}, ticks(30, Voter)),
    {_, Empty} = Unheard(false),
    {[], Waits} = ticks(30, Empty),
    Without = sderl_membership:remove([?SELF], 1, sderl_membership:new(Nodes)),
    Less = sderl_membership:remove(['n2@t'], 1, Without),
    Told = fun(Mem) ->
        [E || {left, _, _} = E <- element(1, step(60_000, [gone('n2@t', Mem)], Waits))]
    end,
    ?assertEqual([], Told(Less)),
    ?assertMatch([{left, removed, _}], Told(Without)).

%% Nor does a member leave that has promised another epoch, which may begin without that batch.
who_has_promised_does_not_go_unheard_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF],
    {_, S1} = step(20, [removal([?SELF], Nodes), {nodedown, 'n1@t'}], follower(Nodes, true)),
    {Fx, S2} = step(30, [{msg, 'n2@t', {collect, {20_000, 'n2@t'}, ?EPOCH, #{}}}], S1),
    ?assertMatch([_], [E || {send, _, M} = E <- Fx, element(1, M) =:= promised]),
    {_, S3} = step(40, [{nodedown, 'n2@t'}], S2),
    ?assertMatch({[], _}, ticks(40, S3)).

%% The coordinator left by the last batch, and this member did not hear that it is committed. The
%% coordinator falls silent, and no candidate waits for it, but one that is not elected without it
%% asks it. One of the others has no vote.
who_fell_silent_is_asked_whether_it_left_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF, 'n4@t'],
    {_, S} = step(20, [removal(['n1@t'], Nodes)], follower(Nodes, true)),
    {Fx, Alone, Now} = stands(1000, S),
    ?assertEqual(orphan, sderl_core:role(Alone)),
    ?assertMatch([{'n1@t', #{ask := true}}], [{N, I} || {hello, N, {hello, _, _, _, I}} <- Fx]),
    Mem = sderl_membership:remove(['n1@t'], 1, sderl_membership:new(Nodes)),
    {_, Told} = step(Now, [gone('n1@t', Mem)], Alone),
    {_, Led, _} = stands(Now + ?TICK, Told),
    ?assertEqual(coord, sderl_core:role(Led)).

%% The next election, and what the others answer.
stands(Now, S0) when Now < 30_000 ->
    {Fx, S1} = step(Now, [tick], S0),
    case [E || {send, {addr, 'n2@t'}, {collect, E, _, _}} <- Fx] of
        [] -> stands(Now + ?TICK, S1);
        [E] ->
            Promised = [{msg, N, {promised, E, {?EPOCH, 8}, [], Standing}}
                        || {N, Standing} <- [{'n2@t', votes}, {'n4@t', partial}]],
            {Said, S} = step(Now + 10, Promised, S1),
            {Said, S, Now + 10}
    end.

%% A new coordinator leads the others to the batch that removes it, and tells all that the batch is
%% committed as it leaves: otherwise they would wait until they miss it.
a_successor_that_goes_tells_all_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF, 'n4@t'],
    {msg, _, {batch, _, _, _, Items}} = Removal = removal([?SELF], Nodes),
    {_, S1} = step(20, [Removal, {nodedown, 'n1@t'}], follower(Nodes, true)),
    {Fx1, S2} = step(30, [{msg, 'n2@t', {handover, ?EPOCH}}], S1),
    [E] = lists:usort([C || {send, _, {collect, C, _, _}} <- Fx1]),
    {Fx2, S3} = step(40, [{msg, N, {promised, E, {?EPOCH, 8}, Items, votes}}
                          || N <- ['n2@t', 'n4@t']], S2),
    ?assertMatch([_, _], [To || {send, To, {lead, _, 8, _, _}} <- Fx2]),
    {Fx3, _} = step(50, [{msg, N, {ack, E, 8, none}} || N <- ['n2@t', 'n4@t']], S3),
    ?assertEqual([{addr, 'n2@t'}, {addr, 'n4@t'}],
                 lists:sort([To || {send, To, {commit, C, 8}} <- Fx3, C =:= E])),
    ?assertMatch([_], [Left || {left, removed, _} = Left <- Fx3]).

%% The coordinator left by the last batch, and its node is gone. One of the others knows that all
%% have the batch. The member that stands for election before it does not know, counts the former
%% member, and is never elected: a third member has no vote.
who_knows_that_it_left_leads_test() ->
    Nodes = ['n1@t', 'n2@t', ?SELF, 'n4@t'],
    Said = #{'n2@t' => [], ?SELF => [{msg, 'n1@t', {commit, ?EPOCH, 8}}], 'n4@t' => []},
    States = #{N => element(2, step(20, [removal(['n1@t'], Nodes) | Heard],
                                    follower(N, Nodes, N =/= 'n4@t')))
               || N := Heard <- Said},
    Events = [{At, N, Event} || {At, Event} <- [{30, {nodedown, 'n1@t'}}, {1000, tick}],
                                N <- maps:keys(States)],
    ?assertEqual(?SELF, elected(Events, States)).

%% Runs the members until one leads; all messages arrive.
elected([{At, N, Event} | Events], States) when At < 60_000 ->
    {Fx, S} = step(At, [Event], map_get(N, States)),
    Said = [{To, Msg} || {send, {addr, To}, Msg} <- Fx] ++ [{To, Msg} || {hello, To, Msg} <- Fx],
    Next = [{At + ?TICK, N, tick} || Event =:= tick]
        ++ [{At + Ms, N, wake} || {wake, Ms} <- Fx]
        ++ [{At + 10, To, {msg, N, Msg}} || {To, Msg} <- Said, is_map_key(To, States)],
    case sderl_core:role(S) of
        coord -> N;
        _ -> elected(lists:keymerge(1, Events, lists:keysort(1, Next)), States#{N := S})
    end;
elected(_, _) -> nobody.

told_gone(Nodes, Mem, S0) ->
    {_, S1} = step(40, [gone(N, Mem) || N <- Nodes], S0),
    element(2, ticks(40, S1)).

gone(N, Mem) -> {msg, N, {gone, removed, Mem}}.

removal(Out, Nodes) ->
    Mem = sderl_membership:remove(Out, 1, sderl_membership:new(Nodes)),
    {msg, 'n1@t', {batch, ?EPOCH, 8, 7, [{mem, Mem, Out}]}}.

step(Now, Events, S) -> sderl_core:step(Now, Events, S).

%% Six seconds without any message: the effects that say that this member left, and its role then.
ticks(Now, S0) ->
    lists:foldl(fun(I, {Left, S}) ->
        {Fx, S1} = step(Now + I * ?TICK, [tick], S),
        {Left ++ [E || {left, _, _} = E <- Fx], S1}
    end, {[], S0}, lists:seq(1, 6)).

%% A member that follows the first and is linked to all; it votes, or came back empty.
follower(Nodes, Votes) -> follower(?SELF, Nodes, Votes).

follower(Self, Nodes, Votes) ->
    Others = lists:delete(Self, Nodes),
    Mem = sderl_membership:new(Nodes),
    S0 = sderl_core:init(#{group => g, uid => <<"u">>, self => Self, addr => {addr, Self},
                           inc => 1, now => 0, clock => 1000, mem => Mem, linked => Others,
                           mode => majority, fresh => Votes}),
    Known = #{epoch => ?EPOCH, lineage => ?EPOCH, num => 7, lead => 'n1@t', syncing => false,
              mode => majority},
    Hellos = [{msg, N, {hello, {addr, N}, 1, Mem, Known}} || N <- Others],
    Info = #{history => [], view => (maps:from_keys(Others, live))#{Self => {{-1000, Self}, 0}},
             mem => Mem, clashes => #{}, sessions => #{}, sync => 1, prev => ?EPOCH},
    Taken = [{msg, 'n1@t', {adopt, ?EPOCH, 7, Info}},
             {msg, 'n1@t', {chunk, ?EPOCH, 1, 1, [], true}}],
    {_, S} = step(10, [start | Hellos] ++ Taken, S0),
    ?assertEqual(follower, sderl_core:role(S)),
    S.
