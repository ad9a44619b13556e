%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_harness_tests).

-include_lib("stdlib/include/assert.hrl").
-include_lib("eunit/include/eunit.hrl").


%% ---------------------------------------------------------------- meter

snapshot(Cpu, Sent) -> snapshot(0, Cpu, Sent).

snapshot(AtS, Cpu, Sent) ->
    #{at_us => 1_000_000 * AtS, cpu_ms => Cpu, memory_kib => 2048, memory_peak_kib => 4096,
      sent => Sent}.

%% For a connection that was there before, the traffic since then counts; for a new connection, also
%% one that replaced another, all its traffic; for one that is gone, nothing.
usage_test() ->
    Before = [{a, snapshot(100, #{b => {p1, 1000, 10, 5}, c => {p2, 500, 5, 5}})},
              {b, snapshot(50, #{a => {q, 0, 0, 0}})}, {x, snapshot(0, #{})}],
    After = [{a, snapshot(1, 300,
                          #{b => {p1, 4000, 20, 8}, c => {p3, 700, 7, 7}, d => {p4, 10, 1, 1}})},
             {b, snapshot(3, 150, #{a => {q, 100, 2, 3}})}, {y, snapshot(9, #{})}],
    Usage = sderl_bench_meter:usage(Before, After),
    ?assertMatch(#{
        seconds := 2.0, total := #{cpu_ms := 300, bytes := 3810, messages := 20, packets := 14,
                                   memory_mib_mean := 2.0, memory_mib_max := 4.0},
        links_total := 2, links_per_node_max := 3, links_per_node_mean := 2.0,
        per_node := [#{node := a, links := 3, cpu_ms := 200, bytes := 3710},
                     #{node := b, links := 1, cpu_ms := 100, bytes := 100}]
    }, Usage),
    ?assertEqual([x, y], sderl_bench_meter:missing([x, a, y, b], Usage)),
    #{cores := Cores} = sderl_bench_machine:info(),
    Metrics = sderl_bench_meter:metrics(Usage, 10),
    ?assertMatch(#{cpu_us_per_op := 30_000.0, bytes_per_op := 381.0, messages_per_op := 2.0,
                   packets_per_op := 1.4, links_per_node_max := 3, nodes_metered := 2}, Metrics),
    ?assert(abs(maps:get(cpu_pct, Metrics) - 15.0 / Cores) < 1.0e-6),
    %% Without operations there are no values for each operation.
    ?assertMatch(#{cpu_us_per_op := undefined, bytes_per_op := undefined, bytes := 3810},
                 sderl_bench_meter:metrics(Usage, 0)).

%% The number of packets is unknown if that of any link is unknown.
unknown_packets_test() ->
    Usage = sderl_bench_meter:usage([{a, snapshot(0, #{})}], [
        {a, snapshot(0, #{b => {p, 1, 1, undefined}, c => {q, 1, 1, 1}})}
    ]),
    ?assertMatch(#{packets := undefined, packets_per_op := undefined, messages_per_op := 2.0},
                 sderl_bench_meter:metrics(Usage, 1)).

nobody_test() ->
    ?assertMatch(#{links_per_node_max := 0, per_node := []},
                 sderl_bench_meter:metrics(sderl_bench_meter:usage([], []), 0)).

%% The traffic of a real link is counted: bytes and messages, and packets where the system reports
%% them.
around_test_() ->
    {timeout, 60, fun() ->
        {ok, Fleet} = sderl_fleet:start(#{families => [#{name => m, count => 2}]}),
        try
            [A, B] = Nodes = sderl_fleet:nodes(Fleet),
            true = sderl_fleet:call(Fleet, A, net_kernel, connect_node, [B]),
            {Result, Usage} = sderl_bench_meter:around(Fleet, Nodes, fun() ->
                sderl_fleet:call(Fleet, A, erpc, call,
                                 [B, erlang, byte_size, [binary:copy(<<0>>, 1_000_000)]])
            end),
            ?assertEqual(1_000_000, Result),
            #{total := #{bytes := Bytes, messages := Messages, packets := Packets},
              per_node := [#{node := A, bytes := Sent}, #{node := B}]} = Usage,
            ?assert(Bytes > 1_000_000 andalso Sent > 1_000_000 andalso Messages >= 2),
            %% A segment on the loopback has at most 64 KiB.
            ?assert(Packets =:= undefined orelse (Packets >= 16 andalso Packets < 10_000)),
            ?assertMatch(#{links_per_node_max := 1, links_total := 1}, Usage),
            %% A node that does not answer is left out.
            ok = sderl_fleet:kill(Fleet, B),
            ?assertMatch({ok, #{per_node := [#{node := A}]}},
                         sderl_bench_meter:around(Fleet, Nodes, fun() -> ok end))
        after
            sderl_fleet:stop(Fleet)
        end
    end}.

%% ---------------------------------------------------------------- watch

%% Nodes with and without the library are monitored while the function runs. However it ends,
%% nothing of the monitoring is left on the nodes.
watch_test_() ->
    {timeout, 120, fun() ->
        {ok, Fleet} =
            sderl_fleet:start(#{families => [#{name => sd, count => 1, apps => [sderl]},
                                             #{name => plain, count => 1, connect_all => true}]}),
        try
            [Sd, _] = Nodes = sderl_fleet:nodes(Fleet),
            Watched = fun() ->
                [N
                 || N <- Nodes,
                    is_pid(sderl_fleet:call(Fleet, N, erlang, whereis, [sderl_mon_probe]))]
            end,
            {made, Seen} = sderl_bench_watch:around(Fleet, Nodes, on, fun() ->
                ?assertEqual(Nodes, Watched()),
                {ok, g, [Sd]} = sderl_fleet:call(Fleet, Sd, s_group, new_s_group, [g, [Sd]]),
                [Monitor] = sderl_fleet:nodes(Fleet) -- Nodes,
                ok = sderl_fleet:await(fun() ->
                    is_map_key(~"g", map_get(
                        groups, sderl_fleet:call(Fleet, Monitor, sderl_mon_hub, now_topology, [])
                    ))
                end, 60_000),
                made
            end),
            ?assertMatch(#{answers := A, silent := _, overhead_pct := _} when is_integer(A), Seen),
            ?assertEqual({[], Nodes}, {Watched(), sderl_fleet:nodes(Fleet)}),
            ?assertError(wrong,
                         sderl_bench_watch:around(Fleet, Nodes, on, fun() -> error(wrong) end)),
            ?assertEqual([], Watched()),
            ?assertEqual({made, off},
                         sderl_bench_watch:around(Fleet, Nodes, off, fun() -> made end))
        after
            sderl_fleet:stop(Fleet)
        end
    end}.

%% ---------------------------------------------------------------- pace

times(N, Pace) ->
    {Times, _} = lists:mapfoldl(fun(_, P) -> sderl_bench_pace:next(P) end, Pace, lists:seq(1, N)),
    Times.

%% The times are in order and have the wanted rate, and the same seed gives the same times.
pace_test() ->
    lists:foreach(fun({Kind, Rate}) ->
        New = fun(Seed) -> sderl_bench_pace:new(#{rate => Rate, seed => Seed, kind => Kind}) end,
        Times = times(10_000, New({1, a})),
        ?assertEqual(Times, lists:sort(Times)),
        ?assertEqual(Times, times(10_000, New({1, a}))),
        ?assertNotEqual(Times, times(10_000, New({2, a}))),
        %% Four standard deviations of the sum of 10,000 exponential gaps are 4 % of it.
        Mean = lists:last(Times) / 10_000 * Rate / 1.0e9,
        ?assert(abs(Mean - 1) < 0.04)
    end, [{poisson, 1000}, {poisson, 0.5}, {even, 1000}, {even, 0.25}]).

even_test() ->
    Times = times(100, sderl_bench_pace:new(#{rate => 10, seed => x, kind => even})),
    ?assert(hd(Times) =< 100_000_000),
    ?assert(lists:all(fun({A, B}) -> abs(B - A - 100_000_000) =< 1 end,
                      lists:zip(lists:droplast(Times), tl(Times)))).

%% ---------------------------------------------------------------- series

options_test() ->
    Command = #{arguments => sderl_bench_series:options(#{nodes => "10", repeat => 3})},
    Checked = fun(Args) ->
        {ok, Parsed} = sderl_command:parse(Args, ["bench", "x"], Command),
        case sderl_bench_series:check(Parsed) of
            {ok, Options} -> Options;
            {error, Text} -> unicode:characters_to_list(Text)
        end
    end,
    ?assertEqual(#{nodes => [10], repeat => 3, compare => false}, Checked([])),
    ?assertEqual(#{nodes => [4, 2], repeat => 1, compare => true},
                 Checked(["--nodes", "4, 2,4", "--repeat", "1", "--compare"])),
    ?assertEqual("--nodes: \"0\" is no whole number from 1 to 1000000", Checked(["--nodes", "0"])),
    ?assertEqual("--nodes: \"\" is no whole number from 1 to 1000000",
                 Checked(["--nodes", "1,,2"])),
    ?assertEqual("--repeat must be at least 1, not 0", Checked(["--repeat", "0"])),
    ?assertMatch("--nodes 1000000: the nodes need " ++ _, Checked(["--nodes", "2,1000000"])).

%% The points are measured in turns, and each result is written at once. An error ends the series,
%% and the results before it are kept.
run_test() ->
    File = filename:join(sderl_bench_tmp(), "series.json"),
    {ok, Output} = sderl_bench_output:open(File),
    Points = [#{mode => M, nodes => N} || N <- [1, 2], M <- [a, b]],
    Self = self(),
    Fun = fun(#{mode := M, nodes := N} = P, Label) ->
        Self ! {ran, unicode:characters_to_list(Label)},
        case {M, N, erase(broken)} of
            {_, _, true} -> {error, {no_program, "x"}};
            _ -> {ok, #{n => N, inner => #{m => 2 * N}, nodes => [P], none => undefined}}
        end
    end,
    Show = fun(Seen) -> Self ! {shown, length(Seen)}, ok end,
    {ok, Runs} = sderl_bench_series:run(test, Points, 2, Fun, Show, Output),
    receive {shown, 8} -> ok end,
    ?assertEqual(["1/8 a, 1 node", "2/8 b, 1 node", "3/8 a, 2 nodes"],
                 [receive {ran, L} -> L end || _ <- [1, 2, 3]]),
    ?assertEqual([1, 1, 1, 1, 2, 2, 2, 2], [maps:get(run, P) || #{params := P} <- Runs]),
    ?assertEqual([{P, #{n => {N, N, N}, inner => #{m => {2 * N, 2 * N, 2 * N}}}}
                  || #{nodes := N} = P <- Points],
                 [{P, maps:map(fun(_, V) -> whole(V) end, M)}
                  || {P, M} <- sderl_bench_series:medians(Runs)]),
    put(broken, true),
    {error, Text} = sderl_bench_series:run(test, [#{mode => a, nodes => 3}], 1, Fun, Show, Output),
    ?assertEqual("a, 3 nodes: the program x is not on the PATH", unicode:characters_to_list(Text)),
    Break = fun(#{mode := b} = P, L) -> put(broken, true), Fun(P, L); (P, L) -> Fun(P, L) end,
    {error, Late} = sderl_bench_series:run(test, Points, 1, Break, Show, Output),
    ?assertEqual("2/4 b, 1 node: the program x is not on the PATH",
                 unicode:characters_to_list(Late)),
    %% The series that failed at its first point has shown nothing.
    receive {shown, 1} -> ok end,
    ok = sderl_bench_output:close(Output),
    {ok, Json} = file:read_file(File),
    Lines = [json:decode(L) || L <- binary:split(Json, <<"\n">>, [global, trim_all])],
    ?assertEqual(9, length(Lines)),
    ?assertMatch(#{<<"experiment">> := <<"test">>, <<"params">> := #{<<"run">> := 1},
                   <<"metrics">> := #{<<"none">> := null}}, hd(Lines)),
    ok = file:delete(File).

whole(Map) when is_map(Map) -> maps:map(fun(_, V) -> whole(V) end, Map);
whole({M, L, G}) -> {round(M), L, G}.

sderl_bench_tmp() ->
    Dir = filename:join([os:getenv("TMPDIR", "/tmp"), "sderl_bench_harness_" ++ os:getpid()]),
    ok = filelib:ensure_path(Dir),
    Dir.

medians_test() ->
    Run = fun(N, V) ->
        #{params => #{nodes => 1, run => N}, metrics => #{v => V, x => undefined}}
    end,
    ?assertEqual([{#{nodes => 1}, #{v => {2, 1, 5}}}],
                 sderl_bench_series:medians([Run(1, 5), Run(2, 1), Run(3, 2)])).
