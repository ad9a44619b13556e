%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_route_failover).
-moduledoc """
One of two gateways dies, or stops, while callers are at work.

| metric | meaning |
|---|---|
| `failover_ms`, `failover_stopped_ms` | the longest time between two answers that one of the callers got |
| `acknowledged_calls` | calls that were answered |
| `lost_acknowledged_calls` | of them, those that the server did not do, or did more than once |
| `failed_calls`, `failed_reasons` | calls that ended in an error, and up to three reasons |
""".

-export([run/2, metrics/3]).

%% Before and after.
-define(BEFORE_MS, 1000).
-define(ROUTES_MS, 60_000).

-doc "All rounds; each goes to `Done`. `kind` is `killed` or `stopped` (and resumed later).".
-spec run(Params :: map(), fun(
    (Round :: pos_integer(), Kind :: atom(), Metrics :: map()) -> ok | {error, term()}
)) ->
    {ok, [{Kind :: atom(), Metrics :: map()}]} | {error, term()}.
run(#{repeat := Repeat, clients := Clients, kinds := Kinds, after_ms := AfterMs}, Done) ->
    sderl_bench_route_cluster:with(
        sderl_bench_route_cluster:doubled(),
        "failover",
        fun(Fleet, [_, _, _, To] = Nodes) ->
            maybe
                {ok, Server} ?=
                    sderl_bench_nodes:on(Fleet, To, sderl_bench_route_server, start, [g2, server]),
                World = #{fleet => Fleet, nodes => Nodes, server => Server, clients => Clients,
                          after_ms => AfterMs, done => Done},
                rounds([{Round, Kind} || Round <- lists:seq(1, Repeat), Kind <- Kinds], World, [])
            end
        end
    ).

rounds([], _, Seen) ->
    {ok, lists:reverse(Seen)};
rounds([{Round, Kind} | More], #{fleet := Fleet, nodes := [From, G1, G2, To], done := Done} = World,
       Seen) ->
    Gateway = case Round rem 2 of 1 -> G2; 0 -> G1 end,
    maybe
        ok ?= both(Fleet, From, To, [G1, G2]),
        {ok, Metrics} ?= one(Kind, Gateway, World),
        ok ?= Done(Round, Kind, Metrics),
        rounds(More, World, [{Kind, Metrics} | Seen])
    end.

%% Both sides know both gateways.
both(Fleet, From, To, Gateways) ->
    sderl_fleet:await(fun() ->
        Seen = sderl_fleet:multicall(Fleet, [From, To], sderl_bench_route_worker, routes, [], 5000),
        Wanted = [{From, {ok, [{g2, 1, Gateways}]}}, {To, {ok, [{g1, 1, Gateways}]}}],
        Seen =:= Wanted orelse Seen
    end, ?ROUTES_MS).

one(Kind, Gateway, #{fleet := Fleet, nodes := [From, _, _, To], server := Server,
                     clients := Clients, after_ms := AfterMs}) ->
    maybe
        {ok, _} ?= sderl_bench_nodes:on(Fleet, To, sderl_bench_route_server, executed, [Server]),
        {ok, Callers} ?= sderl_bench_nodes:on(
            Fleet, From, sderl_bench_route_caller, keep_calling, [{g2, server}, Clients]
        ),
        ok = sderl_progress:during("failover", ?BEFORE_MS + AfterMs, fun() ->
            pass(?BEFORE_MS),
            ok = break(Kind, Fleet, Gateway),
            pass(AfterMs)
        end),
        {ok, Kept} ?= sderl_bench_nodes:on(Fleet, From, sderl_bench_route_caller, stop, [Callers]),
        %% Messages still under way may only now come twice.
        ok ?= mend(Kind, Fleet, Gateway),
        {ok, Executed} ?= sderl_bench_nodes:on(Fleet, To, sderl_bench_route_server, executed,
                                               [Server]),
        {ok, metrics(Kind, Kept, Executed)}
    end.

pass(Ms) ->
    receive
    after Ms -> ok
    end.

break(killed, Fleet, Gateway) -> sderl_fleet:kill(Fleet, Gateway);
break(stopped, Fleet, Gateway) -> sderl_fleet:suspend(Fleet, Gateway).

mend(killed, Fleet, Gateway) ->
    case sderl_fleet:restart(Fleet, Gateway) of
        {ok, _} -> ok;
        Error -> Error
    end;
mend(stopped, Fleet, Gateway) ->
    sderl_fleet:resume(Fleet, Gateway).

-doc "The metrics from what callers saw and what the server did, and how often.".
-spec metrics(killed | stopped, sderl_bench_route_caller:kept(), #{term() => pos_integer()}) ->
    map().
metrics(Kind, #{answered := Answered, failed := Failed, pause_ms := Pause}, Executed) ->
    Reasons = lists:usort([Reason || {_, Reason} <- Failed]),
    #{
        (case Kind of killed -> failover_ms; stopped -> failover_stopped_ms end) => Pause,
        acknowledged_calls => length(Answered),
        lost_acknowledged_calls => length([Call
                                           || Call <- Answered, maps:get(Call, Executed, 0) =/= 1]),
        failed_calls => length(Failed),
        failed_reasons => [unicode:characters_to_binary(io_lib:format("~0tp", [R]))
                           || R <- lists:sublist(Reasons, 3)]
    }.
