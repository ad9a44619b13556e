%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_operations_tests).

%% The options, the table and the verdict of bin/sderl bench operations, and its client against a
%% server that answers late.

-include_lib("eunit/include/eunit.hrl").

-define(E, sderl_bench_operations_experiment).

check_test_() ->
    [
        ?_assertMatch({ok, #{nodes := 200, groups := 20, rate := 500, connections := 16,
                             seconds := 20, repeat := 1, days := 7, live := 20,
                             what := [rest, alarms, disk, overhead]}},
                      sderl_bench_options:checked("operations", ?E, [])),
        ?_assertEqual("--rate must be at least 1, not 0", refused("--rate", 0)),
        ?_assertEqual("--nodes must be at most 2000, not 2001", refused("--nodes", 2001)),
        ?_assertEqual("--days must be at most 365, not 366", refused("--days", 366))
    ].

refused(Option, Value) ->
    {error, Text} = sderl_bench_options:checked("operations", ?E,
                                                [Option, integer_to_list(Value)]),
    lists:flatten(Text).

metrics() ->
    #{rest_p50_ms => 1.5, rest_p99_ms => 12.0, rest_most_ms => 40.0, rest_per_s => 500.0,
      rest_failed => 0, server_cpu_pct => 60.0}.

table_test() ->
    Table = unicode:characters_to_list(?E:table(fun sderl_table:markdown/2, [metrics()])),
    ?assertMatch({match, _}, re:run(Table, "p99 \\| 12")).

verdict_test() ->
    ?assertEqual(ok, ?E:verdict([metrics()])),
    ?assertMatch({error, _}, ?E:verdict([(metrics())#{rest_p99_ms := 50.0}])),
    ?assertMatch({error, _}, ?E:verdict([(metrics())#{rest_failed := 1}])).

alarms_verdict_test() ->
    Well = #{alarms_lost => 0, alarms_doubled => 0, order_broken => 0,
             alarm_ms => #{median => 900, max => 2_000}},
    ?assertEqual(ok, sderl_bench_alarms:verdict(Well)),
    ?assertMatch([{error, _}, {error, _}, {error, _}, {error, _}],
                 [sderl_bench_alarms:verdict(maps:merge(Well, Bad))
                  || Bad <- [#{alarms_lost => 1}, #{alarms_doubled => 1}, #{order_broken => 1},
                             #{alarm_ms => #{median => 1, max => 2_001}}]]).

overhead_verdict_test() ->
    ?assertEqual(ok, ?E:overhead_verdict([#{overhead_pct => 0.5}])),
    ?assertMatch([{error, _}, {error, _}],
                 [?E:overhead_verdict([#{overhead_pct => 0.1}, #{overhead_pct => Bad}])
                  || Bad <- [0.51, undefined]]).

percentile_test_() ->
    Values = lists:seq(100, 1, -1),
    [?_assertEqual(Percent, sderl_bench_rest:percentile(Percent, Values))
     || Percent <- [1, 50, 99, 100]] ++
        [?_assertEqual(7, sderl_bench_rest:percentile(99, [7]))].

%% The latency of a request includes its waiting for the requests before it. A request that is not
%% answered with 200 has failed.
late_test_() ->
    {timeout, 120, fun() ->
        {ok, Listener} = gen_tcp:listen(0, [binary, {active, false}, {packet, http_bin},
                                            {ip, {127, 0, 0, 1}}]),
        {ok, Port} = inet:port(Listener),
        Server = spawn_link(fun() -> serve(Listener) end),
        #{us := Us, failed := Failed} = sderl_bench_rest:run(
            #{port => Port, token => ~"t", paths => [~"/slow", ~"/ok", ~"/ok", ~"/bad"]},
            #{rate => 40, seconds => 1, connections => 1}
        ),
        ?assertEqual({30, 10}, {length(Us), Failed}),
        %% Ten requests take 100 ms each. The two that are due 25 and 50 ms after each of them wait
        %% for its answer.
        ?assertEqual([], [Each || Each <- Us, Each < 49_000]),
        unlink(Server),
        exit(Server, kill),
        gen_tcp:close(Listener)
    end}.

serve(Listener) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    requests(Socket),
    serve(Listener).

requests(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, {http_request, _, {abs_path, <<"/api/v1", Path/binary>>}, _}} ->
            ok = rest(Socket),
            ok = gen_tcp:send(Socket, case Path of
                ~"/slow" -> receive after 100 -> answer(200) end;
                ~"/ok" -> answer(200);
                ~"/bad" -> answer(503)
            end),
            requests(Socket);
        {error, closed} -> ok
    end.

rest(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, http_eoh} -> ok;
        {ok, _} -> rest(Socket)
    end.

answer(Status) -> ["HTTP/1.1 ", integer_to_list(Status), " X\r\nContent-Length: 2\r\n\r\n{}"].
