%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pattern_change).
-moduledoc false.
%% Plans that grow and shrink and keep their shape.
%%
%% Growing fills groups, then connects a new one. Shrinking takes nodes out, then repairs what is
%% missing: gateways of edges, masters of hubs, members of groups. If a repair finds no worker to
%% spare anywhere, the last group is dissolved, which frees its nodes.

-export([grow/2, shrink/2]).

-import(sderl_pattern_parts, [home/2, gateways/1, workers/1, member/2]).

-type answer() :: {ok, sderl_pattern:plan()} | {error, sderl_pattern:reason()}.

%% ---------------------------------------------------------------- growing

-spec grow(sderl_pattern:plan(), [node()]) -> answer().
grow(#{left_out := Out} = Plan, Nodes) ->
    Present = sderl_pattern_parts:nodes(Plan),
    case {Nodes -- lists:usort(Nodes), [N || N <- Nodes, lists:member(N, Present)]} of
        {[Node | _], _} -> {error, {node_twice, Node}};
        {_, [Node | _]} -> {error, {node_twice, Node}};
        {[], []} -> place(Nodes, Plan#{left_out := Out -- Nodes})
    end.

place([], Plan) -> {ok, Plan};
place([Node | Nodes] = All, Plan) ->
    case room(Plan, []) of
        {ok, Group} -> place(Nodes, join(Node, Group, Plan));
        none ->
            maybe
                {ok, Left, Grown} ?= extend(All, Plan),
                ok ?= within(Grown),
                place(Left, Grown)
            end
    end.

%% The gateways that a new group borrows may be more than a group can have.
within(#{pattern := Pattern, options := Options, groups := Groups}) ->
    Size = maps:get(size, Options, infinity),
    case [G || #{name := G, role := workers, nodes := Ns} <- Groups, length(Ns) > Size] of
        [] -> ok;
        _ -> {error, {full, Pattern}}
    end.

%% The smallest group of workers, if it has room beside the gateways that it still has to get.
room(#{options := Options} = Plan, Missing) ->
    Size = maps:get(size, Options, infinity),
    case lists:sort([{Members, I, G}
                     || {I, #{name := G, role := workers, nodes := Ns}} <- numbered(Plan),
                        Members <- [length(Ns) +
                                    lists:sum([K || {To, K} <- Missing, member(G, To)])],
                        Members < Size]) of
        [{_, _, Group} | _] -> {ok, Group};
        [] -> none
    end.

numbered(#{groups := Groups}) -> lists:enumerate(Groups).

join(Node, Group, Plan) -> members(Group, fun(Ns) -> Ns ++ [Node] end, Plan).

members(Group, F, #{groups := Groups} = Plan) ->
    Plan#{groups := [
        case G of #{name := Name, nodes := Ns} when Name =:= Group -> G#{nodes := F(Ns)}; _ -> G end
     || G <- Groups
    ]}.

%% A new group with the first of these nodes, connected.
extend(Nodes, #{pattern := Pattern, options := Options, groups := Groups} = Plan) ->
    K = maps:get(gateways, Options, 1),
    New = new_name(Plan),
    Added = Plan#{groups := Groups ++ [#{name => New, role => workers, masters => 0, nodes => []}]},
    case Pattern of
        star ->
            H = maps:get(hubs, Options, 1),
            Hubs = [G || #{name := G, role := hub} <- Groups],
            Shares = [{Hub, K div H + case J =< K rem H of true -> 1; false -> 0 end}
                      || {J, Hub} <- lists:enumerate(Hubs)],
            maybe
                {ok, Left, Settled} ?= settle(Nodes, K, New, Added),
                {ok, Left, lists:foldl(fun({Hub, Share}, P) -> lend(New, [Hub], Share, P) end,
                                       Settled, Shares)}
            end;
        ring ->
            [First | _] = Row = workers(Plan),
            maybe
                true ?= length(Row) >= 3 orelse {error, {full, ring}},
                {ok, Left, Settled} ?= settle(Nodes, K, New, Added),
                Opened = redirect(lists:last(Row), First, New, Settled),
                {ok, Left, lend(New, [First], K, Opened)}
            end;
        chain -> from_neighbours(Nodes, [lists:last(workers(Plan))], K, New, Added);
        grid ->
            Cells = workers(Plan),
            Columns = maps:get(columns, Options, ceil(math:sqrt(length(Cells)))),
            Place = length(Cells) + 1,
            Near = [lists:nth(I, Cells)
                    || {I, true} <- [{Place - 1, (Place - 1) rem Columns =/= 0},
                                     {Place - Columns, Place > Columns}]],
            %% The number of columns stays, as another one would be another grid.
            from_neighbours(Nodes, Near, K, New, Added#{options := Options#{columns => Columns}});
        tree ->
            maybe
                {ok, Left, Settled} ?= settle(Nodes, 1, New, Added),
                branch(Left, New, K, Settled)
            end
    end.

%% Groups of workers are called {Name, 1} and on.
new_name(#{options := Options, groups := Groups}) ->
    Name = maps:get(name, Options, group),
    Taken = [G || #{name := G} <- Groups],
    hd([{Name, I}
        || I <- lists:seq(1, length(Taken) + 1),
           not lists:any(fun(T) -> T =:= {Name, I} end, Taken)]).

%% Gives a group so many of the nodes as home nodes, and if these are too few, workers of the
%% largest groups.
settle(Nodes, Count, Group, Plan) when length(Nodes) >= Count ->
    {Here, Left} = lists:split(Count, Nodes),
    {ok, Left, lists:foldl(fun(N, P) -> join(N, Group, P) end, Plan, Here)};
settle(Nodes, Count, Group, Plan) ->
    Joined = lists:foldl(fun(N, P) -> join(N, Group, P) end, Plan, Nodes),
    case spare(Count - length(Nodes), Group, Joined) of
        {ok, Moved} -> {ok, [], Moved};
        Error -> Error
    end.

from_neighbours(Nodes, Near, K, New, Plan) ->
    maybe
        {ok, Left, Settled} ?= settle(Nodes, 1, New, Plan),
        {ok, Tied} ?= all(fun(G, P) ->
            case plain(G, P) of
                Ns when length(Ns) >= K -> {ok, lend(G, [New], K, P)};
                Ns ->
                    maybe
                        {ok, Moved} ?= spare(K - length(Ns), G, P),
                        {ok, lend(G, [New], K, Moved)}
                    end
            end
        end, Near, Settled),
        {ok, Left, Tied}
    end.

%% Under the lowest nodes of the tree that have the fewest groups.
branch(Left, New, K, #{edges := Edges} = Plan) ->
    Workers = workers(Plan),
    Lowest = lists:sort([{length(To), I, E}
                         || {I, #{from := F, to := To} = E} <- lists:enumerate(Edges),
                            member(F, Workers)]),
    case Lowest of
        [{_, _, #{to := To, gateways := Gs} = Edge} | _] ->
            Changed = Plan#{edges := [case E of Edge -> Edge#{to := To ++ [New]}; _ -> E end
                                      || E <- Edges]},
            {ok, Left, members(New, fun(Ns) -> Ns ++ Gs end, Changed)};
        [] -> {ok, Left, lend(hd(Workers), [New], K, Plan)}
    end.

%% ---------------------------------------------------------------- edges

%% Workers of a group that are no gateways: at home there, and members of nothing else.
plain(Group, Plan) -> home(Group, Plan) -- gateways(Plan).

lend(From, To, K, Plan) -> lend(From, To, K, [], Plan).

%% The present ones are no gateways while their edge is out of the plan.
lend(From, To, K, Present, Plan) ->
    New = lists:sublist(plain(From, Plan) -- Present, K),
    Lent = #{edges := Edges} = lists:foldl(fun(G, P) -> members(G, fun(Ns) -> Ns ++ New end, P) end,
                                           Plan, To),
    Lent#{edges := Edges ++ [#{from => From, to => To, gateways => Present ++ New}]}.

%% The gateways of an edge go to another group.
redirect(From, Old, New, #{edges := Edges} = Plan) ->
    case [E || #{from := F, to := [T]} = E <- Edges, F =:= From, T =:= Old] of
        [#{gateways := Gs} = Edge] ->
            Out = members(Old, fun(Ns) -> Ns -- Gs end, Plan#{
                edges := [case E of Edge -> Edge#{to := [New]}; _ -> E end || E <- Edges]
            }),
            members(New, fun(Ns) -> Ns ++ Gs end, Out);
        [] -> Plan
    end.

%% Moves workers into a group, each from where most are to spare.
spare(0, _, Plan) -> {ok, Plan};
spare(Count, Group, #{options := Options, groups := Groups} = Plan) ->
    [Kind] = [{Role, length(Ns)} || #{name := G, role := Role, nodes := Ns} <- Groups, G =:= Group],
    Rich = [{length(Ns), G, Ns}
            || G <- workers(Plan), G =/= Group, [_ | _] = Ns <- [plain(G, Plan)],
               length(home(G, Plan)) > 1],
    Size = maps:get(size, Options, infinity),
    case lists:sort(fun({A, _, _}, {B, _, _}) -> A >= B end, Rich) of
        _ when element(1, Kind) =:= workers, element(2, Kind) >= Size ->
            {error, {none_to_spare, Group}};
        [{_, From, Ns} | _] ->
            Node = lists:last(Ns),
            spare(Count - 1, Group,
                  join(Node, Group, members(From, fun(M) -> M -- [Node] end, Plan)));
        [] -> {error, {none_to_spare, Group}}
    end.

all(_, [], Plan) -> {ok, Plan};
all(F, [X | Xs], Plan) ->
    case F(X, Plan) of
        {ok, Next} -> all(F, Xs, Next);
        Error -> Error
    end.

%% ---------------------------------------------------------------- shrinking

-spec shrink(sderl_pattern:plan(), [node()]) -> answer().
shrink(#{left_out := Out} = Plan, Nodes) ->
    Known = sderl_pattern_parts:nodes(Plan) ++ Out,
    case [N || N <- Nodes, not lists:member(N, Known)] of
        [Node | _] -> {error, {not_in_plan, Node}};
        [] -> repair(without(Nodes, Plan#{left_out := Out -- Nodes}))
    end.

%% Each edge keeps the gateways that stay; gives also how many it had.
without(Nodes, #{groups := Groups, edges := Edges} = Plan) ->
    {Plan#{groups := [G#{nodes := Ns -- Nodes} || #{nodes := Ns} = G <- Groups],
           edges := [E#{gateways := Gs -- Nodes} || #{gateways := Gs} = E <- Edges]},
     [{From, To, length(Gs)} || #{from := From, to := To, gateways := Gs} <- Edges]}.

repair({Plan, Wanted}) ->
    case all(fun mend_group/2, groups(Plan), Plan) of
        {ok, Manned} ->
            case all(fun mend_edge/2, Wanted, Manned) of
                {ok, Mended} -> {ok, Mended};
                {error, {none_to_spare, _}} -> dissolve(Plan, Wanted)
            end;
        {error, {none_to_spare, _}} -> dissolve(Plan, Wanted)
    end.

groups(#{groups := Groups}) -> Groups.

%% Every group of workers has a home node, and a hub as many as its masters.
mend_group(#{name := G, role := Role, masters := M}, Plan) ->
    Least = case Role of workers -> 1; hub -> M end,
    case Least - length(home(G, Plan)) of
        Missing when Missing > 0 -> spare(Missing, G, Plan);
        _ -> {ok, Plan}
    end.

mend_edge({From, To, K}, #{edges := Edges} = Plan) ->
    [#{gateways := Gs} = Edge] = [E || #{from := F, to := T} = E <- Edges, F =:= From, T =:= To],
    case K - length(Gs) of
        0 -> {ok, Plan};
        Missing ->
            Free = length(plain(From, Plan)),
            maybe
                {ok, Ready} ?= case Free >= Missing of
                    true -> {ok, Plan};
                    false -> spare(Missing - Free, From, Plan)
                end,
                #{edges := Now} = Ready,
                {ok, lend(From, To, Missing, Gs, Ready#{edges := [E || E <- Now, E =/= Edge]})}
            end
    end.

%% The last group of workers goes, and its nodes to the others.
dissolve(#{pattern := Pattern, groups := Groups, edges := Edges} = Plan, Wanted) ->
    Workers = workers(Plan),
    Last = case Pattern of tree -> last_leaf(Edges, Workers); _ -> lists:last(Workers) end,
    Least = case Pattern of star -> 2; ring -> 3; _ -> 1 end,
    case Last =:= none orelse length(Workers) =< Least of
        true -> {error, {too_few_nodes_for, Pattern, length(Workers)}};
        false ->
            Freed = home(Last, Plan),
            Closed = case Pattern of
                ring -> redirect(lists:nth(length(Workers) - 1, Workers), Last, hd(Workers), Plan);
                _ -> Plan
            end,
            #{groups := Groups1, edges := Edges1} = Closed,
            true = length(Groups) =:= length(Groups1),
            Left = Closed#{groups := [G#{nodes := Ns -- Freed}
                                      || #{name := N, nodes := Ns} = G <- Groups1, N =/= Last],
                           edges := [E#{to := [T || T <- To, T =/= Last]}
                                     || #{from := F, to := To} = E <- Edges1, F =/= Last,
                                        To =/= [Last]]},
            %% A gateway that was lent to this group only is a worker again.
            Wanted1 = [case {F, To} of
                           {_, [Last]} when Pattern =:= ring -> {F, [hd(Workers)], K};
                           _ -> {F, [T || T <- To, T =/= Last], K}
                       end
                       || {F, To, K} <- Wanted, F =/= Last, To =/= [Last] orelse Pattern =:= ring],
            maybe
                {ok, Placed} ?= place_without_growing(Freed, missing(Wanted1, Left), Left),
                repair({Placed, Wanted1})
            end
    end.

%% A group at the bottom that lends nothing and is not the only one of its node.
last_leaf(Edges, Workers) ->
    Froms = [F || #{from := F} <- Edges],
    case [G
          || G <- Workers, not member(G, Froms),
             lists:any(fun(#{to := To}) -> member(G, To) end, Edges)] of
        [] -> none;
        Leaves -> lists:last(Leaves)
    end.

missing(Wanted, #{edges := Edges}) ->
    [{To, K - length(Gs)}
     || #{from := From, to := To, gateways := Gs} <- Edges, {F, T, K} <- Wanted, F =:= From,
        T =:= To].

place_without_growing([], _, Plan) -> {ok, Plan};
place_without_growing([Node | Nodes], Missing, #{pattern := Pattern} = Plan) ->
    case room(Plan, Missing) of
        {ok, Group} -> place_without_growing(Nodes, Missing, join(Node, Group, Plan));
        none -> {error, {full, Pattern}}
    end.
