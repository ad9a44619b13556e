%% SPDX-License-Identifier: Apache-2.0
-module(sderl_free_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include("../src/core/sderl_op.hrl").

met_test_() ->
    [?_assertEqual(Expected, sderl_free:met(Own, Theirs, Mixes))
     || {Own, Theirs, Mixes, Expected} <- [{none, <<1>>, true, nothing},
                                           {<<1>>, <<1>>, true, nothing},
                                           {<<1>>, <<2>>, true, grow},
                                           {<<2>>, <<1>>, true, answer},
                                           {<<1>>, <<2>>, false, nothing},
                                           {<<2>>, <<1>>, false, nothing}]].

greeted_test_() ->
    [?_assertEqual(Expected, sderl_free:greeted(Own, Theirs, Counted, Mixes))
     || {Own, Theirs, Counted, Mixes, Expected} <-
            [{<<1>>, <<1>>, true, true, pass}, {<<1>>, <<1>>, false, false, pass},
             {<<2>>, <<1>>, true, true, move},
             {<<1>>, <<2>>, true, true, grow}, {<<2>>, <<1>>, false, true, nothing},
             {none, <<1>>, true, true, decline},
             {none, <<1>>, false, true, nothing}, {<<2>>, <<1>>, true, false, decline},
             {<<1>>, <<2>>, true, false, decline}]].

older_is_lower_test() ->
    Uids = [begin later(), sderl_free:uid() end || _ <- lists:seq(1, 5)],
    ?assertEqual(Uids, lists:usort(Uids)),
    ?assert(lists:all(fun(U) -> byte_size(U) =:= 16 end, Uids)).

%% The process of the island that a node leaves goes on until the removal is ordered: a member that
%% says hello is greeted by it. Members that were told that it is out gave up a coordinator that
%% waited for them.
greeted_while_it_departs_test() ->
    {Own, Other, Hello} = {<<"own">>, <<"other">>, {hello, addr, 1, #{}, #{}}},
    Mem = sderl_membership:new([node(), 'n2@t']),
    Heard = alone(fun() ->
        true = ets:insert(sderl_groups, {undefined, Own, self(), [node(), 'n2@t'], node()}),
        ok = sderl_dir:depart(),
        Greet = fun(Uid) ->
            ok = sderl_free:hello(Uid, {'n2@t', undefined}, self(), Mem, Hello),
            inbox()
        end,
        [Greet(Uid) || Uid <- [Own, Other]]
    end),
    ?assertMatch([[{sderl_greeted, Own, 'n2@t', undefined, Hello}],
                  [{sderl, _, Other, _, away}, {sderl, _, Other, _, {mem, _}}]], Heard).

%% What the tables of a node are for, in a process with which they go.
alone(Fun) ->
    {_, Monitor} = spawn_monitor(fun() -> {ok, _} = sderl_sup:init([]), exit({gives, Fun()}) end),
    receive {'DOWN', Monitor, process, _, {gives, Value}} -> Value end.

inbox() -> receive Message -> [Message | inbox()] after 0 -> [] end.

%% Who moves to another island has the members of that one, also where the last batch of its own
%% changed the members: the log that its process finds is of the former island.
moved_to_other_members_test() ->
    Start = #{group => undefined, addr => self(), inc => 1, now => 0, clock => 1000},
    Own = Start#{uid => <<"2">>, self => 'n1@t'},
    S0 = sderl_core:init(Own#{mem => sderl_membership:new(['n1@t']), found => true}),
    {_, S1} = sderl_core:step(1, [start], S0),
    {_, S2} = sderl_core:step(2, [{op, none, #add{nodes = ['n2@t']}}], S1),
    Store = sderl_sim_store:index(build, sderl_sim_store:new(['n1@t'])),
    {Fx, S3} = sderl_core:propose(3, sderl_sim_store, Store, S2),
    [{Epoch, Num, Items}] = [{E, N, I} || {apply, E, N, I, _} <- Fx],
    ?assertEqual(['n1@t', 'n2@t'], sderl_core:members(S3)),
    Log = Own#{log => {Num, Items}, log_epoch => Epoch},
    Durable = sderl_core:moved(sderl_core:durable(S3), sderl_membership:new(['n1@t', 'n3@t'])),
    Moved = sderl_core:init(Log#{uid := <<"1">>, durable => Durable}),
    ?assertEqual(['n1@t', 'n3@t'], sderl_core:members(Moved)),
    %% In the former island the process comes back with what that had.
    Again = sderl_core:init(Log#{durable => sderl_core:durable(S3)}),
    ?assertEqual(['n1@t', 'n2@t'], sderl_core:members(Again)).

%% Awaits the next microsecond: within one, chance decides which of two islands is the older one.
later() -> later(erlang:system_time(microsecond)).

later(Us) ->
    case erlang:system_time(microsecond) > Us of
        true -> ok;
        false -> later(Us)
    end.

%% Whoever meets whom in whatever order: in the end those that met, directly or over others, are
%% one island, the oldest of theirs, and nobody else is in it.
converges_test_() ->
    sderl_prop:eunit("free islands: those that met are one", 300, fun prop_converges/0).

prop_converges() ->
    ?FORALL({Count, Meetings, Order},
            {integer(1, 7), list({integer(1, 7), integer(1, 7)}), list(nat())},
            begin
                Pairs = [{1 + A rem Count, 1 + B rem Count} || {A, B} <- Meetings],
                Start = #{N => {N, [N]} || N <- lists:seq(1, Count)},
                Msgs = [{meet, A, B} || {A, B} <- Pairs, A =/= B],
                End = settle(run(Msgs, Order, Start), Count),
                Expected = #{N => {lists:min(P), P} || P <- parts(Pairs, Count), N <- P},
                ?WHENFAIL(io:format("~p~n~p~n", [End, Expected]), End =:= Expected)
            end).

%% Nodes boot, link to each other and ask each other, in any order: only who asked is in one island
%% with whom it asked (rule 22). Without that rule every link would do.
rule_22_links_alone_merge_nothing_test_() ->
    sderl_prop:eunit("free islands: links alone merge nothing", 300,
                     fun() -> prop_links(sderl_free) end).

without_rule_22_test_() ->
    sderl_prop:refuted("free islands: links alone merge nothing, without rule 22", 300,
                       fun() -> prop_links(sderl_plant:module(sderl_free, [rule_22])) end).

prop_links(Free) ->
    ?FORALL({Count, Events, Order},
            {integer(2, 6),
             list({oneof([linked, asked, {freed, false}]), integer(1, 6), integer(1, 6)}),
             list(nat())},
            begin
                Pairs = [{What, 1 + A rem Count, 1 + B rem Count} || {What, A, B} <- Events],
                Start = #{N => {N, [N]} || N <- lists:seq(1, Count)},
                Msgs = [{meet, A, B}
                        || {What, A, B} <- Pairs, A =/= B, What =:= asked orelse Free:merges(What)],
                End = settle(run(Msgs, Order, Start), Count),
                Asked = [{A, B} || {asked, A, B} <- Pairs],
                Expected = #{N => {lists:min(P), P} || P <- parts(Asked, Count), N <- P},
                ?WHENFAIL(io:format("~p~n~p~n", [End, Expected]), End =:= Expected)
            end).

%% Nodes are numbers and so are uids. A word is delivered in any order.
run([], _, S) -> S;
run(Msgs, Order, S) ->
    {K, Rest} = case Order of [] -> {0, []}; [O | Os] -> {O, Os} end,
    {Before, [Msg | After]} = lists:split(K rem length(Msgs), Msgs),
    {More, S1} = deliver(Msg, S),
    run(Before ++ After ++ More, Rest, S1).

deliver({meet, A, B}, S) ->
    #{A := {Uid, Ms}} = S,
    {[{told, A, B, Uid, Ms}], S};
deliver({told, A, B, Uid, Ms}, S) ->
    #{B := {Own, Mine}} = S,
    case sderl_free:met(<<Own>>, <<Uid>>, true) of
        grow -> {[], S#{B := {Own, lists:usort(Mine ++ Ms)}}};
        answer -> {[{told, B, A, Own, Mine}], S};
        nothing -> {[], S}
    end;
deliver({hello, Uid, Ms, B}, S) ->
    #{B := {Own, Mine}} = S,
    case sderl_free:greeted(<<Own>>, <<Uid>>, lists:member(B, Ms), true) of
        %% What the components' merge and the coordinator's order do to the members.
        Same when Same =:= pass; Same =:= grow -> {[], S#{B := {Own, lists:usort(Mine ++ Ms)}}};
        move -> {[], S#{B := {Uid, lists:usort(Mine ++ Ms)}}}
    end.

%% Members are greeted until nothing changes.
settle(S, Count) ->
    {_, Next} = lists:foldl(fun(A, {_, Acc}) ->
        #{A := {Uid, Ms}} = Acc,
        {[], lists:foldl(fun(B, X) -> {_, Y} = deliver({hello, Uid, Ms, B}, X), Y end, Acc,
                         lists:delete(A, Ms))}
    end, {[], S}, lists:seq(1, Count)),
    case Next of S -> S; _ -> settle(Next, Count) end.

parts(Pairs, Count) ->
    lists:usort(lists:foldl(fun({A, B}, Parts) ->
        {With, Without} =
            lists:partition(fun(P) -> lists:member(A, P) orelse lists:member(B, P) end, Parts),
        [lists:usort(lists:append(With)) | Without]
    end, [[N] || N <- lists:seq(1, Count)], Pairs)).
