%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_SUITE).

%% The demo on real nodes, small and short.

-compile([export_all, nowarn_export_all]).

-include_lib("kernel/include/file.hrl").
-include_lib("stdlib/include/assert.hrl").

suite() ->
    [{timetrap, {minutes, 4}}].

all() ->
    [once_json, failing_node, attach, attach_not_private].

%% The command as a script runs it: structure and promises, no speeds.
once_json(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "demo.json"),
    Size = ["--nodes", "6", "--group-size", "3", "--seconds", "1", "--seed", "7"],
    ?assertEqual(ok, sderl_demo_command:run(Size ++ ["--once", "--json", File])),
    {ok, Json} = file:read_file(File),
    [Line] = binary:split(Json, <<"\n">>, [global, trim]),
    #{
        <<"experiment">> := <<"demo">>,
        <<"params">> := #{
            <<"nodes">> := 6, <<"group_size">> := 3, <<"seconds">> := 1, <<"seed">> := 7
        },
        <<"metrics">> := #{<<"stock">> := Stock, <<"sd">> := Sd},
        <<"machine">> := #{<<"cores">> := _, <<"memory_mib">> := _, <<"otp">> := _},
        <<"started">> := _
    } = json:decode(Line),
    lists:foreach(fun measured/1, [Stock, Sd]),
    ?assertMatch(#{<<"links_total">> := 15, <<"links_per_node_max">> := 5}, Stock),
    %% Two meshes of four that share a link, and a partner's link for each of the four
    %% nodes that are no gateways: 1 with 4, 2 with 5.
    ?assertMatch(#{<<"links_total">> := 13, <<"links_per_node_max">> := 5}, Sd),
    Promised = [<<"lost_calls">>, <<"missing_names">>, <<"leftover_names">>, <<"errors">>],
    ?assertEqual(#{Key => 0 || Key <- Promised}, maps:with(Promised, Sd)).

measured(Side) ->
    lists:foreach(
        fun(Key) -> ?assert(is_number(maps:get(Key, Side)) andalso maps:get(Key, Side) > 0) end,
        [
            <<"registrations_per_s">>,
            <<"lookups_per_s">>,
            <<"calls_per_s">>,
            <<"own_calls_per_s">>,
            <<"other_calls_per_s">>,
            <<"bytes">>,
            <<"packets">>,
            <<"kills">>
        ]
    ),
    lists:foreach(
        fun(Key) ->
            #{<<"p50">> := P50, <<"p99">> := P99} = maps:get(Key, Side),
            ?assert(P50 > 0 andalso P99 >= P50)
        end,
        [<<"register_us">>, <<"recovery_ms">>]
    ),
    ?assert(is_integer(maps:get(<<"lost_calls">>, Side))),
    ?assert(is_integer(maps:get(<<"missing_names">>, Side))).

%% A node that goes away in the middle ends the run with words about it.
failing_node(_) ->
    {ok, Layout} = sderl_demo_layout:new(4, 4),
    {ok, Fleet} = sderl_demo_cluster:start(stock, Layout, fun(_, _) -> ok end),
    ok = sderl_demo_cluster:link(stock, Fleet, Layout),
    [Node | _] = sderl_fleet:nodes(Fleet),
    Killing = fun
        (calls, Fun) ->
            ok = sderl_fleet:kill(Fleet, Node),
            Fun();
        (_, Fun) ->
            Fun()
    end,
    Settings = #{layout => Layout, seconds => 0.2, seed => 7},
    Result = sderl_demo_side:run(stock, Fleet, Settings, #{}, Killing),
    ok = sderl_fleet:stop(Fleet),
    ?assertEqual({error, {run, Node, {error, down}}}, Result).

attach(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "run"),
    with_run_dir(Folder, fun() ->
        {ok, Fleet} = sderl_fleet:start(#{families => [#{name => attach, count => 2}]}),
        {ok, [File | _] = Files} = sderl_demo_attach:write(Fleet),
        ?assertEqual(
            [filename:join(Folder, atom_to_list(Node)) || Node <- sderl_fleet:nodes(Fleet)], Files
        ),
        ?assertEqual([8#700, 8#600], [mode(Path) || Path <- [Folder, File]]),
        {ok, Text} = file:read_file(File),
        #{home := Home, epmd_port := Port, cookie := Cookie} = sderl_fleet:connection_info(Fleet),
        Expected = io_lib:format("cookie_file=~ts~nepmd_port=~w~n", [Home, Port]),
        ?assertEqual(unicode:characters_to_binary(Expected), Text),
        ?assertEqual(nomatch, string:find(Text, atom_to_binary(Cookie))),
        ok = sderl_demo_attach:remove(Files),
        ?assertEqual([], filelib:wildcard(filename:join(Folder, "*"))),
        ok = sderl_fleet:stop(Fleet)
    end).

attach_not_private(Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), "open"),
    ok = file:make_dir(Folder),
    ok = file:change_mode(Folder, 8#755),
    with_run_dir(Folder, fun() ->
        {ok, Fleet} = sderl_fleet:start(#{families => [#{name => attach, count => 1}]}),
        ?assertEqual({error, {not_private, Folder}}, sderl_demo_attach:write(Fleet)),
        ok = sderl_fleet:stop(Fleet)
    end).

with_run_dir(Folder, Fun) ->
    Before = os:getenv("SDERL_RUN_DIR"),
    true = os:putenv("SDERL_RUN_DIR", Folder),
    try
        Fun()
    after
        case Before of
            false -> os:unsetenv("SDERL_RUN_DIR");
            _ -> os:putenv("SDERL_RUN_DIR", Before)
        end
    end.

mode(Path) ->
    {ok, #file_info{mode = Mode}} = file:read_file_info(Path),
    Mode band 8#777.
