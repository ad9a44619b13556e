%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_vm_plots).
-moduledoc """
The plots of one program that `bin/sderl bench vm` measured: its speedup with the laws that were
fitted to it, its efficiency, its time, the scatter of its virtual machines, and how many times as
long it takes with other flags or on another OTP.
""".

-export([plots/2]).

-import(sderl_claim_points, [text/1]).

%% Points of the line of a law.
-define(CURVE, 24).

-doc "Of a program with results, beside the control of all programs that were measured with it.".
-spec plots(sderl_bench_vm_summary:program(), [sderl_bench_vm_summary:program()]) ->
    [sderl_claim:plot(), ...].
plots(#{series := Series} = Program, Programs) ->
    [speedups(Program, Programs)] ++ [laws(Of) || [_, _ | _] <- [Series], Of <- Series] ++
        [efficiencies(Program, Programs), times(Series), scatter(Series)] ++
        [compared(Series) || [_, _ | _] <- [Series]].

%% With several series the laws of each have a plot of their own.
speedups(#{name := Name, series := Series} = Program, Programs) ->
    Speedup = fun(#{speedup := Interval}) -> Interval end,
    #{
        title => text(["Speedup of ", Name]),
        x => sizes(Series), y => axis("speedup against one", ""),
        series => [points(Of, Speedup, 1) || Of <- Series] ++
            [(points(Of, Speedup, 1))#{name => ~"control"} || Of <- control(Program, Programs)] ++
            [Law || [Of] <- [Series], Law <- curves(Of)] ++ [ideal(numbers(Series))]
    }.

control(#{control := true}, _) -> [];
control(_, Programs) -> [Of || #{control := true, series := [Of | _]} <- Programs].

ideal(Ns) ->
    #{name => ~"ideal", draw => line,
      points => [#{x => N, y => N, low => N, high => N} || N <- Ns]}.

laws(#{key := Key} = Of) ->
    #{
        title => text(["The laws that fit the speedup with ",
                       sderl_bench_vm_table:series_name(Key)]),
        x => sizes([Of]), y => axis("speedup against one", ""),
        series => [points(Of, fun(#{speedup := Interval}) -> Interval end, 1)
                   | curves(Of) ++ [ideal(numbers([Of]))]]
    }.

%% From one to the most that was measured.
curves(#{amdahl := Amdahl, usl := Usl} = Of) ->
    Ns = numbers([Of]),
    Most = lists:max(Ns),
    Xs = lists:usort(Ns ++ [1 + (Most - 1) * I / ?CURVE || I <- lists:seq(1, ?CURVE - 1)]),
    [#{name => Name, draw => line,
       points => [#{x => X, y => Y, low => Y, high => Y}
                  || X <- Xs, Y <- [sderl_bench_scaling:predicted(Law, X)]]}
     || {Name, #{} = Law} <- [{~"Amdahl's law", Amdahl}, {~"Universal Scalability Law", Usl}]].

efficiencies(#{series := Series} = Program, Programs) ->
    Efficiency = fun sderl_bench_vm_summary:efficiency/1,
    #{
        title => ~"Efficiency: the speedup as a share of the ideal one",
        x => sizes(Series), y => axis("efficiency", "%"),
        series => [points(Of, Efficiency, 0.01) || Of <- Series] ++
            [(points(Of, Efficiency, 0.01))#{name => ~"control"}
             || Of <- control(Program, Programs)]
    }.

times(Series) ->
    #{
        title => ~"Time of one repetition",
        x => sizes(Series), y => axis("time", "ms"),
        series => [points(Of, fun(#{time := Time}) -> Time end, 1.0e6) || Of <- Series]
    }.

%% Each by how far it is from the median of its point.
scatter(Series) ->
    #{
        title => ~"Scatter: the time of each virtual machine",
        x => sizes(Series), y => axis("more than the median", "%"),
        series => [
            #{name => text(sderl_bench_vm_table:series_name(Key)), draw => points,
              points => [#{x => sderl_bench_vm_size:number(Size), y => Y, low => Y, high => Y}
                         || #{size := Size, times := Times, time := #{value := Median}} <- Rows,
                            Time <- Times, Y <- [100 * (Time / Median - 1)]]}
         || #{key := Key, rows := Rows} <- Series
        ],
        marks => [#{y => 0, text => ~"the median"}]
    }.

%% The first series is what the others are compared with.
compared([#{key := First} | Others] = Series) ->
    #{
        title => text(["Time against that with ", sderl_bench_vm_table:series_name(First)]),
        x => sizes(Series), y => (axis("times as long", ""))#{zero => false},
        series => [points(Of, fun(#{against := Against}) -> Against end, 1) || Of <- Others],
        marks => [#{y => 1, text => text(["as with ", sderl_bench_vm_table:series_name(First)])}]
    }.

%% What a function takes of each row, divided by a unit. Rows without it are left out.
points(#{key := Key, rows := Rows}, Take, Unit) ->
    #{
        name => text(sderl_bench_vm_table:series_name(Key)),
        points => [#{x => sderl_bench_vm_size:number(Size), y => Value / Unit,
                     low => ends(Low, Value) / Unit, high => ends(High, Value) / Unit}
                   || #{size := Size} = Row <- Rows,
                      #{value := Value, low := Low, high := High} <- [Take(Row)]]
    }.

%% Too few values for an interval: the point alone.
ends(undefined, Value) -> Value;
ends(End, _) -> End.

numbers(Series) ->
    lists:usort([sderl_bench_vm_size:number(Size)
                 || #{rows := Rows} <- Series, #{size := Size} <- Rows]).

sizes([#{rows := Rows} | _]) -> axis(sderl_bench_vm_table:axis(Rows), "").

axis(Label, Unit) -> #{label => text(Label), unit => text(Unit), scale => linear, zero => true}.
