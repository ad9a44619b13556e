%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_tasks).
-moduledoc "Functions that run beside each other, each in a process of its own.".

-export([side_by_side/1, in_turns/1]).
-export_type([outcome/1]).

%% Words. What such a function has is taken apart and made again with each event: with less, most of
%% its time would be collecting garbage, in which what is known of all processes is copied; with
%% much more it would no longer fit into the caches of a processor.
-define(HEAP, 500_000).

-doc "What they gave, in their order; `defect` and why, when one of them failed.".
-type outcome(Result) :: {ok, [Result]} | {error, {defect, term()}}.

-record(task, {number :: pos_integer(), run :: fun(() -> term())}).

-doc "All of them at once: they wait for others.".
-spec side_by_side([fun(() -> Result)]) -> outcome(Result).
side_by_side(Tasks) -> run(numbered(Tasks), max(1, length(Tasks)), [], #{}, []).

-doc """
As many at a time as there are schedulers, in their order: they compute. When the longest comes
first, the others share the rest of the schedulers meanwhile.
""".
-spec in_turns([fun(() -> Result)]) -> outcome(Result).
in_turns(Tasks) ->
    run(numbered(Tasks), erlang:system_info(schedulers_online), [{min_heap_size, ?HEAP}], #{}, []).

numbered(Tasks) -> [#task{number = N, run = Run} || {N, Run} <- lists:enumerate(Tasks)].

run([#task{number = N, run = Run} | Waiting], AtOnce, Options, Running, Ended)
  when map_size(Running) < AtOnce ->
    Self = self(),
    Tag = make_ref(),
    {_, Monitor} = spawn_opt(fun() -> Self ! {Tag, Run()} end, [monitor | Options]),
    run(Waiting, AtOnce, Options, Running#{Monitor => {N, Tag}}, Ended);
run([], _, _, Running, Ended) when map_size(Running) =:= 0 ->
    case [Why || {_, {failed, Why}} <- Ended] of
        [] -> {ok, [Result || {_, {done, Result}} <- lists:keysort(1, Ended)]};
        [Why | _] -> {error, {defect, Why}}
    end;
run(Waiting, AtOnce, Options, Running, Ended) ->
    receive
        {'DOWN', Monitor, process, _, Why} when is_map_key(Monitor, Running) ->
            {{N, Tag}, Others} = maps:take(Monitor, Running),
            %% What it gave comes before its end.
            Outcome = receive {Tag, Result} -> {done, Result} after 0 -> {failed, Why} end,
            run(Waiting, AtOnce, Options, Others, [{N, Outcome} | Ended])
    end.
