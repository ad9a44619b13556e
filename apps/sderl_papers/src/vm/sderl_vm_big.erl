%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_big).
-moduledoc """
`big`: every process pings every other one, and answers the pings of all. 8, 16 or 24 processes for
each core. The published thesis calls it big bang.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "all processes ping all: messages between many pairs".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{processes => Cores * maps:get(Size, #{short => 8, intermediate => 16, long => 24})}.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()} | none.
operations(#{processes := 1}) ->
    none;
operations(#{processes := Count}) ->
    {2 * Count * (Count - 1), "message"}.

-doc false.
-spec spread() -> string().
spread() -> "its processes".

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> number().
run(run, #{processes := Count} = Settings) ->
    Main = self(),
    Processes = [spawn_link(Node, fun() -> member(Main) end)
                 || Node <- sderl_bench_vm_nodes:in_turn(Count, Settings)],
    _ = [Process ! {others, Processes} || Process <- Processes],
    Answers = [receive {answered, Process, Got} -> Got end || Process <- Processes],
    %% They answer pings until all processes have got their answers.
    _ = [Process ! stop || Process <- Processes],
    _ = [receive {stopped, Process} -> ok end || Process <- Processes],
    lists:sum(Answers).

member(Main) ->
    receive
        {others, Processes} ->
            Others = lists:delete(self(), Processes),
            _ = [Other ! {ping, self()} || Other <- Others],
            answer(Main, length(Others), 0)
    end.

answer(Main, 0, Got) ->
    Main ! {answered, self(), Got},
    answer(Main, ready, Got);
answer(Main, Left, Got) ->
    receive
        {ping, From} ->
            From ! pong,
            answer(Main, Left, Got);
        pong ->
            answer(Main, Left - 1, Got + 1);
        stop ->
            Main ! {stopped, self()}
    end.
