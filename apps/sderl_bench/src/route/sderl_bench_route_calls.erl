%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_calls).
-moduledoc """
Calls between two nodes: over gateways, over a direct link, and by `erpc` in a full mesh.

The ways take turns in each round, on the nodes of one chain; for `direct` its ends are linked, for
`erpc` all nodes. One result for each way and number of callers:

| metric | meaning |
|---|---|
| `calls_per_s` | calls that were answered in a second |
| `call_us` | `p50`, `p99` |
| `cpu_us_per_call` | processor time of all nodes |
| `bytes_per_call`, `messages_per_call` | what all nodes sent over their links, whatever it was for |
| `links_per_node_max` | links of the node that has most |
| `failed_calls` | not answered |
""".

-export([run/3]).

-import(sderl_bench_histogram, [us/2]).

-doc """
All rounds with so many gateways between the ends; each result goes to `Done`, with the way and the
number of callers.
""".
-spec run(Gateways :: pos_integer(), Params :: map(),
          fun((Round :: pos_integer(), map(), Metrics :: map()) -> ok | {error, term()})) ->
    {ok, [{map(), map()}]} | {error, term()}.
run(Gateways, Params, Done) ->
    Label = io_lib:format("calls over ~w gateway~ts", [Gateways, [$s || Gateways > 1]]),
    Layout = #{groups := Groups} = sderl_bench_route_cluster:chain(Gateways),
    {Last, _} = lists:last(Groups),
    sderl_bench_route_cluster:with(Layout, Label, fun(Fleet, [First | _] = Nodes) ->
        maybe
            End = lists:last(Nodes),
            {ok, Server} ?= sderl_bench_nodes:on(Fleet, End, sderl_bench_route_server, start,
                                                 [Last, server]),
            %% Each way adds links to those of the way before; routes do not depend on them.
            Ways = [
                {routed, {route, {Last, server}}, []},
                {direct, {direct, Server}, [First, End]},
                {erpc, {erpc, End}, Nodes}
            ],
            World = #{fleet => Fleet, nodes => Nodes, gateways => Gateways, label => Label,
                      done => Done, params => Params},
            {ok, Alone} ?= ways(Ways, World, []),
            rounds(Alone, World)
        end
    end).

%% Makes the links of each way in turn, and counts them before those of the next way are there.
ways([], _, Ways) ->
    {ok, lists:reverse(Ways)};
ways([{Name, How, Linked} | Ways], #{fleet := Fleet, nodes := Nodes} = World, Done) ->
    maybe
        ok ?= linked(Fleet, Linked),
        Links = lists:max([L || L <- sderl_bench_links:count(Fleet, Nodes), is_integer(L)]),
        ways(Ways, World, [{Name, How, Links} | Done])
    end.

linked(_, []) -> ok;
linked(Fleet, Nodes) -> sderl_bench_links:mesh(Fleet, Nodes).

rounds(Ways, #{params := #{repeat := Repeat, callers := Callers}} = World) ->
    Slots = [{Round, C, Way}
             || Round <- lists:seq(1, Repeat), C <- Callers, Way <- turned(Round, Ways)],
    slots(Slots, World, []).

turned(Round, Ways) when Round rem 2 =:= 0 -> lists:reverse(Ways);
turned(_, Ways) -> Ways.

slots([], _, Seen) ->
    {ok, lists:reverse(Seen)};
slots([{Round, Callers, {Name, How, Links}} | Slots], World, Seen) ->
    #{fleet := Fleet, nodes := [First | _] = Nodes, gateways := Gateways, label := Label,
      done := Done, params := Params} = World,
    #{warm_ms := WarmMs, ms := Ms} = Params,
    Load = #{how => How, callers => Callers, bytes => 100, warm_ms => WarmMs, ms => Ms},
    Measured = sderl_progress:during(io_lib:format("~ts ~w", [Label, Round]), WarmMs + Ms, fun() ->
        maybe
            {ok, Before} ?= sderl_bench_route_cluster:snapshots(Fleet, Nodes),
            {ok, Result} ?= sderl_bench_nodes:on(Fleet, First, sderl_bench_route_caller, run,
                                                 [Load]),
            {ok, After} ?= sderl_bench_route_cluster:snapshots(Fleet, Nodes),
            {ok, metrics(Result, Ms, Before, After, Links)}
        end
    end),
    Key = #{way => Name, gateways => case Name of routed -> Gateways; _ -> 0 end,
            nodes => length(Nodes), callers => Callers},
    maybe
        {ok, Metrics} ?= Measured,
        ok ?= Done(Round, Key, Metrics),
        slots(Slots, World, [{Key, Metrics} | Seen])
    end.

metrics(#{calls := Calls, all := All, ns := Ns, failed := Failed}, Ms, Before, After, Links) ->
    #{total := #{cpu_ms := CpuMs, bytes := Bytes, messages := Messages}} =
        sderl_bench_meter:usage(Before, After),
    #{
        calls_per_s => 1000 * Calls / Ms,
        call_us => #{p50 => us(50, Ns), p99 => us(99, Ns)},
        cpu_us_per_call => 1000 * CpuMs / All,
        bytes_per_call => Bytes / All,
        messages_per_call => Messages / All,
        links_per_node_max => Links,
        failed_calls => length(Failed)
    }.
