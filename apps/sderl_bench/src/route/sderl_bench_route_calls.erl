%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_calls).
-moduledoc """
Calls between two nodes: over gateways, over a direct link, and by `erpc` in a full mesh.

All in turn in each round, on the nodes of one chain; for `direct` its ends are linked, for `erpc`
all nodes. One result for each way and number of callers:

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

-doc """
All rounds with so many gateways between; each result goes to `Done`: how, with how many callers,
what.
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
            %% Links are added from one way to the next, and routes do not care.
            Ways = [
                {routed, {route, {Last, server}}, []},
                {direct, {direct, Server}, [First, End]},
                {erpc, {erpc, End}, Nodes}
            ],
            World = #{fleet => Fleet, nodes => Nodes, gateways => Gateways, label => Label,
                      done => Done, params => Params},
            {ok, Alone} ?= ways(Ways, [], World, []),
            rounds(Alone, World)
        end
    end).

%% How many links each way needs, before all have them.
ways([], _, _, Ways) ->
    {ok, lists:reverse(Ways)};
ways([{Name, How, Linked} | Ways], _, #{fleet := Fleet, nodes := Nodes} = World, Done) ->
    maybe
        {ok, _} ?= linked(Fleet, Linked),
        Links = lists:max([L || L <- sderl_bench_links:count(Fleet, Nodes), is_integer(L)]),
        ways(Ways, Linked, World, [{Name, How, Links} | Done])
    end.

linked(_, []) -> {ok, []};
linked(Fleet, Nodes) ->
    case sderl_bench_links:mesh(Fleet, Nodes) of
        ok -> {ok, Nodes};
        Error -> Error
    end.

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
            {ok, Before} ?= state(Fleet, Nodes),
            {ok, Result} ?= sderl_bench_nodes:on(Fleet, First, sderl_bench_route_caller, run,
                                                 [Load]),
            {ok, After} ?= state(Fleet, Nodes),
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

state(Fleet, Nodes) ->
    maybe
        {ok, Snapshots} ?= sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_meter, snapshot, []),
        {ok, lists:zip(Nodes, Snapshots)}
    end.

metrics(#{calls := Calls, all := All, ns := Ns, failed := Failed}, Ms, Before, After, Links) ->
    #{total := #{cpu_ms := CpuMs, bytes := Bytes, messages := Messages}} =
        sderl_bench_meter:usage(Before, After),
    Us = fun(Percent) ->
        case sderl_bench_histogram:percentile(Percent, Ns) of
            undefined -> undefined;
            T -> T / 1000
        end
    end,
    #{
        calls_per_s => 1000 * Calls / Ms,
        call_us => #{p50 => Us(50), p99 => Us(99)},
        cpu_us_per_call => 1000 * CpuMs / All,
        bytes_per_call => Bytes / All,
        messages_per_call => Messages / All,
        links_per_node_max => Links,
        failed_calls => length(Failed)
    }.
