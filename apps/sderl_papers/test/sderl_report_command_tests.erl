%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_command_tests).
-include_lib("eunit/include/eunit.hrl").

-define(HEAD, #{
    <<"scale">> => <<"small">>, <<"nodes">> => 40,
    <<"claims">> => [<<"C1">>, <<"C2">>, <<"C3">>, <<"C4">>], <<"budget_s">> => 300,
    <<"used_s">> => 277, <<"command">> => <<"bin/sderl reproduce --scale small --out <dir>">>,
    <<"started">> => <<"2026-01-31T10:00:00Z">>, <<"ended">> => null, <<"left_out">> => [],
    <<"failed">> => [], <<"revision">> => <<"0123abc">>,
    <<"machine">> => #{<<"cores">> => 2, <<"memory_mib">> => 24105, <<"otp">> => <<"29.1.1">>}
}).

%% A folder as "reproduce" leaves it, with one run of a claim's point.
with_results(Fun) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["sderl_report_command_", os:getpid(), "_",
                                      erlang:unique_integer([positive])])),
    ok = filelib:ensure_path(Dir),
    try
        ok = sderl_reproduce_store:save(Dir, ?HEAD),
        Params = #{mode => stock, nodes => 10, clusters => 4, global_pct => 1},
        {ok, _} = sderl_reproduce_store:append(Dir, sderl_bench_output:result(
            debench, Params, #{ops_per_s => 100}, sderl_bench_output:now()
        )),
        Fun(Dir)
    after
        ok = file:del_dir_r(Dir)
    end.

text({Kind, Text}) -> {Kind, unicode:characters_to_list(Text)};
text(Other) -> Other.

says(Kind, Words, Args) ->
    {Kind, Text} = text(sderl_report_command:run(Args)),
    ?assertNotEqual({nomatch, Text}, {string:find(Text, Words), Text}).

wrong_test_() ->
    [
        {Words, ?_test(says(Kind, Words, Args))}
     || {Kind, Words, Args} <- [
            {usage, "DIR is missing", []},
            {usage, "--colour", ["x", "--colour"]},
            {usage, "--out needs a value", ["x", "--out"]},
            {usage, "leave --out or --markdown out", ["x", "--markdown", "--out", "y"]},
            {usage, "leave --tables or --markdown out", ["x", "--markdown", "--tables"]},
            {error, "there is no folder /nowhere", ["/nowhere"]},
            {error, "there are no results in /nowhere", ["/nowhere", "--before", "/none"]},
            {usage, "--threshold is for --before", ["/nowhere", "--threshold", "2"]},
            {help, "DIR/report.html", ["--help"]},
            {help, "FILE.compared.html", ["--help"]}
        ]
    ].

damaged_test() ->
    with_results(fun(Dir) ->
        File = filename:join(Dir, "points.jsonl"),
        {ok, Good} = file:read_file(File),
        ok = file:write_file(File, [Good, "{\"experiment\":\n", Good]),
        says(error, "line 2 of " ++ File ++ " is damaged", [Dir]),
        ok = file:write_file(filename:join(Dir, "run.json"), "{"),
        says(error, "run.json is damaged", [Dir]),
        ok = file:delete(filename:join(Dir, "run.json")),
        says(error, "there is no run.json in " ++ Dir, [Dir])
    end).

nothing_test() ->
    with_results(fun(Dir) ->
        ok = file:write_file(filename:join(Dir, "points.jsonl"), ""),
        says(error, "nothing has been measured in " ++ Dir, [Dir])
    end).

unwritable_test() ->
    with_results(fun(Dir) ->
        says(error, "cannot write /nowhere/x: no such file or directory",
             [Dir, "--tables", "--out", "/nowhere/x"])
    end).

report_test() ->
    with_results(fun(Dir) ->
        ?assertEqual(ok, sderl_report_command:run([Dir, "--tables"])),
        {ok, Bytes} = file:read_file(filename:join(Dir, "report.html")),
        Html = unicode:characters_to_list(Bytes),
        ?assertEqual([], sderl_report_sample:loads(Html)),
        [?assertNotEqual({nomatch, Text}, {string:find(Html, Text), Text})
         || Text <- [
             "2 cores, 24,105 MiB of memory, OTP 29.1.1", "from 2026-01-31 10:00 UTC",
             "small, up to 40 nodes", "5 min of the 5 min that it may take, 1 run<",
             "revision 0123abc", "not at its end", "--out &lt;dir&gt;",
             "Plots are tables here, because --tables asks for that",
             "4 claims of the published work", "not shown at this scale", "id=\"page-c1\"",
             "id=\"page-c4\""
         ]],
        Other = filename:join(Dir, "other.html"),
        ?assertEqual(ok, sderl_report_command:run([Dir, "--tables", "--out", Other])),
        ?assertEqual({ok, Bytes}, file:read_file(Other))
    end).

markdown_test() ->
    with_results(fun(Dir) ->
        ?assertEqual(ok, sderl_report_command:run([Dir, "--markdown"])),
        ?assertNot(filelib:is_file(filename:join(Dir, "report.html")))
    end).
