%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_paths).
-moduledoc """
The shortest paths over gateways, from the link states of `m:sderl_route_state`.

A path to a group is a chain of gateways of which the first is a linked mate and the last is a
member of the group; its length is the number of gateways on it. Two gateways are next to each other
if both say so. A mate counts as the first only if it and this node both have it in a group that
they share: a node that was removed from the group since, and has not announced anything newer here,
is no way.

The way to a node that is a gateway itself leads to that very gateway, over links that are there.
Any other node is in one group, and the last gateway on the way to that group delivers.

All first steps of equally short paths are kept, sorted, so that every sender that hashes
over them chooses the same one as long as they are the same.

Pure. Breadth first: gateways and their links once each.
""".

-export([routes/4, reached/4]).
-export_type([routes/0, route/0, groups/0, link_state/0]).

-doc "What a gateway advertises: its groups with their members, and the gateways it is linked to.".
-type link_state() :: {groups(), Links :: [node()]}.
-doc "Groups with their identity and members.".
-type groups() :: #{Group :: term() => {Uid :: binary(), [node()]}}.

-doc "How many gateways are crossed, and which may be the first.".
-type route() :: {Gateways :: pos_integer(), First :: [node(), ...]}.
-doc """
`groups`: groups other than the own ones, with their members. `nodes`: their members, and gateways,
other than linked mates. `reached`: the gateways that a path leads to.
""".
-type routes() :: #{groups := #{Group :: term() => {route(), [node()]}},
                    nodes := #{node() => route()},
                    reached := [node()]}.

-spec routes(node(), Own :: groups(), Up :: #{node() => []}, #{node() => link_state()}) -> routes().
routes(Self, Own, Up, Db0) ->
    Db = maps:remove(Self, Db0),
    Reached = search(Up, Own, Db),
    Others = maps:fold(fun(N, Route, Acc) ->
        {Gs, _} = maps:get(N, Db),
        maps:fold(fun(G, {Uid, Ms}, A) ->
            case Own of
                #{G := {Uid, _}} -> A;
                #{} -> better({G, Uid}, Route, Ms, A)
            end
        end, Acc, Gs)
    end, #{}, Reached),
    %% Two groups may have one name, and know nothing of each other: then the nearer one.
    Groups = maps:fold(fun({G, _}, _, Acc) when is_map_key(G, Own) -> Acc;
                          ({G, _}, {Route, Ms}, Acc) -> better(G, Route, Ms, Acc)
                       end, #{}, Others),
    Mates = #{N => [] || _ := {_, Ms} <- Own, N <- Ms, is_map_key(N, Up)},
    Beyond = #{N => {Far - 1, Via}
               || N := {Far, Via} <- Reached, Far > 1, not is_map_key(N, Mates)},
    Nodes = maps:fold(fun(_, {Route, Ms}, Acc) ->
        lists:foldl(fun(N, A) when N =:= Self; is_map_key(N, Mates) -> A;
                       (N, A) ->
                           case is_gateway(N, Db) of true -> A; false -> nearer(N, Route, A) end
                    end, Acc, Ms)
    end, Beyond, Others),
    #{groups => Groups, nodes => Nodes, reached => maps:keys(Reached)}.

-doc "The gateways that a path leads to: as in `routes/4`, but cheap with many groups.".
-spec reached(node(), Own :: groups(), Up :: #{node() => []}, #{node() => link_state()}) ->
    [node()].
reached(Self, Own, Up, Db) -> maps:keys(search(Up, Own, maps:remove(Self, Db))).

is_gateway(N, Db) ->
    case Db of
        #{N := {Groups, _}} -> map_size(Groups) > 0;
        #{} -> false
    end.

%% Whether a node and this one both have the node in a group that they share. (Iterates over the
%% maps: with thousands of groups a list would be megabytes of garbage.)
shares(N, Theirs, Own) -> shares_next(N, maps:next(maps:iterator(Theirs)), Own).

shares_next(_, none, _) -> false;
shares_next(N, {G, {Uid, _}, More}, Own) ->
    case Own of
        #{G := {Uid, Ms}} -> lists:member(N, Ms) orelse shares_next(N, maps:next(More), Own);
        #{} -> shares_next(N, maps:next(More), Own)
    end.

search(Up, Own, Db) ->
    First = [N || N := {Groups, _} <- Db, is_map_key(N, Up), shares(N, Groups, Own)],
    search([{N, [N]} || N <- lists:sort(First)], 1, Db, #{}).

%% One ring of gateways after the other, each gateway with the first steps of all shortest paths.
search([], _, _, Reached) -> Reached;
search(Ring, Far, Db, Reached0) ->
    Reached = lists:foldl(fun({N, First}, Acc) -> Acc#{N => {Far, First}} end, Reached0, Ring),
    Next = lists:foldl(fun({N, First}, Acc) ->
        lists:foldl(fun(Y, A) -> A#{Y => lists:umerge(First, maps:get(Y, A, []))} end, Acc,
                    [Y || Y <- beside(N, Db), not is_map_key(Y, Reached)])
    end, #{}, Ring),
    search(lists:sort(maps:to_list(Next)), Far + 1, Db, Reached).

beside(N, Db) ->
    {_, Links} = maps:get(N, Db),
    [Y || Y <- Links, case Db of #{Y := {_, Back}} -> lists:member(N, Back); _ -> false end].

better(G, {Far, First} = Route, Ms, Acc) ->
    case Acc of
        #{G := {{F, _}, _}} when F < Far -> Acc;
        #{G := {{Far, Other}, Members}} ->
            Acc#{G := {{Far, lists:umerge(First, Other)}, lists:umerge(Ms, Members)}};
        _ -> Acc#{G => {Route, Ms}}
    end.

nearer(N, {Far, First} = Route, Acc) ->
    case Acc of
        #{N := {F, _}} when F < Far -> Acc;
        #{N := {Far, Other}} -> Acc#{N := {Far, lists:umerge(First, Other)}};
        _ -> Acc#{N => Route}
    end.
