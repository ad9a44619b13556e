%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench).
-moduledoc """
DE-Bench: the effect of global operations on a cluster whose nodes call one another.

Every node makes operations of its own (`m:sderl_debench_node`), a weighted mix
(`m:sderl_debench_mix`) of point-to-point operations, of registrations of names that all nodes of
the cluster or the group know, and of local names. Nothing coordinates the nodes. The original
measures throughput over nodes, with a machine for each node. On one machine the processor limits
throughput, so it shows nothing about the cluster; latency, errors, messages and processor time for
each operation do, under a load that stays the same for each node.

| mode | links | global names |
|---|---|---|
| `stock` | all nodes of a cluster meshed | `m:global` |
| `pg` | all nodes of a cluster meshed | `m:pg`: a registration is a join of a fresh process group; it returns before other nodes know of it, and names are not unique |
| `sd` | s_groups of `group_size` nodes, a mesh each | `m:s_group`, unique in the group |

With `clusters` there are several clusters of `nodes` nodes at the same time, which know nothing of
each other. So a machine can have the same number of nodes and the same load with small clusters as
with one large one, and what differs is the size of the cluster alone.

| metric | meaning |
|---|---|
| `kinds` | for each kind of operation: `ops`, `ops_per_s`, `latency_us`, `service_us`, `errors` |
| `p2p`, `global`, `local` | the same for each class; `global` are registrations and unregistrations together, without the look-ups |
| `ops` | successful operations that were due in the measured time, whenever they ended |
| `ops_per_s` | successful operations that ended in the measured time, in a second, of all nodes |
| `latency_us` | `p50`, `p95`, `p99` of successful operations, within 1.6 %: under open load from the time an operation was due (so a late one counts as long, which corrects coordinated omission), under closed load from its begin. A look-up or an unregistration is due when that before it has ended |
| `service_us` | the same from the time it began: without what the node was late |
| `late_us` | how much later than it was due a node's generator began a unit of the mix, under open load, the warm-up included: what timers and a busy machine add to `latency_us` before the unit has its process |
| `errors`, `error_reasons` | operations that failed: `timeout`, `overload` (too many on their way), or the reason; the most frequent reasons |
| `offered_per_s`, `completed_pct` | operations that were due in the measured time, in a second; how many of them succeeded |
| `global_done_pct` | how many of the registrations and unregistrations succeeded, of two for each registration that was due: what is not registered is not unregistered either |
| `timeline` | for each second `t_s`, by when operations were due, `ops`, `p50_us`, `p95_us` and `errors` of each class, and of each kind in `kinds` |
| `per_node` | of each node what `m:sderl_bench_meter` has, and its own `ops_per_s`, `errors` and, of `p2p` and `global`, `latency_us` |
| `names_left` | names of which some node knows when all is over: 0, else something was not removed |
| others | as in `m:sderl_bench_meter`, of all nodes, in the measured time; `..._per_op` for each operation that ended |

Source: DE-Bench of the RELEASE project; Chechina et al., *Improving the network scalability of
Erlang*, JPDC 2016.
""".

-export([run/2, defaults/0, modes/0]).
-export_type([params/0, mode/0, metrics/0]).

-type mode() :: stock | pg | sd.

-doc """
`nodes` is the number in one cluster, at least 2. Missing keys have the values of `defaults/0`; a
missing `group_size`, for `sd`, is that of the cluster, and a given one divides it.

`p2p`: in `sd`, point-to-point operations go to nodes of the own group, which are linked anyway, or
to `any` of the cluster, which makes links (the original's `transitive_connection`). `payload` in
bytes is the block that goes there and back, `compute_us` what the other node computes for it.
`warmup_s` is not counted. `pace` as in `m:sderl_bench_pace`, `in_flight` as in
`t:sderl_debench_node:load/0`.
""".
-type params() :: #{
    mode := mode(),
    nodes := pos_integer(),
    clusters => pos_integer(),
    group_size => pos_integer(),
    global_pct => number(),
    weights => sderl_debench_mix:weights(),
    load => sderl_debench_node:rate(),
    pace => poisson | even,
    seconds => pos_integer(),
    warmup_s => number(),
    payload => non_neg_integer(),
    compute_us => non_neg_integer(),
    p2p => group | any,
    timeout_ms => pos_integer(),
    in_flight => pos_integer(),
    seed => integer(),
    atom() => term()
}.

-doc "See the table above.".
-type metrics() :: #{atom() => term()}.

%% From the call that starts the load until the nodes begin: all must have got it by then.
-define(LEAD_MS, 1000).
-define(LEAD_MS_PER_NODE, 10).
-define(PREPARE_MS, 60_000).
%% After the last operation's time is over.
-define(SLACK_MS, 60_000).
%% How long names of killed processes may take to be gone everywhere.
-define(NAMES_MS, 5000).

-doc """
The default load: 20 operations a second on each node, 1 % of them global.
""".
-spec defaults() -> #{atom() => term()}.
defaults() ->
    #{
        clusters => 1,
        global_pct => 1.0,
        weights => sderl_debench_mix:weights(),
        load => {open, 20.0},
        pace => poisson,
        seconds => 10,
        warmup_s => 2,
        payload => 10,
        compute_us => 1,
        p2p => group,
        timeout_ms => 10_000,
        in_flight => 1000,
        seed => 1
    }.

-doc "All modes.".
-spec modes() -> [mode()].
modes() -> [stock, pg, sd].

impl(stock) -> sderl_bench_impl_global;
impl(pg) -> sderl_bench_impl_pg;
impl(sd) -> sderl_bench_impl_s_group.

-doc """
Starts the nodes, measures, ends them. `Label` stands before the progress bar. A reason is a term
for `sderl_bench_reason:text/1`.
""".
-spec run(params(), Label :: unicode:chardata()) -> {ok, metrics()} | {error, term()}.
run(#{mode := Mode, nodes := Count} = Given, Label) ->
    #{clusters := Clusters} = Params = maps:merge((defaults())#{group_size => Count}, Given),
    Total = Clusters * Count,
    Impl = impl(Mode),
    Plan = #{groups := Groups} = Impl:plan(Params#{nodes := Total}),
    maybe
        ok ?= sderl_fleet:fits(Total),
        {ok, Fleet} ?= sderl_fleet:start(sderl_bench_impl:fleet_plan(Plan, Total, Label)),
        try
            Nodes = sderl_fleet:nodes(Fleet),
            measure(Fleet, Impl, chunks(Count, Nodes), namespaces(Mode, Groups, Nodes, Count),
                    Params, Label)
        after
            sderl_fleet:stop(Fleet)
        end
    end.

%% For a registry, all nodes are those of one cluster.
namespaces(sd, Groups, Nodes, _) -> [sderl_bench_layout:named(Groups, Nodes)];
namespaces(_, [{All, _}], Nodes, Count) -> [[{All, Chunk}] || Chunk <- chunks(Count, Nodes)].

chunks(_, []) -> [];
chunks(Count, Nodes) ->
    {Chunk, Rest} = lists:split(Count, Nodes),
    [Chunk | chunks(Count, Rest)].

measure(Fleet, Impl, Clusters, Parts, #{seconds := Seconds} = Params, Label) ->
    Nodes = lists:append(Clusters),
    Namespaces = lists:append(Parts),
    maybe
        ok ?= prepare(Fleet, Impl, Parts, Params),
        ok ?= every(not_prepared, ok, sderl_fleet:multicall(Fleet, Nodes, sderl_debench_node,
                                                            prepare, [Impl], ?PREPARE_MS)),
        Loads = loads(Clusters, Namespaces, Params),
        {ok, Tallies, Usage} ?= load(Fleet, Impl, Nodes, Loads, Params, Label),
        Tally = sderl_debench_tally:merge(Tallies),
        Own = #{Node => own(sderl_debench_tally:metrics(T, Seconds))
                || {{Node, _}, T} <- lists:zip(Loads, Tallies)},
        Metrics = #{ops_per_s := PerS} = sderl_debench_tally:metrics(Tally, Seconds),
        #{seconds := Metered} = Usage,
        Left = names_left(Fleet, Impl, Namespaces),
        #{per_node := PerNode} = Used = sderl_bench_meter:metrics(Usage, round(PerS * Metered)),
        {ok, maps:merge(Used, Metrics#{
            names_left => Left,
            per_node => [maps:merge(Of, maps:get(Node, Own, #{}))
                         || #{node := Node} = Of <- PerNode]
        })}
    end.

own(#{ops_per_s := PerS, errors := Errors, p2p := #{latency_us := P2p},
      global := #{latency_us := Global}}) ->
    #{ops_per_s => PerS, errors => Errors, latency_us => #{p2p => P2p, global => Global}}.

prepare(Fleet, Impl, Parts, Params) ->
    Outcomes = sderl_fleet_task:at_once(lists:enumerate(Parts),
                                        fun(_, Part) -> Impl:prepare(Fleet, Part, Params) end),
    case [Reason || {_, {error, Reason}} <- Outcomes] of
        [] -> ok;
        [Reason | _] -> {error, Reason}
    end.

every(What, Wanted, Answers) ->
    case [{Node, Answer} || {Node, Answer} <- Answers, Answer =/= {ok, Wanted}] of
        [] -> ok;
        [{Node, Answer} | _] -> {error, {What, Node, Answer}}
    end.

%% The settings that differ from node to node.
loads(Clusters, Namespaces, #{p2p := P2p}) ->
    Places = [{Node, Group, Members} || {Group, Members} <- Namespaces, Node <- Members],
    [
        {Node, #{index => Index, group => Group,
                 targets => lists:delete(Node, targets(P2p, Cluster, Members))}}
     || {Index, {Node, Cluster}} <- lists:enumerate([{Node, Cluster}
                                                     || Cluster <- Clusters, Node <- Cluster]),
        {N, Group, Members} <- Places,
        N =:= Node
    ].

targets(any, Cluster, _) -> Cluster;
targets(group, _, Members) -> Members.

load(Fleet, Impl, Nodes, Loads,
     #{seconds := Seconds, warmup_s := WarmupS, timeout_ms := TimeoutMs} = Params, Label) ->
    LeadMs = ?LEAD_MS + ?LEAD_MS_PER_NODE * length(Nodes),
    WarmupMs = round(1000 * WarmupS),
    Now = erlang:monotonic_time(millisecond),
    From = Now + LeadMs + WarmupMs,
    Until = From + 1000 * Seconds,
    Common = maps:merge(
        maps:with([global_pct, weights, load, pace, payload, compute_us, timeout_ms, in_flight,
                   seed], Params),
        #{
            impl => Impl,
            begin_us => os:system_time(microsecond) + 1000 * LeadMs,
            warmup_ms => WarmupMs,
            measure_ms => 1000 * Seconds
        }
    ),
    sderl_progress:during([Label, ": measuring"], Until - Now, fun() ->
        Running = [
            {Node, sderl_fleet_task:start(fun() ->
                sderl_fleet:multicall(
                    Fleet, [Node], sderl_debench_node, load, [maps:merge(Common, Own)],
                    Until - Now + TimeoutMs + ?SLACK_MS
                )
            end)}
         || {Node, Own} <- Loads
        ],
        ok = sleep_until(From),
        {ok, Usage} = sderl_bench_meter:around(Fleet, Nodes, fun() -> sleep_until(Until) end),
        tallies([{Node, sderl_fleet_task:result(Task, infinity)} || {Node, Task} <- Running], Usage)
    end).

tallies(Answers, Usage) ->
    case [{Node, Answer} || {Node, Answer} <- Answers, not is_tally(Answer)] of
        [] -> {ok, [Tally || {_, {ok, [{_, {ok, {ok, Tally}}}]}} <- Answers], Usage};
        [{Node, {ok, [{_, {ok, {error, Reason}}}]}} | _] -> {error, {not_loaded, Node, Reason}};
        [{Node, {ok, [{_, Answer}]}} | _] -> {error, {not_loaded, Node, Answer}};
        [{Node, Answer} | _] -> {error, {not_loaded, Node, Answer}}
    end.

is_tally({ok, [{_, {ok, {ok, _}}}]}) -> true;
is_tally(_) -> false.

sleep_until(At) ->
    receive
    after max(0, At - erlang:monotonic_time(millisecond)) -> ok
    end.

%% Names of processes that were killed go a little later than these.
names_left(Fleet, Impl, Namespaces) ->
    Known = fun() ->
        Counts = [
            Answer
         || {Group, Members} <- Namespaces,
            {_, {ok, Answer}} <- sderl_fleet:multicall(Fleet, Members, sderl_debench_node, names,
                                                       [Impl, Group], ?PREPARE_MS)
        ],
        lists:max([0 | Counts])
    end,
    case sderl_fleet:await(fun() -> none(Known()) end, ?NAMES_MS) of
        ok -> 0;
        {error, {timeout, {left, Count}}} -> Count;
        {error, _} -> undefined
    end.

none(0) -> true;
none(Count) -> {left, Count}.
