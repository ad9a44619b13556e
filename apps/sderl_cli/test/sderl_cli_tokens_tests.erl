%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_tokens_tests).

%% bin/sderl tokens, and what it refuses.

-include_lib("eunit/include/eunit.hrl").

run(Args) -> sderl_cli_tokens:run(Args).

text({_, Text}) -> unicode:characters_to_binary(Text).

refused_test_() ->
    Says = fun(Args) ->
        {usage, Text} = run(Args),
        unicode:characters_to_binary(Text)
    end,
    {setup, fun() -> os:unsetenv("SDERL_TOKENS") end, [
        ?_assertMatch(<<"a command is missing", _/binary>>, Says([])),
        ?_assertMatch(<<"there is no command lst", _/binary>>, Says(["lst"])),
        ?_assertMatch(<<"which file? say --file", _/binary>>, Says(["list"])),
        ?_assertMatch(<<"--role needs a value", _/binary>>, Says(["add", "ann"])),
        ?_assertMatch(<<"--role cannot be king: it is viewer or operator or admin", _/binary>>,
                      Says(["add", "ann", "--role", "king"])),
        [?_assertMatch(<<"--for cannot be ", _/binary>>,
                       Says(["add", "ann", "--role", "admin", "--file", "x", "--for", Time]))
         || Time <- ["2", "h", "0s", "3651d", "2 h"]],
        [?_assertMatch({help, _}, run([Do, "--help"])) || Do <- ["add", "list", "revoke"]],
        ?_assertMatch({help, _}, run(["--help"]))
    ]}.

used_test_() ->
    {setup, fun() ->
        filename:join(os:getenv("TMPDIR", "/tmp"), lists:concat(
            ["sderl-cli-tokens-", os:getpid(), "-", erlang:unique_integer([positive])]
        ))
    end, fun file:delete/1, fun(File) -> ?_test(used(File)) end}.

used(File) ->
    Do = fun(Args) -> run(Args ++ ["--file", File]) end,
    ?assertEqual(~"no tokens\n", text(Do(["list"]))),
    <<"sderl_", Id:8/binary, "_", Secret:32/binary, "\n">> =
        text(Do(["add", "ann", "--role", "operator"])),
    List = text(Do(["list"])),
    ?assertMatch({match, _}, re:run(List, [Id, "  ann +operator  active +until 20[0-9-]+T"])),
    ?assertEqual(nomatch, binary:match(List, Secret)),
    {error, Twice} = Do(["add", "ann", "--role", "admin"]),
    ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Twice), Id)),
    #{~"token" := _, ~"about" := #{~"id" := Other, ~"expires" := null, ~"role" := ~"viewer"}} =
        json:decode(text(Do(["add", "bob", "--role", "viewer", "--for", "never", "--json"]))),
    ok = Do(["revoke", "ann"]),
    #{~"state" := ~"revoked"} =
        json:decode(text(Do(["revoke", binary_to_list(Other), "--json"]))),
    ?assertMatch(#{~"tokens" := [#{~"state" := ~"revoked"}, #{~"state" := ~"revoked"}]},
                 json:decode(text(Do(["list", "--json"])))),
    {error, None} = Do(["revoke", "eve"]),
    ?assertMatch(<<"there is no token eve in ", _/binary>>, unicode:characters_to_binary(None)).
