%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_placement).
-moduledoc """
Choices of nodes in one group of real nodes: what a choice costs, how evenly simultaneous choices
are spread, and what it costs that members hold each other's attributes.

| part | metric | meaning |
|---|---|---|
| `choose` | `choose_us` | one choice among all nodes, at the caller: `p50`, `p99` |
| | `messages_sent`, `processes_spawned` | by a process that chose a thousand times, from its trace |
| | `nodes_chosen` | how many different ones |
| `spread` | `max`, `min`, `mean`, `stddev` | how often the nodes were chosen when many processes choose at the same moment |
| `sharing` | `messages_per_node_s`, `bytes_per_node_s` | what a node tells others of its attributes |
| | `attributes` | how many it tells |
""".

-export([choosers/0, run/2, spread/2]).

-import(sderl_bench_histogram, [us/2]).

-define(GROUP, g1).
-define(SHARED_MS, 60_000).
-define(TRACED, 1000).
-define(LEAD_MS, 300).

-doc "Specs by name, without candidates. `filtered` compares those that fit two conditions.".
-spec choosers() -> [{atom(), map()}].
choosers() ->
    [
        {random, #{choose => random}},
        {two, #{choose => {two, process_count}}},
        {least, #{choose => {least, process_count}}},
        {filtered, #{choose => {least, process_count},
                     where => [{logical_processors, ge, 1}, {label, zone, in, [0, 1, 2]}]}},
        {nearest, #{choose => nearest}},
        {spread, #{choose => {spread, {label, zone}}}},
        {hash, #{choose => {hash, key}}}
    ].

-doc """
Runs all parts; each result goes to `Done`. A reason is a term for `sderl_bench_reason:text/1`.
""".
-spec run(Params :: map(),
          fun((Part :: atom(), Key :: map(), Metrics :: map()) -> ok | {error, term()})) ->
    {ok, [{Part :: atom(), Key :: map(), Metrics :: map()}]} | {error, term()}.
run(#{nodes := Count} = Params, Done) ->
    sderl_bench_nodes:with(Count, [{?GROUP, normal, [{n, all}]}], "placement", fun(Fleet, Nodes) ->
        maybe
            ok ?= sderl_bench_impl_s_group:prepare(Fleet, [{?GROUP, Nodes}], Params),
            ok ?= ready(Fleet, Nodes),
            parts(Fleet, Nodes, Params, Done)
        end
    end).

%% Every node holds what all others tell.
ready(Fleet, Nodes) ->
    Zones = [{Node, [I rem 4]} || {I, Node} <- lists:enumerate(Nodes)],
    maybe
        {ok, _} ?= sderl_bench_nodes:each(Fleet, Zones, sderl_bench_placement_worker, zone,
                                          ?SHARED_MS),
        {ok, _} ?= all(Fleet, Nodes, tree, [Nodes]),
        sderl_progress:during("sharing attributes", ?SHARED_MS, fun() ->
            sderl_fleet:await(fun() -> all_hold(Fleet, Nodes) end, ?SHARED_MS)
        end)
    end.

all_hold(Fleet, Nodes) ->
    Names = [process_count, logical_processors, {label, zone}],
    case all(Fleet, Nodes, lacking, [Nodes, Names]) of
        {ok, Lacking} ->
            lists:append(Lacking) =:= [] orelse {not_held, length(lists:append(Lacking))};
        Error -> Error
    end.

parts(Fleet, Nodes, #{repeat := Repeat} = Params, Done) ->
    Work = [{sharing, 1, none}]
        ++ [{choose, Turn, Chooser} || Turn <- lists:seq(1, Repeat), Chooser <- choosers()]
        ++ [{spread, Turn, {Name, Spec, From}}
            || Turn <- lists:seq(1, Repeat), {Name, Spec} <- choosers(),
               lists:member(Name, [random, two, least, spread]), From <- [one, all]],
    Draw = sderl_progress:reporter("choosing"),
    walk(lists:enumerate(Work), length(Work), Draw, Fleet, Nodes, Params, Done, []).

walk([], _, _, _, _, _, _, Results) ->
    ok = sderl_progress:done(),
    {ok, lists:reverse(Results)};
walk([{I, {Part, Turn, What}} | Work], Total, Draw, Fleet, Nodes, Params, Done, Results) ->
    Draw(I - 1, Total),
    Measured = part(Part, What, Fleet, Nodes, Params),
    ok = sderl_progress:done(),
    maybe
        {ok, Key, Metrics} ?= Measured,
        ok ?= Done(Part, Key#{run => Turn}, Metrics),
        walk(Work, Total, Draw, Fleet, Nodes, Params, Done, [{Part, Key, Metrics} | Results])
    end.

part(sharing, _, Fleet, Nodes, #{share_ms := Ms}) ->
    maybe
        {ok, Told} ?= all(Fleet, Nodes, told, [Ms]),
        {ok, Attributes} ?= sderl_bench_nodes:on(Fleet, hd(Nodes), sderl_attr,
                                                 registered_attributes, []),
        PerNode = length(Nodes) * Ms / 1000,
        {ok, #{}, #{
            messages_per_node_s => lists:sum([M || #{messages := M} <- Told]) / PerNode,
            bytes_per_node_s => lists:sum([B || #{bytes := B} <- Told]) / PerNode,
            attributes => length(Attributes)
        }}
    end;
part(choose, {Name, Spec0}, Fleet, [Node | _], #{ms := Ms}) ->
    Spec = Spec0#{group => ?GROUP},
    maybe
        {ok, _} ?= on(Fleet, Node, clear, []),
        {ok, {Histogram, Chosen}} ?= on(Fleet, Node, choose, [Spec, Ms]),
        {ok, #{sent := Sent, spawned := Spawned}} ?= on(Fleet, Node, silent, [Spec, ?TRACED]),
        {ok, #{chooser => Name}, #{
            choose_us => #{p50 => us(50, Histogram), p99 => us(99, Histogram)},
            choices => sderl_bench_histogram:total(Histogram),
            nodes_chosen => Chosen,
            messages_sent => Sent,
            processes_spawned => Spawned
        }}
    end;
part(spread, {Name, Spec, From}, Fleet, Nodes, #{choices := Choices, among := Among}) ->
    Candidates = lists:sublist(Nodes, Among),
    Choosing = case From of one -> [hd(Nodes)]; all -> Candidates end,
    At = os:system_time(microsecond) + 1000 * (?LEAD_MS + 10 * length(Choosing)),
    Args = [Spec#{nodes => Candidates}, max(1, Choices div length(Choosing)), At],
    maybe
        {ok, _} ?= all(Fleet, Choosing, clear, []),
        {ok, Chosen} ?= all(Fleet, Choosing, at_once, Args),
        {ok, #{chooser => Name, from => From}, spread(Candidates, Chosen)}
    end.

-doc "How evenly nodes were chosen.".
-spec spread([node(), ...], [#{node() => pos_integer()}]) ->
    #{max := non_neg_integer(), min := non_neg_integer(), mean := float(), stddev := float()}.
spread(Candidates, Chosen) ->
    Counts = [lists:sum([maps:get(Node, C, 0) || C <- Chosen]) || Node <- Candidates],
    Mean = lists:sum(Counts) / length(Counts),
    #{
        max => lists:max(Counts),
        min => lists:min(Counts),
        mean => Mean,
        stddev => math:sqrt(lists:sum([(C - Mean) * (C - Mean) || C <- Counts]) / length(Counts))
    }.

on(Fleet, Node, F, Args) ->
    sderl_bench_nodes:on(Fleet, Node, sderl_bench_placement_worker, F, Args).

all(Fleet, Nodes, F, Args) ->
    sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_placement_worker, F, Args).
