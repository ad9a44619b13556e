%% SPDX-License-Identifier: Apache-2.0
-module(sderl_hostile_SUITE).

%% Messages that no process of the library sends, to every process of it on real nodes: what was
%% seen to do harm, and well-typed messages with a part that was changed. No process ends, every
%% group goes on writing, and atoms, memory and the log stay as they were.
%%
%% A message that is well typed and false is another matter: it may be an order (`{gone, deleted,
%% _}` ends a group), and who may send messages to processes may as well kill them. `is_order/2`
%% names these, and they are not sent.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2]).

suite() -> [{timetrap, {minutes, 40}}].

all() ->
    [stored_values, stored_operations, hello_from_itself, improper_lists, unsound_rows,
     equal_warnings, mutated_messages].

init_per_suite(Config) ->
    Held = sderl_ct:hold(3, [{tick_ms, 200}, {set_aside_ms, 4000}, {write_timeout_ms, 60_000}]),
    Fleet = proplists:get_value(fleet, Held),
    Nodes = [First, Second, _] = proplists:get_value(nodes, Held),
    [] = sderl_ct:group(Fleet, g, Nodes),
    [] = sderl_ct:group(Fleet, h, [First, Second]),
    Pid = sderl_ct:process(Fleet, First),
    ok = on(Fleet, First, fun() -> s_group:join(g, workers, Pid) end),
    Held ++ Config.

end_per_suite(Config) -> sderl_ct:release(Config).

%% The processes of the library on the first node are the same ones after each case.
init_per_testcase(_, Config) -> [{before, servers(Config)} | Config].

end_per_testcase(unsound_rows, _) -> ok;
end_per_testcase(_, Config) ->
    case {proplists:get_value(before, Config), servers(Config)} of
        {Same, Same} -> ok;
        {Before, After} -> {fail, {ended, Before -- After, After -- Before}}
    end.

servers(Config) ->
    {Fleet, [First | _]} = start(Config),
    on(Fleet, First, fun servers/0).

start(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

%% ---------------------------------------------------------------- on a node

servers() ->
    [{Name, whereis(Name)}
     || Name <- [sderl_sup, sderl_forward_sup, sderl_group_sup, sderl_pg_sup,
                 sderl_place_sup | sderl_hostile:servers()]]
        ++ [{G, Pid} || {G, #{process := Pid}} <- lists:sort(sderl_dir:all())]
        ++ [{pg, G, Keeper}
            || [G, Keeper] <- lists:sort(ets:match(sderl_pg, {{scope, '_'}, '$1', '_', '$2'}))].

group(Name) ->
    #{uid := Uid, process := Pid, members := Members} = sderl_dir:group(Name),
    {Uid, Pid, Members}.

%% All that was sent has been dealt with.
handled(Processes) ->
    lists:foreach(fun(P) -> _ = sys:get_status(P, 60_000) end, Processes).

call(To, Request) -> gen_server:call(To, Request, 60_000).

%% A registration and its end on each node, seen on each.
written(Fleet, Group, Nodes) ->
    [begin
        Name = {written, Node, make_ref()},
        Pid = sderl_ct:process(Fleet, Node),
        ?assertEqual({Node, yes},
                     {Node, on(Fleet, Node, fun() -> s_group:register_name(Group, Name, Pid) end)}),
        %% Each that counts has it at once; one that was set aside a moment later.
        [await({N, Name},
               fun() -> Pid =:= on(Fleet, N, fun() -> s_group:whereis_name(Group, Name) end) end)
         || N <- Nodes],
        ?assertEqual(ok, on(Fleet, Node, fun() -> s_group:unregister_name(Group, Name) end)),
        on(Fleet, Node, fun() -> exit(Pid, kill) end)
    end || Node <- Nodes],
    ok.

%% ---------------------------------------------------------------- what was seen

%% A term that is stored before it is checked would end each process that is started after the
%% crash, and at last the application.
stored_values(Config) ->
    {Fleet, [First | _] = Nodes} = start(Config),
    Answers = on(Fleet, First, fun() ->
        Me = self(),
        {_, Group, _} = group(g),
        [gen_server:cast(sderl_watch, C)
         || C <- [{watch, Group, g, [{name, not_a_pid}]},
                  {watch, not_a_pid, g, [{name, Me}]},
                  {watch, Group, g, [{name, Me} | tail]},
                  {watch, Group, g, 42},
                  {unreachable, not_a_pid, name, Me},
                  {exit, 42, kill},
                  {send, 42, hello}]],
        Calls = [{sderl_subs, {subscribe, right, 42, [group]}},
                 {sderl_subs, {subscribe, right, Me, 42}},
                 {sderl_subs, {subscribe, right, Me, [group | name]}},
                 {sderl_subs, {monitor_nodes, 42, true}},
                 {sderl_route_report, {subscribe, 42, true}},
                 {sderl_attr_server, {write, {set, bad, {dynamic, 42}, call, none}}},
                 {sderl_attr_server, {write, {set, bad, 1, call, 42}}},
                 {sderl_attr_server, {keep, [bad], []}}],
        Answers = [{Call, try call(To, Call) catch exit:{Why, _} -> {exit, Why} end}
                   || {To, Call} <- Calls],
        handled([sderl_watch]),
        Answers
    end),
    ?assertEqual([], [A || {_, Answer} = A <- Answers, element(1, Answer) =/= error]),
    written(Fleet, g, Nodes).

%% One that is kept goes to every member again and again.
stored_operations(Config) ->
    {Fleet, [First | _] = Nodes} = start(Config),
    Answers = on(Fleet, First, fun() ->
        {Uid, Group, [_, Second | _]} = group(g),
        Group ! {sderl_op, none, [x | not_a_pid]},
        Epoch = {1, Second},
        List = {Second, 1, 1, [[x | not_a_pid]]},
        [Group ! {sderl, 2, Uid, Second, M}
         || M <- [{req, Epoch, List},
                  {ack, Epoch, 1, List},
                  {batch, Epoch, 1, 1, [{seg, Second, 1, 1, [[x | not_a_pid]], default}]},
                  {answers, Epoch, 1, 42},
                  {joined, Epoch, 1, [42]}]],
        [begin
             Alias = alias([reply]),
             Group ! {sderl_op, Alias, Op},
             receive {Alias, Answer} -> {Op, Answer} end
         end || Op <- [[x | not_a_pid], {r, x, not_a_pid, []}, {r, x, self(), not_options},
                       {x, x, self(), 1, []}, {add, [a | b]}, {remove, [a], never}, {remove, 42, 0},
                       42, {}, []]]
    end),
    ?assertEqual([], [A || {_, Answer} = A <- Answers, Answer =/= {no, unknown_operation}]),
    written(Fleet, g, Nodes).

%% A coordinator that took a message for one of another member of its own name set itself aside, for
%% ever.
hello_from_itself(Config) ->
    {Fleet, Nodes} = start(Config),
    Lead = sderl_ct:lead(Fleet, hd(Nodes), g),
    on(Fleet, Lead, fun() ->
        {Uid, Group, Members} = group(g),
        {ok, #{epoch := Epoch}} = sderl_group:info(Group, 5000),
        Info = #{epoch => Epoch, lineage => Epoch, num => 1, lead => undefined, syncing => false},
        Hello = {hello, Group, another_life, sderl_membership:new(Members), Info},
        Group ! {sderl, 2, Uid, node(), Hello},
        sderl_node ! {sderl_hello, 1, g, Uid, node(), Hello},
        handled([sderl_node, Group])
    end),
    written(Fleet, g, Nodes),
    [] = sderl_ct:settled(Fleet, g, Nodes).

improper_lists(Config) ->
    {Fleet, [First, Second | _]} = start(Config),
    on(Fleet, First, fun() ->
        Improper = [Second | tail],
        Version = {1, 1, 1},
        [sderl_router ! {sderl_route, 1, Second, M}
         || M <- [{news, [a | b]},
                  {news, [{Second, Version, [], Improper}]},
                  {news, [{Second, Version, [a | b], []}]},
                  {news, [{Second, Version, [{g, <<>>, Improper}], []}]},
                  {digest, true, [{Second, Version} | b]}]],
        [sderl_node ! M
         || M <- [{sderl_known, 1, Second, [{g, Improper}]},
                  {sderl_known, 1, Second, [{g, [Second]} | b]},
                  {sderl_free, 1, Second, {meet, <<"uid">>, Improper}},
                  {'$gen_cast', {left, g, Improper}}]],
        [gen_server:cast(sderl_route_report, {failed, {Second, M}})
         || M <- [[a | b], [{self(), to, busy, 1} | b], [{self(), to, busy, -1}]]],
        [sderl_forward_1 ! M
         || M <- [{sderl_many, 1, [a | b]},
                  {sderl_at, 1, 1, 1, First, {pids, [self() | b]}, none, hello},
                  {sderl_at, 1, 1, 1, First, {pids, [b]}, none, hello},
                  {sderl_each, 1, 1, 1, [g | b], {nodes, b}, none, hello},
                  {lane_failed, Second, [a | b]},
                  {lane_failed, Second, [a]},
                  {sderl_to, 1, 1, 1, g, {names, #{'$1' => 2}}, none, hello},
                  {sderl_at, 1, 1, 1, First, {stream, self()}, none,
                   {sderl_stream, 1, self(), {1, 1, 1, x, [a | b]}}}]],
        [sderl_monitor ! {sderl_watch, 1, Second, {1, 1}, M}
         || M <- [{have, 1, 1, [a | b], [], []}, {have, 1, 1, [], [], [bad]},
                  {want, 1, [bad], [], []}, {want, 1, [], [a | b], []}]],
        ?assertEqual({error, unknown_call},
                     call(sderl_gateway_agent, {spawn, erlang, node, [a | b]})),
        handled([sderl_router, sderl_node, sderl_route_report, sderl_forward_1, sderl_monitor])
    end).

%% What is in a table all the same goes when a process starts, with one line in the log.
unsound_rows(Config) ->
    {Fleet, [First | _] = Nodes} = start(Config),
    on(Fleet, First, fun() ->
        {_, Group, _} = group(g),
        ets:insert(sderl_subs, [{{sub, make_ref()}, right, 42, [group]},
                                {{sub, make_ref()}, right, self(), 42}, {{node_monitor, 42}}]),
        ets:insert(sderl_undelivered, {42}),
        ets:insert(sderl_watches, {{Group, name, 42}, g}),
        ets:insert(sderl_monitors, {make_ref(), 42, 42, undefined}),
        ets:insert(sderl_routes, [{{told, somebody}, 42}, {{told, somebody, g}, 42, 42}]),
        ets:insert(sderl_names, {{g, unsound}, 42, node(), {1, node()}, 1, []}),
        Alias = alias([reply]),
        ets:insert(sderl_state, {{out, g}, 1 bsl 20, [{Alias, [x | 42]}]}),
        Down = [{P, monitor(process, P)} || P <- [Group | [whereis(N) || N <- dropping()]]],
        [exit(P, kill) || {P, _} <- Down],
        [receive {'DOWN', Mon, process, P, killed} -> ok end || {P, Mon} <- Down],
        receive {Alias, {no, unknown_operation}} -> ok end
    end),
    await(started, fun() ->
        on(Fleet, First, fun() -> lists:all(fun is_pid/1, [whereis(N) || N <- dropping()]) end)
    end),
    [] = sderl_ct:settled(Fleet, g, Nodes),
    on(Fleet, First, fun() ->
        handled(dropping()),
        ?assertEqual([], [
            Row
         || T <- [sderl_subs, sderl_undelivered, sderl_watches, sderl_monitors, sderl_routes],
            Row <- ets:tab2list(T), lists:member(
                42, lists:flatten([tuple_to_list(E) || E <- [Row, element(1, Row)], is_tuple(E)])
            )
        ])
    end),
    Log = sderl_ct_nodes:log(Fleet, First),
    [?assertNotEqual({P, nomatch},
                     {P, string:find(Log, atom_to_list(P) ++ " found values of wrong types")})
     || P <- [sderl_group | dropping()]],
    written(Fleet, g, Nodes).

dropping() -> [sderl_subs, sderl_route_report, sderl_watch, sderl_monitor, sderl_router].

%% Of one cause the log has a few lines, and says how many it has not.
equal_warnings(Config) ->
    {Fleet, [First, Second | _]} = start(Config),
    Hellos = fun(Count) ->
        Addr = sderl_ct:process(Fleet, Second),
        on(Fleet, First, fun() ->
            {_, _, Members} = group(g),
            Info = #{epoch => {1, Second}, lineage => {1, Second}, num => 1, lead => undefined,
                     syncing => false},
            [sderl_node ! {sderl_hello, 2, g, rand:bytes(16), Second,
                           {hello, Addr, life, sderl_membership:new(Members), Info}}
             || _ <- lists:seq(1, Count)],
            handled([sderl_node])
        end)
    end,
    Hellos(500),
    Lines = fun() ->
        length(re:split(sderl_ct_nodes:log(Fleet, First), "another group of this name runs on")) - 1
    end,
    Written = Lines(),
    ?assert(Written >= 1),
    ?assert(Written =< 20),
    %% The row is as old as ten seconds would make it.
    on(Fleet, First, fun() ->
        [ets:insert(sderl_logged, {Cause, Since - 10_000, Count})
         || {Cause, Since, Count} <- ets:tab2list(sderl_logged)]
    end),
    Hellos(1),
    sderl_ct_nodes:logged(Fleet, First, "more like it were not logged").

%% ---------------------------------------------------------------- mutants

mutated_messages(Config) ->
    {Fleet, [First | _]} = start(Config),
    try
        mutated(Config)
    catch
        Class:Reason:Stack ->
            Log = sderl_ct_nodes:log(Fleet, First),
            ct:pal("~ts", [binary:part(Log, max(0, byte_size(Log) - 20_000),
                                       min(byte_size(Log), 20_000))]),
            erlang:raise(Class, Reason, Stack)
    end.

mutated(Config) ->
    {Fleet, [First | _] = Nodes} = start(Config),
    Seed = sderl_ct:seed(),
    {Rounds, Each} = case os:getenv("SDERL_LONG") of "1" -> {400, 200}; _ -> {8, 50} end,
    on(Fleet, First, fun() ->
        {ok, Modules} = application:get_key(sderl, modules),
        ok = code:ensure_modules_loaded(Modules)
    end),
    Storm = fun(Round, Which) ->
        Sent = on(Fleet, First,
                  fun() -> sderl_hostile:storm(Seed + Round, Each, [g, h], Which) end),
        ?assertEqual(proplists:get_value(before, Config), on(Fleet, First, fun servers/0)),
        Sent
    end,
    Elsewhere = fun() -> [{N, on(Fleet, N, fun servers/0)} || N <- tl(Nodes)] end,
    %% The first round loads what is loaded late.
    _ = Storm(0, ill_typed),
    Others = Elsewhere(),
    Before = on(Fleet, First, fun used/0),
    Logged = byte_size(sderl_ct_nodes:log(Fleet, First)),
    %% What these are answered must be right all the while.
    Clients = [sderl_ct_client:start(Fleet, N, g, {client, N}, 20) || N <- Nodes],
    Epoch = fun() -> maps:with([lead, epoch, live], sderl_ct:state(Fleet, First, g)) end,
    Undisturbed = Epoch(),
    Sent = [Storm(Round, ill_typed) || Round <- lists:seq(1, Rounds)],
    ?assertEqual(Undisturbed, Epoch()),
    Operations = [sderl_ct_client:count(Fleet, C) || C <- Clients],
    Lies = [Storm(Rounds + Round, lies) || Round <- lists:seq(1, Rounds div 4)],
    Held = lists:foldl(fun maps:merge/2, #{}, [sderl_ct_client:pause(Fleet, C) || C <- Clients]),
    sderl_ct:hold_all(Fleet, g, {Nodes, Nodes}, Held),
    _ = sderl_ct:settled(Fleet, h, lists:droplast(Nodes)),
    written(Fleet, g, Nodes),
    written(Fleet, h, lists:droplast(Nodes)),
    ?assertEqual(Others, Elsewhere()),
    [begin _ = sderl_ct_client:stop(Fleet, C), on(Fleet, node(C), fun() -> exit(C, kill) end) end
     || C <- Clients],
    await(memory, fun() ->
        #{memory := Is} = on(Fleet, First, fun used/0),
        Is < maps:get(memory, Before) + 5_000_000 orelse {maps:get(memory, Before), Is}
    end),
    #{atoms := Atoms} = on(Fleet, First, fun used/0),
    More = byte_size(sderl_ct_nodes:log(Fleet, First)) - Logged,
    ct:pal("~b messages; atoms ~b before, ~b after; ~b bytes logged; operations ~w",
           [lists:sum(Sent ++ Lies), maps:get(atoms, Before), Atoms, More, Operations]),
    ?assert(Atoms - maps:get(atoms, Before) =< 20),
    ?assert(More < 500_000).

%% Of the library's processes, with nothing in them that can go, and of all tables.
used() ->
    _ = [erlang:garbage_collect(P) || P <- processes()],
    #{atoms => erlang:system_info(atom_count),
      memory => erlang:memory(processes_used) + erlang:memory(ets)}.
