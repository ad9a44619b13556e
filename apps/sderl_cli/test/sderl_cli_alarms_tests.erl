%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_alarms_tests).

%% bin/sderl alarms against a dashboard of a made-up cluster, and what it refuses without one.

-include_lib("eunit/include/eunit.hrl").

-define(TOKEN, "token-of-the-test").

run(Args) -> sderl_cli_alarms:run(Args).

text({help, Text}) -> unicode:characters_to_binary(Text).

refused_test_() ->
    Says = fun(Args) ->
        {usage, Text} = run(Args),
        unicode:characters_to_binary(Text)
    end,
    {setup, fun() -> os:unsetenv("SDERL_DASHBOARD"), os:unsetenv("SDERL_TOKEN") end, [
        ?_assertMatch(<<"a command is missing", _/binary>>, Says([])),
        ?_assertMatch(<<"there is no command lst", _/binary>>, Says(["lst"])),
        ?_assertMatch(<<"which dashboard? say --url", _/binary>>, Says(["list"])),
        ?_assertMatch(<<"--url: \"x\" is no address", _/binary>>, Says(["list", "--url", "x"])),
        %% The token is in no message.
        ?_assertMatch(<<"--url: \"ftp://h/\" is no address", _/binary>>,
                      Says(["list", "--url", "ftp://h/#token=secret"])),
        ?_assertMatch(<<"the address has no #token=", _/binary>>,
                      Says(["list", "--url", "http://127.0.0.1:1/"])),
        ?_assertMatch(<<"--token-file: /nonexistent: no such file", _/binary>>,
                      Says(["list", "--url", "http://127.0.0.1:1/", "--token-file",
                            "/nonexistent"])),
        ?_assertMatch(<<"id is missing", _/binary>>, Says(["show"])),
        ?_assertMatch(<<"--for needs a value", _/binary>>, Says(["silence", "--node", "x"])),
        [?_assertMatch(<<"--for cannot be ", _/binary>>,
                       Says(["silence", "--node", "x", "--for", Time, "--url",
                             "http://127.0.0.1:1/#token=12345678"]))
         || Time <- ["2", "h", "0s", "32d", "2 h"]],
        ?_assertMatch(<<"--severity cannot be high: it is minor or major", _/binary>>,
                      Says(["list", "--severity", "high"])),
        ?_assertMatch(<<"rules check needs the FILE", _/binary>>, Says(["rules", "check"])),
        ?_assertMatch({error, _}, run(["list", "--url", "http://127.0.0.1:1/#token=12345678"])),
        [?_assertMatch({help, _}, run([Do, "--help"])) || Do <- commands()],
        ?_assertMatch({help, _}, run(["--help"]))
    ]}.

commands() ->
    ["list", "show", "ack", "reopen", "comment", "silence", "silences", "unsilence", "rules",
     "completion"].

completion_test_() ->
    [fun() ->
        Script = text(run(["completion", Shell])),
        [?assertMatch({_, _}, binary:match(Script, list_to_binary(["    ", Do, ")"])))
         || Do <- commands()]
    end || Shell <- ["bash", "zsh"]].

%% The completions of several commands go together.
together_test() ->
    Scripts = [text(run(["completion", "bash"])),
               text(other_script())],
    Ask = fun(Words) ->
        Text = [Scripts, "COMP_WORDS=(sderl ", lists:join(" ", Words), ")\nCOMP_CWORD=",
                integer_to_list(length(Words)), "\n_sderl\nprintf '%s ' \"${COMPREPLY[@]}\"\n"],
        Port = open_port({spawn_executable, os:find_executable("bash")},
                         [{args, ["-c", unicode:characters_to_binary(Text)]}, exit_status]),
        string:lexemes(output(Port, []), " ")
    end,
    ?assertEqual(["alarms", "other"], lists:sort(Ask(["''"]))),
    ?assertEqual(["silence", "silences"], lists:sort(Ask(["alarms", "sil"]))),
    ?assertEqual(["one"], Ask(["other", "o"])),
    ?assertEqual(["check", "reload"], lists:sort(Ask(["alarms", "rules", "''"]))).

other_script() ->
    {help, sderl_completion:script(bash, "other", [{"one", ["--x"], none}])}.

output(Port, Said) ->
    receive
        {Port, {data, Text}} -> output(Port, Said ++ Text);
        {Port, {exit_status, 0}} -> Said
    end.

check_test() ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-alarms-rules-" ++ os:getpid()),
    try
        ok = file:write_file(File, "{\"rules\": [{\"alarm\": \"ports\", \"minor\": 0.5}]}"),
        ?assertMatch({_, _}, binary:match(text(run(["rules", "check", File])),
                                          ~"1 rules and 0 routes, nothing is wrong")),
        ?assertEqual(#{~"ok" => true, ~"problems" => []},
                     json:decode(text(run(["rules", "check", File, "--json"])))),
        ok = file:write_file(File, "{\"rules\": [{\"alarm\": \"ports\", \"minor\": 5}]}"),
        {error, Why} = run(["rules", "check", File]),
        ?assertMatch(<<"rules.1.minor: 5 can never be minor", _/binary>>,
                     unicode:characters_to_binary(Why))
    after
        _ = file:delete(File)
    end.

%% ---------------------------------------------------------------- with a dashboard

dashboard_test_() ->
    {timeout, 120, {setup, fun start/0, fun stop/1, fun(Before) -> ?_test(used(Before)) end}}.

start() ->
    File = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-alarms-used-" ++ os:getpid()),
    ok = file:write_file(File, ~"""
        {"rules": [{"alarm": "busy", "metric": "procs", "minor": 1, "for_s": 0,
                    "nodes": ["node001@*"], "cause": "So many.", "remedy": "None."}]}
        """),
    _ = [application:load(App) || App <- [sderl_mon, sderl_alarms, sderl_web]],
    ok = application:set_env([
        {sderl_alarms, [{rules_file, File}]},
        {sderl_web, [{port, 0}, {token, <<?TOKEN>>}, {source, synthetic}, {writable, true},
                     {synthetic, #{nodes => 10, groups => 2, edges => 20, interval_ms => 200,
                                   changes => false}}]}
    ]),
    {ok, _} = application:ensure_all_started(sderl_web),
    {ok, #{link := Link}} = sderl_web:address(),
    ok = sderl_fleet:await(fun() -> sderl_alarms:list(#{alarm => ~"busy"}) =/= [] end, 60_000),
    #{link => unicode:characters_to_list(Link), file => File}.

stop(#{file := File}) ->
    _ = [application:stop(App) || App <- [sderl_web, sderl_alarms, sderl_mon, cowboy, ranch]],
    _ = sderl_mon_synthetic:stop(),
    _ = file:delete(File),
    _ = [application:unset_env(App, Key) || App <- [sderl_web, sderl_alarms],
                                            {Key, _} <- application:get_all_env(App)].

used(#{link := Link}) ->
    Do = fun(Args) -> run(Args ++ ["--url", Link]) end,
    Has = fun(Part, Args) ->
        Text = text(Do(Args)),
        ?assertNotEqual({nomatch, Text}, {binary:match(Text, Part), Text})
    end,
    [#{id := Id0}] = sderl_alarms:list(#{alarm => ~"busy"}),
    Id = binary_to_list(Id0),
    Has(~"1 alarm", ["list", "--alarm", "busy"]),
    ?assertMatch(#{~"alarms" := [#{~"id" := Id0}]},
                 json:decode(text(Do(["list", "--alarm", "busy", "--json"])))),
    Has(~"no alarms", ["list", "--alarm", "busy", "--severity", "major"]),
    ok = Do(["ack", Id, "--by", "ann", "--text", "mine"]),
    Has(~"acknowledged", ["list", "--alarm", "busy"]),
    ok = Do(["comment", Id, "once more", "--by", "bob"]),
    Has(~"seen by  ann, ", ["show", Id]),
    Has(~"bob, ", ["show", Id]),
    Has(~"cause    So many.", ["show", Id]),
    ok = Do(["reopen", Id]),
    Has(~"state    raised, minor", ["show", Id]),
    Silence = string:trim(text(Do(["silence", "--alarm", "b*", "--for", "2h", "--by", "ann"]))),
    Has(~"silenced", ["list", "--alarm", "busy"]),
    Has(~"alarm=b*  ann", ["silences"]),
    ok = Do(["unsilence", binary_to_list(Silence)]),
    Has(~"no silences", ["silences"]),
    %% A silence of a family is not for the alarms of a node.
    Family = string:trim(text(Do(["silence", "--family", "node*", "--for", "1h"]))),
    Has(~"family=node*  ", ["silences"]),
    Has(~"raised", ["list", "--alarm", "busy"]),
    Has(~"no alarms", ["list", "--alarm", "busy", "--family", "node"]),
    ok = Do(["unsilence", binary_to_list(Family)]),
    Has(~"busy                  procs above minor 1", ["rules"]),
    ok = Do(["rules", "reload"]),
    ?assertMatch({usage, _}, Do(["rules", "write"])),
    {error, None} = Do(["show", "no|such"]),
    ?assertEqual(~"there is no such alarm or silence; list shows them",
                 unicode:characters_to_binary(None)),
    Other = lists:flatten(string:replace(Link, ?TOKEN, "wrong-one")),
    {error, Wrong} = run(["list", "--url", Other]),
    ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Wrong), ~"token is missing")).
