%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_alarms_SUITE).
-moduledoc """
Alarms of a made-up cluster, as programs and browsers ask for them: who may do what, and what is
refused.
""".

-behaviour(ct_suite).

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(TOKEN, ~"token-of-the-test").
-define(MS, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [http, socket, refused, bad_bodies, read_only, without_alarms].

init_per_suite(Config) ->
    Rules = filename:join(proplists:get_value(priv_dir, Config), "rules.json"),
    [{rules, Rules} | Config].

end_per_suite(_) -> ok.

init_per_testcase(Case, Config) ->
    Rules = proplists:get_value(rules, Config),
    ok = file:write_file(Rules, ~"""
        {"rules": [{"alarm": "busy", "metric": "procs", "minor": 1, "for_s": 0,
                    "nodes": ["node001@*"], "cause": "So many.", "remedy": "None.",
                    "tags": ["dev"]}]}
        """),
    _ = [application:load(App) || App <- [sderl_mon, sderl_alarms, sderl_web]],
    ok = application:set_env([
        {sderl_alarms, [{rules_file, Rules}]},
        {sderl_web, [{port, 0}, {token, ?TOKEN}, {source, synthetic}, {cluster, ~"made up"},
                     {writable, Case =/= read_only},
                     {synthetic, #{nodes => 20, groups => 2, edges => 40, interval_ms => 200,
                                   changes => false}}]}
    ]),
    {ok, _} = application:ensure_all_started(sderl_web),
    {ok, #{port := Port}} = sderl_web:address(),
    ok = sderl_fleet:await(fun() -> sderl_alarms:list(#{alarm => ~"busy"}) =/= [] end, ?MS),
    [#{id := Id} | _] = sderl_alarms:list(#{alarm => ~"busy"}),
    [{port, Port}, {id, Id} | Config].

end_per_testcase(_, _) ->
    _ = [application:stop(App) || App <- [sderl_web, sderl_alarms, sderl_mon, cowboy, ranch]],
    _ = sderl_mon_synthetic:stop(),
    _ = [application:unset_env(App, Key) || App <- [sderl_web, sderl_alarms],
                                            {Key, _} <- application:get_all_env(App)],
    ok.

get(Config, Path) ->
    {Status, _, Body} = sderl_web_client:http(proplists:get_value(port, Config), Path, #{
        headers => [{"Authorization", ["Bearer ", ?TOKEN]}]
    }),
    {Status, json:decode(Body)}.

delete(Config, Path) ->
    {Status, _, Body} = sderl_web_client:http(proplists:get_value(port, Config), Path, #{
        method => "DELETE", headers => [{"Authorization", ["Bearer ", ?TOKEN]}]
    }),
    {Status, Body}.

post(Config, Path, Object) -> post(Config, Path, json:encode(Object), []).

post(Config, Path, Body, Headers) ->
    {Status, _, Answer} = sderl_web_client:http(proplists:get_value(port, Config), Path, #{
        method => "POST", body => Body,
        headers => case Headers of
            [] -> [{"Authorization", ["Bearer ", ?TOKEN]}, {"Content-Type", "application/json"}];
            _ -> Headers
        end
    }),
    {Status, try json:decode(Answer) catch error:_ -> Answer end}.

encoded(Id) -> uri_string:quote(Id).

%% ---------------------------------------------------------------- cases

http(Config) ->
    Id = proplists:get_value(id, Config),
    Path = ["/api/v1/alarms/", encoded(Id)],
    {200, #{~"alarms" := [#{~"id" := Id}], ~"next" := null, ~"total" := 1}} =
        get(Config, "/api/v1/alarms?state=raised&severity=minor&tag=dev&alarm=bus*&limit=2"),
    {200, #{~"alarms" := []}} = get(Config, "/api/v1/alarms?severity=major&alarm=busy"),
    {200, #{~"state" := ~"raised", ~"cause" := ~"So many.", ~"comments" := []}} =
        get(Config, Path),
    {200, #{~"state" := ~"acknowledged"}} =
        post(Config, [Path, "/acknowledge"], #{by => ~"ann", text => ~"mine"}),
    {201, #{~"comments" := [_]}} =
        post(Config, [Path, "/comments"], #{by => ~"bob", text => ~"again"}),
    {200, #{~"state" := ~"acknowledged", ~"acknowledged" := #{~"by" := ~"ann"},
            ~"comments" := [#{~"by" := ~"bob", ~"text" := ~"again"}]}} = get(Config, Path),
    {200, _} = post(Config, [Path, "/reopen"], #{by => ~"ann"}),
    {200, #{~"state" := ~"raised"}} = get(Config, Path),
    {201, #{~"id" := Silence}} =
        post(Config, "/api/v1/silences", #{alarm => ~"busy", for_s => 60, by => ~"ann"}),
    {200, #{~"silences" := [#{~"id" := Silence, ~"match" := #{~"alarm" := ~"busy"}}]}} =
        get(Config, "/api/v1/silences"),
    {200, #{~"silenced" := true}} = get(Config, Path),
    {204, _} = delete(Config, ["/api/v1/silences/", encoded(Silence), "?by=ann"]),
    {200, #{~"silences" := []}} = get(Config, "/api/v1/silences"),
    {200, #{~"rules" := Rules, ~"metrics" := [#{~"name" := ~"down"} | _]}} =
        get(Config, "/api/v1/rules"),
    ?assertMatch(#{~"alarm" := ~"busy", ~"minor" := 1, ~"major" := null}, lists:last(Rules)),
    %% Other rules count at once; wrong rules change nothing.
    File = proplists:get_value(rules, Config),
    ok = file:write_file(File, "{\"rules\": [{\"alarm\": \"x\"}, 5]}"),
    {400, #{~"detail" := Why}} = post(Config, "/api/v1/rules/reload", #{}),
    ?assertEqual([~"rules.1.metric", ~"rules.2"],
                 [hd(binary:split(Line, ~":")) || Line <- binary:split(Why, ~"\n")]),
    {200, #{~"state" := ~"raised"}} = get(Config, Path),
    ok = file:write_file(File, "{}"),
    {204, _} = post(Config, "/api/v1/rules/reload", #{}),
    ok = sderl_fleet:await(fun() ->
        {200, #{~"state" := State}} = get(Config, Path),
        State =:= ~"cleared"
    end, ?MS),
    {409, _} = post(Config, [Path, "/acknowledge"], #{by => ~"ann"}),
    {_, _, Metrics} = sderl_web_client:http(proplists:get_value(port, Config),
                                            ["/metrics?token=", ?TOKEN]),
    ?assertMatch({_, _}, binary:match(Metrics,
                                      ~"sderl_alarms{severity=\"minor\",state=\"raised\"} ")).

socket(Config) ->
    Id = proplists:get_value(id, Config),
    {ok, Socket} = sderl_web_client:open(proplists:get_value(port, Config), ?TOKEN),
    Until = fun(Good) ->
        sderl_web_client:until(Socket, fun
            (#{~"type" := ~"alarms", ~"alarms" := Alarms}) ->
                [true || #{~"id" := Is} = Alarm <- Alarms, Is =:= Id, Good(Alarm)] =/= [];
            (_) -> false
        end, ?MS)
    end,
    #{~"silences" := []} = Until(fun(#{~"state" := State}) -> State =:= ~"raised" end),
    #{~"ok" := true} = sderl_web_client:ask(Socket, #{op => acknowledge, id => Id, by => ~"ann"}),
    _ = Until(fun(#{~"state" := State}) -> State =:= ~"acknowledged" end),
    #{~"ok" := true, ~"result" := #{~"id" := _}} =
        sderl_web_client:ask(Socket, #{op => silence, alarm => ~"busy", for_s => 60, by => ~"b"}),
    _ = Until(fun(#{~"silenced" := Silenced}) -> Silenced end),
    #{~"ok" := true, ~"result" := #{~"alarms" := [_ | _]}} =
        sderl_web_client:ask(Socket, #{op => alarms}),
    #{~"ok" := false, ~"error" := #{~"code" := ~"not_found"}} =
        sderl_web_client:ask(Socket, #{op => alarm, id => ~"no|such"}),
    %% The server of alarms restarts: the browser gets the alarms again without asking.
    exit(whereis(sderl_alarms_server), kill),
    _ = Until(fun(#{~"state" := State}) -> State =:= ~"raised" end),
    sderl_web_client:close(Socket).

refused(Config) ->
    Port = proplists:get_value(port, Config),
    Path = ["/api/v1/alarms/", encoded(proplists:get_value(id, Config))],
    Json = {"Content-Type", "application/json"},
    Bearer = {"Authorization", ["Bearer ", ?TOKEN]},
    Body = ~"{\"by\":\"ann\"}",
    Acknowledge = [Path, "/acknowledge"],
    {401, _} = post(Config, Acknowledge, Body, [Json]),
    {401, _} = post(Config, Acknowledge, Body, [Json, {"Authorization", "Bearer wrong-token"}]),
    {403, _} = post(Config, Acknowledge, Body, [Json, Bearer, {"Origin", "http://evil.example"}]),
    {421, _} = post(Config, Acknowledge, Body, [Json, Bearer, {"Host", "evil.example"}]),
    %% The requests that a form on another page could send.
    [{415, _} = post(Config, Acknowledge, Body, [Bearer | Type])
     || Type <- [[], [{"Content-Type", "text/plain"}],
                 [{"Content-Type", "application/x-www-form-urlencoded"}]]],
    {405, _} = get(Config, Acknowledge),
    {405, _} = post(Config, Path, #{}),
    [{404, _} = get(Config, P)
     || P <- ["/api/v1/alarms/x/y/z", "/api/v1/silences/x/y", "/api/v1/rules/x", [Path, "/x"],
              "/api/v1/alarms/nothing"]],
    {404, _} = post(Config, "/api/v1/alarms/nothing/acknowledge", #{by => ~"ann"}),
    {404, _} = delete(Config, "/api/v1/silences/nothing"),
    {405, _} = post(Config, "/api/v1/state", #{}),
    [?assertMatch({405, #{~"allow" := ~"GET, HEAD"}, _},
                  sderl_web_client:http(Port, P, #{method => "POST"}))
     || P <- ["/metrics", "/", "/ws"]],
    [?assertMatch({405, #{~"allow" := ~"GET, HEAD"}, _},
                  sderl_web_client:http(Port, Path, #{method => M, headers => [Bearer]}))
     || M <- ["PUT", "DELETE", "PATCH"]],
    {200, #{~"state" := ~"raised"}} = get(Config, Path).

bad_bodies(Config) ->
    Path = ["/api/v1/alarms/", encoded(proplists:get_value(id, Config)), "/comments"],
    Refused = fun(Status, Object) ->
        {Status, #{~"status" := Status, ~"detail" := Why}} = post(Config, Path, Object),
        ?assert(byte_size(Why) > 10)
    end,
    [Refused(400, Object) || Object <- [
        #{}, #{by => ~"ann"}, #{by => 5, text => ~"x"}, #{by => ~"", text => ~"x"},
        #{by => ~"ann", text => ~""}, #{by => ~"ann", text => ~"x", more => 1}, [], 5, null,
        #{by => ~"ann", text => binary:copy(~"x", 1001)}
    ]],
    Raw = fun(Text) ->
        post(Config, Path, Text, [{"Authorization", ["Bearer ", ?TOKEN]},
                                  {"Content-Type", "application/json"}])
    end,
    [{400, _} = Raw(Text) || Text <- [
        ~"", ~"{", ~"{}{}", <<"{\"by\":\"", 255, "\"}">>,
        iolist_to_binary([lists:duplicate(5000, $[), lists:duplicate(5000, $])])
    ]],
    {413, _} = Raw(["{\"by\":\"", binary:copy(~"x", 20_000), "\"}"]),
    [{400, _} = post(Config, "/api/v1/silences", Object) || Object <- [
        #{for_s => 60, by => ~"ann"}, #{alarm => ~"x", by => ~"ann"},
        #{alarm => ~"x", for_s => 0, by => ~"ann"}, #{alarm => ~"x", for_s => 1.0e9, by => ~"a"},
        #{alarm => ~"x", severity => ~"high", for_s => 60, by => ~"ann"}
    ]],
    [{400, _} = get(Config, ["/api/v1/alarms?", Query]) || Query <- [
        "state=new", "severity=x", "limit=0", "limit=x", "limit=99999999999", "wrong=1",
        "cursor=x", "cursor=WyJldmVudHMiLDVd"
    ]],
    {201, _} = post(Config, Path, #{by => ~"ann", text => ~"it lives"}).

read_only(Config) ->
    Id = proplists:get_value(id, Config),
    {403, #{~"type" := ~"/api/v1/problems/read-only", ~"detail" := Why}} =
        post(Config, ["/api/v1/alarms/", encoded(Id), "/acknowledge"], #{by => ~"ann"}),
    ?assertMatch({_, _}, binary:match(Why, ~"--write")),
    [{403, _} = post(Config, Path, Object) || {Path, Object} <- [
        {"/api/v1/silences", #{alarm => ~"x", for_s => 5, by => ~"ann"}},
        {"/api/v1/rules/reload", #{}}
    ]],
    {ok, Socket} = sderl_web_client:open(proplists:get_value(port, Config), ?TOKEN),
    #{~"ok" := false, ~"error" := #{~"code" := ~"forbidden"}} =
        sderl_web_client:ask(Socket, #{op => comment, id => Id, by => ~"ann", text => ~"x"}),
    #{~"ok" := true} = sderl_web_client:ask(Socket, #{op => silences}),
    sderl_web_client:close(Socket).

%% In a release whose alarms are stopped, everything else works.
without_alarms(Config) ->
    ok = supervisor:terminate_child(sderl_alarms_sup, sderl_alarms_server),
    {503, #{~"type" := ~"/api/v1/problems/unavailable"}} = get(Config, "/api/v1/alarms"),
    {200, _} = get(Config, "/api/v1/state"),
    {200, _, Metrics} = sderl_web_client:http(proplists:get_value(port, Config),
                                              ["/metrics?token=", ?TOKEN]),
    ?assertEqual(nomatch, binary:match(Metrics, ~"sderl_alarms{")),
    {ok, _} = supervisor:restart_child(sderl_alarms_sup, sderl_alarms_server),
    {200, _} = get(Config, "/api/v1/alarms").
