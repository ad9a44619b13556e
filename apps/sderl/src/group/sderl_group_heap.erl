%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_heap).
-moduledoc """
The heap of a group's process.

A process at work has room for a batch or two: fewer collections, each of little that lives. Most of
many groups are at rest, and that room would be most of what they cost: they have as little heap as
they can, and collect all of it. At work is who ran so often in a tick; at rest is who did not for
so many ticks.
""".

-export([new/0, step/1, tick/1]).
-export_type([heap/0]).

-define(ROOM_WORDS, 20_000).
-define(STEPS_AT_WORK, 50).
-define(TICKS_AT_REST, 5).

-doc """
The steps since the last tick, and how it stands with room: there, or none for so many ticks of
little work.
""".
-opaque heap() :: {Steps :: non_neg_integer(), there | non_neg_integer()}.

-spec new() -> heap().
new() -> {0, 0}.

-spec step(heap()) -> heap().
step({Steps, Room}) -> {Steps + 1, Room}.

-doc "Once a tick.".
-spec tick(heap()) -> heap().
tick({Steps, Room}) when Steps >= ?STEPS_AT_WORK ->
    _ = Room =:= there orelse set(?ROOM_WORDS, element(2, erlang:system_info(fullsweep_after))),
    {0, there};
tick({_, there}) ->
    set(element(2, erlang:system_info(min_heap_size)), 0),
    {0, 1};
%% At rest, the heap shrinks from its size at work.
tick({_, ?TICKS_AT_REST}) ->
    true = garbage_collect(),
    {0, ?TICKS_AT_REST + 1};
tick({_, Ticks}) when Ticks < ?TICKS_AT_REST -> {0, Ticks + 1};
tick({Steps, _}) when Steps > 10 -> {0, 1};
tick({_, Ticks}) -> {0, Ticks}.

set(Words, Fullsweep) ->
    _ = process_flag(min_heap_size, Words),
    _ = process_flag(fullsweep_after, Fullsweep),
    ok.
