% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_chaos_tests).
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- the log

log_options_test() ->
    Options = #{
        nodes => [a@h, b@h], targets => [#{kind => link, weight => 2, class => <<"link">>}],
        every_ms => 500, window => {1000, infinity}, scope => node, seed => 7, dry_run => true,
        allow_halt => true, limits => #{never => [{a, 1}], never_nodes => [b@h], kills => 3}
    },
    ?assertEqual(
        #{
            <<"nodes">> => [<<"a@h">>, <<"b@h">>],
            <<"targets">> => [#{<<"target">> => <<"link">>, <<"weight">> => 2}],
            <<"every_ms">> => 500,
            <<"window">> => #{<<"from_ms">> => 1000, <<"to_ms">> => null},
            <<"scope">> => <<"node">>, <<"seed">> => 7, <<"dry_run">> => true,
            <<"allow_halt">> => true, <<"majority_groups">> => [<<"{g,1}">>],
            <<"limits">> => #{
                <<"at_once">> => 2, <<"kills">> => 3, <<"never">> => [<<"{a,1}">>],
                <<"never_nodes">> => [<<"b@h">>], <<"library">> => false
            }
        },
        json:decode(iolist_to_binary(
            json:encode(sderl_cli_chaos_log:options(Options#{majority_groups => [{g, 1}]}))
        ))
    ).

%% ---------------------------------------------------------------- what people type

target_test_() ->
    [
        {Word,
         ?_assertEqual({ok, Target#{class => list_to_binary(Class)}}, sderl_cli_words:target(Word))}
     || {Word, Class, Target} <- [
         {"link", "link", #{kind => link, weight => 1}},
         {"2.5*node", "node", #{kind => node, weight => 2.5}},
         {"name", "name", #{kind => name, group => local, weight => 1}},
         {"3*name:queue", "name:queue",
          #{kind => name, group => local, names => [queue], weight => 3}},
         {"global:{db,1}", "global:{db,1}",
          #{kind => name, group => global, names => [{db, 1}], weight => 1}},
         {"group:workers", "group:workers",
          #{kind => name, group => {s_group, workers}, weight => 1}},
         {"group:'a/b'/\"c/d\"", "group:'a/b'/\"c/d\"",
          #{kind => name, group => {s_group, 'a/b'}, names => ["c/d"], weight => 1}},
         {"module:gen_server", "module:gen_server",
          #{kind => process, module => gen_server, weight => 1}},
         {"supervisor:my_sup", "supervisor:my_sup",
          #{kind => process, supervisor => my_sup, weight => 1}},
         {"find:m:f", "find:m:f", #{kind => process, find => {m, f, []}, weight => 1}}
     ]
    ].

bad_target_test_() ->
    [
        {Word, fun() ->
            {error, Text} = sderl_cli_words:target(Word),
            ?assertNotEqual(nomatch, string:find(unicode:characters_to_list(Text), Words))
        end}
     || {Word, Words} <- [
            {"", "a target is module:"},
            {"disk", "a target is module:"},
            {"disk:a", "a target is module:"},
            {"module", "what is missing after it"},
            {"link:a", "a target is"},
            {"name:Queue", "is no Erlang term"},
            {"name:{a,1}", "is no atom"},
            {"global:{a", "is no Erlang term"},
            {"find:m", "MODULE:FUNCTION"},
            {"0*link", "a number over 0"},
            {"-1*link", "a number over 0"},
            {"1.2.3*link", "a number over 0"}
        ]
    ].

duration_test() ->
    ?assertEqual([{ok, 500}, {ok, 5000}, {ok, 90_000}, {ok, 7_200_000}],
                 [sderl_cli_words:duration(D) || D <- ["500ms", "5s", "1.5min", "2h"]]),
    [?assertMatch({error, _}, sderl_cli_words:duration(D))
     || D <- ["", "5", "s", "-5s", "5 s", "5d"]],
    ?assertEqual([{ok, {10_000, 60_000}}, {ok, {0, infinity}}],
                 [sderl_cli_words:window(W) || W <- ["10s..60s", "0s.."]]),
    [?assertMatch({error, _}, sderl_cli_words:window(W))
     || W <- ["", "10s", "..", "60s..10s", "10s..x"]].

command_test_() ->
    Good = ["--node", "a@h", "--target", "link", "--yes"],
    [
        {Words, fun() ->
            {Status, stderr, Text} = sderl_cli:run(["chaos" | Args]),
            ?assertNotEqual({Text, nomatch},
                            {Text, string:find(unicode:characters_to_list(Text), Words)}),
            ?assertEqual(Expected, Status)
        end}
     || {Expected, Args, Words} <- [
         {2, [], "--node is missing"},
         {2, ["--node", "a@h", "--yes"], "--target is missing"},
         {2, ["--node", "ah", "--target", "link", "--yes"], "\"ah\" is no name of a node"},
         {2, ["--node", "a@h", "--target", "link"], "without a terminal nobody can be asked"},
         {2, Good ++ ["--target", "disk"], "a target is"},
         {2, Good ++ ["--target", "node"], "--allow-halt"},
         {2, Good ++ ["--every", "5"], "--every: \"5\" is no duration"},
         {2, Good ++ ["--every", "0s"], "--every must be at least 1ms"},
         {2, Good ++ ["--window", "5s"], "is no window"},
         {2, Good ++ ["--scope", "all"], "it is cluster or node"},
         {2, Good ++ ["--kills", "0"], "--kills cannot be 0"},
         {2, Good ++ ["--never", "{"], "--never: \"{\" is no Erlang term"},
         {2, Good ++ ["--never-node", "x"], "--never-node: \"x\" is no name"},
         {2, Good ++ ["--nodes", "a@h,b"], "--nodes: \"b\" is no name"},
         {2, Good ++ ["--seed", "x"], "--seed cannot be x"},
         {1, Good ++ ["--log", "/"], "is there already"},
         {1, Good ++ ["--log", "/no/such/folder/file"], "there is no folder /no/such/folder"},
         {1, Good ++ ["--cookie-file", "/no/such/file"],
          "cannot read the cookie from /no/such/file"},
         {1, Good ++ ["--cookie-file", "/dev/null"], "/dev/null is empty"}
     ]
    ].
