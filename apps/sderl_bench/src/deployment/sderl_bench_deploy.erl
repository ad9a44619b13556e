%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_deploy).
-moduledoc """
Compares deployments by the operations service with a bare loop, on hosts of
`m:sderl_bench_ops_hosts`.

All nodes run one release, which the hosts have beforehand: one more node on each host stays up, and
keeps it there. The time is measured from the request until the service reports that all is as the
file says. The bare loop starts copies of the instance folders that the service laid out, with the
same commands and environment and as many at a time; the service is stopped (`SIGSTOP`) meanwhile.
""".

-export([with/4, pair/4, metrics/2, at_once/1, once/2, simulated/2]).
-export_type([params/0, site/0, side/0]).

-doc """
The hosts are OpenSSH `servers` in network namespaces, on one `loopback`, or `folders`.
`release_kib` is the size of random bytes in the release, which do not compress.
""".
-type params() :: #{
    nodes := pos_integer(),
    hosts := pos_integer(),
    kind := servers | loopback | folders,
    release_kib := non_neg_integer(),
    atom() => term()
}.

-type site() :: #{
    params := params(),
    folder := file:filename(),
    hosts := sderl_bench_ops_hosts:hosts(),
    service := sderl_bench_ops_service:service(),
    prepared := #{atom() => term()}
}.

-doc "The side that comes first in a pair.".
-type side() :: ops | bare.

-define(BARE_MS, 1_800_000).
%% As many steps at a time as the service takes by default (`m:sderl_ops_choose`).
-define(STEPS, 8).

-doc "How many nodes are started at a time on each of `Hosts` hosts.".
-spec at_once(Hosts :: pos_integer()) -> pos_integer().
at_once(Hosts) when Hosts =< ?STEPS -> max(1, ?STEPS div Hosts);
at_once(_) -> 1.

-doc """
Starts hosts and the service and brings the release to all hosts, calls `Fun`, and ends all of it.
""".
-spec with(params(), Label :: unicode:chardata(), Progress :: boolean(),
           fun((site()) -> {ok, Result} | {error, term()})) ->
    {ok, Result} | {error, term()}.
with(#{nodes := Nodes, hosts := Count, kind := Kind} = Params, Label, Progress, Fun) ->
    maybe
        ok ?= sderl_fleet:fits(Nodes + Count),
        sderl_bench_ops_site:with("deploy", Count, Kind, fun(Started) ->
            Site = Started#{params => Params, prepared => #{}},
            maybe
                {ok, Prepared} ?= prepare(Site, [Label || Progress]),
                Fun(Site#{prepared := Prepared})
            end
        end)
    end.

%% ---------------------------------------------------------------- operations

%% Transfer and unpacking, and a node on each host that keeps the release there.
prepare(#{folder := Folder, hosts := Hosts, params := #{hosts := Count} = Params} = Site, Label) ->
    ok = make_release(Params, Folder),
    Before = sderl_bench_ops_hosts:bytes(Hosts),
    maybe
        {ok, Seconds} ?= apply_file(0, Label, Site),
        Archives = filelib:wildcard(filename:join(Folder, "s/**/*.tar.gz")),
        Size = lists:sum([filelib:file_size(File) || File <- Archives]),
        Sent = element(2, between(Before, sderl_bench_ops_hosts:bytes(Hosts))),
        {ok, #{
            prepare_s => Seconds,
            archive_bytes => Size,
            ops_bytes_out => Sent,
            ops_archives_out => case Sent of undefined -> undefined; _ -> Sent / Size end,
            hosts => Count
        }}
    end.

between({In, Out}, {ThenIn, ThenOut}) -> {ThenIn - In, ThenOut - Out};
between(undefined, _) -> {undefined, undefined}.

make_release(#{release_kib := Kib}, Folder) ->
    {Bytes, _} = rand:bytes_s(Kib * 1024, rand:seed_s(exsss, 1)),
    App = filename:join(Folder, "payload/ebin/payload.app"),
    File = filename:join(Folder, "payload/priv/bytes"),
    ok = filelib:ensure_dir(App),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(App, "{application, payload, [{vsn, \"1\"}, {modules, []}]}.\n"),
    file:write_file(File, Bytes).

%% Applies a file with `Nodes` nodes besides those that stay; seconds until all is as it says.
apply_file(Nodes, Label, Site) ->
    sderl_bench_ops_site:apply_file(cluster(Nodes, Site), Label, Site).

cluster(Nodes, #{hosts := Hosts, folder := Folder, params := #{hosts := Count}}) ->
    Provider = sderl_bench_ops_hosts:provider(Hosts),
    Code = [unicode:characters_to_binary(Path)
            || Path <- [sderl_bench_ops_site:library(),
                        filename:join(Folder, "payload/ebin")]],
    Family = #{release => code, domains => [all]},
    #{
        cluster => bench,
        providers => #{lab => Provider(Count)},
        releases => #{code => #{code => Code, applications => [sderl], start_timeout_s => 300}},
        domains => #{all => #{provider => lab}},
        families => maps:merge(
            #{stay => Family#{count => Count, limits => #{per_host => 1}}},
            #{n => Family#{count => Nodes} || Nodes > 0}
        )
    }.

%% ---------------------------------------------------------------- a pair

-doc "One deployment by operations and one by the bare loop.".
-spec pair(First :: side(), Number :: pos_integer(), Label :: [unicode:chardata()], site()) ->
    {ok, #{atom() => term()}} | {error, term()}.
pair(First, Number, Label, Site) ->
    Sides = case First of
        ops -> [ops, bare];
        %% The bare loop starts copies of what the service laid out.
        bare when Number > 1 -> [bare, ops];
        bare -> [ops, bare]
    end,
    maybe
        {ok, Metrics} ?= sides(Sides, Label, Site, #{first => hd(Sides)}),
        #{ops_s := Ops, bare_s := Bare, ops_all_cpu_s := OpsCpu, bare_cpu_s := BareCpu} = Metrics,
        {ok, Metrics#{
            overhead_pct => 100 * (Ops / Bare - 1),
            cpu_overhead_pct => 100 * (OpsCpu / BareCpu - 1),
            other_s => Ops - Bare
        }}
    end.

sides([], _, _, Metrics) -> {ok, Metrics};
sides([Side | Sides], Label, Site, Metrics) ->
    maybe
        {ok, More} ?= side(Side, Label, Site),
        sides(Sides, Label, Site, maps:merge(Metrics, More))
    end.

side(ops, Label, #{hosts := Hosts, service := Service, params := Params} = Site) ->
    #{nodes := Nodes, hosts := Count} = Params,
    Bytes = sderl_bench_ops_hosts:bytes(Hosts),
    Cpu = sderl_bench_ops_service:cpu_ms(Service),
    HostsCpu = sderl_bench_ops_hosts:cpu_ms(Hosts),
    maybe
        {ok, Seconds} ?= apply_file(Nodes, [[Text, ", operations"] || Text <- Label], Site),
        {In, Out} = between(Bytes, sderl_bench_ops_hosts:bytes(Hosts)),
        Used = sderl_bench_ops_service:cpu_ms(Service) - Cpu,
        UsedThere = sderl_bench_ops_hosts:cpu_ms(Hosts) - HostsCpu,
        ok = copy(Site),
        {ok, _} ?= apply_file(0, [[Text, ", they are stopped"] || Text <- Label], Site),
        {ok, #{
            ops_s => Seconds,
            ops_cpu_s => Used / 1000,
            ops_all_cpu_s => (Used + UsedThere) / 1000,
            control_bytes_per_host => case In of undefined -> undefined; _ -> (In + Out) / Count end
        }}
    end;
side(bare, Label, #{hosts := Hosts, service := Service, params := #{hosts := Count}} = Site) ->
    ok = sderl_bench_ops_service:signal("STOP", Service),
    try
        sderl_progress:watching([Label, ", the bare loop"],
                                fun(none) -> {started(Site), none} end, none, fun() ->
            Cpu = sderl_bench_ops_hosts:cpu_ms(Hosts),
            maybe
                {ok, Seconds} ?= bare(lists:seq(1, Count), Site),
                Used = sderl_bench_ops_hosts:cpu_ms(Hosts) - Cpu,
                {ok, #{bare_s => Seconds, bare_cpu_s => Used / 1000}}
            end
        end)
    after
        _ = [on_host(Number, ["end"], [], Site) || Number <- lists:seq(1, Count)],
        ok = sderl_bench_ops_service:signal("CONT", Service)
    end.

started(Site) ->
    Booted = [File || Folder <- folders(Site),
                      File <- filelib:wildcard(filename:join(Folder, "bare/*/booted"))],
    io_lib:format("~w started", [length(Booted)]).

%% The instances as they were laid out, with nothing of what ran there.
copy(Site) ->
    lists:foreach(fun(Folder) ->
        Bare = filename:join(Folder, "bare"),
        _ = file:del_dir_r(Bare),
        ok = filelib:ensure_path(Bare),
        Nodes = filename:join([Folder, "nodes", "n*"]),
        _ = os:cmd("cp -a " ++ Nodes ++ " '" ++ Bare ++ "'"),
        lists:foreach(fun(Node) ->
            _ = [file:delete(filename:join(Node, Name)) || Name <- ["started", "booted"]],
            _ = [file:delete(File) || File <- filelib:wildcard(filename:join(Node, "log/*"))]
        end, filelib:wildcard(filename:join(Bare, "*")))
    end, folders(Site)).

%% The folder of the service on each host.
folders(#{folder := Folder, hosts := Hosts, params := #{hosts := Count}}) ->
    case sderl_bench_ops_hosts:kind(Hosts) of
        folders ->
            [filename:join([Folder, "s", "hosts", "lab", "h" ++ integer_to_list(Number)])
             || Number <- lists:seq(1, Count)];
        _ ->
            [filename:join([Home, "sderl-ops", "bench"])
             || Home <- sderl_bench_ops_hosts:homes(Hosts)]
    end.

%% All hosts are ready before any begins. Seconds until all nodes of all hosts are started.
bare(Numbers, #{params := #{hosts := Count}} = Site) ->
    Caller = self(),
    Run = ["run", integer_to_list(at_once(Count))],
    Ready = fun
        (1) ->
            Caller ! {ready, self()},
            receive go -> ok end;
        (2) -> ok
    end,
    Tasks = [sderl_fleet_task:start(fun() -> on_host(Number, Run, [{seen, Ready}], Site) end)
             || Number <- Numbers],
    Waiting = [receive {ready, Pid} -> Pid after ?BARE_MS -> error(bare_not_ready) end
               || _ <- Numbers],
    Start = erlang:monotonic_time(microsecond),
    _ = [Pid ! go || Pid <- Waiting],
    Results = [sderl_fleet_task:result(Task, ?BARE_MS) || Task <- Tasks],
    Took = (erlang:monotonic_time(microsecond) - Start) / 1.0e6,
    case [Result || Result <- Results, Result =/= {ok, {ok, [~"ready", ~"done"]}}] of
        [] -> {ok, Took};
        [Bad | _] -> {error, io_lib:format("the bare loop failed: ~0tP", [Bad, 20])}
    end.

on_host(Number, [Verb | More], Options, #{hosts := Hosts} = Site) ->
    Script = filename:join(code:priv_dir(sderl_bench), "bare.sh"),
    Bare = filename:join(lists:nth(Number, folders(Site)), "bare"),
    Words = ["sh", Script, Verb, Bare | More],
    {Program, Args, Env} = case sderl_bench_ops_hosts:kind(Hosts) of
        folders ->
            {Inside, Variables} = sderl_bench_ops_hosts:inside(Words, Hosts),
            {os:find_executable("sh"), tl(Inside), Variables};
        _ ->
            Quoted = lists:flatten(lists:join(" ", ["'" ++ Word ++ "'" || Word <- Words])),
            sderl_bench_ops_hosts:ssh(Number, Quoted, Hosts)
    end,
    All = maps:from_list([{timeout, ?BARE_MS}, {env, Env} | Options]),
    case Verb of
        "run" -> sderl_bench_program:ask(Program, Args, ["ready?", "go"], All);
        "end" -> sderl_bench_program:run(Program, Args, All)
    end.

%% ---------------------------------------------------------------- all pairs

-doc "The medians of all pairs, with the metrics of the preparation.".
-spec metrics([#{atom() => term()}, ...], site()) -> #{atom() => term()}.
metrics(Pairs, #{service := Service, prepared := Prepared}) ->
    Of = fun(Key) -> [Value || #{Key := Value} <- Pairs, is_number(Value)] end,
    {Overhead, Low, High} = sderl_bench_series:median_interval(Of(overhead_pct)),
    {CpuOverhead, CpuLow, CpuHigh} = sderl_bench_series:median_interval(Of(cpu_overhead_pct)),
    (maps:remove(hosts, Prepared))#{
        deploy_overhead_pct => Overhead,
        deploy_overhead_pct_low => Low,
        deploy_overhead_pct_high => High,
        cpu_overhead_pct => CpuOverhead,
        cpu_overhead_pct_low => CpuLow,
        cpu_overhead_pct_high => CpuHigh,
        ops_all_cpu_s => sderl_table:median(Of(ops_all_cpu_s)),
        bare_cpu_s => sderl_table:median(Of(bare_cpu_s)),
        ops_s => sderl_table:median(Of(ops_s)),
        bare_s => sderl_table:median(Of(bare_s)),
        other_s => sderl_table:median(Of(other_s)),
        ops_cpu_s => sderl_table:median(Of(ops_cpu_s)),
        control_bytes_per_host => case Of(control_bytes_per_host) of
            [] -> undefined;
            Bytes -> sderl_table:median(Bytes)
        end,
        ops_memory_mib => sderl_bench_ops_service:memory_mib(Service),
        pairs => length(Pairs)
    }.

%% ---------------------------------------------------------------- one, and simulated

-doc """
One deployment by operations alone; `kind` may also be `simulated`, then `nodes` are on `hosts` of
the simulator. `deploy_s` is from the request until all is as the file says.
""".
-spec once(#{atom() => term()}, Label :: unicode:chardata()) ->
    {ok, #{atom() => term()}} | {error, term()}.
once(#{kind := simulated, nodes := Nodes, hosts := Hosts}, _) ->
    #{makespan_s := Seconds, done := Done} = Metrics = simulated(Hosts, Nodes div Hosts),
    case Done of
        true -> {ok, Metrics#{deploy_s => Seconds, nodes_per_s => Nodes / Seconds}};
        false -> {error, {said, "not all simulated nodes were up in the end"}}
    end;
once(#{nodes := Nodes} = Params, Label) ->
    with(Params, [Label, ": hosts"], true, fun(Site) ->
        #{service := Service, prepared := Prepared} = Site,
        maybe
            {ok, Seconds} ?= apply_file(Nodes, [Label], Site),
            {ok, Prepared#{
                deploy_s => Seconds,
                nodes_per_s => Nodes / Seconds,
                ops_memory_mib => sderl_bench_ops_service:memory_mib(Service)
            }}
        end
    end).

-doc "`Hosts` hosts with `PerHost` nodes each, in the simulator of operations.".
-spec simulated(Hosts :: pos_integer(), PerHost :: pos_integer()) -> #{atom() => term()}.
simulated(Hosts, PerHost) ->
    #{makespan_ms := Makespan, timers_alone_ms := Timers, other_ms := Other, took_ms := Took} =
        Figures = sderl_ops_world_scale:bring_up(Hosts, PerHost),
    (maps:with([steps, decisions, archives, done], Figures))#{
        state_mib => map_get(state_bytes, Figures) / 1_048_576,
        deploy_other_s => Other / 1000,
        makespan_s => Makespan / 1000,
        timers_s => Timers / 1000,
        simulated_in_s => Took / 1000
    }.
