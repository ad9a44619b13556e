%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_heap).
-moduledoc """
The heap of a group's process.

A process at work has room for a batch or two: fewer collections, each of little that lives. Most of
many groups are at rest, and that room would be most of what they cost: they have as little heap as
they can, and collect all of it. How much a process works is told by its reductions from tick to
tick, which count operations as well as steps: a batch of hundreds of operations is one step.
""".

-export([new/0, tick/1]).
-export_type([heap/0]).

-define(ROOM_WORDS, 20_000).
%% Reductions in a tick: of a process at work (some fifty small batches), and more than at rest.
-define(AT_WORK, 20_000).
-define(LITTLE, 4_000).
-define(TICKS_AT_REST, 5).

-doc """
The reductions until the last tick, and how it stands with room: there, or none for so many ticks of
little work.
""".
-opaque heap() :: {Reductions :: non_neg_integer(), there | non_neg_integer()}.

-spec new() -> heap().
new() -> {reductions(), 0}.

-doc "Once a tick.".
-spec tick(heap()) -> heap().
tick({Before, Room}) ->
    Next = tick(reductions() - Before, Room),
    %% A collection costs reductions, and is no work that the process was asked for.
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
