%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_compare).
-moduledoc """
What became slower between two files of `bin/sderl bench vm`, as pages of a report: one for each
program, the control first. The verdicts are those of `m:sderl_bench_vm_compare`.
""".

-export([pages/3]).

-import(sderl_claim_points, [text/1]).

-doc """
The start page and the pages. `Counts` is the smallest difference that counts, 0.01 for 1 %. An
error is a text.
""".
-spec pages(Before :: file:filename(), After :: file:filename(), Counts :: float()) ->
    {ok, sderl_report_html:start(), [sderl_claim:page()]} | {error, sderl_command:text()}.
pages(FileA, FileB, Counts) ->
    maybe
        {ok, HeaderA, LinesA} ?= read(FileA),
        {ok, HeaderB, LinesB} ?= read(FileB),
        {ok, #{rows := Rows, control := Control} = Result} ?=
            sderl_bench_vm_compare:compare({HeaderA, LinesA}, {HeaderB, LinesB}, Counts),
        Command = text(["bin/sderl bench vm --compare ", FileA, " ", FileB, threshold(Counts)]),
        All = Control ++ Rows,
        Names = lists:uniq([Name || #{program := Name} <- All]),
        {ok, start({FileA, HeaderA}, {FileB, HeaderB}, Result, Command),
         [page(Name, [Row || #{program := Same} = Row <- All, Same =:= Name], Control, Command)
          || Name <- Names]}
    end.

%% The option in percent, unless it is the command's default.
threshold(0.01) -> "";
threshold(Counts) -> [" --threshold ", float_to_list(100.0 * Counts, [{decimals, 4}, compact])].

read(File) ->
    case sderl_bench_vm_store:read(File) of
        {error, absent} -> {error, ["there are no results in ", File]};
        Read -> Read
    end.

start({FileA, HeaderA}, {FileB, HeaderB}, #{warnings := Warnings} = Result, Command) ->
    #{
        title => "What has changed",
        lead => ["How many times as long each program takes in the second of two files of results, "
                 "and whether that is more than chance."],
        facts => [{"Before", [FileA, ", ", measured(HeaderA)]},
                  {"After", [FileB, ", ", measured(HeaderB)]}],
        remarks => Warnings ++ sderl_bench_vm_compare:notes(Result),
        command => Command,
        measured => ["Before: ", measured(HeaderA), ". After: ", measured(HeaderB), "."]
    }.

measured(Header) ->
    Machine = maps:get(~"machine", Header, #{}),
    ["measured from ", maps:get(~"started", Header, ~"?"),
     [[" on ", Model] || #{~"model" := Model} <- [Machine], is_binary(Model)],
     [io_lib:format(", ~w cores", [Cores]) || #{~"cores" := Cores} <- [Machine]],
     [[", OTP ", Otp] || #{~"settings" := #{~"otp" := Otp}} <- [Header]]].

page(Name, Rows, Control, Command) ->
    #{
        id => Name,
        title => <<>>,
        question => text(question(Name, Control)),
        claim => <<>>,
        verdict => none,
        verdict_text => text(found(Rows)),
        plots => [plot(Name, Rows, Control)],
        tables => [#{title => ~"All points", header => [text(Cell)
                                                          || Cell <- sderl_bench_vm_compare:head()],
                     rows => [[text(Cell) || Cell <- sderl_bench_vm_compare:cells(Row)]
                              || Row <- Rows]}],
        notes => [],
        command => Command
    }.

question(Name, Control) ->
    case [ok || #{program := Same} <- Control, Same =:= Name] of
        [] -> ["Did ", Name, " become slower?"];
        _ -> "Was the machine the same?"
    end.

found(Rows) ->
    Counts = [{Verdict, length([ok || #{verdict := Same} <- Rows, Same =:= Verdict])}
              || Verdict <- [slower, faster, undecided, same]],
    [lists:join(", ", [io_lib:format("~w ~ts", [Count, Verdict])
                       || {Verdict, Count} <- Counts, Count > 0]),
     io_lib:format(" of ~w point~ts.", [length(Rows), [$s || length(Rows) > 1]])].

%% A series for each combination of flags and OTP, and the control beside them.
plot(Name, [#{size := Size} | _] = Rows, Control) ->
    Keys = lists:uniq([Key || #{key := Key} <- Rows]),
    Others = [Row || #{program := Other} = Row <- Control, Other =/= Name],
    #{
        title => text(["Time of ", Name, " after, against before"]),
        x => #{label => atom_to_binary(sderl_bench_vm_size:axis(Size)), unit => <<>>,
               scale => linear, zero => true},
        y => #{label => ~"times as long", unit => <<>>, scale => linear, zero => false},
        series => [#{name => text(sderl_bench_vm_table:series_name(Key)),
                     points => [point(Row) || #{key := Same} = Row <- Rows, Same =:= Key]}
                   || Key <- Keys] ++
            [#{name => ~"control", points => [point(Row) || Row <- Others]} || Others =/= []],
        marks => [#{y => 1, text => ~"as long"}]
    }.

point(#{size := Size, ratio := #{value := Value, low := Low, high := High}}) ->
    #{x => sderl_bench_vm_size:number(Size), y => Value, low => ends(Low, Value),
      high => ends(High, Value)}.

%% Too few values for an interval: the point alone.
ends(undefined, Value) -> Value;
ends(End, _) -> End.
