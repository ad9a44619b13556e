%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_difference).
-moduledoc """
What differs between two recordings, before and after a change: processes that are kin
(`m:sderl_prof_summary`), and places in which processes wait. Pure.

A kind of process runs longer or shorter when its running time changed by 10 % and by as much as
says something: 1 ms, and 0.1 % of the longer recording. Times are those of all processes of a kind
together, and not divided by the length of the recording, which is told: of a program that was
recorded from begin to end they are what it took, of a part of what goes on without end they are to
be read as shares.

Waits get longer with the recording, as those of servers that nobody asks. So a place in which
processes wait has changed only when its share of the length has changed by 10 %, too.
""".

-export([compare/3]).
-export_type([side/0, result/0, row/0, wait/0]).

-define(CHANGE, 0.1).
-define(LEAST_NS, 1_000_000).
-define(LEAST_SHARE, 0.001).
%% Lengths that differ by more make times hard to compare.
-define(LENGTHS, 0.05).

-doc "A recording: its length in nanoseconds, kinds of processes, waits by the place's name.".
-type side() :: #{length := pos_integer(),
                  kin := #{sderl_prof_summary:kin() => sderl_prof_summary:group()},
                  waits := #{binary() => sderl_prof_tally:row()}, atom() => term()}.

-doc "`factor` is the running time after, divided by that before; `null` without one of them.".
-type row() :: #{process := binary(), place := [binary()], factor := float() | null,
                 before := sums() | null, 'after' := sums() | null}.
-type sums() :: #{count := pos_integer(), run_share := float(), atom() => number()}.
-type wait() :: #{site := binary(), factor := float() | null,
                  before := times() | null, 'after' := times() | null}.
-type times() :: #{count := pos_integer(), sum_ns := number(), mean_ns := float(),
                   share := float()}.

-doc "`same` counts the kinds that changed less; `least_ns` is the least change that is told.".
-type result() :: #{
    lengths_ns := #{before := pos_integer(), 'after' := pos_integer()},
    lengths_differ := boolean(),
    least_ns := pos_integer(),
    faster := [row()], slower := [row()], appeared := [row()], disappeared := [row()],
    same := non_neg_integer(),
    waits := #{shorter := [wait()], longer := [wait()], appeared := [wait()],
               disappeared := [wait()], same := non_neg_integer()}
}.

-doc "The two; of each list the greatest changes, at most `Top`.".
-spec compare(Before :: side(), After :: side(), Top :: pos_integer()) -> result().
compare(#{length := La} = A, #{length := Lb} = B, Top) ->
    Least = max(?LEAST_NS, round(?LEAST_SHARE * max(La, Lb))),
    Processes = sorted(map_get(kin, A), map_get(kin, B), fun run/1,
                       fun(X, Y) -> change(X, Y, Least) end),
    Waits = sorted(map_get(waits, A), map_get(waits, B), fun sum/1, fun
        (X, Y) when is_number(X), is_number(Y), abs(Y / Lb - X / La) < ?CHANGE * X / La ->
            {same, 0};
        (X, Y) -> change(X, Y, Least)
    end),
    Rows = fun(Of) -> [row(Kin, Ga, Gb, La, Lb) || {_, Kin, Ga, Gb} <- top(Of, Processes, Top)] end,
    Sites = fun(Of) -> [site(S, Wa, Wb, La, Lb) || {_, S, Wa, Wb} <- top(Of, Waits, Top)] end,
    #{
        lengths_ns => #{before => La, 'after' => Lb},
        lengths_differ => abs(La - Lb) > ?LENGTHS * max(La, Lb),
        least_ns => Least,
        faster => Rows(less),
        slower => Rows(more),
        appeared => Rows(appeared),
        disappeared => Rows(disappeared),
        same => length(maps:get(same, Processes, [])),
        waits => #{shorter => Sites(less), longer => Sites(more), appeared => Sites(appeared),
                   disappeared => Sites(disappeared), same => length(maps:get(same, Waits, []))}
    }.

%% Each key with what it has on both sides, by how it changed.
sorted(A, B, Measure, Change) ->
    Both = [{Key, maps:get(Key, A, none), maps:get(Key, B, none)}
            || Key <- lists:usort(maps:keys(A) ++ maps:keys(B))],
    maps:groups_from_list(
        fun({How, _, _, _}) -> element(1, How) end,
        [{Change(measured(Measure, X), measured(Measure, Y)), Key, X, Y}
         || {Key, X, Y} <- Both]
    ).

measured(_, none) -> none;
measured(Measure, Value) -> Measure(Value).

change(none, After, Least) when After >= Least -> {appeared, After};
change(Before, none, Least) when Before >= Least, Before =/= none -> {disappeared, Before};
change(Before, After, Least)
  when Before =/= none, After =/= none, abs(After - Before) >= Least,
       abs(After - Before) >= ?CHANGE * Before ->
    {case After < Before of true -> less; false -> more end, abs(After - Before)};
change(_, _, _) ->
    {same, 0}.

top(Of, Sorted, Top) ->
    Greatest = fun({{_, A}, Ka, _, _}, {{_, B}, Kb, _, _}) -> {-A, Ka} =< {-B, Kb} end,
    lists:sublist(lists:sort(Greatest, maps:get(Of, Sorted, [])), Top).

row(Kin, A, B, La, Lb) ->
    {Process, Place} = case Kin of
        {named, Name} -> {Name, []};
        {entry, Entry, Parents} -> {Entry, Parents}
    end,
    #{process => Process, place => Place, before => group(A, La), 'after' => group(B, Lb),
      factor => factor(measured(fun run/1, A), measured(fun run/1, B))}.

run({_, #{run := Run}}) -> Run.

sum({_, Sum, _}) -> Sum.

group(none, _) -> null;
group({Count, #{run := Run} = Sums}, Length) -> Sums#{count => Count, run_share => Run / Length}.

factor(A, B) when is_number(A), is_number(B), A > 0 -> B / A;
factor(_, _) -> null.

site(Site, A, B, La, Lb) ->
    #{site => Site, before => times(A, La), 'after' => times(B, Lb),
      factor => factor(measured(fun sum/1, A), measured(fun sum/1, B))}.

times(none, _) -> null;
times({N, Sum, _}, Length) ->
    #{count => N, sum_ns => Sum, mean_ns => Sum / N, share => Sum / Length}.
