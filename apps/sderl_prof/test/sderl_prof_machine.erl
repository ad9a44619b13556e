%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_machine).
-moduledoc """
A virtual machine with two schedulers that does what it is told, and the events that it would write:
schedules of which everything is known.
""".

-include_lib("proper/include/proper.hrl").
-include("sderl_prof_event.hrl").

-export([events/1, moves/0]).
-export_type([event/0, move/0]).

-define(PROCESSES, 4).
-define(SCHEDULERS, 2).

-type event() :: {integer(), byte(), non_neg_integer(), non_neg_integer()}.
-doc "After so long, the process with this number, modulo those that live, does what it can.".
-type move() :: {After :: pos_integer(), Who :: non_neg_integer(),
                 send | wait | preempt | spawn | exit | timer, To :: non_neg_integer()}.

-doc "Any schedule.".
-spec moves() -> proper_types:type().
moves() ->
    list({range(1, 20), nat(),
          frequency([{6, send}, {4, wait}, {2, preempt}, {1, spawn}, {1, exit}, {1, timer}]),
          nat()}).

-doc "Time, kind, process and what the kind has, in order; and when it ends.".
-spec events([move()]) -> {[event()], End :: integer()}.
events(Moves) ->
    All = lists:seq(1, ?PROCESSES),
    {T, Events, _, _} = lists:foldl(fun move/2, {0, [{0, ?ACTIVE, P, 0} || P <- All],
                                                 #{P => ready || P <- All}, ?PROCESSES}, Moves),
    {lists:reverse(Events), T + 1}.

move({After, Who, What, To}, {T0, Events, States, Count}) when map_size(States) > 0 ->
    T = T0 + 10 * After,
    P = nth(Who, States),
    Running = length([R || R := running <- States]),
    {New, States1, Count1} = case {map_get(P, States), What} of
        {ready, _} when Running < ?SCHEDULERS -> {[{0, ?IN, P, 0}], States#{P := running}, Count};
        {waiting, timer} -> {[{0, ?ACTIVE, P, 0}], States#{P := ready}, Count};
        {running, send} -> sent(P, nth(To, States), States, Count);
        {running, wait} -> {[{0, ?OUT, P, P}, {0, ?INACTIVE, P, P}], States#{P := waiting}, Count};
        {running, preempt} -> {[{0, ?OUT, P, P}], States#{P := ready}, Count};
        {running, spawn} ->
            Child = Count + 1,
            {[{0, ?SPAWN, P, Child}, {1, ?SPAWNED, Child, P}, {2, ?ACTIVE, Child, 0}],
             States#{Child => ready}, Child};
        {running, exit} ->
            {[{0, ?EXIT, P, 0}, {1, ?OUT_EXITED, P, 0}], maps:remove(P, States), Count};
        _ -> {[], States, Count}
    end,
    {T, lists:foldl(fun({D, K, Q, A}, Es) -> [{T + D, K, Q, A} | Es] end, Events, New), States1,
     Count1};
move(_, Done) ->
    Done.

sent(P, To, States, Count) ->
    case States of
        #{To := waiting} -> {[{0, ?SEND, P, To}, {1, ?ACTIVE, To, 0}], States#{To := ready}, Count};
        _ -> {[{0, ?SEND, P, To}], States, Count}
    end.

nth(N, States) -> lists:nth(1 + N rem map_size(States), lists:sort(maps:keys(States))).
