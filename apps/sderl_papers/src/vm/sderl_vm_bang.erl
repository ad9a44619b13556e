%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_bang).
-moduledoc """
`bang`: many processes send at once to one, whose mailbox is the bottleneck. 16, 55 or 79 senders
for each core, with as many messages each. On several nodes the receiver is on the first one.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "many senders, one receiver: contention for a mailbox".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    Count = Cores * maps:get(Size, #{short => 16, intermediate => 55, long => 79}),
    #{senders => Count, messages => Count}.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{senders := Senders, messages := Messages}) ->
    {Senders * Messages, "message"}.

-doc false.
-spec spread() -> string().
spread() -> "its senders".

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> non_neg_integer().
run(run, #{senders := Senders, messages := Messages} = Settings) ->
    Receiver = self(),
    _ = [spawn_link(Node, fun() -> send(Messages, Receiver) end)
         || Node <- sderl_bench_vm_nodes:in_turn(Senders, Settings)],
    received(Senders * Messages, 0).

send(0, _) -> ok;
send(Left, Receiver) ->
    Receiver ! bang,
    send(Left - 1, Receiver).

received(0, Count) -> Count;
received(Left, Count) ->
    receive
        bang -> received(Left - 1, Count + 1)
    end.
