%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_leaders).
-moduledoc """
The report of the whole as a page shows it: the first few processes by each measure, how many
processes ran and could run over time, and how far schedulers were awake. It is the part of
`sderl_prof_report` that is made of sums, in the same form, and takes the sums that the index has
in place of another pass over the events.
""".

-export([make/2, metrics/0]).
-export_type([request/0]).

-doc "`top`: rows of each list; `parts`: about so many points of the curves.".
-type request() :: #{top := pos_integer(), parts := pos_integer()}.

-doc "The measures by which processes are listed: all sums but the time that ending took.".
-spec metrics() -> [sderl_prof_sums:metric()].
metrics() -> sderl_prof_sums:metrics() -- [exiting].

-doc "The report.".
-spec make(request(), sderl_prof_window:view()) -> map().
make(#{top := Top, parts := Parts}, #{book := Book, sums := File, index := Index} = View) ->
    #{totals := Totals, processes := Processes} = Index,
    Tops = sderl_prof_sums:fold(fun add/3, #{M => sderl_prof_top:new(Top) || M <- metrics()},
                                File),
    maps:merge(curves(Parts, View), #{
        totals => Totals,
        processes => Processes,
        top => #{Metric => [maps:merge(Sums, sderl_prof_insight:named(-P, Book))
                            || {_, {P, Sums}} <- sderl_prof_top:result(T)]
                 || Metric := T <- Tops}
    }).

%% Of processes with as much the one that came first.
add(P, Sums, Tops) ->
    maps:map(fun(Metric, T) ->
        case map_get(Metric, Sums) of
            0 -> T;
            Value -> sderl_prof_top:add(Value, {-P, Sums}, T)
        end
    end, Tops).

curves(Parts, #{index := #{from := Begin, to := End, schedulers := Schedulers}} = View) ->
    #{grid := Grid, from := From, width := Width} =
        sderl_prof_window:make(#{from => Begin, to => max(Begin + 1, End), columns => Parts,
                                 processes => []}, View),
    Points = lists:zip(sderl_prof_grid:series(running, 0, Grid),
                       sderl_prof_grid:series(runnable, 0, Grid)),
    #{
        width => Width,
        concurrency => [#{from => From - Begin + N * Width, running => mean(Running, Width),
                          runnable => mean(Runnable, Width)}
                        || {N, {Running, Runnable}} <- lists:enumerate(0, Points)],
        awake_ns => #{integer_to_binary(S) =>
                          lists:sum(sderl_prof_grid:series(running, sderl_prof_index:scheduler(S),
                                                           Grid))
                      || S <- Schedulers}
    }.

mean(Ns, Width) -> round(1000 * Ns / Width) / 1000.
