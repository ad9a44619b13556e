%% SPDX-License-Identifier: Apache-2.0
-module(sderl_plan_check).
-moduledoc false.
%% Whether a term is a plan: those that a person wrote or that a file holds.

-export([plan/1]).

-spec plan(term()) -> ok | {error, sderl_pattern:reason()}.
plan(#{version := 1, groups := Groups, edges := Edges, pattern := Pattern, options := Options,
       left_out := Out} = Plan)
  when is_list(Groups), is_list(Edges), is_atom(Pattern), is_map(Options), is_list(Out),
       map_size(Plan) =:= 6 ->
    maybe
        ok ?= each(fun group/1, Groups),
        ok ?= unique(Groups),
        ok ?= each(fun(E) -> edge(E, #{G => Ns || #{name := G, nodes := Ns} <- Groups}) end, Edges),
        one_edge_each(Edges)
    end;
plan(#{version := Version}) when Version =/= 1 -> {error, {plan_version, Version}};
plan(_) -> {error, {not_a_plan}}.

each(_, []) -> ok;
each(F, [X | Xs]) ->
    case F(X) of
        ok -> each(F, Xs);
        Error -> Error
    end.

group(#{name := undefined}) -> {error, {reserved_name}};
group(#{name := Name, role := Role, masters := M, nodes := Nodes})
  when is_list(Nodes), Role =:= workers orelse Role =:= hub, is_integer(M) ->
    case {lists:all(fun is_atom/1, Nodes), Nodes, Nodes -- lists:usort(Nodes)} of
        {true, [_ | _], []} -> ok;
        {true, [], _} -> {error, {empty_group, Name}};
        {true, _, [Node | _]} -> {error, {node_twice_in_group, Node, Name}};
        {false, _, _} -> {error, {not_a_plan}}
    end;
group(_) -> {error, {not_a_plan}}.

unique(Groups) ->
    Names = [G || #{name := G} <- Groups],
    case Names -- lists:usort(Names) of
        [] -> ok;
        [Name | _] -> {error, {name_twice, Name}}
    end.

edge(#{from := From, to := [_ | _] = To, gateways := [_ | _] = Gateways}, Members) ->
    case [G || G <- [From | To], not is_map_key(G, Members)] of
        [Unknown | _] -> {error, {edge_of_unknown_group, Unknown}};
        [] ->
            case [{N, G}
                  || N <- Gateways, G <- [From | To], not lists:member(N, map_get(G, Members))] of
                [] -> ok;
                [{Node, Group} | _] -> {error, {gateway_not_member, Node, Group}}
            end
    end;
edge(_, _) -> {error, {not_a_plan}}.

one_edge_each(Edges) ->
    All = lists:append([Gs || #{gateways := Gs} <- Edges]),
    case All -- lists:usort(All) of
        [] -> ok;
        [Node | _] -> {error, {gateway_twice, Node}}
    end.
