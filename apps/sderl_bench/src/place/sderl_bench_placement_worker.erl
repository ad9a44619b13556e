%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_placement_worker).
-moduledoc "The part of `bin/sderl bench placement` that runs on the measured nodes.".

-export([zone/1, tree/1, lacking/2, choose/2, silent/2, clear/0, at_once/3, told/1]).

-import(sderl_clock, [now_ns/0]).

%% Choices before the measured ones.
-define(WARMUP, 200).

-doc "Labels this node.".
-spec zone(non_neg_integer()) -> ok.
zone(Zone) -> ok = sderl_attr:label(zone, Zone).

-doc "A tree of distances with ten nodes to a vertex.".
-spec tree([node()]) -> ok.
tree(Nodes) -> ok = sderl_dist:set({network, racks(Nodes)}).

racks([]) -> [];
racks(Nodes) ->
    {Rack, Rest} = lists:split(min(10, length(Nodes)), Nodes),
    [{network, [{node, N} || N <- Rack]} | racks(Rest)].

-doc "The nodes whose attributes this node does not all hold.".
-spec lacking([node()], [sderl_attr:name()]) -> [node()].
lacking(Nodes, Names) ->
    [Node
     || Node <- Nodes,
        not lists:all(fun(Name) -> is_value(sderl_attr:cached(Node, Name)) end, Names)].

is_value({ok, _, _}) -> true;
is_value(_) -> false.

-doc """
Chooses again and again for so many milliseconds; nanoseconds of each choice, and how many nodes
were chosen.
""".
-spec choose(sderl_place:spec(), Ms :: pos_integer()) ->
    {sderl_bench_histogram:histogram(), pos_integer()}.
choose(Spec, Ms) ->
    _ = [sderl_place:choose_node(Spec) || _ <- lists:seq(1, ?WARMUP)],
    Recorder = sderl_bench_histogram:recorder(),
    Chosen = loop(Spec, Recorder, now_ns() + 1_000_000 * Ms, #{}),
    {sderl_bench_histogram:read(Recorder), map_size(Chosen)}.

loop(Spec, Recorder, Until, Chosen) ->
    T0 = now_ns(),
    Node = sderl_place:choose_node(Spec),
    T1 = now_ns(),
    sderl_bench_histogram:record(Recorder, T1 - T0),
    true = Node =/= none,
    case T1 < Until of
        true -> loop(Spec, Recorder, Until, Chosen#{Node => []});
        false -> Chosen#{Node => []}
    end.

-doc """
The number of messages that a process sends while it makes so many choices, and of the processes
that it spawns, from its trace.
""".
-spec silent(sderl_place:spec(), Choices :: pos_integer()) ->
    #{sent := non_neg_integer(), spawned := non_neg_integer()}.
silent(Spec, Choices) ->
    {Pid, Ref} = spawn_monitor(fun() ->
        receive go -> [sderl_place:choose_node(Spec) || _ <- lists:seq(1, Choices)] end
    end),
    Seen = traced(Pid, fun() ->
        Pid ! go,
        receive {'DOWN', Ref, process, Pid, normal} -> ok end
    end),
    #{
        sent => length([T
                        || T <- Seen, element(3, T) =:= send
                                      orelse element(3, T) =:= send_to_non_existing_process]),
        spawned => length([T || T <- Seen, element(3, T) =:= spawn])
    }.

%% The trace of a process while `Fun` runs.
traced(Pid, Fun) ->
    Tracer = spawn_link(fun() -> collect([]) end),
    1 = erlang:trace(Pid, true, [send, procs, {tracer, Tracer}]),
    ok = Fun(),
    _ = is_process_alive(Pid) andalso erlang:trace(Pid, false, [send, procs]),
    Ref = erlang:trace_delivered(Pid),
    receive {trace_delivered, Pid, Ref} -> ok end,
    Tracer ! {seen, self()},
    receive {seen, Tracer, Seen} -> Seen end.

collect(Seen) ->
    receive
        {seen, From} -> From ! {seen, self(), Seen};
        Trace -> collect([Trace | Seen])
    end.

-doc "Forgets earlier choices, which a chooser would take into account.".
-spec clear() -> ok.
clear() -> sderl_place_pending:clear().

-doc "Processes choose once each, all at this system time (us); how often each node was chosen.".
-spec at_once(sderl_place:spec(), Processes :: pos_integer(), AtUs :: integer()) ->
    #{node() => pos_integer()}.
at_once(Spec, Processes, AtUs) ->
    Chosen = sderl_fleet_task:at_once([{P, P} || P <- lists:seq(1, Processes)], fun(_, _) ->
        receive
        after max(0, (AtUs - os:system_time(microsecond)) div 1000) -> sderl_place:choose_node(Spec)
        end
    end),
    lists:foldl(fun({_, Node}, Acc) -> Acc#{Node => maps:get(Node, Acc, 0) + 1} end, #{}, Chosen).

-doc """
The traffic of this node's attributes in so many milliseconds: messages, and their bytes in the
external format (connections send known atoms as small numbers, so that somewhat less travels).
""".
-spec told(Ms :: pos_integer()) -> #{messages := non_neg_integer(), bytes := non_neg_integer()}.
told(Ms) ->
    Seen = traced(whereis(sderl_attr_server), fun() -> receive after Ms -> ok end end),
    Sizes = [erlang:external_size(Message) || {trace, _, send, Message, To} <- Seen, is_remote(To)],
    #{messages => length(Sizes), bytes => lists:sum(Sizes)}.

is_remote({_, Node}) -> Node =/= node();
is_remote(Pid) when is_pid(Pid) -> node(Pid) =/= node();
is_remote(_) -> false.
