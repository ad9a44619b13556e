%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profiling_experiment).
-moduledoc """
`bin/sderl bench profiling`: what recording costs, and how fast a trace is analysed.

| metric | meaning |
|---|---|
| `cost` | of each program and of what is recorded the run time with recording divided by that without: the median of the pairs, and an interval that has the median with a probability of 95 % (least and greatest below six pairs) |
| `events`, `trace_mb`, `book_mb` | the made-up trace, and its columns on disk |
| `read_s`, `report_s`, `analyse_s` | reading into columns, the report, both |
| `cpu_s` | processor time of both |
| `peak_mb` | memory of this virtual machine at most, less what it had before |
| `cpu_us_per_event` | `cpu_s` by the events |
| `pages_s`, `first_page_s` | making what pages need; opening it again, and the answers that the time line begins with |
| `sampler` | with `processes` that sleep and 20 that wake each 10 ms: `seconds`, how long it sampled, `own_share`, the part of the time in which the sampler was at work, and `looks_s`, its looks in a second |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, words/1]).

-define(LOOK_MS, 50).
-define(LISTED, 200).
-define(LANES, 30).
-define(COLUMNS, 1200).

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
            option(programs, "LIST", string, programs(),
                   "exchange, compute, registry, and programs of bench vm"),
            option(size, "N", integer, 2_000, "work of a run of exchange and compute"),
            option(run_ms, "MS", integer, 1_000, "how long a run of the others takes, about"),
            option(sampled, "N", integer, 10_000,
                   "processes of the node that is sampled, for a minute; 0 for none, and below "
                   "1,000 for a second"),
            option(processes, "N", integer, 1_000, "pairs of processes in the trace")
        ]
    }.

%% With the programs of other applications where these are installed.
programs() ->
    Known = [Name || {Name, _} <- sderl_bench_vm_program:all()],
    lists:flatten(lists:join(",", ["exchange", "compute"]
                                  ++ [Name || Name <- ["orbit_int", "big"],
                                              lists:member(Name, Known)]
                                  ++ ["registry"])).

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{programs := Text} = Options) ->
    maybe
        ok ?= at_least(0, [events, pairs, sampled], Options),
        ok ?= at_least(1, [size, processes, run_ms], Options),
        ok ?= at_most([{events, 1_000_000_000}, {pairs, 10_000}, {processes, 1_000_000},
                       {run_ms, 600_000}, {sampled, 200_000}], Options),
        Programs = lists:uniq([Name || Name <- words(Text), Name =/= ""]),
        ok ?= known(Programs),
        %% As JSON has them.
        {ok, Options#{programs := [unicode:characters_to_binary(Name) || Name <- Programs]}}
    end.

known([]) -> {error, "--programs names no program; --pairs 0 measures none"};
known(Programs) ->
    Unknown = [Why || Name <- Programs, not lists:member(Name, ["exchange", "compute", "registry"]),
                      {error, Why} <- [sderl_bench_vm_program:find(Name)]],
    case Unknown of
        [] -> ok;
        [Why | _] -> {error, ["--programs: besides exchange, compute and registry, ", Why]}
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

table(Form, Metrics) ->
    [
        [[Form(["program, recorded", "run time, ratio", "95 % from", "to"], [
            [[Program, ", ", atom_to_list(Profile)],
             number(Median), number(Least), number(Greatest)]
         || {Program, Profiles} <- lists:sort(maps:to_list(Cost)),
            {Profile, #{median := Median, least := Least, greatest := Greatest}} <-
                lists:sort(maps:to_list(Profiles))
        ]), "\n"] || #{cost := Cost} <- [Metrics], map_size(Cost) > 0],
        [[Form(["sampler", "measured"], [
            ["processes", sderl_table:number(map_get(processes, Sampler))],
            ["sampled for, s", sderl_table:number(map_get(seconds, Sampler))],
            ["looks in a second", sderl_table:number(map_get(looks_s, Sampler))],
            ["at work, % of a core", number(100 * map_get(own_share, Sampler))]
        ]), "\n"] || #{sampler := Sampler} <- [Metrics]],
        [Form(["analysis", "measured"], [
            ["events", sderl_table:number(map_get(events, Metrics))],
            ["trace, MB", sderl_table:number(map_get(trace_mb, Metrics))],
            ["columns, MB", sderl_table:number(map_get(book_mb, Metrics))],
            ["reading, s", sderl_table:number(map_get(read_s, Metrics))],
            ["report, s", sderl_table:number(map_get(report_s, Metrics))],
            ["both, s", sderl_table:number(map_get(analyse_s, Metrics))],
            ["processor time, s", sderl_table:number(map_get(cpu_s, Metrics))],
            ["processor time of an event, us", number(map_get(cpu_us_per_event, Metrics))],
            ["memory, MB", sderl_table:number(map_get(peak_mb, Metrics))],
            ["making pages, s", sderl_table:number(map_get(pages_s, Metrics))],
            ["opening them, s", number(map_get(first_page_s, Metrics))]
        ]) || is_map_key(events, Metrics)]
    ].

%% Ratios are shown with two decimals.
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
            {ok, Sampler} ?= sderl_bench_profiling_sampler:measure(Params, Label),
            {ok, Analysis} ?= case Events of
                0 -> {ok, #{}};
                _ -> analysed(Params, filename:join(Dir, "trace"))
            end,
            {ok, maps:merge(Analysis, Sampler#{cost => Cost})}
        end
    after
        _ = file:del_dir_r(Dir)
    end.

costs(#{programs := Names} = Params, Label) ->
    maybe
        {ok, Cases} ?= cases(Names, Params, []),
        Report = sderl_progress:reporter([Label, ": recording"]),
        costs(lists:enumerate(Cases), length(Cases), Params, Report, #{})
    end.

cases([], _, Cases) ->
    {ok, lists:append(lists:reverse(Cases))};
cases([Name | Names], Params, Cases) ->
    case sderl_bench_profiling_cost:find(unicode:characters_to_list(Name), Params) of
        {ok, Workload} ->
            Of = [{Name, Workload, Profile}
                  || Profile <- sderl_bench_profiling_cost:profiles(Workload)],
            cases(Names, Params, [Of | Cases]);
        {error, Why} -> {error, {said, Why}}
    end.

costs([], _, _, _, Cost) ->
    {ok, Cost};
costs([{N, {Name, Workload, Profile}} | Cases], Count, Params, Report, Cost) ->
    _ = Report(N, Count),
    case sderl_bench_profiling_cost:ratios(Workload, Profile, Params) of
        {ok, Ratios} ->
            {Median, Least, Greatest} = sderl_bench_series:median_interval(Ratios),
            Of = maps:get(Name, Cost, #{}),
            Now = #{median => Median, least => Least, greatest => Greatest},
            costs(Cases, Count, Params, Report, Cost#{Name => Of#{Profile => Now}});
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
        {ok, Pages} ?= pages(Book),
        {ok, Pages#{
            events => Events,
            trace_mb => size_mb(Dir, "events.*"),
            book_mb => size_mb(Book, "*"),
            read_s => ReadUs / 1.0e6,
            report_s => ReportUs / 1.0e6,
            analyse_s => (ReadUs + ReportUs) / 1.0e6,
            cpu_s => (Cpu1 - Cpu0) / 1000,
            cpu_us_per_event => 1000 * (Cpu1 - Cpu0) / Events
        }}
    else
        {_, {error, Why}} -> {error, {said, sderl_prof:format_error(Why)}};
        {error, Why} -> {error, {said, sderl_prof_view:format_error(Why)}}
    end,
    Watch ! {stop, Self},
    Peak = receive {peak, Watch, Bytes} -> Bytes end,
    case Outcome of
        {ok, Metrics} -> {ok, Metrics#{peak_mb => (Peak - Before) / 1.0e6}};
        Error -> Error
    end.

%% The first requests of a browser: the parts, the rows of the table, and the time line.
pages(Book) ->
    Opened = fun() -> sderl_prof_view:open(Book, fun(_, _) -> ok end) end,
    maybe
        {MakeUs, {ok, View}} ?= timer:tc(Opened),
        ok = sderl_prof_view:close(View),
        {OpenUs, ok} ?= timer:tc(fun() ->
            maybe
                {ok, Again} ?= Opened(),
                #{duration := To} = sderl_prof_view:about(Again),
                {ok, #{processes := Rows}} ?= sderl_prof_view:processes(
                    #{sort => run, search => <<>>, limit => ?LISTED, numbers => []}, Again),
                {ok, _} ?= sderl_prof_view:window(
                    #{from => 0, to => To, columns => ?COLUMNS,
                      processes => [N || #{process := N} <- lists:sublist(Rows, ?LANES)]}, Again),
                sderl_prof_view:close(Again)
            end
        end),
        {ok, #{pages_s => MakeUs / 1.0e6, first_page_s => OpenUs / 1.0e6}}
    else
        {_, {error, Why}} -> {error, Why}
    end.

watch(Owner, Most) ->
    receive
        {stop, Owner} -> Owner ! {peak, self(), Most}
    after ?LOOK_MS -> watch(Owner, max(Most, erlang:memory(total)))
    end.

size_mb(Dir, Pattern) ->
    lists:sum([filelib:file_size(filename:join(Dir, Name))
               || Name <- filelib:wildcard(Pattern, Dir)]) / 1.0e6.
