%% SPDX-License-Identifier: Apache-2.0
-module(sderl_frames_record).

%% Records what nodes of some version of the library say to each other. The script `record` beside
%% the recordings calls `run/3` for real nodes and `kinds/2` for the simulator. The nodes run the
%% library of one folder, unchanged; `sderl_frames_tap` traces it. Each scenario is a file, see
%% `sderl_frames`.

-export([check/1, run/3, kinds/2, sent/1, final/0]).

-import(sderl_ct, [on/3, await/2, process/2, processes/3, cut/3, heal/3]).

-define(TICK, 800).

%% Fails unless the names are those of recordings, or `all`.
check(all) -> ok;
check(Names) ->
    Known = [Name || {Name, _, _, _} <- scenarios()] ++ [Name || {Name, _} <- simulated()],
    case Names -- Known of
        [] -> ok;
        Unknown -> error({unknown_recordings, Unknown, {known, Known}})
    end.

%% `Ebin`: the library to be recorded; `Dir`: where the files go; `Which` of the scenarios.
run(Ebin, Dir, Which) ->
    [begin
         io:format("~s~n", [Name]),
         ok = record(Name, Ebin, file(Dir, Name), Nodes, Env, Fun)
     end || {Name, Nodes, Env, Fun} <- scenarios(), is_wanted(Name, Which)],
    ok.

is_wanted(Name, Which) -> Which =:= all orelse lists:member(Name, Which).

file(Dir, Name) -> filename:join(Dir, atom_to_list(Name) ++ ".eterm").

%% Records kinds of messages that are too rare on real nodes: a few of each kind, as the simulator
%% of that version sends them under random faults.
kinds(Dir, Which) ->
    [begin
         io:format("~s~n", [Name]),
         Run = fun() -> [ok = sderl_sim:run(Schedule) || Schedule <- Schedules] end,
         Sorts = maps:groups_from_list(fun sort/1, sent(Run)),
         Few = lists:append([lists:sublist(lists:usort(Ms), 3) || _ := Ms <- Sorts]),
         ok = sderl_frames:write_messages(file(Dir, Name), Name, Few)
     end || {Name, Schedules} <- simulated(), is_wanted(Name, Which)],
    ok.

simulated() ->
    Usual = fun(Count) -> [#{seed => Seed} || Seed <- lists:seq(1, Count)] end,
    Hard = #{mode => majority, nodes => 5, clients => 3, faults => 20, delay => {1, 200}},
    [{kinds, Usual(400)},
     {kinds_majority, [S#{mode => majority} || S <- Usual(100)]
                          ++ [maps:merge(Hard, S) || S <- Usual(300)]}].

%% Messages of some kinds have several forms, which are told apart here.
sort({hello, _, _, _, Info}) -> {hello, lists:sort(maps:keys(Info))};
sort({lead, _, _, _, Info}) -> {lead, lists:sort(maps:keys(Info))};
sort({adopt, _, _, Info}) -> {adopt, lists:sort(maps:keys(Info))};
sort({collect, _, _, Flags}) -> {collect, Flags};
sort({promised, _, _, Items, Standing}) -> {promised, Standing, Items =:= []};
sort({req, _, {_, _, _, Operations}}) -> {req, lists:keymember(read, 1, Operations)};
sort({ack, _, _, {_, _, _, Operations}}) -> {ack, lists:keymember(read, 1, Operations)};
sort({answers, _, _, [_ | _] = Answers}) -> {answers, lists:keymember(read, 1, Answers)};
sort({batch, _, _, _, Items}) ->
    {batch, lists:usort([element(1, Item) || Item <- Items, is_tuple(Item)])};
sort(Msg) when is_tuple(Msg) -> element(1, Msg);
sort(Msg) -> Msg.

%% The messages that cores in this VM want to be sent while `Fun` runs.
sent(Fun) ->
    Self = self(),
    Pid = spawn_link(fun() -> keep([]) end),
    Session = trace:session_create(?MODULE, Pid, []),
    {module, sderl_core_state} = code:ensure_loaded(sderl_core_state),
    1 = trace:function(Session, {sderl_core_state, fx, 2},
                       [{[{send, '_', '$1'}, '_'], [], [{message, '$1'}]},
                        {[{hello, '_', '$1'}, '_'], [], [{message, '$1'}]},
                        {'_', [], [{message, false}]}], [local]),
    1 = trace:process(Session, Self, true, [call, arity]),
    try Fun()
    after true = trace:session_destroy(Session)
    end,
    Pid ! {sent, Self},
    receive {Pid, Messages} -> Messages end.

keep(Messages) ->
    receive
        {trace, _, call, _, Msg} -> keep([Msg | Messages]);
        {sent, From} -> From ! {self(), lists:reverse(Messages)}
    end.

record(Name, Ebin, File, Count, Env, Fun) ->
    Paths = [Ebin | [filename:dirname(code:which(M)) || M <- [?MODULE, sderl_ct, sderl_fleet]]],
    Family = #{name => n, count => Count, paths => lists:uniq(Paths),
               env => [{sderl, K, V}
                       || {K, V} <- maps:to_list(maps:merge(#{tick_ms => ?TICK}, Env))]},
    {ok, Fleet} = sderl_fleet:start(#{families => [Family], tag => ""}),
    try
        Nodes = sderl_fleet:nodes(Fleet),
        [Ebin = on(Fleet, N, fun() -> filename:dirname(code:which(sderl_core)) end) || N <- Nodes],
        Dead = Fun(Fleet, Nodes),
        Alive = sderl_fleet:nodes(Fleet),
        Final = [{N, on(Fleet, N, fun ?MODULE:final/0)} || N <- Alive],
        Seen = [{N, on(Fleet, N, fun sderl_frames_tap:stop/0)} || N <- Alive],
        ok = sderl_frames:write(File, Name, Dead ++ Seen, Final)
    after
        sderl_fleet:stop(Fleet)
    end.

%% The groups of a node with their members and names, at the end of a scenario.
final() ->
    %% The first nodes of version 2 had no module for names alone.
    [Table | _] = [M
                   || M <- [sderl_names, sderl_store], {module, _} <- [code:ensure_loaded(M)],
                      erlang:function_exported(M, names, 1)],
    [{G, Members, lists:sort(Table:names(G))}
     || {G, Members} <- lists:sort(sderl_dir:memberships())].

%% ---------------------------------------------------------------- scenarios

%% Each scenario returns what was recorded on the nodes that it killed.
scenarios() ->
    Quiet = #{set_aside_ms => 4000},
    Quick = #{set_aside_ms => 1000, tick_ms => 300},
    %% The names of a member that majority groups do not reach are free after a while.
    Soon = #{set_aside_ms => 2000, tick_ms => 400},
    [{join, 2, Quiet, fun join/2},
     {boot, 3, Quiet, fun boot/2},
     {write, 4, Quiet, fun write/2},
     {takeover, 3, Quiet, fun takeover/2},
     {merge, 4, Quiet, fun merge/2},
     {aside, 3, Quick, fun aside/2},
     {coordinator_stopped, 3, Quick, fun coordinator_stopped/2},
     {members, 4, Quiet, fun members/2},
     {handover, 4, Quiet, fun handover/2},
     {processes, 3, Quiet, fun library_processes/2},
     {stranger, 3, Quiet, fun stranger/2},
     {islands, 3, Quiet, fun islands/2},
     {conflict, 2, Quiet, fun conflict/2},
     {routes, 4, Quiet, fun routes/2},
     {routes_many, 4, Quiet, fun routes/2},
     {majority, 4, Soon, fun majority/2},
     {majority_lost, 4, Soon, fun majority_lost/2}].

start(F, Nodes) -> start(F, Nodes, []).

start(F, Nodes, Groups) ->
    [ok = on(F, N, fun() ->
        ok = sderl_frames_tap:start(),
        ok = application:set_env(sderl, s_groups, Groups),
        {ok, _} = application:ensure_all_started(sderl),
        ok
    end) || N <- Nodes],
    ok.

%% Kills a node, and returns what was recorded on it.
kill(F, N) ->
    Seen = on(F, N, fun sderl_frames_tap:stop/0),
    ok = sderl_fleet:kill(F, N),
    {N, Seen}.

group(F, G, [First | _] = Nodes) ->
    {ok, G, _} = on(F, First, fun() -> s_group:new_s_group(G, Nodes) end),
    settled(F, G, Nodes).

majority_group(F, G, Nodes) -> sderl_ct:group(F, G, Nodes, #{consistency => majority}).

settled(F, G, Nodes) -> sderl_ct:settled(F, G, Nodes).

register(F, N, G, Name, Pid) -> on(F, N, fun() -> s_group:register_name(G, Name, Pid) end).

whereis(F, N, G, Name) -> on(F, N, fun() -> s_group:whereis_name(G, Name) end).

registered(F, Nodes, G, Name, Pid) ->
    await({Name, Pid}, fun() -> lists:all(fun(N) -> whereis(F, N, G, Name) =:= Pid end, Nodes) end).

%% A group of a launch configuration: its members start one after the other, two of them register
%% names, and one is killed and starts again.
boot(F, [A, B, C] = Nodes) ->
    Config = [{g, normal, Nodes}],
    start(F, [A], Config),
    [P, Q] = processes(F, A, 2),
    yes = register(F, A, g, one, P),
    start(F, [B], Config),
    registered(F, [A, B], g, one, P),
    start(F, [C], Config),
    settled(F, g, Nodes),
    yes = register(F, B, g, two, Q),
    Dead = kill(F, C),
    {ok, C} = sderl_fleet:restart(F, C),
    start(F, [C], Config),
    settled(F, g, Nodes),
    registered(F, Nodes, g, two, Q),
    %% The library alone stops and starts.
    ok = on(F, B, fun() -> application:stop(sderl) end),
    await(gone, fun() -> [A, C] =:= maps:get(live, sderl_ct:state(F, A, g)) end),
    on(F, B, fun() -> {ok, _} = application:ensure_all_started(sderl), ok end),
    settled(F, g, Nodes),
    [Dead].

%% A node joins another's group, both write, and it is removed.
join(F, [A, B]) ->
    start(F, [A, B]),
    group(F, g, [A]),
    [P, Q] = [process(F, N) || N <- [A, B]],
    yes = register(F, A, g, old, P),
    {ok, g, [B]} = on(F, A, fun() -> s_group:add_nodes(g, [B]) end),
    settled(F, g, [A, B]),
    yes = register(F, B, g, new, Q),
    registered(F, [A, B], g, new, Q),
    ok = on(F, A, fun() -> s_group:unregister_name(g, old) end),
    ok = on(F, A, fun() -> s_group:remove_nodes(g, [B]) end),
    await(left, fun() -> [] =:= own_groups(F, B) end),
    [].

own_groups(F, N) -> on(F, N, fun s_group:own_s_groups/0).

%% Every operation on names, at members of both roles.
write(F, [A, B, C, D]) ->
    start(F, [A, B, C, D]),
    group(F, g, [A, B, C]),
    [begin
         [P, Q, R] = processes(F, N, 3),
         yes = register(F, N, g, {n, N}, P),
         {no, name_or_pid_already_registered} = register(F, N, g, {n, N}, Q),
         yes = on(F, N, fun() -> s_group:register_name(g, {m, N}, Q, #{meta => {here, N}}) end),
         yes = on(F, N, fun() -> s_group:re_register_name(g, {n, N}, R) end),
         ok = on(F, N, fun() -> s_group:unregister_name(g, {m, N}) end),
         ok = on(F, N, fun() -> s_group:unregister_name(g, {none, N}) end),
         %% Dead on its own node counts as free, whether or not the removal came first.
         yes = on(F, N, fun() ->
             {S, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
             yes = s_group:register_name(g, {dies, N}, S),
             S ! stop,
             receive {'DOWN', Ref, process, S, _} -> ok end,
             s_group:register_name(g, {dies, N}, self())
         end),
         registered(F, [A, B, C], g, {dies, N}, undefined)
     end || N <- [A, B]],
    %% A process on no member: the coordinator watches it.
    Far = process(F, D),
    yes = register(F, B, g, far, Far),
    registered(F, [A, B, C], g, far, Far),
    ok = sderl_ct:kill(F, Far, kill),
    registered(F, [A, B, C], g, far, undefined),
    settled(F, g, [A, B, C]),
    [].

%% The coordinator's node dies, the others choose another coordinator and write, and the node comes
%% back.
takeover(F, Nodes) ->
    start(F, Nodes),
    group(F, g, Nodes),
    Pids = [{N, process(F, N)} || N <- Nodes],
    [yes = register(F, N, g, N, P) || {N, P} <- Pids],
    Lead = sderl_ct:lead(F, hd(Nodes), g),
    Others = [O1, O2] = Nodes -- [Lead],
    Dead = kill(F, Lead),
    registered(F, Others, g, Lead, undefined),
    New = process(F, O2),
    yes = register(F, O2, g, new, New),
    registered(F, Others, g, new, New),
    {ok, Lead} = sderl_fleet:restart(F, Lead),
    start(F, [Lead]),
    settled(F, g, Nodes),
    ok = on(F, O1, fun() -> s_group:unregister_name(g, new) end),
    registered(F, Nodes, g, new, undefined),
    [Dead].

%% A split with writes on both sides, and a clash when it heals.
merge(F, [A, B, C, D] = Nodes) ->
    start(F, Nodes),
    group(F, g, Nodes),
    [P1, P2, P3] = [process(F, N) || N <- [A, C, D]],
    [yes = register(F, N, g, Name, P)
     || {N, Name, P} <- [{A, first, P1}, {C, second, P2}, {D, third, P3}]],
    %% Cuts all links at once. A coordinator that sees them close one by one orders the loss of the
    %% first member among those that it still sees.
    [on(F, X, fun() -> erlang:set_cookie(Y, X) end)
     || N <- [A, B], M <- [C, D], {X, Y} <- [{N, M}, {M, N}]],
    _ = sderl_ct:all_on(F, [C, D], fun() -> [erlang:disconnect_node(N) || N <- [A, B]] end),
    [cut(F, N, M) || N <- [A, B], M <- [C, D]],
    [sderl_ct:agreed(F, g, {Side, Nodes}) || Side <- [[A, B], [C, D]]],
    [Q1, Q2, Q3] = [process(F, N) || N <- [B, D, C]],
    [yes = register(F, N, g, Name, P)
     || {N, Name, P} <- [{B, clash, Q1}, {D, clash, Q2}, {C, left, Q3}]],
    ok = on(F, D, fun() -> s_group:unregister_name(g, third) end),
    [heal(F, N, M) || N <- [A, B], M <- [C, D]],
    _ = settled(F, g, Nodes),
    %% The loser of the clash is ended by the resolver.
    await(one_winner, fun() ->
        lists:member(lists:usort([whereis(F, N, g, clash) || N <- Nodes]), [[Q1], [Q2]])
            andalso [true] =/= lists:usort([sderl_ct:alive(F, Q) || Q <- [Q1, Q2]])
    end),
    registered(F, Nodes, g, left, Q3),
    registered(F, Nodes, g, third, undefined),
    settled(F, g, Nodes),
    [].

%% A member is suspended and set aside. A name whose home it is is unregistered meanwhile; that
%% waits for the member.
aside(F, Nodes) ->
    start(F, Nodes),
    group(F, g, Nodes),
    Lead = sderl_ct:lead(F, hd(Nodes), g),
    [M, N] = Nodes -- [Lead],
    [P, Q] = processes(F, M, 2),
    [yes = register(F, M, g, Name, X) || {Name, X} <- [{stays, P}, {goes, Q}]],
    ok = sderl_fleet:suspend(F, M),
    New = process(F, N),
    yes = register(F, N, g, new, New),
    await(aside, fun() -> lists:member(M, maps:get(aside, sderl_ct:state(F, Lead, g))) end),
    true = on(F, N, fun() -> is_pid(spawn(fun() -> s_group:unregister_name(g, goes) end)) end),
    Newer = process(F, N),
    yes = register(F, N, g, newer, Newer),
    ok = sderl_fleet:resume(F, M),
    settled(F, g, Nodes),
    registered(F, Nodes, g, new, New),
    registered(F, Nodes, g, newer, Newer),
    registered(F, Nodes, g, stays, P),
    registered(F, Nodes, g, goes, undefined),
    [].

%% The coordinator is suspended until another one leads.
coordinator_stopped(F, Nodes) ->
    start(F, Nodes),
    group(F, g, Nodes),
    Lead = sderl_ct:lead(F, hd(Nodes), g),
    [M, N] = Nodes -- [Lead],
    P = process(F, Lead),
    yes = register(F, Lead, g, its, P),
    ok = sderl_fleet:suspend(F, Lead),
    await(successor, fun() ->
        lists:all(fun(X) -> lists:member(sderl_ct:lead(F, X, g), [M, N]) end, [M, N])
    end),
    Q = process(F, N),
    yes = register(F, N, g, new, Q),
    ok = sderl_fleet:resume(F, Lead),
    settled(F, g, Nodes),
    registered(F, Nodes, g, new, Q),
    registered(F, Nodes, g, its, P),
    [].

%% The membership changes in every way, and the group ends.
members(F, [A, B, C, D]) ->
    start(F, [A, B, C, D]),
    group(F, g, [A, B]),
    group(F, h, [B, C]),
    [P, Q] = [process(F, N) || N <- [A, C]],
    yes = register(F, A, g, one, P),
    {ok, g, [C]} = on(F, A, fun() -> s_group:add_nodes(g, [C]) end),
    settled(F, g, [A, B, C]),
    yes = register(F, C, g, two, Q),
    {ok, g, _} = on(F, D, fun() -> s_group:enter(g, [B, A]) end),
    settled(F, g, [A, B, C, D]),
    ok = on(F, A, fun() -> s_group:remove_nodes(g, [C]) end),
    settled(F, g, [A, B, D]),
    registered(F, [A, B, D], g, two, Q),
    ok = on(F, D, fun() -> s_group:leave(g) end),
    settled(F, g, [A, B]),
    ok = on(F, B, fun() -> s_group:delete_s_group(h) end),
    [].

%% Two members lose their links to the coordinator and still see each other: the coordinator hands
%% its role over.
handover(F, Nodes) ->
    start(F, Nodes),
    group(F, g, Nodes),
    Lead = sderl_ct:lead(F, hd(Nodes), g),
    [M, N, O] = Nodes -- [Lead],
    P = process(F, M),
    yes = register(F, M, g, one, P),
    [cut(F, Lead, X) || X <- [M, N]],
    await(one_component, fun() -> live(F, O) =:= Nodes end),
    registered(F, Nodes, g, one, P),
    [heal(F, Lead, X) || X <- [M, N]],
    settled(F, g, Nodes),
    [].

live(F, N) -> maps:get(live, sderl_ct:state(F, N, g)).

%% The group's process is killed on a follower and on the coordinator, and its successor goes on.
library_processes(F, Nodes) ->
    start(F, Nodes),
    group(F, g, Nodes),
    Lead = sderl_ct:lead(F, hd(Nodes), g),
    [M, _] = Nodes -- [Lead],
    [begin
         [P] = processes(F, X, 1),
         yes = register(F, X, g, {n, X, Killed}, P),
         on(F, Killed, fun() ->
             Pid = sderl_dir:process(g),
             exit(Pid, kill),
             await({again, Killed}, fun() -> Pid =/= sderl_dir:process(g) end)
         end),
         settled(F, g, Nodes),
         ok = on(F, X, fun() -> s_group:unregister_name(g, {n, X, Killed}) end)
     end || {Killed, X} <- [{M, Lead}, {Lead, M}, {Lead, Lead}]],
    settled(F, g, Nodes),
    [].

%% Routers of three groups in a row. The gateways enter more groups at the same time, and leave one;
%% one gateway dies and returns; at last all routers compare what they know.
routes(F, [A, B, C, D] = Nodes) ->
    start(F, Nodes),
    [group(F, G, Ns) || {G, Ns} <- [{west, [A, B]}, {middle, [B, C]}, {east, [C, D]}]],
    await(ways, fun() -> [leads_to(F, A, east), leads_to(F, D, west)] =:= [true, true] end),
    More = [{more, I} || I <- lists:seq(1, 4)],
    on(F, B, fun() ->
        Made = [spawn_monitor(fun() -> {ok, G, _} = s_group:new_s_group(G, [B, C]) end)
                || G <- More],
        [receive {'DOWN', Ref, process, Pid, normal} -> ok end || {Pid, Ref} <- Made]
    end),
    await(more, fun() ->
        lists:all(fun(G) -> leads_to(F, A, G) andalso leads_to(F, D, G) end, More)
    end),
    ok = on(F, B, fun() -> s_group:delete_s_group({more, 1}) end),
    await(less, fun() -> [leads_to(F, N, {more, 1}) || N <- [A, D]] =:= [false, false] end),
    Dead = kill(F, C),
    await(no_way, fun() -> not leads_to(F, A, east) end),
    {ok, C} = sderl_fleet:restart(F, C),
    start(F, [C]),
    [settled(F, G, Ns) || {G, Ns} <- [{middle, [B, C]}, {east, [C, D]}]],
    await(ways_again, fun() -> [leads_to(F, A, east), leads_to(F, D, west)] =:= [true, true] end),
    %% Compares at once what routers compare every ten seconds.
    [on(F, N, fun() -> sderl_router ! compare, ok end) || N <- Nodes],
    await(agreed, fun() ->
        Told = [maps:get(gateways, on(F, N, fun sderl_router:info/0)) || N <- Nodes],
        length(lists:usort(Told)) =:= 1
    end),
    [Dead].

leads_to(F, N, Group) -> on(F, N, fun() -> sderl_router:leads_to(Group) end).

%% A free node asks about names of a group and sends to one. Then it does so as a member of another
%% group.
stranger(F, [A, B, C]) ->
    start(F, [A, B, C]),
    group(F, g, [A, B]),
    group(F, h, [A]),
    P = process(F, A),
    yes = register(F, A, g, one, P),
    on(F, C, fun() ->
        undefined = s_group:whereis_name(g, one),
        P = s_group:whereis_name(B, g, one),
        undefined = s_group:whereis_name(B, g, none),
        P = s_group:send(B, g, one, hello),
        {badarg, {g, none, hello}} = s_group:send(B, g, none, hello),
        [{g, one}] = s_group:registered_names({node, B}),
        true = s_group:connect(A)
    end),
    {ok, h, [C]} = on(F, A, fun() -> s_group:add_nodes(h, [C]) end),
    settled(F, h, [A, C]),
    await(known, fun() -> P =:= whereis(F, C, g, one) end),
    on(F, C, fun() ->
        P = s_group:send(g, one, again),
        [{g, one}] = s_group:registered_names({s_group, g})
    end),
    [].

%% Free nodes become one island, and one leaves it for a group and comes back.
islands(F, [A, B, C] = Nodes) ->
    start(F, Nodes),
    Pids = [{N, process(F, N)} || N <- Nodes],
    [yes = register(F, N, undefined, {n, N}, P) || {N, P} <- Pids],
    PB = proplists:get_value(B, Pids),
    PB = on(F, A, fun() -> s_group:whereis_name(B, undefined, {n, B}) end),
    registered(F, [A, B], undefined, {n, B}, PB),
    PB = on(F, C, fun() -> s_group:whereis_name(B, undefined, {n, B}) end),
    [registered(F, Nodes, undefined, {n, N}, P) || {N, P} <- Pids],
    group(F, g, [C, B]),
    await(left, fun() -> [A] =:= on(F, A, fun() -> s_group:own_nodes() end) end),
    ok = on(F, C, fun() -> s_group:delete_s_group(g) end),
    New = process(F, C),
    %% The node may still be about to leave the first island: no call waits for that.
    await(free, fun() -> register(F, C, undefined, new, New) =:= yes end),
    registered(F, Nodes, undefined, new, New),
    [].

%% Two groups of one name meet.
conflict(F, [A, B]) ->
    start(F, [A, B]),
    group(F, g, [A]),
    group(F, g, [B]),
    {ok, g, []} = on(F, A, fun() -> s_group:add_nodes(g, [B]) end),

    %% As if one node had been added to the other's group while it was away.
    on(F, A, fun() ->
        Pid = sderl_dir:process(g),
        Pid ! {sderl_op, none, {add, [B]}}
    end),
    await(conflict, fun() ->
        [] =/= on(F, A, fun() -> [N || {g, N, uid_conflict} <- sderl_refused:joins()] end)
    end),
    [].

%% A majority group. Every operation on names, and reads in the order of operations, on members of
%% both roles and on a node that is no member. The coordinator's node dies and returns empty. A
%% member is cut off until its names are free for the others. The membership changes.
majority(F, [A, B, C, D]) ->
    start(F, [A, B, C, D]),
    _ = majority_group(F, g, [A, B, C]),
    Lead = sderl_ct:lead(F, A, g),
    Others = [O1, O2] = [A, B, C] -- [Lead],
    [begin
         [P, Q, R] = processes(F, N, 3),
         yes = register(F, N, g, {n, N}, P),
         {no, name_or_pid_already_registered} = register(F, N, g, {n, N}, Q),
         yes = on(F, N, fun() -> s_group:register_name(g, {m, N}, Q, #{meta => {here, N}}) end),
         P = read(F, N, g, {n, N}),
         yes = on(F, N, fun() -> s_group:re_register_name(g, {n, N}, R) end),
         [R = read(F, M, g, {n, N}) || M <- [A, B, C]],
         ok = on(F, N, fun() -> s_group:unregister_name(g, {m, N}) end),
         undefined = read(F, N, g, {m, N})
     end || N <- [Lead, O1]],
    %% Reads on a node outside the group, which shares another group with a member.
    group(F, h, [O2, D]),
    Its = whereis(F, O1, g, {n, O1}),
    await(known, fun() -> Its =:= read(F, D, g, {n, O1}) end),
    undefined = read(F, D, g, none),

    Dead = kill(F, Lead),
    [P1, P2, P3] = [process(F, N) || N <- [O1, O2, O2]],
    yes = register(F, O1, g, one, P1),
    yes = register(F, O2, g, two, P2),
    [P2 = read(F, N, g, two) || N <- Others],
    {ok, Lead} = sderl_fleet:restart(F, Lead),
    start(F, [Lead]),
    settled(F, g, [A, B, C]),
    registered(F, [A, B, C], g, {n, Lead}, undefined),

    %% A minority decides nothing, and is told so.
    New = sderl_ct:lead(F, A, g),
    [Out, Stays] = lists:reverse(lists:sort([A, B, C] -- [New])),
    In = [New, Stays],
    Alone = process(F, Out),
    yes = register(F, Out, g, alone, Alone),
    [cut(F, Out, N) || N <- In],
    await(minority, fun() -> {error, no_majority} =:= read(F, Out, g, alone) end),
    Next = process(F, Stays),
    %% The others may give the name away when they have waited for the lease.
    registered(F, In, g, alone, undefined),
    yes = register(F, Stays, g, alone, Next),
    [heal(F, Out, N) || N <- In],
    settled(F, g, [A, B, C]),
    registered(F, [A, B, C], g, alone, Next),

    {ok, g, [D]} = on(F, Stays, fun() -> s_group:add_nodes(g, [D]) end),
    settled(F, g, [A, B, C, D]),
    Far = process(F, D),
    yes = register(F, D, g, far, Far),
    ok = on(F, New, fun() -> s_group:remove_nodes(g, [Out]) end),
    Left = [New, Stays, D],
    settled(F, g, Left),
    yes = register(F, Stays, g, three, P3),
    [Far = read(F, N, g, far) || N <- Left],
    settled(F, g, Left),
    [Dead].

read(F, N, G, Name) -> on(F, N, fun() -> s_group:read(G, Name) end).

%% Half of a majority group is lost for good, and an operator's call lets the rest go on. Before
%% that another node has a group of the same name, so an invitation into the majority group fails
%% there.
majority_lost(F, [A, B, C, D]) ->
    start(F, [A, B, C, D]),
    group(F, g, [D]),
    {ok, g, _} = on(F, A,
                    fun() -> s_group:new_s_group(g, [A, B, D], #{consistency => majority}) end),
    [ok = on(F, N, fun() -> s_group:delete_s_group(g) end) || N <- [A, D]],
    Nodes = [A, B, C, D],
    await(deleted, fun() -> lists:all(fun(N) -> [] =:= own_groups(F, N) end, Nodes) end),
    _ = majority_group(F, g, Nodes),
    Pids = [{N, process(F, N)} || N <- Nodes],
    [yes = register(F, N, g, N, P) || {N, P} <- Pids],
    Dead = [kill(F, N) || N <- [C, D]],
    Lost = fun(N) -> {error, no_majority} =:= read(F, N, g, A) end,
    await(lost, fun() -> lists:all(Lost, [A, B]) end),
    ok = on(F, A, fun() -> s_group:recover_majority(g, [A, B]) end),
    settled(F, g, [A, B]),
    New = process(F, B),
    yes = register(F, B, g, new, New),
    [New = read(F, N, g, new) || N <- [A, B]],
    ok = on(F, B, fun() -> s_group:leave(g) end),
    settled(F, g, [A]),
    Dead.
