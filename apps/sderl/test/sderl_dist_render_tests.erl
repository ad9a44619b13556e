%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_render_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").
-include_lib("xmerl/include/xmerl.hrl").

-import(sderl_dist_gen, [network/0, term_nodes/1, offices/0]).

dot_test() ->
    Text = render("offices.dot",
                  #{network => {network, "a \"b\" \\", [{node, 'x@y'}, {network, [{node, z}]}]},
                    title => "t"}),
    ?assertEqual(
        "graph distances {\n"
        "    rankdir=LR;\n"
        "    label=\"t\";\n"
        "    v0 [shape=ellipse, label=\"a \\\"b\\\" \\\\\"];\n"
        "    v1 [shape=box, label=\"x@y\"];\n"
        "    v0 -- v1;\n"
        "    v2 [shape=ellipse, label=\"<v1>\"];\n"
        "    v3 [shape=box, label=\"z\"];\n"
        "    v2 -- v3;\n"
        "    v0 -- v2;\n"
        "}\n", unicode:characters_to_list(Text)).

%% The file's name decides, unless the options say.
format_test() ->
    [?assertEqual(Format, case render(Name, Options#{network => offices()}) of
        <<"graph ", _/binary>> -> dot;
        <<"<svg ", _/binary>> -> svg
     end) || {Name, Options, Format} <- [{"a.svg", #{}, svg},
                                         {<<"a.SVG">>, #{}, svg},
                                         {"a", #{}, dot},
                                         {"a.dot", #{}, dot},
                                         {"a.svg", #{format => dot}, dot},
                                         {"a", #{format => svg}, svg}]].

errors_test() ->
    ?assertMatch({error, {file, "/no/such/dir/a.svg", enoent}},
                 sderl_dist:render("/no/such/dir/a.svg")),
    ?assertMatch({error, {bad_network, [], foo, network}},
                 sderl_dist:render("a.svg", #{network => foo})),
    [?assertError({badarg, {sderl_dist, render, 2}, #{argument := 2}},
                  sderl_dist:render("a.svg", O))
     || O <- [foo, #{format => png}, #{title => "a\nb"}, #{title => [foo]}, #{tree => x}]],
    ?assertError({badarg, {sderl_dist, render, 1}, _}, sderl_dist:render(foo)).

hidden_characters_test() ->
    Network = {network, [{network, [$a, 16#202e, $b], [{node, n1@h}]},
                         {network, 'c\x{200b}\nd', [{node, n2@h}]}]},
    [
        begin
            Text = render(Name, #{network => Network}),
            ?assertEqual([], [C || <<C/utf8>> <= Text, sderl_visible:is_hidden(C)]),
            [?assertNotEqual(nomatch, string:find(Text, Shown))
             || Shown <- ["u{202e}b", "u{200b} d"]]
        end
     || Name <- ["h.dot", "h.svg"]
    ].

dot_lines_test_() ->
    sderl_prop:eunit("each line of a drawing for Graphviz is a statement", 200, fun() ->
        ?FORALL(Network, network(), begin
            Lines = string:split(string:trim(render("p.dot", #{network => Network})), "\n", all),
            Inner = lists:droplast(tl(Lines)),
            Statement = "^    (rankdir=LR|v[0-9]+ -- v[0-9]+|v[0-9]+ \\[shape=(box|ellipse), "
                        "label=\"([^\"\\\\]|\\\\[\"\\\\])*\"\\]);$",
            Boxes = [L || L <- Inner, string:find(L, "shape=box") =/= nomatch],
            conjunction([
                {statements, [L || L <- Inner, re:run(L, Statement, [unicode]) =:= nomatch] =:= []},
                {nodes, length(Boxes) =:= length(term_nodes(Network))},
                %% A tree: one edge less than there are vertices.
                {edges, length([L || L <- Inner, string:find(L, " -- ") =/= nomatch]) =:=
                    length([L || L <- Inner, string:find(L, "shape=") =/= nomatch]) - 1}
            ])
        end)
    end).

svg_test_() ->
    sderl_prop:eunit(
        "a picture is XML, shows all nodes and no text lies on another or beyond the edge",
        200,
        fun() ->
            ?FORALL(Network, network(), begin
                {Svg, _} = xmerl_scan:string(binary_to_list(render("p.svg", #{network => Network})),
                                             [{quiet, true}]),
                Texts = [{attribute(class, T), box(T)}
                         || #xmlElement{name = text} = T <- Svg#xmlElement.content],
                Names = [Words || {"node", {Words, _, _, _, _}} <- Texts],
                {Width, Height} = {number(attribute(width, Svg)), number(attribute(height, Svg))},
                conjunction([
                    {nodes, Names =:= [atom_to_list(N) || N <- term_nodes(Network)]},
                    {apart,
                     [{A, B} || {_, A} <- Texts, {_, B} <- Texts, A < B, overlap(A, B)] =:= []},
                    {within, [B
                              || {_, {_, L, T, R, M} = B} <- Texts,
                                 L < 0 orelse T < 0 orelse R > Width orelse M > Height] =:= []}
                ])
            end)
        end
    ).

%% 300 nodes are drawn in a moment, and in rows that can be told apart.
large_test() ->
    Rack = fun(R, K) ->
        {network, {R, K}, [{node, list_to_atom(lists:concat([n, R, '-', K, '-', I, '@host']))}
                           || I <- lists:seq(1, 10)]}
    end,
    Network = {network,
               [{network, R, [Rack(R, K) || K <- lists:seq(1, 5)]} || R <- lists:seq(1, 6)]},
    {Svg, _} = xmerl_scan:string(binary_to_list(render("l.svg", #{network => Network})),
                                 [{quiet, true}]),
    Rows = [number(attribute(y, T))
            || #xmlElement{name = text} = T <- Svg#xmlElement.content,
               attribute(class, T) =:= "node"],
    ?assertEqual(300, length(Rows)),
    ?assertEqual([20.0], lists:usort(lists:zipwith(fun(A, B) -> B - A end, lists:droplast(Rows),
                                                   tl(Rows)))).

render(Name, Options) ->
    File = filename:join(code:lib_dir(sderl), Name),
    {ok, File} = sderl_dist:render(File, Options),
    {ok, Text} = file:read_file(File),
    ok = file:delete(File),
    Text.

attribute(Name, #xmlElement{attributes = Attributes}) ->
    case lists:keyfind(Name, #xmlAttribute.name, Attributes) of
        #xmlAttribute{value = Value} -> Value;
        false -> undefined
    end.

number(Text) ->
    case string:to_float(Text) of
        {error, no_float} -> float(list_to_integer(Text));
        {Float, []} -> Float
    end.

%% Words and where they are: in the font that the picture asks for a character is 7.2 wide, some are
%% double.
box(Text) ->
    Words = lists:append([V || #xmlText{value = V} <- Text#xmlElement.content]),
    {X, Y} = {number(attribute(x, Text)), number(attribute(y, Text))},
    Width = 7.2 * lists:sum([case C >= 16#1100 of true -> 2; false -> 1 end || C <- Words]),
    Left = case attribute(class, Text) of "scale" -> X - Width / 2; _ -> X end,
    {Words, Left, Y - 9, Left + Width, Y + 2}.

overlap({_, L1, T1, R1, B1}, {_, L2, T2, R2, B2}) ->
    L1 < R2 andalso L2 < R1 andalso T1 < B2 andalso T2 < B1.
