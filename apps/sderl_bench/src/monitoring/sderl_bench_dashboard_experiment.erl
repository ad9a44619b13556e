%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_dashboard_experiment).
-moduledoc """
`bin/sderl bench dashboard`: the dashboard of a large made-up cluster in a browser, with more
clients; then the same with the nodes in many small groups (`many_groups`), as a second result. See
docs/dashboard.md.

Metrics, as in the JSON output; each `#{median, least, most}` is over loads or turns:

| metric | meaning |
|---|---|
| `first_paint_ms` | from the start of the navigation until the cluster is drawn, with an empty cache |
| `contentful_paint_ms` | until the browser has drawn anything (its First Contentful Paint) |
| `frames_per_s` | pictures drawn a second while the map is dragged, in turns of 10 s |
| `frames_per_s_idle` | the same while there are only updates |
| `longest_frame_ms` | the longest time between two pictures |
| `server_cpu_pct` | processor time of the server's process, user and system, in percent of one core |
| `server_memory_mib` | its resident memory: `start`, `half` way, `end`, `max` |
| `page_memory_mib` | the page's JavaScript heap after a collection: `start`, `end` |
| `sockets` | the clients without a page: `count`; `frames` and `bytes` that they received; `frames_missing`, frames that never came; `told`, frames that the server said it left out; `closed`, sockets that the server closed |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2]).
-import(sderl_table, [number/1, median/1]).

-doc false.
-spec summary() -> string().
summary() -> "the dashboard in a browser: first paint, frames a second, cost of the server".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Shows the dashboard of a made-up cluster in headless chromium, with more clients that
            only receive, and measures the first paint, the pictures a second, and the server's
            processor time and memory. Needs chromium and Node.js (toolchain/browser,
            toolchain/web).
            """,
        arguments => [
            option(nodes, "N", integer, 200, "nodes of the made-up cluster"),
            option(groups, "N", integer, 20, "its groups"),
            option(many_groups, "N", integer, 1200,
                   "measured again with so many groups, or as many as possible; 0: not again"),
            option(edges, "N", integer, 1000, "its links, in one direction"),
            option(interval_ms, "MS", integer, 200, "time between two updates"),
            option(clients, "N", integer, 10, "clients: one browser, the others sockets"),
            option(seconds, "S", integer, 60,
                   "how long pictures are counted; 1800 shows whether memory stays flat"),
            option(loads, "N", integer, 5, "fresh loads of the page"),
            option(seed, "S", integer, 1, "seed of all random choices")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Options) ->
    maybe
        ok ?= at_least(2, [nodes], Options),
        ok ?= at_least(1, [groups, edges, clients, loads], Options),
        ok ?= at_least(0, [many_groups], Options),
        ok ?= at_least(4, [seconds], Options),
        ok ?= at_least(50, [interval_ms], Options),
        ok ?= at_most([{nodes, 2000}], Options),
        Most = sderl_mon_synthetic_layout:most_groups(map_get(nodes, Options)),
        ok ?= at_most([{groups, Most}, {edges, 20_000}, {clients, 500}, {seconds, 86_400},
                       {loads, 100}], Options),
        {ok, Options#{many_groups := min(Most, map_get(many_groups, Options))}}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{many_groups := Many} = Given, Output) ->
    Options = maps:remove(many_groups, Given),
    maybe
        {ok, Browser} ?= sderl_bench_dashboard:browser(),
        ok ?= measure(Browser, Options, Output),
        case Many of
            0 -> ok;
            _ ->
                ok = sderl_bench_output:say(Output, "\n"),
                measure(Browser, Options#{groups := Many}, Output)
        end
    end.

measure(Browser, Options, Output) ->
    Started = sderl_bench_output:now(),
    maybe
        {ok, Measured} ?= sderl_bench_dashboard:run(Browser, Options),
        Metrics = metrics(Measured),
        ok ?= sderl_bench_output:write(
            Output, sderl_bench_output:result(dashboard, Options, Metrics, Started)
        ),
        sderl_bench_output:say(Output, [title(Options), "\n\n", table(Metrics)])
    end.

metrics(#{paints := Paints, contentful := Contentful, rates := Rates,
          samples := [First | _] = Samples, sockets := Sockets, heap := Heap}) ->
    Last = lists:last(Samples),
    PassedMs = map_get(at_ms, Last) - map_get(at_ms, First),
    Rate = fun(Turn) -> three([R || #{how := How, frames_per_s := R} <- Rates, How =:= Turn]) end,
    Mib = fun(#{rss_kib := Kib}) -> Kib / 1024 end,
    #{
        first_paint_ms => three(Paints),
        contentful_paint_ms => three(Contentful),
        frames_per_s => Rate(~"pan"),
        frames_per_s_idle => Rate(~"idle"),
        longest_frame_ms => lists:max([Ms || #{longest_ms := Ms} <- Rates]),
        server_cpu_pct => 100 * (map_get(cpu_ms, Last) - map_get(cpu_ms, First)) / max(1, PassedMs),
        server_memory_mib => #{
            start => Mib(First), half => Mib(lists:nth((length(Samples) + 1) div 2, Samples)),
            'end' => Mib(Last), max => map_get(peak_kib, Last) / 1024
        },
        page_memory_mib => #{start => hd(Heap) / 1_048_576, 'end' => lists:last(Heap) / 1_048_576},
        sockets => sockets(Sockets)
    }.

three(Values) -> #{median => median(Values), least => lists:min(Values), most => lists:max(Values)}.

sockets(Sockets) ->
    Sum = fun(Key) -> lists:sum([map_get(Key, S) || S <- Sockets]) end,
    #{
        count => length(Sockets),
        frames => Sum(frames),
        bytes => Sum(bytes),
        frames_missing => Sum(missing),
        told => Sum(told_missed),
        closed => length([S || #{state := State} = S <- Sockets, State =/= open])
    }.

title(#{nodes := Nodes, groups := Groups, edges := Edges, interval_ms := Ms, clients := Clients,
        seconds := Seconds, seed := Seed}) ->
    io_lib:format("~w nodes in ~w groups, ~w links, an update each ~w ms, ~w clients (one a "
                  "browser), ~w s, seed ~w",
                  [Nodes, Groups, Edges, Ms, Clients, Seconds, Seed]).

table(#{first_paint_ms := Paint, frames_per_s := Rate, server_cpu_pct := Cpu, sockets := Sockets} =
          Metrics) ->
    #{contentful_paint_ms := Contentful, frames_per_s_idle := Idle, longest_frame_ms := Longest,
      server_memory_mib := Memory, page_memory_mib := Page} = Metrics,
    #{start := M0, half := M1, 'end' := M2, max := M3} = Memory,
    #{start := P0, 'end' := P1} = Page,
    #{count := Count, frames := Frames, frames_missing := Missing, told := Told, closed := Closed} =
        Sockets,
    sderl_table:text(["", "measured", "goal"], [
        ["first paint of the cluster, ms", spread(Paint), "< 1,000"],
        ["first contentful paint, ms", spread(Contentful), ""],
        ["pictures a second, map dragged", spread(Rate), ">= 30"],
        ["pictures a second, updates only", spread(Idle), ">= 30"],
        ["longest time between two, ms", number(Longest), ""],
        ["server, % of one core", number(Cpu), "< 10"],
        ["server memory, MiB: start, half, end", lists:join(", ", [number(M) || M <- [M0, M1, M2]]),
         "flat"],
        ["server memory, MiB: most", number(M3), ""],
        ["page memory, MiB: start, end", lists:join(", ", [number(M) || M <- [P0, P1]]), "flat"],
        [io_lib:format("frames to ~w sockets", [Count]), number(Frames), ""],
        ["frames missing; said to be left out", [number(Missing), "; ", number(Told)], "equal"],
        ["sockets closed by the server", number(Closed), "0"]
    ]).

spread(#{median := Median, least := Least, most := Most}) ->
    [number(Median), " (", number(Least), "..", number(Most), ")"].
