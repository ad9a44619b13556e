%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_why).
-moduledoc """
Measures what a virtual machine, or several nodes, did while a program ran: how long the schedulers
worked and in which states, how many processes waited for one, reductions and garbage collection;
how long threads waited for locks, if the emulator counts that, and the processor's counters, if
they are available. It needs OTP, and the modules that `m:sderl_bench_vm_start` takes along.

This costs a little time, so it is a run of its own, whose time is not a result.
""".

-export([around/3]).
-export_type([why/0]).

-doc """
Amounts are of one repetition, and of all nodes together. `busy`: the share of the time that each
normal scheduler worked; `dirty_busy`: the mean number of dirty schedulers at work; `states`: the
shares of the schedulers' time by the states of `msacc`; `queue`, `queue_max`: processes that waited
for a scheduler, the mean of all nodes together, and the most on any of them; `cpu_ns`: processor
time of the whole virtual machine, in steps of 10 ms; `sent_bytes`: bytes that several nodes sent to
each other; `locks`: nanoseconds that all threads together waited for locks of a class; `counters`:
rates of `m:sderl_prof_vm_perf`, or `counters_refused` with the message of perf; `migrations`: see
`m:sderl_bench_vm_migrations`. `wall_ns` and `counters` are of the first node alone.
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
    sent_bytes => float(),
    migrations => sderl_bench_vm_migrations:migrations(),
    locks => #{atom() => float()},
    counters => #{atom() => float()},
    counters_refused => binary()
}.

%% Between two looks at the run queues.
-define(LOOK_MS, 2).
%% Classes of locks that are reported.
-define(MOST_LOCKS, 10).

-doc "Runs `Fun`, which repeats the program so many times on these nodes.".
-spec around(Count :: pos_integer(), [node(), ...], fun(() -> term())) -> why().
around(Count, Nodes, Fun) ->
    Watchers = [watcher(Node) || Node <- Nodes],
    _ = asked(Watchers, begin_now),
    _ = Fun(),
    Seen = asked(Watchers, tell),
    Each = fun(Key) -> total(Key, Seen) / Count end,
    Known = maps:merge(hd([Counted || #{counted := Counted} <- Seen]),
                       longest([Locks || #{locks := Locks} <- Seen], Count)),
    OfNodes = case Nodes of
        [_] -> #{};
        _ -> #{sent_bytes => Each(sent_bytes)}
    end,
    maps:merge(Known, OfNodes#{
        repetitions => Count, wall_ns => map_get(wall_ns, hd(Seen)) / Count,
        cpu_ns => Each(cpu_ns), busy => lists:append([Busy || #{busy := Busy} <- Seen]),
        dirty_busy => total(dirty_busy, Seen), states => mean([Of || #{states := Of} <- Seen]),
        queue => total(queue, Seen), queue_max => lists:max([Most || #{queue_max := Most} <- Seen]),
        reductions => Each(reductions), collections => Each(collections),
        reclaimed_words => Each(reclaimed_words), switches => Each(switches)
    }).

total(Key, Seen) -> lists:sum([map_get(Key, Of) || Of <- Seen]).

%% All nodes have the same number of schedulers, and are observed for the same time.
mean([Shares]) -> Shares;
mean(All) ->
    Sums = lists:foldl(fun(Of, Sums) -> maps:merge_with(fun(_, A, B) -> A + B end, Of, Sums) end,
                       #{}, All),
    #{State => Sum / length(All) || State := Sum <- Sums}.

%% A process on each node, because the flags that it sets end with it.
watcher(Node) ->
    Parent = self(),
    Watcher = spawn_link(Node, fun() -> watch(Parent) end),
    receive
        {Watcher, ready} -> Watcher
    end.

%% All at the same time.
asked(Watchers, What) ->
    _ = [Watcher ! {What, self()} || Watcher <- Watchers],
    [receive {Watcher, What, Answer} -> Answer end || Watcher <- Watchers].

%% The first node reads the processor's counters, of its own operating-system process. Counting
%% begins when all nodes are ready, and what takes long to stop is stopped last.
watch(Parent) ->
    _ = erlang:system_flag(scheduler_wall_time, true),
    _ = erlang:system_flag(microstate_accounting, true),
    Counters = case node(Parent) =:= node() of
        true -> sderl_bench_vm_counters:start();
        false -> none
    end,
    Counting = sderl_prof_locks:start(),
    Parent ! {self(), ready},
    receive
        {begin_now, Parent} -> ok
    end,
    Looker = looker(),
    _ = erlang:system_flag(microstate_accounting, reset),
    Before = counts(),
    Parent ! {self(), begin_now, ok},
    receive
        {tell, Parent} -> ok
    end,
    After = counts(),
    _ = erlang:system_flag(microstate_accounting, false),
    {Queue, Most} = looked(Looker),
    States = statistics(microstate_accounting),
    Locks = sderl_prof_locks:stop(Counting),
    Counted = sderl_bench_vm_counters:stop(Counters),
    _ = erlang:system_flag(scheduler_wall_time, false),
    {Normal, Dirty} = busy(maps:get(times, Before), maps:get(times, After)),
    Amounts = #{Key => map_get(Key, After) - map_get(Key, Before)
                || Key <- [wall_ns, cpu_ns, reductions, collections, reclaimed_words, switches,
                           sent_bytes]},
    Parent ! {self(), tell, Amounts#{
        busy => Normal, dirty_busy => Dirty, states => states(States), queue => Queue,
        queue_max => Most, counted => Counted, locks => waited(Locks)
    }}.

counts() ->
    {Collections, Words, _} = statistics(garbage_collection),
    {Switches, _} = statistics(context_switches),
    {Reductions, _} = statistics(exact_reductions),
    {_, {output, Sent}} = statistics(io),
    #{
        wall_ns => erlang:monotonic_time(nanosecond), cpu_ns => cpu_ns(),
        times => lists:sort(statistics(scheduler_wall_time_all)), reductions => Reductions,
        collections => Collections, reclaimed_words => Words, switches => Switches,
        sent_bytes => Sent
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

%% The looker has the highest priority; one process waits only because the looker runs.
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

waited(none) -> none;
waited({Before, After}) ->
    #{classes := Classes} = sderl_prof_locks:since(Before, After),
    %% A class may have locks of several types.
    By = maps:groups_from_list(fun(#{class := Class}) -> Class end, fun(#{ns := Ns}) -> Ns end,
                               Classes),
    #{Class => lists:sum(Ns) || Class := Ns <- By}.

longest([none | _], _) -> #{};
longest(All, Count) ->
    Sums = lists:foldl(fun(Of, Sums) -> maps:merge_with(fun(_, A, B) -> A + B end, Of, Sums) end,
                       #{}, All),
    Longest = lists:reverse(lists:keysort(2, maps:to_list(Sums))),
    #{locks => #{Class => Ns / Count || {Class, Ns} <- lists:sublist(Longest, ?MOST_LOCKS)}}.
