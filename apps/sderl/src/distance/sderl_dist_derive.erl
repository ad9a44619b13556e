%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_derive).
-moduledoc false.
%% A tree of distances from what is known of nodes: the same host, rack, zone, region.
%%
%% Nodes without the label of a level are not put together: two machines with unknown racks are not
%% in one rack. Such a node is placed by the next nearer label that it has, at last by its host,
%% which is part of its name. It is not put with a node of the same host that has the label: it is
%% unknown which of the two is labelled wrongly.

-export([run/2, tree/2, host/1]).
-export_type([labels/0]).

-type labels() :: #{Key :: term() => Value :: term()}.

-spec run(own | all | [node()],
          #{levels := [term()], timeout_ms := pos_integer(), labels => #{node() => labels()}}) ->
    {ok, sderl_dist:derivation()} | {error, not_running}.
run(Nodes, #{levels := Levels, timeout_ms := Timeout} = Options) ->
    sderl_running:while(fun() ->
        case labels(lists:usort(nodes_of(Nodes)), Levels, Timeout, Options) of
            {error, not_running} -> {error, not_running};
            {Labelled, Missing} ->
                {Tree, Present, Unlabelled} = tree(Labelled, Levels),
                {ok,
                 #{tree => Tree, levels => Present, unlabelled => Unlabelled, missing => Missing}}
        end
    end).

nodes_of(own) -> [node() | lists:append([Members || {_, Members} <- sderl_dir:memberships()])];
nodes_of(all) ->
    nodes_of(own) ++
        lists:append([Nodes || {_, Nodes} <- sderl_dir:known() ++ sderl_route:groups()]);
nodes_of(Nodes) -> Nodes.

labels(Nodes, _, _, #{labels := Given}) ->
    {[{Node, maps:get(Node, Given, #{})} || Node <- Nodes], []};
labels(Nodes, Levels, Timeout, _) ->
    case sderl_attr:fetch(Nodes, [{label, Level} || Level <- Levels], #{timeout_ms => Timeout}) of
        {error, not_running} -> {error, not_running};
        Fetched ->
            {[{Node, case map_get(Node, Fetched) of
                  {ok, Answers} -> #{Level => Value || {label, Level} := {ok, Value, _} <- Answers};
                  {error, _} -> #{}
              end} || Node <- Nodes],
             [{Node, Why} || Node <- Nodes, {error, Why} <- [map_get(Node, Fetched)]]}
    end.

-doc """
The tree; its levels, nearest first, each with the distance of two nodes that are together on it and
on no nearer one; and the nodes without a label, by level. `Levels` are given from the widest to the
nearest; a level without any labels is left out.
""".
-spec tree([{node(), labels()}], Levels :: [term()]) ->
    {sderl_dist_tree:network(), [{Level :: term(), Distance :: float()}],
     Unlabelled :: #{Level :: term() => [node()]}}.
tree(Nodes, Wanted) ->
    Levels = [Level || Level <- Wanted, lists:any(fun(Node) -> has(Node, Level) end, Nodes)],
    Unlabelled = #{Level => Without
                   || Level <- Levels,
                      [_ | _] = Without <- [[N || {N, _} = Node <- Nodes, not has(Node, Level)]]},
    Distances = [{Level, math:pow(0.5, Depth)} || {Depth, Level} <- lists:enumerate(Levels)],
    {{network, branches(lists:sort(Nodes), Levels)}, lists:reverse(Distances), Unlabelled}.

has({Node, _}, host) -> host(Node) =/= "";
has({_, Labels}, Level) -> is_map_key(Level, Labels).

-doc "The host part of a node's name; empty if there is none.".
-spec host(node()) -> string().
host(Node) ->
    case lists:dropwhile(fun(C) -> C =/= $@ end, atom_to_list(Node)) of
        [$@ | Host] -> Host;
        [] -> ""
    end.

branches(Nodes, []) ->
    [{node, Node} || {Node, _} <- Nodes];
branches(Nodes, [Level | Nearer]) ->
    %% In the order of the first node of each.
    Places = lists:uniq([place(Node, [Level | Nearer]) || Node <- Nodes]),
    Within = maps:groups_from_list(fun(Node) -> place(Node, [Level | Nearer]) end, Nodes),
    [named(Place, Level, branches(map_get(Place, Within), Nearer)) || Place <- Places].

named({Level, Value}, Level, Inner) -> {network, Value, Inner};
named(_, _, Inner) -> {network, Inner}.

%% The label of this level, or else of the next nearer one.
place({Node, Labels}, [host | _]) ->
    {host, maps:get(host, Labels, host(Node))};
place({_, Labels} = Node, [Level | Nearer]) ->
    case Labels of
        #{Level := Value} -> {Level, Value};
        #{} -> place(Node, Nearer)
    end;
place(Node, []) ->
    place(Node, [host]).
