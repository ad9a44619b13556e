%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_experiment).
-moduledoc """
`bin/sderl bench debench`: DE-Bench by `m:sderl_debench`, which says what the metrics mean; here are
its options and tables.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-import(sderl_bench_experiment, [option/5, at_least/3, at_most/2, reals/4, real/4, words/1]).

%% A lower rate makes hardly an operation in a run; a higher one is too much for one machine.
-define(LEAST_RATE, 0.01).
-define(MOST_RATE, 100_000).
%% Each worker is a process with its own names, and a payload is in memory many times.
-define(MOST, [
    {workers, 10_000}, {payload, 10_000_000}, {compute_us, 10_000_000}, {seconds, 86_400},
    {warmup, 3600}, {timeout_ms, 600_000}
]).
-define(MOST_WEIGHT, 1_000_000).
-define(GROUP_SIZE, 10).

-doc false.
-spec summary() -> string().
summary() -> "DE-Bench: nodes talk to one another and register names, stock against s_groups".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            DE-Bench: each node makes its own mix of operations, and no node directs the others:
            spawns and calls to other nodes, registrations of names that all nodes of its cluster or
            group have (a look-up and an unregistration follow on each), and the same of local
            names. Modes: stock (full mesh, global), pg (full mesh, process groups instead of global
            names, eventually consistent), sd (s_groups). Nodes run on this machine with one
            scheduler each.
            """,
        arguments =>
            sderl_bench_series:options(#{nodes => "10", repeat => 1}) ++ [
                option(mode, "LIST", string, "sd",
                       "modes, with commas between them: " ++ modes_text()),
                option(global_pct, "LIST", string, "1",
                       "percent of all operations that register or unregister a global name; "
                       "several are a series"),
                option(clusters, "C", integer, 1,
                       "independent clusters of --nodes nodes at the same time: the machine's load "
                       "stays when their size changes"),
                optional(group_size, "G", integer,
                         "nodes of an s_group (10, or all where these are fewer)"),
                optional(rate, "R", string, "open load: operations a second of each node (20)"),
                optional(workers, "W", integer,
                         "closed load instead: so many workers on each node, each the next "
                         "operation as soon as its last one ends"),
                option(pace, "KIND", string, "poisson", "open load: poisson or even"),
                option(seconds, "S", integer, 10, "how long each run measures"),
                option(warmup, "S", integer, 2, "before that, not counted"),
                option(payload, "B", integer, 10, "bytes that go to another node and back"),
                option(compute_us, "U", integer, 1,
                       "microseconds that the other node computes for each operation"),
                option(p2p, "WHERE", string, "group", "where operations on other nodes go to in "
                                                      "s_groups: group, or any, which makes links"),
                option(weights, "LIST", string, weights_text(sderl_debench_mix:weights()),
                       "how the operations that are not global are split"),
                option(timeout_ms, "MS", integer, 10_000, "how long an operation may take"),
                option(seed, "N", integer, 1,
                       "the same seed gives the same operations at the same times")
            ]
    }.

optional(Name, Shape, Type, Text) ->
    #{default := _} = Option = option(Name, Shape, Type, "", ""),
    #{help := {Usage, _}} = Option,
    (maps:remove(default, Option))#{required => false, help => {Usage, [Text]}}.

modes_text() -> lists:flatten(texts(sderl_debench:modes())).

texts(Atoms) -> lists:join(", ", [atom_to_list(A) || A <- Atoms]).

weights_text(Weights) ->
    lists:flatten(lists:join(",", [
        io_lib:format("~ts=~w", [Unit, W])
     || Unit <- sderl_debench_mix:p2p() ++ [local], W <- [maps:get(Unit, Weights, 0)], W > 0
    ])).

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{mode := ModeText, global_pct := PctText, weights := WeightsText} = Options) ->
    maybe
        {ok, Modes} ?= modes(ModeText, Options),
        ok ?= at_least(1, [clusters, seconds, timeout_ms], Options),
        ok ?= at_least(0, [warmup, payload, compute_us], Options),
        ok ?= at_most(?MOST, Options),
        {ok, Load} ?= load(Options),
        {ok, Pace} ?= one_of("--pace", maps:get(pace, Options), [poisson, even]),
        {ok, P2p} ?= one_of("--p2p", maps:get(p2p, Options), [group, any]),
        {ok, Weights} ?= weights(WeightsText),
        {ok, Pcts} ?= pcts(PctText),
        {ok, #{nodes := Nodes} = Options1} ?= sderl_bench_series:check(Options),
        ok ?= two(Nodes, Weights),
        {ok, Sizes} ?= sizes(lists:member(sd, Modes), Nodes, Options),
        {ok, (maps:without([rate, workers], Options1))#{
            mode := Modes, global_pct := Pcts, weights := Weights, load => Load, pace := Pace,
            p2p := P2p, group_size => Sizes
        }}
    end.

modes(_, #{compare := true}) ->
    {ok, sderl_debench:modes()};
modes(Text, _) ->
    Words = words(Text),
    case {[W || W <- Words, not is_name(W, sderl_debench:modes())], Words -- lists:uniq(Words)} of
        {[Unknown | _], _} ->
            {error, ["--mode: there is no mode \"", Unknown, "\"; there are ", modes_text()]};
        {[], [Twice | _]} ->
            {error, ["--mode names ", Twice, " twice; name it once"]};
        {[], []} -> {ok, [list_to_existing_atom(W) || W <- Words]}
    end.

is_name(Word, Atoms) -> lists:member(Word, [atom_to_list(A) || A <- Atoms]).

one_of(Option, Word, Atoms) ->
    case is_name(Word, Atoms) of
        true -> {ok, list_to_existing_atom(Word)};
        false -> {error, [Option, ": \"", Word, "\" is none of ", texts(Atoms)]}
    end.

load(#{rate := _, workers := _}) ->
    {error, "--rate is an open load and --workers a closed one: give one of them"};
load(#{workers := Workers} = Options) ->
    maybe
        ok ?= at_least(1, [workers], Options),
        {ok, {closed, Workers}}
    end;
load(Options) ->
    maybe
        {ok, Rate} ?= real("--rate", maps:get(rate, Options, "20"), ?LEAST_RATE, ?MOST_RATE),
        {ok, {open, Rate}}
    end.

%% The exact limit is 66 2/3.
pcts(Text) ->
    case reals("--global-pct", Text, 0, floor(10 * sderl_debench_mix:most_pct()) / 10) of
        {ok, Pcts} -> {ok, lists:uniq(Pcts)};
        {error, Wrong} -> {error, [Wrong, ": a look-up goes with each registration"]}
    end.

weights(Text) ->
    maybe
        {ok, Pairs} ?= weights(words(Text), []),
        Weights = maps:from_list(Pairs),
        {twice, []} ?= {twice, [Name || {Name, _} <- Pairs] -- maps:keys(Weights)},
        {sum, true} ?= {sum, lists:sum(maps:values(Weights)) > 0},
        {ok, Weights}
    else
        {twice, [Name | _]} -> {error, io_lib:format("--weights names ~ts twice", [Name])};
        {sum, false} -> {error, "--weights: one of them must be over 0"};
        {error, Wrong} -> {error, Wrong}
    end.

weights([], Pairs) ->
    {ok, lists:reverse(Pairs)};
weights([Word | Words], Pairs) ->
    Names = sderl_debench_mix:p2p() ++ [local],
    case string:split(Word, "=") of
        [Name, Value] ->
            maybe
                {known, true} ?= {known, is_name(Name, Names)},
                {ok, Weight} ?= real("--weights " ++ Name, Value, 0, ?MOST_WEIGHT),
                weights(Words, [{list_to_existing_atom(Name), Weight} | Pairs])
            else
                {known, false} ->
                    {error,
                     ["--weights: there is no operation \"", Name, "\"; there are ", texts(Names)]};
                {error, Wrong} ->
                    {error, Wrong}
            end;
        _ ->
            {error, ["--weights: \"", Word, "\" is not of the form NAME=NUMBER"]}
    end.

%% Point-to-point operations need two nodes.
two(Nodes, Weights) ->
    case {lists:min(Nodes), maps:values(maps:remove(local, Weights))} of
        {1, [_ | _]} ->
            {error, "--nodes must be at least 2: operations go from node to node; or give "
                    "--weights local=1 alone"};
        _ -> ok
    end.

%% The size of a group for each number of nodes.
sizes(false, Nodes, _) ->
    {ok, #{N => N || N <- Nodes}};
sizes(true, _, #{group_size := Size}) when Size < 2 ->
    {error,
     io_lib:format("--group-size must be at least 2, not ~w: operations go from node to node",
                   [Size])};
sizes(true, Nodes, Options) ->
    Sizes = #{N => maps:get(group_size, Options, min(N, ?GROUP_SIZE)) || N <- Nodes},
    case [{N, Size} || N := Size <- Sizes, N rem Size =/= 0] of
        [] ->
            {ok, Sizes};
        [{N, Size} | _] ->
            {error, io_lib:format("--group-size ~w does not divide --nodes ~w: all groups are of "
                                  "equal size here", [Size, N])}
    end.

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{repeat := Repeat} = Options, Output) ->
    Show = fun(Runs) ->
        sderl_bench_output:say(Output, [
            "\n", title(Options), "\n\n", sderl_debench_table:points(Runs),
            sderl_debench_table:kinds(Runs), sderl_debench_table:notes(Runs)
        ])
    end,
    case sderl_bench_series:run(debench, points(Options), Repeat, measure(Options, Output), Show,
                                Output) of
        {ok, _} -> ok;
        {error, Message} -> {error, Message}
    end.

%% The points with the keys of the results, where `rate` or `workers` stands for the load.
points(#{mode := Modes, nodes := Nodes, global_pct := Pcts, group_size := Sizes,
         load := {Kind, Value}} = Options) ->
    Common = maps:without([mode, nodes, global_pct, group_size, load, warmup, repeat, compare],
                          Options),
    [
        maps:merge(Common, maps:from_list(
            [{mode, Mode}, {nodes, N}, {global_pct, Pct}, {warmup_s, maps:get(warmup, Options)},
             {load_key(Kind), Value}] ++
            [{group_size, maps:get(N, Sizes)} || Mode =:= sd]
        ))
     || N <- Nodes, Pct <- Pcts, Mode <- Modes
    ].

load_key(open) -> rate;
load_key(closed) -> workers.

measure(#{load := Load}, Output) ->
    fun(Params, Label) ->
        case sderl_debench:run((maps:without([rate, workers], Params))#{load => Load}, Label) of
            {ok, #{ops_per_s := PerS, completed_pct := Pct,
                   global := #{latency_us := #{p50 := P50}}} = Metrics} ->
                Number = fun sderl_table:number/1,
                sderl_bench_output:say(Output, [
                    string:pad(Label, 24), Number(PerS), " operations/s, ", Number(Pct),
                    " % done, global p50 ", Number(P50), " us\n"
                ]),
                {ok, Metrics};
            Error ->
                Error
        end
    end.

title(#{clusters := Clusters, load := Load, seconds := Seconds, repeat := Repeat,
        payload := Payload, compute_us := ComputeUs}) ->
    [
        case Load of
            {open, Rate} -> ["open load, ", sderl_table:number(Rate), " operations/s a node"];
            {closed, Workers} -> io_lib:format("closed load, ~w workers a node", [Workers])
        end,
        io_lib:format(", ~w s, ~w bytes, ~w us of computing", [Seconds, Payload, ComputeUs]),
        [io_lib:format(", ~w clusters at a time", [Clusters]) || Clusters > 1],
        [io_lib:format(", ~w runs: median (least..greatest)", [Repeat]) || Repeat > 1],
        "; ",
        sderl_bench_machine:text()
    ].
