%% SPDX-License-Identifier: Apache-2.0
-module(sderl_soak_SUITE).

%% Nothing leaks. Names, process groups, subscribers, nodes and groups come and go without a pause.
%% When that is over, no node has more of anything than it had after the first part of it.
%%
%% With SDERL_LONG=1 it takes a quarter of an hour on 20 nodes. SDERL_SOAK_SECONDS and
%% SDERL_SOAK_NODES set other numbers.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, all_on/3, await/3]).

suite() -> [{timetrap, {minutes, 45}}].

all() -> [soak].

%% A leak does not depend on the version of OTP, so the time for this suite is spent on one of them.
init_per_suite(Config) ->
    case os:getenv("SDERL_SECOND_LEG") =:= "1" andalso os:getenv("SDERL_LONG") =/= "1" of
        true -> {skip, "runs on the newest OTP; on others with SDERL_LONG=1"};
        false -> Config
    end.

end_per_suite(_) -> ok.

%% Names of groups that are created and deleted again and again.
-define(GROUPS, [{churn, I} || I <- lists:seq(1, 6)]).

soak(_) ->
    sderl_ct:seed(),
    Long = os:getenv("SDERL_LONG") =:= "1",
    Count = number("SDERL_SOAK_NODES", case Long of true -> 20; false -> 5 end),
    Seconds = number("SDERL_SOAK_SECONDS", case Long of true -> 900; false -> 8 end),
    Pace = case Long of true -> 40; false -> 10 end,
    %% A third of the nodes live throughout.
    Family = #{name => n, count => Count,
               env => [{sderl, tick_ms, 500}, {sderl, write_timeout_ms, 5000},
                       {sderl, link_idle_ms, 2000}]},
    {ok, F} = sderl_fleet:start(#{families => [Family]}),
    try
        Nodes = sderl_fleet:nodes(F),
        {Steady, Changing} = lists:split(max(2, Count div 3), Nodes),
        Opts = #{pace_ms => Pace, nodes => Nodes, groups => [base | ?GROUPS], steady => Steady,
                 changing => Changing, fleet => F},
        [start(F, N, Nodes) || N <- Nodes],
        [] = sderl_ct:settled(F, base, Nodes),
        Kept = [{{kept, I}, P}
                || {I, P} <- lists:enumerate(sderl_ct:processes(F, hd(Steady), 200))],
        on(F, hd(Steady), fun() -> [yes = s_group:register_name(base, N, P) || {N, P} <- Kept] end),
        %% The first load uses every name of a group in every way, before anything is compared.
        Before = load(max(3, Seconds div 5), Opts),
        Base = counts(F, Nodes, Kept),
        During = load(Seconds, Opts),
        {End, Grown} = ended(Base, counts(F, Nodes, Kept), Kept, Opts),
        report(Base, End, Before, During, Opts),
        Grown =:= [] orelse ct:pal("~p", [details(Base, End)]),
        ?assertEqual([], Grown)
    after
        sderl_fleet:stop(F)
    end.

number(Name, Default) ->
    case os:getenv(Name) of
        false -> Default;
        Text -> list_to_integer(Text)
    end.

start(F, N, Nodes) ->
    ok = on(F, N, fun() ->
        ok = sderl_soak:prepare([base | ?GROUPS]),
        ok = application:set_env(sderl, s_groups, [{base, normal, Nodes}]),
        {ok, _} = application:ensure_all_started(sderl),
        ok
    end).

%% ---------------------------------------------------------------- load

%% For so many seconds, workers run on all nodes, steady nodes change groups, and other nodes die
%% and come back. Returns how much of each there was.
load(Seconds, #{fleet := F, nodes := Nodes, steady := Steady} = Opts) ->
    Until = erlang:monotonic_time(millisecond) + 1000 * Seconds,
    Workers = maps:from_list([{N, work(N, Opts)} || N <- Nodes]),
    Parts = [part(fun() -> regroup(one_of(Steady), Opts, Until, #{}) end),
             part(fun() -> regroup(one_of(Steady), Opts, Until, #{}) end)],
    {Left, Changes} = change(Workers, Opts, Until, #{}),
    Regroups = [result(P) || P <- Parts],
    %% The counts of workers that died with their nodes are lost.
    Did = [on(F, N, fun() -> sderl_soak:rest(Ws) end) || {N, Ws} <- maps:to_list(Left)],
    lists:foldl(fun(A, B) -> maps:merge_with(fun(_, X, Y) -> X + Y end, A, B) end, Changes,
                Did ++ Regroups).

one_of(L) -> lists:nth(rand:uniform(length(L)), L).

some_of(L) ->
    lists:sublist([N || {_, N} <- lists:sort([{rand:uniform(), N} || N <- L])],
                  rand:uniform(length(L))).

work(N, #{fleet := F} = Opts) ->
    Seed = rand:uniform(1 bsl 40),
    Plain = maps:with([pace_ms, nodes, groups], Opts),
    on(F, N, fun() -> sderl_soak:work(Seed, Plain) end).

part(Fun) ->
    Seed = rand:uniform(1 bsl 40),
    spawn_monitor(fun() -> _ = rand:seed(exsss, Seed), exit({done, Fun()}) end).

result({Pid, Ref}) ->
    receive
        {'DOWN', Ref, process, Pid, {done, Result}} -> Result;
        {'DOWN', Ref, process, Pid, Why} -> error(Why)
    end.

over(Until) -> erlang:monotonic_time(millisecond) >= Until.

done(What, Counts) -> maps:update_with(What, fun(N) -> N + 1 end, 1, Counts).

%% Kills, stops and suspends nodes, and restarts the library on them, one after the other.
change(Workers, #{fleet := F, changing := Changing, nodes := Nodes} = Opts, Until, Counts) ->
    case over(Until) of
        true -> {Workers, Counts};
        false ->
            N = one_of(Changing),
            How = one_of([kill, stop_node, application, suspend]),
            case How of
                application ->
                    on(F, N, fun() ->
                        ok = application:stop(sderl),
                        {ok, _} = application:ensure_all_started(sderl)
                    end),
                    change(Workers, Opts, Until, done(How, Counts));
                suspend ->
                    ok = sderl_fleet:suspend(F, N),
                    receive after 300 -> ok end,
                    ok = sderl_fleet:resume(F, N),
                    change(Workers, Opts, Until, done(How, Counts));
                _ ->
                    ok = sderl_fleet:How(F, N),
                    {ok, N} = sderl_fleet:restart(F, N),
                    start(F, N, Nodes),
                    change(Workers#{N := work(N, Opts)}, Opts, Until, done(How, Counts))
            end
    end.

%% Changes groups in every way, each from one node. What cannot be done just now is an answer like
%% any other.
regroup(Node, #{fleet := F, nodes := Nodes, steady := Steady} = Opts, Until, Counts) ->
    case over(Until) of
        true -> Counts;
        false ->
            G = one_of(?GROUPS),
            Some = some_of(Nodes),
            {What, Fun} = one_of([{create, fun() -> s_group:new_s_group(G, [node() | Some]) end},
                                  {create, fun() -> s_group:new_s_group(G, [node() | Some]) end},
                                  {delete, fun() -> s_group:delete_s_group(G) end},
                                  {add, fun() -> s_group:add_nodes(G, Some) end},
                                  {remove, fun() -> s_group:remove_nodes(G, Some -- [node()]) end},
                                  {leave, fun() -> s_group:leave(G) end},
                                  {enter, fun() -> s_group:enter(G, Some) end}]),
            Did = case on(F, Node, fun() -> try Fun() catch exit:Why -> {exit, Why} end end) of
                ok -> What;
                {ok, _, _} -> What;
                _ -> {not_done, What}
            end,
            regroup(one_of(Steady), Opts, Until, done(Did, Counts))
    end.

%% ---------------------------------------------------------------- what there is when all is quiet

counts(F, Nodes, Kept) ->
    %% Groups that are left over are deleted by any node that has one.
    try
        await(alone, fun() ->
            Strays = lists:usort([G
                                  || Gs <- all_on(F, Nodes, fun() ->
                                      [{G, node()} || {G, _} <- s_group:own_s_groups(), G =/= base]
                                  end), G <- Gs]),
            [on(F, N, fun() -> s_group:delete_s_group(G) end) || {G, N} <- Strays],
            Strays =:= [] orelse Strays
        end, 180_000)
    catch
        error:Why:Stack ->
            ct:pal("~p", [
                [{N, [I || #{group := G} = I <- Infos, G =/= base]}
                 || {N, {ok, Info}} <- sderl_fleet:multicall(F, Nodes, s_group, info, [], 10_000),
                    Infos <- [proplists:get_value(groups, Info)]]
            ]),
            erlang:raise(error, Why, Stack)
    end,
    sderl_ct:hold_all(F, base, {Nodes, Nodes}, maps:from_list(Kept)),
    %% This makes the one remaining scope on every node.
    _ = all_on(F, Nodes, fun() -> s_group:members(base, workers) end),
    %% What is about to end may take its time, but must end.
    maps:from_list([{N, at_rest(F, N, length(Kept), length(Nodes))} || N <- Nodes]).

%% The counts, once tables have no rows but those that the live names explain and processes,
%% monitors, links and ports no longer change; or the last counts, with the excess.
at_rest(F, N, Names, Nodes) ->
    Seen = ets:new(seen, []),
    _ = sderl_fleet:await(fun() ->
        Now = on(F, N, fun() -> sderl_soak:count() end),
        Same = fun(C) -> maps:with([processes, monitors, links, ports], C) end,
        Before = ets:lookup(Seen, counts),
        Excess = excess(Now, Names, Nodes),
        true = ets:insert(Seen, {counts, Now#{excess => Excess}}),
        Excess =:= [] andalso [Same(C) || {_, C} <- Before] =:= [Same(Now)]
    end, 60_000),
    [{_, Counts}] = ets:lookup(Seen, counts),
    true = ets:delete(Seen),
    Counts.

%% Counts again while something has grown, for a minute. A node may be at rest for a moment while
%% work waits, such as an answer of a node that was suspended. A leak stays however long one looks.
ended(Base, End0, Kept, #{fleet := F, nodes := Nodes, steady := Steady, changing := Changing}) ->
    Grown = fun(End) ->
        lists:append([grown(Kind, of_kind(Ns, Base), of_kind(Ns, End))
                      || {Kind, Ns} <- [{steady, Steady}, {changing, Changing}]])
    end,
    Seen = ets:new(seen, []),
    true = ets:insert(Seen, {counts, End0}),
    _ = sderl_fleet:await(fun() ->
        [{_, End}] = ets:lookup(Seen, counts),
        Grown(End) =:= [] orelse begin
            Again = #{N => at_rest(F, N, length(Kept), length(Nodes)) || N <- Nodes},
            true = ets:insert(Seen, {counts, Again}),
            false
        end
    end, 60_000),
    [{_, Last}] = ets:lookup(Seen, counts),
    true = ets:delete(Seen),
    {Last, Grown(Last)}.

%% More rows than the live names (all of one group), the links and one scope explain.
excess(#{ets := Tables, queues := Queues}, Names, Nodes) ->
    [{queues, Queues} || Queues > 0]
        %% No process is in a process group.
        ++ [{T, Rows, 0}
            || T := {Rows, _} <- Tables, Rows > 0, is_atom(T),
               lists:prefix("sderl_pg_", atom_to_list(T))]
        ++ [{T, Rows, Most}
            || T := Most <- explained(Names, Nodes), {Rows, _} <- [maps:get(T, Tables, {0, 0})],
               Rows > Most].

explained(Names, Nodes) ->
    #{sderl_names => Names, sderl_groups => 1, sderl_gone => 0, sderl_known => Nodes,
      sderl_refused => 0,
      sderl_subs => 0, sderl_watches => 0, sderl_tried => Nodes, sderl_forgotten => 0,
      sderl_links => Nodes - 1,
      %% Two rows for each other node: that it was heard, and that its process of the group stands.
      %% Rows of a group that is gone are removed with a later heartbeat of its node.
      sderl_stands => 1, sderl_heard => 2 * (Nodes - 1) + 1,
      %% A scope, and for each member the last list of its clients; the group's own rows and the
      %% node's.
      sderl_pg => 1, sderl_state => Nodes + 10,
      %% The built-in attributes of every node; the attributes that this node has, and the nodes
      %% that tell of theirs.
      sderl_attrs => Nodes * length(sderl_attr_builtin:all()),
      sderl_attr_state => Nodes + length(sderl_attr_builtin:all()),
      %% One group is ready, and what former gateways told last is kept for a while.
      sderl_routes => Nodes + 1,
      %% At most so many causes of log lines are told apart, whatever groups there were.
      sderl_logged => 1000,
      %% The first is at the coordinator, the second for a moment where the coordinator was killed.
      {sderl_index, {sderl_group, init, 1}} => Names,
      {sderl_index, {sderl_watch, init, 1}} => Names}.

of_kind(Nodes, Counts) -> maps:with(Nodes, Counts).

%% What has grown: compares the most that any node of the kind had then and has now.
grown(Kind, Base, End) ->
    [{Kind, N, unexplained, E} || N := #{excess := E} <- maps:merge(Base, End), E =/= []]
        ++ [{Kind, What, Then, Now}
            || What <- [processes, monitors, links, ports, persistent_terms, queues, atoms,
                        process_kib, binary_kib],
               {Then, Now} <- [{most(What, Base), most(What, End)}], Now > allowed(What, Then)]
        ++ [{Kind, table, T, {rows, Then, Now}, {words, ThenW, NowW}}
            || T <- lists:usort(lists:append([maps:keys(maps:get(ets, C)) || _ := C <- End])),
               {{Then, ThenW}, {Now, NowW}} <- [{table(T, Base), table(T, End)}],
               case is_map_key(T, explained(0, 0)) of
                   %% The same rows take about as much memory, whatever there was meanwhile.
                   true -> NowW > 2 * ThenW + 8192;
                   false -> Now > Then orelse NowW > ThenW + ThenW div 4 + 4096
               end].

%% Memory is not exact: a garbage collector may keep what it had.
allowed(process_kib, Then) -> 2 * Then + 1024;
allowed(binary_kib, Then) -> 2 * Then + 1024;
%% OTP makes a few atoms when it does something for the first time. A leak of ours would make one
%% for each of hundreds of events.
allowed(atoms, Then) -> Then + 16;
allowed(_, Then) -> Then.

most(What, Counts) -> lists:max([maps:get(What, C) || _ := C <- Counts]).

table(T, Counts) ->
    Sizes = [maps:get(T, maps:get(ets, C), {0, 0}) || _ := C <- Counts],
    {lists:max([S || {S, _} <- Sizes]), lists:max([W || {_, W} <- Sizes])}.

report(Base, End, Before, During, #{steady := Steady, changing := Changing}) ->
    ct:pal("warm-up: ~0p~nload: ~0p~n~ts",
           [Before, During,
            [io_lib:format("~n~s (~b nodes)~n~ts",
                           [Kind, length(Ns), lines(of_kind(Ns, Base), of_kind(Ns, End))])
             || {Kind, Ns} <- [{"nodes that lived throughout", Steady},
                               {"nodes that came and went", Changing}]]]).

lines(Base, End) ->
    [io_lib:format("  ~-20s ~10b -> ~10b~n", [What, most(What, Base), most(What, End)])
     || What <- [processes, monitors, links, ports, persistent_terms, queues, atoms, process_kib,
                 binary_kib]]
        ++ [io_lib:format("  ~-60ts ~8b -> ~8b rows ~9b -> ~9b words~n",
                          [io_lib:format("~0tp", [T]), S1, S2, W1, W2])
            || T <- lists:usort(lists:append([maps:keys(maps:get(ets, C)) || _ := C <- End])),
               ours(T),
               {{S1, W1}, {S2, W2}} <- [{table(T, Base), table(T, End)}]].

ours({T, _}) -> ours(T);
ours(T) -> lists:prefix("sderl", atom_to_list(T)) orelse T =:= ac_tab.

%% The newest atoms of each node, and the kinds of processes of which it has more than before.
details(Base, End) ->
    [{N, maps:get(newest_atoms, C),
      [{K, Was, Is}
       || K := Is <- maps:get(process_kinds, C),
          Was <- [maps:get(K, maps:get(process_kinds, maps:get(N, Base)), 0)], Is > Was]}
     || N := C <- End].
