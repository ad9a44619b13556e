%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pattern_build).
-moduledoc false.
%% Makes plans. First the *skeleton*, without nodes: cells (future groups) and edges with a number
%% of gateways. Then the number of nodes whose home each cell is, then these nodes, then the
%% gateways among them.
%%
%% A cell lends as many nodes as the edges from it have gateways, and borrows those of the edges to
%% it. Its members are those at home and those borrowed; `size` limits members.

-export([build/3, tree_fit/2]).
-export_type([skeleton/0, id/0]).

-type id() :: pos_integer() | {hub, pos_integer()}.
-type skeleton() :: #{cells := [{id(), workers | {hub, Masters :: non_neg_integer()}}],
                      edges := [{From :: id(), To :: [id(), ...], Gateways :: pos_integer()}]}.

-spec build(sderl_pattern:pattern(), [node()], map()) ->
    {ok,
     #{groups := [sderl_pattern:group()], edges := [sderl_pattern:edge()], left_out := [node()]}}
    | {error, sderl_pattern:reason()}.
build(Pattern, Nodes, O) ->
    maybe
        ok ?= consistent(Pattern, O),
        ok ?= distinct(Nodes),
        {ok, Skeleton, Homes, LeftOut, Names} ?= homes(Pattern, Nodes, O),
        named(Skeleton, Homes, LeftOut, Names)
    end.

consistent(_, #{size := _, groups := _}) -> {error, {size_and_groups}};
consistent(tree, #{groups := _}) -> {error, {tree_of_groups}};
consistent(tree, O) when not is_map_key(branching, O) -> {error, {no_branching}};
consistent(star, #{gateways := K, hubs := H}) when K < H ->
    {error, {fewer_gateways_than_hubs, K, H}};
consistent(_, #{order := {attribute, _}, groups := _}) -> {error, {groups_by_attribute}};
consistent(tree, _) -> ok;
consistent(_, #{order := {attribute, _}}) -> ok;
consistent(_, O) when is_map_key(size, O); is_map_key(groups, O) -> ok;
consistent(Pattern, _) -> {error, {no_size, Pattern}}.

distinct([]) -> {error, {no_nodes}};
distinct(Nodes) ->
    case Nodes -- lists:usort(Nodes) of
        [] -> ok;
        [Node | _] -> {error, {node_twice, Node}}
    end.

%% ---------------------------------------------------------------- skeletons

%% The cells and edges of a pattern: of so many groups of workers, of a tree with so many levels.
-spec skeleton(sderl_pattern:pattern(), pos_integer(), map()) ->
    {ok, skeleton()} | {error, sderl_pattern:reason()}.
skeleton(star, G, _) when G < 2 -> {error, {too_few_groups, star, G, 2}};
skeleton(star, G, #{gateways := K, hubs := H, masters := M}) ->
    Hubs = lists:seq(1, H),
    {ok, #{cells => [{{hub, I}, {hub, M}} || I <- Hubs] ++ [{I, workers} || I <- lists:seq(1, G)],
           edges => [{I, [{hub, J}], share(K, H, J)} || I <- lists:seq(1, G), J <- Hubs]}};
skeleton(ring, 1, _) -> {ok, #{cells => [{1, workers}], edges => []}};
skeleton(ring, 2, _) -> {error, {too_few_groups, ring, 2, 3}};
skeleton(ring, G, #{gateways := K}) ->
    {ok, #{cells => [{I, workers} || I <- lists:seq(1, G)],
           edges => [{I, [I rem G + 1], K} || I <- lists:seq(1, G)]}};
skeleton(chain, G, #{gateways := K}) ->
    {ok, #{cells => [{I, workers} || I <- lists:seq(1, G)],
           edges => [{I, [I + 1], K} || I <- lists:seq(1, G - 1)]}};
skeleton(grid, G, #{gateways := K} = O) ->
    Columns = maps:get(columns, O, ceil(math:sqrt(G))),
    {ok, #{cells => [{I, workers} || I <- lists:seq(1, G)],
           edges => [{I, [J], K} || I <- lists:seq(1, G), J <- grid_next(I, Columns, G)]}};
skeleton(tree, X, #{branching := P, gateways := K} = O) ->
    Leaves = maps:get(leaves, O, P),
    {Cells, Edges, _, _} = subtree(1, X, none, {P, K, Leaves}, {1, 1}),
    {ok, #{cells => Cells, edges => Edges}}.

share(K, H, J) -> K div H + case J =< K rem H of true -> 1; false -> 0 end.

grid_next(I, Columns, G) ->
    [J || {J, true} <- [{I + 1, I rem Columns =/= 0}, {I + Columns, true}], J =< G].

%% Depth first, so that nodes that are near in the list are near in the tree. The numbers are those
%% of the next hub and the next group.
subtree(Level, X, Parent, {_, K, Leaves}, {H, W}) when Level =:= X - 1 ->
    Ids = [First | Others] = lists:seq(W, W + Leaves - 1),
    To = Others ++ [Parent || Parent =/= none],
    {[{I, workers} || I <- Ids], [{First, To, K} || To =/= []], H, W + Leaves};
subtree(Level, X, Parent, {P, K, _} = Shape, {H, W}) ->
    Id = {hub, H},
    {Cells, Edges, H1, W1} = lists:foldl(fun(_, {Cs, Es, H0, W0}) ->
        {C, E, HN, WN} = subtree(Level + 1, X, Id, Shape, {H0, W0}),
        {Cs ++ C, Es ++ E, HN, WN}
    end, {[], [], H + 1, W}, lists:seq(1, P)),
    {[{Id, {hub, K}} | Cells], [{Id, [Parent], K} || Parent =/= none] ++ Edges, H1, W1}.

-doc "See `sderl_pattern:tree_fit/2`.".
-spec tree_fit(non_neg_integer(), pos_integer()) -> {non_neg_integer(), non_neg_integer()}.
tree_fit(Nodes, P) -> tree_fit(Nodes, P, 2, {0, 0}).

tree_fit(Nodes, P, X, Best) ->
    case tree_least(X, #{branching => P, gateways => 1}) of
        Used when Used =< Nodes -> tree_fit(Nodes, P, X + 1, {X, Used});
        _ -> Best
    end.

%% The nodes of a tree whose groups at the bottom have `branching` nodes below each.
tree_least(X, #{branching := P, gateways := K} = O) ->
    Inner = lists:sum([power(P, L) || L <- lists:seq(0, X - 2)]),
    K * Inner + power(P, X - 2) * maps:get(leaves, O, P) * P.

power(_, 0) -> 1;
power(B, E) -> B * power(B, E - 1).

%% ---------------------------------------------------------------- how many at home where

%% The nodes that each cell needs: those to lend, and at least one.
needs(#{cells := Cells, edges := Edges}) ->
    Lends = lists:foldl(fun({From, _, K}, M) -> add(From, K, M) end, #{}, Edges),
    Borrows = lists:foldl(fun({_, To, K}, M) ->
        lists:foldl(fun(T, A) -> add(T, K, A) end, M, To)
    end, #{}, Edges),
    {#{Id => max(1, maps:get(Id, Lends, 0)) || {Id, _} <- Cells},
     #{Id => maps:get(Id, Borrows, 0) || {Id, _} <- Cells}}.

add(Key, K, Map) -> maps:update_with(Key, fun(V) -> V + K end, K, Map).

workers(#{cells := Cells}) -> [Id || {Id, workers} <- Cells].

masters(#{cells := Cells}) -> lists:sum([M || {_, {hub, M}} <- Cells]).

%% {ok, Skeleton, #{id() => nodes at home}, nodes left out}
count(tree, N, O) -> count_tree(N, O);
count(Pattern, N, #{groups := G} = O) ->
    maybe
        {ok, Skeleton} ?= skeleton(Pattern, G, O),
        Each = max(0, N - masters(Skeleton)) div G,
        fill(Skeleton, #{Id => Each || Id <- workers(Skeleton)}, N, O)
    end;
count(Pattern, N, #{size := Size, remainder := R} = O) ->
    First = case Pattern of star -> 2; _ -> 1 end,
    maybe
        {ok, Skeleton} ?= search(Pattern, N, First, Size, R, none, O),
        fill(Skeleton, full(Skeleton, Size), N, O)
    end.

full(Skeleton, Size) ->
    {_, Borrows} = needs(Skeleton),
    #{Id => Size - map_get(Id, Borrows) || Id <- workers(Skeleton)}.

%% The fewest groups that hold all, or the most that can be filled.
search(Pattern, N, G, Size, R, Best, O) when G =< N ->
    case skeleton(Pattern, G, O) of
        {ok, Skeleton} ->
            {Needs, _} = needs(Skeleton),
            Full = full(Skeleton, Size),
            Least = lists:max([Size - F + map_get(Id, Needs) || Id := F <- Full]),
            Holds = lists:sum(maps:values(Full)) + masters(Skeleton),
            if
                Least > Size -> searched(Best, {size_too_small, Pattern, Size, Least});
                (R =:= spread orelse R =:= last) andalso Holds >= N -> {ok, Skeleton};
                (R =:= left_out orelse R =:= error) andalso Holds > N ->
                    searched(Best, {too_few_nodes, Pattern, N, Holds});
                true -> search(Pattern, N, G + 1, Size, R, {R, Skeleton}, O)
            end;
        {error, {too_few_groups, _, _, _}} -> search(Pattern, N, G + 1, Size, R, Best, O)
    end;
search(Pattern, N, G, _, _, Best, _) -> searched(Best, {too_few_nodes, Pattern, N, G}).

searched({R, Skeleton}, _) when R =:= left_out; R =:= error -> {ok, Skeleton};
searched(_, Why) -> {error, Why}.

count_tree(N, #{levels := X} = O) -> fill_tree(X, N, O);
count_tree(N, #{size := Size} = O) -> levels_for(2, N, Size, O);
count_tree(N, O) ->
    case [X || X <- lists:seq(2, 40), tree_least(X, O) =< N] of
        [] -> {error, {too_few_nodes, tree, N, tree_least(2, O)}};
        Xs -> fill_tree(lists:max(Xs), N, O)
    end.

levels_for(X, N, Size, O) ->
    case fill_tree(X, N, O) of
        {error, {too_large, _, _}} -> levels_for(X + 1, N, Size, O);
        {error, {too_few_nodes, tree, _, _}} when X > 2 -> {error, {size_too_small_for_tree, Size}};
        Result -> Result
    end.

fill_tree(X, N, #{branching := P, gateways := K} = O) ->
    %% Before a skeleton is made that could be huge.
    case K * lists:sum([power(P, L) || L <- lists:seq(0, X - 2)]) =< N of
        true ->
            {ok, Skeleton} = skeleton(tree, X, O),
            Leaves = maps:get(leaves, O, P),
            Full = case O of
                #{size := Size} -> full(Skeleton, Size);
                %% The first of each node's groups is the home of that node.
                _ ->
                    #{Id => P + case Id rem Leaves =:= 1 rem Leaves of true -> K; false -> 0 end
                      || Id <- workers(Skeleton)}
            end,
            fill(Skeleton, Full, N, O);
        false -> {error, {too_few_nodes, tree, N, tree_least(X, O)}}
    end.

fill(Skeleton, Full, N, #{remainder := R} = O) ->
    {Needs, Borrows} = needs(Skeleton),
    Workers = workers(Skeleton),
    Left = N - masters(Skeleton),
    Least = lists:sum([map_get(Id, Needs) || Id <- Workers]),
    maybe
        true ?= Left >= Least
            orelse {error, {too_few_nodes, pattern(O), N, Least + masters(Skeleton)}},
        {ok, Counts, Out} ?= fill(R, Workers, Left, Full, Needs, Borrows),
        ok ?= within([map_get(Id, Counts) + map_get(Id, Borrows) || Id <- Workers], O),
        {ok, Skeleton, Counts, Out}
    end.

pattern(#{branching := _}) -> tree;
pattern(_) -> any.

within(Members, #{size := Size}) ->
    case lists:max(Members) of
        Most when Most > Size -> {error, {too_large, Most, Size}};
        _ -> ok
    end;
within(_, _) -> ok.

%% One after the other to the group that has the fewest members then.
fill(spread, Workers, Left, _, Needs, Borrows) ->
    Start = gb_sets:from_list([{map_get(Id, Needs) + map_get(Id, Borrows), I, Id}
                               || {I, Id} <- lists:enumerate(Workers)]),
    Least = lists:sum([map_get(Id, Needs) || Id <- Workers]),
    Filled = lists:foldl(fun(_, Set) ->
        {{Members, I, Id}, Rest} = gb_sets:take_smallest(Set),
        gb_sets:add({Members + 1, I, Id}, Rest)
    end, Start, lists:seq(1, Left - Least)),
    {ok, #{Id => Members - map_get(Id, Borrows) || {Members, _, Id} <- gb_sets:to_list(Filled)}, 0};
fill(last, Workers, Left, Full, Needs, _) ->
    Last = lists:last(Workers),
    Counts = Full#{Last => Left - lists:sum([F || Id := F <- Full, Id =/= Last])},
    case [{C, map_get(Id, Needs)} || Id := C <- Counts, C < map_get(Id, Needs)] of
        [] -> {ok, Counts, 0};
        [{Has, Needed} | _] -> {error, {last_too_small, max(0, Has), Needed}}
    end;
fill(error, Workers, Left, Full, Needs, Borrows) ->
    case Left - lists:sum(maps:values(Full)) of
        0 -> fill(left_out, Workers, Left, Full, Needs, Borrows);
        Remainder -> {error, {remainder, Remainder, length(Workers)}}
    end;
fill(left_out, _, Left, Full, Needs, _) ->
    case {[Id || Id := F <- Full, F < map_get(Id, Needs)], Left - lists:sum(maps:values(Full))} of
        {[], Out} when Out >= 0 -> {ok, Full, Out};
        {[], Short} -> {error, {too_few_nodes, any, Left, Left - Short}};
        {[Id | _], _} -> {error, {last_too_small, map_get(Id, Full), map_get(Id, Needs)}}
    end.

%% ---------------------------------------------------------------- who is at home where

%% {ok, Skeleton, #{id() => [node()]}, [node()] left out, #{id() => name}}
homes(Pattern, Nodes, #{order := {attribute, Values}} = O) ->
    case [N || N <- Nodes, not is_map_key(N, Values)] of
        [] when Pattern =:= tree ->
            homes(tree,
                  lists:sort(fun(A, B) -> map_get(A, Values) =< map_get(B, Values) end, Nodes),
                  O#{order => given});
        [] -> by_value(Pattern, Nodes, Values, O);
        [Node | _] -> {error, {no_value, Node}}
    end;
homes(Pattern, Nodes, #{order := Order} = O) ->
    maybe
        {ok, Skeleton, Counts, Out} ?= count(Pattern, length(Nodes), O),
        {In, LeftOut} = lists:split(length(Nodes) - Out, Nodes),
        {ok, Homes} ?= assign(Order, In, Skeleton, Counts, O),
        {ok, Names} ?= names(Skeleton, O),
        {ok, Skeleton, Homes, LeftOut, Names}
    end.

assign(given, Nodes, #{cells := Cells}, Counts, _) ->
    {Homes, []} = lists:mapfoldl(fun
        ({Id, {hub, M}}, Ns) -> {Mine, Rest} = lists:split(M, Ns), {{Id, Mine}, Rest};
        ({Id, workers}, Ns) ->
            {Mine, Rest} = lists:split(map_get(Id, Counts), Ns),
            {{Id, Mine}, Rest}
    end, Nodes, Cells),
    {ok, maps:from_list(Homes)};
assign(Order, Nodes, #{cells := Cells} = Skeleton, Counts, O) ->
    {Hubs, Rest} = lists:mapfoldl(fun({Id, M}, Ns) ->
        {Mine, More} = lists:split(M, Ns),
        {{Id, Mine}, More}
    end, Nodes, [{Id, M} || {Id, {hub, M}} <- Cells]),
    {Needs, Borrows} = needs(Skeleton),
    Bins = [{Id, map_get(Id, Needs), most(Id, Counts, Borrows, O)} || Id <- workers(Skeleton)],
    case sderl_pattern_order:neighbourhoods(Order, Rest, Bins) of
        {ok, Homes} -> {ok, maps:merge(Homes, maps:from_list(Hubs))};
        Error -> Error
    end.

%% With a size, as much as that allows, so that neighbourhoods of unlike sizes stay whole.
most(Id, Counts, Borrows, #{size := Size, remainder := spread}) ->
    max(map_get(Id, Counts), Size - map_get(Id, Borrows));
most(Id, Counts, _, _) -> map_get(Id, Counts).

by_value(Pattern, Nodes, Values, #{gateways := K} = O) ->
    Reserved = case Pattern of star -> map_get(hubs, O) * map_get(masters, O); _ -> 0 end,
    Most = case O of
        #{size := Size} -> Size - case Pattern of star -> 0; grid -> 2 * K; _ -> K end;
        _ -> length(Nodes)
    end,
    maybe
        true ?= Most >= 1 orelse {error, {size_too_small, Pattern, map_get(size, O),
                                          map_get(size, O) + 1 - Most}},
        true ?= Reserved < length(Nodes)
            orelse {error, {too_few_nodes, Pattern, length(Nodes), Reserved + 1}},
        {Masters, Workers} = lists:split(Reserved, Nodes),
        Classes = [{V, [N || N <- Workers, map_get(N, Values) =:= V]}
                   || V <- lists:usort([map_get(N, Values) || N <- Workers])],
        Pieces = [{V, I, Piece} || {V, Ns} <- Classes, {I, Piece} <- pieces(Ns, Most)],
        {ok, Skeleton} ?= skeleton(Pattern, length(Pieces), O),
        {Needs, _} = needs(Skeleton),
        Homes = #{Id => Ns || {Id, {_, _, Ns}} <- lists:enumerate(Pieces)},
        ok ?= value_needs([{V, length(Ns), map_get(Id, Needs)}
                           || {Id, {V, _, Ns}} <- lists:enumerate(Pieces)]),
        {HubHomes, []} = lists:mapfoldl(fun({Id, M}, Ns) ->
            {Mine, More} = lists:split(M, Ns),
            {{Id, Mine}, More}
        end, Masters, [{Id, M} || #{cells := Cells} <- [Skeleton], {Id, {hub, M}} <- Cells]),
        {ok, Names} ?= names(Skeleton, value_names(Pieces, O)),
        {ok, Skeleton, maps:merge(Homes, maps:from_list(HubHomes)), [], Names}
    end.

value_names(_, #{names := _} = O) -> O;
value_names(Pieces, #{name := Name} = O) ->
    O#{names => [case I of whole -> {Name, V}; _ -> {Name, V, I} end || {V, I, _} <- Pieces]}.

pieces(Ns, Most) when length(Ns) =< Most -> [{whole, Ns}];
pieces(Ns, Most) ->
    Count = (length(Ns) + Most - 1) div Most,
    {Cut, []} = lists:mapfoldl(fun(I, Rest) ->
        {Piece, More} = lists:split(share(length(Ns), Count, I), Rest),
        {{I, Piece}, More}
    end, Ns, lists:seq(1, Count)),
    Cut.

value_needs(Pieces) ->
    case [P || {_, Has, Needs} = P <- Pieces, Has < Needs] of
        [] -> ok;
        [{V, Has, Needs} | _] -> {error, {value_too_few, V, Has, Needs}}
    end.

names(#{cells := Cells}, #{name := Name} = O) ->
    Workers = [Id || {Id, workers} <- Cells],
    Hubs = [Id || {Id, {hub, _}} <- Cells],
    Given = maps:get(names, O, [{Name, I} || I <- lists:seq(1, length(Workers))]),
    HubNames = case Hubs of [_] -> [{Name, hub}]; _ -> [{Name, hub, I} || {hub, I} <- Hubs] end,
    case {length(Given), lists:usort(Given ++ HubNames)} of
        {L, _} when L =/= length(Workers) -> {error, {names_number, L, length(Workers)}};
        {_, Unique} when length(Unique) =/= length(Workers) + length(Hubs) ->
            {error, {name_twice, hd((Given ++ HubNames) -- Unique)}};
        _ ->
            case lists:member(undefined, Given) of
                true -> {error, {reserved_name}};
                false -> {ok, maps:from_list(lists:zip(Workers ++ Hubs, Given ++ HubNames))}
            end
    end.

%% ---------------------------------------------------------------- the plan

%% Gateways are the first at home, like Orbit's submasters.
named(#{cells := Cells, edges := Edges0}, Homes, LeftOut, Names) ->
    {Edges, _} = lists:mapfoldl(fun({From, To, K}, Free) ->
        {Gateways, Rest} = lists:split(K, map_get(From, Free)),
        {{From, To, Gateways}, Free#{From := Rest}}
    end, Homes, Edges0),
    Groups = [#{name => map_get(Id, Names),
                role => case Kind of workers -> workers; {hub, _} -> hub end,
                masters => case Kind of workers -> 0; {hub, M} -> M end,
                nodes => map_get(Id, Homes) ++
                    lists:append([Gs || {_, To, Gs} <- Edges, lists:member(Id, To)])}
              || {Id, Kind} <- Cells],
    {ok,
     #{groups => Groups, left_out => LeftOut,
       edges => [#{from => map_get(F, Names), to => [map_get(T, Names) || T <- To], gateways => Gs}
                 || {F, To, Gs} <- Edges]}}.
