%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_table).
-moduledoc "DE-Bench's results as tables for a terminal.".

-export([points/1, kinds/1, notes/1]).

-import(sderl_table, [number/1]).

%% Above this utilisation of the processor, latencies say more about the machine than the cluster.
-define(BUSY_PCT, 70).

-doc "A line for each point, medians where there were several runs.".
-spec points([sderl_bench_series:run()]) -> unicode:chardata().
points(Runs) ->
    Points = sderl_bench_series:medians(Runs),
    Header = [
        "", "ops/s", "done %", "p2p us p50 / p95", "global us p50 / p95", "local us p50 / p95",
        "late us p50", "CPU %", "CPU us/op", "messages/op", "links", "errors"
    ],
    sderl_table:text(Header, [
        [
            name(Params, Points),
            spread([ops_per_s], M),
            median([completed_pct], M),
            latencies(p2p, M),
            latencies(global, M),
            latencies(local, M),
            median([late_us, p50], M),
            median([cpu_pct], M),
            spread([cpu_us_per_op], M),
            median([messages_per_op], M),
            most([links_per_node_max], M),
            most([errors], M)
        ]
     || {Params, M} <- Points
    ]).

%% A point's name: the parameters that differ between points.
name(#{nodes := Nodes, global_pct := Pct} = Params, Points) ->
    [
        sderl_bench_series:label(Params, [mode, nodes]),
        [io_lib:format(" in groups of ~w", [Size])
         || #{group_size := Size} <- [Params], Size < Nodes],
        [[", ", number(Pct), " % global"]
         || length(lists:uniq([P || {#{global_pct := P}, _} <- Points])) > 1]
    ].

-doc "A table for each point, with a line for each kind of operation.".
-spec kinds([sderl_bench_series:run()]) -> unicode:chardata().
kinds(Runs) ->
    Points = sderl_bench_series:medians(Runs),
    Header = ["", "ops/s", "us p50", "p95", "p99", "from its begin p50", "p95", "errors"],
    [
        [
            "\n",
            sderl_table:text(
                [name(Params, Points) | tl(Header)],
                [
                    [
                        atom_to_list(Kind), spread([kinds, Kind, ops_per_s], M),
                        spread([kinds, Kind, latency_us, p50], M),
                        median([kinds, Kind, latency_us, p95], M),
                        median([kinds, Kind, latency_us, p99], M),
                        median([kinds, Kind, service_us, p50], M),
                        median([kinds, Kind, service_us, p95], M),
                        most([kinds, Kind, errors], M)
                    ]
                 || Kind <- sderl_debench_mix:kinds(), seen(Kind, M)
                ]
            )
        ]
     || {Params, M} <- Points
    ].

seen(Kind, M) ->
    lists:any(fun(Key) -> element(3, at([kinds, Kind, Key], M)) > 0 end, [ops, errors]).

latencies(Class, M) ->
    [median([Class, latency_us, p50], M), " / ", median([Class, latency_us, p95], M)].

median(Path, M) ->
    {Median, _, _} = at(Path, M),
    number(Median).

most(Path, M) ->
    {_, _, Most} = at(Path, M),
    number(Most).

spread(Path, M) ->
    case at(Path, M) of
        {Same, Same, Same} -> number(Same);
        {Median, Least, Most} -> [number(Median), " (", number(Least), "..", number(Most), ")"]
    end.

at([], Spread) -> Spread;
at([Key | Path], M) when is_map_key(Key, M) -> at(Path, maps:get(Key, M));
at(_, _) -> {undefined, undefined, undefined}.

-doc "The notes on the numbers, and the failures.".
-spec notes([sderl_bench_series:run()]) -> unicode:chardata().
notes(Runs) ->
    Points = sderl_bench_series:medians(Runs),
    [
        [
            "\n"
            "pg: eventually consistent, names are not unique; a call returns before other nodes "
            "know of it.\n"
         || lists:any(fun(#{params := #{mode := Mode}}) -> Mode =:= pg end, Runs)
        ],
        [
            io_lib:format(
                "\n~ts: the machine was busy (~ts % of the processor), which latencies include.\n",
                [name(Params, Points), number(Pct)]
            )
         || {Params, #{cpu_pct := {Pct, _, _}}} <- Points, Pct > ?BUSY_PCT
        ],
        [
            ["\n", name(Params, Points), ": ", lists:join("; ", lists:sublist(Reasons, 5)), "\n"]
         || {Params, _} <- Points,
            [_ | _] = Reasons <- [lists:append([R
                                                || #{params := P,
                                                     metrics := #{error_reasons := R}} <- Runs,
                                                   maps:remove(run, P) =:= Params])]
        ],
        [
            io_lib:format("\n~ts: ~ts names were left when all was over\n",
                          [name(Params, Points), number(Most)])
         || {Params, #{names_left := {_, _, Most}}} <- Points, Most > 0
        ]
    ].
