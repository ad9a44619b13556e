%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_nodes).
-moduledoc """
The nodes of a point that has several: the virtual machine that measures is the first one, and
starts the others with OTP's `m:peer`. They are connected by Erlang's distribution; the first one
also holds the stdin of the others, so that they end with it however it ends.

It runs inside the virtual machine that measures, and calls OTP and `sderl_bench_vm_epmd` only. A
program asks it which node each of its processes is for (`in_turn/2`).
""".

-export([start/1, stop/1, name/1, of_settings/1, in_turn/2]).
-export_type([nodes/0]).

-doc """
How many there are, the program `erl`, the arguments that all have in common, and the folder where
they find each other.
""".
-type nodes() :: #{count := pos_integer(), erl := file:filename(), args := [string()],
                   folder := file:filename()}.

-define(BOOT_MS, 60_000).

-doc """
Starts all nodes but this one, in parallel, and connects each with each. Gives this node and the
others, in a fixed order, and the argument of `stop/1`.
""".
-spec start(nodes()) -> {ok, [node(), ...], [pid()]} | {error, binary()}.
start(#{count := Count} = Nodes) ->
    Notify = [{I, make_ref()} || I <- lists:seq(2, Count)],
    try
        Peers = [started(I, Tag, Nodes) || {I, Tag} <- Notify],
        Others = [booted(I, Tag) || {I, Tag} <- Notify],
        All = [node() | Others],
        ok = connected(Others, All),
        {ok, All, Peers}
    catch
        exit:{no_node, Text} ->
            {error, unicode:characters_to_binary(Text)};
        error:{erpc, Reason} ->
            {error, unicode:characters_to_binary(io_lib:format(
                "a node ended before all were connected: ~0tp", [Reason]))}
    end.

started(I, Tag, #{erl := Erl, args := Args, folder := Folder}) ->
    Options = #{
        connection => standard_io, exec => Erl, wait_boot => {self(), Tag},
        args => Args ++ sderl_bench_vm_epmd:arguments(name(I), Folder)
    },
    case peer:start(Options) of
        {ok, Peer} -> Peer;
        {error, Reason} -> no_node("node ~w does not start: ~0tp", [I, Reason])
    end.

-doc "The name of a node by its number; number 1 measures.".
-spec name(pos_integer()) -> string().
name(I) -> lists:concat(["node_", I]).

booted(I, Tag) ->
    receive
        {Tag, {started, Node, _}} -> Node;
        {Tag, {boot_failed, Reason, _}} -> no_node("node ~w does not start: ~0tp", [I, Reason])
    after ?BOOT_MS ->
        no_node("node ~w was not there within ~w s", [I, ?BOOT_MS div 1000])
    end.

%% Connects all, so that no program waits for a connection in its first run.
connected([], _) ->
    ok;
connected([Node | Nodes], All) ->
    maybe
        true ?= net_kernel:connect_node(Node),
        [] ?= [Other || Other <- All, Other =/= Node,
                        erpc:call(Node, net_kernel, connect_node, [Other]) =/= true],
        connected(Nodes, All)
    else
        _ -> no_node("node ~ts cannot be connected with the others", [Node])
    end.

-spec no_node(io:format(), [term()]) -> no_return().
no_node(Format, Args) -> exit({no_node, io_lib:format(Format, Args)}).

-doc "Ends the others. One that has ended already must not hide the reason of a failure.".
-spec stop([pid()]) -> ok.
stop(Peers) ->
    lists:foreach(fun(Peer) ->
        try peer:stop(Peer) catch exit:_ -> ok end
    end, Peers).

-doc "The nodes in the settings of a program; this one alone if there are none.".
-spec of_settings(sderl_bench_vm_program:settings()) -> [node(), ...].
of_settings(#{on := Nodes}) -> Nodes;
of_settings(#{}) -> [node()].

-doc "The nodes of so many processes, dealt in turn.".
-spec in_turn(Count :: non_neg_integer(), sderl_bench_vm_program:settings()) -> [node()].
in_turn(Count, Settings) ->
    Nodes = list_to_tuple(of_settings(Settings)),
    [element(1 + I rem tuple_size(Nodes), Nodes) || I <- lists:seq(0, Count - 1)].
