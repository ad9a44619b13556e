%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_best).
-moduledoc false.
%% The least or most loaded of many nodes that fits, with little looking. Pure but for what is read by functions.
%%
%% Pending choices only add to a load, so they are read of those nodes alone whose value could still be the
%% best; and conditions are checked of those alone that are the best so far. What comes out is what
%% `sderl_place_pick` chooses among all that fit; a property compares.

-export([best/6]).

-doc """
`Read` gives a node's value as a load (the less the better) and its age, `none` if it is no candidate for that,
or `stale`; `Pending` its pending choices, given that age; `Fits` whether it fits. `unknown`: one of them would
have to be asked. (`none` if nobody fits.)
""".
-spec best([node()], Read, Pending, Fits, Step, sderl_place_pick:random()) -> {ok, node()} | none | unknown when
    Read :: fun((node()) -> {number(), AgeMs :: number()} | none | stale),
    Pending :: fun((node(), AgeMs :: number()) -> non_neg_integer()),
    Fits :: fun((node()) -> boolean() | stale),
    Step :: fun((Least :: number(), Greatest :: number()) -> number()).
best(Nodes, Read, Pending, Fits, Step, Random) ->
    case read(Nodes, Read, []) of
        [{First, _, _} | _] = Values ->
            {Least, Greatest} = lists:foldl(fun({V, _, _}, {Lo, Hi}) -> {min(V, Lo), max(V, Hi)} end, {First, First}, Values),
            least(Values, none, Pending, Fits, Step(Least, Greatest), Random);
        [] -> none;
        stale -> unknown
    end.

read([], _, Values) -> Values;
read([Node | Nodes], Read, Values) ->
    case Read(Node) of
        {Value, Age} -> read(Nodes, Read, [{Value, Age, Node} | Values]);
        none -> read(Nodes, Read, Values);
        stale -> stale
    end.

%% The best so far: its load, pending choices, name, and how many are as good. Of equal ones each is as likely: the
%% n-th replaces the one before with the probability 1/n.
least([], none, _, _, _, _) -> none;
least([], {_, _, Node, _}, _, _, _, _) -> {ok, Node};
least([{Value, _, _} | Values], {Load, _, _, _} = Best, Pending, Fits, Step, Random) when Value > Load ->
    least(Values, Best, Pending, Fits, Step, Random);
least([{Value, Age, Node} | Values], Best, Pending, Fits, Step, Random0) ->
    P = Pending(Node, Age),
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
    case sderl_place_pick:below(Ties + 1, Random0) of
        {0, Random} -> {{Load, P, Node, Ties + 1}, Random};
        {_, Random} -> {{Load, P, Before, Ties + 1}, Random}
    end.
