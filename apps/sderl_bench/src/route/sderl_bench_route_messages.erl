%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_messages).
-moduledoc """
Messages between two nodes: over gateways, over a direct link, and over relays that only pass
messages on.

The three take turns in each round, and a ratio is that of one round. Metrics of a round for each
number K of gateways; those of messages other than 100 bytes end in their size, such as `_1000b`:

| metric | meaning |
|---|---|
| `routed_msgs_per_s_K`, `raw_msgs_per_s_K`, `relay_msgs_per_s_K` | messages a second, one sender, a window for all alike |
| `throughput_ratio_K`, `relay_throughput_ratio_K` | routed, and relayed, to raw |
| `routed_us_K`, `raw_us_K`, `relay_us_K` | `p50` and `p99` of a round trip, one at a time |
| `latency_ratio_K`, `relay_latency_ratio_K` | routed, and relayed, to raw: `p50` |
| `latency_to_relay_K` | routed to relayed: `p50` |
| `there_latency_ratio_K`, `relay_there_latency_ratio_K` | the same when only the way there is routed, or relayed, and the answer comes over the direct link |
| `routed_cpu_us_K`, `raw_cpu_us_K`, `relay_cpu_us_K` | processor time a message: `sender`, `gateway` (each), `receiver` |
| `lost_messages_K` | sent and not arrived, of all three |
""".

-export([run/3, name/3]).

-import(sderl_bench_histogram, [us/2]).

-doc """
All rounds with so many gateways between sender and receiver; each round goes to `Done`.
`Params` as in `m:sderl_bench_route_experiment`.
""".
-spec run(Gateways :: pos_integer(), Params :: map(),
          fun((Round :: pos_integer(), Metrics :: map()) -> ok | {error, term()})) ->
    {ok, [map()]} | {error, term()}.
run(Gateways, #{repeat := Repeat} = Params, Done) ->
    Label = io_lib:format("messages over ~w gateway~ts", [Gateways, [$s || Gateways > 1]]),
    sderl_bench_route_cluster:with(sderl_bench_route_cluster:chain(Gateways), Label,
                                   fun(Fleet, Nodes) ->
                                       maybe
                                           {ok, Ways} ?= ways(Fleet, Nodes, Gateways),
                                           rounds(lists:seq(1, Repeat), Fleet, Nodes, Ways, Params,
                                                  Label, Done, [])
                                       end
                                   end).

%% {Kind, There, Back}
ways(Fleet, [Sender | _] = Nodes, Gateways) ->
    Receiver = lists:last(Nodes),
    Between = lists:droplast(tl(Nodes)),
    Last = last_group(Gateways),
    maybe
        {ok, true} ?= on(Fleet, Sender, link, [[Receiver]]),
        {ok, Sink} ?= on(Fleet, Receiver, start_sink, [Last, sink]),
        {ok, Relays} ?= sderl_bench_nodes:all(Fleet, Between, sderl_bench_route_worker, start_relay,
                                              []),
        {ok, [
            {raw, {direct, Sink}, {direct, []}},
            {routed, {route, {Last, sink}}, {route, {g1, sender}}}
        ] ++ relayed(Relays, Sink)}
    end.

relayed([One], Sink) -> [{relay, {relay, One, Sink}, {relay, [One]}}];
relayed([One, Two], Sink) -> [{relay, {relays, One, Two, Sink}, {relays, [Two, One]}}];
relayed(_, _) -> [].

last_group(Gateways) ->
    #{groups := Groups} = sderl_bench_route_cluster:chain(Gateways),
    element(1, lists:last(Groups)).

on(Fleet, Node, F, Args) -> sderl_bench_nodes:on(Fleet, Node, sderl_bench_route_worker, F, Args).

rounds([], _, _, _, _, _, _, Rounds) ->
    {ok, lists:reverse(Rounds)};
rounds([Round | More], Fleet, Nodes, Ways0, #{sizes := Sizes} = Params, Label, Done, Rounds) ->
    %% Every other round in reverse order, so that no way always follows the same other one.
    Ways = case Round rem 2 of 1 -> Ways0; 0 -> lists:reverse(Ways0) end,
    Slots = [{Kind, Size, F, There, Back}
             || F <- [throughput, latency, there], Size <- Sizes, {Kind, There, Back} <- Ways],
    Ms = length(Slots) * (maps:get(warm_ms, Params) + maps:get(ms, Params)),
    Measured = sderl_progress:during(io_lib:format("~ts ~w", [Label, Round]), Ms, fun() ->
        slots(Slots, Fleet, Nodes, Params, #{})
    end),
    maybe
        {ok, Seen} ?= Measured,
        Metrics = metrics(length(Nodes) - 2, Sizes, Seen),
        ok ?= Done(Round, Metrics),
        rounds(More, Fleet, Nodes, Ways0, Params, Label, Done, [Metrics | Rounds])
    end.

slots([], _, _, _, Seen) ->
    {ok, Seen};
slots([{Kind, Size, F, There, Back} | Slots], Fleet, [Sender | _] = Nodes, Params, Seen) ->
    Load = (maps:with([window, warm_ms, ms], Params))#{there => There, me => {g1, sender},
                                                       bytes => Size},
    {Call, Args} = case F of
        there -> {latency, [Load#{back => {direct, []}}]};
        _ -> {F, [Load#{back => Back}]}
    end,
    maybe
        {ok, Before} ?= cpu(Fleet, Nodes),
        {ok, Result} ?= on(Fleet, Sender, Call, Args),
        {ok, After} ?= cpu(Fleet, Nodes),
        Used = lists:zipwith(fun(A, B) -> 1000 * (A - B) end, After, Before),
        slots(Slots, Fleet, Nodes, Params, Seen#{{F, Kind, Size} => {Result, Used}})
    end.

cpu(Fleet, Nodes) -> sderl_bench_nodes:all(Fleet, Nodes, sderl_bench_route_worker, cpu_ms, []).

metrics(K, Sizes, Seen) ->
    Kinds = lists:usort([Kind || {_, Kind, _} <- maps:keys(Seen)]),
    maps:from_list(lists:append([of_size(K, Size, Kinds, Seen) || Size <- Sizes])).

of_size(K, Size, Kinds, Seen) ->
    Name = fun(Prefix, Text) -> name([Prefix, Text], K, Size) end,
    Rates = #{Kind => maps:get(per_s, R) || {throughput, Kind, S} := {R, _} <- Seen, S =:= Size},
    Times = #{Kind => H || {latency, Kind, S} := {H, _} <- Seen, S =:= Size},
    There = #{Kind => H || {there, Kind, S} := {H, _} <- Seen, S =:= Size},
    Lost = lists:sum([Sent - Arrived
                      || {throughput, _, S} := {#{sent := Sent, arrived := Arrived}, _} <- Seen,
                         S =:= Size]),
    Us = fun(Kind, Percent) -> us(Percent, maps:get(Kind, Times)) end,
    [{Name("lost_messages", ""), Lost}]
        ++ [{Name(atom_to_list(Kind), "_msgs_per_s"), maps:get(Kind, Rates)} || Kind <- Kinds]
        ++ [{Name(atom_to_list(Kind), "_us"), #{p50 => Us(Kind, 50), p99 => Us(Kind, 99)}}
            || Kind <- Kinds]
        ++ [{Name(atom_to_list(Kind), "_cpu_us"), cpu_of(maps:get({throughput, Kind, Size}, Seen))}
            || Kind <- Kinds]
        ++ lists:append([
            [{Name(Prefix, "throughput_ratio"), maps:get(Kind, Rates) / maps:get(raw, Rates)},
             {Name(Prefix, "latency_ratio"), Us(Kind, 50) / Us(raw, 50)},
             {Name(Prefix, "there_latency_ratio"),
              us(50, maps:get(Kind, There)) / us(50, maps:get(raw, There))}]
         || {Kind, Prefix} <- [{routed, ""}, {relay, "relay_"}], lists:member(Kind, Kinds)
        ])
        ++ [{Name("latency_to_relay", ""), Us(routed, 50) / Us(relay, 50)}
            || lists:member(relay, Kinds)].

cpu_of({#{sent := Sent}, [Sender | Others]}) ->
    Gateways = lists:droplast(Others),
    #{
        sender => Sender / Sent,
        gateway => lists:sum(Gateways) / length(Gateways) / Sent,
        receiver => lists:last(Others) / Sent
    }.

-doc "The name of a metric with K gateways and messages of that size.".
-spec name(iodata(), pos_integer(), pos_integer()) -> binary().
name(What, K, Size) ->
    iolist_to_binary([What, $_, integer_to_list(K),
                      [["_", integer_to_list(Size), "b"] || Size =/= 100]]).
