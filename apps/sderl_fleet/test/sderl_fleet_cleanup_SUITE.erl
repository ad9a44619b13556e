%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_cleanup_SUITE).

%% That fleets do not disturb each other and leave nothing behind, however they end.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").
-include_lib("kernel/include/file.hrl").

-import(sderl_fleet_ct, [
    fleet/1, done/1, call/5, await/1, os_pid/2, has_proc/0, trace/1,
    left/1, gone/1, is_gone/1, homes/1, marked/1, command/1, reaper/1, signal/2,
    shell/1, controller/2, erl/2, output/1
]).

suite() ->
    [{timetrap, {minutes, 10}}].

all() ->
    [
        two_fleets,
        other_host,
        wrapped,
        wrapped_otherwise,
        network_namespace,
        attach,
        caller_ends,
        caller_killed,
        caller_killed_while_starting,
        other_owner,
        fleet_killed,
        stopped_twice,
        epmd_lost,
        reaper_lost,
        reaper_lost_and_stopped,
        recycled_pid,
        children_of_nodes,
        vm_killed,
        vm_halted,
        secrets,
        loopback_only,
        logs_kept
    ].

%% These look into /proc.
init_per_testcase(Case, Config) ->
    Looking = [
        other_host,
        epmd_lost,
        reaper_lost,
        reaper_lost_and_stopped,
        children_of_nodes,
        secrets,
        loopback_only
    ],
    case lists:member(Case, Looking) andalso not has_proc() of
        true -> {skip, "needs /proc"};
        false -> Config
    end.

end_per_testcase(_, _) -> ok.

%% Several fleets, places, and people

two_fleets(_) ->
    Plan = #{families => [#{name => a, count => 2}]},
    Test = self(),
    [
        spawn_link(fun() -> Test ! {fleet, fleet(P#{owner => Test})} end)
     || P <- [Plan, Plan, Plan#{tag => ""}, Plan#{tag => ""}]
    ],
    Fleets = [
        receive
            {fleet, Fleet} -> Fleet
        end
     || _ <- [1, 2, 3, 4]
    ],
    [One, Two | Rest] = [sderl_fleet:connection_info(Fleet) || Fleet <- Fleets],
    ?assertNotEqual(maps:with([cookie], One), maps:with([cookie], Two)),
    ?assertEqual(4, length(lists:usort([Port || #{epmd_port := Port} <- [One, Two | Rest]]))),
    [
        begin
            [A, B] = sderl_fleet:nodes(Fleet),
            true = call(Fleet, A, net_kernel, connect_node, [B]),
            ?assertEqual([B], call(Fleet, A, erlang, nodes, []))
        end
     || Fleet <- Fleets
    ],
    [First | Others] = Fleets,
    done(First),
    [?assertMatch([_, _], sderl_fleet:nodes(Fleet)) || Fleet <- Others],
    [done(Fleet) || Fleet <- Others].

%% Nodes under different commands in one namespace share the port mapper.
wrapped_otherwise(_) ->
    Fleet = fleet([
        #{name => a, count => 1},
        #{name => b, count => 1, wrap => ["nice", "-n", "1"]}
    ]),
    [A, B] = sderl_fleet:nodes(Fleet),
    true = call(Fleet, A, net_kernel, connect_node, [B]),
    ?assertMatch(
        {error, {wrap, ["false"], _}},
        sderl_fleet:start(#{families => [#{name => a, count => 1, wrap => ["false"]}]})
    ),
    ?assertMatch(
        {error, {wrap, ["no_such_program"], _}},
        sderl_fleet:start(#{families => [#{name => a, count => 1, wrap => ["no_such_program"]}]})
    ),
    done(Fleet).

other_host(_) ->
    Fleet = fleet(#{
        host => "127.0.0.2",
        families => [#{name => a, count => 1}, #{name => b, count => 1, host => "127.0.0.3"}]
    }),
    [A, B] = sderl_fleet:nodes(Fleet),
    ?assertMatch([_, "127.0.0.2"], string:split(atom_to_list(A), "@")),
    ?assertMatch([_, "127.0.0.3"], string:split(atom_to_list(B), "@")),
    true = call(Fleet, A, net_kernel, connect_node, [B]),
    done(Fleet).

wrapped(_) ->
    Fleet = fleet([#{name => a, count => 1, wrap => ["env", "SDERL_WRAPPED=yes"]}]),
    [A] = sderl_fleet:nodes(Fleet),
    ?assertEqual("yes", call(Fleet, A, os, getenv, ["SDERL_WRAPPED"])),
    ?assertEqual(integer_to_list(os_pid(Fleet, A)), call(Fleet, A, os, getpid, [])),
    done(Fleet).

%% A pair of namespaces with a cable between them, one node in each.
network_namespace(_) ->
    Tag = sderl_fleet_home:random(4, lower),
    [N1, N2, V1, V2] = ["sdf" ++ Tag ++ X || X <- ["1", "2", "a", "b"]],
    Ip = fun(Command) -> shell("ip " ++ Command) end,
    Clean = fun() -> [Ip("netns del " ++ N) || N <- [N1, N2]] end,
    Setup = [
        "netns add " ++ N1, "netns add " ++ N2,
        "link add " ++ V1 ++ " netns " ++ N1 ++ " type veth peer name " ++ V2 ++ " netns " ++ N2,
        "-n " ++ N1 ++ " addr add 10.99.0.1/24 dev " ++ V1,
        "-n " ++ N2 ++ " addr add 10.99.0.2/24 dev " ++ V2,
        "-n " ++ N1 ++ " link set lo up", "-n " ++ N2 ++ " link set lo up",
        "-n " ++ N1 ++ " link set " ++ V1 ++ " up", "-n " ++ N2 ++ " link set " ++ V2 ++ " up"
    ],
    case has_proc() andalso lists:all(fun(C) -> Ip(C) =:= 0 end, Setup) of
        true ->
            try
                In = fun(N) -> ["ip", "netns", "exec", N] end,
                Fleet = fleet([
                    #{name => a, count => 1, host => "10.99.0.1", wrap => In(N1)},
                    #{name => b, count => 1, host => "10.99.0.2", wrap => In(N2)}
                ]),
                [A, B] = sderl_fleet:nodes(Fleet),
                true = call(Fleet, A, net_kernel, connect_node, [B]),
                ok = await(fun() -> call(Fleet, B, erlang, nodes, []) =:= [A] end),
                done(Fleet)
            after
                Clean()
            end;
        false ->
            Clean(),
            {skip, "no network namespaces here"}
    end.

%% A person's shell, with what connection_info/1 says.
attach(_) ->
    Fleet = fleet([#{name => a, count => 1}]),
    [A] = sderl_fleet:nodes(Fleet),
    #{home := Home, epmd_port := EpmdPort, cookie := Cookie} = sderl_fleet:connection_info(Fleet),
    Port = erl(
        ["-hidden", "-name", "me@127.0.0.1", "-eval",
         "io:put_chars(atom_to_list(net_adm:ping('" ++ atom_to_list(A) ++ "'))), halt()."],
        [{"HOME", Home}, {"ERL_EPMD_PORT", integer_to_list(EpmdPort)}]
    ),
    ?assertEqual(~"pong", output(Port)),
    ?assertEqual(Cookie, call(Fleet, A, erlang, get_cookie, [])),
    done(Fleet).

%% Ends of fleets

caller_ends(_) -> caller(fun() -> ok end).

caller_killed(_) -> caller(fun() -> receive after infinity -> ok end end).

caller(Then) ->
    Test = self(),
    Caller = spawn(fun() ->
        Fleet = fleet([#{name => a, count => 2}]),
        ok = sderl_fleet:suspend(Fleet, hd(sderl_fleet:nodes(Fleet))),
        Test ! {fleet, Fleet, trace(Fleet)},
        receive
            go -> Then()
        end
    end),
    receive
        {fleet, Fleet, Trace} ->
            Ref = monitor(process, Fleet),
            Caller ! go,
            exit(Caller, kill),
            receive
                {'DOWN', Ref, process, _, _} -> ok
            end,
            ?assertEqual([], left(Trace))
    end.

caller_killed_while_starting(Config) ->
    Dir = proplists:get_value(priv_dir, Config),
    Test = self(),
    {Caller, _} = spawn_monitor(fun() ->
        fleet(#{
            families => [#{name => a, count => 6}],
            parallel => 2,
            progress => fun(Done, _) -> Test ! Done end,
            driver => {sderl_fleet_local, #{dir => Dir}}
        })
    end),
    receive
        1 -> ok
    end,
    [Home] = homes(Dir),
    exit(Caller, kill),
    gone({Home, []}).

other_owner(_) ->
    Test = self(),
    Owner = spawn_link(fun() -> receive stop -> ok end end),
    Plan = #{families => [#{name => a, count => 1}], owner => Owner},
    spawn_link(fun() -> Test ! {fleet, fleet(Plan)} end),
    Fleet =
        receive
            {fleet, F} -> F
        end,
    Trace = trace(Fleet),
    [A] = sderl_fleet:nodes(Fleet),
    ?assertEqual(A, call(Fleet, A, erlang, node, [])),
    Owner ! stop,
    gone(Trace).

fleet_killed(_) ->
    Fleet = fleet([#{name => a, count => 3}]),
    ok = sderl_fleet:suspend(Fleet, hd(sderl_fleet:nodes(Fleet))),
    Trace = trace(Fleet),
    exit(Fleet, kill),
    gone(Trace).

stopped_twice(_) ->
    Fleet = fleet([#{name => a, count => 1}]),
    Trace = trace(Fleet),
    Stoppers = [spawn_monitor(fun() -> ok = sderl_fleet:stop(Fleet) end) || _ <- [1, 2, 3]],
    [
        receive
            {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason)
        end
     || {_, Ref} <- Stoppers
    ],
    ?assertEqual([], left(Trace)),
    ok = sderl_fleet:stop(Fleet).

%% Without the port mapper the nodes cannot find one another: the fleet ends.
epmd_lost(_) ->
    Fleet = fleet([#{name => a, count => 1}]),
    #{home := Home} = sderl_fleet:connection_info(Fleet),
    Trace = trace(Fleet),
    Ref = monitor(process, Fleet),
    [OsPid] = [P || P <- marked(Home), command(P) =:= ~"epmd"],
    signal("KILL", OsPid),
    receive
        {'DOWN', Ref, process, _, Reason} -> ?assertMatch({shutdown, {driver, _}}, Reason)
    end,
    gone(Trace).

reaper_lost(_) ->
    Fleet = fleet([#{name => a, count => 2}]),
    [A, B] = sderl_fleet:nodes(Fleet),
    Trace = trace(Fleet),
    signal("KILL", reaper(Fleet)),
    ok = sderl_fleet:suspend(Fleet, B),
    ok = sderl_fleet:kill(Fleet, A),
    {ok, A} = sderl_fleet:restart(Fleet, A),
    exit(Fleet, kill),
    gone(Trace).

reaper_lost_and_stopped(_) ->
    Fleet = fleet([#{name => a, count => 2}]),
    ok = sderl_fleet:suspend(Fleet, hd(sderl_fleet:nodes(Fleet))),
    Trace = trace(Fleet),
    signal("KILL", reaper(Fleet)),
    ok = sderl_fleet:stop(Fleet),
    gone(Trace).

%% Another process gets the pid of one that was told to the reaper, and is left alone.
recycled_pid(_) ->
    Last = "/proc/sys/kernel/ns_last_pid",
    case file:write_file(Last, "") of
        {error, _} ->
            {skip, "cannot choose pids here"};
        ok ->
            Dir = sderl_fleet_home:name(undefined),
            {ok, Reaper} = sderl_fleet_reaper:start_link(Dir),
            First = sleeper(),
            OsPid = port_pid(First),
            ok = sderl_fleet_reaper:add(Reaper, OsPid),
            ok = sderl_fleet_reaper:signal(Reaper, OsPid, cont),
            Started = started(OsPid),
            end_port(First),
            case recycle(Last, OsPid, Started, 1000) of
                {ok, Second} ->
                    gone = sderl_fleet_reaper:signal(Reaper, OsPid, kill),
                    ok = sderl_fleet_reaper:finish(Reaper),
                    ?assertNot(is_gone(OsPid)),
                    end_port(Second);
                error ->
                    ok = sderl_fleet_reaper:finish(Reaper),
                    {skip, "the pid was not given again"}
            end
    end.

recycle(_, _, _, 0) ->
    error;
recycle(Last, OsPid, Started, Tries) ->
    %% Not everybody may: the pid then comes back by chance or not at all.
    _ = file:write_file(Last, integer_to_list(OsPid - 1)),
    Port = sleeper(),
    %% Start times have steps of 10 ms.
    case port_pid(Port) =:= OsPid andalso started(OsPid) =/= Started of
        true ->
            {ok, Port};
        false ->
            end_port(Port),
            recycle(Last, OsPid, Started, Tries - 1)
    end.

started(OsPid) ->
    {ok, Stat} = file:read_file(lists:concat(["/proc/", OsPid, "/stat"])),
    lists:nth(20, string:lexemes(lists:last(binary:split(Stat, ~")", [global])), " ")).

sleeper() ->
    open_port({spawn_executable, os:find_executable("sleep")}, [{args, ["1000"]}, exit_status]).

port_pid(Port) ->
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    OsPid.

end_port(Port) ->
    signal("KILL", port_pid(Port)),
    receive
        {Port, {exit_status, _}} -> ok
    end.

%% Programs that a node has started end too, also one that ignores the end of its stdin.
children_of_nodes(_) ->
    Fleet = fleet([#{name => a, count => 1}]),
    [A] = sderl_fleet:nodes(Fleet),
    OsPid = call(Fleet, A, ?MODULE, sleep_for_ever, []),
    Trace = trace(Fleet),
    ok = sderl_fleet:kill(Fleet, A),
    ?assertNot(is_gone(OsPid)),
    ok = sderl_fleet:stop(Fleet),
    ok = await(fun() -> is_gone(OsPid) end),
    gone(Trace).

sleep_for_ever() ->
    Test = self(),
    spawn(fun() ->
        Port = sleeper(),
        Test ! {os_pid, port_pid(Port)},
        receive after infinity -> ok end
    end),
    receive
        {os_pid, OsPid} -> OsPid
    end.

%% The whole controlling machine, with one node suspended.

vm_killed(_) -> vm(fun(Port) -> signal("KILL", port_pid(Port)) end).

vm_halted(_) -> vm(fun(Port) -> port_command(Port, "\n") end).

vm(End) ->
    Port = controller(?MODULE, fleet_and_wait),
    Trace = receive_trace(Port, <<>>),
    {_, Traced} = Trace,
    ?assertEqual(3, length(Traced)),
    [?assertNot(is_gone(OsPid)) || {OsPid, _} <- Traced],
    _ = End(Port),
    receive
        {Port, {exit_status, _}} -> ok
    end,
    gone(Trace).

fleet_and_wait() ->
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => a, count => 3}]}),
    [A | _] = sderl_fleet:nodes(Fleet),
    ok = sderl_fleet:suspend(Fleet, A),
    io:put_chars([base64:encode(term_to_binary(trace(Fleet))), $\n]),
    _ = io:get_line("").

receive_trace(Port, Said) ->
    case binary:split(Said, ~"\n") of
        [Trace, _] ->
            binary_to_term(base64:decode(Trace));
        [_] ->
            receive
                {Port, {data, Data}} -> receive_trace(Port, <<Said/binary, Data/binary>>)
            end
    end.

%% Secrets and sockets

secrets(_) ->
    Fleet = fleet([#{name => a, count => 2}]),
    #{home := Home, cookie := Cookie, log_dir := LogDir} = sderl_fleet:connection_info(Fleet),
    ?assertEqual(8#700, mode(Home)),
    ?assertEqual(8#400, mode(filename:join(Home, ".erlang.cookie"))),
    Text = atom_to_binary(Cookie),
    ?assert(byte_size(Text) >= 20),
    ?assertEqual({ok, Text}, file:read_file(filename:join(Home, ".erlang.cookie"))),
    Files = filelib:wildcard("/proc/[0-9]*/{cmdline,environ}"),
    ?assert(length(Files) > 6),
    ?assertEqual([], [File || File <- Files, mentions(File, Text)]),
    Logs = filelib:wildcard(filename:join(LogDir, "*")),
    ?assertEqual([], [File || File <- Logs, mentions(File, Text)]),
    done(Fleet).

mentions(File, Text) ->
    case file:read_file(File) of
        {ok, Data} -> binary:match(Data, Text) =/= nomatch;
        {error, _} -> false
    end.

mode(Path) ->
    {ok, #file_info{mode = Mode}} = file:read_file_info(Path),
    Mode band 8#777.

loopback_only(_) ->
    Fleet = fleet([#{name => a, count => 2}]),
    #{home := Home, epmd_port := EpmdPort} = sderl_fleet:connection_info(Fleet),
    Listening = listening(marked(Home)),
    Ports = [Port || {_, Port} <- Listening],
    ?assert(lists:member(EpmdPort, Ports)),
    ?assertMatch([_, _, _ | _], lists:usort(Ports)),
    Loopback = ["0100007F", "00000000000000000000000001000000"],
    ?assertEqual([], [L || {Address, _} = L <- Listening, not lists:member(Address, Loopback)]),
    done(Fleet).

%% {Address, Port} of the listening sockets of these processes.
listening(OsPids) ->
    Sockets = [
        Target
     || OsPid <- OsPids,
        Fd <- filelib:wildcard(lists:concat(["/proc/", OsPid, "/fd/*"])),
        {ok, Target} <- [file:read_link(Fd)]
    ],
    [
        {Address, list_to_integer(Port, 16)}
     || File <- ["/proc/net/tcp", "/proc/net/tcp6"],
        {ok, Text} <- [file:read_file(File)],
        Line <- tl(string:lexemes(binary_to_list(Text), "\n")),
        [_, Local, _, "0A", _, _, _, _, _, Inode | _] <- [string:lexemes(Line, " ")],
        lists:member("socket:[" ++ Inode ++ "]", Sockets),
        [Address, Port] <- [string:lexemes(Local, ":")]
    ].

logs_kept(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "fleet_logs"),
    Fleet = fleet(#{
        families => [#{name => a, count => 1}],
        tag => "",
        driver => {sderl_fleet_local, #{log_dir => Dir}}
    }),
    [A] = sderl_fleet:nodes(Fleet),
    ok = call(Fleet, A, logger, error, ["kept"]),
    Kept = fun() ->
        {ok, Log} = file:read_file(filename:join(Dir, "a1.log")),
        binary:match(Log, ~"kept") =/= nomatch
    end,
    ok = await(Kept),
    done(Fleet),
    ?assert(Kept()).
