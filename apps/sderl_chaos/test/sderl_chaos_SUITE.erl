%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_SUITE).
-moduledoc """
Chaos on real nodes: what is killed, what is not, when it is back, and that nothing of the service
stays.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

-define(WAIT_MS, 60_000).
-define(V, sderl_chaos_victim).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [targets, nodes_and_links, limits, protected, dry, by_majority, service_ends, controller_ends,
     strangers, command, interrupted].

%% ---------------------------------------------------------------- what is killed

%% Each way to name a process; all of them are back, in a time measured on their node.
targets(_) ->
    with(#{count => 2, apps => [sderl]}, fun(Fleet, [A, B] = Nodes) ->
        {ok, g, Nodes} = call(Fleet, A, s_group, new_s_group, [g, Nodes]),
        [ok = call(Fleet, N, ?V, start,
                   [[{local, here}, {global, {anywhere, I}}, {via, s_group, {g, {in_group, I}}}]])
         || {I, N} <- [{1, A}, {2, B}]],
        Expected = [
            {#{kind => process, find => {?V, found, []}},
             [{local, here}, {global, {anywhere, 1}}, {global, {anywhere, 2}}] ++ in_group(via)},
            {#{kind => process, supervisor => ?V},
             [{?V, Id}
              || Id <- [{local, here}, {global, {anywhere, 1}}, {global, {anywhere, 2}}] ++
                       in_group(via)]},
            {#{kind => process, module => ?V}, [{?V, here}, ?V]},
            {#{kind => name, group => local, names => [here]}, [here]},
            {#{kind => name, group => global}, [{anywhere, 1}, {anywhere, 2}]},
            {#{kind => name, group => g}, [{in_group, 1}, {in_group, 2}]}
        ],
        [
            begin
                {ok, Kills} = run(Fleet, Nodes,
                                  #{targets => [Target#{class => I}], limits => #{kills => 8}}),
                ?assertEqual({I, 8}, {I, length(Kills)}),
                [
                    ?assertMatch({#{class := I, node := N, pid := P, back_us := Us}, true,
                                  true} when node(P) =:= N andalso is_integer(Us) andalso Us > 0,
                                 {Kill, lists:member(Key, Keys),
                                  lists:member(maps:get(node, Kill), Nodes)})
                 || #{key := Key} = Kill <- Kills
                ]
            end
         || {I, {Target, Keys}} <- lists:enumerate(Expected)
        ],
        no_agents(Fleet, Nodes)
    end).

in_group(via) -> [{via, s_group, {g, {in_group, I}}} || I <- [1, 2]].

nodes_and_links(_) ->
    with(#{count => 3, apps => [sderl]}, fun(Fleet, [A, B, C] = Nodes) ->
        {ok, g, Nodes} = call(Fleet, A, s_group, new_s_group, [g, Nodes]),
        {ok, Links} = run(Fleet, Nodes, #{targets => [#{kind => link}], limits => #{kills => 4}}),
        [?assertMatch(#{node := N, pid := P, back_us := Us} when N < P andalso is_integer(Us), Link)
         || Link <- Links],
        ?assertEqual(4, length(Links)),
        %% One stays; the others come back, and a process that was killed there before is killed
        %% again.
        Life = call(Fleet, A, erlang, system_info, [creation]),
        {ok, Kills} = run(Fleet, Nodes, #{
            targets => [#{kind => node, fleet => Fleet, restart_ms => 0,
                          ready => {sderl_chaos_SUITE, is_ready, []}}],
            limits => #{kills => 3, never_nodes => [A]}
        }),
        [?assertMatch(#{kind := node, key := N, node := N, back_us := Us} when is_integer(Us), Kill)
         || #{node := N} = Kill <- Kills],
        ?assertEqual([], [N || #{node := N} <- Kills, N =/= B, N =/= C]),
        ?assertEqual(3, length(Kills)),
        ?assertEqual(Life, call(Fleet, A, erlang, system_info, [creation])),
        ?assertEqual(lists:sort(Nodes), lists:sort(sderl_fleet:nodes(Fleet))),
        no_agents(Fleet, Nodes)
    end).

is_ready() -> whereis(sderl_node) =/= undefined.

%% ---------------------------------------------------------------- what is not

limits(_) ->
    with(#{count => 2}, fun(Fleet, [A, B] = Nodes) ->
        [ok = call(Fleet, N, ?V, start, [[{temporary, {local, list_to_atom(lists:concat([t, I]))}}
                                          || I <- lists:seq(1, 5)] ++ [{local, never}]])
         || N <- Nodes],
        %% A process that does not come back keeps the others from being killed.
        Target = #{kind => process, class => server, find => {?V, found, []}},
        {ok, Chaos} = start(Fleet, Nodes,
                            #{targets => [Target], limits => #{at_once => 2, never => [never]}}),
        ok = sderl_fleet:await(fun() ->
            #{skipped := #{at_once := N}} = sderl_chaos:status(Chaos),
            N >= 5
        end, ?WAIT_MS),
        {ok, Two} = sderl_chaos:stop(Chaos),
        ?assertMatch([#{back_us := undefined, awaited := true}, #{back_us := undefined}], Two),
        ?assertEqual(10, length(pids(Fleet, Nodes))),
        %% With `await => false` no limit holds; in the end only the protected processes are left.
        {ok, More} = start(Fleet, Nodes,
                           #{targets => [Target#{await => false}], scope => node,
                             limits => #{at_once => 1, never => [never]}, report => self()}),
        ok = sderl_fleet:await(fun() ->
            #{skipped := #{nothing_there := N}} = sderl_chaos:status(More),
            N >= 5 andalso length(pids(Fleet, Nodes)) =:= 2
        end, ?WAIT_MS),
        {ok, Eight} = sderl_chaos:stop(More),
        ?assertEqual(8, length(Eight)),
        ?assertEqual([A, B], lists:usort([N || #{node := N} <- Eight])),
        [?assertMatch(#{awaited := false, back_us := undefined}, Kill) || Kill <- Eight],
        ?assertEqual([{local, never}, {local, never}],
                     [K || N <- Nodes, {K, _} <- call(Fleet, N, ?V, found, [])]),
        %% The exception of a user's function is reported.
        {ok, Bad} = start(Fleet, Nodes, #{targets => [Target#{find => {?V, raises, []}}]}),
        ok = sderl_fleet:await(fun() ->
            #{problems := P} = sderl_chaos:status(Bad),
            lists:sort(P) =:= [{N, server, {error, no_victims}} || N <- Nodes]
        end, ?WAIT_MS),
        {ok, []} = sderl_chaos:stop(Bad),
        no_agents(Fleet, Nodes)
    end).

%% All local names, again and again: never those of the system or of the library.
protected(_) ->
    with(#{count => 1, apps => [sasl, sderl]}, fun(Fleet, [A] = Nodes) ->
        ok = call(Fleet, A, ?V, start, [[{local, one}, {local, two}]]),
        System = fun() ->
            lists:sort([{N, call(Fleet, A, erlang, whereis, [N])}
                        || N <- call(Fleet, A, erlang, registered, []) -- [one, two]])
        end,
        Before = System(),
        {ok, Kills} = run(Fleet, Nodes, #{
            every_ms => 5, targets => [#{kind => name}, #{
                kind => process, find => {sderl_chaos_SUITE, everything, []}, await => false
            }],
            limits => #{kills => 60, at_once => infinity, never => [?V]}
        }),
        Keys = lists:usort([Key || #{kind := name, key := Key} <- Kills]),
        ?assertEqual([one, two], Keys),
        ?assertEqual(Before, System()),
        %% With the library's own allowed, they are hit, and it stays up. (One at a time: which of
        %% several is drawn also goes by what a busy machine leaves out.)
        [begin
             {ok, Own} = run(Fleet, Nodes, #{targets => [#{kind => name, names => [Name]}],
                                             limits => #{kills => 2, library => true}}),
             ?assertEqual([Name, Name], [Key || #{key := Key} <- Own])
         end || Name <- [sderl_node, sderl_subs]],
        no_agents(Fleet, Nodes)
    end).

everything() -> [{Pid, Pid} || Pid <- processes(), is_of_a_system(Pid)].

%% All but those of the tests' own connection.
is_of_a_system(Pid) ->
    case application:get_application(Pid) of
        {ok, _} -> true;
        undefined -> process_info(Pid, registered_name) =/= []
    end.

dry(_) ->
    with(#{count => 3}, fun(Fleet, Nodes) ->
        [ok = call(Fleet, N, ?V, start,
                   [[{local, list_to_atom(lists:concat([s, I]))} || I <- lists:seq(1, 9)]])
         || N <- Nodes],
        Before = pids(Fleet, Nodes),
        Lives = [call(Fleet, N, erlang, system_info, [creation]) || N <- Nodes],
        Options = #{
            dry_run => true, every_ms => 50, seed => {any, "term"}, limits => #{kills => 12},
            targets => [#{kind => process, find => {?V, found, []}}, #{kind => name, weight => 2},
                        #{kind => node, weight => 0.5, fleet => Fleet}]
        },
        {ok, Kills} = run(Fleet, Nodes, Options),
        ?assertMatch([#{dry := true, awaited := false, back_us := undefined} | _], Kills),
        ?assertEqual(Before, pids(Fleet, Nodes)),
        ?assertEqual(Lives, [call(Fleet, N, erlang, system_info, [creation]) || N <- Nodes]),
        %% The same seed, the same things: the same plan.
        {ok, Again} = run(Fleet, Nodes, Options),
        Plan = fun(Log) ->
            #{Round => maps:with([kind, class, key, node, pid], Kill)
              || #{round := Round} = Kill <- Log}
        end,
        ?assertEqual({[], true}, different(Plan(Kills), Plan(Again))),
        {ok, Other} = run(Fleet, Nodes, Options#{seed := 2}),
        ?assertMatch({[_ | _], _}, different(Plan(Kills), Plan(Other))),
        no_agents(Fleet, Nodes)
    end).

%% On a busy machine a round may be left out.
different(Plan, Other) ->
    Both = [Round || Round := _ <- Plan, is_map_key(Round, Other)],
    {[{Round, A, B}
      || Round <- Both, A <- [maps:get(Round, Plan)], B <- [maps:get(Round, Other)], A =/= B],
     Both =/= []}.

%% A group that decides by majority: names come back, and the command says what the group is.
by_majority(Config) ->
    Env = [{sderl, tick_ms, 200}, {sderl, set_aside_ms, 1000}],
    with(#{count => 3, apps => [sderl], env => Env}, fun(Fleet, [A | _] = Nodes) ->
        {ok, g, Nodes} = call(Fleet, A, s_group, new_s_group,
                              [g, Nodes, #{consistency => majority}]),
        [ok = call(Fleet, N, ?V, start, [[{via, s_group, {g, {in_group, I}}}]])
         || {I, N} <- lists:enumerate(Nodes)],
        Target = #{kind => name, group => g},
        {ok, Kills} = run(Fleet, Nodes, #{targets => [Target], limits => #{kills => 6}}),
        ?assertEqual(6, length([Us || #{back_us := Us} <- Kills, is_integer(Us)])),
        Log = filename:join(proplists:get_value(priv_dir, Config), "majority.jsonl"),
        {0, Said} = sderl_cli_program:run(Fleet, ["chaos", "--node", atom_to_list(A), "--target",
                                                  "group:g", "--every", "50ms", "--kills", "2",
                                                  "--yes", "--log", Log]),
        ?assertMatch({match, _}, re:run(Said, "group g decides by majority")),
        {ok, Text} = file:read_file(Log),
        ?assertMatch(#{<<"majority_groups">> := [<<"g">>]},
                     json:decode(hd(binary:split(Text, <<"\n">>)))),
        no_agents(Fleet, Nodes)
    end).

%% ---------------------------------------------------------------- nothing stays

service_ends(_) ->
    with(#{count => 2}, fun(Fleet, [A, B] = Nodes) ->
        Options = #{targets => [#{kind => link}], lease_ms => 1000},
        %% Its owner ends.
        Self = self(),
        Owner = spawn(
            fun() -> Self ! {chaos, start(Fleet, Nodes, Options)}, receive stop -> ok end end
        ),
        {ok, Owned} = receive {chaos, C} -> C end,
        one_agent_each(Fleet, Nodes),
        Owner ! stop,
        gone(Owned),
        no_agents(Fleet, Nodes),
        %% The service is killed: the agents hear nothing more.
        {ok, Killed} = start(Fleet, Nodes, Options),
        one_agent_each(Fleet, Nodes),
        exit(Killed, kill),
        no_agents(Fleet, Nodes),
        %% A node that stood still for longer than the lease is used again, with the old agent or a
        %% new one.
        {ok, Longer} = start(Fleet, Nodes, Options),
        ok = sderl_fleet:suspend(Fleet, B),
        ok = sderl_fleet:await(fun() -> [B] =:= maps:get(silent, sderl_chaos:status(Longer)) end,
                               ?WAIT_MS),
        ok = sderl_fleet:resume(Fleet, B),
        ok = sderl_fleet:await(fun() -> [] =:= maps:get(silent, sderl_chaos:status(Longer)) end,
                               ?WAIT_MS),
        one_agent_each(Fleet, Nodes),
        {ok, _} = sderl_chaos:stop(Longer),
        no_agents(Fleet, Nodes),
        %% A node that cannot be reached: none is left on the others.
        ok = sderl_fleet:kill(Fleet, B),
        {error, {not_reached, [{B, _}]}} = start(Fleet, Nodes, Options),
        no_agents(Fleet, [A]),
        {ok, B} = sderl_fleet:restart(Fleet, B)
    end).

%% The service is on a node of the cluster, over links.
controller_ends(_) ->
    with(#{count => 3}, fun(Fleet, [Controller, A, B] = Nodes) ->
        Victims = [A, B],
        Start = fun(Lease) ->
            Pid = call(Fleet, Controller, erlang, spawn,
                       [?MODULE, control, [#{nodes => Victims, targets => [#{kind => link}],
                                             every_ms => 100, lease_ms => Lease}]]),
            one_agent_each(Fleet, Victims),
            Pid
        end,
        true = exit_there(Fleet, Controller, Start(600_000)),
        no_agents(Fleet, Nodes),
        %% The lease would take ten minutes: they see the node go.
        _ = Start(600_000),
        ok = sderl_fleet:kill(Fleet, Controller),
        no_agents(Fleet, Victims),
        {ok, Controller} = sderl_fleet:restart(Fleet, Controller),
        %% The links stay, but the service is suspended.
        _ = Start(1000),
        ok = sderl_fleet:suspend(Fleet, Controller),
        no_agents(Fleet, Victims)
    end).

control(Options) ->
    {ok, _} = sderl_chaos:start(Options),
    receive
        stop -> ok
    end.

exit_there(Fleet, Node, Pid) -> call(Fleet, Node, erlang, exit, [Pid, kill]).

%% Nodes without our code get the agent's, and lose it again.
strangers(_) ->
    with(#{count => 2, paths => []}, fun(Fleet, Nodes) ->
        ?assertEqual([non_existing, non_existing],
                     [call(Fleet, N, code, which, [sderl_chaos_agent]) || N <- Nodes]),
        {ok, First} = start(Fleet, Nodes, #{targets => [#{kind => name}], limits => #{kills => 1}}),
        {ok, Second} = start(Fleet, Nodes,
                             #{targets => [#{kind => name}], limits => #{kills => 1}}),
        {ok, []} = sderl_chaos:stop(First),
        one_agent_each(Fleet, Nodes),
        #{silent := [], problems := []} = sderl_chaos:status(Second),
        {ok, []} = sderl_chaos:stop(Second),
        no_agents(Fleet, Nodes),
        [
            ok = sderl_fleet:await(
                fun() ->
                    not call(Fleet, N, erlang, module_loaded, [sderl_chaos_agent])
                        andalso not call(Fleet, N, erlang, check_old_code, [sderl_chaos_agent])
                end,
                ?WAIT_MS
            )
         || N <- Nodes
        ]
    end).

%% ---------------------------------------------------------------- the command line

command(Config) ->
    with(#{count => 2, connect_all => true, paths => []}, fun(Fleet, [A, B] = Nodes) ->
        true = call(Fleet, A, net_kernel, connect_node, [B]),
        %% A named process on each node that is not started again.
        Pids = [begin
            P = call(Fleet, N, erlang, spawn, [timer, sleep, [infinity]]),
            true = call(Fleet, N, erlang, register, [target, P]),
            P
        end || N <- Nodes],
        Log = filename:join(proplists:get_value(priv_dir, Config), "chaos.jsonl"),
        Args = ["--node", atom_to_list(A), "--target", "name", "--every", "50ms", "--seed", "7"],
        {0, Dry} = program(Fleet, Args ++ ["--dry-run", "--kills", "3"]),
        ?assertMatch({match, _}, re:run(Dry, "would kill name target \\(name\\) on ")),
        ?assertEqual([true, true], alive(Fleet, Pids)),
        %% Killed on the one allowed node; it does not come back, which is an error.
        Real = Args ++ ["--yes", "--never-node", atom_to_list(A), "--window", "0s..60s",
                        "--kills", "1", "--settle", "0s", "--log", Log],
        {1, Said} = program(Fleet, Real),
        ?assertMatch({match, _}, re:run(Said, "1 not back by the end")),
        ?assertEqual([true, false], alive(Fleet, Pids)),
        {ok, Text} = file:read_file(Log),
        Events = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim])],
        On = atom_to_binary(B),
        ?assertMatch(
            [
                #{<<"event">> := <<"start">>, <<"seed">> := 7},
                #{<<"event">> := <<"kill">>, <<"node">> := On, <<"key">> := <<"target">>,
                  <<"back_us">> := null},
                #{<<"event">> := <<"not_back">>, <<"number">> := 1},
                #{<<"event">> := <<"end">>, <<"kills">> := 1, <<"not_back">> := 1}
            ],
            Events
        ),
        {1, Wrong} = program(Fleet, ["--node", atom_to_list(A), "--target", "find:no_module:f",
                                     "--every", "20ms", "--window", "0s..3s", "--yes"]),
        ?assertMatch({match, _}, re:run(Wrong, "find:no_module:f on .*undef")),
        {1, Taken} = program(Fleet, Real),
        ?assertMatch({match, _}, re:run(Taken, "is there already")),
        {1, Nobody} = program(Fleet, ["--node", "nobody@127.0.0.1", "--target", "link", "--yes"]),
        ?assertMatch({match, _}, re:run(Nobody, "cannot connect to nobody@127.0.0.1")),
        {1, Stranger} = program(Fleet, Args ++ ["--yes", "--nodes", "nobody@127.0.0.1"]),
        ?assertMatch({match, _}, re:run(Stranger, "is not in the cluster")),
        {1, Typo} = program(Fleet, Args ++ ["--yes", "--never-node", "nobody@127.0.0.1"]),
        ?assertMatch({match, _},
                     re:run(Typo, "--never-node: nobody@127.0.0.1 is not in the cluster")),
        %% With --cookie-file nothing is read or written in the home folder.
        Home = filename:join(proplists:get_value(priv_dir, Config), "home"),
        ok = file:make_dir(Home),
        #{home := Theirs} = sderl_fleet:connection_info(Fleet),
        CookieFile = filename:join(filename:absname(Theirs), ".erlang.cookie"),
        {0, _} = sderl_cli_program:rest(sderl_cli_program:open(Fleet, Home, ["chaos" | Args] ++ [
            "--dry-run", "--kills", "1", "--cookie-file", CookieFile
        ])),
        ?assertEqual({error, enoent}, file:read_file(filename:join(Home, ".erlang.cookie"))),
        Cookie = filename:join(proplists:get_value(priv_dir, Config), "cookie"),
        ok = file:write_file(Cookie, "another\n"),
        {1, Refused} = program(Fleet, Args ++ ["--yes", "--cookie-file", Cookie]),
        ?assertMatch({match, _}, re:run(Refused, "is the cookie its own")),
        {2, Asked} = program(Fleet, Args),
        ?assertMatch({match, _}, re:run(Asked, "say --yes")),
        no_agents(Fleet, Nodes)
    end).

%% Ended by a signal: in order, with a complete log.
interrupted(Config) ->
    with(#{count => 2, connect_all => true}, fun(Fleet, [A, B] = Nodes) ->
        true = call(Fleet, A, net_kernel, connect_node, [B]),
        [ok = call(Fleet, N, ?V, start, [[{local, here}]]) || N <- Nodes],
        Log = filename:join(proplists:get_value(priv_dir, Config), "interrupted.jsonl"),
        Port = sderl_cli_program:open(Fleet, ["chaos", "--node", atom_to_list(A), "--target",
                                              "supervisor:sderl_chaos_victim", "--every", "100ms",
                                              "--yes", "--log", Log]),
        {os_pid, OsPid} = erlang:port_info(Port, os_pid),
        ok = sderl_fleet:await(fun() ->
            {ok, T} = file:read_file(Log),
            length(binary:matches(T, <<"\"back_us\":">>)) >= 4
        end, ?WAIT_MS),
        "" = os:cmd(io_lib:format("kill -INT ~w", [OsPid])),
        {0, _} = sderl_cli_program:rest(Port),
        no_agents(Fleet, Nodes),
        {ok, Text} = file:read_file(Log),
        ?assertMatch(#{<<"event">> := <<"end">>},
                     json:decode(lists:last(binary:split(Text, <<"\n">>, [global, trim]))))
    end).

program(Fleet, Args) -> sderl_cli_program:run(Fleet, ["chaos" | Args]).

alive(Fleet, Pids) -> [call(Fleet, node(P), erlang, is_process_alive, [P]) || P <- Pids].

%% ----------------------------------------------------------------

%% Until as many as the limit says are killed and all of them are back.
run(Fleet, Nodes, Options) ->
    {ok, Chaos} = start(Fleet, Nodes, Options),
    ok = sderl_fleet:await(fun() -> maps:get(next_ms, sderl_chaos:status(Chaos)) =:= over end,
                           ?WAIT_MS),
    sderl_chaos:stop(Chaos, ?WAIT_MS).

start(Fleet, Nodes, Options) ->
    Call = fun(Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A) end,
    sderl_chaos:start(maps:merge(#{nodes => Nodes, every_ms => 20, call => Call, seed => 4711},
                                 Options)).

pids(Fleet, Nodes) -> lists:append([call(Fleet, N, ?V, pids, []) || N <- Nodes]).

agents(Fleet, Nodes) ->
    [
        [P
         || P <- call(Fleet, N, erlang, processes, []),
            call(Fleet, N, proc_lib, translate_initial_call, [P]) =:= {sderl_chaos_agent, init, 1}]
     || N <- Nodes
    ].

%% An agent that has not heard of its service for a second, on a busy machine, is replaced.
one_agent_each(Fleet, Nodes) ->
    ok = sderl_fleet:await(fun() ->
        Agents = agents(Fleet, Nodes),
        [1 || _ <- Nodes] =:= [length(Its) || Its <- Agents] orelse Agents
    end, ?WAIT_MS).

no_agents(Fleet, Nodes) ->
    ok = sderl_fleet:await(fun() -> lists:append(agents(Fleet, Nodes)) =:= [] end, ?WAIT_MS).

gone(Pid) ->
    Monitor = monitor(process, Pid),
    receive
        {'DOWN', Monitor, process, Pid, _} -> ok
    end.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?WAIT_MS).

with(Family, Fun) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [Family#{name => n}]}),
    try
        Fun(Fleet, sderl_fleet:nodes(Fleet))
    after
        sderl_fleet:stop(Fleet)
    end.
