%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_standard).
-moduledoc """
`bin/sderl bench standard`: the runs whose tables are in README, printed in Markdown.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).

-doc false.
-spec summary() -> string().
summary() -> "the runs behind the tables in README, printed in Markdown".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Runs the registry benchmark on 10 nodes with 1, 20 and 100 clients a node, and on 100
            nodes in 10 groups, then the benchmarks of joining, routing, placement and plans; prints
            their tables in Markdown. Takes some twenty minutes; other projects' registries, where
            they are given, run beside ours and make it longer.
            """,
        arguments => [
            #{
                name => seconds,
                long => "-seconds",
                type => integer,
                default => 10,
                help => {"[--seconds S]", ["how long each run measures (10)"]}
            },
            #{
                name => repeat,
                long => "-repeat",
                type => integer,
                default => 3,
                help => {"[--repeat K]", ["runs of each (3)"]}
            },
            sderl_bench_peer:option()
        ]
    }.

%% {Implementations, Nodes, Group size, Clients a node}
-define(RUNS, [
    {"s_group,yardstick,global,pg", 10, 10, 1},
    {"s_group,yardstick,global,pg", 10, 10, 20},
    {"s_group,yardstick,global,pg", 10, 10, 100},
    {"s_group,yardstick", 100, 10, 20}
]).

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{seconds := Seconds, repeat := Repeat} = Options) when Seconds >= 1, Repeat >= 1 ->
    maybe
        {ok, Folders} ?= sderl_bench_peer:given(maps:get(peer, Options, [])),
        {ok, Registry} ?= checked(?RUNS, lists:sort(maps:keys(Folders)), Options),
        {ok, Options#{registry => Registry}}
    end;
check(_) ->
    {error, "--seconds and --repeat must be at least 1"}.

%% The options of each run of the registry's benchmark.
checked([], _Peers, _Options) ->
    {ok, []};
checked([{Impls, Nodes, Size, Clients} | Runs], Peers, Options) ->
    Args = ["--impl", lists:flatten(lists:join(",", [Impls | Peers])) | given([
        {"--nodes", Nodes}, {"--group-size", Size}, {"--clients", Clients},
        {"--seconds", maps:get(seconds, Options)}, {"--repeat", maps:get(repeat, Options)}
    ])],
    maybe
        {ok, Run} ?= options("registry", sderl_bench_registry_experiment, Args,
                             maps:with([peer], Options)),
        {ok, Others} ?= checked(Runs, Peers, Options),
        {ok, [Run | Others]}
    end.

given(Numbers) -> lists:append([[Name, integer_to_list(Number)] || {Name, Number} <- Numbers]).

%% Options as from a command line, with `More`.
options(Name, Module, Args, More) ->
    {ok, Parsed} = sderl_command:parse(Args, ["bench", Name], Module:command()),
    Module:check(maps:merge(Parsed, More)).

%% {Name, Module, Arguments}: all other options are the defaults.
-define(OTHERS, [
    {"join", sderl_bench_join_experiment, []},
    {"route", sderl_bench_route_experiment, []},
    {"placement", sderl_bench_placement_experiment, []},
    {"plan", sderl_bench_plan_experiment, ["--nodes", "10,20,50,100,200,500"]}
]).

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(Options, Output) ->
    maybe
        {ok, Registry} ?= registries(maps:get(registry, Options), Output, []),
        {ok, Tables} ?= others(?OTHERS, Options, Output, []),
        sderl_bench_output:say(Output, ["\n", markdown(Registry, Options), Tables]),
        sderl_bench_registry_experiment:verdict(Registry)
    end.

registries([], _Output, Runs) ->
    {ok, Runs};
registries([#{nodes := [Nodes], group_size := Size, clients := Clients} = Run | More], Output,
           Runs) ->
    Shape = io_lib:format("~w nodes, groups of ~w, ~w clients a node~n", [Nodes, Size, Clients]),
    sderl_bench_output:say(Output, Shape),
    maybe
        {ok, New} ?= sderl_bench_registry_experiment:measure(Run, Output),
        registries(More, Output, Runs ++ New)
    end.

others([], _, _, Tables) ->
    {ok, Tables};
others([{Name, Module, Args} | More], #{repeat := Repeat} = Options, Output, Tables) ->
    {ok, Checked} = options(Name, Module, Args ++ given([{"--repeat", Repeat}]), #{}),
    sderl_bench_output:say(Output, [Name, "\n"]),
    maybe
        {ok, Results} ?= Module:measure(Checked, Output),
        ok ?= Module:verdict(Results),
        others(More, Options, Output,
               [Tables, "\n", Module:tables(fun sderl_table:markdown/2, Results)])
    end.

markdown(Runs, #{seconds := Seconds, repeat := Repeat}) ->
    Header = [
        "nodes x clients", "registry", "pairs/s", "x yardstick", "x global",
        "register p50 / p99 us", "CPU us/pair", "look-up ns", "links a node"
    ],
    Keys = lists:uniq([key(Run) || Run <- Runs]),
    Rows = [sderl_bench_registry_experiment:markdown_row(key_text(Key), Impl, Mine)
     || Key <- Keys,
        Mine <- [[Run || Run <- Runs, key(Run) =:= Key]],
        Impl <- lists:uniq([Name || #{impl := Name} <- Mine])
    ],
    [
        io_lib:format("`bin/sderl bench standard --seconds ~w --repeat ~w`, ", [Seconds, Repeat]),
        sderl_bench_machine:text(),
        [": medians (least..greatest)" || Repeat > 1],
        "\n\n",
        sderl_table:markdown(Header, Rows)
    ].

key(#{params := #{nodes := Nodes, group_size := Size, clients := Clients}}) ->
    {Nodes, Size, Clients}.

key_text({Nodes, Nodes, Clients}) -> io_lib:format("~w x ~w", [Nodes, Clients]);
key_text({Nodes, Size, Clients}) ->
    io_lib:format("~w in groups of ~w x ~w", [Nodes, Size, Clients]).
