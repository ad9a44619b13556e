%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_SUITE).

%% What a fleet does with real nodes.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_fleet_ct, [
    fleet/1, done/1, call/5, call/6, await/1, atom/1, os_pid/2, has_proc/0,
    trace/1, left/1, is_gone/1, homes/1, controller/2, output/1
]).

-define(SOON, 60_000).

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    [
        start_stop,
        malformed,
        calls,
        calls_side_by_side,
        multicall,
        prints_nothing,
        environment,
        kernel_environment,
        s_groups,
        connections,
        emulator,
        added_nodes,
        failed_start,
        failed_add,
        boot_timeout,
        kill,
        restart,
        stop_node,
        suspend,
        operations_in_order,
        unknown_node,
        progress,
        fits,
        awaiting
    ].

%% Start and stop

start_stop(_) ->
    Fleet = fleet([#{name => a, count => 2}, #{name => "b", count => 1, hidden => true}]),
    [A1, A2, B1] = Nodes = sderl_fleet:nodes(Fleet),
    #{tag := Tag, home := Home} = sderl_fleet:connection_info(Fleet),
    Names = [atom([Name, "-", Tag, "@127.0.0.1"]) || Name <- ["a1", "a2", "b1"]],
    ?assertEqual(Names, Nodes),
    [?assertEqual(N, call(Fleet, N, erlang, node, [])) || N <- Nodes],
    Info = sderl_fleet:info(Fleet),
    ?assertEqual(lists:sort(Nodes), lists:sort(maps:keys(Info))),
    #{A1 := #{os_pid := OsPid, started := Started}} = Info,
    ?assertMatch(#{A2 := #{hidden := false}, B1 := #{hidden := true, family := "b"}}, Info),
    ?assertEqual(integer_to_list(OsPid), call(Fleet, A1, os, getpid, [])),
    ?assert(erlang:system_time(millisecond) - Started < 120_000),
    [?assert(is_integer(Kib) andalso Kib > 1000) || has_proc(), _ := #{memory_kib := Kib} <- Info],
    [?assertEqual([], call(Fleet, N, erlang, nodes, [connected])) || N <- Nodes],
    ?assertEqual([], [N || N <- Nodes, lists:member(N, nodes(connected))]),
    Trace = trace(Fleet),
    ok = sderl_fleet:stop(Fleet),
    %% Without delay.
    ?assertEqual([], left(Trace)),
    ?assertEqual({error, enoent}, file:list_dir(Home)).

malformed(_) ->
    One = [#{name => a, count => 1}],
    Local = fun(Options) ->
        Driver = {sderl_fleet_local, Options},
        {error, Reason} = sderl_fleet:start(#{families => One, driver => Driver}),
        Reason
    end,
    ?assertMatch({error, {bad_plan, [families], undefined, _}}, sderl_fleet:start(#{})),
    ?assertMatch(
        {error, {bad_plan, [families, 1, count], -1, _}},
        sderl_fleet:start(#{families => [#{name => a, count => -1}]})
    ),
    ?assertMatch({bad_plan, [driver, 2], colour, _}, Local(#{colour => red})),
    ?assertMatch({bad_plan, [driver, 2, dir], ~"/tmp", _}, Local(#{dir => ~"/tmp"})),
    ?assertMatch({bad_plan, [driver, 2, epmd_port], 0, _}, Local(#{epmd_port => 0})),
    ?assertMatch({bad_plan, [driver, 2, emulator], ["+S", 1], _}, Local(#{emulator => ["+S", 1]})),
    ?assertEqual({no_program, "/no/such/erl"}, Local(#{erl => "/no/such/erl"})),
    ?assertMatch({mkdir, _, _}, Local(#{dir => "/no/such/dir"})).

%% Calls

calls(_) ->
    Fleet = fleet([#{name => a, count => 1}]),
    [A] = sderl_fleet:nodes(Fleet),
    ?assertEqual(3, call(Fleet, A, erlang, '+', [1, 2])),
    ?assertError(badarith, call(Fleet, A, erlang, '/', [1, 0])),
    ?assertExit(why, call(Fleet, A, erlang, exit, [why])),
    ?assertThrow(ball, call(Fleet, A, erlang, throw, [ball])),
    ?assertError(undef, call(Fleet, A, no_such_module, f, [])),
    ?assertExit({timeout, _}, call(Fleet, A, timer, sleep, [infinity], 50)),
    Big = binary:copy(~"0123456789", 100_000),
    ?assertEqual(Big, call(Fleet, A, erlang, list_to_binary, [[Big]])),
    %% The code of the caller is there.
    ?assertEqual(A, call(Fleet, A, ?MODULE, here, [])),
    ok = sderl_fleet:kill(Fleet, A),
    ?assertExit({noproc, _}, call(Fleet, A, erlang, node, [])),
    done(Fleet).

here() -> node().

%% A call to a node waits for the effect of one that began later; the same with two nodes.
calls_side_by_side(_) ->
    Fleet = fleet([#{name => a, count => 2}]),
    Nodes = sderl_fleet:nodes(Fleet),
    Test = self(),
    [
        spawn_link(fun() ->
            Test ! {Node, call(Fleet, Node, ?MODULE, wait_as, [waiter], ?SOON)}
        end)
     || Node <- Nodes
    ],
    Waits = fun(Node) -> is_pid(call(Fleet, Node, erlang, whereis, [waiter])) end,
    [ok = await(fun() -> Waits(Node) end) || Node <- Nodes],
    [call(Fleet, Node, erlang, send, [waiter, {go, Node}]) || Node <- lists:reverse(Nodes)],
    [
        receive
            {Node, Got} -> ?assertEqual({go, Node}, Got)
        end
     || Node <- Nodes
    ],
    done(Fleet).

wait_as(Name) ->
    true = register(Name, self()),
    receive
        {go, _} = Msg -> Msg
    end.

multicall(_) ->
    Fleet = fleet([#{name => a, count => 4}]),
    [A, B, C, D] = sderl_fleet:nodes(Fleet),
    ok = sderl_fleet:kill(Fleet, B),
    ok = sderl_fleet:suspend(Fleet, C),
    ?assertEqual(
        [
            {D, {ok, D}},
            {C, {error, timeout}},
            {B, {error, down}},
            {x@y, {error, unknown_node}},
            {A, {ok, A}}
        ],
        sderl_fleet:multicall(Fleet, [D, C, B, x@y, A], erlang, node, [], 5000)
    ),
    ?assertEqual(
        [{A, {error, {error, badarith}}}, {D, {error, {error, badarith}}}],
        sderl_fleet:multicall(Fleet, [A, D], erlang, 'div', [1, 0], infinity)
    ),
    ?assertEqual(
        [{A, {error, {throw, x}}}], sderl_fleet:multicall(Fleet, [A], erlang, throw, [x], 60_000)
    ),
    done(Fleet).

%% The nodes print in every possible way; the controlling machine prints only its own output.
prints_nothing(_) ->
    Port = controller(?MODULE, loud),
    ?assertEqual(~"start\nstop\n", output(Port)).

loud() ->
    io:put_chars("start\n"),
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => a, count => 3}]}),
    [A, B, C] = Nodes = sderl_fleet:nodes(Fleet),
    _ = sderl_fleet:multicall(Fleet, Nodes, ?MODULE, print, [], 60_000),
    Log = maps:get(log_dir, sderl_fleet:connection_info(Fleet)),
    ok = await(fun() -> contains(Log, ".out", [~"printed", ~"displayed"]) end),
    ok = await(fun() -> contains(Log, ".err", [~"complained"]) end),
    ok = await(fun() -> contains(Log, ".log", [~"logged", ~"crashed"]) end),
    ok = sderl_fleet:kill(Fleet, A),
    ok = sderl_fleet:stop_node(Fleet, B),
    _ = sderl_fleet:multicall(Fleet, [C], erlang, halt, ["slogan"], 60_000),
    _ = sderl_fleet:start_nodes(Fleet, [#{name => bad, args => ["+S", "none"]}]),
    ok = sderl_fleet:stop(Fleet),
    io:put_chars("stop\n").

print() ->
    io:format("printed ~ts~n", ["\x{263a}"]),
    io:format(standard_error, "complained ~ts~n", ["\x{263a}"]),
    io:format(user, "printed~n", []),
    eof = io:get_line(""),
    erlang:display(displayed),
    logger:error("logged"),
    {_, Ref} = spawn_monitor(fun() -> error(crashed) end),
    receive
        {'DOWN', Ref, _, _, _} -> ok
    end.

contains(Dir, Ext, Words) ->
    Files = filelib:wildcard(filename:join(Dir, "*" ++ Ext)),
    length(Files) =:= 3 andalso
        lists:all(
            fun(File) ->
                {ok, Text} = file:read_file(File),
                lists:all(fun(Word) -> binary:match(Text, Word) =/= nomatch end, Words)
            end,
            Files
        ).

%% What a node is started with

environment(_) ->
    Pid = self(),
    Fun = fun(X) -> X + 1 end,
    Fleet = fleet([
        #{
            name => a,
            count => 1,
            env => [
                {sderl_x, text, "\x{263a}"},
                {sderl_x, map, #{k => ~"v"}},
                {sderl_x, pid, Pid},
                {sderl_x, 'fun', Fun},
                {sderl_x, map, later}
            ],
            apps => [runtime_tools]
        }
    ]),
    [A] = sderl_fleet:nodes(Fleet),
    Env = fun(Key) -> env(Fleet, A, sderl_x, Key) end,
    ?assertEqual({ok, "\x{263a}"}, Env(text)),
    ?assertEqual({ok, later}, Env(map)),
    ?assertMatch({ok, P} when is_pid(P), Env(pid)),
    ?assertEqual({ok, Fun}, Env('fun')),
    Running = [App || {App, _, _} <- call(Fleet, A, application, which_applications, [])],
    ?assertEqual([kernel, runtime_tools, stdlib], lists:sort(Running)),
    {ok, A} = sderl_fleet:restart(Fleet, A),
    ?assertEqual({ok, later}, Env(map)),
    done(Fleet).

%% The environment of an application can be read when it is loaded.
env(Fleet, Node, App, Key) ->
    _ = call(Fleet, Node, application, load, [{application, App, []}]),
    call(Fleet, Node, application, get_env, [App, Key]).

kernel_environment(_) ->
    Fleet = fleet([#{name => a, count => 1, env => [{kernel, net_ticktime, 8}]}]),
    [A] = sderl_fleet:nodes(Fleet),
    ?assertEqual(8, call(Fleet, A, net_kernel, get_net_ticktime, [])),
    done(Fleet).

s_groups(_) ->
    Fleet = fleet(#{
        families => [#{name => a, count => 2}, #{name => b, count => 1}],
        s_groups => [{g, normal, [{a, all}]}]
    }),
    [A1, A2, B1] = sderl_fleet:nodes(Fleet),
    Groups = fun(Node) -> env(Fleet, Node, sderl, s_groups) end,
    ?assertEqual({ok, [{g, normal, [A1, A2]}]}, Groups(A1)),
    ?assertEqual({ok, [{g, normal, [A1, A2]}]}, Groups(A2)),
    ?assertEqual(undefined, Groups(B1)),
    done(Fleet).

connections(_) ->
    Fleet = fleet([
        #{name => sd, count => 3},
        #{name => stock, count => 3, connect_all => true},
        #{name => hidden, count => 1, hidden => true}
    ]),
    [D1, D2, D3, S1, S2, S3, H1] = sderl_fleet:nodes(Fleet),
    Connect = fun(From, To) -> true = call(Fleet, From, net_kernel, connect_node, [To]) end,
    Links = fun(Node) -> lists:sort(call(Fleet, Node, erlang, nodes, [connected])) end,
    Connect(S1, S2),
    Connect(S2, S3),
    ok = await(fun() -> Links(S1) =:= [S2, S3] end),
    Connect(D1, D2),
    Connect(D2, D3),
    ok = await(fun() -> Links(D2) =:= [D1, D3] end),
    ?assertEqual([D2], Links(D1)),
    Connect(H1, D1),
    %% The other end may know of a link a moment later.
    ok = await(fun() -> call(Fleet, D1, erlang, nodes, [hidden]) =:= [H1] end),
    done(Fleet).

emulator(_) ->
    Fleet = fleet([
        #{name => a, count => 1},
        #{name => b, count => 1, args => ["+S", "2:2", "-sderl", "hello"]}
    ]),
    [A, B] = sderl_fleet:nodes(Fleet),
    ?assertEqual(1, call(Fleet, A, erlang, system_info, [schedulers])),
    ?assertEqual(2, call(Fleet, B, erlang, system_info, [schedulers])),
    ?assertEqual({ok, [["hello"]]}, call(Fleet, B, init, get_argument, [sderl])),
    #{B := #{args := Args}} = sderl_fleet:info(Fleet),
    ?assert(lists:member("hello", Args)),
    %% The modules that evaluate expressions are loaded when they are needed.
    IsLoaded = fun() -> false =/= call(Fleet, A, code, is_loaded, [erl_eval]) end,
    ?assertEqual(false, IsLoaded()),
    ?assertEqual({value, 1, []}, call(Fleet, A, erl_eval, expr, [{integer, 1, 1}, []])),
    ?assert(IsLoaded()),
    done(Fleet).

added_nodes(_) ->
    Fleet = fleet([#{name => a, count => 2, env => [{sderl_x, k, v}]}]),
    [A1, A2] = sderl_fleet:nodes(Fleet),
    #{tag := Tag} = sderl_fleet:connection_info(Fleet),
    A3 = atom(["a3-", Tag, "@127.0.0.1"]),
    A7 = atom(["a7-", Tag, "@127.0.0.1"]),
    B1 = atom(["b1-", Tag, "@127.0.0.1"]),
    ?assertEqual({ok, [A3, B1]}, sderl_fleet:start_nodes(Fleet, [#{name => a}, #{name => b}])),
    ?assertEqual({ok, v}, env(Fleet, A3, sderl_x, k)),
    ok = sderl_fleet:kill(Fleet, A2),
    ?assertEqual([A1, A3, B1], sderl_fleet:nodes(Fleet)),
    ?assertEqual({ok, [A2, A7]}, sderl_fleet:start_nodes(Fleet, [A2, #{name => a, index => 7}])),
    ?assertEqual([A1, A2, A3, B1, A7], sderl_fleet:nodes(Fleet)),
    ?assertEqual({ok, []}, sderl_fleet:start_nodes(Fleet, [])),
    ?assertEqual({error, {already_running, A1}}, sderl_fleet:start_nodes(Fleet, [A1])),
    ?assertMatch(
        {error, {bad_plan, [nodes, 1, count], 0, _}},
        sderl_fleet:start_nodes(Fleet, [#{name => a, count => 0}])
    ),
    true = call(Fleet, A1, net_kernel, connect_node, [A2]),
    done(Fleet).

failed_start(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    Start = fun(Families) ->
        Driver = {sderl_fleet_local, #{dir => Dir}},
        {error, {start_failed, [{_, Reason} | _]}} =
            sderl_fleet:start(#{families => Families, driver => Driver}),
        Reason
    end,
    ?assertMatch(
        {app_failed, no_such_app, _},
        Start([#{name => a, count => 3}, #{name => b, count => 1, apps => [no_such_app]}])
    ),
    ?assertMatch({boot_failed, _, _}, Start([#{name => a, count => 1, args => ["+S", "none"]}])),
    {boot_failed, {exit_status, _}, Words} =
        Start([#{name => a, count => 1, args => ["-boot", "no_such_file"]}]),
    ?assertNotEqual(nomatch, binary:match(Words, ~"no_such_file")),
    ?assertEqual([], homes(Dir)).

%% Nothing of a failed addition remains, and the fleet goes on.
failed_add(_) ->
    Fleet = fleet([#{name => a, count => 1}]),
    [A] = Nodes = sderl_fleet:nodes(Fleet),
    {error, {start_failed, [{_, {app_failed, no_such_app, _}}]}} =
        sderl_fleet:start_nodes(Fleet, [
            #{name => b, count => 2}, #{name => c, apps => [no_such_app]}
        ]),
    ?assertEqual(Nodes, sderl_fleet:nodes(Fleet)),
    ?assertEqual([A], maps:keys(sderl_fleet:info(Fleet))),
    {error, {start_failed, [{_, {unknown_host, "127.0.0.77"}}]}} =
        sderl_fleet:start_nodes(Fleet, [#{name => b, host => "127.0.0.77"}]),
    {ok, [_]} = sderl_fleet:start_nodes(Fleet, [#{name => b}]),
    done(Fleet).

boot_timeout(Config) ->
    Erl = filename:join(proplists:get_value(priv_dir, Config), "slow_erl"),
    ok = file:write_file(Erl, "#!/bin/sh\nexec sleep 1000\n"),
    ok = file:change_mode(Erl, 8#700),
    ?assertMatch(
        {error, {start_failed, [{_, timeout}]}},
        sderl_fleet:start(#{
            families => [#{name => a, count => 1}],
            timeout => 200,
            driver => {sderl_fleet_local, #{erl => Erl}}
        })
    ).

%% Ends of nodes

kill(_) ->
    Fleet = fleet([#{name => a, count => 2}]),
    [A, B] = sderl_fleet:nodes(Fleet),
    OsPid = os_pid(Fleet, A),
    true = call(Fleet, B, net_kernel, connect_node, [A]),
    ok = sderl_fleet:kill(Fleet, A),
    ?assert(is_gone(OsPid)),
    ?assertEqual([B], sderl_fleet:nodes(Fleet)),
    ?assertMatch(#{A := #{status := down, os_pid := undefined}}, sderl_fleet:info(Fleet)),
    ok = sderl_fleet:await(fun() -> call(Fleet, B, erlang, nodes, []) =:= [] end, ?SOON),
    ok = sderl_fleet:kill(Fleet, A),
    %% A node that ends by itself is noticed.
    ?assertExit(_, call(Fleet, B, erlang, halt, [])),
    ok = await(fun() -> sderl_fleet:nodes(Fleet) =:= [] end),
    ?assertMatch(#{B := #{status := down}}, sderl_fleet:info(Fleet)),
    done(Fleet).

restart(_) ->
    Fleet = fleet([#{name => a, count => 2, env => [{sderl_x, k, v}]}]),
    [A, B] = sderl_fleet:nodes(Fleet),
    First = os_pid(Fleet, A),
    ?assertEqual({ok, A}, sderl_fleet:restart(Fleet, A)),
    Second = os_pid(Fleet, A),
    ?assertNotEqual(First, Second),
    ok = sderl_fleet:kill(Fleet, A),
    ?assertEqual({ok, A}, sderl_fleet:restart(Fleet, A)),
    ok = sderl_fleet:suspend(Fleet, A),
    ?assertEqual({ok, A}, sderl_fleet:restart(Fleet, A)),
    ?assertEqual({ok, v}, env(Fleet, A, sderl_x, k)),
    true = call(Fleet, B, net_kernel, connect_node, [A]),
    ?assertEqual([A, B], sderl_fleet:nodes(Fleet)),
    done(Fleet).

%% In order: applications are stopped.
stop_node(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "goodbye"),
    Fleet = fleet([#{name => a, count => 2}]),
    [A, B] = sderl_fleet:nodes(Fleet),
    ok = call(Fleet, A, ?MODULE, say_goodbye_in, [File]),
    OsPid = os_pid(Fleet, A),
    ok = sderl_fleet:stop_node(Fleet, A),
    ?assert(is_gone(OsPid)),
    ?assertEqual({ok, ~"goodbye"}, file:read_file(File)),
    ok = sderl_fleet:stop_node(Fleet, A),
    ok = sderl_fleet:suspend(Fleet, B),
    ok = sderl_fleet:stop_node(Fleet, B),
    ?assertEqual([], sderl_fleet:nodes(Fleet)),
    done(Fleet).

%% An application of its own, so that init:stop/0 ends it in order.
say_goodbye_in(File) ->
    Keys = [{mod, {?MODULE, File}}, {applications, [kernel, stdlib]}],
    ok = application:load({application, sderl_goodbye, Keys}),
    application:start(sderl_goodbye).

start(_, File) ->
    {ok, spawn_link(fun() -> receive after infinity -> ok end end), File}.

stop(File) ->
    ok = file:write_file(File, ~"goodbye").

suspend(_) ->
    Fleet = fleet([#{name => a, count => 2}]),
    [A, B] = sderl_fleet:nodes(Fleet),
    true = call(Fleet, A, net_kernel, connect_node, [B]),
    ok = await(fun() -> call(Fleet, B, erlang, nodes, []) =:= [A] end),
    ok = sderl_fleet:suspend(Fleet, A),
    ?assertEqual([B], sderl_fleet:nodes(Fleet)),
    #{A := #{status := suspended, os_pid := OsPid}} = sderl_fleet:info(Fleet),
    ?assert(is_integer(OsPid)),
    ?assertExit({timeout, _}, call(Fleet, A, erlang, node, [], 100)),
    %% Its connections stay.
    ?assertEqual([A], call(Fleet, B, erlang, nodes, [])),
    ok = sderl_fleet:suspend(Fleet, A),
    ok = sderl_fleet:resume(Fleet, A),
    ?assertEqual(A, call(Fleet, A, erlang, node, [])),
    ?assertEqual([A, B], sderl_fleet:nodes(Fleet)),
    ok = sderl_fleet:resume(Fleet, A),
    ok = sderl_fleet:suspend(Fleet, A),
    ok = sderl_fleet:kill(Fleet, A),
    ?assertEqual({error, {down, A}}, sderl_fleet:suspend(Fleet, A)),
    ?assertEqual({error, {down, A}}, sderl_fleet:resume(Fleet, A)),
    ok = sderl_fleet:suspend(Fleet, B),
    done(Fleet).

%% Operations on one node follow one another, whoever asks.
operations_in_order(_) ->
    Fleet = fleet([#{name => a, count => 2}]),
    [A, B] = Nodes = sderl_fleet:nodes(Fleet),
    Ask = fun(Fun) -> spawn_monitor(fun() -> exit({got, Fun()}) end) end,
    Asked = [
        Ask(fun() -> sderl_fleet:Operation(Fleet, Node) end)
     || _ <- lists:seq(1, 3),
        Operation <- [kill, restart, suspend, stop_node, resume],
        Node <- Nodes
    ],
    Answers = [
        receive
            {'DOWN', Ref, process, _, {got, Answer}} -> Answer
        end
     || {_, Ref} <- Asked
    ],
    Allowed = [ok] ++ [T || N <- Nodes, T <- [{ok, N}, {error, {down, N}}]],
    ?assertEqual([], [Answer || Answer <- Answers, not lists:member(Answer, Allowed)]),
    {ok, A} = sderl_fleet:restart(Fleet, A),
    {ok, B} = sderl_fleet:restart(Fleet, B),
    ?assertEqual(Nodes, sderl_fleet:nodes(Fleet)),
    done(Fleet).

unknown_node(_) ->
    Fleet = fleet([#{name => a, count => 1}]),
    [
        ?assertEqual({error, {unknown_node, x@y}}, sderl_fleet:Operation(Fleet, x@y))
     || Operation <- [kill, restart, suspend, resume, stop_node]
    ],
    ?assertError({unknown_node, x@y}, call(Fleet, x@y, erlang, node, [])),
    done(Fleet).

%% The rest

progress(_) ->
    Test = self(),
    Progress = fun(Done, Total) ->
        Test ! {progress, Done, Total},
        error(mistake)
    end,
    Fleet = fleet(#{families => [#{name => a, count => 3}], parallel => 1, progress => Progress}),
    ?assertEqual(
        [{1, 3}, {2, 3}, {3, 3}],
        [
            receive
                {progress, Done, Total} -> {Done, Total}
            end
         || _ <- [1, 2, 3]
        ]
    ),
    done(Fleet).

fits(_) ->
    ok = sderl_fleet:fits(0),
    case has_proc() of
        true ->
            {error, {memory, #{needed_mib := 50_000_000, available_mib := Available}}} =
                sderl_fleet:fits(1_000_000),
            ?assert(is_integer(Available));
        false ->
            ok = sderl_fleet:fits(1_000_000)
    end.

awaiting(_) ->
    Counter = counters:new(1, []),
    Third = fun() ->
        counters:add(Counter, 1, 1),
        case counters:get(Counter, 1) of
            1 -> false;
            2 -> error(not_yet);
            3 -> true
        end
    end,
    ok = sderl_fleet:await(Third, infinity),
    ok = sderl_fleet:await(fun() -> ok end, 0),
    {error, {timeout, nope}} = sderl_fleet:await(fun() -> nope end, 20),
    {error, {timeout, {error, oops, [_ | _]}}} = sderl_fleet:await(fun() -> error(oops) end, 0).
