%% SPDX-License-Identifier: Apache-2.0
-module(sderl_pg_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(UID, <<"uid of g">>).

pg_test_() ->
    {timeout, 60, [
        {Name, fun() -> with_pg(Test) end}
     || {Name, Test} <- [
            {"join, members, leave", fun join_and_leave/0},
            {"joins count", fun joins_count/0},
            {"refusals", fun refusals/0},
            {"no scope before its first use", fun no_scope_before_use/0},
            {"created again and again", fun created_again/0},
            {"a process that dies", fun death/0},
            {"the scope dies", fun scope_dies/0},
            {"the keeper dies", fun keeper_dies/0},
            {"the supervisor dies", fun supervisor_dies/0},
            {"the supervisor dies before its keeper", fun supervisor_dies_first/0},
            {"drop and join again", fun drop_and_join_again/0},
            {"a node that leaves while it joins", fun leaves_while_joining/0},
            {"stopped", fun stopped/0}
        ]
    ]}.

properties_test_() ->
    [sderl_prop:eunit("pg: as a bag, over deaths of the scope", 60, fun prop_bag/0)].

with_pg(Test) ->
    Level = maps:get(level, logger:get_primary_config()),
    ok = logger:set_primary_config(level, none),
    sderl_pg = sderl_pg:new(),
    start_sup(),
    try
        Test()
    after
        stop_sup(),
        ets:delete(sderl_pg),
        ok = logger:set_primary_config(level, Level)
    end.

start_sup() ->
    {ok, Sup} = sderl_pg_sup:start_link(),
    true = unlink(Sup).

stop_sup() ->
    case whereis(sderl_pg_sup) of
        undefined ->
            ok;
        Sup ->
            Scopes = [Pid
                      || {{scope, _}, _, Scope, _} <- ets:tab2list(sderl_pg),
                         Pid <- [whereis(Scope)], is_pid(Pid)],
            ended(Sup, fun() -> exit(Sup, shutdown) end),
            lists:foreach(fun(Pid) -> ended(Pid, fun() -> ok end) end, Scopes)
    end.

ended(Pid, Act) ->
    Monitor = monitor(process, Pid),
    Act(),
    receive
        {'DOWN', Monitor, process, Pid, _} -> ok
    end.

kill(Name) when is_atom(Name), Name =/= undefined -> kill(whereis(Name));
kill(Pid) when is_pid(Pid) -> ended(Pid, fun() -> exit(Pid, kill) end).

env() -> #{is_member => fun(G) -> G =:= g end, uid => fun(g) -> ?UID end, hidden => false}.

join(PgGroup, Pids) -> sderl_pg:join(g, PgGroup, Pids, env()).
leave(PgGroup, Pids) -> sderl_pg:leave(g, PgGroup, Pids, env()).
members(PgGroup) -> sderl_pg:members(g, PgGroup, env()).

process() -> spawn(fun() -> receive stop -> ok end end).

keeper() ->
    [{_, _, _, Keeper}] = ets:lookup(sderl_pg, {scope, ?UID}),
    Keeper.

%% The keeper's mailbox is done with whatever was there.
settle() -> sys:get_state(keeper()).

%% A new keeper, or a new scope, stands where the dead one stood.
await_new(Old, Now) ->
    case Now() of
        Pid when is_pid(Pid), Pid =/= Old -> Pid;
        _ -> erlang:yield(), await_new(Old, Now)
    end.

join_and_leave() ->
    [A, B] = [process(), process()],
    ?assertEqual([], members(w)),
    ?assertEqual(ok, join(w, A)),
    ?assertEqual(ok, join(w, [B])),
    ?assertEqual(ok, join({v, 1}, [A, B])),
    ?assertEqual(lists:sort([A, B]), lists:sort(members(w))),
    ?assertEqual(lists:sort([A, B]), lists:sort(pg:get_members(sderl_pg:scope(g), {?UID, {v, 1}}))),
    ?assertEqual(ok, leave(w, [A, self()])),
    ?assertEqual([B], members(w)),
    ?assertEqual(not_joined, leave(w, A)),
    ?assertEqual(not_joined, leave(u, A)).

joins_count() ->
    A = process(),
    ok = join(w, [A, A]),
    ok = join(w, A),
    ?assertEqual([A, A, A], members(w)),
    ok = leave(w, [A, A]),
    ?assertEqual([A], members(w)),
    ok = leave(w, [A, A]),
    ?assertEqual([], members(w)),
    ?assertEqual(not_joined, leave(w, A)).

refusals() ->
    Remote = binary_to_term(<<131, 88, 119, 3, "x@y", 1:32, 0:32, 1:32>>),
    ?assertEqual({error, not_local}, join(w, [self(), Remote])),
    Elsewhere = {error, no_information_about_remote_group},
    ?assertEqual(Elsewhere, sderl_pg:join(h, w, self(), env())),
    ?assertEqual(Elsewhere, sderl_pg:leave(h, w, self(), env())),
    ?assertEqual(Elsewhere, sderl_pg:members(h, w, env())),
    Hidden = (env())#{hidden := true},
    ?assertEqual({error, hidden_node}, sderl_pg:join(g, w, self(), Hidden)),
    ?assertEqual({error, hidden_node}, sderl_pg:members(g, w, Hidden)),
    ?assertEqual([], ets:tab2list(sderl_pg)).

%% A group of the same name with another uid begins with nobody in it, and those before it leave
%% nothing behind.
created_again() ->
    A = process(),
    Use = fun(I) ->
        Uid = <<I:128>>,
        Env = (env())#{uid := fun(g) -> Uid end},
        ?assertEqual([], sderl_pg:members(g, w, Env)),
        ok = sderl_pg:join(g, w, A, Env),
        ?assertEqual([A], sderl_pg:members(g, w, Env)),
        ok = sderl_pg:drop(Uid)
    end,
    Use(0),
    Atoms = erlang:system_info(atom_count),
    lists:foreach(Use, lists:seq(1, 200)),
    ?assertEqual(Atoms, erlang:system_info(atom_count)),
    await_new(none, fun() -> supervisor:which_children(sderl_pg_sup) =:= [] andalso A end),
    ?assertEqual([], ets:tab2list(sderl_pg)),
    await_new(none, fun() -> whereis(sderl_pg:scope(g)) =:= undefined andalso A end).

no_scope_before_use() ->
    Scope = sderl_pg:scope(g),
    ?assertEqual(undefined, whereis(Scope)),
    ?assertEqual([], members(w)),
    ?assert(is_pid(whereis(Scope))).

death() ->
    [A, B] = [process(), process()],
    ok = join(w, [A, A, B]),
    ok = join(v, A),
    kill(A),
    await_rows([{{join, ?UID, w, B}, 1}]),
    kill(sderl_pg:scope(g)),
    await_members([B]).

await_rows(Expected) ->
    settle(),
    case ets:match_object(sderl_pg, {{join, '_', '_', '_'}, '_'}) of
        Expected -> ok;
        _ -> await_rows(Expected)
    end.

await_members(Expected) ->
    case lists:sort(members(w)) of
        Expected -> ok;
        _ -> erlang:yield(), await_members(Expected)
    end.

scope_dies() ->
    [A, B] = lists:sort([process(), process()]),
    ok = join(w, [A, A, B]),
    Old = whereis(sderl_pg:scope(g)),
    kill(Old),
    await_members([A, A, B]),
    ?assertNotEqual(Old, whereis(sderl_pg:scope(g))),
    ok = leave(w, [A, A]),
    ?assertEqual([B], members(w)).

keeper_dies() ->
    A = process(),
    ok = join(w, [A, A]),
    Keeper = keeper(),
    kill(Keeper),
    _ = await_new(Keeper, fun keeper/0),
    settle(),
    ?assertEqual([A, A], members(w)),
    ok = join(w, A),
    ?assertEqual([A, A, A], members(w)).

%% The keeper has joins in its mailbox when its supervisor dies, and hears of that behind them, when
%% a new one may be there. What it answers is kept.
supervisor_dies_first() ->
    [A, B] = [process(), process()],
    ok = join(workers, A),
    Old = keeper(),
    true = erlang:suspend_process(Old),
    {_, Client} = spawn_monitor(fun() -> exit({answer, join(workers, B)}) end),
    await_new(none, fun() ->
        process_info(Old, message_queue_len) =:= {message_queue_len, 1} andalso A
    end),
    kill(sderl_pg_sup),
    start_sup(),
    _ = settle(),
    _ = is_process_alive(Old) andalso ended(Old, fun() -> erlang:resume_process(Old) end),
    Joined = receive
        {'DOWN', Client, process, _, {answer, ok}} -> [A, B];
        {'DOWN', Client, process, _, _} -> [A]
    end,
    Scope = whereis(sderl_pg:scope(g)),
    kill(Scope),
    _ = await_new(Scope, fun() -> whereis(sderl_pg:scope(g)) end),
    _ = settle(),
    ?assertEqual(Joined, lists:sort(members(workers))).

supervisor_dies() ->
    A = process(),
    ok = join(w, [A, A]),
    Keeper = keeper(),
    kill(sderl_pg_sup),
    start_sup(),
    _ = await_new(Keeper, fun keeper/0),
    settle(),
    ?assertEqual([A, A], members(w)).

drop_and_join_again() ->
    A = process(),
    ok = join(w, A),
    Keeper = keeper(),
    Pg = whereis(sderl_pg:scope(g)),
    ended(Keeper, fun() -> ok = sderl_pg:drop(?UID) end),
    ended(Pg, fun() -> ok end),
    ?assertEqual([], ets:tab2list(sderl_pg)),
    ?assertEqual(ok, sderl_pg:drop(?UID)),
    ?assertEqual([], members(w)),
    ok = join(w, A),
    ?assertEqual([A], members(w)),
    %% And without waiting for the end.
    ok = sderl_pg:drop(?UID),
    ok = join(w, A),
    ?assertEqual([A], members(w)).

%% A member at the first look only.
leaves_while_joining() ->
    Looks = counters:new(1, []),
    Once = fun(g) ->
        counters:add(Looks, 1, 1),
        counters:get(Looks, 1) =:= 1
    end,
    ?assertEqual(
        {error, no_information_about_remote_group},
        sderl_pg:join(g, w, process(), (env())#{is_member := Once})
    ),
    await_nothing().

await_nothing() ->
    case ets:tab2list(sderl_pg) of
        [] -> ok;
        _ -> erlang:yield(), await_nothing()
    end.

stopped() ->
    stop_sup(),
    ?assertEqual({error, not_running}, join(w, self())),
    ?assertEqual({error, not_running}, leave(w, self())).

%% Joins, leaves and deaths of the scope: the members are those of a bag.
prop_bag() ->
    ?FORALL(
        Commands,
        list(
            frequency([
                {4, {join, group(), list(range(1, 3))}},
                {3, {leave, group(), list(range(1, 3))}},
                {1, kill_scope},
                {1, kill_keeper}
            ])
        ),
        begin
            Pids = {process(), process(), process()},
            Holds = holds(fun() -> bag(few_kills(Commands, 5), Pids, #{}) end),
            [Pid ! stop || Pid <- tuple_to_list(Pids)],
            Holds
        end
    ).

%% Fewer deaths of the keeper than its supervisor allows.
few_kills([kill_keeper | Rest], 0) -> few_kills(Rest, 0);
few_kills([kill_keeper | Rest], N) -> [kill_keeper | few_kills(Rest, N - 1)];
few_kills([Command | Rest], N) -> [Command | few_kills(Rest, N)];
few_kills([], _N) -> [].

holds(Test) ->
    Self = self(),
    with_pg(fun() -> Self ! {holds, Test()} end),
    receive
        {holds, Holds} -> Holds
    end.

group() -> oneof([v, w]).

bag([], _Pids, Bag) ->
    _ = settled_members(v),
    lists:all(
        fun(G) -> lists:sort(settled_members(G)) =:= lists:sort(maps:get(G, Bag, [])) end, [v, w]
    );
bag([{join, G, Indices} | Rest], Pids, Bag) ->
    Chosen = [element(I, Pids) || I <- Indices],
    ok = join(G, Chosen),
    bag(Rest, Pids, Bag#{G => maps:get(G, Bag, []) ++ Chosen});
bag([{leave, G, Indices} | Rest], Pids, Bag) ->
    Chosen = [element(I, Pids) || I <- Indices],
    Before = maps:get(G, Bag, []),
    After = Before -- Chosen,
    Expected = case After of Before when Chosen =/= [] -> not_joined; _ -> ok end,
    leave(G, Chosen) =:= Expected andalso bag(Rest, Pids, Bag#{G => After});
bag([Kill | Rest], Pids, Bag) ->
    _ = settled_members(w),
    case Kill of
        kill_scope ->
            Old = whereis(sderl_pg:scope(g)),
            kill(Old),
            await_new(Old, fun() -> whereis(sderl_pg:scope(g)) end);
        kill_keeper ->
            Old = keeper(),
            kill(Old),
            await_new(Old, fun keeper/0)
    end,
    bag(Rest, Pids, Bag).

settled_members(G) ->
    _ = members(G),
    settle(),
    members(G).
