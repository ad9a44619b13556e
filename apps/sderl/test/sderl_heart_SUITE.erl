%% SPDX-License-Identifier: Apache-2.0
-module(sderl_heart_SUITE).

%% Heartbeats of nodes that share many groups: their number is that of one group, and one process
%% that hangs is missed in its group alone.

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_testcase/2,
         end_per_testcase/2]).
-export([as_many_as_in_one_group/1, one_process_hangs/1, one_follower_hangs/1, hangs_itself/1,
         without_it/1, routers/1]).
%% On a node.
-export([count/1, asked/1]).

-import(sderl_ct, [on/3, all_on/3, await/2]).

-define(TICK, 250).
%% So many messages go to two others in ten intervals, or a few more.
-define(FEW, 24).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [as_many_as_in_one_group, one_process_hangs, one_follower_hangs, hangs_itself, without_it,
     routers].

init_per_suite(Config) ->
    sderl_ct:hold(3, [{tick_ms, ?TICK}, {set_aside_ms, 32 * ?TICK}, {write_timeout_ms, 60_000},
                      {route_beat_ms, ?TICK}]) ++ Config.

end_per_suite(Config) -> sderl_ct:release(Config).

%% Each case begins with nodes in no group.
init_per_testcase(_, Config) ->
    [{start, {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}} | Config].

end_per_testcase(_, Config) ->
    {Fleet, [A | _] = Nodes} = start(Config),
    [ok = on(Fleet, A, fun() -> s_group:delete_s_group(G) end)
     || {G, _} <- on(Fleet, A, fun s_group:own_s_groups/0)],
    await(free, fun() ->
        lists:all(fun(Gs) -> Gs =:= [] end, all_on(Fleet, Nodes, fun s_group:own_s_groups/0))
    end).

start(Config) -> proplists:get_value(start, Config).

%% ----------------------------------------------------------------

as_many_as_in_one_group(Config) ->
    {Fleet, [A | _] = Nodes} = start(Config),
    made(Fleet, Nodes, 1, 1),
    at_rest(Fleet, A, Nodes, 1),
    few(Fleet, Nodes),
    made(Fleet, Nodes, 2, 100),
    at_rest(Fleet, A, Nodes, 100),
    few(Fleet, Nodes).

%% The coordinator of one group.
one_process_hangs(Config) ->
    {Fleet, [A | Others] = Nodes} = start(Config),
    made(Fleet, Nodes, 1, 5),
    at_rest(Fleet, A, Nodes, 5),
    Before = epochs(Fleet, Nodes, [1, 2, 4, 5]),
    Holder = hold(Fleet, A, {many, 3}),
    await(successor, fun() ->
        Leads = [sderl_ct:lead(Fleet, N, {many, 3}) || N <- Others],
        lists:all(fun(Lead) -> lists:member(Lead, Others) end, Leads) orelse Leads
    end),
    ?assertEqual(Before, epochs(Fleet, Nodes, [1, 2, 4, 5])),
    release(Fleet, Holder),
    [] = sderl_ct:settled(Fleet, {many, 3}, Nodes),
    at_rest(Fleet, A, Nodes, 2),
    ?assertEqual(Before, epochs(Fleet, Nodes, [1, 2, 4, 5])).

%% It is set aside where a write waits for it, and nowhere else.
one_follower_hangs(Config) ->
    {Fleet, [A, B, C] = Nodes} = start(Config),
    made(Fleet, Nodes, 1, 3),
    at_rest(Fleet, A, Nodes, 3),
    Before = epochs(Fleet, Nodes, [1, 3]),
    Holder = hold(Fleet, B, {many, 2}),
    [P, Q] = [sderl_ct:process(Fleet, N) || N <- [A, C]],
    [?assertEqual(yes, on(Fleet, node(Pid), fun() -> s_group:register_name({many, G}, x, Pid) end))
     || {G, Pid} <- [{2, P}, {1, Q}]],
    await(aside, fun() -> [B] =:= maps:get(aside, sderl_ct:state(Fleet, A, {many, 2})) end),
    ?assertEqual(Before, epochs(Fleet, Nodes, [1, 3])),
    release(Fleet, Holder),
    sderl_ct:hold_all(Fleet, {many, 2}, {Nodes, Nodes}, #{x => P}).

%% Then the processes of groups send their own heartbeats, and no member is given up.
hangs_itself(Config) ->
    {Fleet, [A, B | _] = Nodes} = start(Config),
    made(Fleet, Nodes, 1, 3),
    at_rest(Fleet, A, Nodes, 3),
    Before = epochs(Fleet, Nodes, [1, 2, 3]),
    [begin
         Holder = hold(Fleet, N, sderl_heart),
         spoken(Fleet, A),
         ?assertEqual(Before, epochs(Fleet, Nodes, [1, 2, 3])),
         release(Fleet, Holder),
         at_rest(Fleet, A, Nodes, 3)
     end || N <- [A, B]],
    [true = on(Fleet, N, fun() -> exit(whereis(sderl_heart), kill) end) || N <- [A, B]],
    at_rest(Fleet, A, Nodes, 3),
    ?assertEqual(Before, epochs(Fleet, Nodes, [1, 2, 3])).

%% A node of a version before has no such process.
without_it(Config) ->
    {Fleet, [A, B, C] = Nodes} = start(Config),
    ok = on(Fleet, B, fun() -> supervisor:terminate_child(sderl_sup, sderl_heart) end),
    made(Fleet, Nodes, 1, 3),
    at_rest(Fleet, A, [A, C], 3),
    Before = epochs(Fleet, Nodes, [1, 2, 3]),
    spoken(Fleet, A),
    spoken(Fleet, B),
    ?assertEqual(Before, epochs(Fleet, Nodes, [1, 2, 3])),
    {ok, _} = on(Fleet, B, fun() -> supervisor:restart_child(sderl_sup, sderl_heart) end),
    at_rest(Fleet, A, Nodes, 3),
    ?assertEqual(Before, epochs(Fleet, Nodes, [1, 2, 3])).

%% A gateway's router is reported to its mates with the heartbeats of the nodes, in one direction if
%% there are no others.
routers(Config) ->
    {Fleet, [A, B, C] = Nodes} = start(Config),
    made(Fleet, Nodes, 1, 1),
    {ok, _, [A, B]} = on(Fleet, B, fun() -> s_group:new_s_group({many, 2}, [A, B]) end),
    at_rest(Fleet, A, Nodes, 1),
    silent(Fleet, [A, C], []),
    await(no_router_asks, fun() ->
        Asked = all_on(Fleet, Nodes, fun() -> ?MODULE:asked(10) end),
        Asked =:= [0, 0, 0] orelse Asked
    end),
    %% The one that is no gateway tells the coordinator of its heartbeats, and nobody else.
    await(one_way, fun() ->
        Counts = all_on(Fleet, Nodes, fun() -> ?MODULE:count(10) end),
        lists:all(fun({Count, Most}) -> Count > 0 andalso Count =< Most end,
                  lists:zip(Counts, [?FEW, ?FEW, ?FEW div 2]))
            orelse Counts
    end),
    %% Where they do not come, routers ask.
    Holder = hold(Fleet, B, sderl_heart),
    await(routers_ask, fun() -> 0 < on(Fleet, C, fun() -> ?MODULE:asked(10) end) end),
    silent(Fleet, [A, C], []),
    release(Fleet, Holder),
    await(no_router_asks, fun() -> 0 =:= on(Fleet, C, fun() -> ?MODULE:asked(10) end) end),
    %% A gateway's process that hangs is as good as a node that stands still.
    Router = hold(Fleet, B, sderl_router),
    silent(Fleet, [A, C], [B]),
    release(Fleet, Router),
    silent(Fleet, [A, C], []),
    ok = sderl_fleet:suspend(Fleet, B),
    silent(Fleet, [A, C], [B]),
    ok = sderl_fleet:resume(Fleet, B),
    silent(Fleet, [A, C], []).

silent(Fleet, Nodes, Silent) ->
    await({silent, Silent}, fun() ->
        Seen = all_on(Fleet, Nodes,
                      fun() -> maps:with([gateways, silent], sderl_router:info()) end),
        lists:all(fun(#{silent := S, gateways := Gs}) -> S =:= Silent andalso Gs =/= [] end, Seen)
            orelse Seen
    end).

%% ----------------------------------------------------------------

%% All by the first node, which leads them.
made(Fleet, [A | _] = Nodes, From, To) ->
    [{ok, _, [_, _, _]} = on(Fleet, A, fun() -> s_group:new_s_group({many, I}, Nodes) end)
     || I <- lists:seq(From, To)],
    [begin
         [] = sderl_ct:settled(Fleet, {many, I}, Nodes),
         A = sderl_ct:lead(Fleet, A, {many, I})
     end || I <- [From, To]].

%% The coordinator stands towards these in so many groups, and they towards it.
at_rest(Fleet, A, Nodes, Count) ->
    Others = Nodes -- [A],
    await({at_rest, Count}, fun() ->
        Stood = [Ns
                 || {_, _, Ns} <- on(Fleet, A, fun() -> ets:tab2list(sderl_stands) end),
                    Others -- Ns =:= []],
        Back = [length(Rows)
                || Rows <- all_on(Fleet, Others,
                                  fun() -> ets:match_object(sderl_stands, {'_', '_', [A]}) end)],
        lists:all(fun(Has) -> Has >= Count end, [length(Stood) | Back]) orelse {length(Stood), Back}
    end).

epochs(Fleet, [A | _], Is) ->
    [{I, E} || I <- Is, #{epoch := E} <- [sderl_ct:state(Fleet, A, {many, I})]].

%% Heartbeats of each node while the process of all groups' heartbeats sends ten times. (Where a
%% node is held up, processes of groups send some themselves.)
few(Fleet, Nodes) ->
    await(few, fun() ->
        Counts = all_on(Fleet, Nodes, fun() -> ?MODULE:count(10) end),
        lists:all(fun(Count) -> Count > 0 andalso Count =< ?FEW end, Counts) orelse Counts
    end).

%% What the router of this node asks others while the process of all groups' heartbeats sends so
%% often.
asked(Intervals) ->
    counted(Intervals, [{['_', {sderl_route, '_', '_', beat}], [], []}]).

count(Intervals) ->
    counted(Intervals,
            [{['_', {sderl, '_', '_', '_', {Kind, '_', '_'}}], [], []} || Kind <- [hb, hb_ack]]
                ++ [{['_', {sderl_heart, '_', '_', '_'}], [], []}]).

counted(Intervals, Sent) ->
    Session = trace:session_create(?MODULE, self(), []),
    1 = trace:process(Session, whereis(sderl_heart), true, [send, 'receive']),
    _ = trace:process(Session, all, true, [send]),
    _ = trace:send(Session, Sent, []),
    _ = trace:recv(Session, [{['_', '_', beat], [], []}], []),
    Count = count(Intervals, 0),
    true = trace:session_destroy(Session),
    Count.

count(0, Count) -> Count;
count(Intervals, Count) ->
    receive
        {trace, _, 'receive', beat} -> count(Intervals - 1, Count);
        {trace, _, Send, _, _} when Send =:= send; Send =:= send_to_non_existing_process ->
            count(Intervals, Count + 1)
    end.

%% The processes of this node's groups send heartbeats themselves, each of them more than once.
spoken(Fleet, Node) ->
    on(Fleet, Node, fun() ->
        Session = trace:session_create(?MODULE, self(), []),
        _ = trace:process(Session, all, true, [send]),
        _ = trace:send(Session, [{['_', {sderl, '_', '_', '_', {Kind, '_', '_'}}], [], []}
                                 || Kind <- [hb, hb_ack]], []),
        [receive {trace, _, send, _, _} -> ok end || _ <- lists:seq(1, 12)],
        true = trace:session_destroy(Session)
    end).

%% A process that is suspended.
hold(Fleet, Node, What) ->
    on(Fleet, Node, fun() ->
        Self = self(),
        Holder = spawn(fun() ->
            Pid = case What of
                {many, _} -> sderl_dir:process(What);
                _ -> whereis(What)
            end,
            true = erlang:suspend_process(Pid),
            Self ! {self(), held},
            receive release -> ok end
        end),
        receive {Holder, held} -> Holder end
    end).

release(Fleet, Holder) -> release = on(Fleet, node(Holder), fun() -> Holder ! release end).
