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
            {["bench", "nonsense"], "there is no benchmark nonsense"},
            {["bench", "list", "more"], "takes no options"},
            {["bench", "completion"], "takes the shell: bash or zsh"},
            {["bench", "vm", "--schedulers", "0"], "is no whole number from 1 to 1024"},
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
            {["--help"], "demo"},
            {["bench", "list"], "registry"},
            {["bench", "vm", "--help"], "timestamps by now/0"},
            {["bench", "completion", "bash"], "--vary"},
            {["bench", "completion", "zsh"], "_sderl_bench"},
            {["bench", "--help"], "bench NAME"},
            {["bench", "registry", "--help"], "--group-size"},
            {["help", "bench", "join"], "--names"},
            {["demo", "--help"], "--nodes"},
            {["recover", "--help"], "--survivors"},
            {["version"], "OTP " ++ erlang:system_info(otp_release)}
        ]
    ].
