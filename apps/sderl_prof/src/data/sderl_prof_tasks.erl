%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_tasks).
-moduledoc "Functions that run side by side, each in a process of its own.".

-export([side_by_side/1]).

%% Words. What such a function has is taken apart and made again with each event: with less, most of
%% its time would be collecting garbage, in which what is known of all processes is copied.
-define(HEAP, 500_000).

-doc "What they gave, in their order; `defect` and why, when one of them failed.".
-spec side_by_side([fun(() -> Result)]) -> {ok, [Result]} | {error, {defect, term()}}.
side_by_side(Tasks) ->
    Self = self(),
    Started = [begin
                   Tag = make_ref(),
                   {Tag, spawn_opt(fun() -> Self ! {Tag, Task()} end,
                                   [monitor, {min_heap_size, ?HEAP}])}
               end || Task <- Tasks],
    Ended = [ended_task(Tag, Pid, Ref) || {Tag, {Pid, Ref}} <- Started],
    case [Why || {failed, Why} <- Ended] of
        [] -> {ok, [Result || {done, Result} <- Ended]};
        [Why | _] -> {error, {defect, Why}}
    end.

ended_task(Tag, Pid, Ref) ->
    receive
        {Tag, Result} ->
            true = demonitor(Ref, [flush]),
            {done, Result};
        {'DOWN', Ref, process, Pid, Why} -> {failed, Why}
    end.
