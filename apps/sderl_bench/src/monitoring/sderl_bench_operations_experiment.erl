%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_operations_experiment).
-moduledoc """
`bin/sderl bench operations`: how much load the dashboard's interfaces and the alarms carry.

`rest`: how fast the HTTP interface of a dashboard with one core answers while it shows a made-up
cluster.

| metric | meaning |
|---|---|
| `rest_p50_ms`, `rest_p99_ms`, `rest_most_ms` | from when a request is due until its whole answer is there: median, 99th percentile, and the longest |
| `rest_per_s` | requests that were answered with 200, a second |
| `rest_failed` | those that were not |
| `server_cpu_pct` | processor time of the server, in percent of one core |

`alarms`: see `m:sderl_bench_alarms`.

`disk`: `disk_mb_week` and the times of charts, see `m:sderl_bench_archive_experiment`.

`overhead`: `overhead_pct` and `probe_ms_s` of nodes that register names while they are watched, see
`m:sderl_bench_monitoring_experiment`.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([table/2, verdict/1, overhead_verdict/1]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, chosen/4]).

-define(FAMILY, monitor).
-define(CALL_MS, 30_000).
-define(FRAME_MS, 60_000).
-define(P99_MS, 50).
-define(OVERHEAD_PCT, 0.5).
%% The probe's share does not depend on how many clients a node has.
-define(CLIENTS, 5).

-doc false.
-spec summary() -> string().
summary() -> "the HTTP interface, alarms, numbers on disk, and what watching costs the nodes".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            rest: starts a dashboard of a made-up cluster with one scheduler, and asks it over HTTP
            at a fixed rate for nodes, groups, alarms and findings; shows the time of the answers.
            alarms: real nodes, which are watched beside the made-up ones, get many processes; shows
            how long until a page is told, and, while the monitoring node that tells is killed, what
            a webhook that fails half of the time has missed or got twice. disk: keeps frames of the
            made-up cluster for days; shows what a week takes on disk. overhead: real nodes work
            while they are watched; shows the probe's share of their processor time.
            """,
        arguments => [
            option(what, "LIST", string, "rest,alarms,disk,overhead",
                   "rest, alarms, disk, overhead, with commas between them"),
            option(live, "N", integer, 20, "alarms, overhead: real nodes, in groups of ten"),
            option(seed, "N", integer, 1, "alarms: of the answers of the webhook"),
            option(nodes, "N", integer, 200, "nodes of the made-up cluster"),
            option(groups, "N", integer, 20, "its groups"),
            option(rate, "N", integer, 500, "requests a second"),
            option(connections, "N", integer, 16, "connections, which stay open"),
            option(seconds, "S", integer, 20, "rest, overhead: how long"),
            option(days, "N", integer, 7, "disk: days that are kept"),
            option(repeat, "K", integer, 1, "runs")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{what := What} = Options) ->
    maybe
        {ok, Whats} ?= chosen("--what", "measurement", What, [rest, alarms, disk, overhead]),
        ok ?= at_least(2, [nodes, live], Options),
        ok ?= at_least(1, [groups, rate, connections, seconds, days, repeat], Options),
        ok ?= at_most([{nodes, 2000}, {rate, 10_000}, {connections, 150}, {seconds, 3600},
                       {live, 500}, {days, 365}], Options),
        Most = sderl_mon_synthetic_layout:most_groups(map_get(nodes, Options)),
        ok ?= at_most([{groups, Most}], Options),
        {ok, Options#{what := Whats}}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{what := Whats} = Options, Output) ->
    %% After a measurement that failed the others are still made.
    case [Text || What <- Whats, {error, Text} <- [what(What, Options, Output)]] of
        [] -> ok;
        Texts -> {error, lists:join("; ", Texts)}
    end.

what(rest, Options, Output) ->
    Point = maps:with([nodes, groups, rate, connections, seconds], Options),
    runs(Point#{part => rest}, fun measured/2, fun table/2, fun verdict/1, Options, Output);
what(alarms, Options, Output) ->
    Point = maps:with([live, nodes, groups, seed], Options),
    runs(Point#{part => alarms}, fun sderl_bench_alarms:run/2, fun alarms_table/2,
         fun alarms_verdict/1, Options, Output);
what(disk, Options, Output) ->
    Point = maps:with([nodes, groups, days], Options),
    runs(Point#{part => disk}, fun sderl_bench_archive_experiment:measured/2,
         fun sderl_bench_archive_experiment:table/2, fun sderl_bench_archive_experiment:verdict/1,
         Options, Output);
what(overhead, Options, Output) ->
    Point = maps:with([live, seconds], Options),
    runs(Point#{part => overhead}, fun overhead/2, fun overhead_table/2, fun overhead_verdict/1,
         Options, Output).

overhead(#{live := Live, seconds := Seconds}, Label) ->
    sderl_bench_monitoring_experiment:watched(
        registry, #{nodes => Live, seconds => Seconds, clients => ?CLIENTS}, Label).

runs(Point, Measure, Table, Verdict, #{repeat := Repeat}, Output) ->
    sderl_bench_series:repeated(operations, Point, Repeat, Measure, {title(Point), Table, Verdict},
                                Output).

title(#{part := alarms, live := Live, nodes := Nodes, groups := Groups}) ->
    io_lib:format("~w nodes beside ~w made-up ones in ~w groups, two monitoring nodes, a webhook "
                  "that fails half of the time", [Live, Nodes, Groups]);
title(#{part := disk, nodes := Nodes, groups := Groups, days := Days}) ->
    io_lib:format("~w nodes in ~w groups, ~w days", [Nodes, Groups, Days]);
title(#{part := overhead, live := Live, seconds := Seconds}) ->
    io_lib:format("~w nodes that register names and are watched, ~w s", [Live, Seconds]);
title(#{nodes := Nodes, groups := Groups, rate := Rate, connections := Connections,
        seconds := Seconds}) ->
    io_lib:format("~w nodes in ~w groups, ~w requests a second over ~w connections, ~w s",
                  [Nodes, Groups, Rate, Connections, Seconds]).

-doc "The runs as a table in the given form, medians where there were several.".
-spec table(sderl_bench_output:form(), [map()]) -> unicode:chardata().
table(Form, Runs) ->
    Row = fun(Text, Metric) -> [Text, sderl_table:spread([Metric], Runs)] end,
    Form(["", "measured"], [
        Row("an answer, ms: p50", rest_p50_ms),
        Row("p99", rest_p99_ms),
        Row("the longest", rest_most_ms),
        Row("answers a second", rest_per_s),
        Row("requests that failed", rest_failed),
        Row("server, % of one core", server_cpu_pct)
    ]).

alarms_table(Form, Runs) ->
    Row = fun(Text, Path) -> [Text, sderl_table:spread(Path, Runs)] end,
    Form(["", "measured"], [
        Row("an alarm at a page, ms after its time: median", [alarm_ms, median]),
        Row("the latest", [alarm_ms, max]),
        Row("its end, ms: median", [clear_ms, median]),
        Row("the latest", [clear_ms, max]),
        Row("changes for the webhook", [changes]),
        Row("requests", [attempts]),
        Row("refused", [refused]),
        Row("lost", [alarms_lost]),
        Row("told again", [alarms_doubled])
    ]).

overhead_table(Form, Runs) ->
    Row = fun(Text, Metric) -> [Text, sderl_table:spread([Metric], Runs)] end,
    Form(["", "measured"], [
        Row("the probe, % of a node's processor time", overhead_pct),
        Row("of the worst node", overhead_pct_worst),
        Row("the probe, ms a second", probe_ms_s),
        Row("left out", samples_lost)
    ]).

-doc "An error where the probes take more than half a percent of their nodes, or nothing is known.".
-spec overhead_verdict([map()]) -> ok | {error, sderl_command:text()}.
overhead_verdict(Runs) ->
    case [Pct || #{overhead_pct := Pct} <- Runs, not is_number(Pct) orelse Pct > ?OVERHEAD_PCT] of
        [] -> ok;
        [Pct | _] when is_number(Pct) ->
            {error, io_lib:format("the probe takes ~.2f % of a node's processor time; ~.1f "
                                  "% are allowed", [float(Pct), ?OVERHEAD_PCT])};
        _ -> {error, "no probe has reported its processor time"}
    end.

alarms_verdict([]) -> ok;
alarms_verdict([Run | Runs]) ->
    maybe
        ok ?= sderl_bench_alarms:verdict(Run),
        alarms_verdict(Runs)
    end.

-doc "An error where one of a hundred answers takes 50 ms, or a request fails.".
-spec verdict([map()]) -> ok | {error, sderl_command:text()}.
verdict(Runs) ->
    case {[Ms || #{rest_p99_ms := Ms} <- Runs, Ms >= ?P99_MS],
          lists:sum([Failed || #{rest_failed := Failed} <- Runs])} of
        {[], 0} -> ok;
        {[Ms | _], _} ->
            {error, io_lib:format("99 of 100 answers take up to ~b ms; ~b are too many",
                                  [round(Ms), ?P99_MS])};
        {[], Failed} -> {error, io_lib:format("~b requests failed", [Failed])}
    end.

%% ---------------------------------------------------------------- one run

measured(Options, Label) ->
    case sderl_fleet:start(plan(Options, Label)) of
        {ok, Fleet} ->
            try served(Fleet, Options) after sderl_fleet:stop(Fleet) end;
        {error, _} = Error -> Error
    end.

plan(#{nodes := Nodes, groups := Groups}, Label) ->
    #{
        families => [#{
            name => ?FAMILY, count => 1, hidden => true,
            args => ["+S", "1:1", "+SDcpu", "1:1"],
            env => [
                {sderl_web, port, 0},
                {sderl_web, source, synthetic},
                %% The benchmark measures answers, and not refusals.
                {sderl_web, rate, {1_000_000, 1_000_000}},
                {sderl_web, synthetic, #{nodes => Nodes, groups => Groups, interval_ms => 1000}}
            ],
            apps => [sderl_web]
        }],
        progress => sderl_progress:reporter(lists:flatten(Label))
    }.

served(Fleet, #{nodes := Nodes, groups := Groups} = Options) ->
    [Node] = sderl_fleet:nodes(Fleet),
    Call = fun(Module, Function, Args) ->
        sderl_fleet:call(Fleet, Node, Module, Function, Args, ?CALL_MS)
    end,
    {ok, #{port := Port, token := Token}} = Call(sderl_web, address, []),
    ok = sderl_fleet:await(fun() ->
        case Call(sderl_web_feed, current, []) of
            #{topology := #{nodes := There, groups := Of}, frame := #{}} ->
                map_size(There) =:= Nodes andalso map_size(Of) =:= Groups;
            #{} -> false
        end
    end, ?FRAME_MS),
    #{topology := #{nodes := There, groups := Of}} = Call(sderl_web_feed, current, []),
    Named = fun(Names) -> uri_string:quote(hd(lists:sort(maps:keys(Names)))) end,
    Target = #{port => Port, token => Token, paths => [
        ~"/session", ~"/nodes?limit=20", <<"/nodes/", (Named(There))/binary>>,
        ~"/groups?limit=20", <<"/groups/", (Named(Of))/binary>>, ~"/alarms?limit=20",
        ~"/findings", ~"/events?limit=20"
    ]},
    %% The first answers load code.
    _ = sderl_bench_rest:run(Target, #{rate => 50, seconds => 1, connections => 4}),
    {Before, _} = Call(erlang, statistics, [runtime]),
    #{us := Us, failed := Failed, passed_us := Passed} = sderl_bench_rest:run(Target, Options),
    {After, _} = Call(erlang, statistics, [runtime]),
    Ms = fun(Percent) -> sderl_bench_rest:percentile(Percent, Us) / 1000 end,
    case Us of
        [] -> {error, no_answers};
        _ -> {ok, #{
            rest_p50_ms => Ms(50), rest_p99_ms => Ms(99), rest_most_ms => Ms(100),
            rest_per_s => length(Us) * 1_000_000 / Passed, rest_failed => Failed,
            server_cpu_pct => 100_000 * (After - Before) / Passed
        }}
    end.
