%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_metrics).
-moduledoc """
The metrics that rules may name, with their kind of place, unit and range: built-in ones, some of
them numbers of nodes (`m:sderl_mon_catalogue`), and those of the application that the configuration
in force names (`m:sderl_mon_app_metrics`).

By the range a rule is refused whose threshold is never, or always, passed.
""".

-export([all/0, find/1, names/0]).
-export_type([metric/0, key/0, place_kind/0]).

-doc "The kind of place that a metric is measured of.".
-type place_kind() :: node | group | family.

-doc """
For a metric of the application its name, or that of one of its series, and how several series of a
node are put together.
""".
-type key() :: atom() | {sderl_mon_app_metrics:series(), sderl_mon_app_metrics:total()}.

-doc "`low` and `high` are the least and the greatest possible value.".
-type metric() :: #{
    name := binary(),
    key := key(),
    'of' := place_kind(),
    unit := binary(),
    low := number(),
    high := number() | infinity,
    about := binary()
}.

%% Less than any threshold.
-define(LEAST, -1.0e16).

-doc "All metrics, those of nodes first.".
-spec all() -> [metric()].
all() ->
    built_in() ++
        [shown(Metric) || #{kind := Kind} = Metric <- sderl_mon_metrics:all(),
                                   Kind =/= number].

built_in() ->
    [metric(node, Row) || Row <- of_nodes() ++ [number(Name) || Name <- numbers()]] ++
        [metric(group, Row) || Row <- of_groups()] ++
        [metric(family, Row) || Row <- of_families()].

metric(Of, {Key, Unit, High, About}) ->
    #{name => atom_to_binary(Key), key => Key, 'of' => Of, unit => Unit, low => 0, high => High,
      about => About}.

shown(#{kind := Kind, key := Series, total := Total} = Metric) ->
    (maps:with([name, unit, about], Metric))#{
        key => {Series, Total}, 'of' => node, high => infinity,
        low => case Kind of counter -> 0; _ -> ?LEAST end
    }.

-doc """
The metric of a name. A series of a metric of the application is named `orders{status="failed"}`.
""".
-spec find(binary()) -> {ok, metric()} | error.
find(Name) ->
    try binary_to_existing_atom(Name) of
        Key -> find(Key, Name)
    catch
        error:_ -> of_application(Name)
    end.

%% Makes only the metric that was found: each check of a rule calls this.
find(Key, Name) ->
    Rows = [{Of, Row} || {Of, All} <- [{node, of_nodes()}, {group, of_groups()},
                                       {family, of_families()}],
                         Row <- [lists:keyfind(Key, 1, All)], Row =/= false],
    case {Rows, lists:member(Key, numbers())} of
        {[{Of, Row} | _], false} -> {ok, metric(Of, Row)};
        {_, true} -> {ok, metric(node, number(Key))};
        {[], false} -> of_application(Name)
    end.

of_application(Name) ->
    case sderl_mon_metrics:find(Name) of
        {ok, #{kind := Kind} = Metric} when Kind =/= number -> {ok, shown(Metric)};
        _ -> error
    end.

-doc "The names of all metrics.".
-spec names() -> [binary()].
names() -> [Name || #{name := Name} <- all()].

of_nodes() ->
    [
        {down, ~"", 1, ~"1 while the node is down or does not answer, else 0"},
        {process_share, ~"share", 1, ~"Processes, of their limit (+P)"},
        {port_share, ~"share", 1, ~"Ports, of their limit (+Q)"},
        {atom_share, ~"share", 1, ~"Atoms, of their limit (+t)"},
        {ets_share, ~"share", 1, ~"ETS tables, of their limit (+e)"},
        {file_share, ~"share", 1, ~"Open files and sockets, of the limit of the system's process"},
        {module_share, ~"share", 1, ~"Modules that are loaded, of the most that there may be"},
        {disk_share, ~"share", 1, ~"The fullest of the file systems that the node works in"},
        {mem_share, ~"share", 1,
         ~"Memory that the run-time system has allocated, of the machine's"},
        {host_mem_share, ~"share", 1, ~"Memory of the machine that is not available, of all"},
        {old_code, ~"modules", infinity, ~"Modules of which two versions are loaded"},
        {shell_bytes, ~"B", infinity,
         ~"Memory of the shell that keeps most: what was typed there, and its results"},
        {clock_diff_s, ~"s", infinity, ~"The node's clock against that of the monitoring node"}
    ].

%% Numbers of nodes, as the monitoring has them.
numbers() ->
    [mem, host_cpu, util, run_queue, mq_max, procs, ports, atoms, ets, names, cpu_pct, gc_s,
     in_msgs_s, out_msgs_s, in_bytes_s, out_bytes_s, undelivered_s, failed_regs_s].

number(Name) ->
    {ok, #{unit := Unit, about := About}} = sderl_mon_catalogue:find(Name),
    {Name, Unit, case Unit of ~"share" -> 1; _ -> infinity end, About}.

of_groups() ->
    [
        {members_down, ~"nodes", infinity, ~"Members that are down or do not answer"},
        {live_share, ~"share", 1, ~"Members that are up, of all"},
        {group_names, ~"names", infinity, ~"Names registered in the group"},
        {group_regs_s, ~"registrations/s", infinity, ~"Registrations in the group"},
        {otp_versions, ~"versions", infinity, ~"Different releases of OTP on the members"},
        {app_versions, ~"applications", infinity,
         ~"Applications of which members have different versions"},
        {utc_offsets, ~"time zones", infinity, ~"Different time zones of the members"}
    ].

of_families() ->
    [
        {family_app_versions, ~"applications", infinity,
         ~"Applications of which nodes of the family have different versions"},
        {family_utc_offsets, ~"time zones", infinity,
         ~"Different time zones of the nodes of the family"}
    ].
