%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_query_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% Queries over tables that are filled by hand: a group of 100 nodes whose values are held here.
%% Nothing runs that could answer a question, so what gives an answer has asked nobody.

-define(GROUP, workers).

table_test_() ->
    {foreach, fun tables/0, fun gone/1,
     [{"by a value", fun least/0}, {"nobody is asked", fun silent/0},
      {"the same by drawing", {timeout, 60, fun drawn/0}},
      {"who is down is left out", fun down/0}, {"what is too old", fun old/0},
      {"choices that do not show", fun pending/0},
      {"explained", fun explained/0}, {"distances", fun distances/0}, {"a spread", fun spread/0},
      {"prepared", fun prepared/0}, {"a table for people", fun text/0},
      sderl_prop:eunit("choices fit, and explanations agree with choices", 200, fun prop_agree/0)]}.

n(I) -> list_to_atom(lists:concat([n, I, '@host', I rem 10])).

tables() ->
    ok = sderl_dir:new(),
    Tables = [sderl_links:new(), sderl_place_pending:new(), sderl_place_cells:new()],
    ok = sderl_attr_table:new(),
    Nodes = [n(I) || I <- lists:seq(1, 100)],
    true = ets:insert(sderl_groups, {?GROUP, <<>>, self(), Nodes, hd(Nodes)}),
    [true = ets:insert(sderl_links, {N, true, 0, library, 0}) || N <- Nodes],
    tell(lists:seq(1, 100), fun(I) ->
        [{load, I}, {even, I rem 2 =:= 0}, {{label, zone}, lists:nth(1 + I rem 3, [a, b, c])}]
    end),
    Tables.

%% Of some nodes these values, of this moment.
tell(Is, Values) ->
    Now = erlang:monotonic_time(millisecond),
    [begin
         ok = sderl_attr_table:told(n(I), [{Name, V, ok, 0, 1000, 1} || {Name, V} <- Values(I)],
                                    Now),
         ok = sderl_attr_table:heard(n(I), Now)
     end || I <- Is].

gone(Tables) ->
    [ets:delete(T)
     || T <- Tables ++
             [sderl_names, sderl_groups, sderl_state, sderl_gone, sderl_known, sderl_refused,
              sderl_watches, sderl_forgotten, sderl_tried, sderl_attrs, sderl_attr_state],
        ets:whereis(T) =/= undefined].

spec(More) -> maps:merge(#{group => ?GROUP, max_age_ms => infinity, timeout_ms => 0}, More).

least() ->
    ?assertEqual(n(1), sderl_place:choose_node(spec(#{choose => {least, load}}))),
    ?assertEqual([n(100), n(99)],
                 sderl_place:choose_nodes(spec(#{choose => {most, load}, count => 2}))),
    ?assertEqual([n(I) || I <- lists:seq(2, 100, 2)],
                 sderl_place:choose_nodes(spec(#{where => {even, true}}))),
    ?assertEqual([n(2), n(4)],
                 sderl_place:choose_nodes(spec(#{where => [{even, true}, {load, lt, 5}]}))),
    ?assertEqual([n(2), n(4)],
                 sderl_place:choose_nodes(spec(#{where => {even, true}}), {load, lt, 5})),
    ?assertEqual([n(7)], sderl_place:choose_nodes([n(7), n(8)], [{even, false}])),
    ?assertEqual([n(3)], sderl_place:choose_nodes(spec(#{where => {load, le, 3},
                                                         prefer => {label, zone, equals, a},
                                                         choose => {least, load},
                                                         count => 1}))),
    ?assertEqual([], sderl_place:choose_nodes(spec(#{where => {nothing, ne, 1}}))),
    ?assertEqual([], sderl_place:choose_nodes(spec(#{choose => {least, nothing}}))),
    ?assertEqual([], sderl_place:choose_nodes(spec(#{choose => {least, {label, zone}}}))).

%% No process of the library runs here, and none of the calls sends a message to anybody.
silent() ->
    Self = self(),
    Pid = spawn(fun() ->
        receive go -> ok end,
        Self ! {chosen, [sderl_place:choose_node(spec(#{choose => C, where => {load, gt, 0}}))
                         || C <- [random, {least, load}, {two, load}]]}
    end),
    _ = erlang:trace(Pid, true, [send]),
    Pid ! go,
    receive
        {chosen, Nodes} ->
            ?assertEqual([true, true, true], [is_atom(N) andalso N =/= none || N <- Nodes])
    end,
    receive {trace, Pid, send, {chosen, _}, Self} -> ok end,
    receive {trace, Pid, send, _, _} = Other -> error(Other) after 0 -> ok end.

%% Drawing few of many is choosing among all: the same nodes as often. The bounds are 6 times the
%% deviation.
drawn() ->
    Spec = spec(#{choose => random, where => {even, true}, pending => false}),
    Chosen = [sderl_place:choose_node(Spec) || _ <- lists:seq(1, 10_000)],
    Times = maps:map(fun(_, L) -> length(L) end, maps:groups_from_list(fun(N) -> N end, Chosen)),
    ?assertEqual([n(I) || I <- lists:seq(2, 100, 2)] -- maps:keys(Times), []),
    [?assert(T > 110 andalso T < 290) || T <- maps:values(Times)],
    %% The better of two: the first half of the nodes three times in four.
    Two = [sderl_place:choose_node(spec(#{choose => {two, load}, adds => 0, pending => false}))
           || _ <- lists:seq(1, 10_000)],
    Low = length([N || N <- Two, lists:member(N, [n(I) || I <- lists:seq(1, 50)])]),
    ?assert(Low > 7_200 andalso Low < 7_800),
    %% Few that fit are found all the same.
    [?assertEqual(n(50), sderl_place:choose_node(spec(#{where => {load, eq, 50}, choose => C})))
     || C <- [random, {two, load}, {least, load}]].

down() ->
    [ets:delete(sderl_links, n(I)) || I <- lists:seq(1, 90)],
    ?assertEqual(n(91),
                 sderl_place:choose_node(spec(#{choose => {least, load}, pending => false}))),
    ?assertEqual([n(I) || I <- lists:seq(91, 95)], lists:sort(
        sderl_place:choose_nodes(spec(#{choose => {least, load}, count => 5}))
    )),
    [?assert(lists:member(sderl_place:choose_node(spec(#{choose => C})),
                          [n(I) || I <- lists:seq(91, 100)]))
     || C <- [random, {two, load}, {hash, k}, spread], _ <- lists:seq(1, 50)],
    ?assertEqual(10, length(sderl_place:choose_nodes(spec(#{})))),
    #{candidates := [#{verdict := dropped, why := down} | _]} = sderl_place:explain(spec(#{})).

old() ->
    Before = erlang:monotonic_time(millisecond) - 100_000,
    [ok = sderl_attr_table:told(n(I), [{load, 0, ok, 0, 1000, 2}], Before)
     || I <- lists:seq(1, 99)],
    ?assertEqual(n(100),
                 sderl_place:choose_node(spec(#{choose => {least, load}, max_age_ms => 50_000}))),
    #{candidates := [C | _]} =
        sderl_place:explain(spec(#{choose => {least, load}, max_age_ms => 50_000})),
    ?assertMatch(#{verdict := dropped, why := timeout}, C).

pending() ->
    tell(lists:seq(1, 100), fun(_) -> [{load, 10}] end),
    Chosen = [sderl_place:choose_node(spec(#{choose => {least, load}})) || _ <- lists:seq(1, 200)],
    ?assertEqual([2], lists:usort([length(L)
                                   || _ := L <- maps:groups_from_list(fun(N) -> N end, Chosen)])),
    #{candidates := [#{pending := 2, load := 12} | _]} =
        sderl_place:explain(spec(#{choose => {least, load}, count => 1})),
    %% As soon as a value comes that was measured later the choices are in it.
    [{N5, 2, Marks, At}] = ets:lookup(sderl_place_pending, n(5)),
    true = ets:insert(sderl_place_pending, {N5, 2, setelement(1, Marks, At - 1000), At - 1000}),
    tell([5], fun(_) -> [{load, 11}] end),
    ?assertEqual(n(5), sderl_place:choose_node(spec(#{choose => {least, load}}))),
    %% Neither all that fit nor keys count.
    ets:delete_all_objects(sderl_place_pending),
    _ = sderl_place:choose_nodes(spec(#{choose => {least, load}})),
    _ = sderl_place:choose_node(spec(#{choose => {hash, k}})),
    _ = sderl_place:choose_node(spec(#{pending => false})),
    _ = sderl_place:explain(spec(#{count => 1})),
    ?assertEqual([], ets:tab2list(sderl_place_pending)).

explained() ->
    #{choose := {least, load}, count := 1, chosen := [Chosen], candidates := Cs} =
        sderl_place:explain(spec(#{nodes => [n(1), n(2), n(3), n(9)],
                                   choose => {least, load},
                                   count => 1,
                                   where => [{load, lt, 9}, {even, exists}],
                                   prefer => {5, {even, true}},
                                   exclude => [n(I) || I <- lists:seq(4, 100), I =/= 9]})),
    ?assertEqual(n(2), Chosen),
    ?assertMatch(
        [#{node := _,
           verdict := fits,
           value := 1,
           score := 0,
           load := 1,
           pending := 0,
           conditions := [#{condition := {load, lt, 9}, holds := true, value := 1, age_ms := _},
                          #{holds := true}],
           prefer := [#{condition := {even, true}, holds := false, weight := 5}]},
         #{verdict := chosen, value := 2, score := 5},
         #{verdict := fits},
         #{verdict := dropped, why := #{condition := {load, lt, 9}, holds := false, value := 9}}],
        Cs
    ).

text() ->
    Text = fun(Spec) ->
        unicode:characters_to_list(sderl_place:explain_text(sderl_place:explain(spec(Spec))))
    end,
    Lines = string:split(Text(#{choose => {least, load}, count => 2, where => [{load, lt, 3}],
                                prefer => {even, true}}), "\n", all),
    ?assertEqual("{least,load}, 2 of 100: n2@host2, n1@host1", hd(Lines)),
    ?assertEqual(103, length(Lines)),
    ?assertMatch({match, _}, re:run(lists:nth(3, Lines), "^n1@host1 +chosen +0 +1 \\([0-9]+ ms "
                                                         "ago\\) +0 +\\{load,lt,3\\}: 1 \\([0-9]+ "
                                                         "ms ago\\); not \\{even,true\\}: false")),
    ?assertMatch({match, _},
                 re:run(lists:nth(5, Lines), "^n3@host3 +dropped +- +- +- +no \\{load,lt,3\\}: 3")),
    ?assertNotEqual(nomatch, string:find(
        Text(#{choose => {hash, k}, count => 1, where => {name, eq, <<"ü"/utf8>>}}), "none"
    )).

distances() ->
    Tree = {network,
            [{network, [{node, n(1)}, {node, n(2)}]}, {network, [{node, n(3)}, {node, node()}]}]},
    ok = sderl_dist:set(Tree),
    try
        ?assertEqual([n(3), n(1)], [
            hd(sderl_place:choose_nodes(spec(#{choose => nearest, count => 1}))),
            sderl_place:choose_node(spec(#{choose => {nearest, {node, n(2)}}, exclude => [n(2)]}))
        ]),
        ?assertEqual(
            [n(3), n(1), n(2)],
            [sderl_place:choose_node(spec(S#{pending => false})) || S <- [
                #{choose => nearest, where => {load, lt, 9}}, #{choose => {nearest, {node, n(1)}}},
                #{choose => {nearest, {node, n(1)}}, where => {even, true}}]]
        ),
        ?assertEqual([n(3)], sderl_place:choose_nodes(spec(#{where => {dist, lt, 1}}))),
        ?assertEqual([n(1), n(2)],
                     sderl_place:choose_nodes(spec(#{where => {dist, {node, n(1)}, lt, 1}}))),
        ?assertEqual([n(1), n(2)],
                     sderl_place:choose_nodes(spec(#{where => {dist, lt, 1}, from => n(1)}))),
        ?assertEqual([n(1), n(2), n(3)],
                     sderl_place:choose_nodes(spec(#{where => {dist, {group, ?GROUP}, eq, 0}}))),
        ?assertEqual([n(1), n(2), n(3)], sderl_place:choose_nodes(spec(#{where => {dist, ge, 0}}))),
        #{candidates := [#{why := #{value := Far, condition := {dist, lt, 1}}} | _]} =
            sderl_place:explain(spec(#{where => {dist, lt, 1}})),
        ?assert(Far >= 1)
    after
        ok = sderl_dist:set({network, []})
    end.

spread() ->
    Hosts = fun(Ns) ->
        [length(L) || _ := L <- maps:groups_from_list(fun sderl_dist_derive:host/1, Ns)]
    end,
    ?assertEqual(lists:duplicate(10, 1),
                 Hosts(sderl_place:choose_nodes(spec(#{choose => spread, count => 10})))),
    ?assertEqual(lists:duplicate(10, 2),
                 Hosts(sderl_place:choose_nodes(spec(#{choose => spread, count => 20})))),
    ?assertEqual(lists:duplicate(10, 1),
                 Hosts([sderl_place:choose_node(spec(#{choose => spread, pending => true}))
                        || _ <- lists:seq(1, 10)])),
    [?assertMatch(#{candidates := [#{value := Value} | _]},
                  sderl_place:explain(spec(#{choose => {spread, Over}, count => 1})))
     || {Over, Value} <- [{host, "host1"}, {group, ?GROUP}, {{label, zone}, b}]],
    Zones =
        [element(2, sderl_attr_table:cached(N, {label, zone}))
         || N <- sderl_place:choose_nodes(spec(#{choose => {spread, {label, zone}}, count => 6}))],
    ?assertEqual([a, a, b, b, c, c], lists:sort(Zones)).

%% What was prepared for the next choice holds no longer than what it was made of.
prepared() ->
    Choose = fun(Chooser) ->
        sderl_place:choose_node(spec(#{choose => Chooser, pending => false}))
    end,
    Prepared = fun() -> length(ets:tab2list(sderl_place_cells)) end,
    ?assertEqual([n(1), n(1)], [Choose({least, load}) || _ <- [1, 2]]),
    ?assertEqual(1, Prepared()),
    tell([70], fun(_) -> [{load, 0}] end),
    ?assertEqual(n(70), Choose({least, load})),
    ok = sderl_attr_table:forget(n(70)),
    ok = sderl_attr_table:heard(n(70), erlang:monotonic_time(millisecond)),
    ?assertEqual(n(1), Choose({least, load})),
    ok = sderl_attr_table:drop(n(1), [load]),
    ?assertEqual(n(2), Choose({least, load})),
    ok = sderl_attr_table:keep(n(80), load, -1, ok, {erlang:monotonic_time(millisecond), 1000}, 9),
    ?assertEqual(n(80), Choose({least, load})),
    %% Other members.
    true = ets:update_element(sderl_groups, ?GROUP, {4, [n(5), n(6)]}),
    ?assertEqual(n(5), Choose({least, load})),
    %% Other candidates are not the group's members.
    ?assertEqual(n(6), sderl_place:choose_node(spec(#{choose => {least, load}, exclude => [n(5)],
                                                      pending => false}))),
    ?assertEqual(1, Prepared()),
    %% Choices count from the same base, also when all were forgotten meanwhile.
    true = ets:update_element(sderl_groups, ?GROUP, {4, [n(5), n(6), n(7)]}),
    Spread = fun() ->
        lists:sort([sderl_place:choose_node(spec(#{choose => {spread, {label, zone}}}))
                    || _ <- [1, 2, 3]])
    end,
    ?assertEqual([n(5), n(6), n(7)], Spread()),
    ?assertEqual([n(5), n(6), n(7)], Spread()),
    ok = sderl_place_pending:clear(),
    ?assertEqual([n(5), n(6), n(7)], Spread()),
    %% There are never many.
    [sderl_place:choose_node(spec(#{choose => {spread, {attr, {x, I}}}}))
     || I <- lists:seq(1, 200)],
    ?assert(Prepared() =< 64).

%% What is chosen fits by every condition read one by one, is as many as asked for if so many fit,
%% and the explanation calls the same nodes fit.
prop_agree() ->
    ?FORALL({Where, Choose, Count}, {list(condition()), chooser(), oneof([all, range(1, 8)])},
            begin
                Spec = spec(#{where => Where, choose => Choose, count => Count, pending => false}),
                Chosen = sderl_place:choose_nodes(Spec),
                #{candidates := Cs, chosen := Explained} = sderl_place:explain(Spec),
                Fit = [N || #{node := N, verdict := V} <- Cs, V =/= dropped],
                Expected = [n(I)
                            || I <- lists:seq(1, 100), lists:all(fun(C) -> holds(C, I) end, Where)],
                Number =
                    case Count of all -> length(Expected); _ -> min(Count, length(Expected)) end,
                Fit =:= Expected andalso Chosen -- Expected =:= [] andalso length(Chosen) =:= Number
                    andalso length(lists:usort(Chosen)) =:= Number
                    andalso length(Explained) =:= Number
                    andalso [N || #{node := N, verdict := chosen} <- Cs] =:=
                            [N || N <- Fit, lists:member(N, Explained)]
            end).

condition() ->
    oneof([{load, oneof([lt, gt, ne]), range(0, 100)},
           {even, boolean()},
           {label, zone, oneof([in, not_in]), list(oneof([a, b, c, d]))},
           {nothing, ne, 1},
           {label, nothing, not_exists}]).

chooser() -> oneof([random, {least, load}, {two, load}, spread, {hash, k}, in_order]).

holds({load, lt, X}, I) -> I < X;
holds({load, gt, X}, I) -> I > X;
holds({load, ne, X}, I) -> I =/= X;
holds({even, Flag}, I) -> (I rem 2 =:= 0) =:= Flag;
holds({label, zone, in, Zs}, I) -> lists:member(lists:nth(1 + I rem 3, [a, b, c]), Zs);
holds({label, zone, not_in, Zs}, I) -> not holds({label, zone, in, Zs}, I);
holds({nothing, ne, 1}, _) -> false;
holds({label, nothing, not_exists}, _) -> true.
