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
| `cpu_ms` | processor time of a schedule, which other load on the machine hardly changes |
| `operations` | requests of clients |
| `faults` | how many faults struck, by kind |
| `converge_ms` | simulated time from the end of the last fault until all members were one component: `p50`, `p99`, `max` |
| `violations` | schedules in which a promise was broken |
| `failed` | the first twenty of them: `seed`, `promise`, `at_ms` |

A violation makes the exit status 1.
""".

-behaviour(sderl_bench_experiment).

-export([summary/0, command/0, check/1, run/2]).
-export([replay/2]).

-define(SCHEDULES, 400).
-define(OVERNIGHT_MIN, 480).
-define(LOG, "sderl-simulate.log").
-define(SHOWN, 20).

-doc false.
-spec summary() -> string().
summary() -> "simulated groups under random faults, every promise checked at every step".

-doc false.
-spec command() -> argparse:command().
command() ->
    #{
        help =>
            """
            Simulated groups of nodes under random schedules of faults: the protocol's own code on
            simulated time, every promise checked at every step. The seed decides everything; a
            schedule that breaks a promise is printed with the command that runs it again.
            """,
        arguments => sderl_bench_simulate_options:arguments() ++ [
            sderl_command:option(seed, "S", integer,
                                 "the first seed; the others follow it (a random one)"),
            sderl_command:option(schedules, "K", integer,
                                 lists:concat(["how many (", ?SCHEDULES, "; 1 with --trace)"])),
            sderl_command:option(minutes, "M", integer,
                                 "for so long instead, with the findings appended to a file"),
            sderl_command:flag(overnight,
                               lists:concat(["the same as --minutes ", ?OVERNIGHT_MIN])),
            sderl_command:flag(nightly, "until it is stopped, from the given seed or from where "
                                        "the file ends; a seed that failed before is not run "
                                        "again"),
            sderl_command:option(log, "FILE", string,
                                 "the file of --minutes, --overnight and --nightly (" ?LOG ")"),
            sderl_command:flag(trace, "print everything that happens in one schedule")
        ]
    }.

%% ---------------------------------------------------------------- options

-doc false.
-spec check(#{atom() => term()}) -> {ok, #{atom() => term()}} | {error, sderl_command:text()}.
check(Given) ->
    maybe
        {ok, Options} ?= sderl_bench_simulate_options:checked(Given),
        {ok, How} ?= how_long(Options),
        Seed = case {Options, How} of
            {#{seed := S}, _} -> S;
            %% The run continues where the file ends, which is known when it is open.
            {_, #{nightly := true}} -> next;
            _ -> rand:uniform(1_000_000_000)
        end,
        {ok, maps:merge(Options#{seed => Seed}, How)}
    end.

how_long(#{nightly := true} = Options) ->
    case [Flag
          || {Key, Flag} <- [{trace, "--trace"}, {overnight, "--overnight"}],
             map_get(Key, Options)] ++
         [Flag
          || {Key, Flag} <- [{minutes, "--minutes"}, {schedules, "--schedules"}],
             is_map_key(Key, Options)] of
        [] -> {ok, #{nightly => true, log => maps:get(log, Options, ?LOG)}};
        [Flag | _] -> {error, ["--nightly goes on until it is stopped: leave out ", Flag]}
    end;
how_long(#{trace := true} = Options) ->
    case Options of
        #{overnight := true} -> {error, "--trace is of one schedule, --overnight of many"};
        #{minutes := _} -> {error, "--trace is of one schedule, --minutes of many"};
        #{schedules := K} when K =/= 1 ->
            {error,
             io_lib:format("--trace is of one schedule, not of ~w: say --seed S --schedules 1",
                           [K])};
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
    {error, "--log is the file of --minutes, --overnight and --nightly: give one of them"};
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
run(#{nightly := true, log := Name} = Options0, Output) ->
    maybe
        {ok, Log} ?= sderl_bench_simulate_log:open(Name),
        {ok, #{last_seed := Last, failed := Before} = So} ?=
            sderl_bench_simulate_log:history(Name, known_by(Options0)),
        %% When it is told to stop, running schedules are still completed.
        _ = sderl_signals:tell(self()),
        Options = case Options0 of
            #{seed := next} -> Options0#{seed := Last + 1};
            _ -> Options0
        end,
        try
            ok = sderl_bench_simulate_log:begun(Log, params(Options)),
            io:format(standard_error, "~ts", [begins(Options, So)]),
            Outcome = measured(fun() ->
                #{schedules := K, failed := Failed} = Summary =
                    sderl_sim_batch:run(map_get(seed, Options), simulated(Options), #{
                        more => fun(_) -> not stopped() end,
                        skip => Before,
                        seen => seen_by(Log, Options)
                    }),
                ok = sderl_bench_simulate_log:ended(Log, K, length(Failed)),
                Summary
            end, Options, Output),
            {ok, Total} = sderl_bench_simulate_log:history(Name, known_by(Options0)),
            sderl_bench_output:say(Output, total(Name, Total)),
            Outcome
        after
            sderl_bench_simulate_log:close(Log)
        end
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
            Write = seen_by(Log, Options),
            measured(fun() ->
                #{schedules := K, failed := Failed} =
                    Summary = sderl_sim_batch:run(First, simulated(Options), #{
                        more => fun(_) -> Passed() < Ms end,
                        seen => fun(Report, So) ->
                            ok = Write(Report, So),
                            Draw(min(Passed(), Ms), Ms)
                        end
                    }),
                ok = sderl_bench_simulate_log:ended(Log, K, length(Failed)),
                Summary
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
    {Cpu, _} = statistics(runtime),
    Summary = Run(),
    {CpuThen, _} = statistics(runtime),
    Seconds = (erlang:monotonic_time(microsecond) - Start) / 1_000_000,
    sderl_progress:done(),
    Metrics = metrics(Summary, Seconds, CpuThen - Cpu),
    maybe
        ok ?= sderl_bench_output:write(
            Output, sderl_bench_output:result(simulate, params(Options), Metrics, Started)
        ),
        sderl_bench_output:say(Output, text(Options, Metrics)),
        verdict(Summary, Options)
    end.

seen_by(Log, Options) ->
    fun(Report, So) ->
        sderl_bench_simulate_log:seen(Log, Report, So, fun(Seed) -> replay(Seed, Options) end)
    end.

stopped() ->
    receive
        %% The signal is asked for again for each schedule that still runs.
        {sderl_signals, stop} = Stop ->
            self() ! Stop,
            true
    after 0 -> false
    end.

simulated(Options) -> sderl_bench_simulate_options:simulated(Options).

params(Options) ->
    maps:merge(maps:with([seed, schedules, minutes, nightly], Options), known_by(Options)).

%% The options that, with the seed, determine a schedule.
known_by(Options) -> sderl_bench_simulate_options:shown(Options).

begins(#{seed := First, log := Name}, #{schedules := K, failed := Failed}) ->
    [io_lib:format("from seed ~w until it is stopped (Ctrl-C); ~ts has ~w schedules like these\n",
                   [First, Name, K]),
     [io_lib:format("not run again, as they failed before: ~w\n", [lists:sort(maps:keys(Failed))])
      || map_size(Failed) > 0]].

total(Name, #{schedules := K, failed := Failed}) ->
    [line("in all", [sderl_table:number(K), " schedules like these in ", Name, ", ",
                     sderl_table:number(map_size(Failed)), " seeds failed"])].

%% ---------------------------------------------------------------- results

metrics(Summary, Seconds, CpuMs) ->
    #{schedules := K, steps := Steps, operations := Ops, faults := Faults} = Summary,
    #{converge_ms := Ms, failed := Failed} = Summary,
    #{
        schedules => K,
        seconds => Seconds,
        schedules_per_min => 60 * K / Seconds,
        steps_per_s => Steps / Seconds,
        cpu_ms => CpuMs / max(1, K),
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

text(#{nodes := Nodes, groups := Groups, seed := First},
     #{schedules := K, faults := Faults, converge_ms := Converge} = Metrics) ->
    #{p50 := P50, p99 := P99, max := Max} = Converge,
    #{schedules_per_min := PerMin, steps_per_s := PerS, cpu_ms := Cpu} = Metrics,
    #{seconds := Seconds, operations := Ops} = Metrics,
    [
        io_lib:format("\n~w schedules of ~w nodes~ts, seeds ~w to ~w; ~ts\n\n", [
            K, Nodes, [io_lib:format(" in ~w groups", [Groups]) || Groups > 1], First,
            First + K - 1, sderl_bench_machine:text()
        ]),
        line("time", [sderl_table:number(Seconds),
                      " s: ",
                      sderl_table:number(PerMin),
                      " schedules/min, ",
                      sderl_table:number(PerS),
                      " steps/s, ",
                      sderl_table:number(Cpu),
                      " ms of a core each"]),
        line("operations", sderl_table:number(Ops)),
        line("faults", [sderl_table:number(lists:sum(maps:values(Faults))), ": ",
                        lists:join(", ", [[atom_to_list(Kind), " ", sderl_table:number(N)]
                                          || Kind := N <- maps:iterator(Faults, ordered)])]),
        line("one component", ["p50 / p99 / max ",
                               lists:join(" / ", [sderl_table:number(V) || V <- [P50, P99, Max]]),
                               " ms after the last fault (simulated)"]),
        line("violations", sderl_table:number(map_get(violations, Metrics)))
    ].

line(Name, Text) -> ["  ", string:pad(Name, 15), Text, "\n"].

verdict(#{failed := []}, _) -> ok;
verdict(#{schedules := K, failed := Failed}, Options) ->
    Shown = lists:sublist(Failed, ?SHOWN),
    {error, [
        io_lib:format("~w of ~w schedules broke a promise:\n", [length(Failed), K]),
        [
            io_lib:format("  seed ~w~ts: ~0tP\n    ~ts\n", [
                Seed, [io_lib:format(" at ~w ms", [At]) || is_integer(At)], Why, 30,
                replay(Seed, Options)
            ])
         || #{seed := Seed, why := Why, at_ms := At} <- Shown
        ],
        [io_lib:format("  and ~w more\n", [length(Failed) - ?SHOWN]) || length(Failed) > ?SHOWN],
        "--trace shows what happens"
    ]}.

-doc "The command that runs one schedule again.".
-spec replay(integer(), #{atom() => term()}) -> unicode:chardata().
replay(Seed, Options) ->
    ["bin/sderl bench simulate", sderl_bench_simulate_options:command_line(Options),
     io_lib:format(" --seed ~w --schedules 1", [Seed])].
