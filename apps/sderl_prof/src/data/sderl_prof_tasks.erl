%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_tasks).
-moduledoc "Runs functions at the same time, each in a process of its own.".

-export([side_by_side/1, in_turns/1, in_turns/2]).
-export_type([outcome/1]).

%% Words. What such a function has is taken apart and made again with each event: with less, most of
%% its time would be collecting garbage, in which what is known of all processes is copied; with
%% much more it would no longer fit into the caches of a processor.
-define(HEAP, 500_000).

-doc """
Their results, in their order; or why one of them failed, of several the first in that order.
""".
-type outcome(Result) :: {ok, [Result]} | {error, {defect, term()}}.

-doc "Runs all of them at once: for functions that mostly wait.".
-spec side_by_side([fun(() -> Result)]) -> outcome(Result).
side_by_side(Tasks) -> run(lists:enumerate(Tasks), length(Tasks), [], #{}, []).

-doc """
Runs as many at a time as there are schedulers, in their order: for functions that compute. With the
longest one first, the others share the other schedulers meanwhile. After one has failed no further
one is begun.
""".
-spec in_turns([fun(() -> Result)]) -> outcome(Result).
in_turns(Tasks) -> in_turns(Tasks, erlang:system_info(schedulers_online)).

-doc "The same, so many at a time.".
-spec in_turns([fun(() -> Result)], pos_integer()) -> outcome(Result).
in_turns(Tasks, AtOnce) ->
    run(lists:enumerate(Tasks), AtOnce, [{min_heap_size, ?HEAP}], #{}, []).

run([{N, Run} | Waiting], AtOnce, Options, Running, Ended) when map_size(Running) < AtOnce ->
    Self = self(),
    Tag = make_ref(),
    {_, Monitor} = spawn_opt(fun() -> Self ! {Tag, Run()} end, [monitor | Options]),
    run(Waiting, AtOnce, Options, Running#{Monitor => {N, Tag}}, Ended);
run(_, _, _, Running, Ended) when map_size(Running) =:= 0 ->
    Sorted = lists:keysort(1, Ended),
    case [Why || {_, {failed, Why}} <- Sorted] of
        [] -> {ok, [Result || {_, {done, Result}} <- Sorted]};
        [Why | _] -> {error, {defect, Why}}
    end;
run(Waiting, AtOnce, Options, Running, Ended) ->
    receive
        {'DOWN', Monitor, process, _, Why} when is_map_key(Monitor, Running) ->
            {{N, Tag}, Others} = maps:take(Monitor, Running),
            %% Its result comes before its end.
            receive
                {Tag, Result} ->
                    run(Waiting, AtOnce, Options, Others, [{N, {done, Result}} | Ended])
            after 0 ->
                run([], AtOnce, Options, Others, [{N, {failed, Why}} | Ended])
            end
    end.
