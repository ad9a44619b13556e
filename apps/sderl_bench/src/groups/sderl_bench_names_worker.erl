%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_names_worker).
-moduledoc """
The part of `bin/sderl bench names` that runs on the measured nodes; the driver calls it over the
fleet. Moments are `os:system_time(microsecond)`: the nodes share a machine.
""".

-export([coordinator/1, count/0, kill_process/2, write/3]).

-doc "The coordinator that this node follows, or is.".
-spec coordinator(Group :: atom()) -> node() | undefined.
coordinator(Group) ->
    {Group, _, Node} = lists:keyfind(Group, 1, sderl_observed:groups()),
    Node.

-doc "How many names this node has: it is in one group alone.".
-spec count() -> non_neg_integer().
count() -> sderl_observed:count_names().

-doc "Kills the group's process of this node at that moment; gives the moment of its death.".
-spec kill_process(Group :: atom(), AtUs :: integer()) -> Us :: integer().
kill_process(Group, At) ->
    Process = sderl_dir:process(Group),
    Monitor = monitor(process, Process),
    wait(At),
    Us = os:system_time(microsecond),
    true = exit(Process, kill),
    receive
        {'DOWN', Monitor, process, Process, killed} -> Us
    end.

-doc "Registers and unregisters a fresh name from that moment on; gives the moment of the `yes`.".
-spec write(Group :: atom(), Name :: term(), AtUs :: integer()) ->
    {ok, Us :: integer()} | {error, term()}.
write(Group, Name, At) ->
    wait(At),
    try_write(Group, Name, 100).

%% A call whose coordinator goes meanwhile may exit: the client then looks whether it has the name,
%% and else asks again.
try_write(Group, Name, Tries) ->
    Outcome = sderl_fleet_task:attempt(fun() -> sderl_bench_impl_s_group:register(Group, Name) end),
    Us = os:system_time(microsecond),
    IsWritten = Outcome =:= ok orelse sderl_bench_impl_s_group:whereis(Group, Name) =:= self(),
    case Outcome of
        _ when IsWritten ->
            ok = sderl_bench_impl_s_group:unregister(Group, Name),
            {ok, Us};
        {error, _} when Tries > 1 ->
            try_write(Group, Name, Tries - 1);
        {error, Reason} ->
            {error, Reason}
    end.

wait(At) ->
    receive
    after max(0, (At - os:system_time(microsecond)) div 1000) -> ok
    end.
