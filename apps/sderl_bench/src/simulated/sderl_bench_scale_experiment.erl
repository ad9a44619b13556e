%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_scale_experiment).
-moduledoc """
`bin/sderl bench scale`: how the design scales, with simulated nodes (`m:sderl_sim_scale`). See
docs/scaling.md.

One result for each number of nodes and group size. Metrics, as in the JSON output:

| metric | meaning |
|---|---|
| `groups` | groups in the ring |
| `links_per_node_mean`, `links_per_node_max` | links of a node; a gateway has the most |
| `mesh_links_per_node` | what a full mesh of as many nodes has |
| `heartbeats_per_node_s` | messages that a node sends in a second while nothing happens |
| `alone_messages`, `alone_bytes` | for one registration while nobody else writes: medians |
| `busy_messages`, `busy_bytes` | for a registration when every member of the group has a client that registers without a pause |
| `admit_ms` | from `add_nodes` until the new node counts: `p50`, `max`, simulated |
| `heal_ms` | from the return of the links, after half of a group was cut off, until it is one component |
| `takeover_ms` | from the death of the coordinator's node until the others are one component |
| `boot_ms` | from the start of the last node until each group is one component |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-import(sderl_bench_experiment, [option/5, at_least/3, numbers/4]).

-doc false.
-spec summary() -> string().
summary() -> "links, messages and times of thousands of simulated nodes".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Thousands of simulated nodes in overlapping groups, in one virtual machine: links of a
            node, messages and bytes of a registration, and how long changes take. Times are
            simulated: a link takes --delay, a process up to 2 ms, nothing else takes time.
            """,
        arguments => [
            option(nodes, "LIST", string, "1000,10000",
                   "numbers of nodes, with commas between them"),
            option(group_size, "LIST", string, "10,30,100", "members of a group"),
            option(samples, "K", integer, 10, "groups that are measured, of those in the world"),
            option(names, "N", integer, 1000, "names that each of them holds"),
            option(delay, "MS", integer, 2, "ms that a message takes over a link, one way"),
            option(seed, "S", integer, 1, "seed of all random choices"),
            sderl_command:option(plot, "FILE", string, "draw the results, as SVG")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{nodes := Nodes, group_size := Sizes} = Options) ->
    maybe
        {ok, Ns} ?= numbers("--nodes", Nodes, 2, 20_000),
        {ok, Ss} ?= numbers("--group-size", Sizes, 2, 500),
        ok ?= at_least(1, [samples, delay], Options),
        ok ?= at_least(0, [names], Options),
        {ok, Options#{nodes := Ns, group_size := Ss}}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{nodes := Nodes, group_size := Sizes} = Options, Output) ->
    Runs = [{N, S} || N <- Nodes, S <- Sizes],
    maybe
        {ok, Results} ?= measure(Runs, Options, Output, []),
        sderl_bench_output:say(Output, ["\n", title(Options), "\n\n", table(Results)]),
        plot(Options, Results, Output)
    end.

measure([], _, _, Done) ->
    {ok, lists:reverse(Done)};
measure([{N, Size} | Runs], Options, Output, Done) ->
    Params = (maps:with([samples, names, seed], Options))#{nodes => N, group_size => Size,
                                                           delay_ms => map_get(delay, Options)},
    Started = sderl_bench_output:now(),
    Metrics = metrics(N, in_a_process(fun() -> sderl_sim_scale:run(Params, progress(N, Size)) end)),
    sderl_progress:done(),
    maybe
        ok ?= sderl_bench_output:write(Output,
                                       sderl_bench_output:result(scale, Params, Metrics, Started)),
        measure(Runs, Options, Output, [{N, Size, Metrics} | Done])
    end.

%% Each world has a heap of its own, which is freed with its process. (The result is its exit
%% reason.)
-dialyzer({nowarn_function, in_a_process/1}).
in_a_process(Fun) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive
        {'DOWN', Ref, process, Pid, {result, Result}} -> Result;
        {'DOWN', Ref, process, Pid, Reason} -> exit(Reason)
    end.

%% Each part begins after about this percentage of the time.
progress(N, Size) ->
    Draw = sderl_progress:reporter(io_lib:format("~w nodes, groups of ~w", [N, Size])),
    Begins = #{boot => 0, idle => 45, names => 55, alone => 57, busy => 63, admit => 73, heal => 78,
               takeover => 97},
    fun(Part) -> Draw(map_get(Part, Begins), 100) end.

metrics(N, #{groups := Groups, links_mean := Mean, links_max := Max,
             heartbeats_per_node_s := Beats} = R) ->
    Median = fun(Key) -> sderl_table:median(map_get(Key, R)) end,
    Times = maps:from_list([{Key, #{p50 => Median(Key), max => lists:max([0 | map_get(Key, R)])}}
                            || Key <- [admit_ms, heal_ms, takeover_ms, boot_ms]]),
    Messages = maps:from_list([{Key, Median(Key)}
                               || Key <- [alone_messages, alone_bytes, busy_messages, busy_bytes]]),
    maps:merge(maps:merge(Times, Messages), #{
        groups => Groups, links_per_node_mean => Mean, links_per_node_max => Max,
        mesh_links_per_node => N - 1, heartbeats_per_node_s => Beats
    }).

title(#{samples := K, names := Names, delay := Delay, seed := Seed}) ->
    io_lib:format("links of ~w ms each way; ~w groups measured, with ~w names each: median / "
                  "greatest; seed ~w", [Delay, K, Names, Seed]).

table(Results) ->
    Num = fun sderl_table:number/1,
    sderl_table:text(
        ["nodes", "group", "links mean", "links max", "full mesh", "msgs alone", "bytes alone",
         "msgs busy", "bytes busy", "hb/node/s", "admit ms", "heal ms", "takeover ms", "boot ms"],
        [
            [Num(N), Num(Size) | [Num(map_get(K, M))
                                  || K <- [links_per_node_mean, links_per_node_max,
                                           mesh_links_per_node, alone_messages, alone_bytes,
                                           busy_messages, busy_bytes, heartbeats_per_node_s]]] ++
            [[Num(P50), " / ", Num(Max)]
             || K <- [admit_ms, heal_ms, takeover_ms, boot_ms],
                #{p50 := P50, max := Max} <- [map_get(K, M)]]
         || {N, Size, M} <- Results
        ]
    ).

plot(#{plot := Name}, Results, Output) ->
    case file:write_file(Name, sderl_bench_scale_plot:svg(Results)) of
        ok -> sderl_bench_output:say(Output, ["\nplot: ", Name, "\n"]);
        {error, Reason} -> {error, ["cannot write ", Name, ": ", file:format_error(Reason)]}
    end;
plot(_, _, _) ->
    ok.
