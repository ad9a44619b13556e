%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_tests).
-moduledoc "The programs of the VM laboratory: what they give, and that they give it every time.".

-include_lib("eunit/include/eunit.hrl").

run(Module, Settings) ->
    {ok, #{hash := Hash, text := Text}} =
        sderl_bench_vm_loop:run({program, Module, Settings}, 2),
    {Hash, binary_to_list(Text)}.

%% Settings of small sizes for one core, and the output that they must give.
outputs_test_() ->
    [
        {atom_to_list(Module), {timeout, 120, ?_assertEqual(
            lists:flatten(io_lib:format("~0p", [Output])), element(2, run(Module, Settings)))}}
     || {Module, Settings, Output} <- [
            {sderl_vm_bang, #{senders => 3, messages => 5}, 15},
            {sderl_vm_big, #{processes => 7}, 42},
            {sderl_vm_ehb, #{groups => 2, loops => 3}, 2 * 20 * 20 * 3},
            {sderl_vm_clocks, #{processes => 3, times => 5}, 4 * 3 * 5},
            {sderl_vm_parallel, #{processes => 3, times => 10, clock => now}, 30},
            {sderl_vm_serialmsg, #{pairs => 3, messages => 4, elements => 5}, 60},
            {sderl_vm_timer_wheel, #{processes => 6}, [30, 30]},
            %% 2 * (1 + 2 + 3) once for each kind of call and client.
            {sderl_vm_genstress, #{clients => 2, queued => 5, calls => 3}, [12, 12]},
            %% Keys and their squares, 1 to 4.
            {sderl_vm_ets_test, #{writers => 2, readers => 3, keys => 4}, {20, 40}},
            {sderl_vm_ets_random_ops, #{workers => 2, keys => 10, operations => 100}, 400},
            %% 3 workers see 2 tables of 4 rows, and update each once.
            {sderl_vm_pcmark, #{tables => 2, workers => 3, rows => 4}, {24, 6}},
            %% 2 kinds of table with 2 sets of options, each with 2 * 10 changes and 3 * 20 others.
            {sderl_vm_ets_bench, #{workers => 2, keys => 9, changes => 10, mixed => 20}, 320},
            {sderl_vm_quorum_ring, #{nodes => 8, clients => 3, reads => 0}, 0},
            {sderl_vm_dialyzer_bench, #{modules => 1}, {1, 1}},
            {sderl_vm_dialyzer_bench, #{modules => 2}, {1, 1}},
            {sderl_vm_im_bench, #{clients => 5, messages => 7}, {14, 14}},
            %% One pixel, 0.5 + 1.25 i: the next value, -0.81 + 2.5 i, is outside.
            {sderl_vm_mbrot, #{processes => 3, pixels => 1}, [2]}
        ]
    ].

%% The shortest solution of the well-known puzzle for N pieces has N * (N + 2) moves.
moves_test_() ->
    [
        {lists:concat([N, " pieces"]), {timeout, 120, fun() ->
            {_, Text} = run(sderl_vm_moves, #{workers => Workers, pieces => N}),
            ?assertMatch({0, _}, {string:str(Text, lists:concat(["{", N * (N + 2), ","])) - 1,
                                  Text})
        end}}
     || {N, Workers} <- [{1, 3}, {2, 1}, {3, 2}, {5, 4}]
    ].

%% The output is the same however many levels the workers split.
moves_alike_test_() ->
    {timeout, 120, ?_assertEqual(run(sderl_vm_moves, #{workers => 1, pieces => 4}),
                                 run(sderl_vm_moves, #{workers => 7, pieces => 4}))}.

%% The result of the city depends neither on its managers nor on the order in which processes run.
city_test_() ->
    {timeout, 120, fun() ->
        Of = fun(Managers) ->
            run(sderl_vm_city, #{managers => Managers, side => 4, steps => 9, vehicles => 3})
        end,
        Alone = Of(1),
        [?assertEqual({Managers, Alone}, {Managers, Of(Managers)}) || Managers <- [2, 5, 16, 20]],
        %% With 3 vehicles at each crossing all pass in the first step; of 50 at a crossing 6 pass
        %% in each step.
        {_, Text} = run(sderl_vm_city, #{managers => 2, side => 2, steps => 1, vehicles => 3}),
        ?assertMatch({0, _}, {string:str(Text, "{12,") - 1, Text}),
        {_, Many} = run(sderl_vm_city, #{managers => 2, side => 2, steps => 2, vehicles => 50}),
        ?assertMatch({0, _}, {string:str(Many, "{48,") - 1, Many})
    end}.

%% A key is its own value: each client reads what it drew, on any ring.
quorum_ring_test_() ->
    {timeout, 120, fun() ->
        Of = fun(Nodes) ->
            {_, Text} = run(sderl_vm_quorum_ring, #{nodes => Nodes, clients => 3, reads => 50}),
            list_to_integer(Text)
        end,
        Drawn = fun(Nodes) ->
            lists:sum([Sum || I <- lists:seq(1, 3), {Sum, _} <- [lists:foldl(
                fun(_, {Sum, R0}) ->
                    {Key, R1} = rand:uniform_s(1 bsl 16, R0),
                    {_, R2} = rand:uniform_s(Nodes, R1),
                    {Sum + Key, R2}
                end,
                {0, rand:seed_s(exsss, erlang:phash2({sderl_vm_quorum_ring, I}))},
                lists:seq(1, 50))]])
        end,
        [?assertEqual(Drawn(Nodes), Of(Nodes)) || Nodes <- [1, 2, 3, 4, 5, 7, 8, 64, 100]]
    end}.

%% The sizes are those of the published orbits.
orbit_test_() ->
    [
        {lists:concat([Name, " ", Space]), {timeout, 120, fun() ->
            {_, Text} = run(sderl_vm_orbit_int,
                            #{generators => Name, space => Space, workers => 3}),
            ?assertMatch({0, _}, {string:str(Text, lists:concat(["{", Size, ","])) - 1, Text})
        end}}
     || {Name, Space, Size} <- [{g13, 1000, 895}, {g124, 1000, 854}, {g1, 1000, 213}]
    ].

%% The orbit is the same whether a worker computes the images, or a process inside it.
orbit_inside_test_() ->
    [
        {lists:concat([Name, " ", Workers]), {timeout, 120, fun() ->
            Settings = #{generators => Name, space => 300, workers => Workers},
            ?assertEqual(run(sderl_vm_orbit_int, Settings#{intra_worker => false}),
                         run(sderl_vm_orbit_int, Settings#{intra_worker => true}))
        end}}
     || Name <- [g1, g13, g124], Workers <- [1, 5]
    ].

%% The middle of the numbers does not depend on the process that finds it.
ran_test_() ->
    {timeout, 120, fun ran/0}.

ran() ->
    Settings = #{processes => 2, numbers => 1000},
    ?assertEqual(run(sderl_vm_ran, Settings), run(sderl_vm_ran, Settings)).

%% Every program has all sizes, the larger ones with more work.
settings_test_() ->
    [
        {Name, {timeout, 120, fun() ->
            [Short, Intermediate, Long] =
                [Module:settings(Size, 4) || Size <- [short, intermediate, long]],
            ?assert(is_list(Module:summary())),
            ?assertEqual(maps:keys(Short), maps:keys(Long)),
            ?assertEqual(3, length(lists:usort([Short, Intermediate, Long])))
        end}}
     || {Name, Module} <- sderl_bench_vm_program:all(), Name =/= "empty"
    ].

%% The number of operations is that of the program's own count.
operations_test_() ->
    [
        {atom_to_list(Module), {timeout, 120, fun() ->
            {Count, _} = Module:operations(Settings),
            {_, Text} = run(Module, Settings),
            ?assertEqual(Count, Times * list_to_integer(Text))
        end}}
     || {Module, Times, Settings} <- [
            {sderl_vm_bang, 1, #{senders => 3, messages => 5}},
            {sderl_vm_big, 2, #{processes => 7}},
            {sderl_vm_ehb, 2, #{groups => 2, loops => 3}},
            {sderl_vm_clocks, 1, #{processes => 3, times => 5}},
            {sderl_vm_parallel, 1, #{processes => 3, times => 10, clock => now}},
            {sderl_vm_parallel_monotonic, 1,
             #{processes => 3, times => 10, clock => monotonic_time}},
            {sderl_vm_ets_random_ops, 1, #{workers => 3, keys => 10, operations => 100}},
            {sderl_vm_ets_bench, 1, #{workers => 2, keys => 9, changes => 10, mixed => 20}}
        ]
    ] ++ [
        %% Programs whose operations are known from the output.
        {atom_to_list(Module), {timeout, 120, fun() ->
            {ok, #{operations := #{count := Count, unit := Unit}, text := Text}} =
                sderl_bench_vm_loop:run({program, Module, Settings}, 1),
            ?assertEqual({Expected, Word}, {Count, Unit}),
            ?assertNotEqual(nomatch, string:find(Text, Said))
        end}}
     || {Module, Settings, Expected, Word, Said} <- [
            {sderl_vm_city, #{managers => 2, side => 2, steps => 1, vehicles => 3}, 12, ~"drive",
             "{12,"},
            %% The two pieces change sides in 3 moves; 6 boards have one piece of each side.
            {sderl_vm_moves, #{workers => 2, pieces => 1}, 6, ~"board", "{3,6}"},
            %% The first vertex, and the image of each of the 213 vertices.
            {sderl_vm_orbit_int, #{generators => g1, space => 1000, workers => 3}, 214, ~"vertex",
             "{213,"},
            {sderl_vm_orbit_int,
             #{generators => g13, space => 1000, workers => 3, intra_worker => true}, 1791,
             ~"vertex", "{895,"}
        ]
    ] ++ [
        ?_assertEqual({14, "message"},
                      sderl_vm_im_bench:operations(#{clients => 5, messages => 7})),
        ?_assertEqual(none, sderl_vm_im_bench:operations(#{clients => 1, messages => 7}))
    ] ++ [
        %% These settings have too little work for a single operation, and the programs run all the
        %% same.
        {lists:concat([Module, " without operations"]), {timeout, 120, fun() ->
            ?assertEqual({ok, none}, sderl_bench_vm_program:operations(Module, Settings)),
            ?assertMatch({_, Text}, run(Module, Settings))
        end}}
     || {Module, Settings, Text} <- [
            {sderl_vm_big, #{processes => 1}, "0"},
            {sderl_vm_timer_wheel, #{processes => 1}, "[0,0]"},
            {sderl_vm_ets_random_ops, #{workers => 4, keys => 10, operations => 3}, "0"},
            {sderl_vm_ets_bench, #{workers => 4, keys => 9, changes => 3, mixed => 3}, "0"}
        ]
    ] ++ [
        {Name, ?_test([?assertMatch({ok, #{count := Count, unit := _}} when Count > 0,
                                    sderl_bench_vm_program:operations(
                                        Module, Module:settings(Size, Cores)))
                       || Size <- [short, intermediate, long], Cores <- [1, 2, 16]])}
     || {Name, Module} <- sderl_bench_vm_program:all(),
        {module, _} <- [code:ensure_loaded(Module)],
        erlang:function_exported(Module, operations, 1)
    ].

%% On three nodes the output is that on one, and more than one of the nodes does a part.
nodes_test_() ->
    {setup,
     fun() ->
         {ok, Starter} = sderl_bench_vm_start:open([{"", own}], #{
             modules => [sderl_orbit_generators
                         | [Module || {_, Module} <- sderl_bench_vm_program:all()]],
             limit_ms => 120_000
         }),
         Starter
     end,
     fun sderl_bench_vm_start:close/1,
     fun(Starter) ->
         [{Name, {timeout, 120, fun() -> on_nodes(Starter, Module, Module:settings(short, 2)) end}}
          || {Name, Module} <- sderl_bench_vm_program:all(),
             sderl_bench_vm_program:spreads(Module)] ++
         [{"orbit_int with processes inside", {timeout, 120, fun() ->
             on_nodes(Starter, sderl_vm_orbit_int,
                      (sderl_vm_orbit_int:settings(short, 2))#{intra_worker := true})
         end}}]
     end}.

%% A program either runs on several nodes or says why not.
alone_test_() ->
    [{Name, ?_assertEqual(sderl_bench_vm_program:spreads(Module),
                          sderl_bench_vm_program:alone(Module) =:= "")}
     || {Name, Module} <- sderl_bench_vm_program:all()].

on_nodes(Starter, Module, Settings) ->
    {Hash, Text} = run(Module, Settings),
    {ok, #{runs := [#{hash := Given, text := Said}], why := #{busy := Busy, sent_bytes := Sent}}} =
        sderl_bench_vm_start:run(
            Starter, #{schedulers => 1, nodes => 3, flags => [], otp => ""},
            #{do => measure, job => {program, Module, Settings}, repetitions => 2, runs => 1,
              warm_most => 1, most_ns => 1, result => ""}
        ),
    ?assertEqual({Hash, Text}, {Given, binary_to_list(Said)}),
    ?assertMatch([_, _, _], Busy),
    %% A program that runs on one node only sends 152 bytes, which come from the measurement itself.
    ?assert(Sent >= 400).

published_sizes_test() ->
    ?assertMatch(#{senders := 32, messages := 32}, sderl_vm_bang:settings(short, 2)),
    ?assertMatch(#{processes := 64, pixels := 64}, sderl_vm_mbrot:settings(intermediate, 16)),
    ?assertMatch(#{groups := 16, loops := 16}, sderl_vm_ehb:settings(long, 2)),
    ?assertMatch(#{times := 626}, sderl_vm_parallel:settings(short, 2)).
