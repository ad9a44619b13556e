%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_layout).
-moduledoc "Groups of nodes, for benchmarks.".

-export([groups/1, named/2, make/2, delete/2]).

-export_type([namespace/0, namespace/1]).

-doc """
A group and its nodes, as positions in the family (from 1) or by name.
""".
-type namespace(Node) :: {Group :: term(), [Node]}.
-type namespace() :: namespace(node()).

-define(CALL_MS, 120_000).
-define(DELETE_MS, 20_000).
%% A node that stands still answers nothing.
-define(LOOK_MS, 1000).

-doc "`[{g1, [1, 2]}, {g2, [3, 4]}]` for four nodes in groups of two.".
-spec groups(#{nodes := pos_integer(), group_size := pos_integer(), atom() => term()}) ->
    [namespace(pos_integer())].
groups(#{nodes := Nodes, group_size := Size}) when Nodes rem Size =:= 0 ->
    [
        {list_to_atom("g" ++ integer_to_list(K)), lists:seq((K - 1) * Size + 1, K * Size)}
     || K <- lists:seq(1, Nodes div Size)
    ].

-doc "The groups with names of nodes in the place of their positions.".
-spec named([namespace(pos_integer())], [node()]) -> [namespace()].
named(Groups, Nodes) ->
    Names = list_to_tuple(Nodes),
    [{Group, [element(I, Names) || I <- Positions]} || {Group, Positions} <- Groups].

-doc """
Makes all groups at the same time, each by its first node, which asks the others to join and so
links them.
""".
-spec make(Fleet :: pid(), [{Group :: term(), [node()]}]) -> ok | {error, term()}.
make(Fleet, Namespaces) ->
    Answers = sderl_fleet_task:at_once(Namespaces, fun(Group, [First | _] = Members) ->
        case sderl_fleet:multicall(Fleet, [First], s_group, new_s_group, [Group, Members],
                                   ?CALL_MS) of
            [{_, {ok, {ok, Group, Joined}}}] -> {Joined -- Members, Members -- Joined};
            [Other] -> Other
        end
    end),
    case [{Group, Answer} || {Group, Answer} <- Answers, Answer =/= {[], []}] of
        [] -> ok;
        [{Group, Answer} | _] -> {error, {group_not_made, Group, Answer}}
    end.

-doc """
Deletes the groups, each on any of its nodes that runs. Returns when no node that answers has any of
them, or after a while. The nodes are free nodes then, which mesh.
""".
-spec delete(Fleet :: pid(), [{Group :: term(), [node()]}]) -> ok.
delete(Fleet, Namespaces) ->
    Running = sderl_fleet:nodes(Fleet),
    _ = sderl_fleet_task:at_once(Namespaces, fun(Group, Members) ->
        [] =/= lists:dropwhile(
            fun(Node) ->
                [{Node, {ok, ok}}] =/=
                    sderl_fleet:multicall(Fleet, [Node], s_group, delete_s_group, [Group],
                                          ?DELETE_MS)
            end,
            [Node || Node <- Members, lists:member(Node, Running)]
        )
    end),
    %% A member may hear of it after the caller: a group of the same name would be made without it.
    Names = [Group || {Group, _} <- Namespaces],
    _ = sderl_fleet:await(fun() -> none_of(Names, Fleet, Running) end, ?DELETE_MS),
    ok.

none_of(Names, Fleet, Nodes) ->
    Own = [Own
           || {_, {ok, Own}} <- sderl_fleet:multicall(Fleet, Nodes, s_group, own_s_groups, [],
                                                      ?LOOK_MS),
              is_list(Own)],
    not lists:any(fun({Group, _}) -> lists:member(Group, Names) end, lists:append(Own)).
