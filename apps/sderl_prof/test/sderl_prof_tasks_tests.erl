%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_tasks_tests).

-include_lib("eunit/include/eunit.hrl").

%% Results are in the order of the functions, whichever ends first; nothing stays in the mailbox.
order_test() ->
    {Open, Wait} = gate(),
    Tasks = [fun() -> Wait(), first end, fun() -> Open(), second end, fun() -> third end],
    ?assertEqual({ok, [first, second, third]}, sderl_prof_tasks:in_turns(Tasks, 2)),
    ?assertEqual({ok, [first, second, third]}, sderl_prof_tasks:side_by_side(Tasks)),
    ?assertEqual({ok, []}, sderl_prof_tasks:in_turns([])),
    ?assertEqual({ok, []}, sderl_prof_tasks:side_by_side([])),
    ?assertEqual({messages, []}, process_info(self(), messages)).

at_a_time_test() ->
    Running = counters:new(1, []),
    Task = fun() ->
        ok = counters:add(Running, 1, 1),
        Now = counters:get(Running, 1),
        true = erlang:yield(),
        ok = counters:sub(Running, 1, 1),
        Now
    end,
    {ok, Seen} = sderl_prof_tasks:in_turns(lists:duplicate(50, Task), 3),
    ?assertEqual([], [N || N <- Seen, N > 3]).

%% Of several failures the first one is returned, and after it no function is started.
failure_test() ->
    {Open, Wait} = gate(),
    ?assertEqual({error, {defect, first}}, sderl_prof_tasks:side_by_side([
        fun() -> Wait(), exit(first) end, fun() -> Open(), exit(second) end
    ])),
    Begun = counters:new(1, []),
    ?assertEqual({error, {defect, first}}, sderl_prof_tasks:in_turns([
        fun() -> exit(first) end, fun() -> counters:add(Begun, 1, 1) end
    ], 1)),
    ?assertEqual(0, counters:get(Begun, 1)).

gate() ->
    Gate = atomics:new(1, []),
    {fun() -> atomics:put(Gate, 1, 1) end, fun() -> wait(Gate) end}.

wait(Gate) ->
    case atomics:get(Gate, 1) of
        0 ->
            true = erlang:yield(),
            wait(Gate);
        1 -> ok
    end.
