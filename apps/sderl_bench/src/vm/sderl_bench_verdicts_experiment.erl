%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_verdicts_experiment).
-moduledoc """
`bin/sderl bench verdicts`: how often a comparison of `bin/sderl bench vm` is wrong on this machine.

The same program is measured again and again, as a file of results each time, and each file is
compared with the one before: every verdict of *faster* or *slower* is a *false alarm*. And each
time the program is measured with a little more work, and compared with the file before: every
verdict but *slower* means that a slowdown was *missed*.

| metric | meaning |
|---|---|
| `comparisons` | of each kind |
| `false_alarms` | comparisons of the program with itself that say *faster* or *slower* |
| `missed` | comparisons with the slower program that do not say *slower* |
| `control_moved` | comparisons, of both kinds, in which the machine's control differed |
| `comparison_s` | seconds that the measurements of one comparison take, two files: the median |
| `overhead_pct` | the time of the harness itself (a repetition of an empty program), in percent of a repetition of the program: the median of all files but the first |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([metrics/1, table/1]).
-export_type([comparison/0]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, real/4]).

-doc """
`planted`: the later program has more work. `overhead` is the harness's share of the later file's
times. `seconds` is `none` if the file was there before.
""".
-type comparison() :: #{kind := same | planted, verdict := sderl_bench_verdict:verdict(),
                        ratio := sderl_bench_sample:interval(), moved := boolean(),
                        overhead := float(), seconds := none | float()}.

%% Differences below count as none, as with `bench vm --compare`.
-define(COUNTS, 0.01).
-define(PROGRAM, ~"spin").

-doc false.
-spec summary() -> string().
summary() -> "how often a comparison of bench vm is wrong on this machine".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Measures one program again and again with "bench vm", with the same work and with a
            little more, and compares each measurement with the one before. Counts how often the
            comparison sees a difference where there is none, and misses the one that is there.
            Results are kept in a folder, and the same command goes on with them.
            """,
        arguments => [
            option(comparisons, "N", integer, 20, "comparisons of each kind"),
            option(planted_pct, "PCT", string, "5", "how much more work the slower program has"),
            option(vms, "N", integer, 16, "virtual machines of the program in each file"),
            option(runs, "N", integer, 3, "runs in each virtual machine after its warm-up"),
            option(run_ms, "MS", integer, 20, "a run takes so long, by repetition"),
            option(dir, "DIR", string, "verdicts", "the folder of the files of results")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{planted_pct := Text} = Options) ->
    maybe
        ok ?= at_least(1, [comparisons, runs, run_ms], Options),
        ok ?= at_least(sderl_bench_sample:least(sderl_bench_verdict:level(1)), [vms], Options),
        ok ?= at_most([{comparisons, 10_000}, {vms, 1000}, {runs, 1000}, {run_ms, 60_000}],
                      Options),
        {ok, Percent} ?= real("--planted-pct", Text, 0.1, 100),
        {ok, Options#{planted_pct := Percent}}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{comparisons := Count, dir := Dir} = Options, Output) ->
    Started = sderl_bench_output:now(),
    maybe
        ok ?= folder(Dir),
        {ok, First, _} ?= measured(0, same, Options),
        {ok, Comparisons} ?= compared(1, Count, First, Options, Output, []),
        Metrics = metrics(Comparisons),
        sderl_bench_output:say(Output, [shown(Options), table(Comparisons)]),
        sderl_bench_output:write(Output, sderl_bench_output:result(
            verdicts, maps:remove(dir, Options), Metrics, Started))
    end.

folder(Dir) ->
    case filelib:ensure_path(Dir) of
        ok -> ok;
        {error, Why} -> {error, ["--dir ", Dir, ": ", file:format_error(Why)]}
    end.

compared(I, Count, _, _, _, Done) when I > Count -> {ok, lists:reverse(Done)};
compared(I, Count, Before, Options, Output, Done) ->
    maybe
        {ok, Same, Took} ?= measured(I, same, Options),
        {ok, OfSame} ?= comparison(same, Before, Same, Took),
        {ok, Planted, TookPlanted} ?= measured(I, planted, Options),
        {ok, OfPlanted} ?= comparison(planted, Same, Planted, TookPlanted),
        sderl_bench_output:say(Output, io_lib:format("~w/~w  the same: ~ts; more work: ~ts~n",
                                                     [I, Count, said(OfSame), said(OfPlanted)])),
        compared(I + 1, Count, Same, Options, Output, [OfPlanted, OfSame | Done])
    end.

said(#{verdict := Verdict, ratio := #{value := Value}}) ->
    io_lib:format("~ts (~.3f)", [Verdict, Value]).

%% ---------------------------------------------------------------- a file of results

%% A complete file is only read. Measures with the same modules as `bench vm`.
measured(I, Kind, #{dir := Dir} = Options) ->
    File = filename:join(Dir, io_lib:format("~4..0w-~ts.jsonl", [I, Kind])),
    IsNew = not filelib:is_file(File),
    From = erlang:monotonic_time(millisecond),
    maybe
        {ok, {measure, Asked}} ?= request(Kind, File, Options),
        {ok, _, Header, Lines} ?= sderl_bench_vm_run:measure(Asked),
        [] ?= [Why || #{~"kind" := ~"failed", ~"reason" := Why} <- Lines],
        Took = (erlang:monotonic_time(millisecond) - From) / 1000,
        {ok, {Header, Lines}, case IsNew of true -> Took; false -> none end}
    else
        [Why | _] -> {error, [File, ": ", Why]};
        Error -> Error
    end.

request(Kind, File, #{vms := Vms, runs := Runs, run_ms := RunMs} = Options) ->
    Settings = settings(Kind, Options),
    Job = #{name => ?PROGRAM, job => {program, sderl_bench_vm_spin, Settings},
            settings => Settings, modules => [sderl_bench_vm_spin]},
    %% All virtual machines are measured, however narrow the interval is.
    sderl_bench_vm_request:measure(
        #{name => "verdicts", arguments => [], given => #{}},
        #{out => lists:flatten(File), schedulers => "1", cores => "1", budget_min => "100000",
          width => "100", least => Vms, rounds => Vms, runs => Runs, run_ms => RunMs, vm_s => 10,
          limit_s => 120},
        [Job]).

settings(same, _) -> sderl_bench_vm_spin:settings(short, 1);
settings(planted, #{planted_pct := Percent}) ->
    #{steps := Steps} = Settings = sderl_bench_vm_spin:settings(short, 1),
    Settings#{steps := round(Steps * (1 + Percent / 100))}.

comparison(Kind, Before, After, Took) ->
    case sderl_bench_vm_compare:compare(Before, After, ?COUNTS) of
        {ok, #{rows := [#{verdict := Verdict, ratio := Ratio}], control := Control}} ->
            {ok, #{kind => Kind, verdict => Verdict, ratio => Ratio, seconds => Took,
                   overhead => overhead(After),
                   moved => lists:any(fun(#{verdict := Of}) -> Of =:= slower orelse Of =:= faster
                                      end, Control)}};
        Error -> Error
    end.

overhead({Header, Lines}) ->
    #{programs := Programs} = sderl_bench_vm_summary:of_lines(Header, Lines),
    [Share] = [Share || #{control := false, series := [#{rows := [#{overhead := Share}]}]}
                            <- Programs],
    Share.

%% ---------------------------------------------------------------- what they say

-doc "The metrics of comparisons, as many of each kind.".
-spec metrics([comparison()]) -> #{atom() => number() | null}.
metrics(Comparisons) ->
    Verdicts = fun(Kind) -> verdicts(Kind, Comparisons) end,
    %% A comparison needs two files, of which the earlier one serves another comparison, too.
    Seconds = [2 * S || #{seconds := S} <- Comparisons, S =/= none],
    #{
        comparisons => length(Verdicts(same)),
        false_alarms => length([V || V <- Verdicts(same), V =:= faster orelse V =:= slower]),
        missed => length([V || V <- Verdicts(planted), V =/= slower]),
        control_moved => length([ok || #{moved := true} <- Comparisons]),
        overhead_pct => 100 * sderl_table:median([Share || #{overhead := Share} <- Comparisons]),
        comparison_s => case Seconds of [] -> null; _ -> float(sderl_table:median(Seconds)) end
    }.

verdicts(Kind, Comparisons) -> [V || #{kind := K, verdict := V} <- Comparisons, K =:= Kind].

shown(#{planted_pct := Percent, vms := Vms, runs := Runs, run_ms := RunMs}) ->
    [io_lib:format("~n~w virtual machines of one scheduler a file, ~w runs of ~w ms each; ~ts % "
                   "more work; ", [Vms, Runs, RunMs, sderl_table:number(Percent)]),
     sderl_bench_machine:text(), "\n\n"].

-doc "The counts of verdicts, and the metrics.".
-spec table([comparison(), ...]) -> unicode:chardata().
table(Comparisons) ->
    #{comparisons := Count, false_alarms := Alarms, missed := Missed, control_moved := Moved,
      comparison_s := Seconds, overhead_pct := Overhead} = metrics(Comparisons),
    Row = fun(Text, Kind) ->
        Of = verdicts(Kind, Comparisons),
        [Text | [integer_to_list(length([V || V <- Of, V =:= Verdict]))
                 || Verdict <- [faster, same, undecided, slower]]]
    end,
    [sderl_table:text(["compared with", "faster", "same", "undecided", "slower"],
                      [Row("the same program", same), Row("one with more work", planted)]),
     io_lib:format("\nfalse alarms: ~w of ~w; missed: ~w of ~w; the control differed in ~w of ~w\n",
                   [Alarms, Count, Missed, Count, Moved, 2 * Count]),
     ["the harness itself takes ", sderl_table:number(Overhead), " % of the time\n"],
     case Seconds of
         null -> "";
         _ -> ["a comparison takes ", sderl_table:number(Seconds), " s\n"]
     end].
