%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_registry_experiment).
-moduledoc """
`bin/sderl bench registry`: how many names a second a cluster registers and unregisters.

Metrics of one run, as in the JSON output:

| metric | meaning |
|---|---|
| `pairs_per_s` | pairs of register and unregister that all clients completed in a second |
| `register_us`, `unregister_us` | latency, `p50` and `p99`, within 1.6 % |
| `lookup_ns` | one local look-up of a present name, the loop around it subtracted |
| `cpu_us_per_pair` | processor time of all nodes together, per pair: other programs on the machine hardly change it |
| `links_per_node_max`, `bytes`, `bytes_per_op`, ... | connections, traffic and memory as `m:sderl_bench_meter` counts them, an operation being a pair |
| `errors`, `error_reasons` | operations that failed, all told, and up to three reasons |
| `converged` | after the run, all members' tables are the same and hold what they should |
| `settle_ms` | how long after the last call the tables agreed, where a call returns before the other nodes have the change: the work after the last call is in no other metric |
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([measure/2, table/1, markdown_row/3, promises/1, verdict/1]).
-export_type([run/0]).

-import(sderl_bench_experiment, [option/5, at_least/3, known/4, words/1]).

-doc "One run: the implementation's name, what was asked, what was measured.".
-type run() :: #{
    impl := string(),
    params := map(),
    metrics := sderl_bench_registry:metrics()
}.

-doc false.
-spec summary() -> string().
summary() -> "clients on each node register and unregister fresh names".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Clients on each node register and unregister fresh names, each again and again. Several
            implementations run in turns, so that their ratios are of runs under the same
            conditions. Nodes run on this machine with one scheduler each. Implementations of other
            projects need their compiled folders (--peer).
            """,
        arguments => [
            option(impl, "LIST", string, "s_group,yardstick",
                   "implementations, with commas between them: " ++
                   lists:join(", ", sderl_bench_impl:names())),
            sderl_bench_peer:option(),
            #{
                name => group_size, long => "-group-size", type => integer, required => false,
                help => {"[--group-size G]", ["nodes in a group (all of them)"]}
            },
            option(clients, "C", integer, 20, "client processes on each node"),
            option(seconds, "S", integer, 10, "how long each run measures, after 1 s of warm-up"),
            option(names, "N", integer, 0, "names that each group holds beforehand (at least 100)")
            | sderl_bench_series:options(#{nodes => "10", repeat => 1})
              ++ [sderl_bench_profile:option()]
        ]
    }.

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{impl := Text, compare := Compare} = Options) ->
    maybe
        {ok, Folders} ?= sderl_bench_peer:given(maps:get(peer, Options, [])),
        {ok, Modules} ?= impls(if Compare -> all(Folders); true -> words(Text) end),
        {ok, #{nodes := Nodes} = Checked} ?= sderl_bench_series:check(Options),
        ok ?= at_least(1, [clients, seconds], Options),
        ok ?= at_least(0, [names], Options),
        ok ?= divides(Options, Nodes),
        #{repeat := Repeat} = Checked,
        ok ?= sderl_bench_profile:check(length(Modules) * length(Nodes) * Repeat, Checked),
        {ok, Peers} ?= peers([Name || {Name, _} <- Modules], Folders, #{}),
        {ok, (maps:remove(peer, Checked))#{impl := Modules, peers => Peers}}
    end.

%% All implementations; of other projects those whose folders are given.
all(Folders) ->
    [Name || Name <- sderl_bench_impl:names(), not is_peer(Name) orelse is_map_key(Name, Folders)].

is_peer(Name) -> sderl_bench_impl:kind(Name) =:= peer.

peers([], _Folders, Peers) ->
    {ok, Peers};
peers([Name | Names], Folders, Peers) ->
    case is_peer(Name) andalso sderl_bench_peer:find(Name, Folders) of
        false -> peers(Names, Folders, Peers);
        {ok, Peer} -> peers(Names, Folders, Peers#{Name => Peer});
        Error -> Error
    end.

impls(Names) ->
    maybe
        ok ?= known("--impl", "implementation", Names, sderl_bench_impl:names()),
        {ok, [{Name, Module} || Name <- Names, {ok, Module} <- [sderl_bench_impl:module(Name)]]}
    end.

divides(#{group_size := Size}, _) when Size < 1 ->
    {error, io_lib:format("--group-size must be at least 1, not ~w", [Size])};
divides(#{group_size := Size}, Nodes) ->
    case [N || N <- Nodes, N rem Size =/= 0] of
        [] -> ok;
        [N | _] ->
            {error, io_lib:format("--group-size ~w does not divide --nodes ~w: all groups are of "
                                  "equal size here", [Size, N])}
    end;
divides(_, _) ->
    ok.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(Options, Output) ->
    Show = fun(Runs) ->
        sderl_bench_output:say(Output, ["\n", title(Options), "\n\n", table(Runs), notes(Runs)])
    end,
    case measure(Options, Show, Output) of
        {ok, All} -> verdict(All);
        {error, Message} -> {error, Message}
    end.

-doc "Runs the implementations in turn and writes the result of each run.".
-spec measure(#{atom() => term()}, sderl_bench_output:output()) ->
    {ok, [run()]} | {error, sderl_command:text()}.
measure(Options, Output) -> measure(Options, fun(_) -> ok end, Output).

measure(Options, Show, Output) ->
    #{impl := Impls, peers := Peers, nodes := Nodes, repeat := Repeat} = Options,
    Shared = maps:without([impl, peers, repeat, compare], Options),
    Points = [
        (maps:merge(Shared, version(Name, Peers)))#{
            impl => list_to_binary(Name),
            nodes := N,
            group_size => maps:get(group_size, Options, N)
        }
     || N <- Nodes, {Name, _} <- Impls
    ],
    Run = fun(#{impl := Impl} = Params, Label) ->
        {Name, Module} = lists:keyfind(binary_to_list(Impl), 1, Impls),
        Paths = maps:with([paths], maps:get(Name, Peers, #{})),
        case sderl_bench_registry:run(Module, maps:merge(Params, Paths), Label) of
            {ok, #{pairs_per_s := Rate} = Metrics} ->
                sderl_bench_output:say(Output, [string:pad(Label, 28), sderl_table:number(Rate),
                                                " pairs/s\n"]),
                {ok, Metrics};
            Error ->
                Error
        end
    end,
    case sderl_bench_series:run(registry, Points, Repeat, Run, fun(Runs) -> Show(named(Runs)) end,
                                Output) of
        {ok, All} -> {ok, named(All)};
        Error -> Error
    end.

version(Name, Peers) -> maps:with([version], maps:get(Name, Peers, #{})).

named(Runs) -> [R#{impl => binary_to_list(Impl)} || #{params := #{impl := Impl}} = R <- Runs].

title(#{nodes := Nodes, clients := Clients, seconds := Seconds, repeat := Repeat, names := Names} =
          Options) ->
    [
        lists:join(", ", [integer_to_list(N) || N <- Nodes]),
        " nodes in ",
        case Options of
            #{group_size := Size} -> io_lib:format("groups of ~w", [Size]);
            #{} -> "one group"
        end,
        io_lib:format(", ~w clients a node, ~w s", [Clients, Seconds]),
        [io_lib:format(", ~w runs: median (least..greatest)", [Repeat]) || Repeat > 1],
        [io_lib:format(", ~w names held by each group", [Names]) || Names > 0],
        "; ",
        sderl_bench_machine:text()
    ].

-doc """
A table for each number of nodes, with one line for each implementation, medians where there were
several runs.
""".
-spec table([run()]) -> unicode:chardata().
table(Runs) ->
    Sizes = lists:uniq([N || #{params := #{nodes := N}} <- Runs]),
    lists:join("\n", [
        [
            [sderl_bench_series:label(#{nodes => N}, [nodes]) || length(Sizes) > 1],
            ["\n" || length(Sizes) > 1],
            table_of([Run || #{params := #{nodes := M}} = Run <- Runs, M =:= N])
        ]
     || N <- Sizes
    ]).

table_of(Runs) ->
    Names = lists:uniq([Name || #{impl := Name} <- Runs]),
    Bases = [Base || Base <- ["yardstick", "global"], lists:member(Base, Names), length(Names) > 1],
    Header =
        ["", "pairs/s"] ++ ["x " ++ Base || Base <- Bases] ++
            ["register us p50 / p99", "unregister us p50 / p99", "CPU us/pair"] ++
            ["CPU x " ++ Base || Base <- Bases] ++
            ["bytes/pair", "look-up ns", "links", "errors", "converged"],
    sderl_table:text(Header, [row(Name, Bases, Runs) || Name <- Names]).

row(Name, Bases, Runs) ->
    Mine = [Metrics || #{impl := N, metrics := Metrics} <- Runs, N =:= Name],
    Spread = fun(Get) -> sderl_table:spread([Get(M) || M <- Mine]) end,
    [Name, Spread(fun(#{pairs_per_s := V}) -> V end)] ++
        [ratio(Name, Base, pairs_per_s, Runs) || Base <- Bases] ++
        [
            latencies(register_us, Mine),
            latencies(unregister_us, Mine),
            Spread(fun(#{cpu_us_per_pair := V}) -> V end)
        ] ++
        [ratio(Name, Base, cpu_us_per_pair, Runs) || Base <- Bases] ++
        [
            median(Mine, fun(#{bytes_per_op := V}) -> V end),
            median(Mine, fun(#{lookup_ns := V}) -> V end),
            sderl_table:number(lists:max([V || #{links_per_node_max := V} <- Mine])),
            sderl_table:number(lists:sum([V || #{errors := V} <- Mine])),
            converged(Mine)
        ].

converged(Metrics) ->
    case lists:all(fun(#{converged := Converged}) -> Converged end, Metrics) of
        true ->
            case [Ms || #{settle_ms := Ms} <- Metrics, is_integer(Ms)] of
                [] -> "yes";
                Times -> ["after ", sderl_table:spread(Times), " ms"]
            end;
        false ->
            "NO"
    end.

median(Metrics, Get) ->
    sderl_table:number(sderl_table:median([V || M <- Metrics, V <- [Get(M)], is_number(V)])).

latencies(Key, Metrics) ->
    Of = fun(Percentile) -> median(Metrics, fun(#{Key := #{Percentile := V}}) -> V end) end,
    [Of(p50), " / ", Of(p99)].

-doc """
A line of README's table: `Impl`'s median among `Runs`, which were all made under the same
conditions.
""".
-spec markdown_row(unicode:chardata(), Impl :: string(), [run()]) -> [unicode:chardata()].
markdown_row(Label, Impl, Runs) ->
    Mine = [Metrics || #{impl := Name, metrics := Metrics} <- Runs, Name =:= Impl],
    [
        Label,
        Impl,
        sderl_table:spread([V || #{pairs_per_s := V} <- Mine]),
        ratio(Impl, "yardstick", pairs_per_s, Runs),
        ratio(Impl, "global", pairs_per_s, Runs),
        latencies(register_us, Mine),
        median(Mine, fun(#{cpu_us_per_pair := V}) -> V end),
        median(Mine, fun(#{lookup_ns := V}) -> V end),
        sderl_table:number(lists:max([V || #{links_per_node_max := V} <- Mine]))
    ].

%% Each ratio is of two runs of one turn, so that what disturbs the machine disturbs both.
ratio(Name, Base, Metric, Runs) ->
    Of = fun(Wanted) ->
        [Value || #{impl := N, metrics := #{Metric := Value}} <- Runs, N =:= Wanted]
    end,
    Both = lists:zip(Of(Name), Of(Base), trim),
    sderl_table:spread([A / B || {A, B} <- Both, is_number(A), is_number(B), B > 0]).

notes(Runs) ->
    [
        promises(Runs),
        [
            ["\n", Name, ": ", lists:join("; ", Reasons), "\n"]
         || #{impl := Name, metrics := #{error_reasons := [_ | _] = Reasons}} <- Runs
        ]
    ].

-doc """
The meaning of an answer of each registry: without it the numbers would compare different things.
""".
-spec promises([run()]) -> unicode:chardata().
promises(Runs) ->
    Names = lists:uniq([
        {Name, maps:get(version, Params, <<>>)}
     || #{impl := Name, params := Params} <- Runs
    ]),
    [
        "\nWhen a call returns:\n",
        [
            ["  ", Name, [[" ", Version] || Version =/= <<>>], ": ", Module:promise(), "\n"]
         || {Name, Version} <- Names, {ok, Module} <- [sderl_bench_impl:module(Name)]
        ]
    ].

-doc "An error when the tables differed after a run: its numbers are no result then.".
-spec verdict([run()]) -> ok | {error, sderl_command:text()}.
verdict(Runs) ->
    case lists:uniq([Name || #{impl := Name, metrics := #{converged := false}} <- Runs]) of
        [] -> ok;
        Names -> {error, ["the members' tables do not agree: ", lists:join(", ", Names)]}
    end.
