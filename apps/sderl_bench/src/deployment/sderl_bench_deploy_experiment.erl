%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_deploy_experiment).
-moduledoc """
`bin/sderl bench deploy`: what operations add to the start of virtual machines.

Real nodes on hosts that are OpenSSH servers on this machine, deployed by the service of operations,
beside a bare loop that starts the same virtual machines (`m:sderl_bench_deploy`), in pairs that
take turns. And 10,000 nodes in the simulator of operations (`m:sderl_ops_world`), where a start is
a timer.

| metric | meaning |
|---|---|
| `deploy_overhead_pct` | how much longer a deployment by operations takes than the bare loop, in percent: median of the pairs; `..._low` and `..._high` are its interval (95 % or more, `sderl_bench_series:median_interval/1`) |
| `ops_s`, `bare_s`, `other_s` | medians of the two, and of their difference |
| `cpu_overhead_pct` | the same for the processor time of all that runs for the deployment: nodes, shells, servers, the service. With more nodes than cores it decides the time, and other load on the machine does not change it |
| `ops_all_cpu_s`, `bare_cpu_s` | medians of that processor time |
| `prepare_s` | transfer and unpacking, and the start of one node on each host, which keeps the release there |
| `archive_bytes` | size of the release's archive |
| `ops_bytes_out` | bytes that the machine of the service sent meanwhile, headers and control included; `ops_archives_out` as a multiple of the archive |
| `control_bytes_per_host` | bytes from and to a host in a deployment, headers included |
| `ops_cpu_s` | processor time of the service and the programs that it ran, in a deployment |
| `ops_memory_mib` | the most memory of the service |
| `overhead_pct`, `first` | of each pair; which side was the first |
| `deploy_other_s` | simulated: the makespan less that of the same timers alone |
| `makespan_s`, `timers_s` | these two |
| `archives` | archives that the service sent; the hosts gave the others to each other |
| `state_mib` | memory of the desired state, the observed state and the history, without the programs and binaries of a service |
| `steps`, `decisions`, `simulated_in_s` | steps begun, how often the service decided, time that the simulation took |

Metrics that are not measured are null: bytes where hosts share a loopback or are folders.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, chosen/4]).

-doc false.
-spec summary() -> string().
summary() -> "a deployment by operations beside a bare loop; 10,000 simulated nodes".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Deploys nodes to hosts, which are OpenSSH servers on this machine, by the service of
            operations and by a bare loop that starts the same virtual machines, by turns. Shows how
            much longer the service takes, the bytes that it sends, and its memory. Then deploys
            very many nodes in the simulator. A node takes some 50 MB.
            """,
        arguments => [
            option(nodes, "N", integer, 100, "nodes of a deployment"),
            option(hosts, "H", integer, 4, "hosts"),
            option(pairs, "P", integer, 10, "pairs of deployments; 0 for none"),
            option(via, "WAY", string, "servers",
                   "servers (OpenSSH, in network namespaces where these can be had), loopback, or "
                   "folders"),
            option(release_kib, "K", integer, 10_240, "size of what is put into the release"),
            option(simulate, "HxN", string, "139x72",
                   "hosts and nodes on each in the simulator; none for no simulation")
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{via := Via, simulate := Text} = Options) ->
    maybe
        ok ?= at_least(1, [nodes, hosts], Options),
        ok ?= at_least(0, [pairs, release_kib], Options),
        ok ?= at_most([{nodes, 2000}, {hosts, 200}, {pairs, 1000}, {release_kib, 1_048_576}],
                      Options),
        {ok, Kinds} ?= chosen("--via", "way", Via, [servers, loopback, folders]),
        ok ?= one(Kinds),
        {ok, Simulated} ?= simulated(Text),
        ok ?= something(Options, Simulated),
        {ok, Options#{via := hd(Kinds), simulate := Simulated}}
    end.

one([_]) -> ok;
one(_) -> {error, "--via takes one way"}.

something(#{pairs := 0}, none) -> {error, "--pairs 0 and --simulate none leave nothing to do"};
something(_, _) -> ok.

simulated("none") -> {ok, none};
simulated(Text) ->
    case [string:to_integer(Word) || Word <- string:split(Text, "x", all)] of
        [{Hosts, []}, {Nodes, []}] when Hosts >= 1, Nodes >= 1, Hosts * Nodes =< 20_000 ->
            {ok, {Hosts, Nodes}};
        _ ->
            {error, ["--simulate: \"", Text, "\" is not such as 139x72, with at most 20,000 nodes "
                     "in all, and not none"]}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{simulate := Simulate, pairs := Pairs} = Options, Output) ->
    maybe
        ok ?= simulate(Simulate, Output),
        ok ?= deploy(Pairs, Options, Output)
    end.

%% ---------------------------------------------------------------- simulated

simulate(none, _) -> ok;
simulate({Hosts, PerHost}, Output) ->
    Started = sderl_bench_output:now(),
    Label = io_lib:format("~w simulated nodes", [Hosts * PerHost]),
    Metrics = sderl_progress:watching(Label, fun(S) -> {io_lib:format("~w s", [S]), S + 1} end, 0,
                                      fun() -> sderl_bench_deploy:simulated(Hosts, PerHost) end),
    ok = sderl_progress:done(),
    #{deploy_other_s := Other, makespan_s := Makespan, timers_s := Timers, done := Done} = Metrics,
    ok = sderl_bench_output:say(Output, [
        io_lib:format("Simulated: ~w nodes, ~w on each of ~w hosts, a start takes 1 to 3 s, 8 at a "
                      "time on a host: ", [Hosts * PerHost, PerHost, Hosts]),
        sderl_table:number(Makespan), " s, the timers alone ", sderl_table:number(Timers),
        " s, other ", sderl_table:number(Other), " s; ",
        sderl_table:number(map_get(archives, Metrics)), " archives from the service, ",
        sderl_table:number(map_get(state_mib, Metrics)), " MiB of state\n"
    ]),
    Params = #{part => simulated, hosts => Hosts, nodes => Hosts * PerHost},
    maybe
        ok ?= sderl_bench_output:write(Output, sderl_bench_output:result(deploy, Params, Metrics,
                                                                         Started)),
        ok ?= case Done of
            true -> ok;
            false -> {error, "not all simulated nodes were up in the end"}
        end
    end.

%% ---------------------------------------------------------------- real

deploy(0, _, _) -> ok;
deploy(Count, Options, Output) ->
    Params = (maps:with([nodes, hosts, release_kib], Options))#{kind => map_get(via, Options)},
    Started = sderl_bench_output:now(),
    Measured = sderl_bench_deploy:with(Params, "hosts, and the release on them", true,
                                       fun(#{hosts := Hosts} = Site) ->
        Kind = sderl_bench_ops_hosts:kind(Hosts),
        maybe
            ok ?= begun(Kind, Site, Output),
            {ok, Pairs} ?= pairs(1, Count, Params#{kind := Kind}, Site, Output, []),
            {ok, {Kind, Pairs, sderl_bench_deploy:metrics(Pairs, Site)}}
        end
    end),
    ok = sderl_progress:done(),
    maybe
        {ok, {Kind, Pairs, Metrics}} ?= Measured,
        ok = show(Pairs, Metrics, Output),
        sderl_bench_output:write(Output, sderl_bench_output:result(
            deploy, Params#{part => summary, kind := Kind}, Metrics, Started))
    else
        {error, Reason} -> {error, sderl_bench_reason:text(Reason)}
    end.

begun(Kind, #{prepared := Prepared, params := #{hosts := Count, nodes := Nodes}}, Output) ->
    #{prepare_s := Seconds, archive_bytes := Size, ops_archives_out := Archives} = Prepared,
    ok = sderl_progress:done(),
    sderl_bench_output:say(Output, [
        io_lib:format("~w nodes on ~w hosts (~ts), ~w at a time on each; ",
                      [Nodes, Count, words_of(Kind), sderl_bench_deploy:at_once(Count)]),
        sderl_bench_machine:text(),
        io_lib:format("~nThe release, ~.1f MB, on all hosts with a node on each: ", [Size / 1.0e6]),
        sderl_table:number(Seconds), " s",
        [[", ", sderl_table:number(Archives), " archives sent"] || Archives =/= undefined], "\n"
    ]).

words_of(namespaces) -> "OpenSSH in network namespaces";
words_of(loopback) -> "OpenSSH on one loopback, as no network namespaces can be had";
words_of(folders) -> "folders".

pairs(Number, Count, _, _, _, Pairs) when Number > Count ->
    {ok, lists:reverse(Pairs)};
pairs(Number, Count, Params, Site, Output, Pairs) ->
    First = case Number rem 2 of 1 -> ops; 0 -> bare end,
    Started = sderl_bench_output:now(),
    Label = io_lib:format("~w/~w", [Number, Count]),
    maybe
        {ok, Metrics} ?= sderl_bench_deploy:pair(First, Number, [Label], Site),
        ok = sderl_progress:done(),
        ok = sderl_bench_output:say(Output, [
            Label, ": operations ", sderl_table:number(map_get(ops_s, Metrics)),
            " s, the bare loop ", sderl_table:number(map_get(bare_s, Metrics)), " s, ",
            sderl_table:number(map_get(overhead_pct, Metrics)), " %; processor time ",
            sderl_table:number(map_get(ops_all_cpu_s, Metrics)), " and ",
            sderl_table:number(map_get(bare_cpu_s, Metrics)), " s\n"
        ]),
        ok ?= sderl_bench_output:write(Output, sderl_bench_output:result(
            deploy, Params#{part => pair, run => Number}, Metrics, Started)),
        pairs(Number + 1, Count, Params, Site, Output, [Metrics | Pairs])
    end.

show(Pairs, Metrics, Output) ->
    Of = fun(Key) -> sderl_table:number(map_get(Key, Metrics)) end,
    sderl_bench_output:say(Output, ["\n", sderl_table:text(["", "median"], [
        ["operations, s", Of(ops_s)],
        ["the bare loop, s", Of(bare_s)],
        [io_lib:format("operations take longer by, %, ~w pairs", [length(Pairs)]),
         Of(deploy_overhead_pct)],
        ["  interval of this median", [Of(deploy_overhead_pct_low), " to ",
                                       Of(deploy_overhead_pct_high)]],
        ["processor time of all that runs for operations, s", Of(ops_all_cpu_s)],
        ["  and for the bare loop, s", Of(bare_cpu_s)],
        ["operations need more by, %", Of(cpu_overhead_pct)],
        ["  interval of this median", [Of(cpu_overhead_pct_low), " to ",
                                       Of(cpu_overhead_pct_high)]],
        ["processor time of the service and its programs, s", Of(ops_cpu_s)],
        ["bytes from and to a host", Of(control_bytes_per_host)],
        ["memory of the service, MiB", Of(ops_memory_mib)]
    ])]).
