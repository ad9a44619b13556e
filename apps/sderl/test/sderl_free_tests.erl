%% SPDX-License-Identifier: Apache-2.0
-module(sderl_free_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

met_test_() ->
    [?_assertEqual(Expected, sderl_free:met(Own, Theirs, Mixes))
     || {Own, Theirs, Mixes, Expected} <- [{none, <<1>>, true, nothing}, {<<1>>, <<1>>, true, nothing},
                                           {<<1>>, <<2>>, true, grow}, {<<2>>, <<1>>, true, answer},
                                           {<<1>>, <<2>>, false, nothing}, {<<2>>, <<1>>, false, nothing}]].

greeted_test_() ->
    [?_assertEqual(Expected, sderl_free:greeted(Own, Theirs, Counted, Mixes))
     || {Own, Theirs, Counted, Mixes, Expected} <-
            [{<<1>>, <<1>>, true, true, pass}, {<<1>>, <<1>>, false, false, pass}, {<<2>>, <<1>>, true, true, move},
             {<<1>>, <<2>>, true, true, grow}, {<<2>>, <<1>>, false, true, nothing}, {none, <<1>>, true, true, decline},
             {none, <<1>>, false, true, nothing}, {<<2>>, <<1>>, true, false, decline},
             {<<1>>, <<2>>, true, false, decline}]].

older_is_lower_test() ->
    Uids = [begin later(), sderl_free:uid() end || _ <- lists:seq(1, 5)],
    ?assertEqual(Uids, lists:usort(Uids)),
    ?assert(lists:all(fun(U) -> byte_size(U) =:= 16 end, Uids)).

%% Awaits the next microsecond: within one, chance decides which of two islands is the older one.
later() -> later(erlang:system_time(microsecond)).

later(Us) ->
    case erlang:system_time(microsecond) > Us of
        true -> ok;
        false -> later(Us)
    end.

%% Whoever meets whom in whatever order: in the end those that met, directly or over others, are
%% one island, the oldest of theirs, and nobody else is in it.
converges_test_() -> sderl_prop:eunit("free islands: those that met are one", 300, fun prop_converges/0).

prop_converges() ->
    ?FORALL({Count, Meetings, Order}, {integer(1, 7), list({integer(1, 7), integer(1, 7)}), list(nat())},
            begin
                Pairs = [{1 + A rem Count, 1 + B rem Count} || {A, B} <- Meetings],
                Start = #{N => {N, [N]} || N <- lists:seq(1, Count)},
                Msgs = [{meet, A, B} || {A, B} <- Pairs, A =/= B],
                End = settle(run(Msgs, Order, Start), Count),
                Expected = #{N => {lists:min(P), P} || P <- parts(Pairs, Count), N <- P},
                ?WHENFAIL(io:format("~p~n~p~n", [End, Expected]), End =:= Expected)
            end).

%% Nodes boot, link to each other and ask each other, in any order: only who asked is in one island with
%% whom it asked (rule 22). Without that rule every link would do.
rule_22_links_alone_merge_nothing_test_() ->
    sderl_prop:eunit("free islands: links alone merge nothing", 300, fun() -> prop_links(sderl_free) end).

without_rule_22_test_() ->
    sderl_prop:refuted("free islands: links alone merge nothing, without rule 22", 300, fun() -> prop_links(sderl_plant:module(sderl_free, [rule_22])) end).

prop_links(Free) ->
    ?FORALL({Count, Events, Order}, {integer(2, 6), list({oneof([linked, asked, {freed, false}]), integer(1, 6), integer(1, 6)}), list(nat())},
            begin
                Pairs = [{What, 1 + A rem Count, 1 + B rem Count} || {What, A, B} <- Events],
                Start = #{N => {N, [N]} || N <- lists:seq(1, Count)},
                Msgs = [{meet, A, B} || {What, A, B} <- Pairs, A =/= B, What =:= asked orelse Free:merges(What)],
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
        {[], lists:foldl(fun(B, X) -> {_, Y} = deliver({hello, Uid, Ms, B}, X), Y end, Acc, lists:delete(A, Ms))}
    end, {[], S}, lists:seq(1, Count)),
    case Next of S -> S; _ -> settle(Next, Count) end.

parts(Pairs, Count) ->
    lists:usort(lists:foldl(fun({A, B}, Parts) ->
        {With, Without} = lists:partition(fun(P) -> lists:member(A, P) orelse lists:member(B, P) end, Parts),
        [lists:usort(lists:append(With)) | Without]
    end, [[N] || N <- lists:seq(1, Count)], Pairs)).
