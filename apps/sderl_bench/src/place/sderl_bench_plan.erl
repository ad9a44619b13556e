%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_plan).
-moduledoc """
The planner of groups: how long it takes and what it predicts, and whether a running cluster is as
predicted.

| part | metric | meaning |
|---|---|---|
| `propose` | `propose_ms`, `predict_ms` | for that many nodes, with two gateways of an edge and a limit on links |
| | `pattern`, `groups`, `group_size_max` | of the plan proposed |
| | `links_per_node_max`, `links_per_node_mean`, `mesh_links_per_node` | predicted |
| | `hops_max`, `hops_mean` | links on the way between two nodes, predicted |
| | `names_per_node_max`, `names_mesh` | where each node registers 100 names: those that a node holds, and in one namespace of all |
| `apply` | `apply_ms` | one call that changes the running cluster from the pattern before to this one |
| | `links_per_node_max`, `hops_max`, `hops_mean` | predicted |
| | `seen_links_per_node_max`, `seen_hops_max`, `seen_hops_mean` | of the running nodes: their connections and routes |
| | `routes_ms` | from the end of that call until links and routes are as predicted, or 15 s |
| | `nodes_off` | nodes that have more links or fewer than predicted, or another way to some node; 0 is right |
""".

-export([propose/2, apply_all/3]).
%% On a node.
-export([run/2, hops/0]).

-define(NAMES, 100).
-define(CALL_MS, 300_000).
-define(SETTLE_MS, 15_000).

-doc "A plan for so many nodes, and what it took.".
-spec propose(Nodes :: pos_integer(), MaxLinks :: pos_integer()) ->
    {ok, Metrics :: map()} | {error, term()}.
propose(Count, MaxLinks) ->
    Nodes = [list_to_atom("n" ++ integer_to_list(I) ++ "@host") || I <- lists:seq(1, Count)],
    {Us, Proposed} =
        timer:tc(fun() -> sderl_plan:propose(Nodes, #{max_links => MaxLinks, gateways => 2}) end),
    maybe
        {ok, #{pattern := Pattern} = Plan, _} ?= Proposed,
        {PredictUs, {ok, Prediction}} =
            timer:tc(fun() -> sderl_plan:predict(Plan, #{names_per_node => ?NAMES}) end),
        #{groups := Groups, group_size := #{max := Size}, names := #{max := Names, mesh := Mesh}} =
            Prediction,
        {ok, (predicted(Prediction))#{
            propose_ms => Us / 1000,
            predict_ms => PredictUs / 1000,
            pattern => Pattern,
            groups => Groups,
            group_size_max => Size,
            names_per_node_max => Names,
            names_mesh => Mesh
        }}
    else
        {error, Reason} -> {error, {said, sderl_plan:format_error(Reason)}}
    end.

predicted(#{links := #{max := Max, mean := Mean}, mesh_links := Mesh,
            hops := #{max := HopsMax, mean := HopsMean}}) ->
    #{links_per_node_max => Max, links_per_node_mean => Mean, mesh_links_per_node => Mesh,
      hops_max => HopsMax, hops_mean => HopsMean}.

%% Applied one after the other, with groups of this size.
patterns(Size) ->
    [
        {star, #{size => Size, gateways => 2, hubs => 2}},
        {ring, #{size => Size, gateways => 1}},
        {tree, #{size => Size, gateways => 1, branching => 2}},
        {chain, #{size => Size, gateways => 2}}
    ].

-doc "Applies the patterns to one running cluster; each result goes to `Done`.".
-spec apply_all(Nodes :: pos_integer(), Size :: pos_integer(),
                fun((Pattern :: atom(), map()) -> ok | {error, term()})) ->
    {ok, [{Pattern :: atom(), Metrics :: map()}]} | {error, term()}.
apply_all(Count, Size, Done) ->
    sderl_bench_nodes:with(Count, [], "plan", fun(Fleet, Nodes) ->
        each(patterns(Size), none, Fleet, Nodes, Done, [])
    end).

each([], _, _, _, _, Results) ->
    {ok, lists:reverse(Results)};
each([{Pattern, Options} | Patterns], Old, Fleet, [First | _] = Nodes, Done, Results) ->
    maybe
        {made, {ok, Plan}} ?= {made, sderl_pattern:new(Pattern, Nodes, Options#{name => Pattern})},
        {applied, [{_, {ok, {ok, Ms}}}]} ?=
            {applied, sderl_fleet:multicall(Fleet, [First], ?MODULE, run, [Old, Plan], ?CALL_MS)},
        Began = erlang:monotonic_time(millisecond),
        Prediction = sderl_plan:predict(Plan),
        _ = sderl_fleet:await(fun() -> [] =:= off(Prediction, Plan, Fleet, Nodes) end, ?SETTLE_MS),
        RoutesMs = erlang:monotonic_time(millisecond) - Began,
        Off = off(Prediction, Plan, Fleet, Nodes),
        Metrics = maps:merge(predicted(Prediction), (seen(Fleet, Nodes))#{
            apply_ms => Ms, routes_ms => RoutesMs, nodes_off => length(Off),
            groups => length(maps:get(groups, Plan))
        }),
        ok ?= Done(Pattern, Metrics),
        each(Patterns, Plan, Fleet, Nodes, Done, [{Pattern, Metrics} | Results])
    else
        {made, {error, Reason}} -> {error, {said, sderl_plan:format_error(Reason)}};
        {applied, [{_, {ok, {error, Reason}}}]} -> {error, {said, sderl_plan:format_error(Reason)}};
        {applied, [{_, {error, Reason}}]} -> {error, {apply, First, {error, Reason}}};
        {error, Reason} -> {error, Reason}
    end.

-doc "Runs on a node: applies a plan, in the place of another; milliseconds.".
-spec run(none | sderl_pattern:plan(), sderl_pattern:plan()) ->
    {ok, non_neg_integer()} | {error, sderl_pattern:reason()}.
run(Old, New) ->
    Applied = case Old of
        none -> sderl_plan_apply:run(New);
        _ -> sderl_plan_apply:change(Old, New)
    end,
    case Applied of
        {ok, #{elapsed_ms := Ms}} -> {ok, Ms};
        {error, Reason, _} -> {error, Reason}
    end.

-doc "Runs on a node: how many links it is to each node that can be reached.".
-spec hops() -> #{node() => pos_integer()}.
hops() ->
    Far = maps:map(fun(_, Gateways) -> Gateways + 1 end, sderl_router:gateways_between()),
    maps:merge(Far, #{Node => 1 || Node <- nodes(connected)}).

%% Nodes that are not as predicted.
off(#{links := #{each := Links}, hops := #{mean := Mean}}, Plan, Fleet, Nodes) ->
    All = length(sderl_pattern:nodes(Plan)),
    Hops = all_hops(Fleet, Nodes),
    Wrong = [N
             || {N, Count} <- lists:zip(Nodes, sderl_bench_links:count(Fleet, Nodes)),
                Count =/= map_get(N, Links)],
    Blind = [N || {N, Ways} <- Hops, map_size(Ways) =/= All - 1],
    case {Wrong, Blind} of
        {[], []} -> [N || abs(mean(Hops) - Mean) > 1.0e-6, N <- Nodes];
        _ -> lists:usort(Wrong ++ Blind)
    end.

all_hops(Fleet, Nodes) ->
    [{Node, case Answer of {ok, Ways} -> Ways; _ -> #{} end}
     || {Node, Answer} <- sderl_fleet:multicall(Fleet, Nodes, ?MODULE, hops, [], 30_000)].

mean(Hops) ->
    All = lists:append([maps:values(Ways) || {_, Ways} <- Hops]),
    lists:sum(All) / max(1, length(All)).

seen(Fleet, Nodes) ->
    Hops = all_hops(Fleet, Nodes),
    #{
        seen_links_per_node_max =>
            lists:max([L || L <- sderl_bench_links:count(Fleet, Nodes), is_integer(L)]),
        seen_hops_max => lists:max([0 | lists:append([maps:values(Ways) || {_, Ways} <- Hops])]),
        seen_hops_mean => mean(Hops)
    }.
