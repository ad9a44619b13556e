%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_samples_file).
-moduledoc """
What a sampler's looks have found (`m:sderl_prof_looks`), as JSON in the file of a report. Pure.

Names are numbers in the rows, and stand once in `words`.
""".

-export([encode/1, decode/1]).

-define(STATES, [running, runnable, garbage_collecting, waiting, suspended, exiting]).

-doc "As a map that can be JSON.".
-spec encode(sderl_prof_looks:result()) -> #{atom() => term()}.
encode(#{parts := Parts, cells := Cells, groups := Groups}) ->
    Words = lists:usort([Word || {_, Group, Status, Function, Caller, _, _, _} <- Cells,
                                 Word <- [Group, atom_to_binary(Status), Function, Caller]]
                        ++ [Group || {_, Group, _, _, _, _} <- Groups]),
    Numbers = #{Word => N || {N, Word} <- lists:enumerate(0, Words)},
    #{
        words => Words,
        parts => [#{ns => Ns, reductions => Reductions,
                    schedulers => [tuple_to_list(Row) || Row <- Schedulers]}
                  || #{ns := Ns, reductions := Reductions, schedulers := Schedulers} <- Parts],
        cells => [[Part, map_get(Group, Numbers), map_get(atom_to_binary(Status), Numbers),
                   map_get(Function, Numbers), map_get(Caller, Numbers), N, round(Sum),
                   float(Squares)]
                  || {Part, Group, Status, Function, Caller, N, Sum, Squares} <- Cells],
        groups => [[Part, map_get(Group, Numbers), New, Reductions, round(Queues), Most]
                   || {Part, Group, New, Reductions, Queues, Most} <- Groups]
    }.

-doc "Of JSON again; `error` where it is something else.".
-spec decode(term()) -> {ok, sderl_prof_looks:result()} | error.
decode(#{~"words" := Words, ~"parts" := [_ | _] = Parts, ~"cells" := Cells, ~"groups" := Groups}) ->
    try
        true = lists:all(fun is_binary/1, Words),
        All = list_to_tuple(Words),
        Last = length(Parts) - 1,
        {ok, #{parts => [part(Part) || Part <- Parts],
               cells => [cell(Cell, Last, All) || Cell <- Cells],
               groups => [group(Group, Last, All) || Group <- Groups]}}
    catch
        error:_ -> error
    end;
decode(_) -> error.

part(#{~"ns" := Ns, ~"reductions" := Reductions, ~"schedulers" := Schedulers})
  when is_integer(Ns), Ns > 0, is_integer(Reductions) ->
    #{ns => Ns, reductions => Reductions,
      schedulers => [scheduler(Row) || Row <- Schedulers]}.

scheduler([N, Awake, All])
  when is_integer(N), N > 0, is_integer(Awake), Awake >= 0, is_integer(All), All >= 0 ->
    {N, Awake, All}.

cell([Part, Group, Status, Function, Caller, N, Sum, Squares], Last, Words)
  when is_integer(Part), Part >= 0, Part =< Last, is_integer(N), N > 0, is_number(Sum), Sum >= 0,
       is_number(Squares), Squares >= 0 ->
    {Part, word(Group, Words), status(word(Status, Words)), word(Function, Words),
     word(Caller, Words), N, float(Sum), float(Squares)}.

group([Part, Group, New, Reductions, Queues, Most], Last, Words)
  when is_integer(Part), Part >= 0, Part =< Last, is_integer(New), New >= 0, is_integer(Reductions),
       Reductions >= 0, is_number(Queues), Queues >= 0, is_integer(Most), Most >= 0 ->
    {Part, word(Group, Words), New, Reductions, float(Queues), Most}.

word(N, Words) -> element(N + 1, Words).

status(Word) ->
    [Status] = [S || S <- ?STATES, atom_to_binary(S) =:= Word],
    Status.
