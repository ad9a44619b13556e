-module(sderl_follow_SUITE).

%% Copies of groups on nodes that are in others. Three groups in a row, with a gateway at each
%% border: left 1 2, right 2 3 4, far 4 5.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2, process/2]).

-define(NAMES, 3000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [follows, over_gateways, cut_off, too_large, stale, feeder_stands_still, processes_die,
     becomes_a_member, made_again, bad_input, at_launch].

init_per_suite(Config0) ->
    Config = sderl_ct:hold(5, [{tick_ms, 500}, {set_aside_ms, 15_000}, {write_timeout_ms, 60_000},
                               {follow_names, ?NAMES}, {follow_max_age_ms, 1500}]) ++ Config0,
    {Fleet, [N1, N2, N3, N4, N5]} = fleet(Config),
    _ = [sderl_ct:group(Fleet, G, Ns)
         || {G, Ns} <- [{left, [N1, N2]}, {right, [N2, N3, N4]}, {far, [N4, N5]}]],
    await(routes, fun() ->
        lists:member(left, [G || {G, _} <- on(Fleet, N5, fun sderl_route:groups/0)])
            andalso lists:member(far, [G || {G, _} <- on(Fleet, N1, fun sderl_route:groups/0)])
    end),
    Config.

end_per_suite(Config) -> sderl_ct:release(Config).

init_per_testcase(_, Config) ->
    {Fleet, Nodes} = fleet(Config),
    [{links, sderl_ct:links(Fleet, Nodes)} | Config].

%% No test added a link, and none leaves a name or a copy.
end_per_testcase(_, Config) ->
    {Fleet, [N1, _, N3, _, N5] = Nodes} = fleet(Config),
    sderl_ct:same_links(Fleet, Nodes, proplists:get_value(links, Config)),
    [on(Fleet, N, fun() ->
        [s_group:unregister_name(G, Name) || {_, Name} <- s_group:registered_names({s_group, G})]
     end) || {G, N} <- [{left, N1}, {right, N3}, {far, N5}]],
    [ok = on(Fleet, N, fun() -> s_group:unfollow(G) end)
     || N <- Nodes, G <- [left, right, far, later]],
    [?assertEqual([], on(Fleet, N, fun() -> proplists:get_value(followed, s_group:info()) end))
     || N <- Nodes],
    [?assertEqual(0, on(Fleet, N, fun() -> ets:info(sderl_copies, size) end)) || N <- Nodes],
    ok.

fleet(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

register(Fleet, Node, Group, Name, Options) ->
    Pid = process(Fleet, Node),
    yes = on(Fleet, Node, fun() -> s_group:register_name(Group, Name, Pid, Options) end),
    Pid.

register_many(Fleet, Node, Group, Many) ->
    Pid = process(Fleet, Node),
    on(Fleet, Node, fun() ->
        Self = self(),
        _ = [spawn(fun() ->
            yes = s_group:register_name(Group, {many, I}, spawn(fun() -> receive _ -> ok end end)),
            Self ! done
        end) || I <- lists:seq(1, Many)],
        [receive done -> ok end || _ <- lists:seq(1, Many)]
    end),
    Pid.

whole(Fleet, Node, Group) -> state(Fleet, Node, Group, whole).

state(Fleet, Node, Group, State) ->
    await({State, Node, Group}, fun() ->
        case [C || #{group := G} = C <- followed(Fleet, Node), G =:= Group] of
            [#{state := State}] -> true;
            Other -> Other
        end
    end).

followed(Fleet, Node) ->
    on(Fleet, Node, fun() -> proplists:get_value(followed, s_group:info()) end).

whereis_name(Fleet, Node, Group, Name) ->
    on(Fleet, Node, fun() -> s_group:whereis_name(Group, Name) end).

%% The copy has it so. (A copy that was not confirmed in time, as the machine is busy, is not read
%% until it is.)
copied(Fleet, Node, Group, Name, Expected) ->
    await({copied, Node, Name}, fun() ->
        case on(Fleet, Node, fun() -> sderl_copies:whereis(Group, Name) end) of
            {ok, Expected} -> true;
            Other -> Other
        end
    end).

%% No node answers a question of a non-member meanwhile.
nobody_answers(Fleet, Nodes, Fun) ->
    [on(Fleet, N, fun() -> sys:suspend(sderl_ask) end) || N <- Nodes],
    try Fun()
    after [on(Fleet, N, fun() -> sys:resume(sderl_ask) end) || N <- Nodes]
    end.

%% ----------------------------------------------------------------

%% What is there comes in pieces, what changes follows, and nobody is asked.
follows(Config) ->
    {Fleet, [N1, N2, N3, N4, _]} = fleet(Config),
    _ = register_many(Fleet, N3, right, 1200),
    Pid = register(Fleet, N4, right, till, #{meta => {price, 12}}),
    ok = on(Fleet, N1, fun() -> s_group:follow(right) end),
    ok = on(Fleet, N1, fun() -> s_group:follow(right) end),
    whole(Fleet, N1, right),
    See = fun() ->
        {s_group:lookup(right, till), lists:sort(s_group:registered_names({s_group, right}))}
    end,
    Seen = on(Fleet, N4, See),
    nobody_answers(Fleet, [N2, N3, N4], fun() ->
        await(till, fun() -> Pid =:= whereis_name(Fleet, N1, right, till) end),
        copied(Fleet, N1, right, nobody, undefined),
        ?assertEqual(undefined, whereis_name(Fleet, N1, right, nobody)),
        await(seen, fun() -> case on(Fleet, N1, See) of Seen -> true; Else -> Else end end),
        Other = register(Fleet, N3, right, other, #{}),
        await(other, fun() -> Other =:= whereis_name(Fleet, N1, right, other) end),
        sderl_ct:kill(Fleet, Pid, kill),
        await(till, fun() -> undefined =:= whereis_name(Fleet, N1, right, till) end),
        Again = register(Fleet, N2, right, till, #{meta => again}),
        await(again, fun() ->
            case on(Fleet, N1, fun() -> s_group:lookup(right, till) end) of
                #{pid := Again, meta := again} -> true;
                Else -> Else
            end
        end)
    end),
    await(names, fun() ->
        case followed(Fleet, N1) of
            [#{group := right, state := whole, names := 1202, age_ms := Age}] -> Age < 1500;
            Else -> Else
        end
    end),
    ok = on(Fleet, N1, fun() -> s_group:unfollow(right) end),
    ?assertEqual([], followed(Fleet, N1)),
    ?assertEqual(undefined, whereis_name(Fleet, N1, right, nobody)),
    %% Nobody follows: the member is told of no change any more.
    await(closed, fun() ->
        [] =:= lists:append([on(Fleet, N,
                                fun() -> [rows || true <- [sderl_subs:wanted(right, rows)]] end)
                             || N <- [N2, N3, N4]])
    end).

%% Members are two gateways away, and stay so.
over_gateways(Config) ->
    {Fleet, [N1, _, _, _, N5]} = fleet(Config),
    Pid = register(Fleet, N1, left, shelf, #{}),
    ok = on(Fleet, N5, fun() -> s_group:follow(left) end),
    whole(Fleet, N5, left),
    copied(Fleet, N5, left, shelf, Pid),
    Other = register(Fleet, N1, left, other, #{}),
    await(other, fun() ->
        {ok, Other} =:= on(Fleet, N5, fun() -> sderl_copies:whereis(left, other) end)
    end).

%% A break of a moment makes no link, and what changed meanwhile comes after it.
cut_off(Config) ->
    {Fleet, [N1, N2, N3, _, _]} = fleet(Config),
    Pid = register(Fleet, N3, right, till, #{}),
    ok = on(Fleet, N1, fun() -> s_group:follow(right) end),
    whole(Fleet, N1, right),
    sderl_ct:cut(Fleet, N1, N2),
    Other = register(Fleet, N3, right, other, #{}),
    sderl_ct:kill(Fleet, Pid, kill),
    sderl_ct:heal(Fleet, N1, N2),
    await(other, fun() ->
        {ok, Other} =:= on(Fleet, N1, fun() -> sderl_copies:whereis(right, other) end)
    end),
    await(till, fun() ->
        {ok, undefined} =:= on(Fleet, N1, fun() -> sderl_copies:whereis(right, till) end)
    end),
    sderl_ct:settled(Fleet, left, [N1, N2]).

%% Whether it is so at first or grows so.
too_large(Config) ->
    {Fleet, [N1, _, N3, _, N5]} = fleet(Config),
    ok = on(Fleet, N1, fun() -> s_group:follow(right) end),
    whole(Fleet, N1, right),
    _ = register_many(Fleet, N3, right, ?NAMES + 1),
    state(Fleet, N1, right, too_large),
    ok = on(Fleet, N5, fun() -> s_group:follow(right) end),
    state(Fleet, N5, right, too_large),
    [?assertEqual(true, is_pid(whereis_name(Fleet, N, right, {many, 1}))) || N <- [N1, N5]].

%% What is not confirmed for too long is not read.
stale(Config) ->
    {Fleet, [N1, N2, N3, N4, _]} = fleet(Config),
    Pid = register(Fleet, N3, right, till, #{}),
    ok = on(Fleet, N1, fun() -> s_group:follow(right) end),
    whole(Fleet, N1, right),
    [on(Fleet, N, fun() -> sys:suspend(sderl_feeder) end) || N <- [N2, N3, N4]],
    Other = register(Fleet, N3, right, other, #{}),
    %% For a while it is missing, as it may be in a copy, and then a member is asked.
    await(asked, fun() -> Other =:= whereis_name(Fleet, N1, right, other) end),
    ?assertEqual(none, on(Fleet, N1, fun() -> sderl_copies:whereis(right, till) end)),
    ?assertEqual(Pid, whereis_name(Fleet, N1, right, till)),
    state(Fleet, N1, right, stale),
    [on(Fleet, N, fun() -> sys:resume(sderl_feeder) end) || N <- [N2, N3, N4]],
    whole(Fleet, N1, right),
    copied(Fleet, N1, right, other, Other).

%% Another member takes over from one that does not answer, and a follower that does not either
%% holds up nobody.
feeder_stands_still(Config) ->
    {Fleet, [N1, _, N3, _, _]} = fleet(Config),
    ok = on(Fleet, N1, fun() -> s_group:follow(right) end),
    whole(Fleet, N1, right),
    [#{from := First}] = followed(Fleet, N1),
    on(Fleet, First, fun() -> sys:suspend(sderl_feeder) end),
    await(another, fun() ->
        case followed(Fleet, N1) of
            [#{from := Next, state := whole}] -> Next =/= First;
            Other -> Other
        end
    end),
    on(Fleet, First, fun() -> sys:resume(sderl_feeder) end),
    on(Fleet, N1, fun() -> sys:suspend(sderl_follower) end),
    _ = register_many(Fleet, N3, right, 1100),
    on(Fleet, N1, fun() -> sys:resume(sderl_follower) end),
    await(all, fun() ->
        case followed(Fleet, N1) of
            [#{state := whole, names := Names}] -> Names =:= 1100;
            Other -> Other
        end
    end).

%% Each process may be killed; the copy goes on.
processes_die(Config) ->
    {Fleet, [N1, _, N3, _, _]} = fleet(Config),
    Pid = register(Fleet, N3, right, till, #{}),
    ok = on(Fleet, N1, fun() -> s_group:follow(right) end),
    whole(Fleet, N1, right),
    Killed =
        on(Fleet, N1,
           fun() -> exit(whereis(sderl_follower), kill), sderl_copies:whereis(right, till) end),
    ?assertEqual({ok, Pid}, Killed),
    Kill = fun(Name, Process) ->
        [#{from := Feeder}] = followed(Fleet, N1),
        on(Fleet, Feeder, fun() -> exit(Process(), kill) end),
        New = register(Fleet, N3, right, Name, #{}),
        await(Name, fun() ->
            {ok, New} =:= on(Fleet, N1, fun() -> sderl_copies:whereis(right, Name) end)
        end)
    end,
    whole(Fleet, N1, right),
    await(feeder, fun() -> none =/= maps:get(from, hd(followed(Fleet, N1))) end),
    Kill(first, fun() -> whereis(sderl_feeder) end),
    await(feeder, fun() -> none =/= maps:get(from, hd(followed(Fleet, N1))) end),
    Kill(second, fun() -> sderl_dir:process(right) end),
    ?assertEqual(3, length(on(Fleet, N1, fun() -> s_group:registered_names({s_group, right}) end))).

%% A member reads its own table; when it leaves it follows again.
becomes_a_member(Config) ->
    {Fleet, [N1, _, N3, _, _]} = fleet(Config),
    Pid = register(Fleet, N3, right, till, #{}),
    ok = on(Fleet, N1, fun() -> s_group:follow(right) end),
    whole(Fleet, N1, right),
    {ok, right, [N1]} = on(Fleet, N3, fun() -> s_group:add_nodes(right, [N1]) end),
    state(Fleet, N1, right, member),
    ?assertEqual(0, on(Fleet, N1, fun() -> ets:info(sderl_copies, size) end)),
    ?assertEqual(Pid, whereis_name(Fleet, N1, right, till)),
    ?assertEqual({error, node_belongs_to_the_s_group},
                 on(Fleet, N1, fun() -> s_group:follow(right) end)),
    ok = on(Fleet, N1, fun() -> s_group:leave(right) end),
    whole(Fleet, N1, right),
    copied(Fleet, N1, right, till, Pid),
    %% The links of that time are nobody's need any more. (A member that had not heard of the end
    %% may make one again.)
    [Before | _] = proplists:get_value(links, Config),
    await(unlinked, fun() ->
        [on(Fleet, N1, fun() -> erlang:disconnect_node(N) end)
         || N <- on(Fleet, N1, fun() -> nodes(connected) end) -- Before],
        hd(sderl_ct:links(Fleet, [N1])) =:= Before
    end).

%% A group may be followed before there is one, and what was copied of one that was deleted goes.
made_again(Config) ->
    {Fleet, [N1, N2, N3, _, _]} = fleet(Config),
    ok = on(Fleet, N1, fun() -> s_group:follow(later) end),
    state(Fleet, N1, later, seeking),
    ?assertEqual(undefined, whereis_name(Fleet, N1, later, x)),
    sderl_ct:group(Fleet, later, [N2, N3]),
    Pid = register(Fleet, N3, later, x, #{}),
    await(x, fun() -> {ok, Pid} =:= on(Fleet, N1, fun() -> sderl_copies:whereis(later, x) end) end),
    sderl_ct:delete(Fleet, later, N2),
    sderl_ct:group(Fleet, later, [N3, N2]),
    Other = register(Fleet, N3, later, y, #{}),
    await(y,
          fun() -> {ok, Other} =:= on(Fleet, N1, fun() -> sderl_copies:whereis(later, y) end) end),
    copied(Fleet, N1, later, x, undefined),
    sderl_ct:delete(Fleet, later, N2).

bad_input(Config) ->
    {Fleet, [N1 | _]} = fleet(Config),
    ?assertEqual({error, reserved_s_group_name},
                 on(Fleet, N1, fun() -> s_group:follow(undefined) end)),
    ?assertEqual({error, node_belongs_to_the_s_group},
                 on(Fleet, N1, fun() -> s_group:follow(left) end)),
    ?assertEqual(ok, on(Fleet, N1, fun() -> s_group:unfollow(nowhere) end)),
    Unknown = fun() -> proplists:get_value(unknown_messages, on(Fleet, N1, fun s_group:info/0)) end,
    Before = Unknown(),
    on(Fleet, N1, fun() ->
        [P ! {sderl_follow, 1, 'x@nowhere', left, Bad}
         || P <- [sderl_feeder, sderl_follower],
            Bad <- [x, {want, none, none, 0}, {no, x}, {delta, x, 0, 0, [], [], none},
                    {piece, {<<>>, a, 1}, 1, 1, [x], more, none}]],
        [_ = sys:get_state(P) || P <- [sderl_feeder, sderl_follower]]
    end),
    ?assertEqual(10, Unknown() - Before).

%% The configuration says what a node follows, and a look-up needs no call before.
at_launch(_) ->
    Env = [{sderl, follow, [g]}, {sderl, follow_max_age_ms, 3000}],
    {ok, Fleet} = sderl_fleet:start(#{
        families => [#{name => a, count => 2, apps => [sderl]},
                     #{name => b, count => 1, apps => [sderl], env => Env}],
        s_groups => [{g, normal, [{a, [1, 2]}]}, {h, normal, [{b, [1]}]}],
        s_groups_known => all
    }),
    try
        [A1, _, B] = sderl_fleet:nodes(Fleet),
        ok = on(Fleet, A1, fun() -> s_group:await(g, 60_000) end),
        Pid = register(Fleet, A1, g, x, #{}),
        await(x, fun() -> {ok, Pid} =:= on(Fleet, B, fun() -> sderl_copies:whereis(g, x) end) end)
    after sderl_fleet:stop(Fleet)
    end.
