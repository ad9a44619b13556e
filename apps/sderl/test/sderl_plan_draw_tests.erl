%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_draw_tests).
-include_lib("eunit/include/eunit.hrl").

some(Count) -> [list_to_atom("n" ++ integer_to_list(I) ++ "@host") || I <- lists:seq(1, Count)].

plans() ->
    [sderl_pattern:new(Pattern, some(Count), Options)
     || {Pattern, Count, Options} <- [
         {star, 10, #{size => 4}}, {star, 200, #{size => 10, gateways => 2, hubs => 2}},
         {star, 21, #{groups => 2, masters => 1}},
         {tree, 150, #{branching => 5}}, {tree, 5, #{branching => 2}},
         {tree, 200, #{branching => 3, levels => 4, leaves => 1, gateways => 2}},
         {ring, 30, #{size => 8}}, {ring, 5, #{groups => 1}}, {chain, 50, #{size => 8}},
         {chain, 1, #{size => 8}}, {grid, 120, #{size => 14, gateways => 2}}
     ]].

%% A dot for every node, a line for every gateway to each group, boxes that do not overlap.
svg_test_() ->
    [{lists:flatten(io_lib:format("~p ~0p", [Pattern, Options])), fun() ->
        Svg = parse(sderl_plan_draw:svg(Plan)),
        Boxes =
            [B || {rect, B} <- Svg, not is_map_key(fill_white, B), maps:get("width", B) =/= "100%"],
        ?assertEqual(length(Groups), length(Boxes)),
        Dots = [C || {circle, C} <- Svg],
        ?assertEqual(length(sderl_pattern:nodes(Plan)),
                     length([C || #{"r" := R} = C <- Dots, R =/= "8"]) - 2),
        ?assertEqual(lists:sum([length(To) * length(Ns) || #{to := To, gateways := Ns} <- Edges]),
                     length([l || {line, _} <- Svg])),
        Rects = [{number("x", B), number("y", B), number("width", B), number("height", B)}
                 || B <- Boxes],
        ?assertEqual([], [{A, B} || A <- Rects, B <- Rects, A < B, overlap(A, B)])
    end}
     || {ok, #{pattern := Pattern, options := Options, groups := Groups, edges := Edges} = Plan} <-
            plans()].

overlap({X1, Y1, W1, H1}, {X2, Y2, W2, H2}) ->
    X1 < X2 + W2 andalso X2 < X1 + W1 andalso Y1 < Y2 + H2 andalso Y2 < Y1 + H1.

number(Key, Attributes) -> list_to_float(map_get(Key, Attributes)).

parse(Svg) ->
    {ok, Elements, _} = xmerl_sax_parser:stream(unicode:characters_to_binary(Svg), [
        {event_fun, fun
            ({startElement, _, Name, _, Attributes}, _, Acc) ->
                [{list_to_atom(Name), #{K => V || {_, _, K, V} <- Attributes}} | Acc];
            (_, _, Acc) -> Acc
        end},
        {event_state, []}
    ]),
    Elements.

%% Names may be anything.
names_test() ->
    {ok, Plan} = sderl_pattern:chain(['<&">@host', 'ä@host', c@host, d@host],
                                     #{size => 3, names => [<<"a<b">>, {"Zürich", 1.5, [2 | 3]}]}),
    Elements = parse(sderl_plan_draw:svg(Plan)),
    ?assert(length(Elements) > 8),
    Text = unicode:characters_to_list(sderl_plan_draw:text(Plan)),
    [?assertMatch([_ | _], string:find(Text, Part))
     || Part <- ["a<b", "Zürich 1.5 [2|3]", "ä@host"]].

text_test() ->
    {ok, Plan} = sderl_pattern:star(some(9), #{groups => 3, remainder => left_out}),
    {ok, Prediction} =
        sderl_plan:predict(Plan, #{names_per_node => 10, traffic => [{'n1@host', 'n9@host', 1}]}),
    ?assertEqual(
        "group      members  at home                  gateways\n"
        "group hub  3        none but its gateways\n"
        "group 1    3        n1@host n2@host n3@host  n1@host to group hub\n"
        "group 2    3        n4@host n5@host n6@host  n4@host to group hub\n"
        "group 3    3        n7@host n8@host n9@host  n7@host to group hub\n"
        "\n"
        "pattern        star\n"
        "nodes          9 in 4 groups of 3 members, 3 gateways\n"
        "links          4 at most, 2.7 on average; 8 in a full mesh\n"
        "hops           3 at most, 2.00 on average\n"
        "traffic        2.00 hops of a message, 0.0 % stay in a group\n"
        "names          30 at most on a node, 30 on average; 90 in one namespace\n"
        "single points  the loss of any of 3 nodes parts groups: n1@host n4@host n7@host\n",
        unicode:characters_to_list(sderl_plan_draw:text(Plan, Prediction))).
