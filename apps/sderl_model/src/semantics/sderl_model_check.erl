%% SPDX-License-Identifier: Apache-2.0
-module(sderl_model_check).
-moduledoc """
The invariants of every state and step of `m:sderl_model`, and of the view of a real node at any
moment. The tests run thousands of commands and check them after each.
""".

%% Sources. `partition` is the property that was published with the executable model; it suggests
%% three more without having them: no name twice, no empty group, islands are transitive. The
%% others are ours.

-export([state/1, step/4, view/2]).

-doc """
The invariants that a state breaks, each with what breaks it; `[]` if it is sound.

| | |
|---|---|
| `partition` | every node is in s_groups, in one island, or free and hidden, and in one of the three only |
| `own_groups` | a node's groups are those that have it as a member |
| `empty` | no group and no island is without members |
| `one_name` | two groups of one name share no node |
| `pid_twice` | no process has two names in one namespace |
| `dead_name` | no name belongs to a process that is not alive |
| `home` | a name's home is a member, or `any` |
| `links` | both ends have a link, no node has one to itself, none leads to a node that is down |
| `mesh` | members of a group that are up are linked to each other, and so are those of an island |
| `hidden` | islands have normal nodes only |
| `majority` | a group decides by majority on all of its members or on none |
""".
-spec state(sderl_model:state()) -> [{atom(), term()}].
state(S) ->
    lists:append([
        partition(S), own_groups(S),
        [{empty, E}
         || E <- [G || {G, [], _} <- maps:get(s_groups, S)] ++
                 [I || {[], _} = I <- maps:get(free_groups, S)]],
        [{one_name, {G, A, B}}
         || {G, A, _} <- maps:get(s_groups, S), {H, B, _} <- maps:get(s_groups, S),
            G =:= H, A < B, A -- B =/= A],
        lists:append([names(Sp, S) || Sp <- spaces(S)]),
        links(S), majority(S),
        [{mesh, {G, A, B}}
         || {G, Ms, _} <- spaces(S), A <- Ms, B <- Ms, A < B, sderl_model_state:is_up(A, S),
            sderl_model_state:is_up(B, S), not sderl_model_state:linked(A, B, S)],
        [{hidden, N}
         || {Ms, _} <- maps:get(free_groups, S), N <- Ms,
            #{N := {hidden, _, _}} <- [maps:get(nodes, S)]]
    ]).

spaces(#{s_groups := Groups, free_groups := Free, free_hidden_groups := Hidden}) ->
    Groups ++ [{undefined, Ms, Ns} || {Ms, Ns} <- Free] ++
        [{undefined, [N], Ns} || {N, Ns} <- Hidden].

partition(#{s_groups := Groups, free_groups := Free, free_hidden_groups := Hidden,
            nodes := Nodes}) ->
    InGroups = lists:usort(lists:append([Ms || {_, Ms, _} <- Groups])),
    Parts =
        lists:sort(InGroups ++ lists:append([Ms || {Ms, _} <- Free]) ++ [N || {N, _} <- Hidden]),
    [{partition, {Parts, maps:keys(Nodes)}} || Parts =/= lists:sort(maps:keys(Nodes))].

own_groups(#{nodes := Nodes} = S) ->
    [{own_groups, {N, Gs}}
     || N := {Type, _, Gs} <- Nodes,
        lists:sort(Gs) =/= lists:sort(groups_of(N, Type, S))].

groups_of(N, Type, #{s_groups := Groups}) ->
    case [G || {G, Ms, _} <- Groups, lists:member(N, Ms)] of
        [] when Type =:= normal -> [free_normal_group];
        [] -> [free_hidden_group];
        Own -> Own
    end.

names({G, Ms, Ns}, #{processes := Ps, open := Open}) ->
    Pids = [P || _ := #{pid := P} <- Ns],
    [{pid_twice, {G, Ms, P}} || Open =:= [], P <- lists:usort(Pids -- lists:usort(Pids))]
        ++ [{dead_name, {G, N, P}} || N := #{pid := P} <- Ns, not is_map_key(P, Ps)]
        ++ [{home, {G, N, H}} || N := #{home := H} <- Ns, H =/= any, not lists:member(H, Ms)].

majority(#{s_groups := Groups, majority := Majority}) ->
    Known = lists:append([[{G, N} || N <- Ms] || {G, Ms, _} <- Groups]),
    [{majority, Strays} || Strays <- [Majority -- Known], Strays =/= []]
        ++ [{majority, {G, Ms}}
            || {G, Ms, _} <- Groups,
               length(lists:usort([lists:member({G, N}, Majority) || N <- Ms])) > 1].

links(#{nodes := Nodes} = S) ->
    [{links, {A, B}}
     || A := {_, Links, _} <- Nodes, B <- Links,
        A =:= B orelse not sderl_model_state:linked(B, A, S)
            orelse not (sderl_model_state:is_up(A, S) andalso sderl_model_state:is_up(B, S))].

-doc """
The invariants that a node's view breaks at any moment, also while its groups change.

| | |
|---|---|
| `partition` | the node is in s_groups or has free names (an island's, or its own if it is hidden), never both |
| `own_groups` | it is a member of every group that it shows |
| `type` | only a normal node shares free names |
""".
-spec view(node(), sderl_model:view()) -> [{atom(), term()}].
view(N, #{class := Class, groups := Groups}) ->
    Names = [G || {G, _} <- Groups],
    [{partition, {N, Names}} || lists:member(undefined, Names), Names =/= [undefined]]
        ++ [{partition, {N, Class, Names}}
            || (Class =:= s_group) =:= lists:member(undefined, Names), Names =/= []]
        ++ [{own_groups, {N, G, Ms}} || {G, Ms} <- Groups, not lists:member(N, Ms)]
        ++ [{type, {N, Ms}} || {undefined, Ms} <- Groups, Class =:= free_hidden, Ms =/= [N]].

-doc """
The invariants that a step breaks: a command on a node, and the states before and after it.

| | |
|---|---|
| `link_lost` | links only come, unless a node crashes |
| `query` | a query changes no group, no island and no name, unless two islands meet by it |
| `foreign` | names of a group change on none but its members' commands, or with deaths |
| `type` | a hidden node stays hidden, a normal one normal |
""".
-spec step(sderl_model:state(), sderl_model:command(), node(), sderl_model:state()) ->
    [{atom(), term()}].
step(Before, Command, Node, After) ->
    Kind = kind(Command),
    [{link_lost, {A, B}}
     || Command =/= crash, A := {_, Links, _} <- maps:get(nodes, Before), B <- Links,
        not sderl_model_state:linked(A, B, After)]
        ++ [{query, Command} || Kind =:= query, not same(Before, After)]
        ++ [{foreign, {Command, G, Ms}}
            || {G, Ms, Ns} <- maps:get(s_groups, Before), Kind =:= name,
               {H, Now, New} <- maps:get(s_groups, After), H =:= G, Now =:= Ms,
               New =/= Ns, not lists:member(Node, Ms)]
        ++ [{type, N}
            || N := {T, _, _} <- maps:get(nodes, Before),
               #{N := {U, _, _}} <- [maps:get(nodes, After)], T =/= U].

same(#{s_groups := G, free_groups := F, free_hidden_groups := H},
     #{s_groups := G, free_groups := F, free_hidden_groups := H}) ->
    true;
same(_, _) -> false.

kind({whereis_name, _, _}) -> query;
kind({send, _, _, _}) -> query;
kind({lookup, _, _}) -> query;
kind({read, _, _}) -> query;
kind({registered_names, _}) -> query;
kind({own_nodes, _}) -> query;
kind({register_name, _, _, _}) -> name;
kind({register_name, _, _, _, _}) -> name;
kind({re_register_name, _, _, _}) -> name;
kind({unregister_name, _, _}) -> name;
kind(Query) when Query =:= own_nodes; Query =:= own_s_groups; Query =:= s_groups; Query =:= spawn ->
    query;
kind(_) -> other.
