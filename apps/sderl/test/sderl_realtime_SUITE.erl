%% SPDX-License-Identifier: Apache-2.0
-module(sderl_realtime_SUITE).

%% The example docs/examples/realtime, on eight nodes in three regions: eu 1 2 3, us 4 5 6, ap 7 8,
%% with 1 2 4 5 7 8 in the backbone.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, all_on/3, await/2, process/2, heard/2]).

-define(REGIONS, [eu, us, ap]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [links, broadcast, borders, singleton, presence, placed_by_load, tenant_moves, keeper_dies,
     gateway_dies, split, member_says_goodbye].

init_per_suite(Config) ->
    Sources = filename:join([code:lib_dir(sderl), "src", "..", "..", "..", "docs", "examples",
                             "realtime"]),
    case filelib:is_dir(Sources) of
        false -> {skip, "the example is not in this tree"};
        true -> hold(Sources, Config)
    end.

hold(Sources, Config) ->
    Ebin = filename:absname("realtime_ebin"),
    ok = filelib:ensure_path(Ebin),
    [{ok, _} = compile:file(F, [{outdir, Ebin}, report])
     || F <- filelib:wildcard(filename:join([Sources, "src", "*.erl"]))],
    {ok, _} = file:copy(filename:join([Sources, "src", "realtime.app.src"]),
                        filename:join(Ebin, "realtime.app")),
    Owner = spawn(fun() -> receive release -> ok end end),
    {ok, Fleet} = sderl_fleet:start(#{owner => Owner, s_groups => groups_of_plan(), families => [#{
        name => n, count => 8, apps => [sderl, realtime],
        env => [{sderl, K, V} || {K, V} <- sderl_ct:env(calm) ++ [{await, {all, 60_000}}]]
            ++ [{realtime, presence_ms, 1000}, {realtime, leave_on_stop, true}],
        paths => [Ebin | [D || D <- code:get_path(), string:prefix(D, code:lib_dir()) =:= nomatch]]
    }]}),
    [{fleet, Fleet}, {nodes, sderl_fleet:nodes(Fleet)}, {owner, Owner} | Config].

groups_of_plan() ->
    [{{region, R}, normal, [{n, Is}]} || {R, Is} <- numbers()] ++
        [{backbone, normal, [{n, [1, 2, 4, 5, 7, 8]}]}].

numbers() -> [{eu, [1, 2, 3]}, {us, [4, 5, 6]}, {ap, [7, 8]}].

end_per_suite(Config) -> sderl_ct:release(Config).

init_per_testcase(_, Config) ->
    ways(Config),
    Config.

end_per_testcase(_, Config) ->
    {Fleet, Nodes} = fleet(Config),
    Up = [N || N := #{status := running} <- sderl_fleet:info(Fleet), lists:member(N, Nodes)],
    all_on(Fleet, Up,
           fun() -> [exit(P, kill) || [P] <- ets:match(rt_subscribers, {{'_', '_', '$1'}})] end),
    ok.

fleet(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

%% Everybody can reach every region.
ways(Config) ->
    {Fleet, Nodes} = fleet(Config),
    [await({regions, N}, fun() ->
        lists:sort(on(Fleet, N, fun() -> rt:regions() end)) =:=
            [{region, R} || R <- lists:sort(?REGIONS)]
    end)
     || N <- Nodes].

%% ---------------------------------------------------------------- subscribers

%% A process on each of these nodes that keeps what it is sent.
subscribers(Fleet, Nodes, Tenant, Topic) ->
    Pids = [process(Fleet, N) || N <- Nodes],
    [on(Fleet, node(P), fun() ->
        Self = self(),
        P ! {apply, fun() -> Self ! {P, rt:join(Tenant, Topic)} end},
        receive {P, ok} -> ok end
    end)
     || P <- Pids],
    Pids.

messages(Fleet, Pid) -> [M || {rt, _, _, M} <- heard(Fleet, Pid)].

all_hear(Fleet, Pids, Expected) ->
    [await({heard, P}, fun() -> case messages(Fleet, P) of Expected -> true; Other -> Other end end)
     || P <- Pids].

%% ---------------------------------------------------------------- cases

%% Two nodes of different regions have a link if both are gateways, and only then.
links(Config) ->
    {Fleet, Nodes} = fleet(Config),
    [N1, N2, N3, N4, N5, N6, N7, N8] = Nodes,
    Groups = [[N1, N2, N3], [N4, N5, N6], [N7, N8], [N1, N2, N4, N5, N7, N8]],
    [await({links, N}, fun() ->
        Expected = lists:usort(lists:append([Ns || Ns <- Groups, lists:member(N, Ns)])) -- [N],
        case on(Fleet, N, fun() -> lists:sort(nodes(connected)) end) of
            Expected -> true;
            Other -> Other
        end
    end) || N <- Nodes].

%% From every node to all subscribers of the topic, once, and to no others.
broadcast(Config) ->
    {Fleet, Nodes} = fleet(Config),
    Pids = subscribers(Fleet, Nodes, {eu, acme}, news),
    Others = subscribers(Fleet, Nodes, {eu, acme}, other) ++
        subscribers(Fleet, Nodes, {us, acme}, news),
    [begin
        ok = on(Fleet, N, fun() -> rt:broadcast({eu, acme}, news, N) end),
        [await({heard, P, N}, fun() -> lists:member(N, messages(Fleet, P)) end) || P <- Pids]
     end || N <- Nodes],
    all_hear(Fleet, Pids, Nodes),
    [?assertEqual([], messages(Fleet, P)) || P <- Others],
    %% One that has left hears no more.
    [P1 | Rest] = Pids,
    on(Fleet, node(P1), fun() ->
        ok = rt_local:leave({eu, acme}, news, P1),
        ok = rt:broadcast({eu, acme}, news, last)
    end),
    all_hear(Fleet, Rest, Nodes ++ [last]),
    ?assertEqual(Nodes, messages(Fleet, P1)),
    links(Config).

%% A message is sent as often as there are nodes to get it and borders to cross; in bytes, too, it
%% is on the links between regions once for each region.
borders(Config) ->
    {Fleet, Nodes} = fleet(Config),
    [_, _, N3 | _] = Nodes,
    %% Nobody tells the numbers of subscribers meanwhile, but for once: a hundred messages of all
    %% tenants together.
    every(Fleet, Nodes, 3_600_000),
    Pids = subscribers(Fleet, Nodes, {eu, acme}, big),
    Size = 20_000,
    Count = 300,
    {Sent0, Across0} = traffic(Fleet, Nodes),
    Big = binary:copy(<<"x">>, Size),
    ok = on(Fleet, N3,
            fun() -> [ok = rt:broadcast({eu, acme}, big, Big) || _ <- lists:seq(1, Count)], ok end),
    [await({heard, P}, fun() -> length(messages(Fleet, P)) =:= Count end) || P <- Pids],
    {Sent, Across} = traffic(Fleet, Nodes),
    every(Fleet, Nodes, 1000),
    all_on(Fleet, Nodes, fun() -> rt_local ! tell end),
    %% 2 to the mates of 3, 1 to a gateway, 1 into us and 1 into ap, 2 and 1 to the mates there. A
    %% second copy across a border would be as many as there are broadcasts.
    Forwarded = Sent - Sent0,
    ct:pal("~b broadcasts: forwarded ~b, bytes across borders ~b",
           [Count, Forwarded, Across - Across0]),
    ?assert(Forwarded >= 8 * Count),
    ?assert(Forwarded < 9 * Count),
    Copies = (Across - Across0) / (Size * Count),
    ?assert(Copies >= 2.0),
    ?assert(Copies < 2.5).

every(Fleet, Nodes, Ms) ->
    all_on(Fleet, Nodes, fun() -> application:set_env(realtime, presence_ms, Ms) end).

%% Messages that were passed on, and bytes sent from one region into another.
traffic(Fleet, Nodes) ->
    Seen = all_on(Fleet, Nodes, fun() ->
        {ok, Infos} = net_kernel:nodes_info(),
        #{forwarded := F} = sderl_route:info(),
        {F, [{N, proplists:get_value(out_bytes, [], 0) + bytes(proplists:get_value(owner, I))}
             || {N, I} <- Infos]}
    end),
    {lists:sum([F || {F, _} <- Seen]),
     lists:sum([B
                || {N, {_, To}} <- lists:zip(Nodes, Seen), {M, B} <- To,
                   region(Nodes, N) =/= region(Nodes, M)])}.

bytes(Owner) ->
    {links, Links} = process_info(Owner, links),
    lists:sum([B
               || Port <- Links, is_port(Port),
                  {ok, [{send_oct, B}]} <- [inet:getstat(Port, [send_oct])]]).

region(Nodes, Node) ->
    [R] = [R || {R, Is} <- numbers(), I <- Is, lists:nth(I, Nodes) =:= Node],
    R.

%% However many ask for it first, and wherever: there is one.
singleton(Config) ->
    {Fleet, Nodes} = fleet(Config),
    Tenants = [{R, {single, I}} || R <- ?REGIONS, I <- lists:seq(1, 3)],
    Answers = all_on(Fleet, Nodes, fun() ->
        Self = self(),
        Pids = [spawn(fun() -> Self ! {self(), T, rt:call(T, where)} end)
                || T <- Tenants, _ <- [1, 2, 3]],
        [receive {P, T, Answer} -> {T, Answer} end || P <- Pids]
    end),
    Where = maps:map(fun(_, As) -> lists:usort(As) end,
                     maps:groups_from_list(fun({T, _}) -> T end, fun({_, A}) -> A end,
                                           lists:append(Answers))),
    ?assertEqual(lists:sort(Tenants), lists:sort(maps:keys(Where))),
    maps:foreach(fun({R, _} = T, As) ->
        ?assertMatch([{ok, _}], As, T),
        [{ok, N}] = As,
        ?assertEqual(R, region(Nodes, N))
    end, Where),
    %% By any way of calling, from any node; and no link came of it.
    [?assertEqual(N, on(Fleet, lists:last(Nodes), fun() ->
        {ok, Name} = rt:tenant(T),
        gen_server:call({via, sderl_route, Name}, where)
     end)) || T := [{ok, N}] <- Where],
    %% What runs is what has the names.
    [?assertEqual(length([T || {R1, _} = T <- Tenants, R1 =:= R]),
                  length(running(Fleet, Nodes, R, single)))
     || R <- ?REGIONS],
    links(Config).

%% The processes of tenants, by looking for processes.
running(Fleet, Nodes, Region, Kind) ->
    lists:append(all_on(Fleet, Nodes, fun() ->
        [Id
         || P <- processes(),
            {current_function, {gen_server, loop, _}} <- [process_info(P, current_function)],
            {dictionary, D} <- [process_info(P, dictionary)],
            {rt_tenant, run, 2} <- [proplists:get_value('$initial_call', D)],
            #{tenant := {R, {K, _} = Id}} <- [sys:get_state(P)], R =:= Region, K =:= Kind]
    end)).

%% The one process knows how many there are in all regions.
presence(Config) ->
    {Fleet, [N1, _, N3, _, _, N6, _, N8] = Nodes} = fleet(Config),
    Tenant = {ap, present},
    Pids = subscribers(Fleet, [N1, N3, N3, N6, N8], Tenant, room),
    Is = fun(Count) ->
        [await({presence, N, Count}, fun() ->
            case on(Fleet, N, fun() -> rt:presence(Tenant, room) end) of
                {ok, Count} -> true;
                Other -> Other
            end
        end)
         || N <- Nodes]
    end,
    Is(5),
    ?assertEqual({ok, 0}, on(Fleet, N1, fun() -> rt:presence(Tenant, elsewhere) end)),
    [P1 | _] = Pids,
    sderl_ct:kill(Fleet, P1, kill),
    Is(4),
    %% One that starts anew asks.
    {ok, At} = on(Fleet, N1, fun() -> rt:call(Tenant, where) end),
    kill_tenant(Fleet, At, Tenant),
    Is(4).

kill_tenant(Fleet, Node, Tenant) ->
    {Group, Name} = rt_name(Tenant),
    sderl_ct:kill(Fleet, on(Fleet, Node, fun() -> s_group:whereis_name(Group, Name) end), kill).

rt_name({Region, Id}) -> {{region, Region}, {tenant, Id}}.

%% Thirty on three nodes: none has all, none has none.
placed_by_load(Config) ->
    {Fleet, [N1, N2, N3 | _] = Nodes} = fleet(Config),
    Tenants = [{eu, {load, I}} || I <- lists:seq(1, 30)],
    %% Of elsewhere, each tenant from another node.
    Places = [begin
        {ok, Node} = on(Fleet, lists:nth(1 + I rem 8, Nodes), fun() -> rt:call(T, where) end),
        Node
     end || {I, T} <- lists:enumerate(Tenants)],
    Counts = [length([1 || P <- Places, P =:= N]) || N <- [N1, N2, N3]],
    ct:pal("tenants on the nodes of eu: ~w", [Counts]),
    ?assertEqual(30, lists:sum(Counts)),
    ?assert(lists:min(Counts) >= 4),
    [await({load, N}, fun() ->
        Here = length(on(Fleet, N, fun() ->
            [1
             || {G, T} <- s_group:registered_names({s_group, {region, eu}}),
                node(s_group:whereis_name(G, T)) =:= node()]
        end)),
        {ok, Here, 0} =:=
            setelement(3, on(Fleet, N, fun() -> sderl_attr:cached(node(), tenants) end), 0)
    end) || N <- [N1, N2, N3]].

%% Its node is killed: it runs on another one of the region.
tenant_moves(Config) ->
    {Fleet, [_, _, _, _, _, _, _, N8] = Nodes} = fleet(Config),
    [_, _, _, N4, N5, N6, _, _] = Nodes,
    %% One that is kept elsewhere than it runs.
    [{Tenant, Node} | _] = lists:append([begin
        T = {us, {moves, I}},
        {ok, At} = on(Fleet, N8, fun() -> rt:call(T, where) end),
        [{T, At} || At =/= keeper(Fleet, N4, T)]
     end || I <- lists:seq(1, 20)]),
    ok = sderl_fleet:kill(Fleet, Node),
    await({moved, Tenant}, fun() ->
        case on(Fleet, N8, fun() -> rt:call(Tenant, where) end) of
            {ok, At} -> lists:member(At, [N4, N5, N6] -- [Node]);
            Other -> Other
        end
    end),
    back(Config, Node).

keeper(Fleet, Node, {Region, Id}) ->
    on(Fleet, Node,
       fun() -> sderl_place:choose_node(#{group => {region, Region}, choose => {hash, Id}}) end).

back(Config, Node) ->
    {Fleet, Nodes} = fleet(Config),
    {ok, Node} = sderl_fleet:restart(Fleet, Node),
    [sderl_ct:settled(Fleet, {region, R}, [lists:nth(I, Nodes) || I <- Is])
     || {R, Is} <- numbers()],
    sderl_ct:settled(Fleet, backbone, [lists:nth(I, Nodes) || I <- [1, 2, 4, 5, 7, 8]]),
    ways(Config).

%% Where somebody is subscribed it comes back without a call, also when its keeper's node is what
%% died.
keeper_dies(Config) ->
    {Fleet, [N1, N2, N3 | _] = Nodes} = fleet(Config),
    N6 = lists:nth(6, Nodes),
    [Tenant | _] = [T
                    || I <- lists:seq(1, 50), T <- [{eu, {kept, I}}], keeper(Fleet, N1, T) =:= N3],
    _ = subscribers(Fleet, [N6], Tenant, room),
    {Group, Name} = rt_name(Tenant),
    Pid = fun() -> on(Fleet, N1, fun() -> s_group:whereis_name(Group, Name) end) end,
    await(started, fun() -> is_pid(Pid()) end),
    Old = Pid(),
    ok = sderl_fleet:kill(Fleet, N3),
    await(again, fun() ->
        case Pid() of
            undefined -> undefined;
            Old -> Old;
            New -> lists:member(node(New), [N1, N2])
        end
    end),
    await(presence, fun() -> {ok, 1} =:= on(Fleet, N6, fun() -> rt:presence(Tenant, room) end) end),
    back(Config, N3).

%% Under broadcasts from both ends. What is sent when the regions know of it arrives, all of it and
%% once.
gateway_dies(Config) ->
    {Fleet, [N1, _, N3, _, _, N6 | _] = Nodes} = fleet(Config),
    Tenant = {eu, stream},
    Pids = subscribers(Fleet, Nodes -- [N1], Tenant, t),
    %% Several, so that each gateway has some of them.
    Senders = [begin
        P = process(Fleet, N),
        on(Fleet, N, fun() -> P ! {apply, fun() -> stream(Tenant, {N, I}, 1) end} end),
        {{N, I}, P}
     end || N <- [N3, N6], I <- lists:seq(1, 4)],
    [await({heard, P}, fun() -> length(messages(Fleet, P)) > 200 end) || P <- Pids],
    ok = sderl_fleet:kill(Fleet, N1),
    %% Failed over: no way leads over the dead one.
    [await({failover, N}, fun() ->
        #{routes := Routes} = on(Fleet, N, fun() -> sderl_route:info() end),
        not lists:any(fun({_, _, First}) -> lists:member(N1, First) end, Routes)
     end) || N <- Nodes -- [N1]],
    Marks = [{S, on(Fleet, node(P),
                    fun() -> Self = self(), P ! {mark, Self}, receive {mark, K} -> K end end)}
             || {S, P} <- Senders],
    More = 200,
    [await({heard, P}, fun() ->
        Last = #{S => K || {S, K} <- messages(Fleet, P)},
        lists:all(fun({S, K}) -> map_get(S, Last) >= K + More end, Marks)
     end) || P <- Pids],
    [on(Fleet, node(P), fun() -> P ! stop end) || {_, P} <- Senders],
    Lost = [begin
        All = [K || {S1, K} <- messages(Fleet, P), S1 =:= S],
        ?assertEqual(lists:seq(Mark, Mark + More), [K || K <- All, K >= Mark, K =< Mark + More],
                     {P, S}),
        %% What was lost, or overtaken on another way, is of that moment; nothing came twice.
        ?assertEqual(lists:sort(All), lists:usort(All)),
        lists:max(All) - length(All)
     end || P <- Pids, {S, Mark} <- Marks],
    ct:pal("lost of ~b broadcasts by ~b receivers: ~w", [length(Marks), length(Pids), Lost]),
    back(Config, N1),
    links(Config).

%% A region that is split has one on each side; one that is healed has one.
split(Config) ->
    {Fleet, [N1, N2, N3 | _] = Nodes} = fleet(Config),
    N4 = lists:nth(4, Nodes),
    Tenant = {eu, {split, 1}},
    _ = subscribers(Fleet, [N2, N3, N4], Tenant, room),
    [sderl_ct:cut(Fleet, N3, N) || N <- [N1, N2]],
    Group = {region, eu},
    [sderl_ct:agreed(Fleet, Group, {Live, [N1, N2, N3]}) || Live <- [[N1, N2], [N3]]],
    Runs = fun(From, At) ->
        await({runs, From}, fun() ->
            case on(Fleet, From, fun() -> rt:call(Tenant, where) end) of
                {ok, N} -> lists:member(N, At);
                Other -> Other
            end
        end)
    end,
    Runs(N3, [N3]),
    Runs(N4, [N1, N2]),
    await(two, fun() -> 2 =:= length(running(Fleet, Nodes, eu, split)) end),
    [sderl_ct:heal(Fleet, N3, N) || N <- [N1, N2]],
    sderl_ct:settled(Fleet, Group, [N1, N2, N3]),
    await(one, fun() -> 1 =:= length(running(Fleet, Nodes, eu, split)) end),
    %% Gateways may hear a moment later which one is left.
    await(one_for_all, fun() ->
        case lists:usort([on(Fleet, N, fun() -> rt:call(Tenant, where) end) || N <- Nodes]) of
            [{ok, _}] -> true;
            Others -> Others
        end
    end),
    %% All tell the one.
    await(presence, fun() -> {ok, 3} =:= on(Fleet, N4, fun() -> rt:presence(Tenant, room) end) end).

%% A broadcast each millisecond or so, numbered.
stream(Tenant, From, K) ->
    ok = rt:broadcast(Tenant, t, {From, K}),
    receive
        {mark, Pid} -> Pid ! {mark, K + 1}, stream(Tenant, From, K + 1);
        stop -> ok
    after 1 -> stream(Tenant, From, K + 1)
    end.

%% A node that is ended in order leaves its groups first; what ran on it runs elsewhere.
member_says_goodbye(Config) ->
    {Fleet, [_, _, _, N4, N5, N6, _, _]} = fleet(Config),
    Tenants = [{us, {left, I}} || I <- lists:seq(1, 6)],
    [{ok, _} = on(Fleet, N4, fun() -> rt:call(T, where) end) || T <- Tenants],
    ok = sderl_fleet:stop_node(Fleet, N6),
    sderl_ct:settled(Fleet, {region, us}, [N4, N5]),
    [await({runs, T}, fun() ->
                             case on(Fleet, N5, fun() -> rt:call(T, where) end) of
                                 {ok, At} -> lists:member(At, [N4, N5]);
                                 Other -> Other
                             end
     end) || T <- Tenants].
