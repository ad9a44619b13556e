%% SPDX-License-Identifier: Apache-2.0
-module(sderl_vm_serialmsg).
-moduledoc """
`serialmsg`: pairs of a generator and a receiver, whose messages all go through one dispatcher. 2
pairs for each core (4 and 8 in the larger sizes), 16 messages for each core and pair, each a list
of 32 elements for each core. On several nodes the dispatcher is on the first one, and a generator
on the same node as its receiver.

Source: the description of BenchErl (Aronis et al., Erlang Workshop 2012).
""".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "all messages through one process".

-doc false.
-spec settings(sderl_bench_vm_program:size(), pos_integer()) ->
    sderl_bench_vm_program:settings().
settings(Size, Cores) ->
    #{pairs => Cores * maps:get(Size, #{short => 2, intermediate => 4, long => 8}),
      messages => 16 * Cores, elements => 32 * Cores}.

-doc false.
-spec operations(sderl_bench_vm_program:settings()) -> {pos_integer(), string()}.
operations(#{pairs := Pairs, messages := Messages}) ->
    {Pairs * Messages, "message"}.

-doc false.
-spec spread() -> string().
spread() -> "its pairs".

-doc false.
-spec run(run, sderl_bench_vm_program:settings()) -> number().
run(run, #{pairs := Pairs, messages := Messages, elements := Elements} = Settings) ->
    Main = self(),
    Dispatcher = spawn_link(fun() -> dispatch(Pairs * Messages) end),
    Receivers = [spawn_link(Node, fun() -> Main ! {self(), receive_all(Messages, 0)} end)
                 || Node <- sderl_bench_vm_nodes:in_turn(Pairs, Settings)],
    _ = [spawn_link(node(Receiver), fun() -> generate(Dispatcher, Receiver, Messages, Elements) end)
         || Receiver <- Receivers],
    lists:sum([receive {Receiver, Count} -> Count end || Receiver <- Receivers]).

generate(_, _, 0, _) -> ok;
generate(Dispatcher, Receiver, Left, Elements) ->
    Dispatcher ! {to, Receiver, lists:seq(1, Elements)},
    generate(Dispatcher, Receiver, Left - 1, Elements).

dispatch(0) -> ok;
dispatch(Left) ->
    receive
        {to, Receiver, List} ->
            Receiver ! {list, List},
            dispatch(Left - 1)
    end.

receive_all(0, Count) -> Count;
receive_all(Left, Count) ->
    receive
        {list, List} -> receive_all(Left - 1, Count + length(List))
    end.
