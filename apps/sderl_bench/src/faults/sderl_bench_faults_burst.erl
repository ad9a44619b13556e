%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_burst).
-moduledoc "Faults with many names at once.".

-behaviour(sderl_bench_faults_kind).

-export([inject/2, undo/3]).

-define(PROCESSES, 20).
-define(DONE_MS, 300_000).

-doc false.
-spec inject(sderl_bench_faults_kind:name(), sderl_bench_faults_kind:context()) ->
    sderl_bench_faults_kind:injected().
inject(die_at_once, #{fleet := Fleet, target := Target, short := Count}) ->
    Count = sderl_fleet:call(Fleet, Target, sderl_bench_faults_client, short, [Count], ?DONE_MS),
    ok = sderl_fleet:call(Fleet, Target, sderl_bench_faults_client, mark, []),
    #{
        at => sderl_fleet:call(Fleet, Target, sderl_bench_faults_client, short_end, []),
        classes => #{short => sderl_bench_faults_watch:digest([])},
        undo => none
    };
inject(kill_in_burst, #{fleet := Fleet, target := Target, nodes := Nodes, burst := Total}) ->
    Each = max(1, Total div length(Nodes) div ?PROCESSES),
    Share = Each * ?PROCESSES,
    _ = [{_, {ok, ok}} = Started || Started <- on(Fleet, Nodes, burst, [?PROCESSES, Each])],
    %% Half of the node's own: the others have done about as many.
    ok = sderl_fleet:call(Fleet, Target, sderl_bench_faults_client, burst_done, [Share div 2],
                          ?DONE_MS),
    At = os:system_time(microsecond),
    ok = sderl_fleet:kill(Fleet, Target),
    #{
        away => [Target],
        dead => [Target],
        at => At,
        finish => fun(Live) ->
            _ = [{_, {ok, ok}} = Done || Done <- on(Fleet, Live, burst_done, [Share])],
            ok
        end,
        undo => Target
    }.

on(Fleet, Nodes, Function, Args) ->
    sderl_fleet:multicall(Fleet, Nodes, sderl_bench_faults_client, Function, Args, ?DONE_MS).

-doc false.
-spec undo(sderl_bench_faults_kind:name(), term(), sderl_bench_faults_kind:context()) -> ok.
undo(kill_in_burst, Target, #{fleet := Fleet}) ->
    {ok, Target} = sderl_fleet:restart(Fleet, Target),
    ok.
