%% Two monitoring nodes of one cluster: what both have of what one of them tells.
-module(sderl_alarms_copy_tests).

-include_lib("eunit/include/eunit.hrl").

-define(WALL, 1_700_000_000_000).
-define(ID, ~"x|a@h").

route(Name) ->
    #{name => Name, least => minor, timeout_s => 5, target => #{program => ~"/x", arguments => []}}.

copy(Routes) ->
    {sderl_alarms_core:new(-100_000), sderl_alarms_outbox:new(Routes, #{}),
     sderl_alarms_replica:new({0, 0})}.

leader() -> leader(copy([route(~"r")])).

leader(Copy) ->
    {_, Leader} = sderl_alarms_copy:look(true, [], 0, ?WALL, Copy),
    Leader.

%% One that has all that the leader has.
follower(Leader) -> follower(Leader, copy([route(~"r")])).

follower(Leader, Copy0) ->
    {[{b, Ask}], Copy} = sderl_alarms_copy:look(false, [b], 0, ?WALL, Copy0),
    heard(asked(Ask, Leader), Copy).

asked({sderl_alarms_ask, 1, _} = Ask, Leader) ->
    {[{_, All}], Leader} = sderl_alarms_copy:hear(Ask, Leader),
    {ok, All} = sderl_alarms_message:check(All),
    All.

heard(Message, Copy) ->
    {[], New} = sderl_alarms_copy:hear(Message, Copy),
    New.

%% A look at which the value is over, or is not.
look(Is, Now, {Core, Outbox, Replica}) ->
    Say = fun() -> #{text => ~"t", cause => ~"", remedy => ~"", tags => [], value => 1,
                     threshold => 1, unit => ~""} end,
    Passed = case Is of
        over -> #{?ID => #{alarm => ~"x", place => #{node => ~"a@h"}, nodes => [~"a@h"],
                           groups => [], over => minor, holds => minor, for_ms => 0, say => Say}};
        back -> #{}
    end,
    {Notes, New} = sderl_alarms_core:step(Passed, fun(_) -> clear end, Now, ?WALL + Now, Core),
    sderl_alarms_copy:add(Notes, ?WALL + Now, {New, Outbox, Replica}).

act(Do, Now, {Core, Outbox, Replica}) ->
    {ok, Notes, New} = sderl_alarms_core:act(
        #{do => Do, key => ~"k", id => ?ID, by => ~"ann", at => ?WALL + Now, text => ~""}, Now,
        ?WALL + Now, Core),
    sderl_alarms_copy:add(Notes, ?WALL + Now, {New, Outbox, Replica}).

news([{others, Message}]) ->
    {ok, Message} = sderl_alarms_message:check(Message),
    Message.

waiting({_, Outbox, _}) ->
    #{boxes := Boxes} = sderl_alarms_outbox:save(Outbox),
    #{Name => [Kind || #{kind := Kind} <- Items] || Name := #{items := Items} <- Boxes}.

%% The first that waits is sent, and taken.
delivered(Route, {Core, Outbox, Replica}) ->
    {[{#{name := Route}, #{id := Id}, 1}], Sent} = sderl_alarms_outbox:due(0, Outbox),
    sderl_alarms_copy:done(Route, Id, ok, 0, {Core, Sent, Replica}).

%% ---------------------------------------------------------------- cases

same_test() ->
    {Raised, L1} = look(over, 1_000, leader()),
    F1 = heard(news(Raised), follower(leader())),
    ?assertEqual({#{~"r" => [raised]}, #{~"r" => [raised]}}, {waiting(L1), waiting(F1)}),
    {Done, L2} = delivered(~"r", L1),
    ?assertEqual({#{~"r" => []}, #{~"r" => []}}, {waiting(L2), waiting(heard(news(Done), F1))}).

%% That a route is done with something is lost on the way: the next word shows it.
done_is_missed_test() ->
    {Raised, L1} = look(over, 1_000, leader()),
    F1 = heard(news(Raised), follower(leader())),
    {_, L2} = delivered(~"r", L1),
    {Still, L2} = sderl_alarms_copy:still(L2),
    {[{_, Ask}], F2} = sderl_alarms_copy:hear(news(Still), F1),
    ?assertEqual(#{~"r" => []}, waiting(heard(asked(Ask, L2), F2))).

%% An attempt that began here ends when another one leads, which tells the rest.
done_by_a_former_leader_test() ->
    {Raised, {Core, Outbox, Replica}} = look(over, 1_000, leader()),
    {[{_, #{id := Id}, 1}], Sent} = sderl_alarms_outbox:due(0, Outbox),
    {[], Former} = sderl_alarms_copy:look(false, [b], 2_000, ?WALL, {Core, Sent, Replica}),
    Third = heard(news(Raised), follower(leader())),
    {_, Leader} = sderl_alarms_copy:look(true, [b], 2_000, ?WALL, Third),
    {[{others, Done}], _} = sderl_alarms_copy:done(~"r", Id, ok, 3_000, Former),
    {ok, Done} = sderl_alarms_message:check(Done),
    {[{others, {sderl_alarms_news, 1, _, _, _, [{done, ~"r", Id}]}}], L1} =
        sderl_alarms_copy:hear(Done, Leader),
    ?assertEqual(#{~"r" => []}, waiting(L1)),
    %% Twice says nothing new.
    ?assertEqual({[], L1}, sderl_alarms_copy:hear(Done, L1)).

%% Somebody has seen it, and the leader has gone before it told so: the next one does, once.
acknowledged_after_a_takeover_test() ->
    {Raised, L1} = look(over, 1_000, leader()),
    {Done, _} = delivered(~"r", L1),
    F1 = lists:foldl(fun heard/2, follower(leader()), [news(Raised), news(Done)]),
    {[], F2} = look(over, 2_000, F1),
    {[], F3} = act(acknowledge, 2_000, F2),
    {_, F4} = sderl_alarms_copy:look(true, [b], 3_000, ?WALL + 3_000, F3),
    {Told, F5} = look(over, 4_000, F4),
    ?assertEqual(#{~"r" => [acknowledged]}, waiting(F5)),
    {[], F6} = look(over, 5_000, F5),
    %% Who follows that one has it as told, also where the word of it comes later.
    {[{b, Ask}], G0} = sderl_alarms_copy:look(false, [b], 0, ?WALL, copy([route(~"r")])),
    {[], G1} = look(over, 5_000, heard(asked(Ask, F6), G0)),
    {[], G2} = act(acknowledge, 2_000, G1),
    {_, G3} = sderl_alarms_copy:look(true, [b], 6_000, ?WALL + 6_000, G2),
    ?assertMatch({[], _}, look(over, 7_000, G3)),
    ?assertMatch({sderl_alarms_news, 1, _, _, _, [{add, #{kind := acknowledged}}]}, news(Told)).

%% The rules of the leader say who is told; another node has the queues that its own rules name.
rules_differ_test() ->
    L0 = leader(copy([route(~"r"), route(~"s")])),
    F0 = follower(L0, copy([(route(~"r"))#{least => major}, route(~"t")])),
    {Raised, _} = look(over, 1_000, L0),
    ?assertEqual(#{~"r" => [raised], ~"t" => []}, waiting(heard(news(Raised), F0))).

%% The routes change at a follower, and then at the leader: both have the queues that both name.
reload_test() ->
    Both = [route(~"r"), route(~"s")],
    {Raised, L1} = look(over, 1_000, leader(copy(Both))),
    F1 = heard(news(Raised), follower(leader(copy(Both)), copy([route(~"r")]))),
    {[{b, Ask}], F2} = sderl_alarms_copy:look(false, [b], 2_000, ?WALL,
                                              sderl_alarms_copy:change(Both, F1)),
    F3 = heard(asked(Ask, L1), F2),
    ?assertEqual(#{~"r" => [raised], ~"s" => [raised]}, waiting(F3)),
    L2 = sderl_alarms_copy:change(Both, sderl_alarms_copy:change([route(~"r")], L1)),
    {Still, _} = sderl_alarms_copy:still(L2),
    {[{_, Again}], F4} = sderl_alarms_copy:hear(news(Still), F3),
    ?assertEqual(#{~"r" => [raised], ~"s" => []}, waiting(heard(asked(Again, L2), F4))).

%% Both have led, and meet: the earlier one follows, and has what the later one told.
two_leaders_test() ->
    {_, Early} = look(over, 1_000, leader()),
    {_, Late0} = sderl_alarms_copy:look(true, [], 9_000, ?WALL + 9_000, copy([route(~"r")])),
    {Raised, Late} = look(over, 10_000, Late0),
    {[{_, Ask}], Former} = sderl_alarms_copy:hear(news(Raised), Early),
    {[], Same} = look(back, 11_000, heard(asked(Ask, Late), Former)),
    ?assertEqual(waiting(Late), waiting(Same)),
    %% And not the other way round.
    {Still, _} = sderl_alarms_copy:still(Early),
    ?assertEqual({[], Late}, sderl_alarms_copy:hear(news(Still), Late)).

rubbish_test_() ->
    [?_assertEqual({error, not_a_message}, sderl_alarms_message:check(M))
     || M <- [{}, {sderl_alarms_ask}, {sderl_alarms_ask, 1}, {sderl_alarms_ask, 2, a}, [], x,
              {sderl_alarms_news, 1, a, {0, 0}, {0, 1}, [x]},
              {sderl_alarms_news, 1, a, {0, 0}, {0, 1}, [{done, ~"r"}]},
              {sderl_alarms_news, 1, a, {0, 0}, {0, 1}, [{add, #{}}]}]].
