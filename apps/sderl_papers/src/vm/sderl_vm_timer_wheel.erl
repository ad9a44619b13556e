%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_timer_wheel).
-moduledoc """
`timer_wheel`: every process pings every other one and waits for the answer, in one stage with a
timeout, so that a timer is set and stopped for each, and in one without. 16, 32 or 48 processes for
each core.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, stages/1, prepare/1, run/2, finish/1]).

-doc false.
-spec summary() -> string().
summary() -> "pings with and without a timeout: timers".

-define(TIMEOUT_MS, 1_000_000).

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{processes => Cores * maps:get(Size, #{short => 16, intermediate => 32, long => 48})}.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()} | none.
operations(#{processes := 1}) ->
    none;
operations(#{processes := Count}) ->
    {2 * Count * (Count - 1), "ping"}.

-doc false.
-spec spread() -> string().
spread() -> "its processes".

-doc false.
-spec stages(sderl_bench_vm_program:settings()) -> [atom(), ...].
stages(_) -> [with_timeout, without].

-doc false.
-spec prepare(sderl_bench_vm_program:settings()) ->
    {sderl_bench_vm_program:settings(), [integer()]}.
prepare(Settings) -> {Settings, []}.

-doc false.
-spec run(atom(), {sderl_bench_vm_program:settings(), [integer()]}) ->
    {sderl_bench_vm_program:settings(), [integer()]}.
run(Stage, {#{processes := Count} = Settings, Counts}) ->
    {Settings, [pings(sderl_bench_vm_nodes:in_turn(Count, Settings), Stage) | Counts]}.

-doc false.
-spec finish({sderl_bench_vm_program:settings(), [integer()]}) -> [integer()].
finish({_, Counts}) -> Counts.

pings(Nodes, Stage) ->
    Main = self(),
    Processes = [spawn_link(Node, fun() -> member(Main, Stage) end) || Node <- Nodes],
    _ = [Process ! {others, Processes} || Process <- Processes],
    Answers = [receive {answered, Process, Got} -> Got end || Process <- Processes],
    _ = [Process ! stop || Process <- Processes],
    _ = [receive {stopped, Process} -> ok end || Process <- Processes],
    lists:sum(Answers).

member(Main, Stage) ->
    receive
        {others, Processes} ->
            Others = lists:delete(self(), Processes),
            Main ! {answered, self(), ping(Others, Stage, 0)},
            serve(Main)
    end.

%% Pings one process after the other, and answers the pings of others meanwhile.
ping([], _, Got) -> Got;
ping([Other | Others], Stage, Got) ->
    Other ! {ping, self()},
    ping(Others, Stage, Got + await(Stage)).

await(with_timeout) ->
    receive
        pong -> 1;
        {ping, From} -> From ! pong, await(with_timeout)
    after ?TIMEOUT_MS -> 0
    end;
await(without) ->
    receive
        pong -> 1;
        {ping, From} -> From ! pong, await(without)
    end.

serve(Main) ->
    receive
        {ping, From} -> From ! pong, serve(Main);
        stop -> Main ! {stopped, self()}
    end.
