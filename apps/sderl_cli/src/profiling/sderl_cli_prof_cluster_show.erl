%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_prof_cluster_show).
-moduledoc "What `bin/sderl prof` prints of several nodes. Pure.".

-export([costs/1, failures/1, recorded/2, fetched/1, report/2, path/1]).

-import(sderl_cli_prof_text, [section/2]).
-import(sderl_table, [number/1]).

-doc "What the recording costs each node.".
-spec costs([{binary(), sderl_prof_trial:cost()}]) -> sderl_command:text().
costs([]) -> [];
costs(Costs) ->
    ["What the recording takes, by a trial on each node\n",
     sderl_table:text(["node", "events/s", "MB/s", "% of a core", "ns an event"], [
         [Node, [[">= " || Full], number(Events)], number(Bytes / 1.0e6), number(100 * Cores),
          number(Ns)]
      || {Node, #{events_s := Events, bytes_s := Bytes, cores := Cores, event_ns := Ns,
                  full := Full}} <- Costs
     ])].

-doc "The nodes that are not recorded, and why.".
-spec failures([{binary(), binary()}]) -> sderl_command:text().
failures(Failures) -> [["! ", Node, ": ", Why, "\n"] || {Node, Why} <- Failures].

-doc "How the recording ended, and what to do next.".
-spec recorded(sderl_prof_cluster_index:index(), file:filename()) -> sderl_command:text().
recorded(#{nodes := Nodes} = Index, Dir) ->
    [
        sderl_table:text(["node", "seconds", "MB", "ended"], [
            [Node, seconds(Entry), megabytes(Entry), ended(Entry)]
         || #{node := Node} = Entry <- Nodes
        ]),
        failures(sderl_prof_cluster:failures(Index)),
        "  ", Dir, "\n",
        "bin/sderl prof fetch ", Dir, "     # what is on other machines\n",
        "bin/sderl prof report ", Dir, "\n"
    ].

seconds(#{began := Began, ended_at := At}) when is_integer(Began), is_integer(At) ->
    number((At - Began) / 1.0e9);
seconds(_) -> "-".

megabytes(#{written := Written}) when is_integer(Written) -> number(Written / 1.0e6);
megabytes(_) -> "-".

ended(#{state := failed}) -> "failed";
ended(#{ended := ~"time"}) -> "in time";
ended(#{ended := ~"full"}) -> "full (--mib)";
ended(#{ended := ~"session"}) -> "its trace session was ended";
ended(#{ended := Ended}) when is_binary(Ended) -> Ended;
ended(_) -> "-".

-doc "What came from each node.".
-spec fetched([{binary(), sderl_prof_fetch:result()}]) -> sderl_command:text().
fetched(Results) ->
    [
        sderl_table:text(["node", "MB", "came now"], [
            [Node, number(Bytes / 1.0e6), came(Now, Shared)]
         || {Node, {ok, #{bytes := Bytes, fetched := Now, shared := Shared}}} <- Results
        ]),
        failures([{Node, unicode:characters_to_binary(sderl_prof_fetch:format_error(Why))}
                  || {Node, {error, Why}} <- Results])
    ].

came(_, true) -> "it is the node's own folder";
came(0, _) -> "nothing, it was here";
came(Bytes, _) -> number(Bytes / 1.0e6).

-doc "The report.".
-spec report(sderl_prof_cluster_report:report(), file:filename()) -> sderl_command:text().
report(#{cluster := Cluster, nodes := Nodes, traffic := Traffic, pairs := Pairs,
         joined := Joined, operations := Operations, critical_path := Path} = Report, Dir) ->
    Here = [Node || #{here := true} = Node <- Nodes],
    [
        head(Cluster, Here, Nodes),
        section("Nodes", beside(Here)),
        section("Clocks", clocks(Here)),
        section("Messages between nodes", traffic(Traffic)),
        joined(Traffic, Joined),
        section("Most messages between nodes", pairs(Pairs)),
        past_groups(Traffic),
        section("Findings between nodes", found(maps:get(findings, Report, []))),
        section("Critical path across nodes", path(Path)),
        section("Operations on groups", sderl_cli_prof_groups:operations(Operations)),
        section("Messages over gateways",
                sderl_cli_prof_groups:ways(maps:get(routed, Report, null))),
        section("The report of one node", [
            ["bin/sderl prof report ", filename:join(Dir, Node), "\n"] || #{node := Node} <- Here
        ])
    ].

head(#{seconds := Seconds, all_from_ns := From, all_to_ns := To, problems := Problems}, Here,
     Nodes) ->
    [
        io_lib:format("~b of ~b nodes, ~ts s; all of them from ~ts to ~ts s~n", [
            length(Here), length(Nodes), number(Seconds), number(From / 1.0e9), number(To / 1.0e9)
        ]),
        [["! ", Problem, "\n"] || Problem <- Problems],
        [["! ", Node, ": ", Problem, "\n"]
         || #{node := Node, problems := Own} <- Here, Problem <- Own]
    ].

beside(Nodes) ->
    sderl_table:text(["node", "utilisation %", "run", "wait for a scheduler", "gc ms", "processes",
                      "events", "sent", "received", "findings"], [
        [Node, percent(Busy), number(Run), number(Runnable), number(Gc / 1.0e6),
         number(Processes), number(Events), number(Sent), number(Received), number(Findings)]
     || #{node := Node, busy := Busy, running := Run, runnable := Runnable, gc_ns := Gc,
          processes := Processes, events := Events, sent := Sent, received := Received,
          findings := Findings} <- Nodes
    ]).

percent(null) -> "-";
percent(Part) -> number(100 * Part).

clocks(Nodes) ->
    sderl_table:text(["node", "begins at s", "ends at s", "+- us", "drift ppm"], [
        [Node, number(From / 1.0e9), number(To / 1.0e9), number(Error / 1.0e3), number(Drift)]
     || #{aligned := true, node := Node, from_ns := From, to_ns := To, clock_error_ns := Error,
          drift_ppm := Drift} <- Nodes
    ]).

traffic([]) -> [];
traffic(Rows) ->
    sderl_table:text(["from", "to", "sent", "bytes", "received", "joined", "mean us", "least",
                      "greatest", "+-"], [
        [From, To, number(Sent), number(Bytes), number(Received), number(N),
         us(Mean), us(Least), us(Most), us(Error)]
     || #{from := From, to := To, sent := Sent, sent_bytes := Bytes, received := Received,
          joined := N, mean_ns := Mean, least_ns := Least, most_ns := Most,
          error_ns := Error} <- Rows
    ]).

us(null) -> "-";
us(Ns) -> number(Ns / 1.0e3).

joined([], _) -> [];
joined(_, #{matched := Matched, early := Early, unreceived := Unreceived, unsent := Unsent,
            given_up := GivenUp, unknown := Unknown}) ->
    [
        io_lib:format("~ts messages have both ends", [number(Matched)]),
        [io_lib:format("; ~ts ~ts", [number(N), Text]) || {N, Text} <- [
            {Early, "were sent before the receiver was recorded"},
            {Unreceived, "were sent and not seen received"},
            {Unsent, "were received and not seen sent"},
            {GivenUp, "are of processes that receive too little of what is sent to them"},
            {Unknown, "are of processes that are not known"}
        ], N > 0],
        "\n"
    ].

pairs([]) -> [];
pairs(Rows) ->
    sderl_table:text(["from", "at", "to", "at", "messages", "bytes"], [
        [From, A, To, B, number(N), number(Bytes)]
     || #{from := From, from_node := A, to := To, to_node := B, count := N,
          bytes := Bytes} <- Rows
    ]).

past_groups(Traffic) ->
    section("Between nodes without a common group", [
        io_lib:format("~ts to ~ts: ~ts messages~n", [From, To, number(max(Sent, Received))])
     || #{common_group := false, from := From, to := To, sent := Sent,
          received := Received} <- Traffic
    ]).

found(Found) ->
    [[Text, "\n  Threshold: ", Threshold, "\n  ", Remedy, "\n"]
     || #{text := Text, threshold := Threshold, remedy := Remedy} <- Found].

-doc "The critical path across nodes, and to which process it leads.".
-spec path(map() | null) -> sderl_command:text().
path(null) -> [];
path(#{leads_to := <<_/binary>> = Process} = Path) ->
    ["to the last run of ", Process, ", which gets most messages of a process of another node\n",
     sderl_cli_prof_insight:path(Path)];
path(Path) -> sderl_cli_prof_insight:path(Path).
