%% SPDX-License-Identifier: Apache-2.0
-module(sderl_subs_tests).
-include_lib("eunit/include/eunit.hrl").

subs_test_() ->
    {foreach, fun start/0, fun stop/1, [
        {atom_to_list(Name), Test}
     || {Name, Test} <- [
            {tells_what_was_asked_for, fun tells_what_was_asked_for/0},
            {all_groups, fun all_groups/0},
            {exact_names, fun exact_names/0},
            {wanted, fun wanted/0},
            {refuses, fun refuses/0},
            {unsubscribe_leaves_nothing, fun unsubscribe_leaves_nothing/0},
            {death_leaves_nothing, fun death_leaves_nothing/0},
            {survives_a_crash, fun survives_a_crash/0},
            {a_death_during_a_crash, fun a_death_during_a_crash/0},
            {node_monitors, fun node_monitors/0},
            {many, fun many/0},
            {stopped, fun stopped/0}
        ]
    ]}.

start() ->
    sderl_subs = sderl_subs:new(),
    {ok, Pid} = sderl_subs:start_link(fun sderl_event:dropped/3),
    unlink(Pid).

stop(_) ->
    kill(),
    drain(),
    ets:delete(sderl_subs),
    ets:delete(sderl_subs_to).

kill() ->
    case whereis(sderl_subs) of
        undefined ->
            ok;
        Pid ->
            Monitor = monitor(process, Pid),
            exit(Pid, kill),
            receive
                {'DOWN', Monitor, _, _, _} -> ok
            end
    end.

drain() ->
    receive
        _ -> drain()
    after 0 -> ok
    end.

%% What this process was told, in order. Telling is done by this process, so all is here.
told() ->
    receive
        {s_group_event, _, _, _} = Told -> [Told | told()];
        {Up, _} = Told when Up =:= nodeup; Up =:= nodedown -> [Told | told()]
    after 0 -> []
    end.

%% Whatever the server had in its mailbox is done.
settle() -> ok = gen_server:call(sderl_subs, {unsubscribe, make_ref()}).

bystander() -> spawn(fun() -> receive stop -> ok end end).

end_of(Pid) ->
    Monitor = monitor(process, Pid),
    Pid ! stop,
    receive
        {'DOWN', Monitor, _, _, _} -> ok
    end.

%% The server may hear of a death later than the test does.
await_empty() ->
    settle(),
    case rows() of
        [] -> ok;
        _ -> await_empty()
    end.

rows() -> lists:sort(ets:tab2list(sderl_subs) ++ ets:tab2list(sderl_subs_to)).

tells_what_was_asked_for() ->
    {ok, G} = sderl_subs:subscribe(g, self(), [group]),
    {ok, N} = sderl_subs:subscribe(g, self(), [name]),
    {ok, B} = sderl_subs:subscribe(g, self(), [name, group]),
    {ok, _} = sderl_subs:subscribe(other, self(), [name, group]),
    sderl_subs:notify(g, {name, registered, n, self()}),
    sderl_subs:notify(g, {group, members_added, ['b@h']}),
    Told = told(),
    Name = [Ref || {s_group_event, Ref, g, {name, registered, n, Pid}} <- Told, Pid =:= self()],
    Group = [Ref || {s_group_event, Ref, g, {group, members_added, ['b@h']}} <- Told],
    ?assertEqual(lists:sort([N, B]), lists:sort(Name)),
    ?assertEqual(lists:sort([G, B]), lists:sort(Group)),
    ?assertEqual(4, length(Told)).

all_groups() ->
    {ok, Ref} = sderl_subs:subscribe(all, self(), [group]),
    [sderl_subs:notify(G, {group, deleted, undefined}) || G <- [g, undefined, all]],
    ?assertEqual(
        [{s_group_event, Ref, G, {group, deleted, undefined}} || G <- [g, undefined, all]], told()
    ).

exact_names() ->
    {ok, Ref} = sderl_subs:subscribe(1, self(), [group]),
    {ok, _} = sderl_subs:subscribe(1.0, self(), [name]),
    [sderl_subs:notify(G, {group, deleted, undefined}) || G <- [1, 1.0]],
    ?assertMatch([{s_group_event, Ref, 1, _}], told()).

wanted() ->
    ?assertNot(sderl_subs:wanted(g, name)),
    {ok, Ref} = sderl_subs:subscribe(g, self(), [name]),
    ?assert(sderl_subs:wanted(g, name)),
    ?assertNot(sderl_subs:wanted(g, group)),
    ?assertNot(sderl_subs:wanted(h, name)),
    ok = sderl_subs:unsubscribe(Ref),
    ?assertNot(sderl_subs:wanted(g, name)).

refuses() ->
    [
        ?assertEqual({error, {bad_kinds, Kinds}}, sderl_subs:subscribe(g, self(), Kinds))
     || Kinds <- [[], [names], group, [group | name], [group, x]]
    ],
    %% A pid of another node, in the external term format.
    Remote = binary_to_term(<<131, 88, 119, 3, "x@y", 1:32, 0:32, 1:32>>),
    ?assertEqual({error, remote_pid}, sderl_subs:subscribe(g, Remote, [name])),
    ?assertEqual({error, remote_pid}, sderl_subs:monitor_nodes(Remote, true)).

unsubscribe_leaves_nothing() ->
    {ok, A} = sderl_subs:subscribe(g, self(), [name]),
    {ok, B} = sderl_subs:subscribe(g, self(), [name]),
    ok = sderl_subs:unsubscribe(A),
    sderl_subs:notify(g, {name, registered, n, self()}),
    ?assertMatch([{s_group_event, B, g, _}], told()),
    ok = sderl_subs:unsubscribe(B),
    ok = sderl_subs:unsubscribe(B),
    sderl_subs:notify(g, {name, registered, n, self()}),
    ?assertEqual([], told()),
    ?assertEqual([], rows()),
    ?assertEqual({#{}, #{}}, sys:get_state(sderl_subs)),
    ?assertEqual({monitors, []}, process_info(whereis(sderl_subs), monitors)).

death_leaves_nothing() ->
    Pid = bystander(),
    {ok, _} = sderl_subs:subscribe(g, Pid, [name]),
    {ok, _} = sderl_subs:subscribe(all, Pid, [name]),
    ok = sderl_subs:monitor_nodes(Pid, true),
    end_of(Pid),
    await_empty().

survives_a_crash() ->
    {ok, Ref} = sderl_subs:subscribe(g, self(), [name]),
    ok = sderl_subs:monitor_nodes(self(), true),
    Before = rows(),
    kill(),
    %% Telling needs no server.
    sderl_subs:notify(g, {name, registered, n, self()}),
    ?assertMatch([{s_group_event, Ref, g, _}], told()),
    %% A crash between two writes: a row that nothing stands for, and one that is missing.
    ets:insert(sderl_subs_to, {{1, name, make_ref()}, gone, self()}),
    ets:insert(sderl_subs, {{wanted, gone, name}, 1}),
    [ets:delete(sderl_subs_to, Key)
     || {{_, _, R} = Key, g, _} <- ets:tab2list(sderl_subs_to), R =:= Ref],
    ets:delete(sderl_subs, {wanted, g, name}),
    {ok, Pid} = sderl_subs:start_link(fun sderl_event:dropped/3),
    unlink(Pid),
    ?assertEqual(Before, rows()),
    sderl_subs:notify(g, {name, registered, n, self()}),
    sderl_subs:notify_node(nodeup, 'b@h'),
    ?assertMatch([{s_group_event, Ref, g, _}, {nodeup, 'b@h'}], told()),
    ok = sderl_subs:unsubscribe(Ref),
    ok = sderl_subs:monitor_nodes(self(), false),
    ?assertEqual([], rows()).

a_death_during_a_crash() ->
    Pid = bystander(),
    {ok, _} = sderl_subs:subscribe(g, Pid, [name]),
    kill(),
    end_of(Pid),
    {ok, Server} = sderl_subs:start_link(fun sderl_event:dropped/3),
    unlink(Server),
    await_empty().

node_monitors() ->
    ok = sderl_subs:monitor_nodes(self(), true),
    ok = sderl_subs:monitor_nodes(self(), true),
    sderl_subs:notify_node(nodeup, 'b@h'),
    sderl_subs:notify_node(nodedown, 'b@h'),
    ?assertEqual([{nodeup, 'b@h'}, {nodedown, 'b@h'}], told()),
    ok = sderl_subs:monitor_nodes(self(), false),
    sderl_subs:notify_node(nodeup, 'b@h'),
    ?assertEqual([], told()).

%% One more subscriber is as much work for the server among thousands as among hundreds, and so is
%% its end. (Counted in reductions, of which a search through all would take as many as there are.)
many() ->
    Pids = [bystander() || _ <- lists:seq(1, 100)],
    {First, _} = work(Pids, 100),
    {Refs, _} = work_of(fun() -> [subscribed(Pid) || Pid <- Pids, _ <- lists:seq(1, 40)] end),
    {Last, Ends} = work(Pids, 100),
    ?assert(Last < 2 * First, {First, Last}),
    ?assert(Ends < 3 * Last, {Last, Ends}),
    {_, Left} = work_of(fun() -> [ok = sderl_subs:unsubscribe(Ref) || Ref <- Refs] end),
    ?assert(Left div 40 < 3 * Last, {Left, Last}),
    ?assertEqual([], rows()),
    [end_of(Pid) || Pid <- Pids].

%% What so many subscriptions are to the server, and their ends.
work(Pids, Count) ->
    {Refs, Begun} =
        work_of(fun() -> [subscribed(lists:nth(N, Pids)) || N <- lists:seq(1, Count)] end),
    {_, Ended} = work_of(fun() -> [ok = sderl_subs:unsubscribe(Ref) || Ref <- Refs] end),
    {Begun, Ended}.

subscribed(Pid) ->
    {ok, Ref} = sderl_subs:subscribe(g, Pid, [name, group]),
    Ref.

work_of(Fun) ->
    Server = whereis(sderl_subs),
    {reductions, Before} = process_info(Server, reductions),
    Result = Fun(),
    {reductions, After} = process_info(Server, reductions),
    {Result, After - Before}.

stopped() ->
    kill(),
    ?assertEqual({error, not_running}, sderl_subs:subscribe(g, self(), [name])),
    ?assertEqual({error, not_running}, sderl_subs:unsubscribe(make_ref())),
    ?assertEqual({error, not_running}, sderl_subs:monitor_nodes(self(), true)).
