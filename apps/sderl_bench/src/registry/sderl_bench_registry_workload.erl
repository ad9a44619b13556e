%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_registry_workload).
-moduledoc """
The registry's benchmark as a workload of `bin/sderl bench monitoring`: an operation is a pair.
""".

-behaviour(sderl_bench_workload).

-export([point/1, run/2, cpu_us/1, rate/1]).

-doc false.
-spec point(#{atom() => term()}) -> #{mode := registry, atom() => term()}.
point(#{nodes := Nodes, clients := Clients, seconds := Seconds}) ->
    #{mode => registry, nodes => Nodes, group_size => Nodes, clients => Clients, seconds => Seconds,
      names => 0}.

-doc false.
-spec run(#{atom() => term()}, unicode:chardata()) -> {ok, #{atom() => term()}} | {error, term()}.
run(Params, Label) -> sderl_bench_registry:run(sderl_bench_impl_s_group, Params, Label).

-doc false.
-spec cpu_us(#{atom() => term()}) -> number() | undefined.
cpu_us(Metrics) -> maps:get(cpu_us_per_pair, Metrics, undefined).

-doc false.
-spec rate(#{atom() => term()}) -> number() | undefined.
rate(Metrics) -> maps:get(pairs_per_s, Metrics, undefined).
