%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_table_tests).
-moduledoc """
The report of `bin/sderl bench vm` as text and as rows of JSON: several series, and what the
schedulers did.
""".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-import(sderl_bench_vm_results, [file_of/2]).

text(Text) -> unicode:characters_to_binary(Text).

has(Words, Text) ->
    ?assertNotEqual({nomatch, Words, Text}, {string:find(Text, Words), Words, Text}).

%% A series with the default flags, and one with a flag that makes the program take `Factor` times
%% as long.
two_series(Factor, Rounds) ->
    {#{~"settings" := #{~"points" := Points} = Settings} = Header, Lines} =
        file_of(fun(N) -> 1.0e6 * (0.2 + 0.8 / N) end, Rounds),
    Flag = ~"+sub true",
    {Header#{~"settings" := Settings#{
        ~"points" := Points ++ [Point#{~"flags" := Flag} || Point <- Points]
    }}, Lines ++ [Line#{~"flags" := Flag, ~"runs" := [Factor * Ns || Ns <- Runs]}
                  || #{~"program" := ~"p", ~"runs" := Runs} = Line <- Lines]}.

summary({Header, Lines}) -> sderl_bench_vm_summary:of_lines(Header, Lines).

several_test_() ->
    {timeout, 120, fun() ->
        Summary = summary(two_series(1.5, 8)),
        Text = text(sderl_bench_vm_table:text(Summary)),
        has("efficiency % (95 %)", Text),
        %% The speedup on 2 schedulers is 1 / 0.6, so the efficiency is 83.3 %.
        ?assertMatch({match, _}, re:run(Text, "83\\.3 \\(83\\.[0-9]\\.\\.83\\.[0-9]\\)")),
        ?assertMatch({match, _}, re:run(Text, "1\\.50 \\(1\\.50\\.\\.1\\.50\\)")),
        Of = fun(Flags, N) ->
            [Metrics] = [M || {#{program := ~"p", schedulers := Same, flags := F}, M}
                                  <- sderl_bench_vm_table:rows(Summary), Same =:= N, F =:= Flags],
            Metrics
        end,
        #{efficiency := E, efficiency_low := Low, efficiency_high := High, times_first := T,
          times_first_low := TLow, times_first_high := THigh} = Of(~"+sub true", 2),
        ?assert(Low =< E andalso E =< High andalso abs(E - 1 / 1.2) < 0.001),
        ?assert(TLow =< T andalso T =< THigh andalso abs(T - 1.5) < 0.001),
        ?assertMatch(#{times_first := undefined, times_first_low := undefined}, Of(<<>>, 2))
    end}.

%% The interval of the efficiency is that of the speedup, divided by the size.
efficiency_test_() ->
    [
        sderl_prop:eunit("efficiency is the part of the ideal speedup", 200, fun() ->
            ?FORALL({N, Value}, {range(1, 64), float(0.01, 100.0)}, begin
                Low = Value / 2,
                #{value := V, low := L, high := undefined} = sderl_bench_vm_summary:efficiency(#{
                    size => {schedulers, N},
                    speedup => #{value => Value, low => Low, high => undefined}
                }),
                V =:= Value / N andalso L =:= Low / N
            end)
        end),
        ?_assertEqual(undefined, sderl_bench_vm_summary:efficiency(
            #{size => {schedulers, 2}, speedup => undefined}))
    ].

%% All that is stored about the schedulers' work is shown. Where a file lacks some of it, the rest
%% is shown.
work_test_() ->
    {timeout, 120, fun() ->
        {Header, Lines} = file_of(fun(N) -> 1.0e6 / N end, 7),
        Of = fun(Change) -> text(sderl_bench_vm_table:text(summary({Header, [
            case Line of
                #{~"why" := Why} -> Line#{~"why" := Change(Why)}
            end || Line <- Lines]}))) end,
        has("0.20 processes waiting (at most 3), 9 context switches, 1,000 reductions, 5 "
            "collections that freed 1 words", Of(fun(Why) -> Why end)),
        has("1.25 dirty schedulers at work", Of(fun(Why) -> Why#{~"dirty_busy" := 1.25} end)),
        Less = Of(fun(Why) -> maps:without([~"dirty_busy", ~"queue_max", ~"switches",
                                            ~"reclaimed_words"], Why) end),
        has("0.20 processes waiting, 1,000 reductions, 5 collections", Less)
    end}.

%% The number of operations may be known only from the first run of a program.
told_later_test_() ->
    {timeout, 120, fun() ->
        {Header, Lines} = file_of(fun(N) -> 1.0e6 / N end, 6),
        Calibrated = #{~"kind" => ~"calibrated", ~"program" => ~"p", ~"repetitions" => 1,
                       ~"hash" => 1, ~"text" => ~"ok",
                       ~"operations" => #{~"count" => 1000, ~"unit" => ~"drive",
                                          ~"reductions" => false}},
        has("one drive of 1000: 1.00 us", text(sderl_bench_vm_table:text(
            summary({Header, [Calibrated | Lines]}))))
    end}.

counted_test() ->
    Run = fun(Settings) ->
        {ok, Run} = sderl_bench_vm_loop:run({program, sderl_bench_vm_counting, Settings}, 2),
        Run
    end,
    ?assertMatch(#{operations := #{count := 110, unit := ~"part", reductions := true}},
                 Run(#{length => 10, each => 2})),
    ?assertNot(is_map_key(operations, Run(#{length => 10, each => none}))),
    ?assertEqual({ok, none},
                 sderl_bench_vm_program:operations(sderl_bench_vm_counting, #{each => 2})),
    ?assertMatch({error, <<"error: {operations,must_be,", _/binary>>}, sderl_bench_vm_loop:run(
        {program, sderl_bench_vm_counting, #{length => 10, each => 0.5}}, 1)).

%% A law that is fitted to times that follow it predicts them.
predicted_test() ->
    Times = fun(Law) -> [{N, [1.0e9 / sderl_bench_scaling:predicted(Law, N)]}
                         || N <- [1, 2, 4, 8]] end,
    Amdahl = #{serial => 0.1},
    Usl = #{contention => 0.05, coherence => 0.01},
    [?assert(abs(sderl_bench_scaling:predicted(Fitted, N) -
                     sderl_bench_scaling:predicted(Law, N)) < 1.0e-6)
     || {Law, Fitted} <- [
            {Amdahl, sderl_bench_scaling:amdahl(sderl_bench_scaling:speedups(Times(Amdahl)))},
            {Usl, sderl_bench_scaling:usl(sderl_bench_scaling:speedups(Times(Usl)))}
        ], N <- [1, 3, 16]].
