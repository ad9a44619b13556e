%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_best).
-moduledoc false.
%% Chooses one of many fitting nodes without judging them all: the least or most loaded, the one
%% with the fewest choices, or that of the part (a host, say) with the fewest. Pure, except that
%% functions read values.
%%
%% Pending choices only add to a load, so they are read only for nodes whose value could still be
%% the best; and conditions are checked only for the best node so far. The result is the choice of
%% `sderl_place_pick` among all that fit; a property compares the two.

-export([best/5, fewest/3, emptiest/4]).

-doc "Pending choices of a node, given the base in its cell.".
-type pending() :: fun((node(), Base :: non_neg_integer()) -> non_neg_integer()).
-doc "Whether a node fits the conditions; `stale` if one has to be asked.".
-type fits() :: fun((node()) -> boolean() | stale).

-doc """
The value of a cell is a load: the less the better. `unknown`: a node would have to be asked.
`none`: no node fits.
""".
-spec best([sderl_place_cells:cell()], pending(), fits(), Step, sderl_place_pick:random()) ->
    {ok, node()} | none | unknown when
    Step :: fun((Least :: number(), Greatest :: number()) -> number()).
best([], _, _, _, _) -> none;
best([{First, _, _} | _] = Cells, Pending, Fits, Step, Random) ->
    {Least, Greatest} = range(Cells, First, First),
    least(Cells, none, Pending, Fits, Step(Least, Greatest), Random).

range([{V, _, _} | Cells], Least, Greatest) when V < Least -> range(Cells, V, Greatest);
range([{V, _, _} | Cells], Least, Greatest) when V > Greatest -> range(Cells, Least, V);
range([_ | Cells], Least, Greatest) -> range(Cells, Least, Greatest);
range([], Least, Greatest) -> {Least, Greatest}.

-doc "One with the fewest pending choices.".
-spec fewest([node()], Pending :: fun((node()) -> non_neg_integer()), sderl_place_pick:random()) ->
    {ok, node()} | none.
fewest([], _, _) -> none;
fewest([Node], _, _) -> {ok, Node};
fewest([Node | Nodes], Pending, Random) -> fewest(Nodes, Pending, Random, Pending(Node), 1, Node).

fewest([], _, _, _, _, Best) -> {ok, Best};
fewest([Node | Nodes], Pending, Random0, Fewest, Ties, Best) ->
    case Pending(Node) of
        P when P > Fewest -> fewest(Nodes, Pending, Random0, Fewest, Ties, Best);
        P when P < Fewest -> fewest(Nodes, Pending, Random0, P, 1, Node);
        P ->
            {Next, Random} = either(Ties + 1, Node, Best, Random0),
            fewest(Nodes, Pending, Random, P, Ties + 1, Next)
    end.

-doc """
The value of a cell is the part to which the node belongs. Chooses the part with the fewest pending
choices, and the node with the fewest in it.
""".
-spec emptiest([sderl_place_cells:cell()], pending(), fits(), sderl_place_pick:random()) ->
    {ok, node()} | none | unknown.
emptiest(Cells, Pending, Fits, Random) -> emptiest(Cells, Pending, Fits, Random, #{}).

emptiest([], _, _, _, Parts) when map_size(Parts) =:= 0 -> none;
emptiest([], _, _, Random, Parts) ->
    [First | Rest] = maps:values(Parts),
    {_, {_, _, _, Node}} = lists:foldl(fun
        ({Sum, Fewest, _, _} = Part, {R, {BestSum, BestFewest, _, _}})
          when Sum < BestSum; Sum =:= BestSum, Fewest < BestFewest -> {R, Part};
        ({Sum, Fewest, Ties, _} = Part, {R0, {Sum, Fewest, Before, Best}}) ->
            %% With a probability by the number of nodes to choose from.
            case sderl_place_pick:below(Before + Ties, R0) of
                {I, R} when I < Ties -> {R, setelement(3, Part, Before + Ties)};
                {_, R} -> {R, {Sum, Fewest, Before + Ties, Best}}
            end;
        (_, Acc) -> Acc
    end, {Random, First}, Rest),
    {ok, Node};
emptiest([{Part, Base, Node} | Cells], Pending, Fits, Random0, Parts) ->
    case Fits(Node) of
        true ->
            {New, Random} = counted(Node, Pending(Node, Base), Parts, Part, Random0),
            emptiest(Cells, Pending, Fits, Random, New);
        false -> emptiest(Cells, Pending, Fits, Random0, Parts);
        stale -> unknown
    end.

%% For each part: the sum of its choices, the fewest of a node, how many nodes have so few, and one
%% of these.
counted(Node, P, Parts, Part, Random0) ->
    case Parts of
        #{Part := {Sum, Fewest, Ties, Best}} when P > Fewest ->
            {Parts#{Part := {Sum + P, Fewest, Ties, Best}}, Random0};
        #{Part := {Sum, P, Ties, Best}} ->
            {Next, Random} = either(Ties + 1, Node, Best, Random0),
            {Parts#{Part := {Sum + P, P, Ties + 1, Next}}, Random};
        #{Part := {Sum, _, _, _}} -> {Parts#{Part := {Sum + P, P, 1, Node}}, Random0};
        #{} -> {Parts#{Part => {P, P, 1, Node}}, Random0}
    end.

%% The n-th of several equal ones replaces the one before with the probability 1/n.
either(N, Node, Before, Random0) ->
    case sderl_place_pick:below(N, Random0) of
        {0, Random} -> {Node, Random};
        {_, Random} -> {Before, Random}
    end.

%% The best so far: its load, pending choices, name, and how many are as good. Equal ones are
%% equally likely.
least([], none, _, _, _, _) -> none;
least([], {_, _, Node, _}, _, _, _, _) -> {ok, Node};
least([{Value, _, _} | Values], {Load, _, _, _} = Best, Pending, Fits, Step, Random)
  when Value > Load ->
    least(Values, Best, Pending, Fits, Step, Random);
least([{Value, Base, Node} | Values], Best, Pending, Fits, Step, Random0) ->
    P = Pending(Node, Base),
    Load = Value + P * Step,
    case against(Load, P, Best) of
        worse -> least(Values, Best, Pending, Fits, Step, Random0);
        How ->
            case Fits(Node) of
                true ->
                    {New, Random} = replace(How, {Load, P, Node, 1}, Best, Random0),
                    least(Values, New, Pending, Fits, Step, Random);
                false -> least(Values, Best, Pending, Fits, Step, Random0);
                stale -> unknown
            end
    end.

against(_, _, none) -> better;
against(Load, _, {Best, _, _, _}) when Load < Best -> better;
against(Load, P, {Best, BestP, _, _}) when Load == Best, P < BestP -> better;
against(Load, P, {Best, P, _, _}) when Load == Best -> equal;
against(_, _, _) -> worse.

replace(better, New, _, Random) -> {New, Random};
replace(equal, {Load, P, Node, _}, {_, _, Before, Ties}, Random0) ->
    {Next, Random} = either(Ties + 1, Node, Before, Random0),
    {{Load, P, Next, Ties + 1}, Random}.
