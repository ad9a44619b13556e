%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_alarms_SUITE).
-moduledoc """
An upgrade of real nodes that `bin/sderl mon` watches, and of which the new settings raise an
alarm.
""".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-import(sderl_ops_awaits, [free_port/0]).

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([held_up/1]).

-define(PATIENCE_MS, 180_000).
-define(TOKEN, "opsReadsAlarms1").

suite() -> [{timetrap, {minutes, 10}}].

all() -> [held_up].

init_per_suite(Config) ->
    case os:type() of
        {unix, linux} ->
            Folder = filename:join(os:getenv("TMPDIR", "/tmp"), "sderl-oa-" ++ os:getpid()),
            ok = filelib:ensure_path(Folder),
            [{folder, Folder}, {epmd, free_port()}, {port, free_port()} | Config];
        _ ->
            {skip, "processes are found in /proc"}
    end.

end_per_suite(Config) ->
    Folder = ?config(folder, Config),
    _ = [os:cmd("kill -9 " ++ binary_to_list(Pid))
         || Name <- ["service.pid", "monitor.pid"],
            {ok, Pid} <- [file:read_file(filename:join(Folder, Name))]],
    _ = [os:cmd("kill -9 " ++ Pid) || Pid <- sderl_ops_asks:processes_of(Folder)],
    ok = sderl_ops_awaits:end_epmd(integer_to_list(?config(epmd, Config))),
    _ = file:del_dir_r(Folder),
    ok.

held_up(Config) ->
    start_service(Config),
    #{~"state" := ~"steady"} = ask(apply, #{file => write(cluster(#{}, 60), Config)}, Config),
    Before = [sderl_ops_asks:beams(Id, folder(Config)) || Id <- [~"web1", ~"web2"]],
    unread(Config),
    ?assertEqual(Before, [sderl_ops_asks:beams(Id, folder(Config)) || Id <- [~"web1", ~"web2"]]),
    start_monitor(Config),
    goes_back(tl(Before), Config),
    acknowledged(Config).

%% The alarms are unknown, so nothing is replaced.
unread(Config) ->
    File = write(cluster(few(1), 60), Config),
    #{~"state" := ~"working"} = ask(apply, #{file => File, wait => false}, Config),
    await(fun() -> says(problems, ~"it cannot be connected to", Config) end),
    #{~"state" := ~"steady"} = ask(rollback, #{revision => 1}, Config).

%% The canary gets an alarm, and the other instance is not touched.
goes_back(Others, Config) ->
    File = write(cluster(few(1), 60), Config),
    #{~"state" := ~"failed", ~"problems" := [Problem | _]} = ask(apply, #{file => File}, Config),
    Why = ~"an alarm was raised that concerns web1: processes|web1@127.0.0.1",
    ?assertMatch({_, {_, _}}, {Problem, binary:match(Problem, Why)}),
    ?assertEqual(Others, [sderl_ops_asks:beams(~"web2", folder(Config))]),
    await(fun() -> [] =:= raised(Config) end).

%% Acknowledging the alarm lets the upgrade go on.
acknowledged(Config) ->
    #{upgrade := Upgrade} = Cluster = watched(cluster(few(2), 600), Config),
    File = sderl_ops_asks:write(Cluster#{upgrade := Upgrade#{canaries => 0}},
                                ?config(folder, Config)),
    #{~"state" := ~"working"} = ask(apply, #{file => File, wait => false}, Config),
    lists:foreach(fun(Id) ->
        await(fun() -> says(waiting, [Id, ": an alarm was raised since it was"], Config) end),
        ok = acknowledge(["processes|", Id, "@127.0.0.1"], Config)
    end, [~"web1", ~"web2"]),
    %% Both are replaced when the last of them is well.
    await(fun() ->
        lists:all(fun(Id) -> true =:= says(waiting, [Id, ": replaced, and looked at"], Config) end,
                  [~"web1", ~"web2"])
    end).

%% ---------------------------------------------------------------- the cluster

%% Virtual machines with so little room for processes that those of a node that does nothing take
%% more than the rule below allows.
few(Round) -> #{~"ERL_ZFLAGS" => ~"+P 1024", ~"ROUND" => integer_to_binary(Round)}.

cluster(Env, Seconds) ->
    Ebin = unicode:characters_to_binary(filename:dirname(code:which(s_group))),
    #{
        cluster => ~"shop",
        providers => #{here => #{type => local, hosts => 1}},
        releases => #{code => #{code => [Ebin], applications => [sderl],
                                start_timeout_s => Seconds}},
        domains => #{one => #{provider => here}},
        families => #{web => #{release => code, domains => [one], count => 2, env => Env}},
        groups => [#{name => shop, nodes => [~"web*"]}]
    }.

write(Cluster, Config) ->
    sderl_ops_asks:write(watched(Cluster, Config), ?config(folder, Config)).

%% Longer than it takes to raise an alarm.
watched(Cluster, Config) ->
    Token = filename:join(?config(folder, Config), "token"),
    ok = file:write_file(Token, ?TOKEN),
    ok = file:change_mode(Token, 8#600),
    Cluster#{upgrade => #{
        wait_s => 3600,
        alarms => #{url => url(Config), token => #{file => unicode:characters_to_binary(Token)}}
    }}.

%% ---------------------------------------------------------------- the service and the monitor

folder(Config) -> filename:join(?config(folder, Config), "s").

start_service(Config) ->
    Code = io_lib:format("_ = sderl_ops_service:run(~tp), halt().", [folder(Config)]),
    started("service.pid", sderl_ops_asks:start(Code, [], environment(Config)), Config),
    await(fun() -> sderl_ops_asks:is_reachable(folder(Config)) end).

%% Nodes that are down for a moment while they are replaced do not matter here.
start_monitor(Config) ->
    Rules = filename:join(?config(folder, Config), "rules.json"),
    ok = file:write_file(Rules, json:encode(#{rules => [
        #{alarm => node_down, off => true},
        #{alarm => processes, minor => null, major => 0.03, for_s => 1}
    ]})),
    Arguments = ["mon", "--seed", "web1@127.0.0.1", "--cookie-file",
                 filename:join(folder(Config), "cookie"), "--port",
                 integer_to_list(?config(port, Config)), "--token", ?TOKEN, "--alarms", Rules,
                 "--write", "--state", filename:join(?config(folder, Config), "mon")],
    Code = io_lib:format("sderl_cli:main(~tp).", [Arguments]),
    {Port, _} = Started = sderl_ops_asks:start(Code, [], environment(Config)),
    started("monitor.pid", Started, Config),
    await(fun() ->
        receive {Port, {data, Said}} -> ct:log("~ts", [Said]) after 0 -> ok end,
        receive {Port, {exit_status, Status}} -> error({ended, Status}) after 0 -> ok end,
        is_list(raised(Config))
    end).

environment(Config) -> [{"ERL_EPMD_PORT", integer_to_list(?config(epmd, Config))}].

started(Name, {_, Pid}, Config) ->
    ok = file:write_file(filename:join(?config(folder, Config), Name), integer_to_list(Pid)).

says(Key, Text, Config) ->
    Said = map_get(atom_to_binary(Key), ask(status, #{}, Config)),
    Wanted = iolist_to_binary(Text),
    lists:any(fun(Line) -> binary:match(Line, Wanted) =/= nomatch end, Said) orelse Said.

ask(Do, Keys, Config) -> sderl_ops_asks:ask(folder(Config), Do, Keys).

%% ---------------------------------------------------------------- its alarms

url(Config) -> iolist_to_binary(io_lib:format("http://127.0.0.1:~b", [?config(port, Config)])).

raised(Config) ->
    maybe
        {ok, {{_, 200, _}, _, Body}} ?= http(get, {address("?state=raised", Config), headers()}),
        #{~"alarms" := Alarms} = json:decode(Body),
        [Id || #{~"id" := <<"processes|", _/binary>> = Id} <- Alarms]
    end.

acknowledge(Id, Config) ->
    Address = address(["/", uri_string:quote(iolist_to_binary(Id)), "/acknowledge"], Config),
    {ok, {{_, 200, _}, _, _}} = http(post, {Address, headers(), "application/json", ~"{}"}),
    ok.

address(Path, Config) -> unicode:characters_to_list([url(Config), "/api/v1/alarms", Path]).

headers() -> [{"authorization", "Bearer " ++ ?TOKEN}].

http(Method, Request) ->
    {ok, _} = application:ensure_all_started(inets),
    httpc:request(Method, Request, [{timeout, 60_000}], [{body_format, binary}]).

await(Fun) -> sderl_ops_awaits:await(Fun, ?PATIENCE_MS).
