%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_call_graph).
-moduledoc """
Who calls whom, how often and for how long: made of stacks with their time and of counted calls, as
`sderl_prof_calls:result/1` has them. Pure.

In each stack the time of a function with what it calls counts once, to the caller of its outermost
call. So the times of the edges from its callers add up to the time of a function, with recursion,
too. Without recursion its own time and the times of the edges to what it calls do so as well.

A caller of 0 is one that is not known.
""".

-export([make/1, bounded/3]).
-export_type([graph/0, sums/0, edge/0]).

-doc "How often it is called, its own time, and its time with what it calls.".
-type sums() :: {Calls :: non_neg_integer(), Own :: non_neg_integer(),
                 All :: non_neg_integer()}.
-doc "How often the one calls the other, and the time that the other has from it.".
-type edge() :: {Calls :: non_neg_integer(), Ns :: non_neg_integer()}.
-doc """
`ns` is the time of all; `left` are the functions and edges that are not there, as there are too
many of them.
""".
-type graph() :: #{
    ns := non_neg_integer(),
    functions := #{pos_integer() => sums()},
    edges := #{{Caller :: non_neg_integer(), Callee :: pos_integer()} => edge()},
    left := {Functions :: non_neg_integer(), Edges :: non_neg_integer()}
}.

-doc "The graph of all these stacks and calls.".
-spec make(#{stacks := [{sderl_prof_calls:stack(), non_neg_integer()}],
             calls := #{{pos_integer(), non_neg_integer()} => pos_integer()}, atom() => term()}) ->
    graph().
make(#{stacks := Stacks, calls := Counts}) ->
    Times = #{F => {0, Own, All} || F := {Own, All} <- sderl_prof_calls:functions(Stacks)},
    Edges = lists:foldl(fun({Stack, Ns}, Acc) ->
        given(0, lists:reverse(Stack), Ns, #{}, Acc)
    end, #{}, Stacks),
    {Functions, Called} = maps:fold(fun({F, Caller}, N, {Fs, Es}) ->
        {plus(F, {N, 0, 0}, Fs), plus({Caller, F}, {N, 0}, Es)}
    end, {Times, Edges}, Counts),
    #{ns => lists:sum([Ns || {_, Ns} <- Stacks]), functions => Functions, edges => Called,
      left => {0, 0}}.

%% From the outermost function on: each that is not yet in the stack adds to the edge from its
%% caller.
given(_, [F | Stack], Ns, Seen, Edges) when is_map_key(F, Seen) ->
    given(F, Stack, Ns, Seen, Edges);
given(Caller, [F | Stack], Ns, Seen, Edges) ->
    given(F, Stack, Ns, Seen#{F => true}, plus({Caller, F}, {0, Ns}, Edges));
given(_, [], _, _, Edges) ->
    Edges.

plus(Key, New, Map) ->
    case Map of
        #{Key := Old} -> Map#{Key := added(Old, New)};
        _ -> Map#{Key => New}
    end.

added({N, Own, All}, {N1, Own1, All1}) -> {N + N1, Own + Own1, All + All1};
added({N, Ns}, {N1, Ns1}) -> {N + N1, Ns + Ns1}.

-doc """
The same with at most so many functions and edges: those with most time, or most calls where they
have as much of it. Of each edge at least one end is there.
""".
-spec bounded(graph(), MostFunctions :: pos_integer(), MostEdges :: pos_integer()) -> graph().
bounded(#{functions := Functions, edges := Edges, left := {F, E}} = Graph, MostFunctions,
        MostEdges) ->
    Kept = greatest(fun({Calls, _, All}) -> {All, Calls} end, MostFunctions, Functions),
    Reached = #{Key => Edge || {Caller, Callee} = Key := Edge <- Edges,
                               is_map_key(Callee, Kept) orelse is_map_key(Caller, Kept)},
    Edges1 = greatest(fun({Calls, Ns}) -> {Ns, Calls} end, MostEdges, Reached),
    Graph#{functions := Kept, edges := Edges1,
           left := {F + map_size(Functions) - map_size(Kept),
                    E + map_size(Edges) - map_size(Edges1)}}.

greatest(_, Most, Map) when map_size(Map) =< Most -> Map;
greatest(By, Most, Map) ->
    %% Of two that are alike the one with the smaller number stays, whatever the map's order.
    Sorted = lists:sort(fun({K, A}, {L, B}) -> {By(A), L} >= {By(B), K} end, maps:to_list(Map)),
    maps:from_list(lists:sublist(Sorted, Most)).
