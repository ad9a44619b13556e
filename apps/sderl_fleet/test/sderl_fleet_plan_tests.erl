%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_plan_tests).

-include_lib("eunit/include/eunit.hrl").

parse(Plan) -> sderl_fleet_plan:parse(Plan, "tag1", ["/code"]).

families(Families) -> #{families => Families}.

nodes_of(Plan) ->
    {ok, #{nodes := Specs}} = parse(Plan),
    [Node || #{node := Node} <- Specs].

defaults_test() ->
    {ok, Parsed} = parse(families([#{name => worker, count => 2}])),
    ?assertMatch(
        #{
            tag := "tag1",
            host := "127.0.0.1",
            parallel := 8,
            timeout := 60_000,
            driver := {sderl_fleet_local, #{}},
            owner := undefined,
            nodes := [
                #{
                    node := 'worker1-tag1@127.0.0.1',
                    family := worker,
                    index := 1,
                    hidden := false,
                    connect_all := false,
                    args := [],
                    env := [],
                    apps := [],
                    paths := ["/code"],
                    wrap := [],
                    timeout := 60_000
                },
                #{node := 'worker2-tag1@127.0.0.1', index := 2}
            ]
        },
        Parsed
    ).

names_test() ->
    ?assertEqual(
        ['a1-tag1@127.0.0.1', 'b1-tag1@127.0.0.1', 'b2-tag1@127.0.0.1', 'c_C-1-tag1@127.0.0.1'],
        nodes_of(families([
            #{name => a, count => 1}, #{name => "b", count => 2}, #{name => ~"c_C-", count => 1}
        ]))
    ).

no_tag_and_hosts_test() ->
    Plan = (families([#{name => a, count => 1}, #{name => b, count => 1, host => "127.0.0.9"}]))#{
        tag => "", host => "127.0.0.2"
    },
    ?assertEqual(['a1@127.0.0.2', 'b1@127.0.0.9'], nodes_of(Plan)).

two_hundred_test() ->
    Nodes = nodes_of(families([#{name => w, count => 150}, #{name => x, count => 50}])),
    ?assertEqual(200, length(lists:usort(Nodes))),
    ?assertEqual('w150-tag1@127.0.0.1', lists:nth(150, Nodes)),
    ?assertEqual('x50-tag1@127.0.0.1', lists:last(Nodes)).

groups_plan() ->
    (families([#{name => a, count => 3, env => [{app, k, v}]}, #{name => "b", count => 2}]))#{
        tag => "",
        s_groups => [
            {g1, normal, [{a, [1, 2]}, {"b", 1}]},
            {{any, 2}, hidden, [{b, all}, 'other@127.0.0.1']}
        ]
    }.

group_env(Plan) ->
    {ok, #{nodes := Specs}} = parse(Plan),
    #{Node => [Gs || {sderl, s_groups, Gs} <- Env] || #{node := Node, env := Env} <- Specs}.

groups_test() ->
    G1 = {g1, normal, ['a1@127.0.0.1', 'a2@127.0.0.1', 'b1@127.0.0.1']},
    G2 = {{any, 2}, hidden, ['b1@127.0.0.1', 'b2@127.0.0.1', 'other@127.0.0.1']},
    ?assertEqual(
        #{
            'a1@127.0.0.1' => [[G1]],
            'a2@127.0.0.1' => [[G1]],
            'a3@127.0.0.1' => [],
            'b1@127.0.0.1' => [[G1, G2]],
            'b2@127.0.0.1' => [[G2]]
        },
        group_env(groups_plan())
    ),
    ?assertMatch(
        #{'a1@127.0.0.1' := [[G1, G2]], 'a3@127.0.0.1' := []},
        group_env((groups_plan())#{s_groups_known => all})
    ).

%% {Plan, Path, Term}: what is wrong and where.
bad_plans() ->
    F = fun(Map) ->
        families([#{name => ok, count => 1}, maps:merge(#{name => x, count => 1}, Map)])
    end,
    G = fun(Groups) -> (families([#{name => a, count => 2}]))#{s_groups => Groups} end,
    P = fun(Map) -> maps:merge(families([#{name => a, count => 1}]), Map) end,
    [
        {no_map, [], no_map},
        {#{}, [families], undefined},
        {families([]), [families], []},
        {families(x), [families], x},
        {families([#{name => a, count => 1} | b]), [families], [#{name => a, count => 1} | b]},
        {families([x]), [families, 1], x},
        {families([#{count => 1}]), [families, 1, name], undefined},
        {families([#{name => a}]), [families, 1, count], undefined},
        {F(#{count => 0}), [families, 2, count], 0},
        {F(#{count => many}), [families, 2, count], many},
        {F(#{name => 'Ünder'}), [families, 2, name], 'Ünder'},
        {F(#{name => "a@b"}), [families, 2, name], "a@b"},
        {F(#{name => ""}), [families, 2, name], ""},
        {F(#{name => ~"1a"}), [families, 2, name], ~"1a"},
        {F(#{name => {a}}), [families, 2, name], {a}},
        {F(#{name => [$a, 1024]}), [families, 2, name], [$a, 1024]},
        {F(#{name => ok}), [families, 2, name], ok},
        {families([#{name => w, count => 11}, #{name => w1, count => 1}]), [families], w1},
        {F(#{hiden => true}), [families, 2], hiden},
        {F(#{hidden => yes}), [families, 2, hidden], yes},
        {F(#{connect_all => 1}), [families, 2, connect_all], 1},
        {F(#{args => "+S"}), [families, 2, args, 1], $+},
        {F(#{args => ["+S", '1:1']}), [families, 2, args, 2], '1:1'},
        {F(#{args => ["-setcookie", "x"]}), [families, 2, args, 1], "-setcookie"},
        {F(#{env => [{a, b, c}, {a, "b", c}]}), [families, 2, env, 2], {a, "b", c}},
        {F(#{env => [{a, [{b, c}]}]}), [families, 2, env, 1], {a, [{b, c}]}},
        {F(#{apps => sderl}), [families, 2, apps], sderl},
        {F(#{apps => [sderl, "x"]}), [families, 2, apps, 2], "x"},
        {F(#{paths => [x]}), [families, 2, paths, 1], x},
        {F(#{wrap => ["ip", 1]}), [families, 2, wrap, 2], 1},
        {F(#{host => "0.0.0.0"}), [families, 2, host], "0.0.0.0"},
        {P(#{host => "localhost"}), [host], "localhost"},
        {P(#{tag => "A-b"}), [tag], "A-b"},
        {P(#{tag => tag}), [tag], tag},
        {P(#{parallel => 0}), [parallel], 0},
        {P(#{timeout => infinity}), [timeout], infinity},
        {P(#{driver => local}), [driver], local},
        {P(#{progress => fun(_) -> ok end}), [progress], '_'},
        {P(#{owner => me}), [owner], me},
        {P(#{color => red}), [], color},
        {P(#{s_groups_known => some}), [s_groups_known], some},
        {G(x), [s_groups], x},
        {G([{g, normal}]), [s_groups, 1], {g, normal}},
        {G([{undefined, normal, [{a, 1}]}]), [s_groups, 1], {undefined, normal, [{a, 1}]}},
        {G([{g, loud, [{a, 1}]}]), [s_groups, 1, 2], loud},
        {G([{g, normal, []}]), [s_groups, 1, 3], []},
        {G([{g, normal, [{a, 1}]}, {h, normal, [{a, 3}]}]), [s_groups, 2, 3, 1], 3},
        {G([{g, normal, [{a, 1}, {b, 1}]}]), [s_groups, 1, 3, 2], b},
        {G([{g, normal, [{a, [1, 0]}]}]), [s_groups, 1, 3, 1], 0},
        {G([{g, normal, [a]}]), [s_groups, 1, 3, 1], a},
        {G([{g, normal, ["a1"]}]), [s_groups, 1, 3, 1], "a1"},
        {G([{g, normal, [{a, all}, {a, 1}]}]), [s_groups, 1, 3], [{a, all}, {a, 1}]},
        {G([{g, normal, [{a, 1}]}, {g, normal, [{a, 2}]}]), [s_groups], g}
    ].

bad_plan_test_() ->
    [
        {lists:flatten(io_lib:format("~0tp", [Plan])), fun() ->
            {error, {bad_plan, Path, Found, Expected}} = parse(Plan),
            ?assertEqual({Plan, Where}, {Plan, Path}),
            Term =:= '_' orelse ?assertEqual(Term, Found),
            ?assert(io_lib:printable_unicode_list(Expected) andalso Expected =/= "")
        end}
     || {Plan, Where, Term} <- bad_plans()
    ].

groups_twice_test() ->
    Plan = (families([#{name => a, count => 1, env => [{sderl, s_groups, []}]}]))#{
        s_groups => [{g, normal, [{a, 1}]}]
    },
    ?assertMatch({error, {bad_plan, [s_groups], a, _}}, parse(Plan)).

%% Nodes that come later

added(Added) ->
    {ok, #{nodes := Specs} = Parsed} = parse(
        (families([#{name => a, count => 2, hidden => true, args => ["+c"]}]))#{tag => ""}
    ),
    sderl_fleet_plan:add(Added, Parsed, #{Node => Spec || #{node := Node} = Spec <- Specs}).

add_test() ->
    {ok, Specs, _} = added([
        'a2@127.0.0.1',
        #{name => a},
        #{name => "a", count => 2, args => ["+K"]},
        #{name => a, index => 9},
        #{name => b, index => 3},
        #{name => b}
    ]),
    ?assertEqual(
        [
            {'a2@127.0.0.1', true, ["+c"]},
            {'a3@127.0.0.1', true, ["+c"]},
            {'a4@127.0.0.1', true, ["+K"]},
            {'a5@127.0.0.1', true, ["+K"]},
            {'a9@127.0.0.1', true, ["+c"]},
            {'b3@127.0.0.1', false, []},
            {'b4@127.0.0.1', false, []}
        ],
        [{Node, Hidden, Args} || #{node := Node, hidden := Hidden, args := Args} <- Specs]
    ).

bad_add_test_() ->
    [
        ?_assertMatch({error, {bad_plan, Path, Term, _}}, added(Added))
     || {Added, Path, Term} <- [
            {x, [nodes], x},
            {[1], [nodes, 1], 1},
            {['z@127.0.0.1'], [nodes, 1], 'z@127.0.0.1'},
            {[#{name => a}, #{}], [nodes, 2, name], undefined},
            {[#{name => a, index => 0}], [nodes, 1, index], 0},
            {[#{name => a, count => -1}], [nodes, 1, count], -1},
            {[#{name => a, size => 1}], [nodes, 1], size},
            {[#{name => a, index => 11}, #{name => a1, index => 1}], [nodes, 2, name], "a1"},
            {
                [#{name => a, index => 1, count => 1}],
                [nodes, 1],
                #{name => a, index => 1, count => 1}
            }
        ]
    ].

%% Every term that is written as text is read back the same.
textual_test() ->
    [
        ?assertEqual({Term, Is}, {Term, sderl_fleet_home:textual(Term)})
     || {Term, Is} <- [
            {[{a, "text", ~"bin", 1.5, -3, #{k => [x | y]}}, 'odd atom', <<1:3>>], true},
            {fun lists:map/2, true},
            {"caf\x{e9}", true},
            {'caf\x{e9}', false},
            {self(), false},
            {make_ref(), false},
            {fun() -> ok end, false}
        ]
    ].
