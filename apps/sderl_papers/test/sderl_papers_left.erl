%% SPDX-License-Identifier: Apache-2.0
-module(sderl_papers_left).
-moduledoc "Checks that nothing is left of a workload on its nodes.".

-export([nothing/2]).

-doc "Waits until the function finds no process on any running node, and no group is left.".
-spec nothing(Fleet :: pid(), {module(), atom(), [term()]}) -> ok.
nothing(Fleet, {Module, Function, Args}) ->
    ok = sderl_fleet:await(
        fun() ->
            Left = [
                {Node, Processes, Groups}
             || Node <- sderl_fleet:nodes(Fleet),
                Processes <- [sderl_fleet:call(Fleet, Node, Module, Function, Args)],
                Groups <- [groups(Fleet, Node)],
                {Processes, Groups} =/= {[], []}
            ],
            Left =:= [] orelse Left
        end,
        60_000
    ).

groups(Fleet, Node) ->
    case sderl_fleet:call(Fleet, Node, erlang, whereis, [sderl_node]) of
        undefined -> [];
        _ -> sderl_fleet:call(Fleet, Node, s_group, own_s_groups, [])
    end.
