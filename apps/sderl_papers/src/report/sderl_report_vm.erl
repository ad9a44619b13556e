%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_vm).
-moduledoc """
The results of `bin/sderl bench vm` as pages of a report: one for each program, with its speedup,
efficiency, time and scatter by schedulers or by nodes, and what limited it. Those of `bin/sderl
bench tables` are in the same kind of file, and have the pages of `m:sderl_report_tables`.
""".

-export([pages/1]).

-import(sderl_bench_vm_table, [interval/2]).

-doc "The start page and the pages of a file. An error is a text.".
-spec pages(file:filename()) ->
    {ok, sderl_report_html:start(), [sderl_claim:page()]} | {error, sderl_command:text()}.
pages(File) ->
    case sderl_bench_vm_store:read(File) of
        {ok, Header, Lines} ->
            Summary = #{programs := Programs, race := Race} =
                sderl_bench_vm_summary:of_lines(Header, Lines),
            Command = maps:get(~"command", Header, ~"bin/sderl bench vm"),
            case [Program || #{series := [_ | _]} = Program <- Programs] of
                [] ->
                    {error, ["nothing has been measured in ", File, " yet: run ", Command]};
                Measured ->
                    Of = lists:any(fun sderl_report_tables:is_table/1, Measured),
                    {ok, start(Of, Header, Summary, Command),
                     sderl_report_tables:pages(Measured, Race, Command) ++
                         [page(Program, Measured, Command)
                          || Program <- Measured, not sderl_report_tables:is_table(Program)]}
            end;
        {error, absent} -> {error, ["there are no results in ", File]};
        Error -> Error
    end.

start(OfTables, Header, #{machine := Machine, vms := Vms, rounds := Rounds} = Summary, Command) ->
    {Title, Lead} = case {OfTables, axis(maps:get(programs, Summary))} of
        {true, _} ->
            {"Tables under load", "Which table is the fastest for which operations."};
        {false, schedulers} ->
            {"Programs by schedulers",
             "How programs scale with the schedulers of one virtual machine, and why they gain no "
             "more."};
        {false, nodes} ->
            {"Programs by nodes",
             "How programs scale with nodes of this machine, and why they gain no more."}
    end,
    #{
        title => Title,
        lead => [Lead, " Every value is of several fresh virtual machines, in rounds of random "
                       "order; intervals are of level 95 %."],
        facts => [{"Machine", machine(Machine)},
                  {"Measured", maps:get(~"started", Header, ~"?")},
                  {"Size", io_lib:format("~w virtual machines in ~w rounds", [Vms, Rounds])},
                  {"OTP", maps:get(~"otp", maps:get(settings, Summary), ~"?")}],
        remarks => sderl_bench_vm_table:notes(Summary) ++ sderl_bench_vm_table:failures(Summary),
        command => Command,
        measured => ["Measured from ", maps:get(~"started", Header, ~"?"), " on one machine: ",
                     machine(Machine), "."]
    }.

machine(Machine) ->
    lists:join(", ", [
        io_lib:format(Format, [Value])
     || {Key, Format} <- [{~"cores", "~w cores"}, {~"model", "~ts"}, {~"memory_mib", "~w MiB"},
                          {~"quota", "quota of ~w processors"}],
        #{Key := Value} <- [Machine], Value =/= null
    ]).

page(#{name := Name, settings := Settings, series := Series} = Program, Programs, Command) ->
    #{
        id => Name,
        title => text(string:trim(sderl_bench_vm_table:settings(Settings), both, " ()")),
        question => text(question(Program)),
        claim => <<>>,
        verdict => none,
        verdict_text => text(found(Program)),
        plots => sderl_report_vm_plots:plots(Program, Programs),
        tables => lists:append([tables(Of, map_get(operations, Program)) || Of <- Series]),
        notes => [text([named(Of, Series), Note])
                  || Of <- Series, Note <- notes(Of, Program, Programs)],
        command => Command
    }.

question(#{control := true}) ->
    "What does the machine give to a program that shares nothing, and how steady is it?";
question(#{name := Name} = Program) ->
    ["How much faster is ", Name, " on more ", atom_to_list(axis([Program])), "?"].

%% What all programs were measured by.
axis(Programs) ->
    [#{size := Size} | _] = [Row || #{series := Series} <- Programs, #{rows := Rows} <- Series,
                                    Row <- Rows],
    sderl_bench_vm_size:axis(Size).

%% No reasons for the control, which the others are compared with.
notes(_, #{control := true}, _) -> [];
notes(Of, _, Programs) ->
    sderl_bench_vm_table:reasons(Of, Programs) ++ sderl_bench_vm_table:fits(Of).

named(_, [_]) -> "";
named(#{key := Key}, _) -> [sderl_bench_vm_table:series_name(Key), ": "].

%% One paragraph for each series.
found(#{series := Series}) ->
    lists:join("\n", [[named(Of, Series), best(Rows), against(Rows), "."]
                      || #{rows := Rows} = Of <- Series]).

%% At the largest size that both have.
against(Rows) ->
    case [{Size, Against} || #{size := Size, against := #{} = Against} <- Rows] of
        [] ->
            "";
        Compared ->
            {Size, Against} = lists:last(Compared),
            [". On ", sderl_bench_vm_size:text(Size), " it takes ",
             interval(fun sderl_table:number/1, Against), " times as long as the first"]
    end.

best(Rows) ->
    [#{size := Any} | _] = Rows,
    Axis = atom_to_list(sderl_bench_vm_size:axis(Any)),
    case [{S, sderl_bench_vm_size:number(Size)}
          || #{size := Size, speedup := #{value := S}} <- Rows] of
        [] ->
            ["Not measured on one ", lists:droplast(Axis)];
        Speedups ->
            case lists:max(Speedups) of
                {_, 1} when length(Speedups) =:= 1 ->
                    ["Measured on one ", lists:droplast(Axis), " only"];
                {_, 1} ->
                    ["No faster on more ", Axis, " than on one"];
                {Speedup, N} ->
                    io_lib:format("~ts times as fast on ~w ~ts as on one",
                                  [sderl_table:number(Speedup), N, Axis])
            end
    end.

%% The times of a series, and what the schedulers did meanwhile.
tables(#{key := Key, rows := Rows}, Operations) ->
    Name = sderl_bench_vm_table:series_name(Key),
    Axis = text(sderl_bench_vm_table:axis(Rows)),
    Compared = lists:any(fun(#{against := Against}) -> Against =/= undefined end, Rows),
    [
        #{
            title => text(["With ", Name]),
            header => [Axis, ~"VMs", ~"time (95 %)", ~"scatter, %", ~"speedup (95 %)",
                       ~"efficiency, % (95 %)"] ++ [~"times the first (95 %)" || Compared] ++
                cost_header(Operations),
            rows => [[text(Cell) || Cell <- row(Row, Compared) ++ cost(Operations, Row)]
                     || Row <- Rows]
        },
        #{
            title => text(["What the schedulers did with ", Name]),
            header => [Axis, ~"at work", ~"dirty at work", ~"processes waiting",
                       ~"context switches", ~"reductions", ~"collections", ~"words freed"],
            rows => [[text(Cell) || Cell <- work(Row)] || Row <- Rows]
        }
    ].

%% What one of its operations takes.
cost_header(none) -> [];
cost_header(#{unit := Unit}) ->
    [text(["one ", Unit, " (95 %)"]), text(["reductions of one ", Unit])].

cost(none, _) -> [];
cost(Operations, Row) ->
    {Time, Reductions} = sderl_bench_vm_table:cost(Operations, Row),
    [interval(fun sderl_bench_vm_table:ns/1, Time), sderl_table:number(Reductions)].

row(#{size := Size, vms := Vms, time := Time, scatter := Scatter, speedup := Speedup,
      against := Against} = Row, Compared) ->
    Percent = fun sderl_bench_vm_table:percent/1,
    [
        number(Size), integer_to_list(Vms), interval(fun sderl_bench_vm_table:ns/1, Time),
        Percent(Scatter), interval(fun sderl_table:number/1, Speedup),
        interval(Percent, sderl_bench_vm_summary:efficiency(Row))
    ] ++ [interval(fun sderl_table:number/1, Against) || Compared].

work(#{size := Size, why := Why}) ->
    [
        number(Size), sderl_table:number(lists:sum(maps:get(~"busy", Why, [])))
        | [sderl_table:number(maps:get(Key, Why, undefined))
           || Key <- [~"dirty_busy", ~"queue", ~"switches", ~"reductions", ~"collections",
                      ~"reclaimed_words"]]
    ].

number(Size) -> integer_to_list(sderl_bench_vm_size:number(Size)).

text(Text) -> sderl_claim_points:text(Text).
