%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_mortal).
-moduledoc "Programs for `bin/sderl bench vm` that are small, or crash, hang, stop or print.".

-behaviour(sderl_bench_vm_program).

-export([summary/0, settings/2, operations/1, spread/0, stages/1, prepare/1, run/2, finish/1]).
-export([small/0, crash/0, crash_late/1, hang/0, stop/0, prints/0, prints_on/0, by_schedulers/0]).

summary() -> "small, with two stages".
%% The key `on` is reserved for the list of nodes, so these settings are refused on several nodes.
settings(long, _) -> #{on => true, length => 2000};
settings(Size, Cores) -> #{size => Size, cores => Cores, length => 2000}.
operations(#{unit := Unit}) -> {5, Unit};
operations(#{length := Length}) -> {Length, "element"}.
spread() -> "the parts of its list".
stages(_) -> [build, sort].
prepare(#{hangs_on := I, on := Nodes}) -> {hangs, lists:nth(I, Nodes)};
prepare(#{length := Length} = Settings) -> {Length, sderl_bench_vm_nodes:in_turn(4, Settings)}.
%% `HOME` of a node is the folder of the measurement.
run(build, {hangs, Node}) ->
    ok = file:write_file(filename:join(os:getenv("HOME"), "hangs"), ""),
    erpc:call(Node, ?MODULE, hang, []);
run(build, {Length, Nodes}) ->
    Part = Length div length(Nodes),
    lists:append([erpc:call(Node, lists, seq, [I * Part, (I - 1) * Part + 1, -1])
                  || {I, Node} <- lists:enumerate(Nodes)]);
run(sort, List) -> lists:sort(List).
finish(List) -> lists:sum(List).

small() -> lists:sum(lists:seq(1, 1000)).

crash() -> error(no_such_luck).

%% The process that exits is linked to the one that is measured.
crash_late(Reason) ->
    Pid = spawn_link(fun() -> exit(Reason) end),
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, Pid, _} -> receive after infinity -> ok end end.

hang() -> receive after infinity -> ok end.

stop() -> halt(7).

prints() ->
    ok = file:write_file("/dev/stdout", [<<0, 255, 200, 27, "[31mred">>, lists:seq(0, 255)]),
    halt(3).

%% Prints much output, and ends normally.
prints_on() ->
    io:put_chars(lists:duplicate(10_000, $x)),
    small().

by_schedulers() -> erlang:system_info(schedulers_online).
