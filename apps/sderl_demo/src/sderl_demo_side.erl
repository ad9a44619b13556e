%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_side).
-moduledoc """
The phases on the running nodes of one side of the demo, and their measurements.

The phases follow one another, so that each number is that of one kind of work: the
servers start and register their names; lookups; calls; registrations; kills under a
lighter load of calls; and at the end every node is asked for every name of its groups.
""".

-export([run/5]).

-import(sderl_demo_cluster, [on_all/6]).

-export_type([settings/0, step/0, around/0, metrics/0]).

-doc """
`seconds` is the length of each of the four phases of load, `seed` that of every random
choice.
""".
-type settings() :: #{
    layout := sderl_demo_layout:layout(), seconds := number(), seed := integer()
}.

-doc "A step of a side's run. The phases of `sderl_demo_load` take the settings' `seconds`.".
-type step() :: servers | sderl_demo_load:job() | check.

-doc "Calls the function that does a step, and shows its progress meanwhile.".
-type around() :: fun((step(), fun(() -> dynamic())) -> dynamic()).

-doc """
The measurements of a side, by the keys of the table and of the JSON line; `packets` is `undefined`
where the system does not tell.
""".
-type metrics() :: #{
    names := pos_integer(),
    servers_start_ms := non_neg_integer(),
    lookups_per_s := non_neg_integer(),
    own_lookup_ns := sderl_demo_tally:percentiles(),
    other_lookup_ns := sderl_demo_tally:percentiles(),
    calls_per_s := non_neg_integer(),
    own_calls_per_s := non_neg_integer(),
    other_calls_per_s := non_neg_integer(),
    own_call_us := sderl_demo_tally:percentiles(),
    other_call_us := sderl_demo_tally:percentiles(),
    registrations_per_s := non_neg_integer(),
    register_us := sderl_demo_tally:percentiles(),
    unregister_us := sderl_demo_tally:percentiles(),
    bytes_per_registration := non_neg_integer(),
    messages_per_registration := float(),
    kills := non_neg_integer(),
    recovery_ms := sderl_demo_tally:percentiles(),
    lost_calls := non_neg_integer(),
    lost_reasons := [binary()],
    calls_in_flight_at_kills := non_neg_integer(),
    retried_calls := non_neg_integer(),
    errors := non_neg_integer(),
    missing_names := non_neg_integer(),
    leftover_names := non_neg_integer(),
    names_bytes_per_node := non_neg_integer(),
    %% As in `sderl_bench_meter:sent/2`.
    links_total | links_per_node_max | links_per_node_mean | bytes | messages | packets =>
        number() | undefined
}.

-define(JOBS, [lookups, calls, registrations, kills]).
-define(CLIENTS, #{lookups => 1, calls => 4, registrations => 4, kills => 2}).

-define(SERVERS_TIMEOUT_MS, 120_000).
-define(CHECK_TIMEOUT_MS, 10_000).
%% Beyond a phase's own length: the time that a node allows the slowest client, and some more.
-define(PHASE_SLACK_MS, 60_000).
%% From the call until a phase begins: all nodes have been told by then.
-define(LEAD_US, 300_000).

-doc """
Runs the whole workload on a side that `sderl_demo_cluster:link/3` has made ready. `Around`
is given each step and the function that does it, and gives back its result. A node that
fails ends the run with its error.
""".
-spec run(
    sderl_demo_cluster:side(),
    Fleet :: pid(),
    settings(),
    #{sderl_demo_layout:index() => sderl_demo_kill:orders()},
    around()
) -> {ok, metrics()} | {error, term()}.
run(Side, Fleet, #{layout := Layout} = Settings, Orders, Around) ->
    Site = sderl_demo_cluster:site(Side, Fleet, Layout),
    maybe
        {ok, Servers} ?= Around(servers, fun() -> servers(Fleet, Site) end),
        {ok, Before} ?= traffic(Fleet, Site),
        Run = fun(Job) ->
            Around(Job, fun() -> phase(Job, Fleet, Site, Settings, Orders) end)
        end,
        {ok, Phases, After} ?= phases(?JOBS, Run, Before, #{}),
        {ok, Check} ?= Around(check, fun() -> check(Fleet, Site) end),
        Parts = [Servers, Check, sderl_bench_meter:sent(Before, After), losses(Phases)],
        {ok, lists:foldl(fun maps:merge/2, errors(Phases), Parts ++ rates(Phases, Settings))}
    end.

servers(Fleet, #{layout := Layout} = Site) ->
    Begin = erlang:monotonic_time(millisecond),
    maybe
        {ok, _} ?=
            on_all(Fleet, Site, sderl_demo_load, servers, [Site], ?SERVERS_TIMEOUT_MS),
        Took = erlang:monotonic_time(millisecond) - Begin,
        {ok, #{names => length(sderl_demo_layout:names(Layout)), servers_start_ms => Took}}
    end.

traffic(Fleet, #{nodes := Nodes} = Site) ->
    maybe
        {ok, Snapshots} ?=
            on_all(Fleet, Site, sderl_bench_meter, snapshot, [], ?CHECK_TIMEOUT_MS),
        {ok, lists:zip(Nodes, Snapshots)}
    end.

%% Phases

phases([], _Run, Traffic, Done) ->
    {ok, Done, Traffic};
phases([Job | Jobs], Run, Before, Done) ->
    maybe
        {ok, Result, After} ?= Run(Job),
        Traffic = sderl_bench_meter:sent(Before, After),
        phases(Jobs, Run, After, Done#{Job => Result#{traffic => Traffic}})
    end.

phase(Job, Fleet, Site, #{seconds := Seconds, seed := Seed}, Orders) ->
    Phase = #{
        site => Site,
        job => Job,
        begin_us => os:system_time(microsecond) + ?LEAD_US,
        seconds => Seconds,
        clients => maps:get(Job, ?CLIENTS),
        seed => Seed,
        orders => Orders
    },
    Timeout = round(Seconds * 1000) + ?PHASE_SLACK_MS,
    maybe
        {ok, Results} ?= on_all(Fleet, Site, sderl_demo_load, run, [Phase], Timeout),
        {ok, Traffic} ?= traffic(Fleet, Site),
        {Tallies, Kills} = lists:unzip(Results),
        {ok, #{tally => sderl_demo_tally:merge(Tallies), kills => lists:append(Kills)}, Traffic}
    end.

%% The results of the phases

rates(Phases, #{seconds := Seconds}) ->
    [rates(Job, Result, Seconds) || Job := Result <- Phases].

rates(lookups, #{tally := Tally}, Seconds) ->
    #{
        lookups_per_s => rate(lookups, Tally, Seconds),
        own_lookup_ns => sderl_demo_tally:percentiles(own_lookup_ns, Tally),
        other_lookup_ns => sderl_demo_tally:percentiles(other_lookup_ns, Tally)
    };
rates(calls, #{tally := Tally}, Seconds) ->
    Own = rate(own_calls, Tally, Seconds),
    Other = rate(other_calls, Tally, Seconds),
    #{
        calls_per_s => Own + Other,
        own_calls_per_s => Own,
        other_calls_per_s => Other,
        own_call_us => sderl_demo_tally:percentiles(own_call_us, Tally),
        other_call_us => sderl_demo_tally:percentiles(other_call_us, Tally)
    };
rates(registrations, #{tally := Tally, traffic := Traffic}, Seconds) ->
    #{bytes := Bytes, messages := Messages} = Traffic,
    %% Those that ended late too, because their traffic is counted.
    Names = max(1, sderl_demo_tally:count(changes, Tally) div 2),
    #{
        registrations_per_s => rate(registrations, Tally, Seconds),
        register_us => sderl_demo_tally:percentiles(register_us, Tally),
        unregister_us => sderl_demo_tally:percentiles(unregister_us, Tally),
        bytes_per_registration => round(Bytes / Names),
        messages_per_registration => Messages / Names
    };
rates(kills, #{kills := Kills}, _Seconds) ->
    Times = lists:foldl(
        fun(Us, Tally) -> sderl_demo_tally:time(recovery_us, Us, Tally) end,
        sderl_demo_tally:new(),
        [Us || #{recovery_us := Us} <- Kills, is_integer(Us)]
    ),
    #{p50 := P50, p99 := P99} = sderl_demo_tally:percentiles(recovery_us, Times),
    #{kills => length(Kills), recovery_ms => #{p50 => ms(P50), p99 => ms(P99)}}.

ms(null) -> null;
ms(Us) -> Us / 1000.

rate(Count, Tally, Seconds) ->
    round(sderl_demo_tally:count(Count, Tally) / Seconds).

losses(#{calls := #{tally := Calls}, kills := #{tally := Under, kills := Kills}}) ->
    Pairs = [[Pid, Server] || #{killed := Pid, server := Server} <- Kills, is_pid(Pid)],
    Killed = lists:append(Pairs),
    Entries = sderl_demo_tally:failures(sderl_demo_tally:merge([Calls, Under])),
    #{lost := Lost, reasons := Reasons, in_flight := InFlight, retried := Retried} =
        sderl_demo_ledger:judge(Entries, Killed),
    #{
        lost_calls => Lost,
        lost_reasons => [
            unicode:characters_to_binary(io_lib:format("~w x ~tP", [Count, Reason, 20]))
         || {Reason, Count} <- Reasons
        ],
        calls_in_flight_at_kills => InFlight,
        retried_calls => Retried
    }.

%% Failures other than lost calls: a name that was registered and not found, a refused registration,
%% a client that did not end, a server that did not come back.
errors(Phases) ->
    #{lookups := Lookups, registrations := Registrations, kills := #{kills := Kills}} = Phases,
    Refused = maps:values(sderl_demo_tally:failures(maps:get(tally, Registrations))),
    Unfinished = [sderl_demo_tally:count(unfinished, Tally) || _ := #{tally := Tally} <- Phases],
    Away = [Server || #{server := Server, recovery_us := never} <- Kills],
    Missed = sderl_demo_tally:count(missed_lookups, maps:get(tally, Lookups)),
    #{errors => Missed + lists:sum(Refused) + lists:sum(Unfinished) + length(Away)}.

%% All names everywhere

%% A member may hear of the last restart a moment after the watcher.
check(Fleet, Site) ->
    Look = fun() ->
        case look(Fleet, Site) of
            {ok, #{missing_names := 0, leftover_names := 0}} -> true;
            Other -> Other
        end
    end,
    case sderl_fleet:await(Look, ?CHECK_TIMEOUT_MS) of
        ok -> look(Fleet, Site);
        {error, {timeout, {ok, Found}}} -> {ok, Found};
        {error, {timeout, {error, _} = Error}} -> Error;
        {error, Reason} -> {error, Reason}
    end.

look(Fleet, Site) ->
    maybe
        {ok, Seen} ?=
            on_all(Fleet, Site, sderl_demo_load, seen, [Site], ?CHECK_TIMEOUT_MS),
        {ok, missing(Seen)}
    end.

%% Counts a name once for each node on which it does not lead to the process that runs.
missing(Seen) ->
    Running = maps:from_list(lists:append([Pids || #{running := Pids} <- Seen])),
    Wrong = [
        Server
     || #{registered := Registered} <- Seen,
        {Server, Pid} <- Registered,
        Pid =:= undefined orelse maps:get(Server, Running, none) =/= Pid
    ],
    #{
        missing_names => length(Wrong),
        leftover_names => lists:sum([Count || #{leftover := Count} <- Seen]),
        names_bytes_per_node => lists:sum([Bytes || #{bytes := Bytes} <- Seen]) div length(Seen)
    }.
