%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_prometheus_SUITE).
-moduledoc """
A real Prometheus scrapes the monitor of a made-up cluster, and its promtool checks the exported
metrics and the rules that are shipped. Where `toolchain/prometheus` finds none the suite is
skipped.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([suite/0, all/0, init_per_suite/1, end_per_suite/1]).
-export([page_is_clean/1, rules_are_good/1, names_are_known/1, scraped/1]).

-define(TOKEN, ~"token-of-the-test").
-define(SOON, 120_000).

suite() -> [{timetrap, {minutes, 6}}].

all() -> [page_is_clean, rules_are_good, names_are_known, scraped].

init_per_suite(Config) ->
    case run(filename:join(root(), "toolchain/prometheus"), [], ~"") of
        {0, Said} ->
            Dir = string:trim(lists:last(binary:split(string:trim(Said), ~"\n", [global]))),
            [{prometheus, Dir} | started(Config)];
        {_, Why} ->
            io:format(user, "the tests with Prometheus are skipped: ~ts~n", [Why]),
            {skip, "there is no Prometheus here"}
    end.

started(Config) ->
    _ = [application:load(App) || App <- [sderl_mon, sderl_alarms, sderl_web]],
    ok = application:set_env([
        {sderl_mon, [{config, #{metrics => [
            #{name => orders, kind => counter, event => [shop, order], unit => "orders"}
        ]}}]},
        {sderl_web, [{port, 0}, {token, ?TOKEN}, {source, synthetic}, {cluster, ~"made up"},
                     {synthetic, #{nodes => 20, groups => 2, edges => 40, interval_ms => 200,
                                   changes => false}}]}
    ]),
    {ok, _} = application:ensure_all_started(sderl_web),
    {ok, #{port := Port}} = sderl_web:address(),
    await(fun() -> {200, _} = page(Port), true end),
    [{port, Port} | Config].

end_per_suite(_) ->
    _ = [application:stop(App) || App <- [sderl_web, sderl_alarms, sderl_mon, cowboy, ranch]],
    _ = sderl_mon_synthetic:stop(),
    _ = [application:unset_env(App, Key) || App <- [sderl_mon, sderl_alarms, sderl_web],
                                            {Key, _} <- application:get_all_env(App)],
    ok.

root() -> filename:join(code:lib_dir(sderl_web), "../../../..").

await(Fun) ->
    ?assertEqual(ok, sderl_fleet:await(fun() -> try Fun() catch error:Why -> Why end end, ?SOON)).

page(Port) ->
    {Status, _, Body} = sderl_web_client:http(Port, "/metrics", #{
        headers => [{"Authorization", ["Bearer ", ?TOKEN]}]
    }),
    {Status, Body}.

tool(Config, Arguments, Input) ->
    run(filename:join(proplists:get_value(prometheus, Config), "promtool"), Arguments, Input).

%% What a program prints, and its status. The input goes through a file, as a port cannot end the
%% input without closing itself.
run(Program, Arguments, Input) ->
    Name = lists:concat(["sderl-prometheus-", os:getpid(), $-, erlang:unique_integer([positive])]),
    File = filename:join(filename:basedir(user_cache, "sderl"), Name),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Input),
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", "input=$1; shift; exec \"$@\" < \"$input\"", "sh", File, Program
                | Arguments]},
        binary, exit_status, stderr_to_stdout, hide
    ]),
    Result = said(Port, []),
    ok = file:delete(File),
    Result.

said(Port, Said) ->
    receive
        {Port, {data, Data}} -> said(Port, [Said, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Said)}
    end.

priv(File) -> filename:join(code:priv_dir(sderl_mon), File).

%% ---------------------------------------------------------------- cases

page_is_clean(Config) ->
    {200, Page} = page(proplists:get_value(port, Config)),
    ?assertEqual({0, ~""}, tool(Config, ["check", "metrics"], Page)).

rules_are_good(Config) ->
    {Status, Said} = tool(Config, ["check", "rules", priv("prometheus-rules.yml")], ~""),
    ?assertEqual({0, Said}, {Status, Said}),
    %% Each fires when its time has passed, and not before.
    {ok, Rules} = file:read_file(priv("prometheus-rules.yml")),
    ?assertEqual(lists:sort([Alert || [Alert] <- found("- alert: (\\w+)", Rules)]),
                 lists:sort(maps:keys(alerts()))),
    Tests = filename:join(proplists:get_value(priv_dir, Config), "rules-tests.json"),
    ok = file:write_file(Tests, json:encode(#{
        rule_files => [unicode:characters_to_binary(priv("prometheus-rules.yml"))],
        evaluation_interval => ~"10s",
        tests => [rule_test(Alert, About, Rules)
                  || Alert := About <- maps:iterator(alerts(), ordered)]
    })),
    {Tested, Why} = tool(Config, ["test", "rules", Tests], ~""),
    ?assertEqual({0, Why}, {Tested, Why}).

%% For each rule: after how many seconds it fires if its condition holds from 30 s on, the series
%% that fulfil it, and the alerts 10 s later.
alerts() ->
    OfNode = #{severity => ~"warning", node => ~"a@h"},
    Findings = fun(Kind) ->
        {sderl_findings, #{kind => Kind, severity => ~"critical"}, ~"0x2 2x60"}
    end,
    #{
        ~"SderlNodeDown" => {60,
            [{sderl_node_up, #{node => ~"a@h", status => ~"down"}, ~"1x2 0x60"}],
            #{severity => ~"critical", node => ~"a@h", status => ~"down"},
            ~"The node a@h is down or does not answer"},
        %% Time begins at 0 here. The last frame is of 30 s, and old from 70 s on.
        ~"SderlMonitorStale" => {100,
            [{sderl_frame_time_seconds, #{}, ~"0+10x3 30x60"}],
            #{severity => ~"critical"},
            ~"The monitor m has had no new numbers for 1m 20s"},
        ~"SderlMonitorDown" => {90,
            [{sderl_monitor_up, #{node => ~"m2@h"}, ~"1x2 0x60"},
             {sderl_monitor_up, #{node => ~"m1@h"}, ~"1x62"}],
            #{severity => ~"warning", node => ~"m2@h"},
            ~"The monitoring node m2@h is down"},
        ~"SderlNoMaster" => {90,
            [{sderl_monitor_master, #{node => ~"m1@h"}, ~"1x2 0x60"},
             {sderl_monitor_master, #{node => ~"m2@h"}, ~"0x62"}],
            #{severity => ~"critical"},
            ~"No monitoring node leads"},
        ~"SderlMajorityLost" => {40, [Findings(~"majority_lost")],
            #{severity => ~"critical"},
            ~"2 groups have no majority"},
        ~"SderlNoCoordinator" => {60, [Findings(~"no_coordinator")],
            #{severity => ~"critical"},
            ~"2 groups have no coordinator"},
        %% Findings that have a rule of their own, or are not critical, are not among them.
        ~"SderlFinding" => {90,
            [Findings(~"overloaded"), Findings(~"node_down"), Findings(~"majority_lost"),
             Findings(~"no_coordinator"),
             {sderl_findings, #{kind => ~"bypass", severity => ~"warning"}, ~"9x62"}],
            #{severity => ~"warning", kind => ~"overloaded"},
            ~"2 critical findings: overloaded"},
        ~"SderlMembersDown" => {90,
            [{sderl_group_live_members, #{group => ~"g"}, ~"3x2 2x60"},
             {sderl_group_members, #{group => ~"g"}, ~"3x62"}],
            #{severity => ~"warning", group => ~"g"},
            ~"Of the group g only 2 members count for answers"},
        %% A busy node without a run queue is not overloaded.
        ~"SderlOverloaded" => {90,
            [{sderl_node_scheduler_utilisation_ratio, #{node => ~"a@h"}, ~"0.99x62"},
             {sderl_node_run_queue, #{node => ~"a@h"}, ~"3x2 80x60"},
             {sderl_node_scheduler_utilisation_ratio, #{node => ~"b@h"}, ~"0.99x62"},
             {sderl_node_run_queue, #{node => ~"b@h"}, ~"3x62"}],
            OfNode, ~"a@h works to 99%, and processes wait"},
        ~"SderlLongQueue" => {50,
            [{sderl_node_message_queue_max, #{node => ~"a@h"}, ~"10000x2 20000x60"}],
            OfNode, ~"A process of a@h has 20000 messages in its queue"},
        ~"SderlMessagesUndelivered" => {90,
            [{sderl_node_undelivered_messages_per_second, #{node => ~"a@h"}, ~"1x2 2x60"}],
            OfNode, ~"a@h could not deliver 2 routed messages a second"},
        ~"SderlRegistrationsFail" => {90,
            [{sderl_node_failed_registrations_per_second, #{node => ~"a@h"}, ~"1x2 2x60"}],
            OfNode, ~"2 registrations a second fail on a@h"},
        ~"SderlMachineMemory" => {330,
            [{sderl_node_host_memory_used_bytes, #{node => ~"a@h"}, ~"90x2 95x60"},
             {sderl_node_host_memory_bytes, #{node => ~"a@h"}, ~"100x62"}],
            OfNode, ~"The machine of a@h has used 95% of its memory"}
    }.

rule_test(Alert, {AtS, Series, Labels, Summary}, Rules) ->
    [[Remedy]] = found(["- alert: ", Alert, "\n(?:(?!- alert)[^\n]*\n)*? *remedy: '([^']*)'"],
                       Rules),
    #{
        interval => ~"10s",
        input_series => [#{series => offered(Name, Of), values => Values}
                         || {Name, Of, Values} <- Series],
        alert_rule_test => [
            #{eval_time => seconds(AtS - 10), alertname => Alert},
            #{eval_time => seconds(AtS + 10), alertname => Alert, exp_alerts => [#{
                exp_labels => Labels#{instance => ~"m"},
                exp_annotations => #{summary => Summary, remedy => Remedy}
            }]}
        ]
    }.

%% A series as the monitor exports it, with the label that Prometheus adds for the monitor.
offered(Name, Of) ->
    Text = atom_to_binary(Name),
    [Labels] = [Labels || #{name := Is, labels := Labels} <- sderl_mon_catalogue:families(),
                          Is =:= Text],
    ?assertEqual({Name, lists:sort(Labels)},
                 {Name, lists:sort([atom_to_binary(Key) || Key := _ <- Of])}),
    iolist_to_binary([Text, ${, lists:join($,, [
        [atom_to_binary(Key), "=\"", Value, "\""] || Key := Value <- Of#{instance => ~"m"}
    ]), $}]).

seconds(S) -> <<(integer_to_binary(S))/binary, "s">>.

found(Pattern, Text) ->
    {match, Found} = re:run(Text, Pattern, [global, {capture, all_but_first, binary}]),
    Found.

%% A rule or a Grafana panel with a metric that is not exported would silently show nothing.
names_are_known(_) ->
    Known = [Name || #{name := Name} <- sderl_mon_catalogue:families()],
    lists:foreach(fun(File) ->
        {ok, Text} = file:read_file(priv(File)),
        {match, Found} = re:run(Text, "\\bsderl_[a-z_]+", [global, {capture, first, binary}]),
        ?assertMatch([_, _, _ | _], Found),
        ?assertEqual({File, []}, {File, lists:usort(lists:append(Found)) -- Known})
    end, ["prometheus-rules.yml", "grafana-dashboard.json"]).

scraped(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    Token = filename:join(Dir, "token"),
    ok = file:write_file(Token, ?TOKEN),
    File = filename:join(Dir, "prometheus.yml"),
    ok = file:write_file(File, io_lib:format(
        """
        global: {scrape_interval: 1s, evaluation_interval: 1s}
        rule_files: ['~ts']
        scrape_configs:
          - job_name: sderl
            authorization: {credentials_file: '~ts'}
            static_configs: [{targets: ['127.0.0.1:~b']}]
        """,
        [priv("prometheus-rules.yml"), Token, proplists:get_value(port, Config)]
    )),
    with_server(Config, File, filename:join(Dir, "data"), fun(Api) ->
        await(fun() -> 1.0 =:= value(Api, "up{job=\"sderl\"}") end),
        await(fun() -> 20.0 =:= value(Api, "sderl_nodes") end),
        await(fun() -> 20.0 =:= value(Api, "count(sderl_node_memory_bytes > 0)") end),
        await(fun() -> 20.0 =:= value(Api, "sum(sderl_node_up)") end),
        %% All rules are evaluated without an error.
        await(fun() ->
            #{~"data" := #{~"groups" := [#{~"rules" := Rules}]}} = get(Api, "/api/v1/rules"),
            [] =/= Rules
                andalso lists:all(fun(#{~"health" := Health}) -> Health =:= ~"ok" end, Rules)
        end),
        %% And Grafana's queries are understood.
        [?assertMatch({Query, #{~"status" := ~"success"}}, {Query, query(Api, Query)})
         || Query <- grafana()]
    end).

%% The queries of the Grafana dashboard, with values in place of its variables.
grafana() ->
    {ok, Text} = file:read_file(priv("grafana-dashboard.json")),
    #{~"panels" := Panels} = json:decode(Text),
    Queries = [string:replace(Query, "$node", ".*", all)
               || #{~"targets" := Targets} <- Panels, #{~"expr" := Query} <- Targets],
    ?assertMatch([_, _, _ | _], Queries),
    [unicode:characters_to_list(Query) || Query <- Queries].

value(Api, Query) ->
    case query(Api, Query) of
        #{~"data" := #{~"result" := [#{~"value" := [_, Value]}]}} ->
            try binary_to_float(Value) catch error:badarg -> float(binary_to_integer(Value)) end;
        Other -> Other
    end.

query(Api, Query) ->
    get(Api, ["/api/v1/query?", uri_string:compose_query([{"query", Query}])]).

get(Port, Path) ->
    {_, _, Body} = sderl_web_client:http(Port, Path),
    json:decode(plain(Body)).

%% The page without the chunks of HTTP.
plain(<<${, _/binary>> = Body) -> Body;
plain(Chunks) -> iolist_to_binary(chunks(Chunks)).

chunks(Text) ->
    [Size, Rest] = binary:split(Text, ~"\r\n"),
    case binary_to_integer(Size, 16) of
        0 -> [];
        N ->
            <<Chunk:N/binary, "\r\n", More/binary>> = Rest,
            [Chunk | chunks(More)]
    end.

%% The server prints the port at which it listens. It ends with the shell, which waits for the end
%% of its input.
with_server(Config, File, Data, Test) ->
    Server = filename:join(proplists:get_value(prometheus, Config), "prometheus"),
    Port = open_port({spawn_executable, "/bin/sh"}, [
        {args, ["-c", "\"$@\" 2>&1 & child=$!; cat > /dev/null; kill $child; wait $child", "sh",
                Server, "--config.file=" ++ File, "--storage.tsdb.path=" ++ Data,
                "--web.listen-address=127.0.0.1:0"]},
        binary, {line, 4096}, exit_status, hide
    ]),
    try
        Test(listens(Port, []))
    after
        true = port_close(Port)
    end.

listens(Port, Said) ->
    receive
        {Port, {data, {_, Line}}} ->
            case re:run(Line, "[Ll]istening on.*address=127.0.0.1:([0-9]+)",
                        [{capture, all_but_first, list}]) of
                {match, [Number]} -> list_to_integer(Number);
                nomatch -> listens(Port, [Line | Said])
            end;
        {Port, {exit_status, Status}} -> error({ended, Status, lists:reverse(Said)})
    after ?SOON -> error({says_no_port, lists:reverse(Said)})
    end.
