%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_experiment).
-moduledoc """
`bin/sderl bench vm`: how a program, a flag of the virtual machine or an OTP scales on this machine,
and why it stops. The document is `docs/benchmarks.md`.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "how programs, flags and OTPs scale with schedulers, and why no further".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            unicode:characters_to_list([
                """
                Measures programs on several numbers of schedulers, with flags of the virtual
                machine and on OTPs that are varied. Each point is measured in fresh virtual
                machines, in rounds of random order, beside a control that shows the noise of the
                machine. Results are in a file as soon as they are there, and the same command goes
                on with it after an interruption.

                """,
                "\nThe programs:\n",
                [io_lib:format("  ~-20ts ~ts~n", [Name, Module:summary()])
                 || {Name, Module} <- sderl_bench_vm_program:all()]
            ]),
        arguments => sderl_bench_vm_options:arguments()
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Given) ->
    case sderl_bench_vm_options:check(Given) of
        {ok, Do} -> {ok, #{do => Do}};
        Error -> Error
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{do := {show, File}}, Output) ->
    case results(File) of
        {ok, {Header, Lines}} -> show(Header, Lines, Output);
        Error -> Error
    end;
run(#{do := {compare, Before, After, Counts, Strict}}, Output) ->
    maybe
        {ok, A} ?= results(Before),
        {ok, B} ?= results(After),
        {ok, Result} ?= sderl_bench_vm_compare:compare(A, B, Counts),
        sderl_bench_output:say(Output, sderl_bench_vm_compare:text(Result)),
        ok ?= written(verdicts(Result), element(1, B), Output),
        sderl_bench_vm_compare:outcome(Result, Strict)
    end;
run(#{do := {measure, #{out := Out, budget_ms := Budget} = Options}}, Output) ->
    case sderl_bench_vm_run:measure(Options) of
        {ok, Ended, #{~"seed" := Seed} = Header, Lines} ->
            Shown = show(Header, Lines, Output),
            sderl_bench_output:say(Output, [
                io_lib:format("\nseed ~w, ", [Seed]), ended(Ended, Budget, Options),
                "; results: ", Out, "\n"
            ]),
            Shown;
        Error ->
            Error
    end.

ended(narrow, _, _) -> "all points are known well enough";
ended(rounds, _, #{rounds := Rounds}) -> 
    io_lib:format("measured as often as --rounds ~w allows", [Rounds]);
ended(budget, Budget, _) ->
    ["the time is over (--budget-min ", sderl_table:number(Budget / 60_000),
     "): the same command goes on"].

results(File) ->
    case sderl_bench_vm_store:read(File) of
        {ok, Header, Lines} -> {ok, {Header, Lines}};
        {error, absent} -> {error, ["there are no results in ", File]};
        Error -> Error
    end.

show(Header, Lines, Output) ->
    Summary = sderl_bench_vm_summary:of_lines(Header, Lines),
    sderl_bench_output:say(Output, sderl_bench_vm_table:text(Summary)),
    maybe
        ok ?= written(sderl_bench_vm_table:rows(Summary), Header, Output),
        case sderl_bench_vm_table:failures(Summary) of
            [] -> ok;
            Failures -> {error, lists:join("\n", Failures)}
        end
    end.

written([], _, _) ->
    ok;
written([{Params, Metrics} | Rows], Header, Output) ->
    Now = sderl_bench_output:result(vm, Params, Metrics, maps:get(~"started", Header, ~"")),
    %% The file may be of another machine than the one that reads it.
    Machine = maps:get(~"machine", Header, #{}),
    Result = Now#{machine := #{
        cores => maps:get(~"cores", Machine, 1),
        memory_mib => maps:get(~"memory_mib", Machine, null),
        otp => maps:get(~"otp", maps:get(~"settings", Header, #{}), ~"?")
    }},
    case sderl_bench_output:write(Output, Result) of
        ok -> written(Rows, Header, Output);
        Error -> Error
    end.

verdicts(#{rows := Rows, control := Control}) ->
    [
        {#{program => Program, schedulers => N, flags => Flags, otp => Otp},
         #{verdict => Verdict, ratio => Value, ratio_low => Low, ratio_high => High,
           vms_before => Before, vms_after => After}}
     || #{program := Program, schedulers := N, key := {Flags, Otp}, verdict := Verdict,
          ratio := #{value := Value, low := Low, high := High}, before := Before,
          later := After} <- Control ++ Rows
    ].
