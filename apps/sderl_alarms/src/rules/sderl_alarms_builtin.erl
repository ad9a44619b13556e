%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_builtin).
-moduledoc """
The built-in alarms: of measured values, and of findings of `m:sderl_mon_findings`. Pure.
""".

-export([rules/0, findings/0, finding/1]).
-export_type([finding/0]).

-doc """
A finding as an alarm: whether it is on by default, and its tags. Its cause and remedy are those of
the finding.
""".
-type finding() :: #{alarm := binary(), on := boolean(), tags := [binary()], about := binary()}.

-doc "The settings of each built-in alarm of a measured value.".
-spec rules() -> [sderl_alarms_rule:settings()].
rules() ->
    [
        rule(~"node_down", ~"down", #{
            major => 1, for_s => 10, tags => [~"op"],
            cause => ~"The node has ended, hangs, or cannot be reached.",
            remedy => <<"Start it, unless its name is taken on its machine (epmd -names): then it "
                      "runs, and hangs, was stopped or is cut off; let it go on, or end it. It "
                      "comes back into its groups by itself. A node that is gone for good is "
                      "removed on a member of each of its groups: "
                      "s_group:remove_nodes(Group, [Node]).">>
        }),
        share(~"processes", ~"process_share", [~"dev"],
              ~"Processes are started faster than they end.",
              <<"The node's page lists processes by what started them. Raise the limit with +P "
              "if they are meant to be so many.">>),
        share(~"ports", ~"port_share", [~"dev"],
              ~"Sockets, files or programs are opened and not closed.",
              <<"Look for sockets and files that are not closed: erlang:ports/0 lists all. Raise "
              "the limit with +Q if they are meant to be so many.">>),
        share(~"atoms", ~"atom_share", [~"dev"],
              ~"Atoms are made of what comes from outside; they are never freed.",
              <<"Look for list_to_atom/1 and binary_to_atom/1 of input. The node must be started "
              "anew before they run out: it ends then. +t raises the limit.">>),
        share(~"ets_tables", ~"ets_share", [~"dev"],
              ~"ETS tables are made and not deleted.",
              <<"Look for who makes them: [ets:info(T, owner) || T <- ets:all()]. Raise the limit "
              "with +e if they are meant to be so many.">>),
        share(~"open_files", ~"file_share", [~"op"],
              ~"Files and sockets are opened and not closed, or the limit is low.",
              <<"See what they are: ls -l /proc/PID/fd. Raise the limit where the node is "
              "started: ulimit -n, or LimitNOFILE of systemd.">>),
        share(~"modules", ~"module_share", [~"dev"],
              ~"Modules are made at run time, each under a name of its own.",
              <<"Look for who compiles or loads them: erlang:loaded/0 lists all. The node ends "
              "when there are too many; code:delete/1 and code:purge/1 free one.">>),
        rule(~"disk", ~"disk_share", #{
            minor => 0.85, major => 0.95, hysteresis => 0.02, for_s => 60, tags => [~"op"],
            cause => ~"A file system that the node works in is nearly full.",
            remedy => <<"See what fills it: df -h, du -x --max-depth=2. Logs, crash dumps "
                      "(erl_crash.dump) and old releases can mostly go.">>
        }),
        rule(~"memory", ~"mem_share", #{
            minor => 0.6, major => 0.8, for_s => 60, tags => [~"dev", ~"op"],
            cause => ~"The node takes most of its machine's memory.",
            remedy => <<"The node's page tells the kind of memory and the largest processes. "
                      "Binaries that grow are often parts of large ones: binary:copy/1.">>
        }),
        rule(~"host_memory", ~"host_mem_share", #{
            minor => 0.9, major => 0.97, for_s => 60, tags => [~"op"],
            cause => ~"The machine of the node has hardly any memory left.",
            remedy => <<"See what takes it on that machine (ps, top): the system kills a program "
                      "when there is none left. Move work or nodes elsewhere.">>
        }),
        rule(~"host_cpu", ~"host_cpu", #{
            minor => 0.95, for_s => 300, tags => [~"op"],
            cause => ~"The processors of the node's machine are busy all the time.",
            remedy => <<"See what takes them (top). Place processes elsewhere, or start another "
                      "node for the group.">>
        }),
        rule(~"message_queue", ~"mq_max", #{
            minor => 10_000, major => 100_000, for_s => 15, tags => [~"dev"],
            cause => ~"A process gets more messages than it handles.",
            remedy => <<"The node's page names the process. See what it does: process_info(Pid, "
                      "current_stacktrace). Spread its work, or let senders wait for answers "
                      "(gen_server:call instead of cast).">>
        }),
        rule(~"old_code", ~"old_code", #{
            minor => 1, for_s => 3600, tags => [~"dev"],
            cause => <<"An upgrade has left old versions of modules loaded. The next one kills "
                     "processes that still run them.">>,
            remedy => <<"On the node: [code:soft_purge(M) || M <- erlang:loaded(), "
                      "erlang:check_old_code(M)]. Where that gives false, a process still runs "
                      "the old version.">>
        }),
        rule(~"shell_history", ~"shell_bytes", #{
            minor => 67_108_864, major => 1_073_741_824, for_s => 60, tags => [~"dev"],
            cause => ~"A shell on the node keeps large results of what was typed there.",
            remedy => <<"In that shell: results(0) forgets the results, results(20) keeps later "
                      "ones again, f() forgets the variables. Or leave it: it forgets all.">>
        }),
        rule(~"clock", ~"clock_diff_s", #{
            minor => 2, major => 60, for_s => 60, tags => [~"op"],
            cause => ~"The clock of the node and that of the monitoring node differ.",
            remedy => ~"Have both machines follow a time server (timedatectl, chronyc tracking)."
        }),
        rule(~"undelivered", ~"undelivered_s", #{
            minor => 1, for_s => 30, tags => [~"dev", ~"op"],
            cause => ~"Routed messages do not reach their groups.",
            remedy => <<"See the Traffic page, by gateway, and sderl_route:info/0 on the node: a "
                      "group without a gateway, or a receiver that is gone.">>
        }),
        rule(~"otp_versions", ~"otp_versions", #{
            minor => 2, for_s => 3600, tags => [~"op"],
            cause => ~"Members of the group run different releases of OTP for more than an hour.",
            remedy => ~"Finish the upgrade, or go back. The Nodes page tells the release of each."
        }),
        rule(~"app_versions", ~"app_versions", #{
            minor => 1, for_s => 3600, tags => [~"dev", ~"op"],
            cause => <<"Members of the group have had different versions of an application loaded "
                     "for more than an hour.">>,
            remedy => <<"Finish the upgrade, or go back. application:loaded_applications/0 on the "
                      "members tells which they are.">>
        }),
        rule(~"time_zones", ~"utc_offsets", #{
            minor => 2, for_s => 60, tags => [~"op"],
            cause => <<"Members of the group have different time zones: local times in their logs "
                     "cannot be compared.">>,
            remedy => <<"Set one time zone on all machines (timedatectl set-timezone), or TZ where "
                      "the nodes are started. Members in different regions: switch this alarm off "
                      "for the group.">>
        }),
        rule(~"family_app_versions", ~"family_app_versions", #{
            minor => 1, for_s => 3600, tags => [~"dev", ~"op"],
            cause => <<"Nodes of the family have had different versions of an application loaded "
                     "for more than an hour, in whichever groups they are.">>,
            remedy => <<"Finish the upgrade, or go back. application:loaded_applications/0 on the "
                      "nodes tells which they are.">>
        }),
        rule(~"family_time_zones", ~"family_utc_offsets", #{
            minor => 2, for_s => 60, tags => [~"op"],
            cause => <<"Nodes of the family have different time zones: local times in their logs "
                     "cannot be compared.">>,
            remedy => <<"Set one time zone on all machines (timedatectl set-timezone), or TZ where "
                      "the nodes are started. Nodes in different regions: switch this alarm off "
                      "for the family.">>
        })
    ].

share(Alarm, Metric, Tags, Cause, Remedy) ->
    rule(Alarm, Metric, #{minor => 0.8, major => 0.95, for_s => 15, tags => Tags, cause => Cause,
                          remedy => Remedy}).

rule(Alarm, Metric, Settings) ->
    maps:merge(#{alarm => Alarm, metric => Metric, 'when' => above, minor => none, major => none,
                 hysteresis => 0.1}, Settings).

-doc """
The findings that are alarms. Findings that the rules above cover are not among them; those that
only give advice are off.
""".
-spec findings() -> [finding()].
findings() ->
    [
        finding(~"bypass", true, [~"dev"], ~"traffic past the gateways of two groups"),
        finding(~"gateway_saturated", true, [~"op"], ~"a gateway near what it can carry"),
        finding(~"not_converged", true, [~"op"], ~"members that see a group differently"),
        finding(~"no_coordinator", true, [~"op"], ~"a group in which nothing can be registered"),
        finding(~"majority_lost", true, [~"op"], ~"members on a side without a majority"),
        finding(~"memory_outlier", true, [~"dev"], ~"far more memory than the other nodes"),
        finding(~"overloaded", true, [~"dev", ~"op"], ~"more to do than the schedulers can"),
        finding(~"node_alarm", true, [~"op"], ~"set in OTP's alarm_handler of a node"),
        finding(~"not_watched", true, [~"op"], ~"a node that is up and not watched"),
        finding(~"one_monitor", true, [~"op"], ~"a monitoring node that is down"),
        finding(~"idle_link", false, [~"dev"], ~"a link that nobody needs"),
        finding(~"misplaced_node", false, [~"dev"], ~"a node in the wrong group"),
        finding(~"group_too_large", false, [~"dev"], ~"a group too large for its registrations"),
        finding(~"hot_name", false, [~"dev"], ~"a process that gets most of what is traced"),
        finding(~"samples_lost", false, [~"op"], ~"numbers that monitoring left out"),
        finding(~"probe_cost", false, [~"op"], ~"a probe that takes much processor time")
    ].

finding(Alarm, On, Tags, About) -> #{alarm => Alarm, on => On, tags => Tags, about => About}.

-doc "The finding whose alarm has this name.".
-spec finding(binary()) -> {ok, finding()} | error.
finding(Name) ->
    case [Finding || #{alarm := Is} = Finding <- findings(), Is =:= Name] of
        [Finding] -> {ok, Finding};
        [] -> error
    end.
