%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_catalogue).
-moduledoc """
All numbers that the monitoring has itself, with their units: those of nodes, and the families that
`m:sderl_mon_prometheus` offers. Pure data, from which the tables of the documents, the units on the
pages and the lines HELP and TYPE come.
""".

-export([of_nodes/0, find/1, unit/1, families/0]).
-export_type([metric/0, family/0]).

-doc """
A number of a node: how it is shown to people, how those of several nodes are put together, and
under which name Prometheus gets it, divided by `scale`. `for` are tags by which views choose, as
those of alarms: `dev` for those who write the application, `op` for those who run it.
""".
-type metric() :: #{
    name := atom(),
    unit := binary(),
    total := sderl_mon_app_metrics:total(),
    prometheus := none | {Name :: binary(), Scale :: pos_integer()},
    about := binary(),
    for := [binary()]
}.

-doc "A family of samples for Prometheus: its labels, its unit (empty for a plain number).".
-type family() :: #{
    name := binary(), labels := [binary()], unit := binary(), about := binary()
}.

-doc "The numbers of nodes.".
-spec of_nodes() -> [metric(), ...].
of_nodes() -> [metric(Row) || Row <- rows()].

rows() -> load() ++ memory() ++ traffic() ++ host().

metric({Name, Unit, Total, Prometheus, About}) ->
    #{name => Name, unit => Unit, total => Total, about => About, for => for(Name),
      prometheus => case Prometheus of
          none -> none;
          {Short, Scale} -> {<<"sderl_node_", Short/binary>>, Scale};
          Short -> {<<"sderl_node_", Short/binary>>, 1}
      end}.

%% `dev`: what the application does; `op`: what its machine and the network do; or both.
for(Name) ->
    case {lists:member(Name, for_dev()), lists:member(Name, for_op())} of
        {true, _} -> [~"dev"];
        {_, true} -> [~"op"];
        _ -> [~"dev", ~"op"]
    end.

for_dev() -> [reds_s, gc_s, ets, mem_processes, mem_binary, mem_ets, regs_s, unregs_s].

for_op() ->
    [cpu_pct, probe_pct, in_bytes_s, out_bytes_s, mon_bytes_s, mon_msgs_s, forwarded_s, host_cpu,
     host_mem, host_mem_total].

load() ->
    [
        {run_queue, ~"processes", sum, ~"run_queue",
         ~"Processes that wait for a scheduler, the most in the frame"},
        {util, ~"share", mean, ~"scheduler_utilisation_ratio",
         ~"Share of the time in which normal schedulers work"},
        {cpu_pct, ~"% of a core", sum, {~"cpu_ratio", 100}, ~"Processor time of the node"},
        {probe_pct, ~"% of the node's processor time", mean, {~"probe_ratio", 100},
         ~"Share of the probe in the node's processor time"},
        {reds_s, ~"reductions/s", sum, ~"reductions_per_second", ~"Reductions"},
        {gc_s, ~"collections/s", sum, ~"collections_per_second", ~"Garbage collections"},
        {procs, ~"processes", sum, ~"processes", ~"Processes"},
        {ports, ~"ports", sum, ~"ports", ~"Ports"},
        {atoms, ~"atoms", sum, ~"atoms", ~"Atoms"},
        {ets, ~"tables", sum, ~"ets_tables", ~"ETS tables"},
        {mq_max, ~"messages", max, ~"message_queue_max",
         ~"Messages in the longest queue of a process"}
    ].

memory() ->
    [
        {mem, ~"B", sum, ~"memory_bytes", ~"Memory that the run-time system has allocated"},
        {mem_processes, ~"B", sum, none, ~"Memory of processes"},
        {mem_binary, ~"B", sum, none, ~"Memory of binaries"},
        {mem_ets, ~"B", sum, none, ~"Memory of ETS tables"}
    ].

traffic() ->
    [
        {in_bytes_s, ~"B/s", sum, ~"received_bytes_per_second", ~"Bytes from other nodes"},
        {out_bytes_s, ~"B/s", sum, ~"sent_bytes_per_second", ~"Bytes to other nodes"},
        {in_msgs_s, ~"msg/s", sum, ~"received_messages_per_second", ~"Messages from other nodes"},
        {out_msgs_s, ~"msg/s", sum, ~"sent_messages_per_second", ~"Messages to other nodes"},
        {mon_bytes_s, ~"B/s", sum, none, ~"Bytes exchanged with monitoring nodes"},
        {mon_msgs_s, ~"msg/s", sum, none, ~"Messages exchanged with monitoring nodes"},
        {forwarded_s, ~"msg/s", sum, ~"forwarded_messages_per_second",
         ~"Routed messages that the node passed on"},
        {delivered_s, ~"msg/s", sum, ~"delivered_messages_per_second",
         ~"Routed messages that reached their receiver here"},
        {undelivered_s, ~"msg/s", sum, ~"undelivered_messages_per_second",
         ~"Routed messages that could not be delivered"},
        {names, ~"names", max, ~"names", ~"Names in the groups of the node"},
        {regs_s, ~"registrations/s", sum, ~"registrations_per_second", ~"Names registered"},
        {unregs_s, ~"registrations/s", sum, none, ~"Names unregistered"},
        {failed_regs_s, ~"registrations/s", sum, ~"failed_registrations_per_second",
         ~"Registrations that failed"}
    ].

%% Numbers of a machine: its nodes have the same ones, so they are not added up.
host() ->
    [
        {host_cpu, ~"share", mean, ~"host_cpu_ratio",
         ~"Share of the time in which the machine's processors work"},
        {host_mem, ~"B", mean, ~"host_memory_used_bytes",
         ~"Memory of the machine that is not available"},
        {host_mem_total, ~"B", mean, ~"host_memory_bytes", ~"Memory of the machine"}
    ].

-doc "The number of a node of that name.".
-spec find(atom() | binary()) -> {ok, metric()} | error.
find(Name) when is_atom(Name) ->
    case lists:keyfind(Name, 1, rows()) of
        false -> error;
        Row -> {ok, metric(Row)}
    end;
find(Name) ->
    try binary_to_existing_atom(Name) of
        Known -> find(Known)
    catch
        error:_ -> error
    end.

-doc "The unit of a number, as text for people; empty for a plain number.".
-spec unit(atom()) -> binary().
unit(Name) ->
    case find(Name) of
        {ok, #{unit := Unit}} -> Unit;
        error -> ~""
    end.

-doc "What Prometheus is offered, without the application's own metrics. All are gauges.".
-spec families() -> [family(), ...].
families() ->
    [#{name => Name, labels => [~"node"], unit => base_unit(Name), about => About}
     || #{prometheus := {Name, _}, about := About} <- of_nodes()] ++
        [#{name => Name, labels => Labels, unit => base_unit(Name), about => About}
         || {Name, Labels, About} <- others()].

%% The unit as Prometheus writes it; the name ends with it.
base_unit(Name) ->
    case lists:last(binary:split(Name, ~"_", [global])) of
        Unit when Unit =:= ~"bytes"; Unit =:= ~"seconds"; Unit =:= ~"ratio" -> Unit;
        _ -> ~""
    end.

others() ->
    [
        {~"sderl_node_up", [~"node", ~"status"], ~"Whether a monitored node is up"},
        {~"sderl_nodes", [], ~"Monitored nodes"},
        {~"sderl_groups", [], ~"Groups"},
        {~"sderl_group_members", [~"group"], ~"Members of a group"},
        {~"sderl_group_live_members", [~"group"], ~"Live members of a group"},
        {~"sderl_group_names", [~"group"], ~"Names registered in a group"},
        {~"sderl_group_registrations_per_second", [~"group"], ~"Registrations in a group"},
        {~"sderl_link_messages_per_second", [~"from", ~"to"], ~"Messages from a node to another"},
        {~"sderl_link_bytes_per_second", [~"from", ~"to"], ~"Bytes from a node to another"},
        {~"sderl_links", [], ~"Links with traffic"},
        {~"sderl_kind_messages_per_second", [~"kind"], ~"The library's own messages by kind"},
        {~"sderl_kind_bytes_per_second", [~"kind"], ~"The library's own bytes by kind"},
        {~"sderl_findings", [~"kind", ~"severity"], ~"Findings by kind and severity"},
        {~"sderl_monitor_up", [~"node"], ~"Whether a monitoring node is up"},
        {~"sderl_monitor_master", [~"node"], ~"Whether the master on a monitoring node leads"},
        {~"sderl_monitor_agents", [~"node"], ~"Agents of a monitoring node"},
        {~"sderl_topology_epoch", [], ~"Grows with each change of nodes and groups"},
        {~"sderl_frame_lost", [~"reason"], ~"What the last frame lacks, by reason"},
        {~"sderl_frame_span_seconds", [], ~"The time over which rates are means"},
        {~"sderl_frame_time_seconds", [], ~"When the last frame ended, Unix time"}
    ].
