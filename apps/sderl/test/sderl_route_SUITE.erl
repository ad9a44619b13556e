%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_SUITE).

%% Three groups in a row, with two gateways at each border: left 1 2 3 4, middle 3 4 5 6, right 5
%% 6 7.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2, group/3, process/2, heard/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [routes, sends, alone, calls, many, fan_out, undelivered, traced, bad_input,
          gateway_dies].

init_per_suite(Config0) ->
    Config = sderl_ct:hold(7, calm) ++ Config0,
    {Fleet, [N1, N2, N3, N4, N5, N6, N7]} = fleet(Config),
    [group(Fleet, G, Ns)
     || {G, Ns} <- [{left, [N1, N2, N3, N4]}, {middle, [N3, N4, N5, N6]}, {right, [N5, N6, N7]}]],
    Config.

end_per_suite(Config) -> sderl_ct:release(Config).

init_per_testcase(_, Config) ->
    {Fleet, Nodes} = fleet(Config),
    ways(Fleet, Nodes),
    [{links, sderl_ct:links(Fleet, Nodes)} | Config].

%% No test added a link.
end_per_testcase(_, Config) ->
    {Fleet, Nodes} = fleet(Config),
    sderl_ct:same_links(Fleet, Nodes, proplists:get_value(links, Config)),
    [[on(Fleet, hd(Ns), fun() -> s_group:unregister_name(G, N) end)
      || {_, N} <- on(Fleet, hd(Ns), fun() -> s_group:registered_names({s_group, G}) end)]
     || {G, Ns} <- [{left, Nodes}, {middle, lists:nthtail(2, Nodes)},
                    {right, lists:nthtail(4, Nodes)}]],
    ok.

fleet(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

%% Everybody knows every way.
ways(Fleet, [N1, N2, N3, N4, N5, N6, N7]) ->
    Expected =
        [{N, [{middle, 1, [N3, N4]}, {right, 2, [N3, N4]}]} || N <- [N1, N2]]
            ++ [{N, [{right, 1, [N5, N6]}]} || N <- [N3, N4]]
            ++ [{N, [{left, 1, [N3, N4]}]} || N <- [N5, N6]]
            ++ [{N7, [{left, 2, [N5, N6]}, {middle, 1, [N5, N6]}]}],
    [await({routes, N}, fun() ->
        case maps:get(routes, on(Fleet, N, fun() -> sderl_route:info() end)) of
            Routes -> true;
            Other -> Other
        end
    end) || {N, Routes} <- Expected].

%% ----------------------------------------------------------------

routes(Config) ->
    {Fleet, [N1, _, N3, N4, N5, N6, N7]} = fleet(Config),
    Expected = [{middle, [N3, N4, N5, N6]}, {right, [N5, N6, N7]}],
    %% The way to a group may be known before all its members are.
    await(groups, fun() ->
        case on(Fleet, N1, fun() -> sderl_route:groups() end) of
            Expected -> true;
            Other -> Other
        end
    end).

%% In order, over two gateways, to names and to pids.
sends(Config) ->
    {Fleet, [N1, _, _, _, N5, _, N7]} = fleet(Config),
    To = process(Fleet, N7),
    yes = on(Fleet, N5, fun() -> s_group:register_name(right, sink, To) end),
    [on(Fleet, N, fun() ->
        [ok = sderl_route:send(D, {N, D, K}) || K <- lists:seq(1, 500), D <- [{right, sink}, To]]
    end) || N <- [N1, N7]],
    await(all, fun() -> length(heard(Fleet, To)) =:= 2000 end),
    [?assertEqual(lists:seq(1, 500), [K || {S, D1, K} <- heard(Fleet, To), S =:= N, D1 =:= D])
     || N <- [N1, N7], D <- [{right, sink}, To]],
    ?assertEqual({error, no_name},
                 on(Fleet, N7, fun() -> sderl_route:send({right, nobody}, x) end)),
    ?assertEqual({error, no_route},
                 on(Fleet, N7, fun() -> sderl_route:send({nowhere, nobody}, x) end)).

%% Messages that are answered one by one go directly from the last gateway, many at a time go in
%% bundles: all in order, in turns, over two gateways. A process with its message queue off the heap
%% gets none directly.
alone(Config) ->
    {Fleet, [N1, _, _, _, _, _, N7]} = fleet(Config),
    Delivered = fun() -> maps:get(delivered, on(Fleet, N7, fun() -> sderl_route:info() end)) end,
    [begin
         Echo = on(Fleet, N7, fun() -> spawn(?MODULE, echo, [Queue]) end),
         yes = on(Fleet, N7, fun() -> s_group:register_name(right, Queue, Echo) end),
         Ask = fun(From, To) -> on(Fleet, N1, fun() -> ask_each({right, Queue}, From, To) end) end,
         %% The question is asked when some were alone; what is faster than the answer goes as
         %% before.
         Straight = fun() ->
             Before = Delivered(),
             ok = Ask(1, 50),
             Delivered() - Before
         end,
         case Queue of
             on_heap ->
                 await(straight, fun() -> case Straight() of N when N < 20 -> true; N -> N end end);
             off_heap -> ?assert(Straight() >= 50 andalso Straight() >= 50)
         end,
         ?assertEqual(ok, on(Fleet, N1, fun() -> in_turns({right, Queue}, 1, 20) end))
     end || Queue <- [on_heap, off_heap]].

echo(Queue) ->
    _ = process_flag(message_queue_data, Queue),
    echo_next(0).

%% Numbers come in order, each run of them from 1; who asks is told the last one.
echo_next(Last) ->
    receive
        {ask, From, K} ->
            ok = sderl_route:send(From, {told, K, Last}),
            echo_next(Last);
        1 -> echo_next(1);
        K when K =:= Last + 1 -> echo_next(K);
        K -> exit({after_number, Last, K})
    end.

ask_each(_, K, To) when K > To -> ok;
ask_each(Name, K, To) ->
    told(Name, K),
    ask_each(Name, K + 1, To).

told(Name, K) ->
    ok = sderl_route:send(Name, {ask, self(), K}),
    receive {told, K, Last} -> Last
    after 60_000 -> exit({not_told, K})
    end.

in_turns(_, Turn, Turns) when Turn > Turns -> ok;
in_turns(Name, Turn, Turns) ->
    ok = ask_each(Name, 1, 10),
    Count = 50 * (Turn rem 5),
    [ok = sderl_route:send(Name, K) || K <- lists:seq(1, Count)],
    case told(Name, Turn) of
        Last when Last =:= Count; Count =:= 0 -> in_turns(Name, Turn + 1, Turns);
        Last -> {turn, Turn, Count, Last}
    end.

calls(Config) ->
    {Fleet, [N1, _, _, _, _, _, N7]} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N7, right, server),
    Call = fun(Name, Request, Timeout) ->
        on(Fleet, N1, fun() -> sderl_route:call({right, Name}, Request, Timeout) end)
    end,
    ?assertEqual({ok, hello}, Call(server, {echo, hello}, 60_000)),
    ?assertEqual({ok, late}, Call(server, {later, 400, late}, 60_000)),
    ?assertEqual({error, no_name}, Call(nobody, {echo, hello}, 60_000)),
    ?assertEqual({error, timeout}, Call(server, never, 700)),
    ok = on(Fleet, N1, fun() -> sderl_route:cast({right, server}, told) end),
    await(told, fun() -> [late, told] =:= sderl_ct_server:noted(Fleet, Server) end),
    %% A process that ends says why; one that is not there cannot.
    ?assertEqual({error, {down, why_not}}, Call(server, {die, why_not}, 60_000)),
    await(gone, fun() -> {error, no_name} =:= Call(server, {echo, hello}, 5000) end),
    ?assertEqual({error, {down, noproc}},
                 on(Fleet, N1,
                    fun() -> sderl_route:call_any(right, no_such_process, x, 60_000) end)),
    ?assertMatch({ok, #{gateways := _}},
                 on(Fleet, N1,
                    fun() -> sderl_route:call_any(right, sderl_router, info, 60_000) end)),
    ?assertEqual({error, no_route},
                 on(Fleet, N1, fun() -> sderl_route:call({nowhere, x}, x, 300) end)).

%% To all that match, to every member, and from a member too.
many(Config) ->
    {Fleet, [N1, _, _, _, N5, N6, N7]} = fleet(Config),
    Pids = [{N, process(Fleet, N)} || N <- [N5, N6, N7, N7]],
    [yes = on(Fleet, N, fun() -> s_group:register_name(right, {user, P}, P) end) || {N, P} <- Pids],
    Other = process(Fleet, N7),
    yes = on(Fleet, N7, fun() -> s_group:register_name(right, other, Other) end),
    [on(Fleet, N, fun() -> true = register(sink, P) end) || {N, P} <- lists:droplast(Pids)],
    [ok = on(Fleet, N, fun() ->
        ok = sderl_route:multi_send(right, {names, {user, '_'}}, {to_users, N}),
        sderl_route:multi_send(right, {nodes, sink}, {to_nodes, N})
     end) || N <- [N1, N5]],
    [await({heard, P}, fun() ->
        Heard = lists:sort(heard(Fleet, P)),
        Heard =:=
        lists:sort([{to_users, N} || N <- [N1, N5]] ++
                   [{to_nodes, N}
                    || N <- [N1, N5], {M, Q} <- lists:droplast(Pids), M =:= node(P), P =:= Q])
            orelse Heard
    end) || {_, P} <- Pids],
    ?assertEqual([], heard(Fleet, Other)).

%% To all groups at once, with one message where the ways are the same.
fan_out(Config) ->
    {Fleet, [N1, N2, N3, N4, N5, N6, N7] = Nodes} = fleet(Config),
    Pids = [{N, process(Fleet, N)} || N <- Nodes],
    [on(Fleet, N, fun() -> true = register(fan, P) end) || {N, P} <- Pids],
    Forwarded = fun() ->
        lists:sum([maps:get(forwarded, on(Fleet, N, fun() -> sderl_route:info() end))
                   || N <- Nodes])
    end,
    Before = Forwarded(),
    ok = on(Fleet, N2, fun() -> sderl_route:fan_out(all, {nodes, fan}, hello) end),
    Twice = [N3, N4, N5, N6],
    [await({heard, N}, fun() ->
                              case {heard(Fleet, P), lists:member(N, Twice)} of
                                  {[hello, hello], true} -> true;
                                  {[hello], false} -> true;
                                  Other -> Other
                              end
     end) || {N, P} <- Pids],
    %% 3 to the mates on the left, 1 to a gateway there; 3 in the middle, 1 to a gateway there; 2 on
    %% the right. (A message may be heard before it is counted.)
    await(counted, fun() -> Forwarded() - Before >= 10 end),
    ?assertEqual(10, Forwarded() - Before),
    ok = on(Fleet, N1, fun() -> sderl_route:fan_out([right], {nodes, fan}, again) end),
    await(again, fun() -> [hello, again] =:= heard(Fleet, proplists:get_value(N7, Pids)) end).

%% Subscribers get reports, and every process can read them.
undelivered(Config) ->
    {Fleet, [N1 | _]} = fleet(Config),
    P = process(Fleet, N1),
    on(Fleet, N1, fun() -> P ! {apply, fun() ->
        ok = sderl_route:reports(true),
        [ok = sderl_route:send({right, nobody}, K) || K <- lists:seq(1, 10)]
    end}, ok end),
    await(reported, fun() ->
        Reports = heard(Fleet, P),
        [] =:=
        [R
         || R <- Reports,
            case R of {sderl_undelivered, {right, nobody}, no_name, _} -> false; _ -> true end]
            andalso 10 =:= lists:sum([N || {_, _, _, N} <- Reports])
    end),
    %% What was reported is counted just afterwards.
    await(counted, fun() ->
        #{undelivered := List} = on(Fleet, N1, fun() -> sderl_route:info() end),
        10 =:= lists:sum([N || {{right, nobody}, no_name, N} <- List]) orelse List
    end).

%% What a tracer is told by the functions that sderl_observed names: all of it is read at the right
%% place of their arguments.
traced(Config) ->
    {Fleet, [N1, _, N3, N4, N5, N6, N7]} = fleet(Config),
    To = process(Fleet, N7),
    yes = on(Fleet, N7, fun() -> s_group:register_name(right, sink, To) end),
    Tracers = [on(Fleet, N, fun() -> spawn(sderl_ct, idle, [fun trace_routing/0, []]) end)
               || N <- [N1, N3, N4, N5, N6, N7]],
    Told = fun() -> [M || T <- Tracers, {trace, _, call, _, M} <- heard(Fleet, T)] end,
    _ = Told(),
    {ok, _} = on(Fleet, N1, fun() ->
        ok = sderl_route:send({right, sink}, {hello, N1}),
        ok = sderl_route:send({right, nobody}, lost),
        sderl_route_send:group_each_way(right, {name, sink}, none, again, [noconnect, nosuspend])
    end),
    Is = fun
        (sent, {routed, Next, right, {name, sink}, {hello, From}}) ->
            From =:= N1 andalso lists:member(Next, [N3, N4]);
        (every_way, {every_way, right}) -> true;
        (passed, {passed, From, Next, Count}) ->
            From =:= N1 andalso lists:member(Next, [N5, N6]) andalso Count >= 1;
        (delivered, {delivered, Count}) -> Count >= 1;
        (undelivered, {undelivered, right, {name, nobody}, no_name}) -> true;
        (_, _) -> false
    end,
    await(told, fun() ->
        Messages = Told(),
        [] =:= [What || What <- [sent, every_way, passed, delivered, undelivered],
                        not lists:any(fun(M) -> Is(What, M) end, Messages)] orelse Messages
    end),
    [exit(Tracer, kill) || Tracer <- Tracers].

%% A session lives as long as a process knows it.
trace_routing() ->
    Session = trace:session_create(?MODULE, self(), []),
    undefined = put(session, Session),
    [begin
         {module, _} = code:ensure_loaded(Module),
         1 = trace:function(Session, Mfa, Spec, [local])
     end || {{Module, _, _} = Mfa, Spec} <- sderl_observed:routed_calls()],
    trace:process(Session, all, true, [call, arity]).

bad_input(Config) ->
    {Fleet, [N1 | _]} = fleet(Config),
    Bad = fun(F, Args) ->
        on(Fleet, N1, fun() ->
            try
                apply(sderl_route, F, Args)
            catch
                error:{badarg, {M, G, A}, #{argument := I}} -> {M, G, A, I}
            end
        end)
    end,
    ?assertEqual({sderl_route, send, 2, 1}, Bad(send, [right, x])),
    ?assertEqual({sderl_route, call, 3, 3}, Bad(call, [{right, x}, x, soon])),
    ?assertEqual({sderl_route, call, 3, 1}, Bad(call, [right, x, 1])),
    ?assertEqual({sderl_route, fan_out, 3, 1}, Bad(fan_out, [right, {nodes, x}, x])),
    ?assertEqual({sderl_route, multi_send, 3, 2}, Bad(multi_send, [right, {nodes, "x"}, x])),
    ?assertEqual({sderl_route, call_any, 4, 2}, Bad(call_any, [right, "x", x, 1])),
    [?assertEqual({sderl_route, call_any, 4, 4}, Bad(call_any, [right, x, x, T]))
     || T <- [soon, 1.5, -1, 1 bsl 40]],
    ?assertEqual({sderl_route, call, 3, 3}, Bad(call, [{right, x}, x, 1 bsl 40])),
    ?assertEqual({sderl_route, demonitor, 2, 2}, Bad(demonitor, [make_ref(), [flush | info]])),
    ?assertEqual({sderl_route, reports, 1, 1}, Bad(reports, [yes])),
    ?assertEqual([], sderl_route:groups()),
    ?assertEqual({error, not_running}, sderl_route:info()),
    ?assertEqual({error, not_running}, sderl_route:send({right, x}, x)),
    ?assertEqual({error, not_running}, sderl_route:call({right, x}, x)),
    ?assertEqual({error, not_running}, sderl_route:reports(true)),
    %% Frames that make no sense are counted and harm nobody.
    on(Fleet, N1, fun() ->
        [sderl_forward_1 ! M
         || M <- [nonsense, {sderl_to, 2, a}, {sderl_at, 1, 3, 0, node(), nonsense, none, x}]],
        [sderl_router ! M
         || M <- [nonsense, {sderl_route, 1, node(), {news, [nonsense]}},
                  {sderl_route, 1, node(), {digest, true, [x]}}]],
        sderl_route_report:failed(nonsense), sderl_route_report:failed({node(), [nonsense]})
    end),
    await(counted, fun() ->
        Counts = on(Fleet, N1, fun() -> sderl_refused:messages() end),
        [{sderl_forward, 3}, {sderl_route_report, 2}, {sderl_router, 3}] =:=
        [C
         || {M, _} = C <- Counts,
            lists:member(M, [sderl_forward, sderl_router, sderl_route_report])]
            orelse Counts
    end).

%% One of two gateways is killed under calls: every call is answered, and was asked once.
gateway_dies(Config) ->
    {Fleet, [N1, _, N3, N4, _, _, N7]} = fleet(Config),
    Server = sderl_ct_server:start(Fleet, N7, right, server),
    %% Processes whose way leads over the one and over the other.
    Callers = [on(Fleet, N1, fun() -> spawn(?MODULE, caller, [{right, server}, I]) end)
               || I <- lists:seq(1, 8)],
    await(calling, fun() -> lists:all(fun(C) -> answers(Fleet, C) > 5 end, Callers) end),
    sderl_fleet:kill(Fleet, N4),
    Before = [answers(Fleet, C) || C <- Callers],
    await(calling_again, fun() ->
        lists:all(fun({C, B}) -> answers(Fleet, C) > B + 5 end, lists:zip(Callers, Before))
    end),
    Results = [stop(Fleet, C) || C <- Callers],
    ?assertEqual([], [Error || {Error, _} <- Results, Error =/= none]),
    Noted = sderl_ct_server:noted(Fleet, Server),
    ?assertEqual(length(lists:usort(Noted)), length(Noted)),
    ?assertEqual([], lists:append([[{I, K} || K <- lists:seq(1, N)]
                                   || {I, {_, N}} <- lists:enumerate(Results)]) -- Noted),
    await(one_way, fun() ->
        [{middle, 1, [N3]}, {right, 2, [N3]}] =:=
            maps:get(routes, on(Fleet, N1, fun() -> sderl_route:info() end))
    end),
    {ok, N4} = sderl_fleet:restart(Fleet, N4),
    ways(Fleet, proplists:get_value(nodes, Config)).

caller(To, I) -> caller(To, I, 0).

caller(To, I, N) ->
    receive
        {answers, From, Ref} -> From ! {Ref, N}, caller(To, I, N);
        {stop, From, Ref} -> From ! {Ref, {none, N}}
    after 0 ->
        case sderl_route:call(To, {note, {I, N + 1}}, 20_000) of
            {ok, {I, M}} when M =:= N + 1 -> caller(To, I, N + 1);
            Other -> failed({Other, N})
        end
    end.

failed(Result) ->
    receive
        {answers, From, Ref} -> From ! {Ref, infinity}, failed(Result);
        {stop, From, Ref} -> From ! {Ref, Result}
    end.

answers(Fleet, C) -> ask(Fleet, C, answers).
stop(Fleet, C) -> ask(Fleet, C, stop).

ask(Fleet, Pid, What) ->
    on(Fleet, node(Pid), fun() ->
        Ref = make_ref(),
        Pid ! {What, self(), Ref},
        receive {Ref, Answer} -> Answer end
    end).
