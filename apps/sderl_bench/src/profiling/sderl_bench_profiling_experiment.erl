%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profiling_experiment).
-moduledoc """
`bin/sderl bench profiling`: what recording costs, and how fast a trace is analysed.

| metric | meaning |
|---|---|
| `cost` | of each program and profile the run time with recording divided by that without: the median of the pairs, and an interval that has the median with a probability of 95 % (least and greatest below six pairs) |
| `events`, `trace_mb`, `book_mb` | the made-up trace, and its columns on disk |
| `read_s`, `report_s`, `analyse_s` | reading into columns, the report, both |
| `cpu_s` | processor time of both |
| `peak_mb` | memory of this virtual machine at most, less what it had before |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([table/2]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2]).

-define(LOOK_MS, 50).

-doc false.
-spec summary() -> string().
summary() -> "what recording costs a program, how fast a trace is analysed".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Runs programs without and with recording, in turns, and shows the ratio of their run
            times. Then analyses a made-up trace, and shows time and memory.
            """,
        arguments => [
            option(events, "N", integer, 10_000_000, "events of the trace; 0 for none"),
            option(pairs, "N", integer, 10, "pairs of runs of each program; 0 for none"),
            option(size, "N", integer, 2_000, "work of a run"),
            option(processes, "N", integer, 1_000, "pairs of processes in the trace")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Options) ->
    maybe
        ok ?= at_least(0, [events, pairs], Options),
        ok ?= at_least(1, [size, processes], Options),
        ok ?= at_most([{events, 1_000_000_000}, {pairs, 10_000}, {processes, 1_000_000}], Options),
        {ok, Options}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(Options, Output) ->
    Show = fun(Runs) ->
        sderl_bench_output:say(Output, [
            "\n", sderl_bench_machine:text(), "\n\n",
            [table(fun sderl_table:text/2, Metrics) || #{metrics := Metrics} <- Runs]
        ])
    end,
    maybe
        {ok, _} ?= sderl_bench_series:run(profiling, [Options], 1, fun measured/2, Show, Output),
        ok
    end.

-doc "What was measured as tables in the given form.".
-spec table(fun(([unicode:chardata()], [[unicode:chardata()]]) -> unicode:chardata()), map()) ->
    unicode:chardata().
table(Form, Metrics) ->
    [
        [[Form(["program, recorded", "run time, ratio", "95 % from", "to"], [
            [[atom_to_list(Workload), ", ", atom_to_list(Profile)],
             number(Median), number(Least), number(Greatest)]
         || {Workload, Profiles} <- lists:sort(maps:to_list(Cost)),
            Profile <- sderl_bench_profiling_cost:profiles(),
            #{median := Median, least := Least, greatest := Greatest} <-
                [maps:get(Profile, Profiles)]
        ]), "\n"] || #{cost := Cost} <- [Metrics], map_size(Cost) > 0],
        [Form(["analysis", "measured"], [
            ["events", sderl_table:number(map_get(events, Metrics))],
            ["trace, MB", sderl_table:number(map_get(trace_mb, Metrics))],
            ["columns, MB", sderl_table:number(map_get(book_mb, Metrics))],
            ["reading, s", sderl_table:number(map_get(read_s, Metrics))],
            ["report, s", sderl_table:number(map_get(report_s, Metrics))],
            ["both, s", sderl_table:number(map_get(analyse_s, Metrics))],
            ["processor time, s", sderl_table:number(map_get(cpu_s, Metrics))],
            ["memory, MB", sderl_table:number(map_get(peak_mb, Metrics))]
        ]) || is_map_key(events, Metrics)]
    ].

%% Ratios are told with two places.
number(Ratio) -> io_lib:format("~.2f", [float(Ratio)]).

%% ---------------------------------------------------------------- measuring

measured(#{events := Events, pairs := Pairs} = Params, Label) ->
    Dir = filename:join(filename:basedir(user_cache, "sderl"),
                        lists:concat(["bench-profiling-", os:getpid()])),
    ok = filelib:ensure_path(Dir),
    try
        maybe
            {ok, Cost} ?= case Pairs of
                0 -> {ok, #{}};
                _ -> costs(Params#{dir => Dir}, Label)
            end,
            {ok, Analysis} ?= case Events of
                0 -> {ok, #{}};
                _ -> analysed(Params, filename:join(Dir, "trace"))
            end,
            {ok, Analysis#{cost => Cost}}
        end
    after
        _ = file:del_dir_r(Dir)
    end.

costs(Params, Label) ->
    Cases = [{W, P} || W <- sderl_bench_profiling_cost:workloads(),
                       P <- sderl_bench_profiling_cost:profiles()],
    Report = sderl_progress:reporter([Label, ": recording"]),
    costs(lists:enumerate(Cases), length(Cases), Params, Report, #{}).

costs([], _, _, _, Cost) ->
    {ok, Cost};
costs([{N, {Workload, Profile}} | Cases], Count, Params, Report, Cost) ->
    _ = Report(N, Count),
    case sderl_bench_profiling_cost:ratios(Workload, Profile, Params) of
        {ok, Ratios} ->
            {Median, Least, Greatest} = sderl_bench_series:median_interval(Ratios),
            Of = maps:get(Workload, Cost, #{}),
            Now = #{median => Median, least => Least, greatest => Greatest},
            costs(Cases, Count, Params, Report, Cost#{Workload => Of#{Profile => Now}});
        {error, _} = Error -> Error
    end.

analysed(#{events := Wanted, processes := Processes}, Dir) ->
    Events = sderl_bench_profiling_trace:write(Dir, Wanted, Processes),
    true = erlang:garbage_collect(),
    Before = erlang:memory(total),
    Self = self(),
    Watch = spawn_link(fun() -> watch(Self, Before) end),
    {Cpu0, _} = statistics(runtime),
    Progress = sderl_progress:reporter("analysing"),
    Outcome = maybe
        {ReadUs, {ok, Book}} ?=
            timer:tc(fun() -> sderl_prof:open(Dir, #{progress => Progress}) end),
        {ReportUs, {ok, #{trace := #{events := Events}}}} ?=
            timer:tc(fun() -> sderl_prof_report:make(Book, #{}) end),
        {Cpu1, _} = statistics(runtime),
        {ok, #{
            events => Events,
            trace_mb => size_mb(Dir, "events.*"),
            book_mb => size_mb(Book, "*"),
            read_s => ReadUs / 1.0e6,
            report_s => ReportUs / 1.0e6,
            analyse_s => (ReadUs + ReportUs) / 1.0e6,
            cpu_s => (Cpu1 - Cpu0) / 1000
        }}
    else
        {_, {error, Why}} -> {error, {prof, Why}}
    end,
    Watch ! {stop, Self},
    Peak = receive {peak, Watch, Bytes} -> Bytes end,
    case Outcome of
        {ok, Metrics} -> {ok, Metrics#{peak_mb => (Peak - Before) / 1.0e6}};
        Error -> Error
    end.

watch(Owner, Most) ->
    receive
        {stop, Owner} -> Owner ! {peak, self(), Most}
    after ?LOOK_MS -> watch(Owner, max(Most, erlang:memory(total)))
    end.

size_mb(Dir, Pattern) ->
    lists:sum([filelib:file_size(filename:join(Dir, Name))
               || Name <- filelib:wildcard(Pattern, Dir)]) / 1.0e6.
