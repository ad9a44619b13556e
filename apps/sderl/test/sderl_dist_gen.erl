%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_gen).

%% Networks for properties: trees of any shape with the nodes n1@h, n2@h, ... at the leaves.

-include_lib("proper/include/proper.hrl").

-export([network/0, term_nodes/1, offices/0]).

%% Of any shape, with vertices that are empty, have one thing within, or have a name of any kind.
network() ->
    ?LET(Shape, ?SIZED(Size, vertex(Size)), element(1, fill(Shape, 1))).

vertex(0) ->
    oneof([leaf, {none, []}]);
vertex(Size) ->
    frequency([
        {1, leaf},
        {5, {name(), ?LET(N, range(0, 4), vector(N, ?LAZY(vertex(Size div 3))))}}
    ]).

name() ->
    oneof([none, none, atom(), integer(), "a <name> & \"more\"", <<"b\\">>, {rack, 1}, "two\nlines",
           [16#1F600, 16#E9]]).

fill(leaf, Next) ->
    {{node, list_to_atom("n" ++ integer_to_list(Next) ++ "@h")}, Next + 1};
fill({Name, Inner}, Next) ->
    {Filled, After} = lists:mapfoldl(fun fill/2, Next, Inner),
    {case Name of none -> {network, Filled}; _ -> {network, Name, Filled} end, After}.

%% In the order of the term, written apart from the code under test.
term_nodes({node, Node}) -> [Node];
term_nodes(Term) -> lists:append([term_nodes(T) || T <- element(tuple_size(Term), Term)]).

%% Two clusters of different depth: machines with several nodes, networks of machines, clusters.
offices() ->
    {network, world, [
        {network, oslo, [
            {network, floor1, [
                {network, m1, [{node, 'ada@m1'}, {node, 'bo@m1'}]},
                {network, m2, [{node, 'cy@m2'}]}
            ]},
            {network, floor2, [{network, [{node, 'dee@m3'}]}]}
        ]},
        {network, [{network, "lab", [{node, 'eve@m4'}, {node, 'flo@m5'}]}, {node, 'gus@m6'}]}
    ]}.
