%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_facts).
-moduledoc """
The start page of a report: the machine, time and size of the measurements, and the missing points.
""".

-export([start/3]).

-doc "The start page. `NoPlots` is why plots are tables, or `none`.".
-spec start(sderl_reproduce:run(), [sderl_claim:page()], NoPlots :: none | unicode:chardata()) ->
    sderl_report_html:start().
start(#{scale := Scale, nodes := Nodes, command := Command} = Run, Pages, NoPlots) ->
    Machine = machine(Run),
    #{
        title => "SD Erlang: published results, repeated",
        lead => [lead(Pages)],
        facts => [
            {"Machine", Machine},
            {"Measured", measured(Run)},
            {"Scale", io_lib:format("~ts, up to ~w nodes", [Scale, Nodes])},
            {"Time", time(Run)}
        ] ++ [{"Sources", ["revision ", Revision]}
              || #{revision := Revision} <- [Run], is_binary(Revision)],
        remarks => remarks(Run, NoPlots),
        command => Command,
        measured => ["Measured ", measured(Run), ", on one machine: ", Machine, "; scale ", Scale,
                     "."]
    }.

lead(Pages) ->
    Counts = [{length([V || #{verdict := V} <- Pages, V =:= Verdict]), Text}
              || {Verdict, Text} <- [{confirmed, "confirmed"}, {refuted, "refuted"},
                                     {not_shown, "not shown at this scale"}]],
    io_lib:format("~w ~ts of the published work on SD Erlang, repeated on one machine: ~ts. Each "
                  "verdict is computed from the numbers on its page.",
                  [
                      length(Pages), case Pages of [_] -> "claim"; _ -> "claims" end,
                      lists:join(", ",
                                 [io_lib:format("~w ~ts", [N, Text]) || {N, Text} <- Counts, N > 0])
                  ]).

machine(#{machine := #{cores := Cores, memory_mib := Memory, otp := Otp}}) ->
    [
        io_lib:format("~w core~ts, ", [Cores, [$s || Cores > 1]]),
        [[sderl_table:number(Memory), " MiB of memory, "] || is_number(Memory)],
        "OTP ", Otp
    ].

measured(#{started := Started, ended := undefined}) -> ["from ", moment(Started)];
measured(#{started := Started, ended := Ended}) -> [moment(Started), " to ", moment(Ended)].

%% 2026-01-31T10:00:00Z, as ISO 8601 has it, and as people read it.
moment(<<Day:10/binary, $T, Minute:5/binary, _/binary>>) -> [Day, $\s, Minute, " UTC"];
moment(Other) -> Other.

time(#{used_s := Used, budget_s := Budget, points := Points}) ->
    [
        duration(Used),
        [[" of the ", duration(Budget), " that it may take"] || is_number(Budget)],
        ", ", sderl_table:number(Points), [" run", [$s || Points > 1]]
    ].

duration(Seconds) when Seconds < 120 -> io_lib:format("~w s", [round(Seconds)]);
duration(Seconds) -> [sderl_table:number(round(Seconds / 60)), " min"].

remarks(#{ended := Ended, failed := Failed, command := Command}, NoPlots) ->
    lists:append([
        [["The measurement is not at its end, and the verdicts are those of what is there. The "
          "rest: ", Command]
         || Ended =:= undefined],
        [io_lib:format("~w of the points could not be measured; the notes of their pages say "
                       "which, and why.", [length(Failed)])
         || Failed =/= []],
        [["Plots are tables here, because ", NoPlots, "."] || NoPlots =/= none]
    ]).
