%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_workload).
-moduledoc """
The messenger as a workload of `bin/sderl bench monitoring`: an operation is a message that is
delivered.
""".

-behaviour(sderl_bench_workload).

-export([point/1, run/2, cpu_us/1, rate/1]).

-doc false.
-spec point(#{atom() => term()}) -> #{mode := messenger, atom() => term()}.
point(#{nodes := Nodes, clients := Clients, seconds := Seconds, speed := Speed}) ->
    Routers = max(1, Nodes div 5),
    ClientNodes = max(1, Nodes div 5),
    #{
        mode => messenger,
        nodes => Nodes,
        servers => max(Routers, Nodes - Routers - ClientNodes),
        routers => Routers,
        client_nodes => ClientNodes,
        clients => max(2 * ClientNodes, 100 * Clients),
        seconds => Seconds,
        speed => Speed
    }.

-doc false.
-spec run(#{atom() => term()}, unicode:chardata()) -> {ok, #{atom() => term()}} | {error, term()}.
run(Params, Label) ->
    %% The measured time begins when all conversations have begun.
    Asked = Params#{mode := rsd},
    Outcome = sderl_im:run(Asked#{warmup_s => max(3, ceil(sderl_im:ramp_s(Asked)))}, Label),
    sderl_bench_reason:said(im, fun sderl_im:text/1, Outcome).

-doc false.
-spec cpu_us(#{atom() => term()}) -> number() | undefined.
cpu_us(Metrics) -> maps:get(cpu_us_per_op, Metrics, undefined).

-doc false.
-spec rate(#{atom() => term()}) -> number() | undefined.
rate(#{delivered_per_min := PerMin}) -> PerMin / 60;
rate(_) -> undefined.
