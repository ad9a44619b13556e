%% SPDX-License-Identifier: Apache-2.0
-module(sderl_city_manager).
-moduledoc """
A time manager of the city: it tells all processes below that a step begins, and when all have ended
the step it reports upwards how many vehicles drove on. Below are crossings, or other managers,
which may be on other nodes.

It monitors all processes below. When one ends, by itself or with its node, the manager ends with
that as the reason, and so do all above.
""".

-export([crossings/2, start_node/3, start/1, steps/2, ask/2]).
-export([init/1]).

-doc """
Starts this node's crossings, those of a band of rows, and gives the process of each place.
""".
-spec crossings({First :: non_neg_integer(), Last :: non_neg_integer()},
                #{side := pos_integer(), vehicles := pos_integer(), work := non_neg_integer(),
                  _ => _}) ->
    [{Place :: non_neg_integer(), pid()}].
crossings({First, Last}, #{side := Side, vehicles := Vehicles, work := Work}) ->
    [{Place, spawn(sderl_vm_city, crossing, [Place, sderl_vm_city:vehicles(Place, Vehicles), Work])}
     || Place <- lists:seq(First * Side, (Last + 1) * Side - 1)].

-doc "Tells this node's crossings of those beside them, and starts the manager of all of them.".
-spec start_node([{Place, pid()}], #{Place => pid()}, Side :: pos_integer()) -> pid()
    when Place :: non_neg_integer().
start_node(Crossings, All, Side) ->
    _ = [Pid ! {beside, list_to_tuple([map_get(Other, All)
                                       || Other <- sderl_vm_city:beside(Place, Side)])}
         || {Place, Pid} <- Crossings],
    start([Pid || {_, Pid} <- Crossings]).

-doc "Starts a manager of these processes on this node.".
-spec start([pid()]) -> pid().
start(Below) -> spawn(?MODULE, init, [Below]).

-doc "Runs `Steps` steps; gives how many vehicles drove on, and in how many seconds.".
-spec steps(Root :: pid(), Steps :: pos_integer()) ->
    {non_neg_integer(), float()} | {error, {died, pid(), term()}}.
steps(Root, Steps) ->
    T0 = erlang:monotonic_time(nanosecond),
    case steps(Root, 1, Steps, 0) of
        {error, Reason} -> {error, Reason};
        Drives -> {Drives, (erlang:monotonic_time(nanosecond) - T0) / 1.0e9}
    end.

steps(_, Step, Steps, Drives) when Step > Steps -> Drives;
steps(Root, Step, Steps, Drives) ->
    case ask(Root, {step, Step}) of
        {error, Reason} -> {error, Reason};
        More -> steps(Root, Step + 1, Steps, Drives + More)
    end.

-doc "The sum of what all crossings answer: to `{step, Number}`, or to `where`.".
-spec ask(Root :: pid(), {step, pos_integer()} | where) ->
    non_neg_integer() | {error, {died, pid(), term()}}.
ask(Root, What) ->
    Monitor = monitor(process, Root),
    Root ! {What, self()},
    receive
        {Root, Sum} ->
            true = demonitor(Monitor, [flush]),
            Sum;
        {'DOWN', Monitor, process, Root, {died, _, _} = Death} -> {error, Death};
        {'DOWN', Monitor, process, Root, Why} -> {error, {died, Root, Why}}
    end.

-doc false.
-spec init([pid()]) -> no_return().
init(Below) ->
    proc_lib:set_label({city, manager}),
    _ = [monitor(process, Pid) || Pid <- Below],
    loop(Below).

loop(Below) ->
    receive
        {'DOWN', _, process, Pid, Why} -> died(Pid, Why);
        {What, Above} when is_pid(Above) ->
            _ = [Pid ! {What, self()} || Pid <- Below],
            Above ! {self(), lists:sum([answer(Pid) || Pid <- Below])},
            loop(Below)
    end.

answer(Pid) ->
    receive
        {Pid, Sum} -> Sum;
        {'DOWN', _, process, Other, Why} -> died(Other, Why)
    end.

-spec died(pid(), term()) -> no_return().
died(_, {died, _, _} = Death) -> exit(Death);
died(Pid, Why) -> exit({died, Pid, Why}).
