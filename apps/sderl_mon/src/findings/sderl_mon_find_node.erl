%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_find_node).
-moduledoc """
Findings about single nodes: down, not converged, with alarms of their own, near a limit,
overloaded.
""".

-export([candidates/2]).

-import(sderl_mon_find, [grade/2, both/2, candidate/4, evidence/3, number/1]).
-import(sderl_mon_text, [text/2]).
-import(sderl_mon_find_view, [number/2]).

%% The most problems of a node that are shown as evidence.
-define(MOST_PROBLEMS, 5).
-define(MIB, 1_048_576).

-doc "For `m:sderl_mon_findings`.".
-spec candidates(sderl_mon_find_view:view(), sderl_mon_find:limits()) ->
    [sderl_mon_find:candidate()].
candidates(View, Limits) ->
    down(View) ++ converged(View) ++ coordinators(View) ++ majorities(View) ++
        alarms(View) ++ near_limits(View, Limits) ++ memory(View, Limits) ++ queues(View, Limits) ++
        busy(View, Limits).

down(#{member_of := Of, topology := #{nodes := Nodes}}) ->
    lists:append([
        candidate(node_down, over, #{node => Node}, fun() ->
            Why = maps:get(why, map_get(Node, Nodes), ~"not said"),
            #{
                severity => critical,
                fast => true,
                text => text("~ts ~ts; it is a member of ~ts.",
                             [Node, status(Status), lists:join(", ", Groups)]),
                evidence => [evidence("why", Why, ""),
                             evidence("groups that miss it", length(Groups), "")],
                remedy => text("~ts If it is gone for good, on a member of each group: "
                               "s_group:remove_nodes(Group, ['~ts']).", [if_it_runs(Status), Node])
            }
        end)
     || Node := [_ | _] = Groups <- Of, #{Node := #{status := Status}} <- [Nodes], Status =/= up
    ]).

status(down) -> "is down";
status(unreachable) -> "does not answer the monitoring".

%% A node that is stopped or hangs looks down once its links have ended; starting another node of
%% its name does not help then.
if_it_runs(unreachable) ->
    "It is connected, and silent: look on its machine whether it was stopped or hangs. "
    "When it goes on it comes back into its groups by itself.";
if_it_runs(down) ->
    "Start it: it comes back into its groups by itself. If its name is taken (epmd -names on its "
    "machine) it runs and hangs, or is cut off: let it go on, or end it first.".

%% The problems of s_group:info/0 of the nodes, in its own words. A problem that several nodes
%% report is one finding, at the first of them. Problems with a node that is down are left out,
%% because that has a finding of its own.
converged(#{member_of := Of, topology := #{nodes := Nodes}, details := Details}) ->
    {Up, Down} = lists:partition(fun(Node) -> is_up(Node, Nodes) end, maps:keys(Of)),
    Told = maps:groups_from_list(
        fun({Problem, _}) -> Problem end,
        fun({_, Said}) -> Said end,
        [{Problem, {Node, Problems}}
         || Node := #{problems := [_ | _] = All} <- Details, is_map_key(Node, Of),
            is_up(Node, Nodes),
            [Problem | _] = Problems <- [[P || P <- All, not is_of_others(P, Down, Up)]]]
    ),
    lists:append([not_converged(Problem, lists:sort(Said)) || Problem := Said <- Told]).

is_up(Node, Nodes) ->
    case Nodes of
        #{Node := #{status := up}} -> true;
        #{} -> false
    end.

%% Whether a sentence names nodes that are down, and no others.
is_of_others(_, [], _) -> false;
is_of_others(Problem, Down, Up) -> names_any(Problem, Down) andalso not names_any(Problem, Up).

names_any(Problem, Nodes) -> binary:match(Problem, Nodes) =/= nomatch.

not_converged(Problem, [{Node, Problems} | _] = Said) ->
    candidate(not_converged, over, #{node => Node}, fun() ->
        #{
            weight => length(Said),
            text => text("~ts not at rest: ~ts", [who_is(Said), Problem]),
            evidence => [evidence("s_group:info/0 says", P, "")
                         || P <- lists:sublist(Problems, ?MOST_PROBLEMS)] ++
                [evidence("problems", length(Problems), ""),
                 evidence("nodes that say so", length(Said), "")],
            remedy => text("See `problems` of s_group:info() on '~ts'. A node that is set "
                           "aside or was left out is tried again by itself; if it stays, check "
                           "that the nodes reach each other (s_group:connect/1) with the same "
                           "cookie, and that all run the application.", [Node])
        }
    end).

who_is([{Node, _}]) -> [Node, " is"];
who_is([{Node, _}, {Other, _}]) -> [Node, " and ", Other, " are"];
who_is([{Node, _} | More]) -> text("~ts and ~w others are", [Node, length(More)]).

coordinators(#{topology := #{groups := Groups, nodes := Nodes}}) ->
    lists:append([
        candidate(no_coordinator, over, #{group => Group}, fun() ->
            #{
                severity => critical,
                text => text("~ts has no coordinator: nothing can be registered in it.", [Group]),
                evidence => [evidence("members that are up", length(Up), ""),
                             evidence("members", length(Members), "")],
                remedy => text("It elects one within a second as a rule. If it stays so, see "
                               "s_group:info() on '~ts': too few links between its members, or "
                               "nodes of different versions.", [hd(Up)])
            }
        end)
     || Group := #{nodes := Members, coordinator := undefined} <- Groups,
        [_, _ | _] = Up <- [[Node
                             || Node <- Members,
                                #{Node := #{status := up, source := probe}} <- [Nodes]]]
    ]).

majorities(#{topology := #{groups := Groups}}) ->
    lists:append([
        candidate(majority_lost, over, #{group => Group}, fun() ->
            #{
                severity => critical,
                fast => true,
                weight => length(Minority),
                text => text("~ts has no majority of its members on ~ts: nothing can be registered "
                             "in it there.", [Group, lists:join(", ", Minority)]),
                evidence => [evidence("members without a majority", length(Minority), ""),
                             evidence("members", length(Members), "")],
                remedy => text("They go on by themselves when more than half of the members reach "
                               "each other: start those that are down, mend the network. Only if "
                               "so many are lost for good, on '~ts': "
                               "s_group:recover_majority(Group, Survivors).", [hd(Minority)])
            }
        end)
     || Group := #{nodes := Members, minority := [_ | _] = Minority} <- Groups
    ]).

%% Alarms that programs on the node, such as os_mon, have set in OTP's alarm_handler.
alarms(#{member_of := Of, topology := #{nodes := Nodes}, details := Details}) ->
    lists:append([
        candidate(node_alarm, over, #{node => Node, to => sderl_mon_text:cut(Alarm, 255)}, fun() ->
            #{
                fast => true,
                text => text("An alarm is set on ~ts: ~ts", [Node, Alarm]),
                evidence => [evidence("alarm_handler:get_alarms/0 has", Alarm, "")],
                remedy => <<"A program on the node has set it, and clears it "
                            "(alarm_handler:clear_alarm/1) when it is over. disk_almost_full, "
                            "system_memory_high_watermark and process_memory_high_watermark are "
                            "of os_mon: make room on the disk, or see what takes the memory.">>
            }
        end)
     || Node := #{alarms := [_ | _] = Alarms} <- Details, is_map_key(Node, Of),
        is_up(Node, Nodes), Alarm <- Alarms
    ]).

near_limits(#{member_of := Of, details := Details}, Limits) ->
    lists:append([
        candidate(limit_near, grade(Used / Most, Share), #{node => Node, to => text("~ts", [What])},
                  fun() ->
                      #{
                          severity => case Used / Most >= 0.95 of
                              true -> critical;
                              false -> warning
                          end,
                          weight => Used / Most,
                          text => text("~ts has used ~w % of its ~ts.",
                                       [Node, round(100 * Used / Most), What]),
                          evidence => [evidence(What, Used, ""), evidence("limit", Most, "")],
                          remedy => text("~ts Raise the limit with ~ts when starting the node, if "
                                         "what uses it is meant to.", [who(Key), Flag])
                      }
                  end)
     || Node := #{limits := #{} = Limited} <- Details, is_map_key(Node, Of),
        {Key, What, Threshold, Flag} <- limited(),
        #{Key := [Used, Most]} <- [Limited], is_number(Used), is_number(Most), Most > 0,
        #{Threshold := Share} <- [Limits]
    ]).

limited() ->
    [
        {procs, "processes", process_share, "+P"},
        {atoms, "atoms", atom_share, "+t"},
        {ports, "ports", port_share, "+Q"},
        {ets, "ETS tables", ets_share, "+e"}
    ].

who(procs) -> "Find who starts so many: the node's page lists processes by their first function.";
who(atoms) ->
    "Atoms are never freed: look for list_to_atom/1 or binary_to_atom/1 of what comes from "
    "outside.";
who(ports) -> "Look for sockets and files that are not closed.";
who(ets) -> "Look for tables that are made and not deleted.".

%% Memory has no limit of its own, so it is compared with that of the other nodes.
memory(#{member_of := Of, nodes := Nodes}, #{mem_ratio := Ratio, mem_bytes := Least}) ->
    Sizes = [{Node, Bytes} || Node := #{mem := Bytes} <- Nodes, is_map_key(Node, Of)],
    case length(Sizes) of
        Count when Count >= 3 ->
            Median = lists:nth((Count + 1) div 2, lists:sort([Bytes || {_, Bytes} <- Sizes])),
            lists:append([memory(Node, Bytes, Median, max(Least, Ratio * Median))
                          || {Node, Bytes} <- Sizes]);
        _ ->
            []
    end.

memory(Node, Bytes, Median, Limit) ->
    candidate(memory_outlier, grade(Bytes, Limit), #{node => Node}, fun() ->
        #{
            weight => Bytes,
            text => text("~ts has far more memory than the others: ~w MiB.",
                         [Node, round(Bytes / ?MIB)]),
            evidence => [evidence("memory", Bytes, "B"),
                         evidence("median of the nodes", Median, "B")],
            remedy => <<"The node's page tells the kind of memory and the largest processes. "
                        "Binaries that grow are often parts of large ones that are kept: "
                        "binary:copy/1. See erlang:memory/0 and process_info(Pid, [memory, "
                        "message_queue_len, dictionary]).">>
        }
    end).

queues(#{member_of := Of, nodes := Nodes, details := Details}, #{queue_msgs := Limit}) ->
    lists:append([
        candidate(long_queue, grade(Length, Limit), #{node => Node}, fun() ->
            #{
                severity => case Length >= 10 * Limit of true -> critical; false -> warning end,
                weight => Length,
                text => text("A process on ~ts has ~ts messages waiting.", [Node, number(Length)]),
                evidence => [evidence("longest message queue", Length, "messages")
                             | longest(Node, Details)],
                remedy => <<"It gets more than it does. See what it does: process_info(Pid, "
                            "current_stacktrace). Spread its work over several processes, or let "
                            "senders wait for answers (gen_server:call instead of cast).">>
            }
        end)
     || Node := #{mq_max := Length} <- Nodes, is_map_key(Node, Of)
    ]).

longest(Node, Details) ->
    case Details of
        #{Node := #{top := [_ | _] = Top}} ->
            {_, Name, Pid} = lists:max(
                [{number(queue, P), maps:get(name, P, ~""), maps:get(pid, P, ~"")} || P <- Top]
            ),
            [evidence("process", text("~ts ~ts", [Pid, Name]), "")];
        #{} ->
            []
    end.

busy(#{member_of := Of, nodes := Nodes}, #{busy_util := UtilLimit, run_queue := QueueLimit}) ->
    lists:append([
        candidate(overloaded, both(grade(Util, UtilLimit), grade(Queue, QueueLimit)),
                  #{node => Node}, fun() ->
                      #{
                          weight => Queue,
                          text => text("~ts has more to do than its schedulers can.", [Node]),
                          evidence => [evidence("utilisation", 100 * Util, "%"),
                                       evidence("run queue", Queue, "processes")],
                          remedy => <<"Place new processes elsewhere "
                                      "(sderl_place:choose_node(#{group => Group, choose => "
                                      "{least, run_queue}})), or start another node for the group: "
                                      "s_group:enter/2 on it.">>
                      }
                  end)
     || Node := #{util := Util, run_queue := Queue} <- Nodes, is_map_key(Node, Of)
    ]).
