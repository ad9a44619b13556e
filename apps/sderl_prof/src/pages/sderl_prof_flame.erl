%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_flame).
-moduledoc """
Stacks of functions as the tree that a flame graph draws. Pure. Parts that are too small to be seen
are left out, and counted in their parents.
""".

-export([tree/2]).
-export_type([frame/0]).

%% Below so much of the whole nothing is drawn.
-define(LEAST, 2_000).

-doc "A function, the nanoseconds of it and of what it called, and what it called, longest first.".
-type frame() :: {Function :: pos_integer(), Ns :: non_neg_integer(), [frame()]}.

-doc "The tree of stacks whose innermost functions come first, of at most so many frames.".
-spec tree([{sderl_prof_calls:stack(), non_neg_integer()}], Most :: pos_integer()) ->
    {Ns :: non_neg_integer(), [frame()]}.
tree(Stacks, Most) ->
    All = lists:sum([Ns || {_, Ns} <- Stacks]),
    Frames = frames([{lists:reverse(Stack), Ns} || {Stack, Ns} <- Stacks], All div ?LEAST),
    {All, cut(Frames, Most)}.

frames(Stacks, Least) ->
    Groups = maps:groups_from_list(fun({[F | _], _}) -> F end,
                                   fun({[_ | Rest], Ns}) -> {Rest, Ns} end,
                                   [Stack || {[_ | _], _} = Stack <- Stacks]),
    Frames = [{F, Ns, frames(Below, Least)}
              || F := Below <- Groups, Ns <- [lists:sum([N || {_, N} <- Below])], Ns > Least],
    lists:sort(fun({_, A, _}, {_, B, _}) -> A >= B end, Frames).

%% The smallest go first, which are never above those that stay.
cut(Frames, Most) ->
    case lists:reverse(lists:sort(sizes(Frames))) of
        Sizes when length(Sizes) > Most -> above(Frames, lists:nth(Most + 1, Sizes));
        _ -> Frames
    end.

sizes(Frames) -> lists:append([[Ns | sizes(Below)] || {_, Ns, Below} <- Frames]).

above(Frames, Least) -> [{F, Ns, above(Below, Least)} || {F, Ns, Below} <- Frames, Ns > Least].
