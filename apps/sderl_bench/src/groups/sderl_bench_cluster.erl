%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_cluster).
-moduledoc """
One run of `bin/sderl bench cluster`: real nodes in the groups of a plan, from their start until
they are at rest.
""".

-export([run/3, plan/2, metrics/1, place/1, name/1]).
-export_type([params/0, seen/0]).

-doc """
The limits of the plan: `group_size` members of a group, `max_links` of a node, and `gateways` nodes
between two groups.
""".
-type params() :: #{
    nodes := pos_integer(),
    group_size := pos_integer(),
    gateways := pos_integer(),
    max_links := pos_integer(),
    settle_s := non_neg_integer(),
    rest_s := pos_integer(),
    atom() => term()
}.

-doc """
The measurements: milliseconds from the start of the first node, for bare nodes and for the measured
ones; the processor time of each node when all ran and when they were formed; the nodes' usage until
then and at rest; and afterwards their messages by kind, over `traced_ms`.
""".
-type seen() :: #{
    prediction := sderl_plan:prediction(),
    bare_ms := non_neg_integer(),
    bare_cpu_ms := [non_neg_integer()],
    started_ms := non_neg_integer(),
    started_cpu_ms := [non_neg_integer()],
    formed_ms := non_neg_integer(),
    formed_cpu_ms := [non_neg_integer()],
    formed := [sderl_bench_cluster_worker:formed()],
    expected_links := [non_neg_integer()],
    rest := sderl_bench_meter:usage(),
    traced_ms := pos_integer(),
    sent := [#{atom() => {Messages :: non_neg_integer(), Bytes :: non_neg_integer()}}]
}.

-import(sderl_bench_meter, [mean/1]).
-import(sderl_clock, [now_ms/0]).

-define(FORM_MS, 600_000).
-define(CALL_MS, 60_000).

-doc """
Runs it. First as many bare nodes are started and ended, to measure what the start of a node costs
by itself on this machine and at this moment.
""".
-spec run(params(), Label :: unicode:chardata(), sderl_pattern:plan()) ->
    {ok, map()} | {error, term()}.
run(#{nodes := Count} = Settings, Label, Plan) ->
    Groups = [{Name, normal, [{n, place(Node)} || Node <- Nodes]}
              || #{name := Name, nodes := Nodes} <- maps:get(groups, Plan)],
    BareBegan = now_ms(),
    maybe
        {ok, Bare} ?= sderl_bench_nodes:bare(Count, Label, fun(Fleet, _) ->
            {ok, #{
                bare_ms => now_ms() - BareBegan,
                bare_cpu_ms => sderl_bench_nodes:cpu_ms(Fleet)
            }}
        end),
        Began = now_ms(),
        {ok, Seen} ?= sderl_bench_nodes:with(Count, Groups, Label, fun(Fleet, Nodes) ->
            see(Fleet, Nodes, Began, Label, Plan, Settings)
        end),
        {ok, metrics(maps:merge(Bare, Seen))}
    end.

see(Fleet, Nodes, Began, Label, Plan, #{settle_s := SettleS, rest_s := RestS}) ->
    StartedMs = now_ms() - Began,
    StartedCpu = sderl_bench_nodes:cpu_ms(Fleet),
    maybe
        {ok, Formed} ?=
            sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_cluster_worker, formed,
                                  [Plan, ?FORM_MS], ?FORM_MS + ?CALL_MS),
        FormedMs = now_ms() - Began,
        FormedCpu = sderl_bench_nodes:cpu_ms(Fleet),
        ok = wait([Label, ": coming to rest"], SettleS),
        {ok, Rest} = sderl_bench_meter:around(Fleet, Nodes,
                                              fun() -> wait([Label, ": at rest"], RestS) end),
        TracedMs = 1000 * RestS,
        {ok, Sent} ?= sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_cluster_worker, sent,
                                            [TracedMs], TracedMs + ?CALL_MS),
        #{links := #{each := Each}} = Prediction = sderl_plan:predict(Plan),
        {ok, #{
            prediction => Prediction,
            started_ms => StartedMs,
            started_cpu_ms => StartedCpu,
            formed_ms => FormedMs,
            formed_cpu_ms => FormedCpu,
            formed => Formed,
            expected_links => [map_get(name(I), Each) || I <- lists:seq(1, length(Nodes))],
            rest => Rest,
            traced_ms => TracedMs,
            sent => Sent
        }}
    end.

-doc "The groups of so many nodes, which are named after their places.".
-spec plan(pos_integer(), params()) -> {ok, sderl_pattern:plan()} | {error, sderl_pattern:reason()}.
plan(Count, #{group_size := Size, gateways := Gateways, max_links := Links}) ->
    Limits = #{max_group => Size, max_links => Links, gateways => Gateways},
    case sderl_plan:propose([name(I) || I <- lists:seq(1, Count)], Limits) of
        {ok, Plan, _} -> {ok, Plan};
        {error, Reason} -> {error, Reason}
    end.

-doc "The node of a plan in that place.".
-spec name(pos_integer()) -> node().
name(Place) -> list_to_atom("n" ++ integer_to_list(Place) ++ "@plan").

-doc "The place of a node: `n7@plan` of a plan, `n7-k2f9@127.0.0.1` of the fleet.".
-spec place(node()) -> pos_integer().
place(Node) ->
    "n" ++ Rest = atom_to_list(Node),
    {Place, _} = string:take(Rest, "0123456789"),
    list_to_integer(Place).

wait(Label, Seconds) ->
    sderl_progress:during(Label, max(1, 1000 * Seconds), fun() ->
        receive
        after 1000 * Seconds -> ok
        end
    end).

-doc "Pure: the metrics of `m:sderl_bench_cluster_experiment`.".
-spec metrics(seen()) -> #{atom() => term()}.
metrics(#{prediction := Prediction, bare_ms := BareMs, started_ms := StartedMs,
          formed_ms := FormedMs, formed := Formed} = Seen) ->
    #{expected_links := Expected, rest := Rest, traced_ms := TracedMs, sent := Sent} = Seen,
    #{groups := Groups, group_size := #{min := Least, max := Most},
      links := #{max := LinksMax, mean := LinksMean}} = Prediction,
    #{seconds := Seconds, per_node := PerNode, total := #{memory_mib_mean := Memory}} = Rest,
    Links = [Count || #{links := Count} <- Formed],
    Mean = fun(Key) -> mean([maps:get(Key, Node) || Node <- Formed]) end,
    AtRest = fun(Key) -> [maps:get(Key, Node) / Seconds || Node <- PerNode] end,
    Kinds = lists:usort(lists:append([maps:keys(Node) || Node <- Sent])),
    OfKind = fun(Place) ->
        #{Kind => 1000 * mean([element(Place, maps:get(Kind, Node, {0, 0})) || Node <- Sent]) /
            TracedMs
          || Kind <- Kinds}
    end,
    #{
        groups => Groups,
        group_size_min => Least,
        group_size_max => Most,
        bare_s => BareMs / 1000,
        started_s => StartedMs / 1000,
        started_per_bare => StartedMs / max(1, BareMs),
        formed_s => FormedMs / 1000,
        formed_after_ms => FormedMs - StartedMs,
        links_per_node_max => lists:max([0 | Links]),
        links_per_node_mean => mean(Links),
        plan_links_per_node_max => LinksMax,
        plan_links_per_node_mean => LinksMean,
        nodes_off => length([off || {Has, Ought} <- lists:zip(Links, Expected), Has =/= Ought]),
        forming_messages_per_node => Mean(messages),
        forming_bytes_per_node => Mean(bytes),
        forming_reductions_per_node => Mean(reductions),
        bare_cpu_ms_per_node => mean(maps:get(bare_cpu_ms, Seen)),
        started_cpu_ms_per_node => mean(maps:get(started_cpu_ms, Seen)),
        formed_cpu_ms_per_node => mean(maps:get(formed_cpu_ms, Seen)),
        messages_per_node_s => mean(AtRest(messages)),
        messages_per_node_s_max => lists:max([0.0 | AtRest(messages)]),
        bytes_per_node_s => mean(AtRest(bytes)),
        %% Milliseconds in a second are tenths of a percent.
        cpu_pct_per_node => mean(AtRest(cpu_ms)) / 10,
        cpu_pct_per_node_max => lists:max([0.0 | AtRest(cpu_ms)]) / 10,
        memory_mib_per_node => Memory,
        messages_by_kind => OfKind(1),
        bytes_by_kind => OfKind(2)
    }.
