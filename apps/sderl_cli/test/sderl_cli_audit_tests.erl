%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_audit_tests).

%% bin/sderl audit against a dashboard of a made-up cluster, and out of files.

-include_lib("eunit/include/eunit.hrl").

-define(TOKEN, "token-of-the-test").

run(Args) -> sderl_cli_audit:run(Args).

text({help, Text}) -> unicode:characters_to_binary(Text).

refused_test_() ->
    {setup, fun() -> os:unsetenv("SDERL_DASHBOARD"), os:unsetenv("SDERL_TOKEN") end, [
        ?_assertMatch({usage, _}, run([])),
        ?_assertMatch({usage, _}, run(["--result", "good"])),
        ?_assertMatch({usage, _}, run(["--since", "yesterday"])),
        ?_assertMatch({error, _}, run(["--dir", "/nonexistent"])),
        ?_assertMatch({help, _}, run(["--help"]))
    ]}.

read_test_() ->
    {timeout, 120, {setup, fun start/0, fun stop/1, fun(Before) -> ?_test(used(Before)) end}}.

start() ->
    Dir = filename:join(filename:basedir(user_cache, "sderl-cli-audit"), os:getpid()),
    _ = [application:load(App) || App <- [sderl_mon, sderl_actions, sderl_web]],
    ok = application:set_env([
        {sderl_actions, [{state_dir, Dir}]},
        {sderl_web, [{port, 0}, {token, <<?TOKEN>>}, {source, synthetic},
                     {synthetic, #{nodes => 4, groups => 1, edges => 2, changes => false}}]}
    ]),
    _ = application:stop(sderl_actions),
    {ok, _} = application:ensure_all_started(sderl_web),
    {ok, #{link := Link}} = sderl_web:address(),
    #{link => unicode:characters_to_list(Link), dir => Dir}.

stop(#{dir := Dir}) ->
    Apps = [sderl_web, sderl_actions, sderl_alarms, sderl_mon, cowboy, ranch],
    _ = [application:stop(App) || App <- Apps],
    _ = sderl_mon_synthetic:stop(),
    _ = [application:unset_env(App, Key) || App <- [sderl_web, sderl_actions],
                                            {Key, _} <- application:get_all_env(App)],
    ok = file:del_dir_r(Dir).

used(#{link := Link, dir := Dir}) ->
    ok = sderl_actions_audit:note(#{
        who => #{kind => token, name => ~"anna", role => ~"operator"}, what => ~"config.set",
        where => [~"a@h"], args => #{application => ~"web", password => ~"geheim"},
        result => refused, detail => ~"no such application"}),
    lists:foreach(fun(From) ->
        Do = fun(Args) -> text(run(Args ++ From)) end,
        Text = Do(["--who", "anna"]),
        [?assertNotEqual({nomatch, Text}, {binary:match(Text, Part), Text})
         || Part <- [~"Z  refused  anna ", ~"config.set  on a@h  {", ~"(no such application)\n"]],
        ?assertEqual(nomatch, binary:match(Text, ~"geheim")),
        #{~"args" := #{~"password" := ~"(hidden)"}} = json:decode(Do(["--who", "anna", "--json"])),
        ?assertEqual(~"", Do(["--who", "bert"])),
        ?assertMatch({_, _}, binary:match(Do(["--since", "1h"]), ~"audit.start"))
    end, [["--url", Link], ["--dir", filename:join(Dir, "audit")]]),
    {error, Why} = run(["--text", lists:duplicate(300, $x), "--url", Link]),
    ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(Why), ~"at most 255")).
