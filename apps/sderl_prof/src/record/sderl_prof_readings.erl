%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_readings).
-moduledoc """
Reads what this node's virtual machine tells of itself during some seconds: what its threads do, how
much of the time schedulers are awake, how many processes wait for them, memory by allocator, calls
of some modules, locks, and what the system's `perf` says.

What is switched on for that is switched off again, however it ends. Calls are counted in a trace
session of its own. Needs `m:sderl_prof_switch`, `m:sderl_prof_locks`, `m:sderl_prof_perf` and no
other module of this project, so that these can be loaded into any node.
""".

-export([start/2, stop/1]).
-export_type([plan/0, readings/0, reason/0, allocator/0, call/0]).

%% The time between two looks at the run queues, on average.
-define(LOOK_MS, 20).
%% Functions of the result, those that took most first.
-define(MOST_CALLS, 1000).
-define(SESSION, sderl_readings).

-doc """
`modules`: those of which calls are counted; `perf`: also look in which functions the virtual
machine runs; `locks`: count locks where the emulator can; `probes`: count those static probes of
the emulator whose names begin so; `record`: and have `perf` write them into this file.
""".
-type plan() :: #{milliseconds := pos_integer(), modules := [module()],
                  measure := call_count | call_time | call_memory, perf := boolean(),
                  locks := boolean(), probes := [binary()],
                  record := none | file:filename()}.
-type reason() :: {no_module, module()}.

-doc "Blocks and carriers of one allocator, all its instances together, in bytes.".
-type allocator() :: #{name := atom(), instances := non_neg_integer(), blocks := number(),
                       by_type := #{atom() => number()}, single := {number(), number()},
                       multi := {number(), number()}, pooled := {number(), number()}}.
-doc "Calls of a function, and what they took: nanoseconds, or words.".
-type call() :: {mfa(), Calls :: number(), Took :: number()}.

-doc """
`counts` are those of the time between; `queues`: of each run queue how many waited, summed over
`looks`, and the most. `memory` and `allocators` are of the end; `outside`: bytes that
`erlang:memory/0` adds to those of allocators, for compiled code and for tables.
""".
-type readings() :: #{
    node := binary(), otp := binary(), emulator := #{atom() => term()},
    began_wall := integer(), ns := pos_integer(),
    schedulers := [{normal | cpu | io, pos_integer(), Awake :: integer(), All :: integer()}],
    looks := non_neg_integer(),
    queues := [{Sum :: non_neg_integer(), Most :: non_neg_integer()}],
    accounting := ours | others,
    threads := [{atom(), pos_integer(), #{atom() => integer()}}],
    counts := #{atom() => integer()},
    processes := pos_integer(), ports := non_neg_integer(),
    memory := [{atom(), non_neg_integer()}], allocators := [allocator()],
    outside := #{code := non_neg_integer(), ets := non_neg_integer()},
    resident := pos_integer() | undefined,
    measure := call_count | call_time | call_memory, calls := [call()],
    locks := none | not_wanted | sderl_prof_locks:told(),
    counters := sderl_prof_perf:answer(), functions := not_wanted | sderl_prof_perf:answer(),
    probes := none | #{Name :: binary() => Places :: pos_integer()},
    probed := not_wanted | {refused, binary()} | sderl_prof_perf:answer(),
    recorded := not_wanted | {File :: binary(), sderl_prof_perf:answer()}
}.

-doc "Begins; the owner gets `{sderl_prof_read, Reader, Result}` at the end.".
-spec start(plan(), Owner :: pid()) -> {ok, pid()}.
start(Plan, Owner) ->
    {ok, spawn(fun() -> begin_(Plan, Owner) end)}.

-doc "Ends it before its time.".
-spec stop(pid()) -> ok.
stop(Reader) ->
    Reader ! stop,
    ok.

begin_(Plan, Owner) ->
    %% So that it looks in time, also where many processes wait for a scheduler.
    _ = process_flag(priority, high),
    Monitor = monitor(process, Owner),
    Result = try
        {ok, read(Plan, Monitor)}
    catch
        throw:{no_module, _} = Why -> {error, Why}
    end,
    Owner ! {sderl_prof_read, self(), Result}.

read(#{milliseconds := Ms, measure := Measure, modules := Modules} = Plan, Monitor) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    Accounting = sderl_prof_switch:take_accounting(),
    Session = trace_calls(Modules, Measure),
    Counting = count_locks(Plan),
    Probes = probes(),
    Group = sderl_prof_hooks:group(),
    Hooked = hook(Group, Probes, map_get(probes, Plan)),
    Perf = [{Key, sderl_prof_perf:start(What, Ms)}
            || {Key, What} <- [{counters, counters}] ++
                              [{functions, functions} || map_get(perf, Plan)] ++
                              [{probed, {events, Group}}
                               || {hooked, _} <- [Hooked]] ++
                              [{recorded, {events, Group, File}}
                               || {hooked, _} <- [Hooked], #{record := File} <- [Plan],
                                  File =/= none]],
    Before = now_counts(),
    Until = erlang:monotonic_time(millisecond) + Ms,
    {Looks, Queues} = look(Until, Monitor, 0, []),
    After = now_counts(),
    Locks = locks_counted(Counting),
    Calls = calls(Session, Modules, Measure),
    ok = sderl_prof_switch:off(Accounting),
    lists:foreach(fun({_, Task}) -> sderl_prof_perf:stop(Task) end, Perf),
    Said = maps:from_list([{What, sderl_prof_perf:await(Task, Ms)} || {What, Task} <- Perf]),
    ok = unhook(Hooked),
    (between(Before, After))#{
        node => atom_to_binary(node()),
        otp => list_to_binary(erlang:system_info(otp_release)),
        emulator => emulator(),
        looks => Looks, queues => Queues,
        accounting => case Accounting of none -> others; _ -> ours end,
        processes => erlang:system_info(process_count),
        ports => erlang:system_info(port_count),
        memory => erlang:memory(), allocators => allocators(), outside => outside(),
        resident => resident(),
        measure => Measure, calls => Calls,
        locks => locked(Locks),
        counters => map_get(counters, Said), functions => maps:get(functions, Said, not_wanted),
        probes => listed(Probes), probed => maps:get(probed, Said, Hooked),
        recorded => case {Said, Plan} of
            {#{recorded := Answer}, #{record := File}} ->
                {unicode:characters_to_binary(File), Answer};
            _ -> not_wanted
        end
    }.

emulator() ->
    #{
        version => unicode:characters_to_binary(
            string:trim(erlang:system_info(system_version))),
        flavor => erlang:system_info(emu_flavor),
        type => erlang:system_info(build_type),
        probes => erlang:system_info(dynamic_trace),
        schedulers_online => erlang:system_info(schedulers_online),
        os_pid => list_to_binary(os:getpid()),
        symbols => filelib:is_regular(sderl_prof_perf:map_file())
    }.

%% ---------------------------------------------------------------- counts

now_counts() ->
    {Collections, Words, _} = statistics(garbage_collection),
    {Switches, _} = statistics(context_switches),
    {Reductions, _} = statistics(exact_reductions),
    {{input, In}, {output, Out}} = statistics(io),
    #{
        at => erlang:monotonic_time(nanosecond), wall => erlang:system_time(nanosecond),
        times => lists:sort(statistics(scheduler_wall_time_all)),
        threads => sderl_prof_switch:threads(),
        counts => #{reductions => Reductions, switches => Switches, collections => Collections,
                    reclaimed_words => Words, input => In, output => Out}
    }.

between(#{at := Begin, wall := Wall, times := Times0, threads := Threads0, counts := Counts0},
        #{at := End, times := Times1, threads := Threads1, counts := Counts1}) ->
    Kinds = [{erlang:system_info(schedulers), normal},
             {erlang:system_info(dirty_cpu_schedulers), cpu},
             {erlang:system_info(dirty_io_schedulers), io}],
    %% Schedulers are numbered in this order.
    Kind = lists:append([lists:duplicate(N, Name) || {N, Name} <- Kinds]),
    #{
        began_wall => Wall, ns => max(1, End - Begin),
        schedulers => [{lists:nth(Id, Kind), Id, Awake1 - Awake0, All1 - All0}
                       || {{Id, Awake0, All0}, {Id, Awake1, All1}} <- lists:zip(Times0, Times1)],
        threads => [{Type, N, spent(Counters, lists:keyfind(Type, 1, Threads0))}
                    || {Type, N, Counters} <- Threads1],
        counts => maps:map(fun(Key, N) -> N - map_get(Key, Counts0) end, Counts1)
    }.

spent(Now, {_, _, Before}) -> maps:map(fun(State, N) -> N - maps:get(State, Before, 0) end, Now);
spent(Now, false) -> Now.

%% ---------------------------------------------------------------- run queues

look(Until, Monitor, Looks, Queues) ->
    Left = max(0, Until - erlang:monotonic_time(millisecond)),
    %% At random times: regular ones could be in step with the processes.
    Wait = min(Left, rand:uniform(2 * ?LOOK_MS - 1)),
    receive
        stop -> {Looks, Queues};
        {'DOWN', Monitor, process, _, _} -> {Looks, Queues}
    after Wait ->
        case erlang:monotonic_time(millisecond) >= Until of
            true -> {Looks, Queues};
            false ->
                Now = statistics(run_queue_lengths_all),
                look(Until, Monitor, Looks + 1, added(Now, Queues))
        end
    end.

added(Now, []) -> [{N, N} || N <- Now];
added(Now, Queues) ->
    lists:zipwith(fun(N, {Sum, Most}) -> {Sum + N, max(Most, N)} end, Now, Queues).

%% ---------------------------------------------------------------- memory

allocators() ->
    [allocator(Name, erlang:system_info({allocator, Name}))
     || Name <- erlang:system_info(alloc_util_allocators)].

%% One that is switched off has no instances.
allocator(Name, Instances) when is_list(Instances) ->
    Parts = [{Kind, Part} || {instance, _, Info} <- Instances, {Kind, Part} <- Info,
                             Kind =:= mbcs orelse Kind =:= sbcs orelse Kind =:= mbcs_pool],
    Blocks = [{Type, value(size, Of)} || {_, Part} <- Parts,
                                         {Type, Of} <- proplists:get_value(blocks, Part, [])],
    By = maps:groups_from_list(fun({Type, _}) -> Type end, fun({_, Size}) -> Size end, Blocks),
    #{
        name => Name, instances => length(Instances),
        blocks => lists:sum([Size || {_, Size} <- Blocks]),
        by_type => maps:map(fun(_, Sizes) -> lists:sum(Sizes) end, By),
        single => carriers(sbcs, Parts), multi => carriers(mbcs, Parts),
        pooled => carriers(mbcs_pool, Parts)
    };
allocator(Name, _) ->
    #{name => Name, instances => 0, blocks => 0, by_type => #{}, single => {0, 0},
      multi => {0, 0}, pooled => {0, 0}}.

carriers(Kind, Parts) ->
    {lists:sum([value(carriers, Part) || {K, Part} <- Parts, K =:= Kind]),
     lists:sum([value(carriers_size, Part) || {K, Part} <- Parts, K =:= Kind])}.

%% The first number is the present value; maxima may follow.
value(Key, List) ->
    case lists:keyfind(Key, 1, List) of
        false -> 0;
        Row -> element(2, Row)
    end.

outside() ->
    Areas = erlang:system_info(allocated_areas),
    #{code => value(external_alloc, Areas), ets => value(ets_misc, Areas)}.

%% What the system counts as this program's memory that is not swapped out.
resident() ->
    maybe
        {ok, Text} ?= file:read_file("/proc/self/status"),
        {match, [KiB]} ?= re:run(Text, "(?m)^VmRSS:\\s+(\\d+)", [{capture, all_but_first, binary}]),
        1024 * binary_to_integer(KiB)
    else
        _ -> undefined
    end.

%% ---------------------------------------------------------------- calls

trace_calls([], _) -> none;
trace_calls(Modules, Measure) ->
    Session = trace:session_create(?SESSION, self(), []),
    try
        lists:foreach(fun(Module) ->
            _ = code:ensure_loaded(Module),
            case trace:function(Session, {Module, '_', '_'}, true, [Measure]) of
                0 -> throw({no_module, Module});
                _ -> ok
            end
        end, Modules),
        %% Counts alone need no process.
        _ = Measure =:= call_count orelse trace:process(Session, all, true, [call]),
        Session
    catch
        throw:Why ->
            _ = trace:session_destroy(Session),
            throw(Why)
    end.

calls(none, _, _) -> [];
calls(Session, Modules, Measure) ->
    lists:foreach(fun(Module) ->
        trace:function(Session, {Module, '_', '_'}, pause, [Measure])
    end, Modules),
    Calls = [{{Module, Function, Arity}, Count, Took}
             || Module <- Modules,
                {Function, Arity} <- Module:module_info(functions),
                {Count, Took} <- told(trace:info(Session, {Module, Function, Arity}, Measure)),
                Count > 0],
    true = trace:session_destroy(Session),
    lists:sublist(lists:sort(fun({_, N0, A}, {_, N1, B}) -> {A, N0} >= {B, N1} end, Calls),
                  ?MOST_CALLS).

told({call_count, Count}) when is_integer(Count) -> [{Count, 0}];
told({call_time, Rows}) when is_list(Rows) ->
    [{lists:sum([Count || {_, Count, _, _} <- Rows]),
      lists:sum([1000 * (1_000_000 * S + Us) || {_, _, S, Us} <- Rows])}];
told({call_memory, Rows}) when is_list(Rows) ->
    [{lists:sum([Count || {_, Count, _} <- Rows]), lists:sum([Words || {_, _, Words} <- Rows])}];
told(_) -> [].

%% ---------------------------------------------------------------- locks

count_locks(#{locks := false}) -> not_wanted;
count_locks(_) -> sderl_prof_locks:start().

locks_counted(not_wanted) -> not_wanted;
locks_counted(Counting) -> sderl_prof_locks:stop(Counting).

locked({Before, After}) -> sderl_prof_locks:since(Before, After);
locked(Without) -> Without.

%% ---------------------------------------------------------------- probes

probes() ->
    case erlang:system_info(dynamic_trace) of
        none -> none;
        _ -> sderl_prof_probes:of_emulator()
    end.

listed({ok, Probes}) ->
    maps:map(fun(_, Places) -> length(Places) end,
             maps:groups_from_list(fun(#{name := Name}) -> Name end, Probes));
listed(_) -> none.

hook(_, _, []) -> not_wanted;
hook(Group, {ok, Probes}, Wanted) ->
    case sderl_prof_hooks:chosen(Probes, Wanted) of
        [] -> {refused, ~"the emulator has no probes of these names"};
        Chosen ->
            case sderl_prof_hooks:hook(Group, Chosen) of
                {ok, Switch} -> {hooked, Switch};
                Refused -> Refused
            end
    end;
hook(_, none, _) -> not_wanted;
hook(_, {error, Why}, _) ->
    {refused, unicode:characters_to_binary(
        io_lib:format("the probes of the emulator cannot be read from its file: ~0tp", [Why]))}.

unhook({hooked, Switch}) -> sderl_prof_switch:off(Switch);
unhook(_) -> ok.
