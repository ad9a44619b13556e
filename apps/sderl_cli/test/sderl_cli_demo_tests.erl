% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_demo_tests).
-include_lib("eunit/include/eunit.hrl").

usage_test_() ->
    [
        {lists:flatten(lists:join(" ", Args)), fun() ->
            {usage, Text} = sderl_cli_demo:run(Args),
            ?assertMatch({match, _}, re:run(unicode:characters_to_binary(Text), Expected))
        end}
     || {Args, Expected} <- [
         {["--nodes", "3"], "--nodes must be at least 4"},
         {["--nodes", "many"], "--nodes cannot be many"},
         {["--group-size", "1"], "--group-size must be at least 2"},
         {["--nodes", "8", "--group-size", "9"], "not be above the number of nodes"},
         {["--seconds", "0"], "--seconds cannot be 0"},
         {["--seconds", "-1"], "--seconds"},
         {["--port", "65536"], "--port cannot be 65536"},
         {["--once", "--write"], "--write is for nodes that stay up, and --once stops them"},
         {["--once", "--record", "x"], "--record is for nodes that stay up, and --once stops them"},
         {["--json", "-", "--record", "x"],
          "--record is for nodes that stay up, and --json - stops them"},
         {["--record", ""], "--record is without a folder"},
         {["twice"], "twice"}
     ]
    ].

help_test() ->
    {help, Text} = sderl_cli_demo:run(["--help"]),
    Help = unicode:characters_to_binary(Text),
    [
        ?assertMatch({match, _}, re:run(Help, Option))
     || Option <- ["--nodes", "--group-size", "--seconds", "--once", "--json", "--port", "--write",
                   "--record DIR"]
    ].

unwritable_json_test() ->
    {error, Text} = sderl_cli_demo:run(["--json", "/nonexistent/file"]),
    ?assertEqual(
        <<"cannot write /nonexistent/file: no such file or directory">>,
        unicode:characters_to_binary(Text)
    ).

unwritable_folder_test() ->
    {error, Text} = sderl_cli_demo:run(["--record", "/dev/null/folder"]),
    ?assertMatch(
        <<"--record: cannot make the folder /dev/null/folder: ", _/binary>>,
        unicode:characters_to_binary(Text)
    ).

too_many_nodes_test() ->
    case sderl_fleet:fits(1_000_000) of
        ok ->
            ok;
        {error, _} ->
            {error, Text} = sderl_cli_demo:run(["--nodes", "1000000"]),
            ?assertMatch({match, _}, re:run(unicode:characters_to_binary(Text), "MiB"))
    end.
