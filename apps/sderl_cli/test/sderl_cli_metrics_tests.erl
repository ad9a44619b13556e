%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_metrics_tests).

%% bin/sderl metrics against a dashboard of a made-up cluster, and what it refuses without one.

-include_lib("eunit/include/eunit.hrl").

-define(TOKEN, "token-of-the-test").

run(Args) -> sderl_cli_metrics:run(Args).

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
        ?_assertMatch(<<"metric is missing", _/binary>>, Says(["show"])),
        ?_assertMatch(<<"METRIC is empty", _/binary>>, Says(["show", ""])),
        ?_assertMatch(<<"--window cannot be year: it is 15m or hour or day or week or month",
                        _/binary>>, Says(["show", "mem", "--window", "year"])),
        ?_assertMatch(<<"--points cannot be 0", _/binary>>,
                      Says(["show", "mem", "--points", "0"])),
        ?_assertMatch({error, _}, run(["list", "--url", "http://127.0.0.1:1/#token=12345678"])),
        ?_assertMatch(<<"name is missing", _/binary>>, Says(["page"])),
        ?_assertMatch(<<"NAME is empty", _/binary>>, Says(["page", ""])),
        [?_assertMatch({help, _}, run([Do, "--help"]))
         || Do <- ["list", "show", "pages", "page", "completion"]],
        ?_assertMatch({help, _}, run(["--help"]))
    ]}.

%% Minimum, mean and maximum are of known values; columns fit the width of a terminal.
shown_test_() ->
    Of = fun(Columns) ->
        Text = sderl_cli_metrics_show:series(#{
            ~"metric" => ~"orders", ~"unit" => ~"orders/s", ~"total" => ~"sum",
            ~"place" => ~"family:web", ~"t" => [1_000, 2_000, 3_000], ~"columns" => Columns}),
        %% Times are those of where the test runs.
        re:replace(Text, "^(19.{23}|-{25}|(time|mean|most) {21}|(least) {20})", "\\2\\3",
                   [global, multiline, {return, binary}])
    end,
    Many = #{<<"orders{n=\"", (integer_to_binary(N))/binary, "\"}">> => [1, 1, 1]
             || N <- lists:seq(1, 8)},
    [?_assertEqual(~"""
        orders of family:web, orders/s (sum of its nodes)

        time  orders
          ------
               1
               -
            4.00
        least       1
        mean    2.50
        most    4.00

        """, Of(#{~"orders" => [1, null, 4.0]})),
     ?_assertEqual(~"nothing of family:web has told orders in that time\n", Of(#{})),
     ?_assertMatch({_, _}, binary:match(Of(#{~B|orders{a="x"}| => [null, null, null]}), ~B|a="x"|)),
     ?_assertMatch({_, _}, binary:match(Of(Many), ~B|and 2 more series; --json has all|))].

completion_test_() ->
    [fun() ->
        Script = text(run(["completion", Shell])),
        [?assertMatch({_, _}, binary:match(Script, Word))
         || Word <- [~"    show)", ~"--window", ~"15m hour day week month"]]
    end || Shell <- ["bash", "zsh"]].

dashboard_test_() ->
    {timeout, 120, {setup, fun start/0, fun stop/1, fun(Link) -> ?_test(used(Link)) end}}.

start() ->
    _ = [application:load(App) || App <- [sderl_mon, sderl_web]],
    ok = application:set_env([
        {sderl_web, [{port, 0}, {token, <<?TOKEN>>}, {source, synthetic},
                     {synthetic, #{nodes => 10, groups => 2, edges => 20, interval_ms => 200,
                                   changes => false}}]}
    ]),
    {ok, _} = application:ensure_all_started(sderl_web),
    {ok, #{link := Link}} = sderl_web:address(),
    ok = sderl_fleet:await(fun() -> is_map(maps:get(frame, sderl_web_feed:current())) end, 60_000),
    unicode:characters_to_list(Link).

stop(_) ->
    _ = [application:stop(App) || App <- [sderl_web, sderl_alarms, sderl_mon, cowboy, ranch]],
    _ = sderl_mon_synthetic:stop(),
    _ = [application:unset_env(sderl_web, Key) || {Key, _} <- application:get_all_env(sderl_web)],
    ok.

used(Link) ->
    Do = fun(Args) -> text(run(Args ++ ["--url", Link])) end,
    Says = fun(Args) ->
        {error, Why} = run(Args ++ ["--url", Link]),
        unicode:characters_to_binary(Why)
    end,
    ?assertMatch({match, _},
                 re:run(Do(["list"]), "^mem +sum +B +Memory that the run-time", [multiline])),
    #{~"metrics" := [#{~"name" := _} | _]} = json:decode(Do(["list", "--json"])),
    ?assertEqual(nomatch, re:run(Do(["list", "--tag", "dev"]), "^host_mem ", [multiline])),
    ?assertEqual(~"no metrics\n", Do(["list", "--tag", "no such"])),
    Shown = Do(["show", "procs", "--place", "family:node", "--window", "15m"]),
    ?assertMatch(<<"procs of family:node, processes (sum of its nodes)\n", _/binary>>, Shown),
    ?assertMatch({match, _}, re:run(Shown, "^most +[0-9]", [multiline])),
    #{~"place" := ~"cluster", ~"columns" := #{~"procs" := Values}} =
        json:decode(Do(["show", "procs", "--points", "3", "--json"])),
    ?assert(length(Values) =< 3),
    ?assertMatch(<<"there is no metric \"nosuch\"", _/binary>>, Says(["show", "nosuch"])),
    ?assertMatch(<<"there is no family \"x\"", _/binary>>,
                 Says(["show", "mem", "--place", "family:x"])),
    ?assertMatch(<<"place cannot be \"web\"", _/binary>>, Says(["show", "mem", "--place", "web"])),
    %% Saved pages are shown, even with a chart of something that is gone.
    ?assertEqual(~"no saved pages\n", Do(["pages"])),
    Chart = fun(Metric, Kind, Name) ->
        #{~"metric" => Metric, ~"place" => #{~"kind" => Kind, ~"name" => Name}}
    end,
    {ok, Page} = sderl_web_front:check(#{
        ~"name" => ~"Mein Blatt", ~"window" => ~"15m",
        ~"charts" => [#{~"metric" => ~"procs", ~"place" => #{~"kind" => ~"cluster"}},
                      Chart(~"mem", ~"family", ~"node"), Chart(~"mem", ~"family", ~"gone")]
    }),
    {ok, _} = sderl_web_fronts:change(save_front, #{page => Page}),
    ?assertMatch({match, _}, re:run(Do(["pages"]), "^Mein Blatt +15m +3$", [multiline])),
    Saved = Do(["page", "Mein Blatt"]),
    [?assertMatch({Line, {match, _}}, {Line, re:run(Saved, Line, [multiline])})
     || Line <- ["^page Mein Blatt, the last 15m$", "^metric +of +unit +last +least +mean +most$",
                 "^procs +cluster +processes +[0-9]", "^mem +family:node +B +[0-9]",
                 "^mem: there is no family \"gone\""]],
    #{~"name" := ~"Mein Blatt", ~"charts" := [
        #{~"metric" := ~"procs", ~"series" := #{~"columns" := #{}}}, #{~"series" := _},
        #{~"error" := <<"there is no family", _/binary>>}
    ]} = json:decode(Do(["page", "Mein Blatt", "--json"])),
    ?assertMatch(<<"there is no page \"x\"", _/binary>>, Says(["page", "x"])),
    %% The same below ops.
    {0, stdout, Below} = sderl_cli:run(["ops", "metrics", "list", "--url", Link]),
    ?assertEqual(Do(["list"]), unicode:characters_to_binary(Below)).
