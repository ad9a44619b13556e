%% SPDX-License-Identifier: Apache-2.0
-module(sderl_debench_node).
-moduledoc """
DE-Bench on one node: makes the node's own operations. All nodes begin at the same moment, and get
no message of the driver until it asks for the tallies.

*Open* load: one process makes operations when they are due, each in a process of its own, so that
none waits for another. It sleeps until the next is due. As timers of Erlang have whole
milliseconds, an operation is due at the first whole one after the moment that `m:sderl_bench_pace`
gives; a timer for such a moment fires within some hundredths of a millisecond if the processor is
free.

*Closed* load: so many workers, each of which makes the next operation as soon as its last one has
ended.
""".

-export([prepare/1, load/1, names/2]).
-export([flight/5]).
-export_type([load/0, rate/0]).

-import(sderl_clock, [now_ns/0]).

-doc "Operations a second of this node, or the number of its workers.".
-type rate() :: {open, PerSecond :: number()} | {closed, Workers :: pos_integer()}.

-doc """
`index` is the node's place in the fleet, `begin_us` the `os:system_time/1` at which it begins;
`targets` are the nodes for point-to-point operations; `in_flight` is the most units that may be on
their way under open load. The other keys are as in `t:sderl_debench_op:context/0` and
`t:sderl_debench_mix:options/0`.
""".
-type load() :: #{
    impl := module(),
    group := sderl_bench_impl:group(),
    index := pos_integer(),
    targets := [node()],
    global_pct := number(),
    weights := sderl_debench_mix:weights(),
    load := rate(),
    pace := poisson | even,
    payload := non_neg_integer(),
    compute_us := non_neg_integer(),
    timeout_ms := pos_integer(),
    in_flight := pos_integer(),
    seed := term(),
    begin_us := integer(),
    warmup_ms := non_neg_integer(),
    measure_ms := pos_integer()
}.

-record(open, {
    context :: sderl_debench_op:context(),
    index :: pos_integer(),
    targets :: tuple(),
    mix :: sderl_debench_mix:mix(),
    pace :: sderl_bench_pace:pace(),
    begun :: integer(),
    until :: integer(),
    in_flight :: pos_integer(),
    %% When the next unit is due, and the moment that the pace gave, by which it is counted: that
    %% does not depend on the clock's offset.
    next = 0 :: integer(),
    at = 0 :: integer(),
    %% The number of units so far, for fresh names.
    made = 0 :: non_neg_integer(),
    flying = #{} :: #{pid() => {sderl_debench_mix:unit(), Due :: integer(), At :: integer(),
                                Name :: term()}},
    %% Local names that are not in use.
    free :: [atom()],
    tally :: sderl_debench_tally:tally()
}).

-record(worker, {
    context :: sderl_debench_op:context(),
    id :: {Index :: pos_integer(), Worker :: pos_integer()},
    targets :: tuple(),
    mix :: sderl_debench_mix:mix(),
    name :: atom(),
    until :: integer(),
    tally :: sderl_debench_tally:tally()
}).

%% Local names of an open load. An operation uses one for some microseconds.
-define(LOCAL_NAMES, 100).

%% How long operations may take to end themselves when their time is over.
-define(SLACK_NS, 2_000_000_000).

%% Modules that operations call.
-define(USED, [
    sderl_debench_mix, sderl_debench_op, sderl_debench_echo, sderl_debench_server,
    sderl_debench_statem, sderl_debench_tally, sderl_bench_histogram, sderl_bench_pace,
    sderl_fleet_task, rpc, erpc, gen, gen_server, gen_statem, rand, global, pg
]).

%% A worker that only fails must not spin.
-define(AFTER_FAILURE_MS, 10).

-doc """
Starts the processes that other nodes call; all nodes must have them before any begins. Also loads
the code, which would otherwise make the first operation of each kind slow.
""".
-spec prepare(module()) -> ok | {error, term()}.
prepare(Impl) ->
    Library =
        case application:get_key(sderl, modules) of
            {ok, Modules} -> Modules;
            undefined -> []
        end,
    maybe
        ok ?= code:ensure_modules_loaded([Impl | ?USED ++ Library]),
        ok ?= sderl_debench_server:start(),
        sderl_debench_statem:start()
    end.

-doc """
Makes the load and returns the tally when it is over and the last operation has ended, `timeout_ms`
after the end at the latest.
""".
-spec load(load()) -> {ok, sderl_debench_tally:tally()} | {error, {late, Ms :: integer()} | term()}.
load(#{begin_us := BeginUs, warmup_ms := WarmupMs, measure_ms := MeasureMs, load := Rate,
       timeout_ms := TimeoutMs} = Load) ->
    Begin = now_ns() + 1000 * (BeginUs - os:system_time(microsecond)),
    From = Begin + 1_000_000 * WarmupMs,
    Until = From + 1_000_000 * MeasureMs,
    Last = Until + 1_000_000 * TimeoutMs,
    Context = (maps:with([impl, group, compute_us, timeout_ms], Load))#{
        block => rand:bytes(maps:get(payload, Load)), last_ns => Last
    },
    Tasks = start(Rate, Begin, Until, Context, sderl_debench_tally:new(From, Until), Load),
    case now_ns() of
        Now when Now > From ->
            _ = [ok = sderl_fleet_task:stop(Task) || Task <- Tasks],
            {error, {late, (Now - From) div 1_000_000}};
        _ ->
            ended([sderl_fleet_task:result(Task, left_ms(Last + 2 * ?SLACK_NS)) || Task <- Tasks])
    end.

ended(Results) ->
    case [Reason || {error, Reason} <- Results] of
        [] -> {ok, sderl_debench_tally:merge([Tally || {ok, Tally} <- Results])};
        [Reason | _] -> {error, Reason}
    end.

start({open, PerSecond}, Begin, Until, Context, Tally, Load) ->
    #{index := Index, targets := Targets, seed := Seed, pace := Kind, in_flight := InFlight} = Load,
    Open = #open{
        context = Context,
        index = Index,
        targets = list_to_tuple(Targets),
        mix = sderl_debench_mix:new(Load#{seed := {Seed, Index, 1}}),
        %% A unit may be several operations.
        pace = sderl_bench_pace:new(#{
            rate => PerSecond / sderl_debench_mix:ops_per_unit(Load), seed => {Seed, Index},
            kind => Kind
        }),
        begun = Begin,
        until = Until,
        in_flight = InFlight,
        free = local_names(?LOCAL_NAMES),
        tally = Tally
    },
    [
        sderl_fleet_task:start(fun() ->
            %% So that it does not wait behind the operations, of which there may be many.
            _ = process_flag(priority, high),
            open(next(Open))
        end)
    ];
start({closed, Workers}, Begin, Until, Context, Tally,
      #{index := Index, targets := Targets, seed := Seed} = Load) ->
    [
        sderl_fleet_task:start(fun() ->
            ok = sleep_until(Begin),
            closed(1, #worker{
                context = Context,
                id = {Index, W},
                targets = list_to_tuple(Targets),
                mix = sderl_debench_mix:new(Load#{seed := {Seed, Index, W}}),
                name = Name,
                until = Until,
                tally = Tally
            })
        end)
     || {W, Name} <- lists:enumerate(local_names(Workers))
    ].

%% The same atoms in every run.
local_names(Count) ->
    [list_to_atom("sderl_debench_" ++ integer_to_list(N)) || N <- lists:seq(1, Count)].

%% Open load

next(#open{pace = Pace, begun = Begun, until = Until} = Open) ->
    {Offset, Pace1} = sderl_bench_pace:next(Pace),
    case Begun + Offset of
        At when At < Until ->
            Due = whole_ms(At),
            _ = erlang:start_timer(Due div 1_000_000, self(), due, [{abs, true}]),
            Open#open{pace = Pace1, next = Due, at = At};
        _ ->
            _ = erlang:start_timer(whole_ms(Until) div 1_000_000, self(), over, [{abs, true}]),
            Open
    end.

whole_ms(Ns) -> -(-Ns div 1_000_000) * 1_000_000.

open(Open) ->
    receive
        {timeout, _, due} -> open(next(issue(Open)));
        {timeout, _, over} -> drain(Open);
        {'DOWN', _, process, Pid, Reason} -> open(landed(Pid, Reason, Open))
    end.

issue(
    #open{mix = Mix, targets = Targets, next = Due, at = At, made = Made, tally = Tally} = Open
) ->
    {Unit, Target, Mix1} = sderl_debench_mix:next(Targets, Mix),
    Open1 = Open#open{
        mix = Mix1, made = Made + 1, tally = sderl_debench_tally:late(now_ns() - Due, Tally)
    },
    case {Unit, Open1} of
        {_, #open{flying = Flying, in_flight = Most}} when map_size(Flying) >= Most ->
            failed(Unit, Due, At, overload, Open1);
        {local, #open{free = []}} -> failed(Unit, Due, At, overload, Open1);
        {local, #open{free = [Name | Free]}} -> fly(Unit, Target, Name, Open1#open{free = Free});
        {_, #open{index = Index}} -> fly(Unit, Target, {Index, 0, Made}, Open1)
    end.

fly(Unit, Target, Name, #open{context = Context, next = Due, at = At, flying = Flying} = Open) ->
    {Pid, _} = spawn_monitor(?MODULE, flight, [Unit, Target, Name, Due, Context]),
    Open#open{flying = Flying#{Pid => {Unit, Due, At, Name}}}.

-doc false.
%% The exit reason has the result: one message instead of a result and an exit.
-spec flight(sderl_debench_mix:unit(), node() | none, term(), integer(),
             sderl_debench_op:context()) -> no_return().
flight(Unit, Target, Name, Due, Context) ->
    exit({landed, sderl_debench_op:run(Unit, Target, Name, Due, Context)}).

landed(Pid, Reason, #open{flying = Flying} = Open) ->
    {{Unit, Due, At, Name}, Flying1} = maps:take(Pid, Flying),
    Open1 = given_back(Unit, Name, Open#open{flying = Flying1}),
    case Reason of
        {landed, Samples} ->
            Open1#open{tally = sderl_debench_tally:add(At, Samples, Open1#open.tally)};
        _ -> failed(Unit, Due, At, {ended, Reason}, Open1)
    end.

given_back(local, Name, #open{free = Free} = Open) -> Open#open{free = [Name | Free]};
given_back(_, _, Open) -> Open.

failed(Unit, Due, At, Reason, #open{tally = Tally} = Open) ->
    Now = now_ns(),
    Sample = {hd(sderl_debench_mix:steps(Unit)), Due, Now, Now, {error, Reason}},
    Open#open{tally = sderl_debench_tally:add(At, [Sample], Tally)}.

%% Operations end themselves at `last_ns`.
drain(#open{flying = Flying, tally = Tally}) when map_size(Flying) =:= 0 ->
    Tally;
drain(#open{context = #{last_ns := Last}, flying = Flying} = Open) ->
    receive
        {'DOWN', _, process, Pid, Reason} -> drain(landed(Pid, Reason, Open))
    after left_ms(Last + ?SLACK_NS) ->
        _ = [exit(Pid, kill) || Pid := _ <- Flying],
        Out = maps:values(Flying),
        #open{tally = Tally} = lists:foldl(
            fun({Unit, Due, At, _}, O) -> failed(Unit, Due, At, timeout, O) end, Open, Out
        ),
        Tally
    end.

%% Closed load

closed(K, #worker{context = Context, id = {Index, W}, targets = Targets, mix = Mix, until = Until,
                  tally = Tally} = Worker) ->
    case now_ns() of
        Now when Now < Until ->
            {Unit, Target, Mix1} = sderl_debench_mix:next(Targets, Mix),
            Name =
                case Unit of
                    local -> Worker#worker.name;
                    _ -> {Index, W, K}
                end,
            Samples = sderl_debench_op:run(Unit, Target, Name, Now, Context),
            ok = rest(Samples),
            closed(K + 1,
                   Worker#worker{mix = Mix1, tally = sderl_debench_tally:add(Now, Samples, Tally)});
        _ ->
            Tally
    end.

rest(Samples) ->
    case lists:last(Samples) of
        {_, _, _, _, {error, _}} ->
            receive
            after ?AFTER_FAILURE_MS -> ok
            end;
        _ ->
            ok
    end.

-doc "How many names of the group this node knows.".
-spec names(module(), sderl_bench_impl:group()) -> non_neg_integer().
names(Impl, Group) -> length(Impl:names(Group)).

sleep_until(Ns) ->
    receive
    after left_ms(Ns) -> ok
    end.

left_ms(Ns) -> max(0, (Ns - now_ns()) div 1_000_000).
