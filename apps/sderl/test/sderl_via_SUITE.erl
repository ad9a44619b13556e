%% SPDX-License-Identifier: Apache-2.0
-module(sderl_via_SUITE).

%% Stand-ins, monitors and the published gateway pattern. Three groups in a row, two gateways at the
%% first border and one at the other: left 1 2 3, middle 2 3 4, right 4 5.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2, group/3, process/2, heard/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [stand_in, callers, ends, supervised, monitors, linked, idle, gateway_pattern, without_groups,
     bad_input, gateway_dies, callee_node_dies].

init_per_suite(Config0) ->
    Config = sderl_ct:hold(5, calm) ++ Config0,
    {Fleet, [N1, N2, N3, N4, N5]} = fleet(Config),
    [group(Fleet, G, Ns)
     || {G, Ns} <- [{left, [N1, N2, N3]}, {middle, [N2, N3, N4]}, {right, [N4, N5]}]],
    Config.

end_per_suite(Config) -> sderl_ct:release(Config).

init_per_testcase(_, Config) ->
    {Fleet, Nodes} = fleet(Config),
    ways(Fleet, Nodes),
    [{links, sderl_ct:links(Fleet, Nodes)} | Config].

%% No test added a link, and in the end nobody stands in, or is watched, for anybody.
end_per_testcase(_, Config) ->
    {Fleet, Nodes} = fleet(Config),
    sderl_ct:same_links(Fleet, Nodes, proplists:get_value(links, Config)),
    [on(Fleet, N, fun() ->
        [exit(P, kill) || {G, _} <- s_group:own_s_groups(), P <- pids(G), node(P) =:= node()]
    end) || N <- Nodes],
    await(nothing_left, fun() ->
        case [Left
              || N <- Nodes, Left <- [on(Fleet, N, fun() ->
                  {ets:tab2list(sderl_stand_ins), ets:tab2list(sderl_monitors),
                   sderl_monitor:info()}
              end)],
                 Left =/= {[], [], #{watching => 0, watched => #{}}}] of
            [] -> true;
            Left -> Left
        end
    end).

pids(G) ->
    [P
     || {_, N} <- s_group:registered_names({s_group, G}), P <- [s_group:whereis_name(G, N)],
        is_pid(P)].

fleet(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

ways(Fleet, [N1, N2, N3, N4, N5]) ->
    [await({routes, N}, fun() ->
        case maps:get(routes, on(Fleet, N, fun() -> sderl_route:info() end)) of
            Routes -> true;
            Other -> Other
        end
    end)
     || {N, Routes} <- [{N1, [{middle, 1, [N2, N3]}, {right, 2, [N2, N3]}]},
                        {N2, [{right, 1, [N4]}]}, {N3, [{right, 1, [N4]}]},
                        {N4, [{left, 1, [N2, N3]}]}, {N5, [{left, 2, [N4]}, {middle, 1, [N4]}]}]].

exits(Fun) -> try Fun() catch exit:Reason -> {exit, Reason} end.

via(Name) -> {via, sderl_route, {right, Name}}.

%% ----------------------------------------------------------------

%% One for each process and node, local, and the process itself for members.
stand_in(Config) ->
    {Fleet, [N1, N2, _, N4, N5]} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N5, right, server),
    Find = fun(Name) -> sderl_route:whereis_name({right, Name}) end,
    ?assertEqual([Server, Server], [on(Fleet, N, fun() -> Find(server) end) || N <- [N4, N5]]),
    [{S1, S1}, {S2, S2}] = [on(Fleet, N, fun() -> {Find(server), Find(server)} end)
                            || N <- [N1, N2]],
    ?assertEqual([N1, N2], [node(S1), node(S2)]),
    %% Asked at the same time by many.
    Other = sderl_ct_server:start(Fleet, N5, right, other),
    [_] = lists:usort(on(Fleet, N1, fun() ->
        Self = self(),
        Pids = [spawn(fun() -> Self ! {self(), Find(other)} end) || _ <- lists:seq(1, 20)],
        [receive {P, S} -> S end || P <- Pids]
    end)),
    sderl_ct:kill(Fleet, Other, kill),
    ?assertEqual(undefined, on(Fleet, N1, fun() -> Find(nobody) end)),
    ?assertEqual(undefined, on(Fleet, N1, fun() -> sderl_route:whereis_name({nowhere, x}) end)),
    ?assertEqual(undefined, sderl_route:whereis_name({right, server})),
    %% Registered by its own group's nodes through the same module.
    ?assertEqual(no, on(Fleet, N1, fun() -> sderl_route:register_name({right, mine}, self()) end)),
    {ok, Mine} = on(Fleet, N4, fun() ->
        gen_server:start({via, sderl_route, {right, mine}}, sderl_ct_server, [], [])
    end),
    ?assertMatch({error, {already_started, S}} when node(S) =:= N1,
                 on(Fleet, N1, fun() ->
                     gen_server:start({via, sderl_route, {right, mine}}, sderl_ct_server, [], [])
                 end)),
    ok = on(Fleet, N1, fun() -> gen_server:stop(via(mine)) end),
    await(stopped, fun() -> not sderl_ct:alive(Fleet, Mine) end).

%% Calls and casts of many at once; a slow call delays no other.
callers(Config) ->
    {Fleet, [N1, _, _, _, N5]} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N5, right, server),
    on(Fleet, N1, fun() ->
        Never = gen_server:send_request(via(server), never),
        Late = gen_server:send_request(via(server), {later, 300, late}),
        now = gen_server:call(via(server), {echo, now}, 60_000),
        {reply, late} = gen_server:wait_response(Late, 60_000),
        timeout = gen_server:wait_response(Never, 0),
        {exit, {timeout, {gen_server, call, _}}} =
            exits(fun() -> gen_server:call(via(server), never, 50) end)
    end),
    Results = on(Fleet, N1, fun() ->
        Self = self(),
        Pids = [spawn(fun() -> Self ! {self(), caller(I)} end) || I <- lists:seq(1, 10)],
        [receive {P, R} -> R end || P <- Pids]
    end),
    ?assertEqual(lists:duplicate(10, lists:duplicate(20, ok)), Results),
    Noted = sderl_ct_server:noted(Fleet, Server),
    [?assertEqual([{X, K} || K <- lists:seq(1, 20), X <- [cast, call, pid, raw]],
                  [{X, K} || {I, X, K} <- Noted, I =:= J])
     || J <- lists:seq(1, 10)],
    %% To nobody.
    ?assertEqual(ok, on(Fleet, N1, fun() -> gen_server:cast(via(nobody), x) end)),
    ?assertMatch({exit, {noproc, {gen_server, call, _}}},
                 on(Fleet, N1, fun() -> exits(fun() -> gen_server:call(via(nobody), x) end) end)),
    %% Many at once are in order.
    on(Fleet, N1, fun() ->
        S = sderl_route:whereis_name({right, server}),
        [S ! {many, K} || K <- lists:seq(1, 3000)],
        done = gen_server:call(S, {note, done}, 60_000)
    end),
    ?assertEqual(lists:seq(1, 3000), [K || {many, K} <- sderl_ct_server:noted(Fleet, Server)]),
    {status, _, _, _} = on(Fleet, N1,
                           fun() -> sys:get_status(sderl_route:whereis_name({right, server})) end),
    ok.

caller(I) ->
    S = sderl_route:whereis_name({right, server}),
    [begin
        ok = gen_server:cast(via(server), {I, cast, K}),
        {I, call, K} = gen_server:call(via(server), {note, {I, call, K}}, 60_000),
        ok = gen_server:cast(S, {I, pid, K}),
        S ! {I, raw, K},
        {I, K} = gen_server:call(S, {echo, {I, K}}, 60_000),
        ok
     end || K <- lists:seq(1, 20)].

%% Callers and monitors learn how the callee ended; its last reply comes first.
ends(Config) ->
    {Fleet, [N1, _, _, _, N5]} = fleet(Config),
    Died = fun(Fun) ->
        Server = sderl_ct_server:start(Fleet, N5, right, server),
        Result = on(Fleet, N1, fun() ->
            S = sderl_route:whereis_name({right, server}),
            Mon = monitor(process, S),
            Result = exits(fun() -> Fun(S, Server) end),
            receive {'DOWN', Mon, process, S, Reason} -> {Reason, Result} end
        end),
        await(gone, fun() ->
            undefined =:= on(Fleet, N1, fun() -> sderl_route:whereis_name({right, server}) end)
        end),
        Result
    end,
    ?assertMatch({why, {exit, {why, {gen_server, call, [_, {die, why} | _]}}}},
                 Died(fun(S, _) -> gen_server:call(S, {die, why}) end)),
    ?assertMatch({why, {exit, {why, {gen_server, call, _}}}},
                 Died(fun(_, _) -> gen_server:call(via(server), {die, why}) end)),
    ?assertEqual({normal, ok}, Died(fun(_, _) -> gen_server:stop(via(server)) end)),
    ?assertEqual({{shutdown, x}, ok},
                 Died(fun(S, _) -> gen_server:stop(S, {shutdown, x}, 60_000) end)),
    ?assertEqual({crash, true}, Died(fun(S, _) -> exit(S, crash) end)),
    ?assertMatch({killed, {exit, {killed, {gen_server, call, _}}}}, Died(fun(S, Server) ->
        spawn(fun() -> kill_when_asked(S, Server) end),
        gen_server:call(S, {later, 60_000, asked}, infinity)
    end)).

kill_when_asked(S, Server) ->
    case gen_server:call(S, noted, 60_000) of
        [asked] -> sderl_gateway:s_group_spawn(node(Server), erlang, exit, [Server, kill]);
        [] -> kill_when_asked(S, Server)
    end.

%% A new process under the name is found by the name.
supervised(Config) ->
    {Fleet, [N1, _, _, _, N5]} = fleet(Config),
    Sup = on(Fleet, N5, fun() ->
        Self = self(),
        spawn(fun() ->
            _ = process_flag(trap_exit, true),
            {ok, Sup} = supervisor:start_link(?MODULE, server),
            Self ! {started, Sup},
            receive {'EXIT', Sup, _} -> ok end
        end),
        receive {started, Sup} -> Sup end
    end),
    %% Until the gateway has heard of the new process the name leads to the one that has ended.
    Back = fun(Time) ->
        await({back, Time}, fun() ->
            {ok, x} =:=
                on(Fleet, N1, fun() ->
                    try {ok, gen_server:call(via(server), {echo, x})} catch exit:E -> E end
                end)
        end)
    end,
    [begin
         Back(K),
         on(Fleet, N1, fun() ->
             {exit, {{crash, K}, _}} =
                 exits(fun() -> gen_server:call(via(server), {die, {crash, K}}, 60_000) end)
         end)
     end || K <- [1, 2, 3]],
    Back(last),
    sderl_ct:kill(Fleet, Sup, kill).

init(server) ->
    {ok, {#{intensity => 100}, [#{id => server, start => {
        gen_server, start_link, [{via, sderl_route, {right, server}}, sderl_ct_server, [], []]
    }}]}}.

monitors(Config) ->
    {Fleet, [N1, N2, _, N4, N5]} = fleet(Config),
    Down = fun(Ref) -> receive {'DOWN', Ref, process, To, Why} -> {To, Why} end end,
    %% From afar, from a gateway, from a member.
    [begin
         P = process(Fleet, N5),
         yes = on(Fleet, N5, fun() -> s_group:register_name(right, {p, N}, P) end),
         Watcher = process(Fleet, N),
         on(Fleet, N, fun() ->
             Watcher ! {apply, fun() -> [sderl_route:monitor({right, {p, N}}) || _ <- [1, 2]] end}
         end),
         [] = heard(Fleet, Watcher),
         #{} = on(Fleet, N, fun() -> sderl_monitor:info() end),
         %% A member monitors over its own link: the process must live until that has arrived.
         await(watched, fun() ->
             case N of
                 N4 -> 2 =< on(Fleet, N5, fun() ->
                     {monitored_by, By} = process_info(P, monitored_by),
                     length([M || M <- By, node(M) =:= N4])
                 end);
                 _ -> #{N => 2} =:=
                          on(Fleet, N5, fun() -> maps:get(watched, sderl_monitor:info()) end)
             end
         end),
         sderl_ct:kill(Fleet, P, why),
         await({told, N}, fun() ->
             case heard(Fleet, Watcher) of
                 [{'DOWN', A, process, {right, {p, N}}, why},
                  {'DOWN', B, process, {right, {p, N}}, why}]
                   when A =/= B ->
                     true;
                 Other -> Other
             end
         end)
     end || N <- [N1, N2, N4]],
    [?assertEqual({{right, nobody}, noproc},
                  on(Fleet, N, fun() -> Down(sderl_route:monitor({right, nobody})) end))
     || N <- [N1, N5]],
    ?assertEqual({{nowhere, x}, lost_route},
                 on(Fleet, N1, fun() -> Down(sderl_route:monitor({nowhere, x})) end)),
    ?assertEqual({{right, x}, not_running}, Down(sderl_route:monitor({right, x}))),
    %% Ended by the one who watches, or with it.
    P = process(Fleet, N5),
    yes = on(Fleet, N5, fun() -> s_group:register_name(right, p, P) end),
    Watched = fun(Count) -> await({watched, Count}, fun() ->
        on(Fleet, N5, fun() -> maps:get(watched, sderl_monitor:info()) end) =:=
            case Count of 0 -> #{}; _ -> #{N1 => Count} end
    end) end,
    Watcher = process(Fleet, N1),
    on(Fleet, N1, fun() ->
        Watcher ! {apply, fun() -> [sderl_route:monitor({right, p}) || _ <- lists:seq(1, 100)] end}
    end),
    Watched(100),
    on(Fleet, N1, fun() -> exit(Watcher, kill) end),
    Watched(0),
    ?assertEqual([true, true, false, true], on(Fleet, N1, fun() ->
        Ref = sderl_route:monitor({right, p}),
        [sderl_route:demonitor(Ref, [info]), sderl_route:demonitor(Ref),
         sderl_route:demonitor(Ref, [flush, info]), sderl_route:demonitor(make_ref())]
    end)),
    %% The server that watches is killed, at either end: nothing is lost.
    Last = process(Fleet, N1),
    on(Fleet, N1, fun() -> Last ! {apply, fun() -> sderl_route:monitor({right, p}) end} end),
    Watched(1),
    [begin
        Old = on(Fleet, N, fun() -> whereis(sderl_monitor) end),
        sderl_ct:kill(Fleet, Old, kill),
        await(again, fun() -> on(Fleet, N, fun() -> is_pid(whereis(sderl_monitor)) end) end),
        Watched(1)
     end || N <- [N1, N5]],
    sderl_ct:kill(Fleet, P, end_of_test),
    await(told, fun() ->
        case heard(Fleet, Last) of
            [{'DOWN', _, process, {right, p}, end_of_test}] -> true;
            Other -> Other
        end
    end).

%% Links to a stand-in are as links to the process.
linked(Config) ->
    {Fleet, [N1, _, _, _, N5]} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N5, right, server),
    Linker = process(Fleet, N1),
    on(Fleet, N1, fun() ->
        Linker ! {apply, fun() -> link(sderl_route:whereis_name({right, server})) end}, ok
    end),
    [] = heard(Fleet, Linker),
    sderl_ct:kill(Fleet, Linker, broken),
    await(broken_too, fun() -> not sderl_ct:alive(Fleet, Server) end),
    Second = sderl_ct_server:start(Fleet, N5, right, server),
    Trapping = process(Fleet, N1),
    on(Fleet, N1, fun() ->
        Trapping ! {apply, fun() ->
            process_flag(trap_exit, true), link(sderl_route:whereis_name({right, server}))
        end},
        ok
    end),
    [] = heard(Fleet, Trapping),
    %% Asked once, it is known to live.
    x = on(Fleet, N1, fun() -> gen_server:call(via(server), {echo, x}, 60_000) end),
    sderl_ct:kill(Fleet, Second, why),
    await(exit, fun() ->
        case heard(Fleet, Trapping) of [{'EXIT', _, why}] -> true; Other -> Other end
    end).

%% An unused stand-in ends, one that is monitored stays.
idle(Config) ->
    {Fleet, [N1, _, _, _, N5]} = fleet(Config),
    Servers = [sderl_ct_server:start(Fleet, N5, right, N) || N <- [needed, left_alone]],
    Options = on(Fleet, N1, fun() -> sderl_dir:options() end),
    on(Fleet, N1, fun() -> sderl_dir:options(Options#{stand_in_idle_ms => 100}) end),
    Alone = on(Fleet, N1, fun() -> sderl_route:whereis_name({right, left_alone}) end),
    Holder = process(Fleet, N1),
    Needed = on(Fleet, N1, fun() ->
        Self = self(),
        Holder ! {apply, fun() -> Self ! {held, hold({right, needed})} end},
        receive {held, S} -> S end
    end),
    await(ended, fun() -> not sderl_ct:alive(Fleet, Alone) end),
    ?assertEqual(true, sderl_ct:alive(Fleet, Needed)),
    on(Fleet, N1, fun() -> sderl_dir:options(Options) end),
    %% It comes again, and does not end before the call reaches it.
    ?assertEqual(x, on(Fleet, N1,
                       fun() -> gen_server:call(via(left_alone), {echo, x}, 60_000) end)),
    ?assertEqual([], heard(Fleet, Holder)),
    [sderl_ct:kill(Fleet, S, kill) || S <- Servers].

%% Monitored before it was idle for long.
hold(Name) ->
    S = sderl_route:whereis_name(Name),
    Mon = monitor(process, S),
    receive
        {'DOWN', Mon, process, S, _} -> hold(Name)
    after 0 ->
        case is_process_alive(S) of
            true -> S;
            false -> receive {'DOWN', Mon, process, S, _} -> hold(Name) end
        end
    end.

gateway_pattern(Config) ->
    {Fleet, [N1, _, _, N4, N5]} = fleet(Config),
    Sink = process(Fleet, N5),
    yes = on(Fleet, N5, fun() -> s_group:register_name(right, sink, Sink) end),
    on(Fleet, N5, fun() -> register(sink, Sink) end),
    [on(Fleet, N, fun() ->
        [{N, K, D} = sderl_gateway:s_group_send(D, {N, K, D})
         || K <- lists:seq(1, 100), D <- [Sink, {right, sink}, {sink, N5}]]
    end)
     || N <- [N1, N5]],
    await(all, fun() -> length(heard(Fleet, Sink)) =:= 600 end),
    [?assertEqual(lists:seq(1, 100), [K || {S, K, D1} <- heard(Fleet, Sink), S =:= N, D1 =:= D])
     || N <- [N1, N5], D <- [Sink, {right, sink}, {sink, N5}]],
    here = on(Fleet, N5, fun() -> sderl_gateway:s_group_send(sink, here) end),
    ?assertEqual({exit, {badarg, {{right, nobody}, x}}}, on(
        Fleet, N5, fun() -> exits(fun() -> sderl_gateway:s_group_send({right, nobody}, x) end) end
    )),
    ?assertEqual({exit, {badarg, {{nowhere, nobody}, x}}}, on(Fleet, N1, fun() ->
        exits(fun() -> sderl_gateway:s_group_send({nowhere, nobody}, x) end)
    end)),
    %% Spawned there, and here.
    ?assertEqual(N5, node(on(Fleet, N1, fun() ->
        sderl_gateway:s_group_spawn(N5, sderl_ct, idle, [fun erlang:node/0, []])
    end))),
    Spawned = [on(Fleet, N1,
                  fun() -> node(sderl_gateway:s_group_spawn(right, erlang, node, [])) end)
               || _ <- lists:seq(1, 30)],
    ?assertEqual(lists:sort([N4, N5]), lists:usort(Spawned)),
    ?assertEqual({error, no_route},
                 on(Fleet, N1,
                    fun() -> sderl_gateway:s_group_spawn(nowhere, erlang, node, []) end)),
    ?assertEqual({error, no_route},
                 on(Fleet, N1,
                    fun() -> sderl_gateway:s_group_spawn('no@where', erlang, node, []) end)),
    %% The same program without any of this.
    Self = self(),
    ?assertEqual(x, sderl_gateway:s_group_send(Self, x)),
    receive x -> ok end,
    [begin
        Pid = sderl_gateway:s_group_spawn(W, erlang, send, [Self, W]),
        receive W -> ok end,
        ?assertEqual(node(), node(Pid))
    end || W <- [node(), some_group]].

%% The same program on nodes in no group, which connect as any others.
without_groups(_) ->
    sderl_ct:with(2, calm, fun(Fleet, [N1, N2]) ->
        Sink = process(Fleet, N2),
        on(Fleet, N2, fun() -> register(sink, Sink) end),
        [x = on(Fleet, N1, fun() -> sderl_gateway:s_group_send(To, x) end)
         || To <- [Sink, {sink, N2}]],
        await(both, fun() -> [x, x] =:= heard(Fleet, Sink) end),
        ?assertEqual(N2, node(
            on(Fleet, N1, fun() -> sderl_gateway:s_group_spawn(N2, timer, sleep, [infinity]) end)
        )),
        ?assertEqual({error, no_route},
                     on(Fleet, N1,
                        fun() -> sderl_gateway:s_group_spawn(some_group, erlang, node, []) end)),
        ?assertEqual(undefined,
                     on(Fleet, N1, fun() -> sderl_route:whereis_name({some_group, x}) end))
    end).

bad_input(Config) ->
    {Fleet, [N1 | _]} = fleet(Config),
    Bad = fun(M, F, Args) ->
        on(Fleet, N1, fun() ->
            try
                apply(M, F, Args)
            catch
                error:{badarg, {M1, G, A}, #{argument := I}} -> {M1, G, A, I}
            end
        end)
    end,
    ?assertEqual({sderl_route, monitor, 1, 1}, Bad(sderl_route, monitor, [x])),
    ?assertEqual({sderl_route, demonitor, 1, 1}, Bad(sderl_route, demonitor, [x])),
    ?assertEqual({sderl_route, demonitor, 2, 2}, Bad(sderl_route, demonitor, [make_ref(), [all]])),
    ?assertEqual({sderl_route, whereis_name, 1, 1}, Bad(sderl_route, whereis_name, [x])),
    ?assertEqual({sderl_gateway, s_group_send, 2, 1}, Bad(sderl_gateway, s_group_send, ["x", x])),
    ?assertEqual({sderl_gateway, s_group_spawn, 4, 4},
                 Bad(sderl_gateway, s_group_spawn, [x, m, f, a])),
    %% Messages that make no sense are counted and harm nobody.
    Count = fun() ->
        on(Fleet, N1, fun() ->
            [C
             || {M, _} = C <- sderl_refused:messages(),
                lists:member(M, [sderl_monitor, sderl_twin, sderl_gateway_agent])]
        end)
    end,
    Before = maps:from_list(Count()),
    on(Fleet, N1, fun() ->
        [sderl_monitor ! M
         || M <- [nonsense, {sderl_watch, 2, node(), {1, 1}, {have, 1, 1, [], [], []}},
                  {sderl_watch, 1, node(), {1, 1}, {want, a, [], [], []}}]],
        sderl_twin:deliver(self(), nonsense),
        sderl_gateway_agent ! nonsense
    end),
    await(counted, fun() ->
        After = maps:from_list(Count()),
        Diff = [{M, maps:get(M, After, 0) - maps:get(M, Before, 0)}
                || M <- [sderl_gateway_agent, sderl_monitor, sderl_twin]],
        Diff =:= [{sderl_gateway_agent, 1}, {sderl_monitor, 3}, {sderl_twin, 1}] orelse Diff
    end).

%% One of two gateways is killed under calls, casts and messages: the stand-in stays, and all arrive
%% once and in order.
gateway_dies(Config) ->
    {Fleet, [N1, N2, _, _, N5] = Nodes} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N5, right, server),
    StandIn = on(Fleet, N1, fun() -> sderl_route:whereis_name({right, server}) end),
    Senders = on(Fleet, N1,
                 fun() -> [spawn(?MODULE, sending, [StandIn, I, 1]) || I <- lists:seq(1, 10)] end),
    Noted = fun() -> sderl_ct_server:noted(Fleet, Server) end,
    await(sending, fun() -> length(Noted()) > 500 end),
    sderl_fleet:kill(Fleet, N2),
    Before = length(Noted()),
    await(sending_again, fun() -> length(Noted()) > Before + 2000 end),
    Made = on(Fleet, N1, fun() ->
        Made = [begin P ! {stop, self()}, receive {made, P, K} -> K end end || P <- Senders],
        x = gen_server:call(StandIn, {echo, x}, 60_000),
        Made
    end),
    Arrived = maps:groups_from_list(fun({I, _}) -> I end, fun({_, K}) -> K end, Noted()),
    ?assertEqual(#{I => lists:seq(1, K) || {I, K} <- lists:enumerate(Made)}, Arrived),
    ?assertEqual(StandIn, on(Fleet, N1, fun() -> sderl_route:whereis_name({right, server}) end)),
    {ok, N2} = sderl_fleet:restart(Fleet, N2),
    ways(Fleet, Nodes).

sending(StandIn, I, K) ->
    receive {stop, From} -> From ! {made, self(), K - 1}
    after 1 ->
        case K rem 3 of
            0 -> {I, K} = gen_server:call(StandIn, {note, {I, K}}, 60_000);
            1 -> ok = gen_server:cast(StandIn, {I, K});
            2 -> StandIn ! {I, K}
        end,
        sending(StandIn, I, K + 1)
    end.

%% Watched processes of a node that dies, or to which there is no way any more.
callee_node_dies(Config) ->
    {Fleet, [N1, _, _, N4, N5] = Nodes} = fleet(Config),
    _ = sderl_ct_server:start(Fleet, N5, right, server),
    Watch = fun() -> on(Fleet, N1, fun() ->
        S = sderl_route:whereis_name({right, server}),
        Self = self(),
        Pid = spawn(fun() ->
            Mon = sderl_route:monitor({right, server}),
            Self ! {self(), started},
            {exit, {Reason, {gen_server, call, _}}} =
                exits(fun() -> gen_server:call(S, never, infinity) end),
            receive {'DOWN', Mon, process, {right, server}, Why} -> told({Reason, Why}) end
        end),
        receive {Pid, started} -> ok end,
        %% It is in the call: whoever calls one that has ended hears that there is none.
        ok = sderl_fleet:await(fun() ->
            {monitors, Monitors} = process_info(Pid, monitors),
            lists:member({process, S}, Monitors)
        end, 60_000),
        Pid
    end) end,
    Told = fun(Pid) ->
        await(told, fun() -> on(Fleet, N1, fun() ->
            Pid ! {told, self()},
            receive {told, Pid, What} -> What =/= x after 100 -> false end end) end),
        on(Fleet, N1, fun() -> Pid ! {told, self()}, receive {told, Pid, What} -> What end end)
    end,
    First = Watch(),
    await(watched, fun() ->
        #{watching := N} = on(Fleet, N1, fun() -> sderl_monitor:info() end), N =:= 2 orelse N
    end),
    sderl_fleet:kill(Fleet, N5),
    ?assertEqual({noconnection, noconnection}, Told(First)),
    ?assertEqual(undefined, on(Fleet, N1, fun() -> sderl_route:whereis_name({right, server}) end)),
    {ok, N5} = sderl_fleet:restart(Fleet, N5),
    ways(Fleet, Nodes),
    _ = N4.

told(What) -> receive {told, From} -> From ! {told, self(), What}, told(What) end.
