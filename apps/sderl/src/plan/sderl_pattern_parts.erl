%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pattern_parts).
-moduledoc false.
%% Which nodes of a plan are where. The plan has been checked by `sderl_pattern`.

-export([nodes/1, home/2, gateways/1, groups_of/2, workers/1, member/2]).

-doc "All nodes that are in a group, sorted.".
-spec nodes(sderl_pattern:plan()) -> [node()].
nodes(#{groups := Groups}) -> lists:usort([N || #{nodes := Ns} <- Groups, N <- Ns]).

-doc "The nodes whose home is this group of the plan, in its order.".
-spec home(Group :: term(), sderl_pattern:plan()) -> [node()].
home(Name, #{groups := Groups, edges := Edges}) ->
    [Nodes] = [Ns || #{name := G, nodes := Ns} <- Groups, G =:= Name],
    Nodes -- lists:append([Gs || #{to := To, gateways := Gs} <- Edges, member(Name, To)]).

-doc "The gateways of all edges, sorted.".
-spec gateways(sderl_pattern:plan()) -> [node()].
gateways(#{edges := Edges}) -> lists:usort([N || #{gateways := Ns} <- Edges, N <- Ns]).

-doc "The groups that a node is in, in the plan's order.".
-spec groups_of(node(), sderl_pattern:plan()) -> [Group :: term()].
groups_of(Node, #{groups := Groups}) ->
    [G || #{name := G, nodes := Ns} <- Groups, lists:member(Node, Ns)].

-doc "The groups of workers, in the plan's order.".
-spec workers(sderl_pattern:plan()) -> [Group :: term()].
workers(#{groups := Groups}) -> [G || #{name := G, role := workers} <- Groups].

-doc "Whether a name is among these: not `lists:member/2`, which takes 1 for 1.0.".
-spec member(term(), [term()]) -> boolean().
member(Name, Names) -> lists:any(fun(N) -> N =:= Name end, Names).
