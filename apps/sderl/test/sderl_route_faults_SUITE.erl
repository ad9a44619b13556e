%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_faults_SUITE).

%% Routing while something is broken. Two groups with three gateways between: left 1 2 G G G, right
%% G G G 6 7.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, group/3, process/2, heard/2]).

-define(QUEUE, 200).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [order, stopped_gateway, stopped_receiver, flood, loop, killed_processes, moving_name,
     leaving_gateway, deleted_group, killed_gateways, late_answers].

init_per_suite(Config0) ->
    Config = sderl_ct:hold(7, [{route_queue, ?QUEUE} | sderl_ct:env(calm)]) ++ Config0,
    {Fleet, [N1, N2, G1, G2, G3, N6, N7]} = fleet(Config),
    [group(Fleet, G, Ns)
     || {G, Ns} <- [{left, [N1, N2, G1, G2, G3]}, {right, [G1, G2, G3, N6, N7]}]],
    Config.

end_per_suite(Config) -> sderl_ct:release(Config).

init_per_testcase(_, Config) ->
    ways(Config),
    Config.

%% Whatever a test left standing still runs again for the next.
end_per_testcase(_, Config) ->
    {Fleet, Nodes} = fleet(Config),
    [sderl_fleet:resume(Fleet, N) || N <- Nodes],
    ok.

fleet(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

ways(Config) ->
    {Fleet, [N1, N2, G1, G2, G3, N6, N7]} = fleet(Config),
    [way(Fleet, N, G, [G1, G2, G3]) || {Ns, G} <- [{[N1, N2], right}, {[N6, N7], left}], N <- Ns].

way(Fleet, Node, Group, First) ->
    await({way, Node, Group, First}, fun() ->
        Routes = maps:get(routes, on(Fleet, Node, fun() -> sderl_route:info() end)),
        lists:member({Group, 1, First}, Routes) orelse Routes
    end).

await(What, Fun) -> sderl_ct:await(What, Fun).

register(Fleet, Group, Name, Pid) ->
    yes = on(Fleet, node(Pid), fun() -> s_group:re_register_name(Group, Name, Pid) end),
    Pid.

%% Callers on a node, that note what they ask at a server.
callers(Fleet, Node, To, Count) -> callers(Fleet, To, [Node || _ <- lists:seq(1, Count)]).

callers(Fleet, To, Nodes) ->
    Callers = [on(Fleet, Node, fun() -> spawn(?MODULE, caller, [To, I]) end)
               || {I, Node} <- lists:enumerate(Nodes)],
    progress(Fleet, Callers),
    Callers.

caller(To, I) ->
    try sderl_route_SUITE:caller(To, I)
    catch Class:Reason:Stack -> sderl_route_SUITE:failed({Class, Reason, Stack})
    end.

%% Each is answered a few more.
progress(Fleet, Callers) ->
    Before = [answers(Fleet, C) || C <- Callers],
    await(progress, fun() ->
        lists:all(fun({C, B}) -> more(B, answers(Fleet, C)) end, lists:zip(Callers, Before))
    end),
    ?assertEqual([], [stop(Fleet, C) || C <- Callers, answers(Fleet, C) =:= infinity]).

%% Of one whose call failed there are no more to wait for.
more(Before, Now) -> Before =:= infinity orelse Now =:= infinity orelse Now > Before + 2.

answers(Fleet, C) -> ask(Fleet, C, answers).
stop(Fleet, C) -> ask(Fleet, C, stop).

%% No call takes longer than it may.
ask(Fleet, Caller, What) ->
    on(Fleet, node(Caller), fun() ->
        Ref = make_ref(),
        Caller ! {What, self(), Ref},
        receive {Ref, Answer} -> Answer
        after 25_000 -> exit({stuck, process_info(Caller, [current_stacktrace, messages])})
        end
    end).

%% No call failed, each that was answered was asked, and none was asked twice.
once(Fleet, Callers, Servers) ->
    Results = [stop(Fleet, C) || C <- Callers],
    ?assertEqual([], [Error || {Error, _} <- Results, Error =/= none]),
    Noted = [sderl_ct_server:noted(Fleet, S) || S <- Servers],
    [?assertEqual([], Ns -- lists:usort(Ns)) || Ns <- Noted],
    ?assertEqual([], [{I, K} || {I, {_, N}} <- lists:enumerate(Results), K <- lists:seq(1, N)] --
                     lists:usort(lists:append(Noted))).

%% A process that is told of what was not delivered, and sends.
sender(Fleet, Node) ->
    P = process(Fleet, Node),
    on(Fleet, Node, fun() -> P ! {apply, fun() -> ok = sderl_route:reports(true) end}, ok end),
    P.

send(Fleet, P, Fun) -> on(Fleet, node(P), fun() -> P ! {apply, Fun}, ok end).

%% What a sender was told: how many messages, by reason.
refused(Fleet, P) ->
    maps:map(fun(_, Ns) -> lists:sum(Ns) end,
             maps:groups_from_list(fun({R, _}) -> R end, fun({_, N}) -> N end,
                                   [{R, N} || {sderl_undelivered, _, R, N} <- heard(Fleet, P)])).

%% All that was sent is delivered or refused.
accounted(Fleet, P, To, Sent) ->
    await({accounted, Sent}, fun() ->
        Refused = refused(Fleet, P),
        Got = length(heard(Fleet, To)),
        Got + lists:sum(maps:values(Refused)) =:= Sent orelse {Got, Refused}
    end),
    refused(Fleet, P).

rises([A | [B | _] = Rest]) -> A < B andalso rises(Rest);
rises(_) -> true.

%% ---------------------------------------------------------------- order

%% Over one, two and three gateways that are there all the time: what one sends comes in order, and
%% takes one way.
order(Config) ->
    {Fleet, [N1, N2, G1, G2, _, N6, _]} = fleet(Config),
    group(Fleet, one, [G1, N6]),
    group(Fleet, two, [G1, G2, N6]),
    [[way(Fleet, N, G, First) || N <- [N1, N2]] || {G, First} <- [{one, [G1]}, {two, [G1, G2]}]],
    [begin
         To = register(Fleet, G, sink, process(Fleet, N6)),
         Senders = [{N, K} || N <- [N1, N2], K <- lists:seq(1, 10)],
         [on(Fleet, N, fun() ->
             spawn(fun() -> [ok = sderl_route:send({G, sink}, {S, I}) || I <- lists:seq(1, 40)] end)
         end) || {N, _} = S <- Senders],
         await(all, fun() -> length(heard(Fleet, To)) =:= 40 * length(Senders) end),
         Heard = heard(Fleet, To),
         [?assertEqual(lists:seq(1, 40), [I || {T, I} <- Heard, T =:= S]) || S <- Senders],
         %% And the gateways share the work.
         ok = on(Fleet, N6, fun() -> s_group:unregister_name(G, sink) end)
     end || G <- [one, two, right]],
    [sderl_ct:delete(Fleet, G, G1) || G <- [one, two]].

%% ---------------------------------------------------------------- stopped nodes

%% A stopped gateway is avoided after three beats, calls meanwhile take another way, and calls that
%% were held in it are not executed again when it runs again.
stopped_gateway(Config) ->
    {Fleet, [N1, _, G1, G2, G3, _, N7]} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N7, right, server),
    Callers = callers(Fleet, N1, {right, server}, 8),
    ok = sderl_fleet:suspend(Fleet, G1),
    progress(Fleet, Callers),
    way(Fleet, N1, right, [G2, G3]),
    way(Fleet, N7, left, [G2, G3]),
    ?assertMatch(#{silent := [G1]}, on(Fleet, N1, fun() -> sderl_route:info() end)),
    progress(Fleet, Callers),
    ok = sderl_fleet:resume(Fleet, G1),
    ways(Config),
    progress(Fleet, Callers),
    once(Fleet, Callers, [Server]),
    sderl_ct:kill(Fleet, Server, kill).

%% Messages for a stopped receiver wait at the gateway, up to a limit. Others do not wait.
stopped_receiver(Config) ->
    {Fleet, [N1, _, G1, G2, G3, N6, N7]} = fleet(Config),
    Slow = register(Fleet, right, slow, process(Fleet, N6)),
    Quick = register(Fleet, right, quick, process(Fleet, N7)),
    Memory = fun() ->
        lists:max([on(Fleet, G, fun() -> erlang:memory(total) end) || G <- [G1, G2, G3]])
    end,
    Before = Memory(),
    ok = sderl_fleet:suspend(Fleet, N6),
    P = sender(Fleet, N1),
    Sent = 900,
    send(Fleet, P, fun() ->
        [begin
             ok = sderl_route:send({right, slow}, {I, binary:copy(<<I:32>>, 16_384)}),
             ok = sderl_route:send({right, quick}, I)
         end || I <- lists:seq(1, Sent)]
    end),
    %% In order and all of it, but for what came while the gateway's own queue was too long.
    await(quick, fun() ->
        Told = lists:sum([N || {sderl_undelivered, {right, quick}, _, N} <- heard(Fleet, P)]),
        length(heard(Fleet, Quick)) + Told =:= Sent
    end),
    ?assert(rises(heard(Fleet, Quick))),
    await(busy, fun() ->
        [] =/= [x || {sderl_undelivered, {right, slow}, busy, _} <- heard(Fleet, P)]
    end),
    %% Told once for many.
    ?assert(length(heard(Fleet, P)) * 4 < Sent),
    ?assert(Memory() - Before < 60 * 1024 * 1024),
    ok = sderl_fleet:resume(Fleet, N6),
    await(slow, fun() ->
        Told = lists:sum([N || {sderl_undelivered, {right, slow}, _, N} <- heard(Fleet, P)]),
        Got = on(Fleet, N6,
                 fun() -> Slow ! {heard, self(), Slow}, receive {Slow, Ms} -> length(Ms) end end),
        Got + Told =:= Sent orelse {Got, Told}
    end),
    Numbers = on(Fleet, N6, fun() ->
        Slow ! {heard, self(), Slow},
        receive {Slow, Ms} -> [I || {I, _} <- Ms] end
    end),
    ?assert(length(Numbers) >= ?QUEUE),
    ?assert(rises(Numbers)),
    [sderl_ct:kill(Fleet, X, kill) || X <- [P, Slow, Quick]].

%% ---------------------------------------------------------------- too much, and in circles

%% More than the gateways' queues take: every message is delivered or reported.
flood(Config) ->
    {Fleet, [N1, _, G1, G2, G3, _, N7]} = fleet(Config),
    To = register(Fleet, right, sink, process(Fleet, N7)),
    P = sender(Fleet, N1),
    Each = fun(F) ->
        [on(Fleet, G, fun() -> [F(sderl_route_send:forwarder(K)) || K <- lists:seq(0, 7)], ok end)
         || G <- [G1, G2, G3]]
    end,
    Waiting = fun() ->
        lists:sum([on(Fleet, G, fun() -> lists:sum(
            [element(2, process_info(whereis(sderl_route_send:forwarder(K)), message_queue_len))
            || K <- lists:seq(0, 7)]
        ) end) || G <- [G1, G2, G3]])
    end,
    Each(fun sys:suspend/1),
    Sent = 10 * ?QUEUE,
    send(Fleet, P, fun() ->
        [ok = sderl_route:send(D, I) || I <- lists:seq(1, Sent div 2), D <- [{right, sink}, To]]
    end),
    await(waiting, fun() -> Waiting() >= Sent end),
    Each(fun sys:resume/1),
    #{busy := Busy} = accounted(Fleet, P, To, Sent),
    ?assert(Busy >= Sent - 8 * ?QUEUE),
    [sderl_ct:kill(Fleet, X, kill) || X <- [P, To]].

%% Two nodes each take the other for the way: the message ends, and is reported.
loop(Config) ->
    {Fleet, [N1, _, G1 | _]} = fleet(Config),
    Forwarded = fun() ->
        lists:sum([maps:get(forwarded, on(Fleet, N, fun() -> sderl_route_report:info() end))
                   || N <- [N1, G1]])
    end,
    Rows = [{N1, {{group, circle}, 1, {G1}}}, {G1, {{group, circle}, 1, {N1}}}],
    Misled = fun() ->
        [true = on(Fleet, N, fun() -> ets:insert(sderl_routes, Row) end) || {N, Row} <- Rows]
    end,
    P = sender(Fleet, N1),
    %% Routes that are worked out meanwhile take the wrong ones away: the routers stand still.
    Routers = fun(F) -> [on(Fleet, N, fun() -> F(sderl_router) end) || N <- [N1, G1]] end,
    Routers(fun sys:suspend/1),
    Misled(),
    Before = Forwarded(),
    send(Fleet, P, fun() -> [ok = sderl_route:send({circle, x}, I) || I <- lists:seq(1, 10)] end),
    await(told, fun() -> #{hop_limit => 10} =:= refused(Fleet, P) end),
    await(counted, fun() -> Forwarded() - Before >= 10 * 15 end),
    ?assertEqual(10 * 15, Forwarded() - Before),
    Routers(fun sys:resume/1),
    await(limited, fun() ->
        Misled(),
        Answer = on(Fleet, N1, fun() -> sderl_route:call({circle, x}, y, 60_000) end),
        Answer =:= {error, hop_limit} orelse Answer
    end),
    [true = on(Fleet, N, fun() -> ets:delete(sderl_routes, {group, circle}) end) || {N, _} <- Rows],
    sderl_ct:kill(Fleet, P, kill).

%% ---------------------------------------------------------------- what dies and moves

%% Processes of the library die everywhere: calls go on, routes stay, and who wants to be told still
%% is.
killed_processes(Config) ->
    sderl_ct:seed(),
    {Fleet, [N1, _, G1, G2, G3, _, N7] = Nodes} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N7, right, server),
    Callers = callers(Fleet, N1, {right, server}, 5),
    P = sender(Fleet, N1),
    [begin
         Node = lists:nth(rand:uniform(5), [N1, G1, G2, G3, N7]),
         Name = lists:nth(rand:uniform(4), [sderl_router,
                                            sderl_route_report,
                                            sderl_route_send:forwarder(rand:uniform(8) - 1),
                                            sderl_route_send:forwarder(I)]),
         on(Fleet, Node,
            fun() -> _ = [exit(Pid, kill) || Pid <- [whereis(Name)], is_pid(Pid)], ok end),
         ?assertMatch([_ | _], on(Fleet, N1, fun() -> sderl_route:groups() end)),
         progress(Fleet, Callers)
     end || I <- lists:seq(1, 12)],
    %% What is reported to a process that is about to end is lost.
    Report = fun() -> on(Fleet, N1, fun() -> whereis(sderl_route_report) end) end,
    await(there, fun() -> is_pid(Report()) end),
    sderl_ct:kill(Fleet, Report(), kill),
    await(new, fun() -> is_pid(Report()) end),
    send(Fleet, P, fun() -> ok = sderl_route:send({right, nobody}, x) end),
    await(told, fun() -> #{no_name => 1} =:= refused(Fleet, P) end),
    once(Fleet, Callers, [Server]),
    ways(Config),
    [await({router, N}, fun() -> on(Fleet, N, fun() -> is_pid(whereis(sderl_router)) end) end)
     || N <- Nodes],
    [sderl_ct:kill(Fleet, X, kill) || X <- [P, Server]].

%% A name goes to and fro between nodes under calls: neither process is asked twice.
moving_name(Config) ->
    {Fleet, [N1, _, _, _, _, N6, N7]} = fleet(Config),
    Servers = [A, B] = [sderl_ct_server:start(Fleet, N, right, {server, N}) || N <- [N6, N7]],
    [yes = on(Fleet, node(S), fun() ->
        s_group:unregister_name(right, {server, node(S)}),
        s_group:re_register_name(right, moving, S)
    end) || S <- Servers],
    Callers = callers(Fleet, N1, {right, moving}, 6),
    [begin
         yes = on(Fleet, node(S), fun() -> s_group:re_register_name(right, moving, S) end),
         progress(Fleet, Callers)
     end || S <- [A, B, A, B, A]],
    once(Fleet, Callers, Servers),
    [sderl_ct:kill(Fleet, S, kill) || S <- Servers].

%% Messages come to a gateway that has just left the group that they are for: it sends them on.
leaving_gateway(Config) ->
    {Fleet, [N1, _, G1, G2, _, N6, _]} = fleet(Config),
    group(Fleet, shrinking, [G1, G2, N6]),
    To = register(Fleet, shrinking, sink, process(Fleet, N6)),
    way(Fleet, N1, shrinking, [G1, G2]),
    Ps = [sender(Fleet, N1) || _ <- lists:seq(1, 8)],
    Send = fun(From) ->
        [send(Fleet, P, fun() ->
            [ok = sderl_route:send({shrinking, sink}, {P, I}) || I <- lists:seq(From, From + 99)]
        end) || P <- Ps]
    end,
    Send(1),
    ok = on(Fleet, G2, fun() -> s_group:remove_nodes(shrinking, [G1]) end),
    Send(101),
    way(Fleet, N1, shrinking, [G2]),
    Send(201),
    await(accounted, fun() ->
        Got = length(heard(Fleet, To)),
        Refused = [refused(Fleet, P) || P <- Ps],
        Got + lists:sum(lists:append([maps:values(R) || R <- Refused])) =:= 2400
            orelse {Got, Refused}
    end),
    Heard = heard(Fleet, To),
    ?assertEqual([], Heard -- lists:usort(Heard)),
    ?assertEqual([], [{P, I} || P <- Ps, I <- lists:seq(201, 300)] -- Heard),
    sderl_ct:delete(Fleet, shrinking, G2),
    [sderl_ct:kill(Fleet, P, kill) || P <- [To | Ps]].

%% A group ends under calls: what is under way is answered, and then there is no way.
deleted_group(Config) ->
    {Fleet, [N1, _, G1, _, _, N6, _]} = fleet(Config),
    group(Fleet, brief, [G1, N6]),
    Server = sderl_ct_server:start(Fleet, N6, brief, server),
    way(Fleet, N1, brief, [G1]),
    Self = self(),
    spawn_link(fun() ->
        Self ! {called,
                on(Fleet, N1,
                   fun() -> sderl_route:call({brief, server}, {later, 1000, done}, 10_000) end)}
    end),
    await(asked, fun() -> [done] =:= sderl_ct_server:noted(Fleet, Server) end),
    sderl_ct:delete(Fleet, brief, G1),
    receive {called, Result} -> ?assertEqual({ok, done}, Result) end,
    await(no_way, fun() ->
        {error, no_route} =:=
            on(Fleet, N1, fun() -> sderl_route:call({brief, server}, {echo, x}, 200) end)
    end),
    sderl_ct:kill(Fleet, Server, kill).

%% Two of three gateways are killed and come back in turn under twenty callers.
killed_gateways(Config) ->
    {Fleet, [N1, N2, G1, G2, _, _, N7]} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N7, right, server),
    Callers = callers(Fleet, {right, server}, [N || N <- [N1, N2], _ <- lists:seq(1, 10)]),
    [begin
         ok = sderl_fleet:kill(Fleet, G),
         progress(Fleet, Callers),
         {ok, G} = sderl_fleet:restart(Fleet, G),
         progress(Fleet, Callers)
     end || G <- [G1, G2, G1, G2]],
    once(Fleet, Callers, [Server]),
    [back(Fleet, G) || G <- [G1, G2]],
    ways(Config),
    sderl_ct:kill(Fleet, Server, kill).

%% A gateway that was started anew is in its groups again without being told to.
back(Fleet, G) ->
    await({back, G}, fun() ->
        [left, right] =:= on(Fleet, G, fun() -> lists:sort(sderl_dir:named_groups()) end)
    end).

%% An answer that comes after its time leaves nothing behind, and a runner that dies does not hang
%% its caller.
late_answers(Config) ->
    {Fleet, [N1, _, _, _, _, _, N7]} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N7, right, late),
    {Result, Box} = on(Fleet, N1, fun() ->
        R = sderl_route:call({right, late}, {later, 400, x}, 200),
        %% That answer is on the way before this one.
        {ok, y} = sderl_route:call({right, late}, {later, 700, y}, 60_000),
        {R,
         [M
          || {Alias, _, _} = M <- element(2, process_info(self(), messages)), is_reference(Alias)]}
    end),
    ?assertEqual({{error, timeout}, []}, {Result, Box}),
    Asked = fun() ->
        on(Fleet, N7,
           fun() -> [P || [P] <- ets:match(sderl_route_calls, {'_', asked, '$1', '_', '_'})] end)
    end,
    Self = self(),
    spawn_link(fun() ->
        Self ! {called,
                on(Fleet, N1, fun() -> sderl_route:call({right, late}, never, infinity) end)}
    end),
    await(asked, fun() -> [x || _ <- Asked()] =:= [x] end),
    [on(Fleet, N7, fun() -> exit(P, kill) end) || P <- Asked()],
    receive {called, Lost} -> ?assertEqual({error, lost_route}, Lost) end,
    await(forgotten, fun() -> [] =:= Asked() end),
    %% Of a node that dies its callers hear by the way.
    sderl_ct:kill(Fleet, Server, kill).
