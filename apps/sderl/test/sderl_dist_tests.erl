%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_dist_gen, [network/0, term_nodes/1, offices/0]).

%% The tree is the whole virtual machine's: each test leaves it as it found it.
with(Network, Fun) ->
    Before = sderl_dist:tree(),
    ok = sderl_dist:set(Network),
    try Fun() after ok = sderl_dist:set(Before) end.

%% ---------------------------------------------------------------- distances

golden_test() ->
    with(offices(), fun() ->
        D = fun sderl_dist:distance/2,
        ?assertEqual(+0.0, D('ada@m1', 'ada@m1')),
        %% The same machine, the same floor, the same cluster, another cluster.
        ?assertEqual(0.125, D('ada@m1', 'bo@m1')),
        ?assertEqual(0.25, D('ada@m1', 'cy@m2')),
        ?assertEqual(0.5, D('ada@m1', 'dee@m3')),
        ?assertEqual(1.0, D('ada@m1', 'eve@m4')),
        %% As near as nodes of one floor, though their branch is flatter: depth decides.
        ?assertEqual(0.25, D('eve@m4', 'flo@m5')),
        ?assertEqual(0.5, D('eve@m4', 'gus@m6')),
        ?assertEqual(1.0, sderl_dist:max_dist()),
        ?assertEqual(0.125, sderl_dist:min_dist()),
        ?assertEqual(['ada@m1', 'bo@m1', 'cy@m2', 'dee@m3', 'eve@m4', 'flo@m5', 'gus@m6'],
                     sderl_dist:nodenames()),
        ?assertEqual({error, {node_not_found, 'x@m1'}}, D('ada@m1', 'x@m1')),
        ?assertEqual({error, {node_not_found, 'x@m1'}}, D('x@m1', 'ada@m1')),
        ?assertEqual({error, {node_not_found, 'x@m1'}}, D('x@m1', 'x@m1')),
        ?assertEqual(#{'ada@m1' => 0.0, 'bo@m1' => 0.125, 'gus@m6' => 1.0},
                     sderl_dist:distances('ada@m1', ['ada@m1', 'bo@m1', 'x@m1', 'gus@m6'])),
        ?assertEqual(#{}, sderl_dist:distances('x@m1', ['ada@m1']))
    end).

%% A root with one branch that has nodes: nothing is as far as 1.0.
one_branch_test() ->
    with({network, [{network, [{node, a}, {node, b}]}, {network, []}]}, fun() ->
        ?assertEqual(0.5, sderl_dist:max_dist()),
        ?assertEqual(0.5, sderl_dist:min_dist())
    end).

few_nodes_test_() ->
    [?_test(with(Network, fun() ->
        ?assertEqual({+0.0, +0.0}, {sderl_dist:max_dist(), sderl_dist:min_dist()}),
        ?assertEqual(Nodes, sderl_dist:nodenames())
    end)) || {Network, Nodes} <- [{{network, []}, []}, {{node, a}, [a]},
                                  {{network, x, [{network, []}, {node, a}]}, [a]}]].

%% Whoever asks: nothing depends on the process, and nothing on the application.
any_process_test() ->
    with(offices(), fun() ->
        {Pid, Ref} = spawn_monitor(fun() -> exit(sderl_dist:distance('ada@m1', 'bo@m1')) end),
        receive {'DOWN', Ref, process, Pid, Result} -> ?assertEqual(0.125, Result) end
    end).

%% ---------------------------------------------------------------- choosing

choose_test() ->
    with(offices(), fun() ->
        All = sderl_dist:nodenames(),
        C = fun(Predicates) -> sderl_dist:choose_nodes('ada@m1', Predicates) end,
        ?assertEqual(['bo@m1'], C({dist, eq, 0.125})),
        ?assertEqual(['ada@m1', 'bo@m1', 'cy@m2'], C({dist, le, 0.25})),
        ?assertEqual(['ada@m1', 'bo@m1'], C({dist, lt, 0.25})),
        ?assertEqual(['bo@m1', 'cy@m2'], C([{dist, gt, 0}, {dist, le, 0.25}])),
        ?assertEqual(['dee@m3', 'eve@m4', 'flo@m5', 'gus@m6'], C({dist, ge, 0.5})),
        ?assertEqual(All -- ['ada@m1'], C({dist, ne, 0})),
        ?assertEqual(All, C([])),
        ?assertEqual([], C([{dist, lt, 0.25}, {dist, gt, 0.25}])),
        ?assertEqual(none, sderl_dist:choose_node('ada@m1', {dist, gt, 1})),
        ?assertEqual('bo@m1', sderl_dist:choose_node('ada@m1', {dist, eq, 0.125})),
        ?assertEqual(none, sderl_dist:choose_node('ada@m1', ['gus@m6'], {dist, lt, 1})),
        ?assertEqual(['gus@m6', 'ada@m1'], sderl_dist:choose_nodes(
            'ada@m1', ['gus@m6', 'x@m1', 'ada@m1'], {dist, le, 1}
        )),
        ?assertEqual([], sderl_dist:choose_nodes('x@m1', {dist, le, 1})),
        Found = [sderl_dist:choose_node('ada@m1', {dist, le, 0.125}) || _ <- lists:seq(1, 200)],
        ?assertEqual(['ada@m1', 'bo@m1'], lists:usort(Found))
    end).

%% Nodes that the tree lacks pass no predicate. (With a tuple for a distance they would pass three.)
unknown_test_() ->
    [{atom_to_list(Op), ?_test(with(offices(), fun() ->
        ?assertEqual([], sderl_dist:choose_nodes('ada@m1', ['x@m1'], {dist, Op, R})),
        ?assertEqual(none, sderl_dist:choose_node('x@m1', sderl_dist:nodenames(), {dist, Op, R}))
    end))} || Op <- [eq, ne, lt, le, gt, ge], R <- [0, 0.5, 1, 2]].

misuse_test_() ->
    [{lists:flatten(io_lib:format("~0p", [{F, Args}])),
      ?_test(begin
          Arity = length(Args),
          ?assertError({badarg, {sderl_dist, F, Arity},
                        #{argument := I, found := _, expected := [_ | _]}},
                       apply(sderl_dist, F, Args))
      end)} || {F, I, Args} <- [
          {distance, 1, ["a", b]}, {distance, 2, [a, "b"]}, {distances, 1, ["a", []]},
          {distances, 2, [a, b]},
          {distances, 2, [a, [b | c]]}, {choose_nodes, 1, [1, []]},
          {choose_nodes, 2, [a, {dist, near, 1}]},
          {choose_nodes, 2, [a, [{dist, le, 1}, {dist, le, x}]]},
          {choose_nodes, 3, [a, [], {load, le, 1}]},
          {choose_nodes, 2, [a, b, []]}, {choose_node, 2, [a, {dist, le}]},
          {choose_node, 3, [a, [], foo]},
          {load, 1, [foo]}, {init, 1, [""]}, {save, 1, [42]}
      ]].

%% ---------------------------------------------------------------- terms and files

bad_terms_test_() ->
    N = {node, a},
    [?_test(begin
        ?assertEqual({error, {bad_network, Path, Found, Expected}}, sderl_dist:set(Term)),
        Sentence = sderl_dist:format_error({bad_network, Path, Found, Expected}),
        ?assertEqual(nomatch, string:find(Sentence, "\n")),
        ?assert(lists:all(fun(Word) -> string:find(Sentence, Word) =/= nomatch end, Words))
    end) || {Term, Path, Found, Expected, Words} <- [
        {foo, [], foo, network, ["bad network: foo", "write {network"]},
        {[N], [], [N], network, ["write {network"]},
        {{network, N}, [], {network, N}, network, []},
        {{network, [N | N]}, [], {network, [N | N]}, network, []},
        {{network, [N, {network, x, [{nodes, b}]}]}, [2, 1], {nodes, b}, network,
         ["at [2][1]: {nodes,b}"]},
        {{network, [{node, "a"}]}, [1, node], "a", node_name, ["at [1].node", "write an atom"]},
        {{network, [N, {network, [{node, b}, N]}]}, [2, 2, node], a, {unique_node, [1]},
         ["at [2][2].node", "at [1];"]}
    ]].

too_deep_test() ->
    Deep = fun(Levels) ->
        lists:foldl(fun(_, Inner) -> {network, [Inner]} end, {network, [{node, a}, {node, b}]},
                    lists:seq(2, Levels))
    end,
    with(Deep(1000), fun() -> ?assert(sderl_dist:distance(a, b) > 0) end),
    ?assertMatch({error, {bad_network, _, _, less_depth}}, sderl_dist:set(Deep(1001))),
    ?assertMatch({error, {bad_network, _, _, less_depth}}, sderl_dist:set(Deep(5000))).

%% What is wrong leaves the tree as it was.
files_test() ->
    Dir = filename:join([code:lib_dir(sderl), "..", "..", "tmp",
                         integer_to_list(erlang:unique_integer([positive]))]),
    File = filename:join(Dir, "network.config"),
    ok = filelib:ensure_dir(File),
    Write = fun(Text) -> ok = file:write_file(File, Text) end,
    with(offices(), fun() ->
        Refused = fun(Text) ->
            Write(Text),
            {error, Why} = sderl_dist:load(File),
            ?assertEqual({error, Why}, sderl_dist:init(File)),
            ?assertEqual(offices(), sderl_dist:tree()),
            {Why, sderl_dist:format_error(Why)}
        end,
        {unconnected_graph, _} = Refused("{node, a}. {network, []}."),
        {{file, File, no_term}, _} = Refused("%% nothing\n"),
        {{file, File, {1, erl_parse, _}}, Sentence} = Refused("{network, [}."),
        ?assertNotEqual(nomatch, string:find(Sentence, "syntax error")),
        {{bad_network, [1], {nod, b}, network}, _} = Refused("{network, [{nod, b}]}."),
        ?assertEqual({error, {file, "/no/such", enoent}}, sderl_dist:load("/no/such")),
        ?assertEqual("the file /no/such cannot be read: no such file or directory",
                     sderl_dist:format_error({file, "/no/such", enoent})),
        Write("{network, top, [{node, 'a@m'}, {network, [{node, 'b@m'}]}]}."),
        ok = sderl_dist:init(File),
        ?assertEqual(['a@m', 'b@m'], sderl_dist:nodenames())
    end),
    ok = file:del_dir_r(Dir).

saved_test_() ->
    sderl_prop:eunit("a saved tree is the tree when it is loaded", 100, fun() ->
        File = filename:join(code:lib_dir(sderl), "saved.config"),
        ?FORALL(Network, network(), with(Network, fun() ->
            ok = sderl_dist:save(File),
            ok = sderl_dist:set({network, []}),
            ok = sderl_dist:load(File),
            ok = file:delete(File),
            sderl_dist:tree() =:= Network
        end))
    end).

%% ---------------------------------------------------------------- properties

ultrametric_test_() ->
    sderl_prop:eunit("distances are an ultrametric", 300, fun() ->
        ?FORALL(Network, network(), begin
            {ok, Tree} = sderl_dist_tree:parse(Network),
            Nodes = sderl_dist_tree:nodes(Tree),
            D = fun(A, B) -> sderl_dist_tree:distance(A, B, Tree) end,
            Pairs = [D(A, B) || A <- Nodes, B <- Nodes, A < B],
            conjunction([
                {nodes, Nodes =:= term_nodes(Network)},
                {self, lists:all(fun(A) -> D(A, A) == 0 end, Nodes)},
                {apart, lists:all(fun(X) -> X > 0 andalso X =< 1 end, Pairs)},
                {symmetric, lists:all(fun({A, B}) -> D(A, B) =:= D(B, A) end,
                                      [{A, B} || A <- Nodes, B <- Nodes])},
                {strong_triangle, lists:all(fun({A, B, C}) -> D(A, C) =< max(D(A, B), D(B, C)) end,
                                            [{A, B, C} || A <- Nodes, B <- Nodes, C <- Nodes])},
                {extremes, Pairs =:= [] orelse
                           {sderl_dist_tree:min(Tree), sderl_dist_tree:max(Tree)} =:=
                           {lists:min(Pairs), lists:max(Pairs)}},
                {nearest, lists:all(fun(A) ->
                    Others = [x, y | Nodes -- [A]],
                    Of = fun(N) ->
                        case lists:member(N, Nodes) andalso A =/= z of
                            true -> D(A, N);
                            false -> unknown
                        end
                    end,
                    lists:all(fun(Among) ->
                        Least = lists:min([Of(N) || N <- Among]),
                        sderl_dist_tree:nearest(A, Among, Tree) =:=
                            [N || N <- Among, Of(N) =:= Least]
                    end, [Others, [A | Others] -- [z], [x, y]])
                end, [z | Nodes])},
                {many, lists:all(fun(A) ->
                    sderl_dist_tree:distances(A, [x | Nodes], Tree) =:=
                        #{B => D(A, B) || B <- Nodes}
                end, Nodes)}
            ])
        end)
    end).

%% Two balls of one radius are the same or have no node in common; smaller ones lie within larger
%% ones.
discs_test_() ->
    sderl_prop:eunit("discs nest", 200, fun() ->
        ?FORALL({Network, R, S}, {network(), radius(), radius()}, with(Network, fun() ->
            Disc = fun(Node, Radius) -> sderl_dist:choose_nodes(Node, {dist, le, Radius}) end,
            Nodes = sderl_dist:nodenames(),
            lists:all(fun({A, B}) ->
                X = Disc(A, max(R, S)),
                Y = Disc(B, min(R, S)),
                Y -- X =:= [] orelse X -- Y =:= X
            end, [{A, B} || A <- Nodes, B <- Nodes])
        end))
    end).

radius() -> oneof([0, 0.0625, 0.125, 0.25, 0.5, 1.0, float(0.0, 1.0)]).
