%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_smp).
-moduledoc """
Colonies in one virtual machine: a process each. In a round all make their iterations at the same
time; then each is told the best of all, but the one that found it. Runs on the node that it is
called on; the result is the same however many cores there are.
""".

-export([run/1, rounds/0]).
-export_type([conf/0, outcome/0]).

-doc "Colony k has the seed `{Seed, K}`. `engine`: the fast colony, or the plain one.".
-type conf() :: #{
    instance := sderl_aco_instance:instance(),
    options := sderl_aco_options:options(),
    engine := sderl_aco_colony | sderl_aco_plain,
    colonies := pos_integer(),
    global_iterations := pos_integer(),
    local_iterations := pos_integer(),
    seed := term()
}.

-type outcome() :: #{
    best := sderl_aco_colony:solution(),
    round_best := [non_neg_integer()],
    seconds := float(),
    ants := pos_integer()
}.

-doc "Runs all rounds. The time is from the first ant to the last. Exits where a colony dies.".
-spec run(conf()) -> outcome().
run(#{colonies := Count, global_iterations := Rounds, local_iterations := Iterations,
      options := #{ants := Ants}} = Conf) ->
    Progress = counters:new(1, []),
    ok = persistent_term:put(?MODULE, Progress),
    Master = self(),
    Colonies = [{spawn_monitor(fun() -> start(Master, Index, Conf) end), Index}
                || Index <- lists:seq(1, Count)],
    try
        ok = lists:foreach(fun({Colony, _}) -> ready = answer(Colony) end, Colonies),
        T0 = erlang:monotonic_time(microsecond),
        {{Cost, _, Jobs}, Costs} = rounds(Rounds, Iterations, Colonies, none, [], Progress),
        T1 = erlang:monotonic_time(microsecond),
        #{
            best => {Cost, Jobs},
            round_best => Costs,
            seconds => max(T1 - T0, 1) / 1_000_000,
            ants => Count * Rounds * Iterations * Ants
        }
    after
        ok = lists:foreach(fun stop/1, Colonies),
        persistent_term:erase(?MODULE)
    end.

answer({Colony, Monitor}) ->
    receive
        {Colony, Answer} -> Answer;
        {'DOWN', Monitor, process, Colony, Reason} -> exit({colony, Reason})
    end.

stop({{Colony, Monitor}, _}) ->
    true = exit(Colony, kill),
    true = demonitor(Monitor, [flush]),
    ok.

rounds(0, _, _, Best, Costs, _) ->
    {Best, lists:reverse(Costs)};
rounds(Left, Iterations, Colonies, Best0, Costs, Progress) ->
    ok = lists:foreach(fun({{Colony, _}, _}) -> Colony ! {run, Iterations, Best0} end, Colonies),
    Found = [{Cost, Index, Jobs} || {Colony, Index} <- Colonies, {Cost, Jobs} <- [answer(Colony)]],
    %% Of two equally good ones the older stays: its colony need not be told.
    {Cost, _, _} = Best = lists:foldl(fun better/2, Best0, Found),
    ok = counters:add(Progress, 1, 1),
    rounds(Left - 1, Iterations, Colonies, Best, [Cost | Costs], Progress).

better(Found, none) -> Found;
better({Cost, _, _} = Found, {Best, _, _}) when Cost < Best -> Found;
better(_, Best) -> Best.

start(Master, Index, #{instance := Instance, options := Options, engine := Engine, seed := Seed}) ->
    Gone = monitor(process, Master),
    Colony = Engine:new(Instance, Options, {Seed, Index}),
    Master ! {self(), ready},
    loop(Master, Gone, Index, Engine, Colony).

loop(Master, Gone, Index, Engine, Colony0) ->
    receive
        {run, Iterations, Best} ->
            {Solution, Colony} = Engine:run(told(Best, Index, Engine, Colony0), Iterations),
            Master ! {self(), Solution},
            loop(Master, Gone, Index, Engine, Colony);
        {'DOWN', Gone, process, Master, _} ->
            ok
    end.

told(none, _, _, Colony) -> Colony;
told({_, Index, _}, Index, _, Colony) -> Colony;
told({Cost, _, Jobs}, _, Engine, Colony) -> Engine:update(Colony, {Cost, Jobs}).

-doc "How many rounds of the run on this node are done; `undefined` where there is none.".
-spec rounds() -> non_neg_integer() | undefined.
rounds() ->
    case persistent_term:get(?MODULE, undefined) of
        undefined -> undefined;
        Progress -> counters:get(Progress, 1)
    end.
