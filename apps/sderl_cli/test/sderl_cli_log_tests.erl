%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_log_tests).

-include_lib("eunit/include/eunit.hrl").

%% A text cannot look like an event or hide what it is.
lines_test() ->
    Event = #{id => 1, t => 0, node_t => 0, level => error, node => ~"a@h", groups => [],
              mfa => ~"m:f/1", pid => ~"<0.1.0>", lost => 0,
              text => <<"one\n1970-01-01T00:00:00.000Z error two\r\x{1b}[31m\x{202e}"/utf8>>},
    Line = unicode:characters_to_binary(sderl_cli_log_words:line(Event)),
    [First, Second, <<>>] = binary:split(Line, ~"\n", [global]),
    ?assertMatch(<<"1970-01-01T", _/binary>>, First),
    ?assertEqual(1, length(binary:matches(First, ~" error     a@h m:f/1 one"))),
    ?assertEqual(~"    1970-01-01T00:00:00.000Z error two\\u{d}\\u{1b}[31m\\u{202e}", Second),
    Odd = unicode:characters_to_binary(
        sderl_cli_log_words:line(Event#{text := ~"x", mfa := <<>>, node := ~"a\nb"})
    ),
    ?assertMatch({_, _}, binary:match(Odd, ~" a\\u{a}b x\n")),
    Json = iolist_to_binary(sderl_cli_log_words:json(Event)),
    ?assertEqual(nomatch, re:run(Json, "[^ -~]")),
    ?assertMatch(#{~"text" := <<"one\n", _/binary>>, ~"level" := ~"error"}, json:decode(Json)).

%% Wrong arguments are refused, with what is expected, before any node is attached to.
wrong_test_() ->
    Says = fun(Args) ->
        {usage, Text} = sderl_cli_log:run(Args),
        unicode:characters_to_binary(Text)
    end,
    [?_assertMatch({_, {_, _}}, {Said, binary:match(Said, Part)})
     || {Args, Part} <- [
         {[], ~"--seed is missing"}, {["--seed", "x"], ~"NAME@HOST"},
         {["--seed", "a@h", "--since", "now"], ~"--since cannot be \"now\""},
         {["--seed", "a@h", "--level", "loud"], ~"--level cannot be loud: it is emergency or"},
         {["--seed", "a@h", "--limit", "0"], ~"--limit cannot be 0"},
         {["--seed", "a@h", "--text", lists:duplicate(2000, $x)], ~"1000 bytes"}
     ], Said <- [Says(Args)]].

help_test() ->
    {help, Text} = sderl_cli_log:run(["--help"]),
    [?assertNotEqual(nomatch, string:find(Text, Option))
     || Option <- ["--follow", "--json", "--text", "--node", "--group", "--level", "--module",
                   "--since", "--until", "--limit", "--seed", "--cookie-file"]].
