%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_heap_tests).
-moduledoc "The heap that the process of a group keeps, by how much it works.".
-include_lib("eunit/include/eunit.hrl").

%% A process whose few steps are long is at work, as one of many short steps is.
room_comes_with_work_test() ->
    in_a_process(fun() ->
        Little = min_heap(),
        H0 = sderl_group_heap:tick(sderl_group_heap:new()),
        ?assertEqual(Little, min_heap()),
        _ = sderl_group_heap:tick(worked(40_000, H0)),
        ?assert(min_heap() >= 20_000),
        ?assert(fullsweep_after() > 0)
    end).

%% At rest it has as little as it can, and what the heap grew to goes.
room_goes_at_rest_test() ->
    in_a_process(fun() ->
        Little = min_heap(),
        H = sderl_group_heap:tick(worked(40_000, sderl_group_heap:new())),
        _ = lists:foldl(fun(_, Heap) -> sderl_group_heap:tick(Heap) end, H, lists:seq(1, 8)),
        ?assertEqual(Little, min_heap()),
        ?assertEqual(0, fullsweep_after()),
        {total_heap_size, Words} = process_info(self(), total_heap_size),
        ?assert(Words < 20_000)
    end).

%% A collection of much that lives is no work: it does not begin the rest anew.
collects_once_at_rest_test() ->
    in_a_process(fun() ->
        Lives = lists:seq(1, 200_000),
        Ticks = fun(Count, From) ->
            lists:foldl(fun(_, Heap) -> sderl_group_heap:tick(Heap) end, From, lists:seq(1, Count))
        end,
        H = Ticks(8, sderl_group_heap:new()),
        Before = reductions(),
        _ = Ticks(20, H),
        %% A collection of these takes some 40,000.
        ?assert(reductions() - Before < 20_000),
        ?assertEqual(200_000, length(Lives))
    end).

in_a_process(Test) ->
    {Pid, Ref} = spawn_monitor(Test),
    receive
        {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason)
    end.

worked(Reductions, Heap) ->
    work_until(reductions() + Reductions),
    Heap.

work_until(Reductions) ->
    true = erlang:bump_reductions(1000),
    reductions() >= Reductions orelse work_until(Reductions).

reductions() ->
    {reductions, Reductions} = process_info(self(), reductions),
    Reductions.

min_heap() -> setting(min_heap_size).

fullsweep_after() -> setting(fullsweep_after).

setting(Key) ->
    {garbage_collection, Settings} = process_info(self(), garbage_collection),
    proplists:get_value(Key, Settings).
