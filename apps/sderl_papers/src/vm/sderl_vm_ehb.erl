%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_ehb).
-moduledoc """
`ehb`, after the hackbench of Linux: groups of 20 senders and 20 receivers; each sender sends a
tuple of 12 elements to each receiver of its group, waits until all have acknowledged it, and does
so again. 1, 2 or 8 groups for each core, 4 or 8 loops for each core. On several nodes a group is on
one of them.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "hackbench: groups of senders and receivers".

-define(SIDE, 20).

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{
        groups => Cores * maps:get(Size, #{short => 1, intermediate => 2, long => 8}),
        loops => Cores * maps:get(Size, #{short => 4, intermediate => 8, long => 8})
    }.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{groups := Groups, loops := Loops}) ->
    {2 * Groups * Loops * ?SIDE * ?SIDE, "message"}.

-doc false.
-spec spread() -> string().
spread() -> "its groups".

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> number().
run(run, #{groups := Groups, loops := Loops} = Settings) ->
    Main = self(),
    Leaders = [spawn_link(Node, fun() -> group(Main, Loops) end)
               || Node <- sderl_bench_vm_nodes:in_turn(Groups, Settings)],
    lists:sum([receive {done, Leader, Count} -> Count end || Leader <- Leaders]).

group(Main, Loops) ->
    Leader = self(),
    Receivers = [spawn_link(fun() -> acknowledge(Leader, ?SIDE * Loops, 0) end)
                 || _ <- lists:seq(1, ?SIDE)],
    _ = [spawn_link(fun() -> send(Receivers, Loops) end) || _ <- lists:seq(1, ?SIDE)],
    Counts = [receive {received, Receiver, Count} -> Count end || Receiver <- Receivers],
    Main ! {done, Leader, lists:sum(Counts)}.

send(_, 0) -> ok;
send(Receivers, Loops) ->
    _ = [Receiver ! {self(), 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12} || Receiver <- Receivers],
    _ = [receive {ack, Receiver} -> ok end || Receiver <- Receivers],
    send(Receivers, Loops - 1).

acknowledge(Leader, 0, Count) ->
    Leader ! {received, self(), Count};
acknowledge(Leader, Left, Count) ->
    receive
        {Sender, _, _, _, _, _, _, _, _, _, _, _} ->
            Sender ! {ack, self()},
            acknowledge(Leader, Left - 1, Count + 1)
    end.
