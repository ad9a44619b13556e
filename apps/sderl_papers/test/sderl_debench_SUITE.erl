%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_SUITE).
-moduledoc """
Runs DE-Bench for a second on a few real nodes. Checks that everything is counted and nothing is
left, but not how fast it is.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([stock/1, pg/1, sd/1, any/1, closed/1, interrupted/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [stock, pg, sd, any, closed, interrupted].

stock(_) -> complete(2, run(#{mode => stock, nodes => 3})).

pg(_) -> complete(2, run(#{mode => pg, nodes => 3})).

%% Two groups of two nodes. A second run with the same seed makes the same operations.
sd(_) ->
    Params = #{mode => sd, nodes => 4, group_size => 2},
    Metrics = run(Params),
    complete(1, Metrics),
    ?assertEqual(made(Metrics), made(run(Params))).

%% Operations on nodes of the other group make links to these. There are no operations on nodes of
%% the other cluster, and so no links.
any(_) ->
    Metrics = run(#{mode => sd, nodes => 4, group_size => 2, clusters => 2, p2p => any}),
    complete(3, Metrics),
    ?assertMatch(#{links_total := 12}, Metrics).

closed(_) ->
    Metrics = run(#{mode => stock, nodes => 2, clusters => 2, load => {closed, 2},
                    payload => 5000}),
    complete(1, Metrics).

run(Params) ->
    {ok, Metrics} = sderl_debench:run(
        maps:merge(
            #{
                global_pct => 20,
                weights => #{Unit => 1 || Unit <- [local | sderl_debench_mix:p2p()]},
                load => {open, 100},
                seconds => 1,
                warmup_s => 0.3,
                timeout_ms => 60_000
            },
            Params
        ),
        "test"
    ),
    ct:log("~tp", [Metrics]),
    Metrics.

complete(Links, #{kinds := Kinds, timeline := Timeline} = Metrics) ->
    ?assertMatch(
        #{errors := 0, error_reasons := [], names_left := 0, links_per_node_max := Links,
          completed_pct := 100.0},
        Metrics
    ),
    ?assertEqual(lists:sort(sderl_debench_mix:kinds()), lists:sort(maps:keys(Kinds))),
    [
        begin
            #{ops := Ops, latency_us := #{p50 := P50, p95 := P95, p99 := P99}} = Kind,
            ?assert(Ops > 0),
            ?assert(P50 > 0 andalso P50 =< P95 andalso P95 =< P99)
        end
     || _ := Kind <- Kinds
    ],
    Registered = #{maps:get(ops, maps:get(K, Kinds)) => K
                   || K <- [global_register, global_whereis, global_unregister]},
    ?assertEqual(1, map_size(Registered)),
    ?assertMatch([#{t_s := 0, p2p := #{ops := _}, global := #{ops := _}, local := #{ops := _}}],
                 Timeline),
    [?assert(maps:get(Key, Metrics) > 0, Key)
     || Key <- [ops_per_s, offered_per_s, cpu_pct, cpu_us_per_op, messages_per_op, bytes_per_op]].

made(#{kinds := Kinds}) -> #{Kind => Ops || Kind := #{ops := Ops} <- Kinds}.

%% The command is ended by a signal in the middle of a series: the results so far are kept, and no
%% node or file is left.
interrupted(Config) ->
    case filelib:is_dir("/proc/self") of
        true -> interrupted_there(proplists:get_value(priv_dir, Config));
        false -> {skip, "needs /proc"}
    end.

interrupted_there(Dir) ->
    Tmp = filename:join(Dir, "tmp"),
    Json = filename:join(Dir, "results.json"),
    ok = file:make_dir(Tmp),
    Port = open_port({spawn_executable, sderl_cli_program:file()}, [
        {args, ["bench", "debench", "--nodes", "2", "--seconds", "1", "--warmup", "0", "--repeat",
                "1000", "--json", Json]},
        {env, [{"TMPDIR", Tmp}]}, exit_status, binary, use_stdio, stderr_to_stdout
    ]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    %% Waits for the second run.
    ok = sderl_fleet:await(fun() -> filelib:file_size(Json) > 0 andalso marked(Tmp) =/= [] end,
                           120_000),
    "" = os:cmd(io_lib:format("kill -TERM ~w", [OsPid])),
    Status = receive {Port, {exit_status, S}} -> S end,
    ?assertEqual(143, Status),
    ok = sderl_fleet:await(fun() ->
        marked(Tmp) =:= [] andalso filelib:wildcard(filename:join(Tmp, "sderl-fleet-*")) =:= []
    end, 60_000),
    {ok, Text} = file:read_file(Json),
    [?assertMatch(#{<<"experiment">> := <<"debench">>, <<"metrics">> := #{<<"errors">> := 0}},
                  json:decode(Line))
     || Line <- binary:split(Text, <<"\n">>, [global, trim])].

%% Processes of fleets whose files are in this directory.
marked(Tmp) ->
    Mark = list_to_binary("SDERL_FLEET_HOME=" ++ Tmp),
    [File
     || File <- filelib:wildcard("/proc/[0-9]*/environ"), {ok, Data} <- [file:read_file(File)],
        binary:match(Data, Mark) =/= nomatch].
