%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_meter).
-moduledoc """
The resources that nodes use during a measurement: processor time, memory, links, and the traffic on
the links.

```erlang
{Result, Usage} = sderl_bench_meter:around(Fleet, Nodes, fun() -> measure() end),
Metrics = sderl_bench_meter:metrics(Usage, Operations).
```

A node reads its own counters before and after, when it is asked over the fleet's control channel,
which is none of the links. Only what a node *sent* is read, so the sum over all nodes counts
everything between them once.

| metric | meaning |
|---|---|
| `cpu_pct` | processor time of all nodes in user mode (`statistics(runtime)`, without the system's work for them), in percent of all cores of the machine |
| `cpu_us_per_op` | the same in microseconds, for each operation |
| `bytes`, `messages`, `packets` | sent over the links: the distribution protocol included, TCP and IP headers not; a message is one write to a socket (ticks included; a long message is several); packets are TCP segments, acknowledgements included, `undefined` where the system does not tell |
| `bytes_per_op`, `messages_per_op`, `packets_per_op` | for each operation |
| `links_per_node_max`, `links_per_node_mean`, `links_total` | connections at the end, hidden ones included |
| `memory_mib_per_node`, `memory_mib_max` | resident memory at the end, the mean of the nodes; the most that any node ever had |
| `nodes_metered` | nodes that answered before and after; the others are in none of these metrics |
| `per_node` | the numbers of each node: `links`, `cpu_ms`, `bytes`, `messages`, `packets`, `memory_mib` |
""".

-export([around/3, metrics/2]).
-export([snapshot/0, usage/2, sent/2, missing/2, mean/1]).
-export_type([snapshot/0, usage/0, node_usage/0]).

-doc "Counters of one node so far, with the time by its own clock; `sent` has those of each link.".
-type snapshot() :: #{
    at_us := integer(),
    cpu_ms := non_neg_integer(),
    memory_kib := non_neg_integer(),
    memory_peak_kib := non_neg_integer(),
    sent := #{node() => sent()}
}.
-type sent() :: {Connection :: term(), Bytes :: non_neg_integer(), Messages :: non_neg_integer(),
                 Packets :: non_neg_integer() | undefined}.

-doc "The usage of one node between two snapshots.".
-type node_usage() :: #{
    node := node(),
    links := non_neg_integer(),
    cpu_ms := non_neg_integer(),
    bytes := non_neg_integer(),
    messages := non_neg_integer(),
    packets := non_neg_integer() | undefined,
    memory_mib := float()
}.

-doc """
The usage of all nodes. `total` are sums; `seconds` is the time between the two readings of a node,
as the mean of all nodes.
""".
-type usage() :: #{
    seconds := float(),
    total := #{
        cpu_ms := non_neg_integer(),
        bytes := non_neg_integer(),
        messages := non_neg_integer(),
        packets := non_neg_integer() | undefined,
        memory_mib_mean := float(),
        memory_mib_max := float()
    },
    links_total := non_neg_integer(),
    links_per_node_max := non_neg_integer(),
    links_per_node_mean := float(),
    per_node := [node_usage()]
}.

-define(SNAPSHOT_MS, 60_000).

%% `struct tcp_info` of Linux, as far as it is needed: the count of segments sent is at 136.
-define(IPPROTO_TCP, 6).
-define(TCP_INFO, 11).
-define(TCP_INFO_SIZE, 144).
-define(SEGMENTS_OUT, 136).

-doc """
The result of `Fun`, and what the nodes used meanwhile. A node that did not answer before or after
it is not in the usage.
""".
-spec around(Fleet :: pid(), [node()], fun(() -> Result)) -> {Result, usage()}.
around(Fleet, Nodes, Fun) ->
    Before = snapshots(Fleet, Nodes),
    Result = Fun(),
    {Result, usage(Before, snapshots(Fleet, Nodes))}.

snapshots(Fleet, Nodes) ->
    [{Node, Snapshot}
     || {Node, {ok, Snapshot}} <- sderl_fleet:multicall(Fleet, Nodes, ?MODULE, snapshot, [],
                                                        ?SNAPSHOT_MS)].

-doc """
The traffic between two readings of all nodes, and the links at the second one: the metrics that
need no clock.
""".
-spec sent([{node(), snapshot()}], [{node(), snapshot()}]) -> #{atom() => number() | undefined}.
sent(Before, After) ->
    maps:with(
        [links_total, links_per_node_max, links_per_node_mean, bytes, messages, packets],
        metrics(usage(Before, After), 0)
    ).

-doc "Runs on a node: its counters.".
-spec snapshot() -> snapshot().
snapshot() ->
    {CpuMs, _} = erlang:statistics(runtime),
    {Resident, Peak} = memory_kib(),
    #{
        at_us => erlang:monotonic_time(microsecond),
        cpu_ms => CpuMs,
        memory_kib => Resident,
        memory_peak_kib => Peak,
        sent => #{Node => sent(Controller) || {Node, Controller} <- erlang:system_info(dist_ctrl)}
    }.

sent(Port) when is_port(Port) ->
    case inet:getstat(Port, [send_oct, send_cnt]) of
        {ok, Values} ->
            #{send_oct := Bytes, send_cnt := Messages} = maps:from_list(Values),
            {Port, Bytes, Messages, segments(Port)};
        %% The connection went down since it was listed.
        {error, _} ->
            {Port, 0, 0, undefined}
    end;
%% A distribution over something other than a TCP port has no socket to ask.
sent(Process) ->
    {Process, 0, 0, undefined}.

segments(Port) ->
    case os:type() of
        {unix, linux} ->
            case inet:getopts(Port, [{raw, ?IPPROTO_TCP, ?TCP_INFO, ?TCP_INFO_SIZE}]) of
                {ok, [{raw, _, _, <<_:?SEGMENTS_OUT/binary, Segments:32/native, _/binary>>}]} ->
                    Segments;
                _ -> undefined
            end;
        _ ->
            undefined
    end.

%% Resident now and at most so far. Where the system does not tell, what the emulator has allocated.
memory_kib() ->
    case sderl_bench_proc:memory_kib("self") of
        undefined ->
            Allocated = erlang:memory(total) div 1024,
            {Allocated, Allocated};
        Resident ->
            Resident
    end.

-doc "Pure: from the snapshots of nodes before and after.".
-spec usage([{node(), snapshot()}], [{node(), snapshot()}]) -> usage().
usage(Before, After) ->
    Both = [{Node, B, A} || {Node, A} <- After, {N, B} <- Before, N =:= Node],
    PerNode = [node_usage(Node, B, A) || {Node, B, A} <- Both],
    Links = [maps:get(links, U) || U <- PerNode],
    Sum = fun(Key) -> lists:sum([maps:get(Key, U) || U <- PerNode]) end,
    #{
        seconds => mean([(To - From) / 1_000_000 || {_, #{at_us := From}, #{at_us := To}} <- Both]),
        total => #{
            cpu_ms => Sum(cpu_ms),
            bytes => Sum(bytes),
            messages => Sum(messages),
            packets => add([maps:get(packets, U) || U <- PerNode]),
            memory_mib_mean => mean([maps:get(memory_mib, U) || U <- PerNode]),
            memory_mib_max => lists:max([0.0 | [Kib / 1024
                                                || {_, _, #{memory_peak_kib := Kib}} <- Both]])
        },
        links_total => lists:sum(Links) div 2,
        links_per_node_max => lists:max([0 | Links]),
        links_per_node_mean => mean(Links),
        per_node => PerNode
    }.

node_usage(Node, #{cpu_ms := Cpu0, sent := Sent0},
           #{cpu_ms := Cpu1, sent := Sent1, memory_kib := Kib}) ->
    Grown = [grown(Link, maps:get(Peer, Sent0, none)) || Peer := Link <- Sent1],
    #{
        node => Node,
        links => map_size(Sent1),
        cpu_ms => Cpu1 - Cpu0,
        bytes => lists:sum([B || {B, _, _} <- Grown]),
        messages => lists:sum([M || {_, M, _} <- Grown]),
        packets => add([P || {_, _, P} <- Grown]),
        memory_mib => Kib / 1024
    }.

%% A new connection counts from 0. (What was sent over one that is gone is not known.)
grown({Connection, B1, M1, P1}, {Connection, B0, M0, P0}) ->
    {B1 - B0, M1 - M0, if is_integer(P1), is_integer(P0) -> P1 - P0; true -> undefined end};
grown({_, Bytes, Messages, Packets}, _) ->
    {Bytes, Messages, Packets}.

%% The sum, `undefined` if one of the values is.
add(Values) ->
    case lists:member(undefined, Values) of
        true -> undefined;
        false -> lists:sum(Values)
    end.

-doc "The mean of numbers; 0 for none.".
-spec mean([number()]) -> float().
mean([]) -> 0.0;
mean(Values) -> lists:sum(Values) / length(Values).

-doc "The nodes that are missing in the usage: its sums are too small if there are any.".
-spec missing([node()], usage()) -> [node()].
missing(Nodes, #{per_node := PerNode}) -> Nodes -- [Node || #{node := Node} <- PerNode].

-doc "The metrics of the table above, for `Ops` operations.".
-spec metrics(usage(), Ops :: non_neg_integer()) -> #{atom() => term()}.
metrics(#{total := Total, seconds := Seconds, per_node := PerNode} = Usage, Ops) ->
    #{cpu_ms := CpuMs, bytes := Bytes, messages := Messages, packets := Packets,
      memory_mib_mean := Memory, memory_mib_max := Most} = Total,
    #{cores := Cores} = sderl_bench_machine:info(),
    (maps:with([links_per_node_max, links_per_node_mean, links_total], Usage))#{
        cpu_pct => ratio(CpuMs / 10, Seconds * Cores),
        cpu_us_per_op => ratio(CpuMs * 1000, Ops),
        bytes => Bytes,
        messages => Messages,
        packets => Packets,
        bytes_per_op => ratio(Bytes, Ops),
        messages_per_op => ratio(Messages, Ops),
        packets_per_op => ratio(Packets, Ops),
        memory_mib_per_node => Memory,
        memory_mib_max => Most,
        nodes_metered => length(PerNode),
        per_node => PerNode
    }.

ratio(A, B) when is_number(A), B > 0 -> A / B;
ratio(_, _) -> undefined.
