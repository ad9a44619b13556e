%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_migrations).
-moduledoc """
How often processes continue on another scheduler than before while a program runs: their data is
then in the caches of another core.

A trace session reports each time that a process begins to run, which makes the program slower; so
this is a run of its own, after all others. Only a short part in its middle is traced, or after two
seconds if that is sooner, and the rest of the run is not waited for, because a program may take
long. The process that gets the events ends the session after a limited number of them, and has the
highest priority: so neither a program that switches millions of times a second nor one that never
ends can fill the memory. It calls OTP only.
""".

-export([around/3, repetitions/1]).
-export_type([migrations/0]).

-doc """
`seen`: how many times a process began to run again; `share`: the share of these on another
scheduler than before; `per_s`: how many of those there are a second, on all nodes together.
""".
-type migrations() :: #{share := float(), per_s := float(), seen := non_neg_integer()}.

-define(WINDOW_NS, 50_000_000).
-define(MOST_DELAY_MS, 2000).
%% Events of one node. The queue of the process that gets them has a few times as many at most.
-define(MOST, 20_000).

-doc "How many repetitions of this duration fill the traced part, at least one.".
-spec repetitions(Ns :: float()) -> pos_integer().
repetitions(Ns) -> max(1, ceil(2 * ?WINDOW_NS / max(1.0, Ns))).

-doc """
Runs `Fun`, which takes about so long, and traces these nodes. When all of them were traced, the
process that runs `Fun` is killed; others that it has started may go on, so nothing should be
measured after this. `none`: this virtual machine has no trace sessions.
""".
-spec around([node(), ...], Ns :: float(), fun(() -> term())) -> migrations() | none.
around(Nodes, Ns, Fun) ->
    case code:ensure_loaded(trace) of
        {module, trace} ->
            Delay = min(?MOST_DELAY_MS, max(0, round((Ns - ?WINDOW_NS) / 2.0e6))),
            Parent = self(),
            Watchers = [spawn_opt(Node, fun() -> watch(Parent, Delay) end,
                                  [link, {priority, max}, {message_queue_data, off_heap}])
                        || Node <- Nodes],
            {Runner, Monitor} = spawn_monitor(Fun),
            All = told(Watchers, Monitor, []),
            true = exit(Runner, kill),
            true = demonitor(Monitor, [flush]),
            together(All);
        {error, _} ->
            none
    end.

%% Each watcher reports when its part is over; when the run ends before, the others are asked.
told([], _, All) ->
    All;
told([Watcher | Left] = Waiting, Monitor, All) ->
    receive
        {Watcher, Seen} ->
            told(Left, Monitor, [Seen | All]);
        {'DOWN', Monitor, process, _, _} ->
            _ = [Other ! tell || Other <- Waiting],
            told(Waiting, Monitor, All)
    end.

together(All) ->
    Seen = lists:sum([Again || {Again, _, _} <- All]),
    #{
        share => lists:sum([Moved || {_, Moved, _} <- All]) / max(1, Seen),
        per_s => lists:sum([1.0e9 * Moved / max(1, Ns) || {_, Moved, Ns} <- All]),
        seen => Seen
    }.

%% A program that has ended before the middle of its time was not traced.
watch(Parent, Delay) ->
    receive
        tell -> Parent ! {self(), {0, 0, 0}}
    after Delay ->
        Session = trace:session_create(?MODULE, self(), []),
        Began = erlang:monotonic_time(nanosecond),
        _ = trace:process(Session, all, true, [running, scheduler_id, monotonic_timestamp]),
        {Again, Moved, Ended} = look(Began + ?WINDOW_NS, ?MOST, #{}, 0, 0),
        true = trace:session_destroy(Session),
        Parent ! {self(), {Again, Moved, Ended - Began}}
    end.

%% `At`: the scheduler on which each process began to run last. All messages are taken in their
%% order, so that none is looked at twice.
look(Until, Left, At, Again, Moved) ->
    receive
        {trace_ts, _, _, _, _, Ns} when Ns > Until ->
            {Again, Moved, Until};
        {trace_ts, _, _, _, _, Ns} when Left =:= 0 ->
            {Again, Moved, Ns};
        %% Dirty schedulers are 0.
        {trace_ts, Pid, in, _, Scheduler, _} when Scheduler > 0 ->
            case At of
                #{Pid := Scheduler} ->
                    look(Until, Left - 1, At, Again + 1, Moved);
                #{Pid := _} ->
                    look(Until, Left - 1, At#{Pid := Scheduler}, Again + 1, Moved + 1);
                #{} ->
                    look(Until, Left - 1, At#{Pid => Scheduler}, Again, Moved)
            end;
        {trace_ts, _, _, _, _, _} ->
            look(Until, Left - 1, At, Again, Moved);
        tell ->
            {Again, Moved, min(Until, erlang:monotonic_time(nanosecond))}
    after max(0, (Until - erlang:monotonic_time(nanosecond)) div 1_000_000) ->
        {Again, Moved, Until}
    end.
