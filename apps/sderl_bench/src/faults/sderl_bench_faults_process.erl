%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_process).
-moduledoc "Faults of a node's operating-system process: killed, stopped, slow, flooded.".

-behaviour(sderl_bench_faults_kind).

-export([inject/2, undo/3]).
%% On the nodes.
-export([flood/1, is_blocked/1, stop_flood/1]).

-define(STILL_MS, 150).
-define(AT_WORK_MS, 50).
-define(BLOCKED_MS, 30_000).

-doc false.
-spec inject(sderl_bench_faults_kind:name(), sderl_bench_faults_kind:context()) ->
    sderl_bench_faults_kind:injected().
inject(none, _) ->
    #{undo => nothing};
inject(Kill, #{fleet := Fleet, target := Target}) when Kill =:= kill; Kill =:= kill_coordinator ->
    ok = sderl_fleet:kill(Fleet, Target),
    #{away => [Target], dead => [Target], undo => Target};
inject(flood, #{fleet := Fleet, target := Target, nodes := Nodes}) ->
    ok = sderl_fleet:suspend(Fleet, Target),
    Floods = [{Node, sderl_fleet:call(Fleet, Node, ?MODULE, flood, [Target])}
              || Node <- Nodes, Node =/= Target],
    %% The fault begins when the senders are suspended.
    ok = sderl_fleet:await(
        fun() ->
            lists:all(fun({Node, Pid}) ->
                sderl_fleet:call(Fleet, Node, ?MODULE, is_blocked, [Pid])
            end, Floods)
        end,
        ?BLOCKED_MS
    ),
    #{away => [Target], undo => Floods};
inject(slow, #{fleet := Fleet, target := Target}) ->
    #{away => [Target], undo => spawn_link(fun() -> slow(Fleet, Target) end)};
inject(_Stop, #{fleet := Fleet, target := Target}) ->
    ok = sderl_fleet:suspend(Fleet, Target),
    #{away => [Target], undo => Target}.

-doc false.
-spec undo(sderl_bench_faults_kind:name(), term(), sderl_bench_faults_kind:context()) -> ok.
undo(none, nothing, _) ->
    ok;
undo(Kill, Target, #{fleet := Fleet}) when Kill =:= kill; Kill =:= kill_coordinator ->
    {ok, Target} = sderl_fleet:restart(Fleet, Target),
    ok;
undo(flood, Floods, #{fleet := Fleet, target := Target}) ->
    [true = sderl_fleet:call(Fleet, Node, ?MODULE, stop_flood, [Pid]) || {Node, Pid} <- Floods],
    ok = sderl_fleet:resume(Fleet, Target);
undo(slow, Pid, _) ->
    Ref = monitor(process, Pid),
    Pid ! stop,
    receive
        {'DOWN', Ref, process, _, normal} -> ok
    end;
undo(_Stop, Target, #{fleet := Fleet}) ->
    ok = sderl_fleet:resume(Fleet, Target).

slow(Fleet, Target) ->
    ok = sderl_fleet:suspend(Fleet, Target),
    receive
    after ?STILL_MS -> ok
    end,
    ok = sderl_fleet:resume(Fleet, Target),
    receive
        stop -> ok
    after ?AT_WORK_MS -> slow(Fleet, Target)
    end.

-doc "Sends to a node without end, to a name that no process there has.".
-spec flood(node()) -> pid().
flood(Target) ->
    Block = binary:copy(<<0>>, 65536),
    spawn(fun() -> flood({sderl_bench_nobody, Target}, Block) end).

flood(To, Block) ->
    _ = erlang:send(To, Block),
    flood(To, Block).

-doc "Whether it is suspended, for room in the distribution buffer.".
-spec is_blocked(pid()) -> boolean().
is_blocked(Pid) -> {status, suspended} =:= process_info(Pid, status).

-doc false.
-spec stop_flood(pid()) -> true.
stop_flood(Pid) -> exit(Pid, kill).
