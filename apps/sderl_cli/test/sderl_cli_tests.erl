%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_tests).
-include_lib("eunit/include/eunit.hrl").

bad_usage_test_() ->
    [
        complains(2, Args, Words)
     || {Args, Words} <- [
            {[], "a command is missing"},
            {["nonsense"], "there is no command nonsense"},
            {["bench"], "which benchmark"},
            {["completion", "fish"], "completion is for bash or zsh"},
            {["bench", "nonsense"], "there is no benchmark nonsense"},
            {["ops"], "Also alarms, metrics, log, actions, audit, tokens"},
            {["ops", "nonsense"], "there is no command nonsense"},
            {["ops", "metrics", "show"], "metric is missing"},
            {["ops", "actions", "run"], "action is missing"},
            {["ops", "tokens", "revoke"], "id is missing"},
            {["bench", "list", "more"], "takes no options"},
            {["bench", "vm", "--schedulers", "0"], "is no whole number from 1 to 1024"},
            {["bench", "tables", "--tables", "hash"], "there is no table"},
            {["bench", "registry", "--clients", "0"], "--clients must be at least 1"},
            {["bench", "registry", "--colour", "red"], "no option or argument --colour"},
            {["bench", "registry", "--json"], "--json needs a value"},
            {["bench", "registry", "--nodes", "1000000"], "start fewer nodes"},
            {["bench", "join", "--names", "0"], "--names must be at least 1"},
            {["bench", "groups", "--groups", "10,5"], "--groups takes numbers that grow"},
            {["bench", "groups", "--nodes", "1"], "--nodes must be at least 2"},
            {["bench", "standard", "--repeat", "0"], "--repeat must be at least 1"}
        ]
    ].

%% Of all commands, in one script: their names, their options, and the words that options take.
completion_test_() ->
    {setup, fun() -> script("bash") end, fun(_) -> ok end, fun(Script) ->
        [{lists:flatten(lists:join(" ", Words)), ?_assertEqual(Expected, complete(Script, Words))}
         || {Words, Expected} <- [
                {["lo"], ["log"]},
                {["log", "--le"], ["--level"]},
                {["log", "--level", "err"], ["error"]},
                {["audit", "--result", "re"], ["refused"]},
                {["tokens", ""], ["add", "list", "revoke"]},
                {["tokens", "add", "ann", "--role", ""], ["admin", "operator", "viewer"]},
                {["actions", "explore", "--fam"], ["--family"]},
                {["alarms", "rules", "ch"], ["check"]},
                {["bench", "regi"], ["registry"]},
                {["bench", "registry", "--group"], ["--group-size"]},
                {["mon", "--archive"], ["--archive", "--archive-mb"]},
                {["ops", "comp"], ["completion"]},
                {["ops", "met"], ["metrics"]},
                {["ops", "audit", "--res"], ["--result"]},
                {["ops", "metrics", "sh"], ["show"]},
                {["ops", "ac"], ["actions"]},
                {["ops", "actions", "ex"], ["explore"]},
                {["ops", "tokens", ""], ["add", "list", "revoke"]},
                {["metrics", "show", "--window", "w"], ["week"]},
                {["help", "rec"], ["recover"]},
                {["completion", "z"], ["zsh"]},
                {["shell", "x"], []}
            ]]
    end}.

script(Shell) ->
    {0, stdout, Script} = sderl_cli:run(["completion", Shell]),
    unicode:characters_to_list(Script).

complete(Script, Words) ->
    Ask = [Script, "COMP_WORDS=(sderl ", lists:join(" ", ["'" ++ Word ++ "'" || Word <- Words]),
           ")\nCOMP_CWORD=", integer_to_list(length(Words)),
           "\n_sderl\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n"],
    Port = open_port({spawn_executable, os:find_executable("bash")},
                     [{args, ["-c", lists:flatten(Ask)]}, exit_status, stderr_to_stdout]),
    lists:sort([Word || Word <- string:split(printed(Port, []), "\n", all), Word =/= ""]).

printed(Port, Said) ->
    receive
        {Port, {data, Text}} -> printed(Port, Said ++ Text);
        {Port, {exit_status, 0}} -> Said
    end.

%% No command is left out, in either shell.
completed_test_() ->
    {0, stdout, Help} = sderl_cli:run(["help"]),
    {match, Names} = re:run(unicode:characters_to_binary(Help), "^  ([a-z]+) ",
                            [global, multiline, {capture, all_but_first, list}]),
    [?_assertNotEqual({Name, nomatch}, {Name, string:find(Script, "_sderl_" ++ Name ++ "() {")})
     || Script <- [script("bash"), script("zsh")], [Name] <- Names].

failure_test_() ->
    [
        complains(1, Args, Words)
     || {Args, Words} <- [
         {["bench", "registry", "--json", "/no/such/folder/file"],
          "cannot write /no/such/folder/file"},
         {["bench", "join", "--group-size", "100000000"], "start fewer nodes"}
     ]
    ].

complains(Status, Args, Words) ->
    {lists:flatten(lists:join(" ", Args)), fun() ->
        {Seen, Where, Text} = sderl_cli:run(Args),
        ?assertEqual({Status, stderr}, {Seen, Where}),
        ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Text), Words))
    end}.

help_test_() ->
    [
        {lists:flatten(lists:join(" ", Args)), fun() ->
            {0, stdout, Text} = sderl_cli:run(Args),
            ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Text), Words))
        end}
     || {Args, Words} <- [
            {["help"], "bench"},
            {["help"], "completion"},
            {["ops", "--help"], "Also alarms, metrics, log, actions, audit, tokens"},
            {["ops", "alarms", "--help"], "bin/sderl alarms COMMAND"},
            {["ops", "actions", "--help"], "bin/sderl actions COMMAND"},
            {["ops", "tokens", "add", "--help"], "viewer, operator or admin"},
            {["completion", "--help"], "completion bash"},
            {["--help"], "demo"},
            {["bench", "list"], "registry"},
            {["bench", "vm", "--help"], "timestamps by now/0"},
            {["bench", "tables", "--help"], "delegation*"},
            {["completion", "bash"], "--vary"},
            {["bench", "--help"], "bench NAME"},
            {["bench", "registry", "--help"], "--group-size"},
            {["help", "bench", "join"], "--names"},
            {["demo", "--help"], "--nodes"},
            {["recover", "--help"], "--survivors"},
            {["version"], "OTP " ++ erlang:system_info(otp_release)}
        ]
    ].
