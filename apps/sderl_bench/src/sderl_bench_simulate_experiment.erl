%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_simulate_experiment).
-moduledoc """
`bin/sderl bench simulate`: the group protocol under random schedules of faults, in the simulator of
`m:sderl_sim`. See docs/simulation.md.

Metrics, as in the JSON output:

| metric | meaning |
|---|---|
| `schedules` | how many were run |
| `schedules_per_min`, `steps_per_s` | how fast; a step is a turn of the protocol's process |
| `operations` | what clients asked |
| `faults` | how many faults struck, by kind |
| `converge_ms` | simulated time from the end of the last fault until all members were one component: `p50`, `p99`, `max` |
| `violations` | schedules in which a promise was broken |
| `failed` | the first twenty of them: `seed`, `promise`, `at_ms` |

A violation makes the exit status 1.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([replay/2]).

-import(sderl_bench_experiment, [option/5]).

-define(SCHEDULES, 400).
-define(OVERNIGHT_MIN, 480).
-define(LOG, "sderl-simulate.log").
%% Up to 32 nodes in a group replay in every virtual machine, see sderl_sim_world:in_order/1.
-define(MOST_NODES, 28).
-define(MOST_SPARES, 4).
-define(SHOWN, 20).

-doc false.
-spec summary() -> string().
summary() -> "simulated groups under random faults, every promise checked at every step".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help => "Simulated groups of nodes under random schedules of faults: the protocol's own code on\n"
        "simulated time, every promise checked at every step. The seed decides everything; a\n"
        "schedule that breaks a promise is printed with the command that runs it again.",
        arguments => [
            option(nodes, "N", integer, 7, "members of the group at the start"),
            option(spare, "X", integer, 1, "nodes that are no members at the start"),
            option(groups, "G", integer, 1, "groups; the others have some of the nodes"),
            option(clients, "C", integer, 2, "clients on each node, in each group"),
            option(faults, "KINDS", string, "all",
                ["kinds of faults, with commas between them: ", lists:join(", ", kinds())]),
            option(most_faults, "K", integer, 12, "faults in a schedule, at most"),
            #{
                name => seed, long => "-seed", type => integer, required => false,
                help => {"[--seed S]", ["the first seed; the others follow it (a random one)"]}
            },
            #{
                name => schedules, long => "-schedules", type => integer, required => false,
                help => {"[--schedules K]", [io_lib:format("how many (~w; 1 with --trace)", [?SCHEDULES])]}
            },
            #{
                name => minutes, long => "-minutes", type => integer, required => false,
                help => {"[--minutes M]", ["for so long instead, with what is found appended to a file"]}
            },
            #{
                name => overnight, long => "-overnight", type => boolean, action => {store, true}, default => false,
                help => {"[--overnight]", [io_lib:format("the same as --minutes ~w", [?OVERNIGHT_MIN])]}
            },
            #{
                name => log, long => "-log", type => string, required => false,
                help => {"[--log FILE]", ["the file of --minutes and --overnight (" ?LOG ")"]}
            },
            #{
                name => trace, long => "-trace", type => boolean, action => {store, true}, default => false,
                help => {"[--trace]", ["print everything that happens in one schedule"]}
            },
            #{
                name => broken, long => "-broken", type => string, required => false,
                help => {"[--broken FAULTS]", ["make the protocol itself do wrong, to see it found: early_yes, rule_9, ..."]}
            },
            sderl_bench_experiment:json_option()
        ]
    }.

kinds() -> [atom_to_list(K) || K <- sderl_sim_faults:kinds()].

%% ---------------------------------------------------------------- options

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(#{faults := Faults} = Options) ->
    maybe
        ok ?= between(nodes, 2, ?MOST_NODES, Options),
        ok ?= between(spare, 0, ?MOST_SPARES, Options),
        ok ?= between(groups, 1, 8, Options),
        ok ?= between(clients, 0, 20, Options),
        ok ?= between(most_faults, 1, 1000, Options),
        {ok, Kinds} ?= names("--faults", "kind of fault", case Faults of "all" -> kinds(); _ -> words(Faults) end, kinds()),
        {ok, Broken} ?= names("--broken", "deliberate fault", words(maps:get(broken, Options, "")),
                              [atom_to_list(F) || {F, _} <- sderl_core_fault:all()]),
        {ok, How} ?= how_long(Options),
        {ok, maps:merge(Options#{faults := Kinds, broken => Broken, seed => maps:get(seed, Options, rand:uniform(1_000_000_000))}, How)}
    end.

between(Key, Min, Max, Options) ->
    case Options of
        #{Key := V} when V >= Min, V =< Max -> ok;
        #{Key := V} ->
            Name = string:replace(atom_to_list(Key), "_", "-", all),
            {error, io_lib:format("--~ts must be from ~w to ~w, not ~w", [Name, Min, Max, V])}
    end.

words(Text) -> [W || W <- [string:trim(W) || W <- string:split(Text, ",", all)], W =/= ""].

%% (No atom is made here: a known name is one.)
names(Option, _, [], _) when Option =:= "--faults" ->
    {error, [Option, " names nothing: take \"all\" or some of ", lists:join(", ", kinds())]};
names(Option, What, Words, Known) ->
    case [W || W <- Words, not lists:member(W, Known)] of
        [] -> {ok, [list_to_existing_atom(W) || W <- Words]};
        [W | _] -> {error, [Option, ": there is no ", What, " \"", W, "\"; there are ", lists:join(", ", Known)]}
    end.

how_long(#{trace := true} = Options) ->
    case Options of
        #{overnight := true} -> {error, "--trace is of one schedule, --overnight of many"};
        #{minutes := _} -> {error, "--trace is of one schedule, --minutes of many"};
        #{schedules := K} when K =/= 1 ->
            {error, io_lib:format("--trace is of one schedule, not of ~w: say --seed S --schedules 1", [K])};
        #{} -> {ok, #{schedules => 1}}
    end;
how_long(#{overnight := true, minutes := _}) ->
    {error, io_lib:format("--overnight is --minutes ~w: give one of them", [?OVERNIGHT_MIN])};
how_long(#{schedules := _, overnight := true}) ->
    {error, "--schedules says how many, --overnight how long: give one of them"};
how_long(#{schedules := _, minutes := _}) ->
    {error, "--schedules says how many, --minutes how long: give one of them"};
how_long(#{overnight := true} = Options) ->
    {ok, #{minutes => ?OVERNIGHT_MIN, log => maps:get(log, Options, ?LOG)}};
how_long(#{minutes := M}) when M < 1 ->
    {error, io_lib:format("--minutes must be at least 1, not ~w", [M])};
how_long(#{minutes := _} = Options) ->
    {ok, #{log => maps:get(log, Options, ?LOG)}};
how_long(#{log := _}) ->
    {error, "--log is the file of --minutes and --overnight: give one of them"};
how_long(#{schedules := K}) when K < 1 ->
    {error, io_lib:format("--schedules must be at least 1, not ~w", [K])};
how_long(Options) ->
    {ok, #{schedules => maps:get(schedules, Options, ?SCHEDULES)}}.

%% ---------------------------------------------------------------- running

-doc false.
-spec run(#{atom() => term()}, sderl_bench_output:output()) -> ok | {error, sderl_command:text()}.
run(#{trace := true, seed := Seed} = Options, Output) ->
    case sderl_bench_output:is_stdout(Output) of
        true ->
            {error, "--trace prints to stdout, where --json - writes too: give --json a file"};
        false ->
            measured(fun() ->
                Report = sderl_sim:schedule((simulated(Options))#{seed => Seed, trace => true}),
                sderl_sim_batch:add(maps:remove(world, Report), sderl_sim_batch:empty())
            end, Options, Output)
    end;
run(#{minutes := Minutes, log := Name, seed := First} = Options, Output) ->
    maybe
        {ok, Log} ?= sderl_bench_simulate_log:open(Name),
        try
            ok = sderl_bench_simulate_log:begun(Log, params(Options)),
            Start = erlang:monotonic_time(millisecond),
            Draw = sderl_progress:reporter("simulate"),
            Ms = Minutes * 60_000,
            Passed = fun() -> erlang:monotonic_time(millisecond) - Start end,
            measured(fun() ->
                sderl_sim_batch:run(First, simulated(Options), #{
                    more => fun(_) -> Passed() < Ms end,
                    seen => fun(Report, Summary) ->
                        ok = sderl_bench_simulate_log:seen(Log, Report, Summary, fun(Seed) -> replay(Seed, Options) end),
                        Draw(min(Passed(), Ms), Ms)
                    end
                })
            end, Options, Output)
        after
            sderl_bench_simulate_log:close(Log)
        end
    end;
run(#{schedules := K, seed := First} = Options, Output) ->
    Draw = sderl_progress:reporter("simulate"),
    measured(fun() ->
        sderl_sim_batch:run(First, simulated(Options), #{
            more => fun(Begun) -> Begun < K end,
            seen => fun(_, #{schedules := Done}) -> Draw(Done, K) end
        })
    end, Options, Output).

measured(Run, Options, Output) ->
    Started = sderl_bench_output:now(),
    Start = erlang:monotonic_time(microsecond),
    Summary = Run(),
    Seconds = (erlang:monotonic_time(microsecond) - Start) / 1_000_000,
    sderl_progress:done(),
    Metrics = metrics(Summary, Seconds),
    maybe
        ok ?= sderl_bench_output:write(Output, sderl_bench_output:result(simulate, params(Options), Metrics, Started)),
        sderl_bench_output:say(Output, text(Options, Metrics)),
        verdict(Summary, Options)
    end.

simulated(#{nodes := N, spare := X, groups := G, clients := C, faults := Kinds, most_faults := K, broken := Broken}) ->
    #{nodes => N, spare => X, groups => G, clients => C, kinds => Kinds, faults => K, broken => Broken}.

params(Options) ->
    (maps:with([nodes, spare, groups, clients, faults, most_faults, seed, schedules, minutes, broken], Options)).

%% ---------------------------------------------------------------- results

metrics(#{schedules := K, steps := Steps, operations := Ops, faults := Faults, converge_ms := Ms, failed := Failed}, Seconds) ->
    #{
        schedules => K,
        seconds => Seconds,
        schedules_per_min => 60 * K / Seconds,
        steps_per_s => Steps / Seconds,
        operations => Ops,
        faults => Faults,
        converge_ms => percentiles(lists:sort(Ms)),
        violations => length(Failed),
        failed => [
            #{seed => Seed, promise => promise(Why), at_ms => At}
         || #{seed := Seed, why := Why, at_ms := At} <- lists:sublist(Failed, ?SHOWN)
        ]
    }.

percentiles([]) -> #{p50 => undefined, p99 => undefined, max => undefined};
percentiles(Sorted) ->
    At = fun(Percent) -> lists:nth(max(1, ceil(Percent * length(Sorted) / 100)), Sorted) end,
    #{p50 => At(50), p99 => At(99), max => lists:last(Sorted)}.

promise(Why) when is_tuple(Why), is_atom(element(1, Why)) -> element(1, Why);
promise(_) -> unknown.

text(#{nodes := Nodes, groups := Groups, seed := First}, #{schedules := K, faults := Faults, converge_ms := Converge} = Metrics) ->
    #{p50 := P50, p99 := P99, max := Max} = Converge,
    #{schedules_per_min := PerMin, steps_per_s := PerS, seconds := Seconds, operations := Ops} = Metrics,
    [
        io_lib:format("\n~w schedules of ~w nodes~ts, seeds ~w to ~w; ~ts\n\n", [
            K, Nodes, [io_lib:format(" in ~w groups", [Groups]) || Groups > 1], First, First + K - 1, sderl_bench_machine:text()
        ]),
        line("time", [sderl_bench_table:number(Seconds), " s: ", sderl_bench_table:number(PerMin), " schedules/min, ",
                      sderl_bench_table:number(PerS), " steps/s"]),
        line("operations", sderl_bench_table:number(Ops)),
        line("faults", [sderl_bench_table:number(lists:sum(maps:values(Faults))), ": ",
                        lists:join(", ", [[atom_to_list(Kind), " ", sderl_bench_table:number(N)] || Kind := N <- maps:iterator(Faults, ordered)])]),
        line("one component", ["p50 / p99 / max ", lists:join(" / ", [sderl_bench_table:number(V) || V <- [P50, P99, Max]]),
                               " ms after the last fault (simulated)"]),
        line("violations", sderl_bench_table:number(map_get(violations, Metrics)))
    ].

line(Name, Text) -> ["  ", string:pad(Name, 15), Text, "\n"].

verdict(#{failed := []}, _) -> ok;
verdict(#{schedules := K, failed := Failed}, Options) ->
    Shown = lists:sublist(Failed, ?SHOWN),
    {error, [
        io_lib:format("~w of ~w schedules broke a promise:\n", [length(Failed), K]),
        [
            io_lib:format("  seed ~w~ts: ~0tP\n    ~ts\n", [
                Seed, [io_lib:format(" at ~w ms", [At]) || is_integer(At)], Why, 30, replay(Seed, Options)
            ])
         || #{seed := Seed, why := Why, at_ms := At} <- Shown
        ],
        [io_lib:format("  and ~w more\n", [length(Failed) - ?SHOWN]) || length(Failed) > ?SHOWN],
        "--trace shows what happens"
    ]}.

-doc "The command that runs one schedule again.".
-spec replay(integer(), #{atom() => term()}) -> unicode:chardata().
replay(Seed, #{nodes := N, spare := X, groups := G, clients := C, faults := Kinds, most_faults := K, broken := Broken}) ->
    Names = [atom_to_list(Kind) || Kind <- Kinds],
    [
        io_lib:format("bin/sderl bench simulate --nodes ~w --spare ~w --groups ~w --clients ~w --faults ~ts --most-faults ~w", [
            N, X, G, C, case Names =:= kinds() of true -> "all"; false -> lists:join(",", Names) end, K
        ]),
        [[" --broken ", lists:join(",", [atom_to_list(F) || F <- Broken])] || Broken =/= []],
        io_lib:format(" --seed ~w --schedules 1", [Seed])
    ].
