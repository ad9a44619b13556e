%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profiling_sampler).
-moduledoc """
What the sampler costs a node on which many processes sleep, and some wake again and again.
""".

-export([measure/2]).

-define(AWAKE, 20).
-define(WAKES_MS, 10).
%% Seconds. The first round over 10,000 processes takes 30.
-define(SECONDS, 60).
-define(SHORT, 1).

-doc "`sampler`, the metric; nothing where no process is wanted.".
-spec measure(#{sampled := non_neg_integer(), atom() => term()}, Label :: unicode:chardata()) ->
    {ok, #{sampler => #{atom() => number()}}} | {error, term()}.
measure(#{sampled := 0}, _) -> {ok, #{}};
measure(#{sampled := Count}, Label) ->
    Processes = [spawn_link(fun sleep/0) || _ <- lists:seq(1, Count)]
        ++ [spawn_link(fun wake/0) || _ <- lists:seq(1, ?AWAKE)],
    %% The first round over few processes is soon over.
    Seconds = case Count of _ when Count < 1000 -> ?SHORT; _ -> ?SECONDS end,
    try
        sderl_progress:during([Label, ": sampling"], 1000 * Seconds, fun() ->
            sderl_prof_sampling:sample(node(), #{seconds => Seconds})
        end)
    of
        {ok, #{own_share := Own, looks_s := Looks, processes := All}} ->
            {ok, #{sampler => #{processes => All, seconds => Seconds, own_share => Own,
                                looks_s => Looks}}};
        {error, Why} -> {error, {said, sderl_prof_sampling:format_error(Why)}}
    after
        [begin
             true = unlink(Pid),
             exit(Pid, kill)
         end || Pid <- Processes]
    end.

sleep() -> receive stop -> ok end.

wake() -> receive stop -> ok after ?WAKES_MS -> wake() end.
