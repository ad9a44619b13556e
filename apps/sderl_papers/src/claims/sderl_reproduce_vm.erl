%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_vm).
-moduledoc """
One run of a point of `bin/sderl bench vm` or `bench tables`: each program on each number of
schedulers in one fresh virtual machine, in an order that is drawn, beside the control. The harness
is that of these commands, and a point has their options. So values that are compared were measured
within seconds of each other, and several runs of a point show the scatter.
""".

-export([run/2, command/1]).

-type params() :: #{bench := vm | tables, seed => integer(), atom() => term()}.

%% The budget of a reproduction decides, not that of the harness.
-define(MINUTES, "10000").
%% On many cores the largest sizes take minutes on one scheduler.
-define(LIMIT_S, "3600").

-doc """
Measures. `bench` is the command, and all other parameters are options of it. `rows` of the metrics
are the programs by schedulers and flags, with their times in microseconds; the control is one of
them. A reason is one for `sderl_papers_reason:text/1`.
""".
-spec run(params(), Label :: unicode:chardata()) -> {ok, #{atom() => term()}} | {error, term()}.
run(Params, _Label) ->
    sderl_reproduce_node:with_folder(fun(Dir) ->
        into(filename:join(Dir, "results.jsonl"), Params)
    end).

into(File, #{bench := Bench} = Params) ->
    Args = arguments(Params) ++
        ["--rounds", "1", "--least", "1", "--budget-min", ?MINUTES, "--limit-s", ?LIMIT_S,
         "--seed", integer_to_list(maps:get(seed, Params, 1)), "--out", File],
    maybe
        {ok, Given} ?= sderl_command:parse(Args, ["bench", atom_to_list(Bench)],
                                           #{arguments => known(Bench)}),
        {ok, {measure, Options}} ?= check(Bench, Given),
        {ok, _, Header, Lines} ?= sderl_bench_vm_run:measure(Options),
        measured(sderl_bench_vm_summary:of_lines(Header, Lines))
    else
        {_, Text} -> {error, {vm, Text}}
    end.

known(vm) -> sderl_bench_vm_options:arguments();
known(tables) -> sderl_bench_tables_options:arguments().

check(vm, Given) -> sderl_bench_vm_options:check(Given);
check(tables, Given) -> sderl_bench_tables_options:check(Given).

arguments(Params) ->
    lists:append([["--" ++ lists:flatten(string:replace(atom_to_list(Key), "_", "-", all)),
                   word(Value)]
                  || Key := Value <- maps:iterator(maps:without([bench, seed], Params), ordered)]).

word(Value) when is_binary(Value) -> unicode:characters_to_list(Value);
word(Value) when is_integer(Value) -> integer_to_list(Value);
word(Value) when is_atom(Value) -> atom_to_list(Value).

-doc "The command line that measures the programs of a point with intervals.".
-spec command(#{atom() => term()}) -> unicode:chardata().
command(#{bench := Bench} = Params) ->
    lists:join(" ", ["bin/sderl bench", atom_to_list(Bench)
                     | arguments(maps:without([run_ms, runs], Params))]).

%% A program whose output depends on the number of schedulers is a failure.
measured(#{programs := Programs} = Summary) ->
    case sderl_bench_vm_table:failures(Summary) of
        [] -> {ok, #{rows => [row(Program, Key, Row)
                              || #{series := Series} = Program <- Programs,
                                 #{key := Key, rows := Rows} <- Series, Row <- Rows]}};
        [Text | _] -> {error, {vm, Text}}
    end.

row(#{name := Name, control := Control, settings := Settings}, {Flags, _},
    #{schedulers := N, times := Times, stages := Stages, why := Why}) ->
    (settings(Settings))#{
        program => Name, control => Control, flags => Flags, schedulers => N,
        us => sderl_table:median(Times) / 1000,
        stages => #{Stage => Ns / 1000 || {Stage, Ns} <- Stages},
        busy => maps:get(~"busy", Why, []), queue => maps:get(~"queue", Why, null),
        cpu_ms => case Why of #{~"cpu_ns" := Ns} -> Ns / 1.0e6; _ -> null end
    }.

%% Of a table: its name, the percentage of updates, and the number of operations.
settings(#{~"table" := Table, ~"operations" := Operations} = Settings) ->
    #{table => Table, operations => Operations,
      updates => 100 - maps:get(~"read", Settings, 0)};
settings(_) -> #{}.
