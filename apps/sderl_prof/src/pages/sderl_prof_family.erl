%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_family).
-moduledoc """
The tree of processes (`m:sderl_prof_tree`) as the rows of a page: each process behind its parent,
with its depth, and one row for siblings that are alike and left out.

The rows are bounded: where they are too many the deepest are left out, and counted.
""".

-export([rows/3]).
-export_type([row/0]).

-type row() ::
    #{depth := non_neg_integer(), process := pos_integer(), omitted := 0,
      sums := sderl_prof_activity:sums()}
    | #{depth := non_neg_integer(), process := none, omitted := pos_integer(),
        like := pos_integer(), sums := sderl_prof_activity:sums()}.

-doc """
The rows of a tree, siblings that ran longest first, at most so many; how many rows there are in
all; and how many processes are below siblings that are left out. `IsProcess` tells whether a number
is one of a process.
""".
-spec rows([sderl_prof_tree:branch()], fun((non_neg_integer()) -> boolean()),
           Most :: pos_integer()) ->
    #{rows := [row()], all := non_neg_integer(), below := non_neg_integer()}.
rows(Branches, IsProcess, Most) ->
    Shown = maps:from_keys([N || #{shown := Of} <- Branches, {#{number := N}, _} <- Of], []),
    {Known, Others} = lists:partition(fun(#{parent := P}) -> is_map_key(P, Shown) end, Branches),
    {Below, Roots} = lists:partition(fun(#{parent := P}) -> IsProcess(P) end, Others),
    ByParent = maps:groups_from_list(fun(#{parent := P}) -> P end, Known),
    Rows = lists:reverse(below(Roots, 0, ByParent, [])),
    #{rows => limited(Rows, Most), all => length(Rows),
      below => lists:sum([length(Of) + N || #{shown := Of, omitted := N} <- Below])}.

%% The rows so far, the last one first: a tree may be as deep as it has processes.
below(Branches, Depth, ByParent, Before) ->
    Items = lists:append([items(Branch) || Branch <- Branches]),
    Sorted = lists:sort(fun({_, _, #{run := A}}, {_, _, #{run := B}}) -> A >= B end, Items),
    lists:foldl(fun
        ({process, P, Sums}, Rows) ->
            Row = #{depth => Depth, process => P, omitted => 0, sums => Sums},
            below(maps:get(P, ByParent, []), Depth + 1, ByParent, [Row | Rows]);
        ({{omitted, N}, Like, Sums}, Rows) ->
            [#{depth => Depth, process => none, omitted => N, like => Like, sums => Sums} | Rows]
    end, Before, Sorted).

items(#{shown := Shown, omitted := Omitted, omitted_sums := Sums}) ->
    [{process, P, Its} || {#{number := P}, Its} <- Shown]
        ++ [{{omitted, Omitted}, P, Sums} || {#{number := P}, _} <- lists:sublist(Shown, 1),
                                             Omitted > 0].

limited(Rows, Most) when length(Rows) =< Most -> Rows;
limited(Rows, Most) ->
    Counts = lists:foldl(fun(#{depth := Depth}, Acc) ->
        maps:update_with(Depth, fun(N) -> N + 1 end, 1, Acc)
    end, #{}, Rows),
    Deepest = deepest(0, map_get(0, Counts), Counts, Most),
    lists:sublist([Row || #{depth := Depth} = Row <- Rows, Depth =< Deepest], Most).

%% The depth down to which all rows are not too many, or 0. Above a row there is one of each depth.
deepest(Depth, Sum, Counts, Most) ->
    case Counts of
        #{Depth + 1 := N} when Sum + N =< Most -> deepest(Depth + 1, Sum + N, Counts, Most);
        _ -> Depth
    end.
