%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_prometheus).
-moduledoc """
The latest frame in Prometheus' text format, version 0.0.4. Pure.

Names and labels are stable. All are gauges: rates come as they were measured, over the frame's
span, which `sderl_frame_span_seconds` gives. What is not known has no sample. Of links those with
most bytes are there, 5,000 at most; `sderl_links` counts all.

| name | labels | unit |
|---|---|---|
| `sderl_node_up` | node, status | 1 when up, else 0 |
| `sderl_node_run_queue`, `sderl_node_message_queue_max` | node | processes, messages |
| `sderl_node_scheduler_utilisation_ratio` | node | share of the normal schedulers' time |
| `sderl_node_processes`, `sderl_node_names` | node | |
| `sderl_node_memory_bytes` | node | bytes |
| `sderl_node_cpu_ratio` | node | share of one core |
| `sderl_node_probe_ratio` | node | the probe's share of the node's CPU |
| `sderl_node_received_bytes_per_second`, `..._sent_bytes_per_second` | node | |
| `sderl_node_received_messages_per_second`, `..._sent_messages_per_second` | node | |
| `sderl_node_reductions_per_second`, `..._collections_per_second`, `..._registrations_per_second` | node | |
| `sderl_link_messages_per_second`, `sderl_link_bytes_per_second` | from, to | |
| `sderl_kind_messages_per_second`, `sderl_kind_bytes_per_second` | kind | of this library's own traffic |
| `sderl_group_members`, `sderl_group_live_members`, `sderl_group_names` | group | |
| `sderl_group_registrations_per_second` | group | |
| `sderl_findings` | kind, severity | findings there are |
| `sderl_monitor_up`, `sderl_monitor_master`, `sderl_monitor_agents` | node | of monitoring nodes |
| `sderl_frame_lost` | reason | what the frame lacks |
| `sderl_links`, `sderl_nodes`, `sderl_groups` | | how many there are |
| `sderl_frame_span_seconds`, `sderl_frame_time_seconds`, `sderl_topology_epoch` | | |
""".

-export([text/3]).

-define(LINKS, 5_000).

-doc "The page. Before the first frame it has the topology alone.".
-spec text(sderl_mon_types:topology(), sderl_mon_types:frame() | none,
           [sderl_mon_types:finding()]) -> iodata().
text(Topology, Frame, Findings) ->
    [family(Family) || Family <- topology(Topology) ++ findings(Findings) ++ frame(Frame)].

family({_Name, _Help, []}) -> [];
family({Name, Help, Samples}) ->
    [
        ["# HELP ", Name, $\s, Help, $\n, "# TYPE ", Name, " gauge\n"]
        | [[Name, labels(Labels), $\s, number(Value), $\n] || {Labels, Value} <- Samples]
    ].

labels([]) -> [];
labels(Labels) ->
    [${, lists:join($,, [[Key, "=\"", escape(Value), $"] || {Key, Value} <- Labels]), $}].

%% Backslash, quote and line end, as the format says.
escape(Text) when is_atom(Text) -> escape(atom_to_binary(Text));
escape(Text) ->
    lists:foldl(
        fun({From, To}, Acc) -> binary:replace(Acc, From, To, [global]) end,
        sderl_mon_visible:text(Text),
        [{<<"\\">>, <<"\\\\">>}, {<<"\"">>, <<"\\\"">>}, {<<"\n">>, <<"\\n">>}]
    ).

number(N) when is_integer(N) -> integer_to_binary(N);
number(N) -> float_to_binary(N, [short]).

topology(#{epoch := Epoch, nodes := Nodes, groups := Groups, monitors := Monitors}) ->
    ById = lists:sort(maps:to_list(Groups)),
    [
        {"sderl_node_up", "Whether a monitored node is up", [
            {[{"node", Id}, {"status", Status}], flag(Status =:= up)}
         || {Id, #{status := Status}} <- lists:sort(maps:to_list(Nodes))
        ]},
        {"sderl_nodes", "Monitored nodes", [{[], map_size(Nodes)}]},
        {"sderl_groups", "Groups", [{[], map_size(Groups)}]},
        {"sderl_group_members", "Members of a group",
         [{[{"group", Id}], length(In)} || {Id, #{nodes := In}} <- ById]},
        {"sderl_group_live_members", "Members that count for answers", [
            {[{"group", Id}], length(Live)}
         || {Id, #{live := Live}} <- ById
        ]},
        {"sderl_group_names", "Names registered in a group", [
            {[{"group", Id}], Names}
         || {Id, #{names := Names, nodes := In}} <- ById,
            lists:any(fun(Node) -> sderl_mon_types:is_probed(Node, Nodes) end, In)
        ]},
        {"sderl_monitor_up", "Whether a monitoring node is up",
         of_monitors(Monitors, fun(#{status := S}) -> flag(S =:= up) end)},
        {"sderl_monitor_master", "Whether a monitoring node is the master",
         of_monitors(Monitors, fun(#{master := M}) -> flag(M) end)},
        {"sderl_monitor_agents", "Agents of a monitoring node",
         of_monitors(Monitors, fun(#{agents := N}) -> N end)},
        {"sderl_topology_epoch", "Grows with each change of nodes and groups", [{[], Epoch}]}
    ].

of_monitors(Monitors, Value) -> [{[{"node", Id}], Value(M)} || #{node := Id} = M <- Monitors].

flag(true) -> 1;
flag(false) -> 0.

findings(Findings) ->
    Counted = lists:foldl(
        fun(#{kind := Kind, severity := Severity}, Acc) ->
            maps:update_with({Kind, Severity}, fun(N) -> N + 1 end, 1, Acc)
        end,
        #{},
        Findings
    ),
    [
        {"sderl_findings", "Findings there are, by kind and severity", [
            {[{"kind", Kind}, {"severity", Severity}], N}
         || {{Kind, Severity}, N} <- lists:sort(maps:to_list(Counted))
        ]}
    ].

frame(none) ->
    [];
frame(#{t := T, span_ms := Span, nodes := Nodes, links := Links, kinds := Kinds, groups := Groups,
        lost := Lost}) ->
    Shown = shown(Links),
    ByKind = lists:sort(maps:to_list(Kinds)),
    [
        {Name, Help, [
            {[{"node", Id}], Value / Scale}
         || {Id, #{Metric := Value}} <- lists:sort(maps:to_list(Nodes))
        ]}
     || {Metric, Name, Scale, Help} <- metrics()
    ] ++
        [
            {"sderl_link_messages_per_second", "Messages from a node to another", [
                {[{"from", From}, {"to", To}], M}
             || {{From, To}, {M, _B}} <- Shown
            ]},
            {"sderl_link_bytes_per_second", "Bytes from a node to another", [
                {[{"from", From}, {"to", To}], B}
             || {{From, To}, {_M, B}} <- Shown
            ]},
            {"sderl_links", "Links with traffic", [{[], map_size(Links)}]},
            {"sderl_kind_messages_per_second", "The library's own messages by kind",
             [{[{"kind", K}], M} || {K, {M, _B}} <- ByKind]},
            {"sderl_kind_bytes_per_second", "The library's own bytes by kind",
             [{[{"kind", K}], B} || {K, {_M, B}} <- ByKind]},
            {"sderl_group_registrations_per_second", "Registrations in a group", [
                {[{"group", Id}], Rate}
             || {Id, #{regs_s := Rate}} <- lists:sort(maps:to_list(Groups))
            ]},
            {"sderl_frame_lost", "What the last frame lacks, by reason",
             [{[{"reason", R}], N} || {R, N} <- lists:sort(maps:to_list(Lost))]},
            {"sderl_frame_span_seconds", "Over how long the rates are", [{[], Span / 1000}]},
            {"sderl_frame_time_seconds", "When the last frame ended, Unix time", [{[], T / 1000}]}
        ].

shown(Links) when map_size(Links) =< ?LINKS -> lists:sort(maps:to_list(Links));
shown(Links) ->
    ByBytes = lists:sort([{-B, Link, Flow} || Link := {_M, B} = Flow <- Links]),
    lists:sort([{Link, Flow} || {_B, Link, Flow} <- lists:sublist(ByBytes, ?LINKS)]).

metrics() ->
    [
        {run_queue, "sderl_node_run_queue", 1,
         "Processes that wait for a scheduler, the most in the frame"},
        {util, "sderl_node_scheduler_utilisation_ratio", 1,
         "Share of the time in which normal schedulers work"},
        {procs, "sderl_node_processes", 1, "Processes"},
        {mem, "sderl_node_memory_bytes", 1, "Memory that the run-time system has allocated"},
        {mq_max, "sderl_node_message_queue_max", 1, "Messages in the longest queue"},
        {cpu_pct, "sderl_node_cpu_ratio", 100, "CPU time in cores"},
        {probe_pct, "sderl_node_probe_ratio", 100, "Share of the probe in the node's CPU time"},
        {in_bytes_s, "sderl_node_received_bytes_per_second", 1, "Bytes from other nodes"},
        {out_bytes_s, "sderl_node_sent_bytes_per_second", 1, "Bytes to other nodes"},
        {in_msgs_s, "sderl_node_received_messages_per_second", 1, "Messages from other nodes"},
        {out_msgs_s, "sderl_node_sent_messages_per_second", 1, "Messages to other nodes"},
        {reds_s, "sderl_node_reductions_per_second", 1, "Reductions"},
        {gc_s, "sderl_node_collections_per_second", 1, "Garbage collections"},
        {regs_s, "sderl_node_registrations_per_second", 1, "Names registered"},
        {names, "sderl_node_names", 1, "Names in the groups of the node"}
    ].
