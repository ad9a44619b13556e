%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_find_watch).
-moduledoc """
Findings about the monitoring itself: what it does not see, what it left out, what it costs, and
monitoring nodes that are down.
""".

-export([candidates/2]).

-import(sderl_mon_find, [grade/2, both/2, candidate/4, evidence/3, number/1]).
-import(sderl_mon_text, [text/2]).

-doc "For `m:sderl_mon_findings`.".
-spec candidates(sderl_mon_find_view:view(), sderl_mon_find:limits()) ->
    [sderl_mon_find:candidate()].
candidates(View, Limits) -> unwatched(View) ++ lost(View) ++ costs(View, Limits) ++ monitors(View).

unwatched(#{member_of := Of, topology := #{nodes := Nodes}}) ->
    lists:append([
        candidate(not_watched, over, #{node => Node}, fun() ->
            #{
                fast => true,
                text => text("~ts is up and not watched.", [Node]),
                evidence => [evidence("why", maps:get(why, map_get(Node, Nodes), ~"not said"), "")],
                remedy => <<"Without the application there the probe is loaded only where that is "
                            "allowed: start monitoring with --inject, or sderl_mon:set(#{inject => "
                            "true}). If `nodes` is set in its configuration, add the node.">>
            }
        end)
     || Node := _ <- Of, #{Node := #{status := up, source := none}} <- [Nodes]
    ]).

%% The counts are made on the node or on the way; the shown numbers are too small by them.
lost(#{lost := Lost}) ->
    lists:append([
        candidate(samples_lost, over, #{to => atom_to_binary(What)}, fun() ->
            #{
                fast => true,
                weight => Count,
                severity => info,
                text => text("~w of ~ts were left out in the last seconds.", [Count, What]),
                evidence => [evidence(atom_to_binary(What), Count, "")],
                remedy => <<"They are counted and not shown. Trace less (a smaller sample, or "
                            "off), or give the monitoring more time: a longer interval_ms, or "
                            "another monitoring node to share the groups.">>
            }
        end)
     || What := Count <- Lost, Count > 0
    ]).

%% On an idle node the probe is a large share of very little, hence the second threshold.
costs(#{nodes := Nodes, member_of := Of}, #{probe_pct := Limit, probe_core_pct := CoreLimit}) ->
    lists:append([
        candidate(probe_cost, both(grade(Pct, Limit), grade(Pct * Cpu / 100, CoreLimit)), #{
            node => Node
        }, fun() ->
            #{
                weight => Pct,
                severity => info,
                text => text("The probe takes ~ts % of the processor time of ~ts.",
                             [number(Pct), Node]),
                evidence => [evidence("probe", Pct, "%"),
                             evidence("processor time of the node", Cpu, "% of a core")],
                remedy => ~"Turn tracing off there, or sderl_mon:set(#{interval_ms => 5000})."
            }
        end)
     || Node := #{probe_pct := Pct, cpu_pct := Cpu} <- Nodes, is_map_key(Node, Of)
    ]).

monitors(#{topology := #{monitors := Monitors}}) ->
    Down = [Node || #{node := Node, status := down} <- Monitors],
    Up = [Node || #{node := Node, status := up} <- Monitors],
    lists:append([
        candidate(one_monitor, over, #{node => Node}, fun() ->
            #{
                fast => true,
                text => text("Monitoring node ~ts is down; ~w others watch its groups.",
                             [Node, length(Up)]),
                evidence => [evidence("monitoring nodes that are up", length(Up), "")],
                remedy => <<"Start it again: it gets the history from the others. With one "
                            "monitoring node alone there is nobody to take over.">>
            }
        end)
     || Node <- Down
    ]).
