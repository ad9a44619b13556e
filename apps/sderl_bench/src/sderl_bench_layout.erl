%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_layout).
-moduledoc "Groups of nodes, for benchmarks.".

-export([groups/1, named/2, make/2]).

-define(CALL_MS, 120_000).

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

-doc "Makes the groups, all at the same time, each on its first node, which asks the others to join and so links them.".
-spec make(Fleet :: pid(), [{Group :: term(), [node()]}]) -> ok | {error, term()}.
make(Fleet, Namespaces) ->
    Answers = sderl_bench_task:at_once(Namespaces, fun(Group, [First | _] = Members) ->
        case sderl_fleet:multicall(Fleet, [First], s_group, new_s_group, [Group, Members], ?CALL_MS) of
            [{_, {ok, {ok, Group, Joined}}}] -> {Joined -- Members, Members -- Joined};
            [Other] -> Other
        end
    end),
    case [{Group, Answer} || {Group, Answer} <- Answers, Answer =/= {[], []}] of
        [] -> ok;
        [{Group, Answer} | _] -> {error, {group_not_made, Group, Answer}}
    end.
