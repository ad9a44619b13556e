%% SPDX-License-Identifier: Apache-2.0
-module(sderl_watch_tests).
-include_lib("eunit/include/eunit.hrl").

watch_test_() ->
    {setup, fun start/0, fun stop/1,
     [fun name_held/0, fun name_gone/0, fun nobody_to_tell/0, fun dies/0]}.

start() ->
    sderl_links = sderl_links:new(),
    _ = [T = ets:new(T, [named_table, public]) || T <- [sderl_watches, sderl_names]],
    {ok, Pid} = sderl_watch:start_link(),
    Pid.

stop(Pid) ->
    unlink(Pid),
    gen_server:stop(Pid),
    [ets:delete(T) || T <- [sderl_links, sderl_watches, sderl_names]].

process() -> spawn(fun() -> receive stop -> ok end end).

watch(For, Name, Pid) ->
    ets:insert(sderl_names, {{g, Name}, Pid, node(), {1, node()}, 1, []}),
    ok = sderl_watch:watch(For, g, [{Name, Pid}]),
    watched().

%% How many it watches, once it has done what it was told.
watched() ->
    Monitors = map_size(maps:remove(sweep, sys:get_state(sderl_watch))),
    ?assertEqual(Monitors, ets:info(sderl_watches, size)),
    Monitors.

swept() ->
    sderl_watch ! sweep,
    watched().

name_held() ->
    P = process(),
    ?assertEqual(1, watch(self(), held, P)),
    ?assertEqual(1, swept()),
    ok = sderl_watch:drop(self()),
    ?assertEqual(0, watched()).

%% It was unregistered, or is somebody else's.
name_gone() ->
    [P, Q] = [process(), process()],
    ?assertEqual(1, watch(self(), one, P)),
    ?assertEqual(2, watch(self(), two, Q)),
    ets:delete(sderl_names, {g, one}),
    ets:insert(sderl_names, {{g, two}, P, node(), {1, node()}, 2, []}),
    ?assertEqual(0, swept()),
    {monitored_by, By} = process_info(P, monitored_by),
    ?assertNot(lists:member(whereis(sderl_watch), By)).

%% The group's process was killed.
nobody_to_tell() ->
    {For, Ref} = spawn_monitor(fun() -> receive stop -> ok end end),
    ?assertEqual(1, watch(For, name, process())),
    exit(For, kill),
    receive {'DOWN', Ref, process, For, _} -> ok end,
    ?assertEqual(0, swept()).

dies() ->
    P = process(),
    ?assertEqual(1, watch(self(), dies, P)),
    exit(P, kill),
    receive {sderl_pid_gone, dies, P} -> ok end,
    ?assertEqual(0, watched()).
