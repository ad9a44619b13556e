%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_upgrade_experiment).
-moduledoc """
`bin/sderl bench upgrade`: what a rolling upgrade does to a cluster under load, and whether
operations go on when their service is killed.

The cluster has the groups of the demo, but two gateways between neighbours, so that one is left
while the other is upgraded. It gets a new release while its nodes send one another messages
(`m:sderl_bench_upgrade`), and reports in the end what arrived. Then the service is killed at points
of each operation (`m:sderl_bench_resume`).

| metric | meaning |
|---|---|
| `lost_messages` | not acknowledged by their receivers in the end, or acknowledged and not there: 0, else something is wrong |
| `names_missing` | names that a member of their group does not find in the end: 0 |
| `sent`, `acknowledged`, `again` | messages of all nodes; those sent again, as no answer came |
| `started_s`, `upgrade_s` | from the request until all is as the file says |
| `nodes_upgraded`, `nodes_reported` | nodes that have the new release, and that answered in the end: all |
| `ops_memory_mib` | the most memory that the service had |
| `kills`, `resumed` | how often the service was killed, and how often the cluster ended as the file says |
| `twice` | instances that ran more than once then: 0 |
| `resumed_by_operation` | `resumed` of each operation |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2]).

-doc false.
-spec summary() -> string().
summary() -> "a rolling upgrade under load; the operations service killed at its work".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Upgrades a cluster by operations while its nodes send one another messages. Shows how
            many messages are lost, which names are missing, and how long it takes. Then kills the
            service of operations at points of each operation, and checks that all ends as the file
            says. A node takes some 50 MB.
            """,
        arguments => [
            option(nodes, "N", integer, 24, "nodes that are upgraded; 0 for no upgrade"),
            option(group_size, "G", integer, 6, "nodes of a group, without gateways of another"),
            option(gateways, "K", integer, 2, "gateways between two groups"),
            option(hosts, "H", integer, 4, "folders that act as hosts"),
            option(batch, "B", integer, 2, "nodes that are down at a time"),
            option(every_ms, "MS", integer, 50, "time between two messages of a node"),
            option(kills, "K", integer, 10, "points of each operation at which the service is "
                                            "killed; 0 for none")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{nodes := Nodes, kills := Kills, group_size := Size, gateways := Gateways} = Options) ->
    maybe
        ok ?= at_least(0, [nodes, kills], Options),
        ok ?= at_least(1, [gateways, hosts, batch, every_ms], Options),
        ok ?= at_least(2, [group_size], Options),
        ok ?= at_most([{nodes, 1000}, {kills, 100}, {hosts, 500}], Options),
        ok ?= case Nodes of
            1 -> {error, "--nodes must be 0 or at least 2, not 1: one node has none to write to"};
            _ -> ok
        end,
        ok ?= case {Nodes, Kills} of
            {0, 0} -> {error, "--nodes 0 and --kills 0 leave nothing to do"};
            _ -> ok
        end,
        ok ?= case Gateways < Size of
            true -> ok;
            false -> {error, "--gateways must be less than --group-size"}
        end,
        {ok, Options}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(Options, Output) ->
    maybe
        ok ?= upgrade(Options, Output),
        ok ?= resume(Options, Output)
    end.

%% ---------------------------------------------------------------- the upgrade

upgrade(#{nodes := 0}, _) -> ok;
upgrade(#{nodes := Nodes} = Options, Output) ->
    Params = maps:with([nodes, group_size, gateways, hosts, batch, every_ms], Options),
    Started = sderl_bench_output:now(),
    Outcome = sderl_bench_upgrade:run(Params, io_lib:format("~w nodes", [Nodes])),
    ok = sderl_progress:done(),
    maybe
        {ok, Metrics} ?= Outcome,
        Of = fun(Key) -> sderl_table:number(map_get(Key, Metrics)) end,
        ok = sderl_bench_output:say(Output, [
            io_lib:format("A rolling upgrade of ~w nodes, ~w at a time, under load; ",
                          [Nodes, map_get(batch, Options)]), sderl_bench_machine:text(), "\n",
            sderl_table:text(["", ""], [
                ["upgraded nodes", Of(nodes_upgraded)],
                ["time, s", Of(upgrade_s)],
                ["messages", Of(sent)],
                ["acknowledged by their receivers", Of(acknowledged)],
                ["sent again", Of(again)],
                ["lost", Of(lost_messages)],
                ["names missing", Of(names_missing)]
            ])
        ]),
        ok ?= sderl_bench_output:write(Output, sderl_bench_output:result(
            upgrade, Params#{part => upgrade}, Metrics, Started)),
        well(Metrics, Nodes)
    else
        {error, Text} when is_list(Text) -> {error, Text};
        {error, Reason} -> {error, sderl_bench_reason:text(Reason)}
    end.

well(#{lost_messages := 0, names_missing := 0, nodes_reported := Nodes, nodes_upgraded := Nodes},
     Nodes) ->
    ok;
well(#{lost_messages := Lost, names_missing := Missing, nodes_reported := Reported,
       nodes_upgraded := Upgraded}, Nodes) ->
    {error, io_lib:format("~w messages are lost and ~w names missing; of ~w nodes ~w have the new "
                          "release and ~w answer", [Lost, Missing, Nodes, Upgraded, Reported])}.

%% ---------------------------------------------------------------- the kills

resume(#{kills := 0}, _) -> ok;
resume(#{kills := Points}, Output) ->
    Started = sderl_bench_output:now(),
    Bar = sderl_progress:reporter("the service is killed"),
    All = Points * length(sderl_bench_resume:operations()),
    Counter = counters:new(1, []),
    Told = fun(#{operation := Operation} = Ended) ->
        ok = counters:add(Counter, 1, 1),
        Done = counters:get(Counter, 1),
        ok = sderl_progress:done(),
        ok = sderl_bench_output:say(Output, io_lib:format("~w/~w ~w: ~ts~n", [
            Done, All, Operation,
            case Ended of
                #{why := Why} -> ["did not: ", Why];
                #{resumed := true} -> "ended as the file says"
            end
        ])),
        Bar(Done, All)
    end,
    Outcome = sderl_bench_ops_site:with("resume", 2, folders, fun(Site) ->
        rounds(1, Points, Told, Site, [])
    end),
    ok = sderl_progress:done(),
    maybe
        {ok, Outcomes} ?= Outcome,
        Metrics = kills(Outcomes),
        ok = sderl_bench_output:say(Output, ["\nThe operations service, killed at points of each "
                                             "operation\n", table(Outcomes)]),
        ok ?= sderl_bench_output:write(Output, sderl_bench_output:result(
            upgrade, #{part => resumed, points => Points}, Metrics, Started)),
        case [Why || #{why := Why} <- Outcomes] of
            [] -> ok;
            [Why | _] -> {error, ["not all ended as the file says: ", Why]}
        end
    else
        {error, Reason} -> {error, sderl_bench_reason:text(Reason)}
    end.

rounds(Point, Points, _, _, Outcomes) when Point > Points -> {ok, Outcomes};
rounds(Point, Points, Told, Site0, Outcomes) ->
    maybe
        {ok, {More, Site}} ?= sderl_bench_resume:round(Point, Points, Told, Site0),
        rounds(Point + 1, Points, Told, Site, Outcomes ++ More)
    end.

kills(Outcomes) ->
    #{
        kills => length(Outcomes),
        resumed => resumed(Outcomes),
        twice => lists:sum([Twice || #{twice := Twice} <- Outcomes]),
        resumed_by_operation => #{Operation => resumed(of_operation(Operation, Outcomes))
                                  || Operation <- sderl_bench_resume:operations()}
    }.

of_operation(Wanted, Outcomes) ->
    [Outcome || #{operation := Operation} = Outcome <- Outcomes, Operation =:= Wanted].

resumed(Outcomes) -> length([ok || #{resumed := true} <- Outcomes]).

table(Outcomes) ->
    sderl_table:text(["operation", "kills", "ended as the file says", "ran twice"], [
        begin
            Mine = of_operation(Operation, Outcomes),
            [atom_to_list(Operation), integer_to_list(length(Mine)),
             integer_to_list(resumed(Mine)),
             integer_to_list(lists:sum([Twice || #{twice := Twice} <- Mine]))]
        end
     || Operation <- sderl_bench_resume:operations()
    ]).
