%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_session).
-moduledoc """
Runs a command of `bench vm` or `bench tables`: measures, shows a file of results or compares two,
and writes the rows of JSON that are asked for.
""".

-export([run/3]).
-export_type([view/0]).

-doc "How a command shows its results: `name` is that of the benchmark in the rows of JSON.".
-type view() :: #{
    name := atom(),
    text := fun((sderl_bench_vm_summary:summary()) -> unicode:chardata()),
    rows := fun((sderl_bench_vm_summary:summary()) -> [{Params :: map(), Metrics :: map()}])
}.

-doc "The error is a text that says what failed; everything else is measured all the same.".
-spec run(sderl_bench_vm_request:do(), view(), sderl_bench_output:output()) ->
    ok | {error, sderl_command:text()}.
run({show, File}, View, Output) ->
    case results(File) of
        {ok, {Header, Lines}} -> show(Header, Lines, View, Output);
        Error -> Error
    end;
run({compare, Before, After, Counts, Strict}, View, Output) ->
    maybe
        {ok, A} ?= results(Before),
        {ok, B} ?= results(After),
        {ok, Result} ?= sderl_bench_vm_compare:compare(A, B, Counts),
        sderl_bench_output:say(Output, sderl_bench_vm_compare:text(Result)),
        ok ?= written(verdicts(Result), element(1, B), View, Output),
        sderl_bench_vm_compare:outcome(Result, Strict)
    end;
run({measure, #{out := Out, budget_ms := Budget} = Options}, View, Output) ->
    case sderl_bench_vm_run:measure(Options) of
        {ok, Ended, #{~"seed" := Seed} = Header, Lines} ->
            Shown = show(Header, Lines, View, Output),
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

show(Header, Lines, #{text := Text, rows := Rows} = View, Output) ->
    Summary = sderl_bench_vm_summary:of_lines(Header, Lines),
    sderl_bench_output:say(Output, Text(Summary)),
    maybe
        ok ?= written(Rows(Summary), Header, View, Output),
        case sderl_bench_vm_table:failures(Summary) of
            [] -> ok;
            Failures -> {error, lists:join("\n", Failures)}
        end
    end.

written([], _, _, _) ->
    ok;
written([{Params, Metrics} | Rows], Header, #{name := Name} = View, Output) ->
    Now = sderl_bench_output:result(Name, Params, Metrics, maps:get(~"started", Header, ~"")),
    %% The results may be of another machine than this one.
    Machine = maps:get(~"machine", Header, #{}),
    Result = Now#{machine := #{
        cores => maps:get(~"cores", Machine, 1),
        memory_mib => maps:get(~"memory_mib", Machine, null),
        otp => maps:get(~"otp", maps:get(~"settings", Header, #{}), ~"?")
    }},
    case sderl_bench_output:write(Output, Result) of
        ok -> written(Rows, Header, View, Output);
        Error -> Error
    end.

verdicts(#{rows := Rows, control := Control}) ->
    [
        {(sderl_bench_vm_size:fields(Size))#{program => Program, flags => Flags, otp => Otp},
         #{verdict => Verdict, ratio => Value, ratio_low => Low, ratio_high => High,
           vms_before => Before, vms_after => After}}
     || #{program := Program, size := Size, key := {Flags, Otp}, verdict := Verdict,
          ratio := #{value := Value, low := Low, high := High}, before := Before,
          later := After} <- Control ++ Rows
    ].
