%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_statistics_tests).
-moduledoc """
The statistics of `bin/sderl bench vm`: they are compared with exact values and tried on made-up
noise. Their promises are checked, too: how often they report a difference that does not exist, and
how often they miss one that does.
""".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- samples

median_test() ->
    ?assertMatch(#{value := 3.0, low := undefined, high := undefined},
                 sderl_bench_sample:median(0.95, [5, 3, 1])),
    %% All six values lie on one side of the true median in 2 of 64 cases: 3.1 %.
    ?assertMatch(#{value := 3.5, low := 1.0, high := 6.0},
                 sderl_bench_sample:median(0.95, [6, 1, 5, 2, 4, 3])),
    %% More values than the exact distribution is computed for.
    #{low := Low, high := High} = sderl_bench_sample:median(0.95, lists:seq(1, 10_000)),
    ?assert(abs(Low - 4902) =< 2 andalso abs(High - 5099) =< 2),
    ?assertEqual(undefined, sderl_bench_sample:scatter([1])),
    ?assertEqual(+0.0, sderl_bench_sample:scatter([7, 7, 7])).

%% By the tables of Mann and Whitney a two-sided test at 5 % needs at least four values in each
%% sample, and one at 1 % five.
least_test() ->
    ?assertEqual(4, sderl_bench_sample:least(0.95)),
    ?assertEqual(5, sderl_bench_sample:least(0.99)),
    ?assertMatch(#{low := undefined}, sderl_bench_sample:ratio(0.95, [1, 2, 3], [4, 5, 6])).

%% With ten values in each sample the critical value of U is 23 at 5 %, and 16 at 1 %.
critical_values_test() ->
    %% All quotients differ.
    Before = [math:pow(2, I) || I <- lists:seq(1, 10)],
    After = [math:pow(2, I) * math:pow(1.001, I * I) || I <- lists:seq(1, 10)],
    Quotients = lists:sort([A / B || A <- After, B <- Before]),
    [begin
        #{low := Low, high := High} = sderl_bench_sample:ratio(Level, Before, After),
        ?assert(abs(Low / lists:nth(Rank, Quotients) - 1) < 1.0e-9),
        ?assert(abs(High / lists:nth(101 - Rank, Quotients) - 1) < 1.0e-9)
     end || {Level, Rank} <- [{0.95, 24}, {0.99, 17}]].

%% The exact distribution is computed for up to 900 pairs, such as 30 by 30. Above, the normal one
%% gives nearly the same interval.
normal_test() ->
    Exact = sderl_bench_sample:ratio(0.95, times(1, 30, 0.1), times(2, 30, 0.1)),
    Normal = sderl_bench_sample:ratio(0.95, times(1, 31, 0.1), times(2, 31, 0.1)),
    [?assert(abs(maps:get(Key, Exact) - maps:get(Key, Normal)) < 0.03) || Key <- [low, high]].

values() -> ?LET(N, range(1, 12), vector(N, ?LET(X, range(1, 100_000), X / 7))).

ratio_test_() ->
    sderl_prop:eunit("a ratio has its value inside, and turns round with its samples", 500, fun() ->
        ?FORALL({A, B, Scale}, {values(), values(), range(2, 1000)}, begin
            #{value := Value, low := Low, high := High} = sderl_bench_sample:ratio(0.95, A, B),
            #{value := Back, low := BackLow} = sderl_bench_sample:ratio(0.95, B, A),
            #{value := Scaled} = sderl_bench_sample:ratio(0.95, A, [Scale * V || V <- B]),
            close(Value * Back, 1) andalso close(Scaled, Scale * Value) andalso
                case Low of
                    undefined -> BackLow =:= undefined;
                    _ -> Low =< Value * (1 + 1.0e-9) andalso Value =< High * (1 + 1.0e-9) andalso
                             close(High * BackLow, 1)
                end
        end)
    end).

close(A, B) -> abs(A - B) =< 1.0e-6 * max(abs(A), abs(B)).

%% ---------------------------------------------------------------- laws

ns() -> [1, 2, 4, 8, 16].

amdahl_test_() ->
    sderl_prop:eunit("the serial share of exact times is found", 200, fun() ->
        ?FORALL(S, ?LET(X, range(0, 1000), X / 1000), begin
            #{serial := Found, error := Error} =
                sderl_bench_scaling:amdahl([{N, 1 / (S + (1 - S) / N)} || N <- ns()]),
            abs(Found - S) < 1.0e-9 andalso Error < 1.0e-9
        end)
    end).

usl_test_() ->
    sderl_prop:eunit("contention and coherence of exact times are found", 200, fun() ->
        ?FORALL({X, Y}, {range(0, 500), range(0, 500)}, begin
            {A, B} = {X / 1000, Y / 10_000},
            #{contention := FoundA, coherence := FoundB, peak := Peak} =
                sderl_bench_scaling:usl([{N, N / (1 + A * (N - 1) + B * N * (N - 1))}
                                         || N <- ns()]),
            abs(FoundA - A) < 1.0e-6 andalso abs(FoundB - B) < 1.0e-6 andalso
                case Peak of
                    none -> B < 1.0e-6;
                    {At, _} -> abs(At / max(1, math:sqrt((1 - A) / B)) - 1) < 0.01
                end
        end)
    end).

laws_of_anything_test_() ->
    sderl_prop:eunit("of any times there are numbers in their bounds", 300, fun() ->
        ?FORALL(Times, [{N, [range(1, 1_000_000), range(1, 1_000_000)]} || N <- ns()], begin
            Speedups = sderl_bench_scaling:speedups(Times),
            #{serial := S} = sderl_bench_scaling:amdahl(Speedups),
            #{contention := A, coherence := B} = sderl_bench_scaling:usl(Speedups),
            S >= 0 andalso S =< 1 andalso A >= 0 andalso B >= 0
        end)
    end).

few_points_test() ->
    ?assertEqual(undefined, sderl_bench_scaling:amdahl([{1, 1.0}])),
    ?assertEqual(undefined, sderl_bench_scaling:usl([{1, 1.0}, {2, 1.9}])),
    %% With as many points as unknowns the law always goes through them, so it has no error.
    ?assertMatch(#{error := undefined}, sderl_bench_scaling:amdahl([{1, 1.0}, {2, 1.9}])),
    ?assertMatch(#{error := undefined},
                 sderl_bench_scaling:usl([{1, 1.0}, {2, 1.9}, {4, 3.0}])),
    #{error := Error} = sderl_bench_scaling:amdahl([{1, 1.0}, {2, 1.9}, {4, 2.0}]),
    ?assert(Error > 0),
    %% The speedup is more than linear: the serial share is 0.
    ?assertMatch(#{serial := +0.0, limit := infinity},
                 sderl_bench_scaling:amdahl([{1, 1.0}, {2, 2.2}])).

resampled_test() ->
    Times = [{1, times(1, 20, 0.02)}, {4, [T / 3 || T <- times(2, 20, 0.02)]}],
    Fun = fun(Drawn) -> proplists:get_value(4, sderl_bench_scaling:speedups(Drawn)) end,
    {Low, High} = sderl_bench_scaling:resampled(200, 1, Times, Fun),
    ?assert(Low < 3 andalso 3 < High andalso High - Low < 0.3),
    ?assertEqual({Low, High}, sderl_bench_scaling:resampled(200, 1, Times, Fun)),
    ?assertEqual({none, none}, sderl_bench_scaling:resampled(50, 1, Times, fun(_) -> none end)).

%% ---------------------------------------------------------------- verdicts

verdict_test() ->
    Level = sderl_bench_verdict:level(1),
    Of = fun(A, B) -> element(1, sderl_bench_verdict:of_times(Level, 0.01, A, B)) end,
    Steady = [100 + I / 100 || I <- lists:seq(1, 8)],
    ?assertEqual(same, Of(Steady, Steady)),
    ?assertEqual(slower, Of(Steady, [1.05 * T || T <- Steady])),
    ?assertEqual(faster, Of(Steady, [0.9 * T || T <- Steady])),
    %% A certain difference that is too small to count.
    ?assertEqual(same, Of(Steady, [1.005 * T || T <- Steady])),
    ?assertEqual(undecided, Of([100, 101, 102], [200, 201, 202])),
    ?assertEqual(undecided, Of([50, 80, 100, 130, 200], [60, 90, 110, 120, 180])).

%% With 16 virtual machines on each side and false alarms designed at 1 %: at most 5 of 100
%% comparisons of a program with itself are wrong, and at least 95 of 100 find a program that takes
%% 5 % longer. The seeds are fixed, so this cannot fail by chance.
alarms_test_() ->
    {timeout, 300, fun() ->
        Count = case os:getenv("SDERL_LONG") of false -> 100; _ -> 3000 end,
        Level = sderl_bench_verdict:level(1),
        Verdicts = fun(Factor) -> [
            element(1, sderl_bench_verdict:of_times(
                Level, 0.01, times(2 * Seed, 16, 0.02),
                [Factor * T || T <- times(2 * Seed + 1, 16, 0.02)]))
         || Seed <- lists:seq(1, Count)] end,
        Wrong = length([V || V <- Verdicts(1.0), V =:= slower orelse V =:= faster]),
        Missed = length([V || V <- Verdicts(1.05), V =/= slower]),
        io:format(user, "false alarms ~w, missed ~w of ~w~n", [Wrong, Missed, Count]),
        ?assert(Wrong * 100 =< 5 * Count),
        ?assert(Missed * 100 =< 5 * Count)
    end}.

%% Times around 1000 with this scatter. One in twenty, on average, is 30 % longer, as on a busy
%% machine.
times(Seed, Count, Scatter) ->
    {Times, _} = lists:mapfoldl(
        fun(_, S0) ->
            {Normal, S1} = rand:normal_s(S0),
            {Place, S2} = rand:uniform_s(20, S1),
            Late = case Place of 1 -> 1.3; _ -> 1.0 end,
            {1000 * Late * math:exp(Scatter * Normal), S2}
        end,
        rand:seed_s(exsss, Seed),
        lists:seq(1, Count)
    ),
    Times.
