%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_cluster_tests).

%% The pure parts of measuring: what a series of round trips says, the matrix, clusters, levels, the
%% fit.

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_dist_gen, [network/0]).

%% ---------------------------------------------------------------- clusters

%% Four nodes, computed by hand: a-b at 1, c-d at 2, and the largest distance between the two
%% pairs, 9.
complete_linkage_test() ->
    Matrix = matrix([{a, b, 1}, {c, d, 2}, {a, c, 5}, {a, d, 9}, {b, c, 4}, {b, d, 6}]),
    Dendrogram = sderl_dist_cluster:dendrogram(Matrix),
    ?assertEqual([{a, b, 1}, {a, c, 9}, {a, d, 9}, {b, c, 9}, {b, d, 9}, {c, d, 2}],
                 heights(Dendrogram)),
    Levels = sderl_dist_cluster:levels(Dendrogram, 2, 0),
    ?assertEqual([{1, 1}, {2, 2}, {9, 9}], Levels),
    ?assertEqual([{1, 2}, {9, 9}], sderl_dist_cluster:levels(Dendrogram, 2.5, 0)),
    ?assertEqual([{1, 2}, {9, 9}], sderl_dist_cluster:levels(Dendrogram, 2, 2)),
    %% a-b are nearer than c-d, so they have a vertex of their own on the level of those.
    ?assertEqual({network, 3, [{network, 2, [{network, 1, [{node, a}, {node, b}]}]},
                               {network, 2, [{node, c}, {node, d}]}]},
                 sderl_dist_cluster:tree(Dendrogram, Levels, fun(Level) -> Level end)).

few_test() ->
    Tree = fun(Matrix) ->
        sderl_dist_cluster:tree(sderl_dist_cluster:dendrogram(Matrix), [], fun(L) -> L end)
    end,
    ?assertEqual({network, []}, Tree(#{})),
    ?assertEqual({network, [{node, a}]}, Tree(#{a => #{}})),
    ?assertEqual([], sderl_dist_cluster:pairs(none)),
    ?assertEqual([], sderl_dist_cluster:levels(none, 2, 0)).

%% Against the definition, step by step: merge the two clusters whose farthest members are nearest.
%% Where two such pairs are equally near either may be first, so the distances here all differ.
definition_test_() ->
    sderl_prop:eunit("chains of nearest neighbours give complete linkage", 200, fun() ->
        ?FORALL(Matrix, distinct_matrix(), begin
            Dendrogram = sderl_dist_cluster:dendrogram(Matrix),
            heights(Dendrogram) =:=
                lists:sort(by_definition([[N] || N <- maps:keys(Matrix)], Matrix))
        end)
    end).

%% With any ties it is an ultrametric that is nowhere below what was measured, and within a cluster
%% nowhere above the largest distance.
ultrametric_test_() ->
    sderl_prop:eunit("a dendrogram is the least disc around each two nodes", 200, fun() ->
        ?FORALL(Matrix, any_matrix(), begin
            Heights = maps:from_list(
                [{{A, B}, H} || {A, B, H} <- heights(sderl_dist_cluster:dendrogram(Matrix))]
            ),
            H = fun(A, B) -> maps:get({min(A, B), max(A, B)}, Heights, 0) end,
            Nodes = maps:keys(Matrix),
            conjunction([
                {above, lists:all(fun({{A, B}, X}) -> X >= map_get(B, map_get(A, Matrix)) end,
                                  maps:to_list(Heights))},
                {triangle, lists:all(fun({A, B, C}) -> H(A, C) =< max(H(A, B), H(B, C)) end,
                                     [{A, B, C} || A <- Nodes, B <- Nodes, C <- Nodes, A =/= C])}
            ])
        end)
    end).

%% A tree gives distances, 100 us and four times as much for each level up, up to a fifth more or
%% less for noise; what is clustered is that tree again: what was on one level is at one distance,
%% and levels are in their order.
noisy_tree_test_() ->
    sderl_prop:eunit("an ultrametric with noise gives its tree back", 200, fun() ->
        ?FORALL({Network, Seed}, {network(), integer()}, begin
            {ok, Tree} = sderl_dist_tree:parse(Network),
            Nodes = sderl_dist_tree:nodes(Tree),
            Pairs = [{A, B, sderl_dist_tree:distance(A, B, Tree)} || A <- Nodes, B <- Nodes, A < B],
            Rtt = fun(A, B, D) ->
                1.0e5 * math:pow(D, 2) * (0.8 + 0.4 * erlang:phash2({A, B, Seed}, 1000) / 1000)
            end,
            Matrix = matrix([{A, B, Rtt(A, B, D)} || {A, B, D} <- Pairs]),
            Dendrogram = sderl_dist_cluster:dendrogram(Matrix),
            Term = sderl_dist_cluster:tree(Dendrogram, sderl_dist_cluster:levels(Dendrogram, 2, 0),
                                           fun(L) -> L end),
            {ok, Again} = sderl_dist_tree:parse(Term),
            Levels = lists:usort([{D, sderl_dist_tree:distance(A, B, Again)}
                                  || {A, B, D} <- Pairs]),
            {Befores, Afters} = lists:unzip(Levels),
            conjunction([
                {one_to_one, length(lists:usort(Befores)) =:= length(Levels)},
                {in_order, Afters =:= lists:usort(Afters)},
                {halved,
                 [] =:= Afters
                 orelse Afters =:= [math:pow(0.5, L) || L <- lists:seq(length(Levels) - 1, 0, -1)]}
            ])
        end)
    end).

%% In well under a second; the limit is for a machine that does other things too.
large_test_() ->
    {timeout, 60, fun() ->
        Nodes = [list_to_atom("n" ++ integer_to_list(I)) || I <- lists:seq(1, 300)],
        Place = fun(N) -> erlang:phash2(N, 27) end,
        Far = fun
            (P, P) -> 1;
            (P, Q) when P div 3 =:= Q div 3 -> 4;
            (P, Q) when P div 9 =:= Q div 9 -> 16;
            (_, _) -> 64
        end,
        Matrix = matrix([{A, B, Far(Place(A), Place(B)) * (1 + erlang:phash2({A, B}, 1000) / 3000)}
                         || A <- Nodes, B <- Nodes, A < B]),
        {Us, Dendrogram} = timer:tc(fun() -> sderl_dist_cluster:dendrogram(Matrix) end),
        ?assertEqual(4, length(sderl_dist_cluster:levels(Dendrogram, 2, 0))),
        ?assert(Us < 10_000_000),
        io:format(user, "300 nodes: ~b ms~n", [Us div 1000])
    end}.

%% ---------------------------------------------------------------- the fit

fit_test() ->
    ?assertEqual(#{pairs => 0, correlation => undefined, mean_deviation => +0.0,
                   max_deviation => +0.0}, sderl_dist_fit:fit([])),
    ?assertMatch(#{correlation := undefined, max_deviation := +0.0},
                 sderl_dist_fit:fit([{0.1, 0.1}, {0.1, 0.1}, {0.1, 0.1}])),
    #{correlation := Linear} = sderl_dist_fit:fit([{1, 2}, {2, 4}, {3, 6}]),
    ?assert(abs(Linear - 1) < 1.0e-9),
    #{correlation := Opposite} = sderl_dist_fit:fit([{1, 3}, {2, 2}, {3, 1}]),
    ?assert(abs(Opposite + 1) < 1.0e-9),
    ?assertMatch(#{pairs := 2, mean_deviation := 0.25, max_deviation := 0.5},
                 sderl_dist_fit:fit([{2, 3}, {7, 7}])),
    ?assertEqual(2, sderl_dist_fit:median([3, 1, 2])),
    ?assertEqual(2, sderl_dist_fit:median([4, 3, 1, 2])).

%% ---------------------------------------------------------------- round trips

rtt_test_() ->
    sderl_prop:eunit("noise in less than half of one batch, and in all others, does nothing", 200,
                     fun() ->
                         ?FORALL({Good, Bad, Others, Us, Spread},
                                 {range(0, 10), range(0, 10), list(list(range(0, 1_000_000))),
                                  range(1, 1000), range(0, 9)},
                                 ?IMPLIES(Good > Bad, begin
                                     Batch = [Us + I rem (Spread + 1) || I <- lists:seq(1, Good)] ++
                                         [Us + Spread + 1000 * I || I <- lists:seq(1, Bad)],
                                     Noise = [[Us + N || N <- O] || O <- Others],
                                     Rtt = sderl_dist_estimate:rtt(Noise ++ [Batch]),
                                     Rtt >= Us andalso Rtt =< Us + Spread
                                 end))
                     end).

no_answer_test() ->
    ?assertEqual(undefined, sderl_dist_estimate:rtt([])),
    ?assertEqual(undefined, sderl_dist_estimate:rtt([[], []])),
    ?assertEqual(7, sderl_dist_estimate:rtt([[], [9, 7]])).

peers_test_() ->
    sderl_prop:eunit("each two are probed by one of them, unless a limit holds", 100, fun() ->
        ?FORALL({Count, Limit}, {range(0, 40), range(1, 40)}, begin
            Nodes = [list_to_atom(lists:concat([n, I, "@h", I rem 5])) || I <- lists:seq(1, Count)],
            Peers = fun(L) -> [{N, sderl_dist_estimate:peers(N, Nodes, L)} || N <- Nodes] end,
            Pairs = [{min(A, B), max(A, B)} || {A, Bs} <- Peers(Count + 1), B <- Bs],
            conjunction([
                {all, lists:sort(Pairs) =:=
                      [{A, B} || A <- lists:sort(Nodes), B <- lists:sort(Nodes), A < B]},
                {limit, lists:all(fun({N, Bs}) ->
                    All = sderl_dist_estimate:peers(N, Nodes, Count + 1),
                    length(Bs) =:= min(Limit, length(All)) andalso Bs -- All =:= []
                        andalso lists:usort(Bs) =:= lists:sort(Bs)
                end, Peers(Limit))}
            ])
        end)
    end).

near_first_test() ->
    Nodes = [list_to_atom(lists:concat([n, I, "@h", I rem 20])) || I <- lists:seq(1, 200)],
    lists:foreach(fun(Node) ->
        Near = [N || N <- sderl_dist_estimate:peers(Node, Nodes, 1000), host(N) =:= host(Node)],
        ?assertEqual(lists:sublist(lists:sort(Near), 8),
                     lists:sort([N
                                 || N <- sderl_dist_estimate:peers(Node, Nodes, 16),
                                    lists:member(N, Near)]))
    end, [N
          || N <- Nodes,
             length([M || M <- sderl_dist_estimate:peers(N, Nodes, 1000), host(M) =:= host(N)]) =<
             8]).

host(Node) -> tl(string:find(atom_to_list(Node), "@")).

%% ---------------------------------------------------------------- the matrix

%% Groups a, b, g and g, h, c and c, d with two gateways, and one leg that nobody measured.
composed_test() ->
    Legs = [{a, g, 10}, {g, a, 8}, {b, g, 20}, {g, c, 100}, {h, c, 30}, {h, g, 500}, {c, d, 1}],
    {Matrix, Kinds, Unconnected} =
        sderl_dist_matrix:complete(Legs, [[a, b, g], [g, h, c], [c, d, x]], a),
    At = fun(A, B) -> map_get(B, map_get(A, Matrix)) end,
    ?assertEqual([x], Unconnected),
    ?assertEqual(8, At(a, g)),
    %% By way of g: the longer of the two legs.
    ?assertEqual(20, At(a, b)),
    ?assertEqual(108, At(a, c)),
    ?assertEqual(109, At(a, d)),
    ?assertEqual(109, At(d, a)),
    ?assertEqual(121, At(b, d)),
    ?assertEqual(138, At(a, h)),
    ?assertEqual(500, At(g, h)),
    ?assertEqual(#{measured => 6, estimated => 1, composed => 8}, Kinds).

complete_test_() ->
    sderl_prop:eunit(
        "a matrix is complete and symmetric, and keeps what was measured",
        200,
        fun() ->
            ?FORALL({Legs, Groups}, {list({place(), place(), range(1, 1000)}), list(list(place()))},
                    begin
                        {Matrix, Kinds, Unconnected} = sderl_dist_matrix:complete(Legs, Groups, n0),
                        Nodes = maps:keys(Matrix),
                        All = lists:usort([n0 | lists:append(Groups)] ++
                                          lists:append([[A, B] || {A, B, _} <- Legs, A =/= B])),
                        conjunction([
                            {nodes, lists:sort(Nodes ++ Unconnected) =:= All},
                            {complete, lists:all(fun({N, Row}) ->
                                lists:sort(maps:keys(Row)) =:= lists:sort(Nodes) -- [N]
                            end, maps:to_list(Matrix))},
                            {symmetric, lists:all(fun({A, B}) ->
                                map_get(A, map_get(B, Matrix)) =:= map_get(B, map_get(A, Matrix))
                            end,
                                                  [{A, B} || A <- Nodes, B <- Nodes, A =/= B])},
                            {measured, lists:all(fun({A, B, _}) ->
                                A =:= B orelse not is_map_key(A, Matrix) orelse
                                map_get(B, map_get(A, Matrix)) =:=
                                lists:min([Ns
                                           || {C, D, Ns} <- Legs,
                                              lists:sort([A, B]) =:= lists:sort([C, D])])
                            end, Legs)},
                            {kinds, lists:sum(maps:values(Kinds)) =:=
                                    length(Nodes) * (length(Nodes) - 1) div 2}
                        ])
                    end)
        end
    ).

place() -> elements([n0, n1, n2, n3, n4, n5, n6, n7]).

%% In a group of 160 each node probes 16 of its mates, and the tree is what it is when all are
%% probed.
sampled_test() ->
    Nodes = [list_to_atom(lists:concat([n, I, "@h", I rem 40])) || I <- lists:seq(1, 160)],
    Place = fun(N) -> list_to_integer(tl(host(N))) end,
    Far = fun(P, P) -> 30_000; (P, Q) when P rem 4 =:= Q rem 4 -> 200_000; (_, _) -> 2_000_000 end,
    Tree = fun(Limit) ->
        Legs = [{A, B, Far(Place(A), Place(B)) + erlang:phash2({A, B}, 10_000)}
                || A <- Nodes, B <- sderl_dist_estimate:peers(A, Nodes, Limit)],
        {Matrix, Kinds, []} = sderl_dist_matrix:complete(Legs, [Nodes], hd(Nodes)),
        Dendrogram = sderl_dist_cluster:dendrogram(Matrix),
        {Kinds,
         sderl_dist_cluster:tree(Dendrogram, sderl_dist_cluster:levels(Dendrogram, 2, 50_000),
                                 fun(L) -> L end)}
    end,
    {#{measured := 12_720}, Full} = Tree(1000),
    {#{measured := 2560, composed := 0}, Sampled} = Tree(16),
    ?assertMatch({network, 3, [_, _, _, _]}, Full),
    ?assertEqual(Full, Sampled).

%% ---------------------------------------------------------------- helpers

matrix(Pairs) ->
    lists:foldl(fun({A, B, D}, Acc) ->
        Put = fun(X, Y, M) -> M#{X => (maps:get(X, M, #{}))#{Y => D}} end,
        Put(A, B, Put(B, A, Acc))
    end, #{}, Pairs).

heights(Dendrogram) ->
    lists:sort([{min(A, B), max(A, B), H} || {A, B, H} <- sderl_dist_cluster:pairs(Dendrogram)]).

any_matrix() ->
    ?LET(N, range(2, 8), ?LET(Ds, vector(N * (N - 1) div 2, range(1, 6)), from_list(N, Ds))).

distinct_matrix() ->
    ?LET(N, range(2, 9), begin
        Count = N * (N - 1) div 2,
        ?LET(Keys, vector(Count, integer()),
             from_list(N, [Rank || {_, Rank} <- lists:sort(lists:zip(Keys, lists:seq(1, Count)))]))
    end).

from_list(N, Distances) ->
    Nodes = lists:sublist([a, b, c, d, e, f, g, h, i], N),
    matrix(lists:zipwith(fun({A, B}, D) -> {A, B, D} end, [{A, B} || A <- Nodes, B <- Nodes, A < B],
                         Distances)).

by_definition([_], _) -> [];
by_definition(Clusters, Matrix) ->
    Far = fun(As, Bs) -> lists:max([map_get(B, map_get(A, Matrix)) || A <- As, B <- Bs]) end,
    {Height, As, Bs} = lists:min([{Far(X, Y), X, Y} || X <- Clusters, Y <- Clusters, X < Y]),
    [{min(A, B), max(A, B), Height} || A <- As, B <- Bs] ++
        by_definition([As ++ Bs | Clusters -- [As, Bs]], Matrix).
