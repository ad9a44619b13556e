%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_SUITE).
-moduledoc """
Short benchmarks on one to four real nodes. The suite checks that they run and which metrics they
give, never how large the values are.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([claim/1]).
-export([
    registry_yardstick/1,
    registry_global/1,
    registry_pg/1,
    registry_s_group/1,
    registry_peers/1,
    names_held/1,
    in_turn/1,
    yardstick_is_unique/1,
    failures_are_counted/1,
    join/1,
    very_many_names/1
]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [
        registry_yardstick,
        registry_global,
        registry_pg,
        registry_s_group,
        registry_peers,
        names_held,
        yardstick_is_unique,
        failures_are_counted,
        join,
        very_many_names
    ] ++ sderl_ct:in_long_runs([in_turn]).

registry_yardstick(_Config) ->
    %% Two groups of two nodes: each node has one link.
    check(measure(sderl_bench_impl_yardstick, 4, 2), 1).

registry_global(_Config) ->
    check(measure(sderl_bench_impl_global, 3, 3), 2).

registry_pg(_Config) ->
    check(measure(sderl_bench_impl_pg, 3, 3), 2).

registry_s_group(_Config) ->
    check(measure(sderl_bench_impl_s_group, 4, 2), 1).

%% Registries of other projects, as far as toolchain/peers has made them on this machine.
registry_peers(Config) ->
    Program = filename:join([code:lib_dir(sderl_bench), "src", "../../../toolchain/peers"]),
    case string:lexemes(os:cmd(Program), " \n") of
        ["--peer" | _] = Given ->
            Names = [hd(string:split(Value, "=")) || Value <- Given, Value =/= "--peer"],
            File = filename:join(proplists:get_value(priv_dir, Config), "peers.json"),
            Impls = lists:flatten(lists:join(",", Names)),
            Args = ["bench", "registry", "--impl", Impls, "--nodes", "4", "--group-size", "2",
                    "--clients", "2", "--seconds", "1", "--json", File],
            ?assertMatch({0, stdout, _}, sderl_cli:run(Args ++ Given));
        _ ->
            {skip, "toolchain/peers has made none"}
    end.

measure(Impl, Nodes, Size) ->
    Params = #{nodes => Nodes, group_size => Size, clients => 2, seconds => 1, names => 0},
    {ok, Metrics} = sderl_bench_registry:run(Impl, Params, "test"),
    Metrics.

check(Metrics, Links) ->
    ct:log("~tp", [Metrics]),
    #{
        pairs_per_s := Pairs,
        register_us := #{p50 := R50, p99 := R99},
        unregister_us := #{p50 := U50, p99 := U99},
        lookup_ns := LookupNs,
        cpu_us_per_pair := CpuUs
    } = Metrics,
    ?assertMatch(#{errors := 0, error_reasons := [], converged := true,
                   links_per_node_max := Links}, Metrics),
    ?assert(Pairs > 0),
    ?assert(R50 > 0 andalso R50 =< R99),
    ?assert(U50 > 0 andalso U50 =< U99),
    ?assert(LookupNs >= 0),
    ?assert(CpuUs > 0).

names_held(_Config) ->
    Params = #{nodes => 2, group_size => 2, clients => 1, seconds => 1, names => 501},
    {ok, Metrics} = sderl_bench_registry:run(sderl_bench_impl_yardstick, Params, "test"),
    check(Metrics, 1).

%% The command line: the implementations take turns, and each run is a line of JSON.
in_turn(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "results.json"),
    Args = ["bench", "registry", "--impl", "yardstick,pg", "--nodes", "2", "--clients", "1",
            "--seconds", "1", "--repeat", "2", "--json", File],
    ?assertMatch({0, stdout, _}, sderl_cli:run(Args)),
    {ok, Text} = file:read_file(File),
    Results = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim])],
    ?assertEqual(
        [{<<"yardstick">>, 1}, {<<"pg">>, 1}, {<<"yardstick">>, 2}, {<<"pg">>, 2}],
        [{Impl, Run} || #{<<"params">> := #{<<"impl">> := Impl, <<"run">> := Run}} <- Results]
    ),
    [
        ?assertMatch(
            #{
                <<"experiment">> := <<"registry">>,
                <<"metrics">> := #{<<"converged">> := true, <<"pairs_per_s">> := _},
                <<"machine">> := #{<<"cores">> := _}
            },
            Result
        )
     || Result <- Results
    ].

%% All nodes claim the same names at the same time. Each name has one winner, the same on all nodes.
yardstick_is_unique(_Config) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => n, count => 3}]}),
    Nodes = sderl_fleet:nodes(Fleet),
    ok = sderl_bench_impl_yardstick:prepare(Fleet, [{g1, Nodes}], #{}),
    Claims = sderl_fleet:multicall(Fleet, Nodes, ?MODULE, claim, [lists:seq(1, 200)], 60_000),
    Won = lists:append([Names || {_, {ok, Names}} <- Claims]),
    ?assertEqual(lists:seq(1, 200), lists:sort(Won)),
    Contents = sderl_fleet:multicall(
        Fleet, Nodes, sderl_bench_registry_worker, content, [sderl_bench_impl_yardstick, g1], 30_000
    ),
    ?assertMatch([{ok, {200, _}}], lists:usort([Content || {_, Content} <- Contents])),
    ok = sderl_fleet:stop(Fleet).

-doc "Runs on a node: the names that a process of this node won.".
claim(Names) ->
    [Name || Name <- Names, yes =:= sderl_bench_yardstick:register(Name, self())].

%% A registry that fails must not look fast. Here pg fails, because the node has no scope for it.
failures_are_counted(_Config) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => n, count => 1}]}),
    [Node] = sderl_fleet:nodes(Fleet),
    Load = #{
        impl => sderl_bench_impl_pg,
        group => all,
        index => 1,
        clients => 2,
        begin_us => os:system_time(microsecond),
        warmup_ms => 0,
        measure_ms => 2000
    },
    ?assertMatch({error, {late, _}},
                 sderl_fleet:call(Fleet, Node, sderl_bench_registry_worker, load, [Load], 60_000)),
    %% On a busy machine the call may reach the node after the time at which its clients begin.
    InTime = fun InTime(Us) ->
        Later = Load#{begin_us := os:system_time(microsecond) + Us},
        case sderl_fleet:call(Fleet, Node, sderl_bench_registry_worker, load, [Later], 60_000) of
            {error, {late, _}} -> InTime(2 * Us);
            {ok, Counted} -> Counted
        end
    end,
    Tally = InTime(1_000_000),
    ct:log("~tp", [Tally]),
    %% Each of the two clients gave up after 100 failures in a row.
    ?assertMatch(#{pairs := 0, errors := 200, reasons := [{register, {exit, {noproc, _}}} | _]},
                 Tally),
    ok = sderl_fleet:stop(Fleet).

join(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "join.json"),
    Args = ["bench", "join", "--names", "2000", "--group-size", "2", "--seconds", "1", "--json",
            File],
    ?assertMatch({0, stdout, _}, sderl_cli:run(Args)),
    {ok, Text} = file:read_file(File),
    #{<<"experiment">> := <<"join">>, <<"metrics">> := Metrics} = json:decode(Text),
    ct:log("~tp", [Metrics]),
    #{
        <<"join_ms">> := JoinMs,
        <<"register_us_before">> := #{<<"p50">> := _, <<"p99">> := _},
        <<"bytes_per_name">> := Bytes,
        <<"table_words_per_name">> := Words
    } = Metrics,
    ?assertMatch(#{<<"converged">> := true, <<"errors">> := 0}, Metrics),
    ?assert(JoinMs > 0),
    ?assert(Bytes > 0),
    ?assert(Words > 0).

very_many_names(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "names.json"),
    Args = ["bench", "names", "--names", "2000", "--nodes", "2", "--json", File],
    ?assertMatch({0, stdout, _}, sderl_cli:run(Args)),
    {ok, Text} = file:read_file(File),
    #{<<"experiment">> := <<"names">>, <<"metrics">> := Metrics} = json:decode(Text),
    ct:log("~tp", [Metrics]),
    ?assertMatch(
        #{
            <<"process_killed">> := #{<<"complete">> := true, <<"all_write_ms">> := _},
            <<"node_killed">> := #{<<"complete">> := true, <<"first_write_ms">> := _},
            <<"bytes_per_name_max">> := _,
            <<"join_ms">> := _
        },
        Metrics
    ).
