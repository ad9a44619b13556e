%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_why).
-moduledoc """
What a virtual machine did while a program ran: how long its schedulers worked, what for, how many
processes waited for one, reductions and garbage collection; how long threads waited for locks,
where the emulator counts that, and what the processor counts, where it does. It needs OTP, and the
modules that `m:sderl_bench_vm_start` takes along.

Looking costs a little, so this is a run of its own, whose time is not a result.
""".

-export([around/2]).
-export_type([why/0]).

-doc """
All of one repetition where it is an amount. `busy`: the share of the time that each normal
scheduler worked; `dirty_busy`: how many dirty schedulers worked, in the mean; `states`: the shares
of the schedulers' time by the states of `msacc`; `queue`, `queue_max`: processes that waited for a
scheduler, in the mean and the most; `cpu_ns`: processor time of the whole virtual machine, told in
steps of 10 ms; `locks`: nanoseconds that all threads together waited for locks of a class;
`counters`: rates of `m:sderl_prof_vm_perf`, or `counters_refused` with what perf said.
""".
-type why() :: #{
    repetitions := pos_integer(),
    wall_ns := float(),
    cpu_ns := float(),
    busy := [float()],
    dirty_busy := float(),
    states := #{atom() => float()},
    queue := float(),
    queue_max := non_neg_integer(),
    reductions := float(),
    collections := float(),
    reclaimed_words := float(),
    switches := float(),
    locks => #{atom() => float()},
    counters => #{atom() => float()},
    counters_refused => binary()
}.

%% Between two looks at the run queues.
-define(LOOK_MS, 2).
%% Classes of locks that are told.
-define(MOST_LOCKS, 10).

-doc "Runs `Fun`, which repeats the program so many times.".
-spec around(Count :: pos_integer(), fun(() -> term())) -> why().
around(Count, Fun) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    _ = erlang:system_flag(microstate_accounting, reset),
    _ = erlang:system_flag(microstate_accounting, true),
    Counters = sderl_bench_vm_counters:start(),
    Looker = looker(),
    Counting = sderl_prof_locks:start(),
    Before = counts(),
    _ = Fun(),
    After = counts(),
    Locks = sderl_prof_locks:stop(Counting),
    {Queue, Most} = looked(Looker),
    Counted = sderl_bench_vm_counters:stop(Counters),
    _ = erlang:system_flag(microstate_accounting, false),
    States = statistics(microstate_accounting),
    _ = erlang:system_flag(scheduler_wall_time, false),
    Each = fun(Key) -> (maps:get(Key, After) - maps:get(Key, Before)) / Count end,
    {Normal, Dirty} = busy(maps:get(times, Before), maps:get(times, After)),
    Known = maps:merge(Counted, waited(Locks, Count)),
    Known#{
        repetitions => Count, wall_ns => Each(wall_ns), cpu_ns => Each(cpu_ns),
        busy => Normal, dirty_busy => Dirty,
        states => states(States), queue => Queue, queue_max => Most, reductions => Each(reductions),
        collections => Each(collections), reclaimed_words => Each(reclaimed_words),
        switches => Each(switches)
    }.

counts() ->
    {Collections, Words, _} = statistics(garbage_collection),
    {Switches, _} = statistics(context_switches),
    {Reductions, _} = statistics(exact_reductions),
    #{
        wall_ns => erlang:monotonic_time(nanosecond), cpu_ns => cpu_ns(),
        times => lists:sort(statistics(scheduler_wall_time_all)), reductions => Reductions,
        collections => Collections, reclaimed_words => Words, switches => Switches
    }.

%% In user mode and in the system, which statistics(runtime) leaves out.
cpu_ns() ->
    case file:read_file("/proc/self/stat") of
        {ok, Stat} ->
            [_, After] = binary:split(Stat, <<") ">>),
            Fields = binary:split(After, <<" ">>, [global]),
            %% utime and stime, in ticks of 10 ms.
            10_000_000 * lists:sum([binary_to_integer(lists:nth(I, Fields)) || I <- [12, 13]]);
        {error, _} ->
            1_000_000 * element(1, statistics(runtime))
    end.

%% Normal schedulers have the first numbers, then come the dirty ones. Those that are not online
%% do not work.
busy(Before, After) ->
    Shares = [{Id, share(Active1 - Active0, Total1 - Total0)}
              || {{Id, Active0, Total0}, {Id, Active1, Total1}} <- lists:zip(Before, After)],
    Online = erlang:system_info(schedulers_online),
    All = erlang:system_info(schedulers),
    {[Share || {Id, Share} <- Shares, Id =< Online],
     lists:sum([Share || {Id, Share} <- Shares, Id > All]) + 0.0}.

share(_, 0) -> 0.0;
share(Part, Whole) -> Part / Whole.

states(Threads) ->
    Online = erlang:system_info(schedulers_online),
    Counters = [Counts || #{type := scheduler, id := Id, counters := Counts} <- Threads,
                          Id =< Online],
    Sums = lists:foldl(
        fun(Counts, Sums) -> maps:merge_with(fun(_, A, B) -> A + B end, Counts, Sums) end,
        #{}, Counters
    ),
    Whole = lists:sum(maps:values(Sums)),
    #{State => share(Sum, Whole) || State := Sum <- Sums}.

%% A process that looks often runs before others, and one of them waits only because it does.
looker() ->
    spawn_opt(fun() -> look(0, 0, 0) end, [link, {priority, max}]).

look(Count, Sum, Most) ->
    receive
        {stop, From} -> From ! {self(), Sum / max(1, Count), Most}
    after ?LOOK_MS ->
        Waiting = max(0, lists:sum(statistics(run_queue_lengths)) - 1),
        look(Count + 1, Sum + Waiting, max(Most, Waiting))
    end.

looked(Looker) ->
    Looker ! {stop, self()},
    receive
        {Looker, Mean, Most} -> {Mean, Most}
    end.

%% ---------------------------------------------------------------- locks

waited(none, _) -> #{};
waited({Before, After}, Count) ->
    #{classes := Classes} = sderl_prof_locks:since(Before, After),
    %% A class may have locks of several types.
    By = maps:groups_from_list(fun(#{class := Class}) -> Class end, fun(#{ns := Ns}) -> Ns end,
                               Classes),
    Longest = lists:reverse(lists:keysort(2, [{Class, lists:sum(Ns)} || Class := Ns <- By])),
    #{locks => #{Class => Ns / Count || {Class, Ns} <- lists:sublist(Longest, ?MOST_LOCKS)}}.
