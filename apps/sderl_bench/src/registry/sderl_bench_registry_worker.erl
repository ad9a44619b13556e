%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_registry_worker).
-moduledoc """
The part of `bin/sderl bench registry` that runs on the measured nodes; the driver calls it
over the fleet.

A client registers itself under a name that nobody used before, unregisters it, and begins
again at once. Names are tuples of three small integers: node, client, number. Clients begin
at the same moment on all nodes, which share a machine and hence a clock; what they do in
the warm-up is not counted.
""".

-export([preload/5, load/1, lookup_ns/3, content/2]).
-export_type([load/0, tally/0]).

-doc """
`index` is the node's place in the fleet, `begin_us` the `os:system_time/1` at which clients
begin, `warmup_ms` what passes before anything counts, `measure_ms` how long it counts.
""".
-type load() :: #{
    impl := module(),
    group := atom(),
    index := pos_integer(),
    clients := pos_integer(),
    begin_us := integer(),
    warmup_ms := non_neg_integer(),
    measure_ms := pos_integer()
}.

-doc """
What the clients of a node did in the measured time: pairs completed, latencies in ns, what the
whole node used, as it was at the beginning and at the end of that time, operations that failed and
a few of the reasons.
""".
-type tally() :: #{
    pairs := non_neg_integer(),
    register := sderl_bench_histogram:histogram(),
    unregister := sderl_bench_histogram:histogram(),
    used := {sderl_bench_meter:snapshot(), sderl_bench_meter:snapshot()},
    errors := non_neg_integer(),
    reasons := [term()]
}.

-record(client, {
    impl :: module(),
    group :: atom(),
    %% The node and the client; 0 in the template of all clients.
    id :: {pos_integer(), non_neg_integer()},
    from :: integer(),
    until :: integer(),
    register :: sderl_bench_histogram:recorder(),
    unregister :: sderl_bench_histogram:recorder(),
    pairs = 0 :: non_neg_integer(),
    errors = 0 :: non_neg_integer(),
    reasons = [] :: [term()]
}).

%% How long a client may take for its last operation when its time is over. `global` may
%% sleep 8 s between two attempts to get its lock.
-define(DRAIN_MS, 30_000).

%% Holders of preloaded names that register at the same time.
-define(FEEDERS, 50).

%% A client that only fails must not spin for the whole run.
-define(GIVE_UP, 100).

-define(LOOKUPS, 200_000).
-define(LOOKUP_LOOPS, 9).

-doc """
Registers names `{Index, 0, K}` for K in First..Last, each by a process that holds it from
now on. Gives the number of failures and a few of the reasons.
""".
-spec preload(module(), atom(), Index :: pos_integer(), First :: pos_integer(),
              Last :: non_neg_integer()) ->
    {Failures :: non_neg_integer(), Reasons :: [term()]}.
preload(Impl, Group, Index, First, Last) ->
    Feeders = min(?FEEDERS, max(1, (Last - First + 1) div 20)),
    Parts = [{F, lists:seq(First + F, Last, Feeders)} || F <- lists:seq(0, Feeders - 1)],
    Outcomes = sderl_fleet_task:at_once(Parts, fun(_, Ks) -> feed(Impl, Group, Index, Ks) end),
    Failed = lists:append([Reasons || {_, Reasons} <- Outcomes]),
    {length(Failed), lists:sublist(lists:usort(Failed), 3)}.

feed(Impl, Group, Index, Ks) ->
    [Reason || K <- Ks, {error, Reason} <- [hold(Impl, Group, {Index, 0, K})]].

hold(Impl, Group, Name) ->
    Holder = spawn(fun() ->
        receive
            {hold, From} ->
                From ! {self(), sderl_fleet_task:attempt(fun() -> Impl:register(Group, Name) end)}
        end,
        receive
            release -> ok
        end
    end),
    Ref = monitor(process, Holder),
    Holder ! {hold, self()},
    receive
        {Holder, Outcome} ->
            true = demonitor(Ref, [flush]),
            Outcome;
        {'DOWN', Ref, process, Holder, Reason} ->
            {error, Reason}
    end.

-doc "Runs the clients of this node and returns when they have ended.".
-spec load(load()) -> {ok, tally()} | {error, {late, Ms :: integer()}}.
load(#{impl := Impl, group := Group, index := Index, clients := Clients} = Load) ->
    #{begin_us := BeginUs, warmup_ms := WarmupMs, measure_ms := MeasureMs} = Load,
    Begin = erlang:monotonic_time(nanosecond) + 1000 * (BeginUs - os:system_time(microsecond)),
    From = Begin + 1_000_000 * WarmupMs,
    Template = #client{
        impl = Impl,
        group = Group,
        id = {Index, 0},
        from = From,
        until = From + 1_000_000 * MeasureMs,
        register = sderl_bench_histogram:recorder(),
        unregister = sderl_bench_histogram:recorder()
    },
    Running = [start(Begin, Template#client{id = {Index, C}}) || C <- lists:seq(1, Clients)],
    case erlang:monotonic_time(nanosecond) of
        Now when Now > From ->
            _ = [ok = sderl_fleet_task:stop(Client) || Client <- Running],
            {error, {late, (Now - From) div 1_000_000}};
        _ ->
            Used = used(From, Template#client.until),
            LastMs = ms(Template#client.until) + ?DRAIN_MS,
            {ok, tally([finish(Client, LastMs) || Client <- Running], Used, Template)}
    end.

%% At two moments to come. A reading that is thrown away loads the code for it: with clients whose
%% calls return at once the first reading that counts would wait for that.
used(From, Until) ->
    _ = sderl_bench_meter:snapshot(),
    ok = sleep_until(From),
    Before = sderl_bench_meter:snapshot(),
    ok = sleep_until(Until),
    {Before, sderl_bench_meter:snapshot()}.

sleep_until(At) ->
    receive
    after max(0, ms(At) - erlang:monotonic_time(millisecond)) -> ok
    end.

start(Begin, Client) ->
    sderl_fleet_task:start(fun() ->
        ok = sleep_until(Begin),
        run(1, 0, Client)
    end).

finish(Task, LastMs) ->
    sderl_fleet_task:result(Task, max(0, LastMs - erlang:monotonic_time(millisecond))).

tally(Ended, Used, #client{register = Register, unregister = Unregister}) ->
    Done = [Client || {ok, Client} <- Ended],
    Failed = [Reason || {error, Reason} <- Ended],
    Reasons = Failed ++ lists:append([Client#client.reasons || Client <- Done]),
    #{
        pairs => lists:sum([Client#client.pairs || Client <- Done]),
        register => sderl_bench_histogram:read(Register),
        unregister => sderl_bench_histogram:read(Unregister),
        used => Used,
        errors => length(Failed) + lists:sum([Client#client.errors || Client <- Done]),
        reasons => lists:sublist(lists:usort(Reasons), 3)
    }.

%% The client's loop. `Row` counts failures without a success between them.
run(_K, ?GIVE_UP, Client) ->
    Client;
run(K, Row, #client{impl = Impl, group = Group, id = {Index, C}, until = Until} = Client) ->
    Name = {Index, C, K},
    T0 = erlang:monotonic_time(nanosecond),
    case T0 < Until of
        true ->
            case sderl_fleet_task:attempt(fun() -> Impl:register(Group, Name) end) of
                ok ->
                    T1 = erlang:monotonic_time(nanosecond),
                    Outcome = sderl_fleet_task:attempt(fun() -> Impl:unregister(Group, Name) end),
                    T2 = erlang:monotonic_time(nanosecond),
                    Client1 = latency(T0, T1, Client#client.register, Client),
                    case Outcome of
                        ok ->
                            Client2 = latency(T1, T2, Client#client.unregister, Client1),
                            run(K + 1, 0, pair(T2, Client2));
                        {error, Reason} ->
                            run(K + 1, Row + 1, failure({unregister, Reason}, Client1))
                    end;
                {error, Reason} ->
                    run(K + 1, Row + 1, failure({register, Reason}, Client))
            end;
        false ->
            Client
    end.

%% A latency counts when the operation began in the measured time, a pair when it ended then.
latency(Start, End, Recorder, #client{from = From} = Client) when Start >= From ->
    sderl_bench_histogram:record(Recorder, End - Start),
    Client;
latency(_, _, _, Client) ->
    Client.

pair(Now, #client{from = From, until = Until, pairs = Pairs} = Client)
  when Now >= From, Now < Until ->
    Client#client{pairs = Pairs + 1};
pair(_, Client) ->
    Client.

failure(Reason, #client{errors = Errors, reasons = Reasons} = Client) ->
    Client#client{errors = Errors + 1, reasons = lists:sublist(lists:usort([Reason | Reasons]), 3)}.

ms(Nanoseconds) -> Nanoseconds div 1_000_000.

-doc """
Nanoseconds that one look-up of a present name takes in this process: the median of several
loops over the names, less the same loop around a function that does nothing.
""".
-spec lookup_ns(module(), atom(), Names :: [term()]) -> float() | {error, {not_found, term()}}.
lookup_ns(Impl, Group, Names) ->
    case [Name || Name <- Names, not is_pid(Impl:whereis(Group, Name))] of
        [] ->
            Rounds = ?LOOKUPS div length(Names) + 1,
            Empty = loops(fun erlang:max/2, Group, Names, Rounds),
            Full = loops(fun Impl:whereis/2, Group, Names, Rounds),
            max(0.0, (Full - Empty) / (Rounds * length(Names)));
        [Name | _] ->
            {error, {not_found, Name}}
    end.

loops(Fun, Group, Names, Rounds) ->
    Times = [
        begin
            T0 = erlang:monotonic_time(nanosecond),
            ok = rounds(Rounds, Fun, Group, Names),
            erlang:monotonic_time(nanosecond) - T0
        end
     || _ <- lists:seq(1, ?LOOKUP_LOOPS)
    ],
    lists:nth(?LOOKUP_LOOPS div 2 + 1, lists:sort(Times)).

rounds(0, _Fun, _Group, _Names) ->
    ok;
rounds(N, Fun, Group, Names) ->
    ok = each(Names, Fun, Group),
    rounds(N - 1, Fun, Group, Names).

each([Name | Names], Fun, Group) ->
    _ = Fun(Group, Name),
    each(Names, Fun, Group);
each([], _Fun, _Group) ->
    ok.

-doc """
How many names of the group this node has, and a hash that is the same where the names and pids are.
""".
-spec content(module(), atom()) -> {non_neg_integer(), binary()}.
content(Impl, Group) ->
    Names = lists:sort(Impl:names(Group)),
    {length(Names), erlang:md5(term_to_binary(Names))}.
