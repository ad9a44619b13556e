%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_spec_tests).
-include_lib("eunit/include/eunit.hrl").

parse(Spec) -> sderl_place_spec:parse(many, Spec).

defaults_test() ->
    {ok, Spec} = parse(#{}),
    ?assertMatch(#{candidates := [own], where := [], prefer := [], choose := in_order, count := all,
                   names := [], pending := false, exclude := [], member_of := [], adds := auto},
                 Spec),
    ?assertMatch({ok, #{choose := random, count := 1, pending := true}},
                 sderl_place_spec:parse(one, #{})),
    ?assertMatch({ok, #{choose := random, count := 3}}, parse(#{count => 3})),
    ?assertMatch({ok, #{candidates := [{nodes, [a@h]}]}}, parse([a@h])),
    ?assertMatch({ok, #{candidates := [{nodes, []}]}}, parse([])),
    ?assertMatch({ok, #{candidates := []}}, parse(#{groups => []})),
    ?assertMatch({ok, #{candidates := [{nodes, [a@h]}, {group, g}, {group, h}, known]}},
                 parse(#{nodes => [a@h], group => g, groups => [h], known => true})).

conditions_test() ->
    Said = [{cpu, ge, 4}, {gpu, true}, {os, in, [a, b]}, {os, not_in, []}, {x, exists},
            {label, zone, equals, z}, {label, zone, not_equals, z}, {label, {a, b}, in, [1]},
            {label, k, exists}, {label, k, not_exists}, {label, k, gt, 3}, {dist, le, 0.5},
            {dist, {node, a@h}, lt, 1}, {dist, {group, g}, ge, 0}],
    {ok, #{where := Where, names := Names}} = parse(#{where => Said}),
    ?assertEqual(Said, [S || {_, _, S} <- Where]),
    ?assertEqual([{{attr, cpu}, {op, ge, 4}}, {{attr, gpu}, {is, true}}, {{attr, os}, {in, [a, b]}},
                  {{attr, os}, {not_in, []}}, {{attr, x}, exists},
                  {{label, {label, zone}}, {in, [z]}},
                  {{label, {label, zone}}, {not_in, [z]}}, {{label, {label, {a, b}}}, {in, [1]}},
                  {{label, {label, k}}, exists}, {{label, {label, k}}, not_exists},
                  {{label, {label, k}}, {op, gt, 3}}, {{dist, from}, {op, le, 0.5}},
                  {{dist, {node, a@h}}, {op, lt, 1}}, {{dist, {group, g}}, {op, ge, 0}}],
                 [{Source, Test} || {Source, Test, _} <- Where]),
    ?assertEqual([cpu, gpu, os, x, {label, zone}, {label, {a, b}}, {label, k}], Names),
    ?assertMatch({ok, #{where := [_]}}, parse(#{where => {cpu, ge, 4}})),
    ?assertMatch({ok, #{prefer := [{1, {{attr, cpu}, _, _}}, {3, {{attr, gpu}, _, _}}]}},
                 parse(#{prefer => [{cpu, ge, 4}, {3, {gpu, true}}]})),
    ?assertMatch({ok, #{names := [1, 1.0]}}, parse(#{where => [{1, true}, {1.0, true}]})),
    ?assertMatch({ok, #{names := [b, a, c]}},
                 parse(#{where => {b, true}, prefer => {7, {a, true}}, choose => {least, c}})),
    {ok, #{where := More, names := MoreNames}} =
        sderl_place_spec:add(one, #{where => {a, true}}, [{b, true}]),
    ?assertEqual([{a, true}, {b, true}], [S || {_, _, S} <- More]),
    ?assertEqual([a, b], MoreNames).

choosers_test() ->
    [?assertEqual({Said, {ok, Inner}}, {Said, case parse(#{choose => Said, count => 2}) of
        {ok, #{choose := C}} -> {ok, C};
        Error -> Error
     end}) || {Said, Inner} <- [
         {random, random}, {in_order, in_order}, {{least, a}, {least, a}}, {{most, a}, {most, a}},
         {{two, a}, {two, least, a}}, {{two, most, a}, {two, most, a}}, {nearest, {nearest, from}},
         {{nearest, {group, g}}, {nearest, {group, g}}}, {spread, {spread, host}},
         {{spread, group}, {spread, group}},
         {{spread, {label, k}}, {spread, {attr, {label, k}}}},
         {{spread, {attr, k}}, {spread, {attr, k}}},
         {{hash, key}, {hash, key}}
     ]],
    ?assertMatch({ok, #{pending := false}}, parse(#{choose => {hash, k}, count => 1})),
    ?assertMatch({ok, #{pending := true}},
                 parse(#{choose => {hash, k}, count => 1, pending => true})).

%% Everything that is wrong: where, what, what should be there; and a sentence that says so.
bad() ->
    [{x, [], x, spec}, {{a, b}, [], {a, b}, spec}, {[a | b], [nodes], [a | b], node_list},
     {[a, 1], [nodes, 2], 1, node_name},
     {#{nodes => a@h}, [nodes], a@h, node_list},
     {#{nodes => [<<"a">>]}, [nodes, 1], <<"a">>, node_name},
     {#{node => a@h}, [], node, key}, {#{<<"group">> => g}, [], <<"group">>, key},
     {#{groups => g}, [groups], g, list}, {#{member_of => [g | h]}, [member_of], [g | h], list},
     {#{known => yes}, [known], yes, boolean}, {#{exclude => 7}, [exclude], 7, node_list},
     {#{from => "n"}, [from], "n", node_name},
     {#{where => cpu}, [where], cpu, condition}, {#{where => {}}, [where], {}, condition},
     {#{where => {cpu}}, [where], {cpu}, condition},
     {#{where => [{a, true}, {cpu, ge}]}, [where, 2], {cpu, ge}, condition},
     {#{where => [{cpu, above, 4}]}, [where, 1], above, operator},
     {#{where => {cpu, equals, 4}}, [where], equals, operator},
     {#{where => [{a, true} | b]}, [where], [{a, true} | b], conditions},
     {#{where => {cpu, in, 4}}, [where], 4, values},
     {#{where => {cpu, in, [4 | 5]}}, [where], [4 | 5], values},
     {#{where => {a, b, c, d, e}}, [where], {a, b, c, d, e}, condition},
     {#{where => {label, k}}, [where], {label, k}, condition},
     {#{where => {label, k, v}}, [where], k, operator},
     {#{where => {label, k, above, v}}, [where], above, selector},
     {#{where => {label, k, in, v}}, [where], v, values},
     {#{where => {dist, near}}, [where], {dist, near}, condition},
     {#{where => {dist, le, near}}, [where], near, distance},
     {#{where => {dist, in, [1]}}, [where], in, distance_operator},
     {#{where => {dist, a@h, le, 1}}, [where], a@h, ref},
     {#{where => {dist, {node, 7}, le, 1}}, [where], {node, 7}, ref},
     {#{prefer => {0, {a, true}}}, [prefer], 0, weight},
     {#{prefer => [{-2, {a, true}}]}, [prefer, 1], -2, weight},
     {#{prefer => {2, {a, maybe_}}}, [prefer], {a, maybe_}, condition},
     {#{prefer => high}, [prefer], high, condition},
     {#{choose => best}, [choose], best, chooser},
     {#{choose => {least}}, [choose], {least}, chooser},
     {#{choose => {spread, rack}}, [choose], rack, spread},
     {#{choose => {two, best, a}}, [choose], {two, best, a}, chooser},
     {#{choose => {nearest, a@h}}, [choose], a@h, ref},
     {#{count => 0}, [count], 0, count}, {#{count => 1.0}, [count], 1.0, count},
     {#{count => any}, [count], any, count},
     {#{adds => -1}, [adds], -1, adds}, {#{adds => auto}, [adds], auto, adds},
     {#{pending => 1}, [pending], 1, boolean},
     {#{max_age_ms => -1}, [max_age_ms], -1, milliseconds},
     {#{timeout_ms => infinity}, [timeout_ms], infinity, milliseconds},
     {#{timeout_ms => 1 bsl 40}, [timeout_ms], 1 bsl 40, milliseconds}].

bad_test_() ->
    [{lists:flatten(io_lib:format("~0tp", [Spec])), fun() ->
        Error = {bad_spec, Path, Found, Expected},
        ?assertEqual({error, Error}, parse(Spec)),
        ?assertEqual({error, Error}, sderl_place:check(Spec)),
        Sentence = sderl_place:format_error(Error),
        ?assert(io_lib:printable_unicode_list(Sentence)),
        ?assertEqual("bad spec", lists:sublist(Sentence, 8)),
        ?assertError({badarg, {sderl_place, choose_nodes, 1},
                      #{argument := 1, path := Path, found := Found, expected := Sentence}},
                     sderl_place:choose_nodes(Spec))
    end} || {Spec, Path, Found, Expected} <- bad()].

raises_test() ->
    ?assertError({badarg, {sderl_place, choose_node, 1}, #{path := [count], found := 2}},
                 sderl_place:choose_node(#{count => 2})),
    ?assertError({badarg, {sderl_place, choose_nodes, 2},
                  #{argument := 2, path := [conditions, 2], found := b}},
                 sderl_place:choose_nodes([], [{a, true}, b])),
    ?assertError({badarg, {sderl_place, choose_node, 2}, #{argument := 1, found := [b | c]}},
                 sderl_place:choose_node([b | c], [])),
    ?assertError({badarg, {sderl_place, explain, 1}, #{argument := 1}}, sderl_place:explain(7)),
    ?assertError({badarg, {sderl_place, explain, 2}, #{argument := 2}}, sderl_place:explain([], x)),
    ?assertError({badarg, {sderl_place, explain_text, 1}, _}, sderl_place:explain_text(#{})),
    ?assertError({badarg, {sderl_place, format_error, 1}, _}, sderl_place:format_error(x)).

not_running_test() ->
    ?assertEqual({error, not_running}, sderl_place:choose_node(#{})),
    ?assertEqual({error, not_running}, sderl_place:choose_nodes([node()], {a, true})),
    ?assertEqual({error, not_running}, sderl_place:explain(#{})).
