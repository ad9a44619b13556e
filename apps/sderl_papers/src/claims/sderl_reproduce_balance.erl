%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_balance).
-moduledoc """
The same open load on two nodes, one after the other: one that keeps its schedulers evenly busy
(`+sub true`), and one where as few schedulers as possible do the work (`+scl true`, the default).
What is compared is how busy each scheduler is, and how long operations take.

Many processes have operations of some fixed work, each at times of its own; a latency counts from
when the operation was due.
""".

-export([run/2]).
-export([loaded/1]).

-type params() :: #{schedulers := pos_integer(), load_pct := number(), seconds := number(),
                    seed => integer(), atom() => term()}.

-define(MODES, [{compaction, ["+scl", "true"]}, {balancing, ["+sub", "true"]}]).
%% Processes for each scheduler, and what an operation does: about a tenth of a millisecond.
-define(CLIENTS, 16).
-define(WORK, 5000).
-define(WARM_MS, 1000).
-define(TRIES, 7).

-doc """
One run. Metrics: for `compaction` and for `balancing` the `busy` share of each scheduler in
percent, their `spread` (the most less the least), operations (`ops`), and latencies in microseconds
(`p50`, `p95`, `p99`). The seed decides which is first. A reason is a term for
`sderl_papers_reason:text/1`.
""".
-spec run(params(), Label :: unicode:chardata()) -> {ok, #{atom() => term()}} | {error, term()}.
run(#{schedulers := N, load_pct := Load, seconds := Seconds} = Params, Label) ->
    Seed = maps:get(seed, Params, 1),
    Clients = ?CLIENTS * N,
    Order = case Seed rem 2 of 1 -> ?MODES; 0 -> lists:reverse(?MODES) end,
    Asked = #{clients => Clients, seconds => Seconds, seed => Seed,
              rate => Load / 100 * N / service_s() / Clients},
    each(Order, N, Asked, Label, #{offered_per_s => map_get(rate, Asked) * Clients}).

each([], _, _, _, Measured) ->
    {ok, Measured};
each([{Mode, Flags} | Modes], N, Asked, Label, Measured) ->
    case sderl_reproduce_node:call(sderl_reproduce_node:schedulers(N) ++ Flags, Label, ?MODULE,
                                   loaded, [Asked]) of
        {ok, Seen} -> each(Modes, N, Asked, Label, Measured#{Mode => Seen});
        Error -> Error
    end.

%% The least of several tries, as disturbances only make it longer.
service_s() ->
    Tries = [element(1, timer:tc(fun() -> worked(?WORK, Try) end)) || Try <- lists:seq(1, ?TRIES)],
    max(1, lists:min(Tries)) / 1.0e6.

%% ---------------------------------------------------------------- on the node

-doc "Runs the load on this node; gives what its schedulers did after the warm-up.".
-spec loaded(#{clients := pos_integer(), rate := float(), seconds := number(),
               seed := integer()}) ->
    #{busy := [float()], spread := float(), ops := non_neg_integer(), p50 := number() | undefined,
      p95 := number() | undefined, p99 := number() | undefined}.
loaded(#{clients := Clients, rate := Rate, seconds := Seconds, seed := Seed}) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    [Warming, Recorder] = [sderl_bench_histogram:recorder() || _ <- [1, 2]],
    Began = erlang:monotonic_time(nanosecond),
    From = Began + ?WARM_MS * 1_000_000,
    To = From + round(Seconds * 1.0e9),
    %% Latencies are those of operations that are due in the time.
    Into = fun(Due) -> if Due < From -> Warming; true -> Recorder end end,
    Pids = [spawn_monitor(fun() ->
        client(sderl_bench_pace:new(#{rate => Rate, seed => {Seed, I}}), Began, To, Into)
    end) || I <- lists:seq(1, Clients)],
    ok = wait(From),
    Before = schedulers(),
    ok = wait(To),
    After = schedulers(),
    _ = [receive {'DOWN', Monitor, process, Pid, normal} -> ok end || {Pid, Monitor} <- Pids],
    Busy = [100 * (A1 - A0) / max(1, T1 - T0)
            || {{I, A0, T0}, {I, A1, T1}} <- lists:zip(Before, After)],
    Latencies = sderl_bench_histogram:read(Recorder),
    Us = fun(Percent) ->
        case sderl_bench_histogram:percentile(Percent, Latencies) of
            undefined -> undefined;
            Ns -> Ns / 1000
        end
    end,
    #{busy => Busy, spread => lists:max(Busy) - lists:min(Busy),
      ops => sderl_bench_histogram:total(Latencies), p50 => Us(50), p95 => Us(95), p99 => Us(99)}.

%% The first are normal schedulers, the others dirty ones.
schedulers() ->
    lists:sublist(lists:sort(statistics(scheduler_wall_time)),
                  erlang:system_info(schedulers_online)).

client(Pace, Began, To, Into) ->
    {Ns, Next} = sderl_bench_pace:next(Pace),
    case Began + Ns of
        Due when Due >= To -> ok;
        Due ->
            ok = wait(Due),
            _ = worked(?WORK, Ns),
            ok = sderl_bench_histogram:record(Into(Due), erlang:monotonic_time(nanosecond) - Due),
            client(Next, Began, To, Into)
    end.

%% Timers are those of the virtual machine, in whole milliseconds.
wait(Until) ->
    case Until - erlang:monotonic_time(nanosecond) of
        Left when Left > 0 ->
            receive after (Left + 999_999) div 1_000_000 -> ok end,
            wait(Until);
        _ -> ok
    end.

worked(0, Value) -> Value;
worked(Left, Value) -> worked(Left - 1, erlang:phash2(Value + Left)).
