%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_paths).
-moduledoc """
The shortest paths over gateways, from the link states of `m:sderl_route_state`.

A path to a group is a chain of gateways of which the first is a linked mate and the last is a
member of the group; its length is the number of gateways on it. Two gateways are next to each other
where both say that they are. A mate counts as the first only where both ends have it in a group
that they share: what a node told that was removed from the group since, and has not told anything
newer here, leads nowhere.

The way to a node that is a gateway itself leads to that very gateway, over links that are there.
Any other node is in one group, and the last gateway on the way to that group delivers.

All first steps of equally short paths are kept, sorted, so that every sender that hashes
over them chooses the same one as long as they are the same.

Pure. Breadth first: gateways and their links once each.
""".

-export([routes/4, reached/4]).
-export_type([routes/0, route/0]).

-doc "How many gateways are crossed, and which may be the first.".
-type route() :: {Gateways :: pos_integer(), First :: [node(), ...]}.
-doc """
`groups`: groups other than the own ones, with their members. `nodes`: their members, and gateways,
other than linked mates. `reached`: the gateways that a path leads to.
""".
-type routes() :: #{groups := #{Group :: term() => {route(), [node()]}},
                    nodes := #{node() => route()},
                    reached := [node()]}.

-spec routes(node(), Own :: [sderl_route_state:membership()], Up :: #{node() => []},
             #{node() => sderl_route_state:advertisement()}) -> routes().
routes(Self, Own, Up, Db0) ->
    Db = maps:remove(Self, Db0),
    OwnGroups = own(Own),
    Reached = search(Up, OwnGroups, Db),
    Others = maps:fold(fun(N, Route, Acc) ->
        {_, _, Gs, _} = maps:get(N, Db),
        lists:foldl(fun({G, Uid, Ms}, A) ->
            Identity = {G, Uid},
            case OwnGroups of
                #{Identity := _} -> A;
                #{} -> better(Identity, Route, Ms, A)
            end
        end, Acc, Gs)
    end, #{}, Reached),
    OwnNames = #{G => [] || {G, _, _} <- Own},
    %% There may be two groups of one name, which know nothing of each other: the nearer one.
    Groups = maps:fold(fun({G, _}, _, Acc) when is_map_key(G, OwnNames) -> Acc;
                          ({G, _}, {Route, Ms}, Acc) -> better(G, Route, Ms, Acc)
                       end, #{}, Others),
    Mates = #{N => [] || {_, _, Ms} <- Own, N <- Ms, is_map_key(N, Up)},
    Beyond = #{N => {Far - 1, Via}
               || N := {Far, Via} <- Reached, Far > 1, not is_map_key(N, Mates)},
    Nodes = maps:fold(fun(_, {Route, Ms}, Acc) ->
        lists:foldl(fun(N, A) when N =:= Self; is_map_key(N, Mates) -> A;
                       (N, A) ->
                           case Db of #{N := {_, _, [_ | _], _}} -> A; _ -> nearer(N, Route, A) end
                    end, Acc, Ms)
    end, Beyond, Others),
    #{groups => Groups, nodes => Nodes, reached => maps:keys(Reached)}.

-doc "The gateways that a path leads to: as in `routes/4`, and cheap where there are many groups.".
-spec reached(node(), Own :: [sderl_route_state:membership()], Up :: #{node() => []},
              #{node() => sderl_route_state:advertisement()}) -> [node()].
reached(Self, Own, Up, Db) -> maps:keys(search(Up, own(Own), maps:remove(Self, Db))).

own(Groups) -> #{{G, Uid} => Ms || {G, Uid, Ms} <- Groups}.

shares(N, Theirs, Own) ->
    lists:any(fun({G, Uid, _}) ->
        case Own of
            #{{G, Uid} := Ms} -> lists:member(N, Ms);
            #{} -> false
        end
    end, Theirs).

search(Up, Own, Db) ->
    First = [N || N := {_, _, Groups, _} <- Db, is_map_key(N, Up), shares(N, Groups, Own)],
    search([{N, [N]} || N <- lists:sort(First)], 1, Db, #{}).

%% One ring of gateways after the other: each with the first steps of all shortest paths to it.
search([], _, _, Reached) -> Reached;
search(Ring, Far, Db, Reached0) ->
    Reached = lists:foldl(fun({N, First}, Acc) -> Acc#{N => {Far, First}} end, Reached0, Ring),
    Next = lists:foldl(fun({N, First}, Acc) ->
        lists:foldl(fun(Y, A) -> A#{Y => lists:umerge(First, maps:get(Y, A, []))} end, Acc,
                    [Y || Y <- beside(N, Db), not is_map_key(Y, Reached)])
    end, #{}, Ring),
    search(lists:sort(maps:to_list(Next)), Far + 1, Db, Reached).

beside(N, Db) ->
    {_, _, _, Links} = maps:get(N, Db),
    [Y || Y <- Links, case Db of #{Y := {_, _, _, Back}} -> lists:member(N, Back); _ -> false end].

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
