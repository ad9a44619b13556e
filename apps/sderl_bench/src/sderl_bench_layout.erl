%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_layout).
-moduledoc "Groups of nodes of equal size, for benchmarks.".

-export([groups/1, named/2]).

-doc "`[{g1, [1, 2]}, {g2, [3, 4]}]` for four nodes in groups of two.".
-spec groups(sderl_bench_impl:params()) -> [sderl_bench_impl:namespace(pos_integer())].
groups(#{nodes := Nodes, group_size := Size}) when Nodes rem Size =:= 0 ->
    [
        {list_to_atom("g" ++ integer_to_list(K)), lists:seq((K - 1) * Size + 1, K * Size)}
     || K <- lists:seq(1, Nodes div Size)
    ].

-doc "The groups with names of nodes in the place of their positions.".
-spec named([sderl_bench_impl:namespace(pos_integer())], [node()]) -> [sderl_bench_impl:namespace()].
named(Groups, Nodes) ->
    Names = list_to_tuple(Nodes),
    [{Group, [element(I, Names) || I <- Positions]} || {Group, Positions} <- Groups].
