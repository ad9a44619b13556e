%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profiling_tests).
-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_profiling_experiment).

check_test_() ->
    [
        ?_assertMatch({ok, #{events := 10_000_000, pairs := 10}},
                      sderl_bench_options:checked("profiling", ?E, [])),
        ?_assertMatch({error, "--size must be at least 1, not 0"},
                      sderl_bench_options:checked("profiling", ?E, ["--size", "0"])),
        ?_assertMatch({error, "--events must be at most 1000000000, not 1000000001"},
                      sderl_bench_options:checked("profiling", ?E, ["--events", "1000000001"])),
        ?_assertMatch({error, "--programs: " ++ _},
                      sderl_bench_options:checked("profiling", ?E, ["--programs", "no_such"])),
        ?_assertMatch({error, "--programs names no program" ++ _},
                      sderl_bench_options:checked("profiling", ?E, ["--programs", ","]))
    ].

%% The analysis reads the made-up trace without a problem: it finds the messages of each pair, and
%% when its processes were runnable.
trace_test_() ->
    {timeout, 300, fun() ->
        Dir = filename:join(filename:basedir(user_cache, "sderl"),
                            lists:concat(["bench-profiling-test-", os:getpid()])),
        try
            12_000 = sderl_bench_profiling_trace:write(Dir, 11_999, 10),
            {ok, #{trace := #{events := 12_000, problems := [], runnable := recorded},
                   messages := #{count := 2_000, pairs := 20}}} = sderl_prof:report(Dir, #{})
        after
            file:del_dir_r(Dir)
        end
    end}.

%% All parts of the benchmark run, each with little work.
run_test_() ->
    {timeout, 300, fun() ->
        {ok, Options} = sderl_bench_options:checked(
            "profiling", ?E, ["--events", "1200", "--pairs", "1", "--size", "3", "--sampled", "20",
                          "--programs", "exchange,compute,empty", "--run-ms", "1"]),
        File = filename:join(filename:basedir(user_cache, "sderl"),
                             lists:concat(["bench-profiling-", os:getpid(), ".json"])),
        try
            ok = filelib:ensure_dir(File),
            {ok, Output} = sderl_bench_output:open(File),
            ok = ?E:run(Options, Output),
            ok = sderl_bench_output:close(Output),
            {ok, Json} = file:read_file(File),
            #{~"params" := #{~"programs" := [~"exchange", ~"compute", ~"empty"]},
              ~"metrics" := #{~"events" := 1200, ~"cost" := Cost, ~"cpu_us_per_event" := Us,
                              ~"pages_s" := Pages, ~"first_page_s" := First,
                              ~"sampler" := #{~"seconds" := 1, ~"own_share" := Own,
                                              ~"looks_s" := Looks}}} =
                json:decode(Json),
            ?assert(lists:all(fun(N) -> N >= 0 end, [Us, Pages, First, Own, Looks])),
            ?assertEqual([~"compute", ~"empty", ~"exchange"], lists:sort(maps:keys(Cost))),
            [?assertMatch(#{Profile := #{~"median" := R}} when R > 0, Of)
             || _ := Of <- Cost, Profile <- [~"none", ~"sampling", ~"concurrency", ~"messages"]]
        after
            file:delete(File)
        end
    end}.
