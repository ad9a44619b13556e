%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_heap).
-moduledoc """
The heap of a group's process.

The heap of a busy process has room for a batch or two, so that it is collected less often, with
little live data each time. If a node has many groups most are at rest, and this room would be most
of their cost: a process at rest has as small a heap as possible. How busy a process is is seen from
its reductions from tick to tick, which count operations as well as steps: a batch of hundreds of
operations is one step.
""".

-export([new/0, tick/1]).
-export_type([heap/0]).

-define(ROOM_WORDS, 20_000).
%% Reductions in a tick of a busy process (some fifty small batches): more than any at rest.
-define(AT_WORK, 20_000).
-define(LITTLE, 4_000).
-define(TICKS_AT_REST, 5).

-doc """
The reductions until the last tick, and whether the heap has room: `there`, or the number of ticks
with little work.
""".
-opaque heap() :: {Reductions :: non_neg_integer(), there | non_neg_integer()}.

-spec new() -> heap().
new() -> {reductions(), 0}.

-doc "Once a tick.".
-spec tick(heap()) -> heap().
tick({Before, Room}) ->
    Next = tick(reductions() - Before, Room),
    %% Without the reductions of the collection, which is no work for the group.
    {reductions(), Next}.

tick(Work, Room) when Work >= ?AT_WORK ->
    _ = Room =:= there orelse set(?ROOM_WORDS, element(2, erlang:system_info(fullsweep_after))),
    there;
tick(_, there) ->
    set(element(2, erlang:system_info(min_heap_size)), 0),
    1;
%% At rest, the heap shrinks from its size at work.
tick(_, ?TICKS_AT_REST) ->
    true = garbage_collect(),
    ?TICKS_AT_REST + 1;
tick(_, Ticks) when Ticks < ?TICKS_AT_REST -> Ticks + 1;
tick(Work, _) when Work >= ?LITTLE -> 1;
tick(_, Ticks) -> Ticks.

set(Words, Fullsweep) ->
    _ = process_flag(min_heap_size, Words),
    _ = process_flag(fullsweep_after, Fullsweep),
    ok.

reductions() ->
    {reductions, Reductions} = process_info(self(), reductions),
    Reductions.
