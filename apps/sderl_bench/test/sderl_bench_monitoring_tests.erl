%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_monitoring_tests).

-include_lib("eunit/include/eunit.hrl").

run(Side, Run, Rate, Cpu, More) ->
    #{params => #{mode => registry, monitoring => Side, run => Run},
      metrics => maps:merge(#{pairs_per_s => Rate, cpu_us_per_pair => Cpu}, More)}.

on(Run, Rate, Cpu, {Median, Worst}) ->
    run(on, Run, Rate, Cpu, #{watched => #{overhead_pct => Median, overhead_pct_max => Worst,
                                           probe_ms_s => 0.5, lost => #{samples_merged => 2}}}).

compared_test() ->
    Runs = [
        run(off, 1, 100, 50, #{}), on(1, 90, 51, {0.3, 0.5}), run(off, 2, 200, 100, #{}),
        on(2, 210, 101, {0.4, 0.9}), run(off, 3, 100, 50, #{}), on(3, 100, 50, {0.5, 0.6}),
        %% A run without monitoring whose counterpart was not measured.
        run(off, 4, 1, 1, #{})
    ],
    #{overhead_pct := 0.4, overhead_pct_worst := 0.9, samples_lost := 6,
      cpu_per_op_change_pct := Cpu, throughput_change_pct := Rate} =
        sderl_bench_monitoring_experiment:compared(registry, Runs),
    ?assertMatch(#{median := M, least := L, greatest := G, pairs := 3, low := _,
                   high := _} when abs(M - 1) < 0.01 andalso abs(L) < 0.01
                 andalso abs(G - 2) < 0.01, Cpu),
    ?assertMatch(#{median := M, least := L, greatest := G} when abs(M) < 0.01
                 andalso abs(L + 10) < 0.01 andalso abs(G - 5) < 0.01, Rate).

%% Two pairs give no interval, and no runs give no values.
few_test() ->
    Two = [run(off, 1, 100, 50, #{}), on(1, 90, 51, {0.3, 0.5}), run(off, 2, 200, 100, #{}),
           on(2, 210, 101, {0.4, 0.9})],
    #{cpu_per_op_change_pct := Cpu} = sderl_bench_monitoring_experiment:compared(registry, Two),
    ?assertNot(is_map_key(low, Cpu)),
    ?assertMatch(#{overhead_pct := undefined, cpu_per_op_change_pct := undefined},
                 sderl_bench_monitoring_experiment:compared(registry, [])).

options_test() ->
    Check = fun(Changes) ->
        {ok, Parsed} = sderl_command:parse(Changes, ["bench", "monitoring"],
                                           sderl_bench_monitoring_experiment:command()),
        sderl_bench_monitoring_experiment:check(Parsed)
    end,
    ?assertMatch({ok,
                  #{what := [cost], compare := [off, on], workload := [registry | _], pairs := 3}},
                 Check([])),
    ?assertMatch({ok, #{what := [cost, live], compare := [on, off]}},
                 Check(["--what", "cost,live", "--compare", "on,off"])),
    [?assertMatch({error, _}, Check(Wrong))
     || Wrong <- [["--what", "x"], ["--compare", "maybe"], ["--workload", "orbit"],
                  ["--pairs", "0"], ["--nodes", "1"], ["--events-s", "0"]]].
