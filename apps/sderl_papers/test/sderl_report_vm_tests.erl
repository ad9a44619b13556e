%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_vm_tests).
-moduledoc "The report of a file of `bin/sderl bench vm`.".

-include_lib("eunit/include/eunit.hrl").

with_results(Lines, Fun) ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"),
                         lists:concat(["sderl_report_vm_", os:getpid(), "_",
                                       erlang:unique_integer([positive]), ".jsonl"])),
    Header = #{
        machine => #{cores => 4, model => ~"<b>CPU</b>", quota => null, threads_per_core => 1,
                     kinds_of_cores => 1, memory_nodes => 1, governor => null},
        seed => 1, started => ~"2026-01-31T10:00:00Z", command => ~"bin/sderl bench vm --x",
        settings => #{
            otp => ~"29.1",
            programs => [#{name => ~"control", control => true, settings => #{}},
                         #{name => ~"bang", control => false, settings => #{senders => 3},
                           operations => #{count => 1000, unit => ~"message",
                                           reductions => true}}
                         | [#{name => Name, control => false,
                              settings => #{table => Name, mix => ~"100 read, uniform", keys => 9,
                                            workers => 2, operations => 1000, how => ~"so"}}
                            || Name <- [~"set", ~"sharded", ~"none"]]],
            points => [#{schedulers => N, flags => F, otp => <<>>}
                       || F <- [<<>>, ~"+sub true"], N <- [1, 2]]
        }
    },
    try
        {ok, Store, _, _} = sderl_bench_vm_store:open(File, Header),
        [ok = sderl_bench_vm_store:append(Store, Line) || Line <- Lines],
        ok = sderl_bench_vm_store:close(Store),
        Fun(File)
    after
        _ = file:delete(File),
        _ = file:delete(filename:rootname(File) ++ ".html")
    end.

lines() ->
    [
        #{kind => vm, program => Program, schedulers => N, round => Round, flags => Flags,
          otp => <<>>, runs => [1.0e6 / N + Round], stages => #{}, warm => [1], warmed => true,
          hash => 1, text => ~"ok", overhead_ns => 1,
          why => #{busy => lists:duplicate(N, 0.5), wall_ns => 1.0e6, queue => 0, reductions => 9,
                   collections => 0, states => #{}}}
     || Round <- lists:seq(1, 6), N <- [1, 2],
        {Program, Flags} <- [{~"control", <<>>}, {~"bang", <<>>}, {~"bang", ~"+sub true"}]
    ].

says(Kind, Words, Args) ->
    {Kind, Text} = sderl_report_command:run(Args),
    ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Text), Words)).

report_test_() ->
    {timeout, 120, fun report/0}.

report() ->
    with_results(lines(), fun(File) ->
        ok = sderl_report_command:run([File, "--tables"]),
        {ok, Html} = file:read_file(filename:rootname(File) ++ ".html"),
        [?assertNotEqual({nomatch, Words}, {binary:match(Html, Words), Words})
         || Words <- [~"Speedup of bang", ~"Programs by schedulers", ~"&lt;b&gt;CPU",
                      ~"one message (95 %)", ~"reductions of one message",
                      ~"+sub true", ~"bin/sderl bench vm --x", ~"2.00 times as fast on 2",
                      ~"Efficiency: the speedup as a share", ~"efficiency, % (95 %)",
                      ~"Scatter: the time of each virtual machine", ~"scatter, %",
                      ~"The laws that fit the speedup with +sub true", ~"Amdahl&#39;s law",
                      ~"Time against that with the defaults", ~"times the first (95 %)",
                      ~"On 2 schedulers it takes 1.00 (1.00..1.00) times as long as the first",
                      ~"What the schedulers did with +sub true", ~"context switches",
                      ~"words freed", ~"dirty at work"]],
        [?assertEqual({nomatch, Words}, {binary:match(Html, Words), Words})
         || Words <- [~"Verdict", ~"Published", ~"<b>CPU"]]
    end).

%% A program that took twice as long is reported as slower, and the machine as the same.
compared_test_() ->
    {timeout, 120, fun() ->
        with_results(lines(), fun(Before) ->
            Slow = [case Line of
                #{program := ~"bang", flags := <<>>, runs := [Ns]} -> Line#{runs := [2 * Ns]};
                _ -> Line
            end || Line <- lines()],
            with_results(Slow, fun(After) ->
                Out = filename:rootname(After) ++ ".compared.html",
                Written = fun(More) ->
                    ok = sderl_report_command:run([After, "--before", Before, "--tables" | More]),
                    {ok, Html} = file:read_file(Out),
                    ok = file:delete(Out),
                    Html
                end,
                ?assertNotEqual(nomatch, binary:match(Written(["--threshold", "7"]),
                                                      ~".jsonl --threshold 7.0")),
                Html = Written([]),
                ?assertEqual(nomatch, binary:match(Html, ~"--threshold")),
                [?assertNotEqual({nomatch, Words}, {binary:match(Html, Words), Words})
                 || Words <- [~"What has changed", ~"Was the machine the same?",
                              ~"Did bang become slower?", ~"Time of bang after, against before",
                              ~"2 slower, 2 same of 4 points.", ~"bang, +sub true",
                              ~"bin/sderl bench vm --compare ", ~"raise a false alarm in 1 of 100",
                              ~"measured from 2026-01-31T10:00:00Z",
                              ~" on &lt;b&gt;CPU&lt;/b&gt;, 4 cores"]],
                says(usage, "is a folder", ["/tmp", "--before", Before]),
                says(usage, "--before and --markdown", [After, "--before", Before, "--markdown"]),
                says(error, "there are no results in /no/such", [After, "--before", "/no/such"]),
                says(error, "--threshold",
                     [After, "--before", Before, "--threshold", "x"])
            end)
        end)
    end}.

by_nodes_test_() ->
    {timeout, 120, fun() ->
        Lines = [Line#{schedulers := 1, nodes => N} || #{schedulers := N} = Line <- lines()],
        with_results(Lines, fun(File) ->
            ok = sderl_report_command:run([File, "--tables"]),
            {ok, Html} = file:read_file(filename:rootname(File) ++ ".html"),
            [?assertNotEqual({nomatch, Words}, {binary:match(Html, Words), Words})
             || Words <- [~"Programs by nodes", ~"How much faster is bang on more nodes?",
                          ~"2.00 times as fast on 2 nodes as on one"]]
        end)
    end}.

%% Both tables are alike, so the first of them by its name is the fastest.
tables_test_() ->
    {timeout, 120, fun() ->
        Lines = [Line#{program := Name, flags := <<>>}
                 || #{program := ~"control"} = Line <- lines(),
                    Name <- [~"set", ~"sharded", ~"none"]],
        with_results(lines() ++ Lines, fun(File) ->
            ok = sderl_report_command:run([File, "--tables"]),
            {ok, Html} = file:read_file(filename:rootname(File) ++ ".html"),
            [?assertNotEqual({nomatch, Words}, {binary:match(Html, Words), Words})
             || Words <- [~"Tables under load", ~"100 read, uniform", ~"million a second on 2",
                          ~"fastest on 2: set; take set: so",
                          ~"sharded: it scales: 2.00 times on 2 schedulers"]],
            ?assertEqual(nomatch, binary:match(Html, ~"Speedup of set"))
        end)
    end}.

wrong_test_() ->
    {timeout, 120, fun wrong/0}.

wrong() ->
    with_results([], fun(File) ->
        says(error, "nothing has been measured", [File]),
        says(usage, "--markdown is for", [File, "--markdown"]),
        ok = file:write_file(File, "not mine\n"),
        says(error, "line 1 of", [File])
    end).
