%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_join_worker).
-moduledoc """
The part of `bin/sderl bench join` that runs on the measured nodes; the driver calls it over
the fleet. Moments are `os:system_time(microsecond)`: the nodes share a machine.
""".

-export([start_writers/4, stop_writers/0, add/2, answers/3, memory/0]).
-export_type([sample/0]).

-doc "When a registration began, and how long it took, in us.".
-type sample() :: {BeganUs :: integer(), TookUs :: number()}.

-define(STOP_MS, 30_000).

%% Between two looks for a name that is not there yet.
-define(PAUSE_MS, 2).

-doc """
Starts clients that register a fresh name, unregister it and pause, until they are told to
stop. Their names are `{Index, Client, Number}`.
""".
-spec start_writers(Group :: atom(), Index :: pos_integer(), Clients :: pos_integer(),
                    PauseMs :: non_neg_integer()) ->
    ok.
start_writers(Group, Index, Clients, PauseMs) ->
    Caller = self(),
    Alias = alias([reply]),
    _ = spawn(fun() ->
        true = register(?MODULE, self()),
        Writers = [
            start_writer(Group, {Index, C, 1}, PauseMs)
         || C <- lists:seq(1, Clients)
        ],
        Caller ! {Alias, ok},
        receive
            {stop, From} -> From ! {?MODULE, collect(Writers)}
        end
    end),
    receive
        {Alias, ok} -> ok
    end.

%% Its pid, to tell it to stop, and the task that has its result.
start_writer(Group, Name, PauseMs) ->
    Parent = self(),
    Task = sderl_fleet_task:start(fun() ->
        Parent ! {writer, self()},
        write(Group, Name, PauseMs, [], 0)
    end),
    receive
        {writer, Pid} -> {Pid, Task}
    end.

write(Group, {Index, C, K}, PauseMs, Samples, Errors) ->
    receive
        stop -> {Samples, Errors}
    after PauseMs ->
        Name = {Index, C, K},
        Began = os:system_time(microsecond),
        T0 = erlang:monotonic_time(nanosecond),
        Registered =
            sderl_fleet_task:attempt(fun() -> sderl_bench_impl_s_group:register(Group, Name) end),
        Took = (erlang:monotonic_time(nanosecond) - T0) / 1000,
        Unregistered =
            sderl_fleet_task:attempt(fun() -> sderl_bench_impl_s_group:unregister(Group, Name) end),
        Failed = length([failed || Outcome <- [Registered, Unregistered], Outcome =/= ok]),
        write(Group, {Index, C, K + 1}, PauseMs, [{Began, Took} | Samples], Errors + Failed)
    end.

-doc "Stops the clients; what they measured, and how many operations failed.".
-spec stop_writers() -> {[sample()], Errors :: non_neg_integer()}.
stop_writers() ->
    ?MODULE ! {stop, self()},
    receive
        {?MODULE, Collected} -> Collected
    end.

collect(Writers) ->
    _ = [Pid ! stop || {Pid, _} <- Writers],
    {Samples, Errors} = lists:unzip([written(Task) || {_, Task} <- Writers]),
    {lists:append(Samples), lists:sum(Errors)}.

written(Task) ->
    case sderl_fleet_task:result(Task, ?STOP_MS) of
        {ok, Written} -> Written;
        {error, _} -> {[], 1}
    end.

-doc "Adds a node to a group of this node; when that began and when the call returned.".
-spec add(Group :: atom(), node()) ->
    {ok, BeganUs :: integer(), DoneUs :: integer()} | {error, term()}.
add(Group, Node) ->
    Began = os:system_time(microsecond),
    case s_group:add_nodes(Group, [Node]) of
        {ok, Group, [Node]} -> {ok, Began, os:system_time(microsecond)};
        Other -> {error, Other}
    end.

-doc """
Waits until this node is a member and has answered for each of the names; gives the moment.
`{Place, 0, Count}` stands for the names `{Place, 0, K}` with K from 1 to `Count`. The names
must stay: one that was there is not asked for again.
""".
-spec answers(Group :: atom(), Places :: [{pos_integer(), 0, non_neg_integer()}],
              TimeoutMs :: pos_integer()) ->
    {ok, AtUs :: integer()} | {error, {missing, non_neg_integer()}}.
answers(Group, Places, TimeoutMs) ->
    Names = [{Place, 0, K} || {Place, 0, Count} <- Places, K <- lists:seq(1, Count)],
    ok = member(Group, erlang:monotonic_time(millisecond) + TimeoutMs),
    ask(Group, Names, erlang:monotonic_time(millisecond) + TimeoutMs).

%% A node that is no member yet would ask members, which is not what is measured.
member(Group, Deadline) ->
    case lists:member(node(), s_group:own_nodes(Group)) orelse over(Deadline) of
        true ->
            ok;
        false ->
            pause(),
            member(Group, Deadline)
    end.

ask(_Group, [], _Deadline) ->
    {ok, os:system_time(microsecond)};
ask(Group, [Name | Rest] = Names, Deadline) ->
    case s_group:whereis_name(Group, Name) of
        Pid when is_pid(Pid) ->
            ask(Group, Rest, Deadline);
        undefined ->
            case over(Deadline) of
                true ->
                    {error, {missing, length(Names)}};
                false ->
                    pause(),
                    ask(Group, Names, Deadline)
            end
    end.

over(Deadline) -> erlang:monotonic_time(millisecond) > Deadline.

pause() ->
    receive
    after ?PAUSE_MS -> ok
    end.

-doc "Bytes that this node uses in all, garbage collected first, and those in its tables.".
-spec memory() -> {Total :: non_neg_integer(), Tables :: non_neg_integer()}.
memory() ->
    _ = [garbage_collect(Pid) || Pid <- processes()],
    {erlang:memory(total), erlang:memory(ets)}.
