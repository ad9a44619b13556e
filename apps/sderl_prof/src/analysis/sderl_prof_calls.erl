%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_calls).
-moduledoc """
Where the time goes, by stacks of functions, from events of the item `callgraph`. Pure.

A call comes with the function to which it returns. Frames above that one have made a tail call, and
are gone. The time in which the process runs counts to its present stack; without events of
scheduling, all time does. Recursion is one frame.
""".

-export([new/1, new/2, step/6, result/1, functions/1]).
-export_type([calls/0, stack/0, result/0]).

-include("sderl_prof_event.hrl").

-define(DEEPEST, 256).

-doc "The words of its functions, the innermost first.".
-type stack() :: [pos_integer()].

-type result() :: #{stacks := [{stack(), non_neg_integer()}],
                    calls := #{{pos_integer(), non_neg_integer()} => pos_integer()},
                    rest := non_neg_integer()}.

-record(p, {stack = [] :: stack(), since :: integer(), running = true :: boolean()}).
-record(calls, {
    %% Time outside of it does not count.
    within = all :: all | {integer(), integer()},
    processes = #{} :: #{pos_integer() => #p{}},
    time :: sderl_prof_tally:tally(),
    counts = #{} :: #{{Function :: pos_integer(), Caller :: non_neg_integer()} => pos_integer()}
}).
-opaque calls() :: #calls{}.

-doc "Nothing yet; at most so many different stacks are distinguished.".
-spec new(pos_integer()) -> calls().
new(Most) -> #calls{time = sderl_prof_tally:new(Most)}.

-doc "The same, where only time between two times counts, and only calls that begin there.".
-spec new(pos_integer(), {From :: integer(), To :: integer()}) -> calls().
new(Most, Within) -> (new(Most))#calls{within = Within}.

-doc "One event more.".
-spec step(integer(), byte(), pos_integer(), non_neg_integer(), non_neg_integer(), calls()) ->
    calls().
step(T, ?CALL, P, Function, Caller, Calls) ->
    {#p{stack = Stack} = Proc, Calls1} = spent(T, P, Calls),
    Base = case Caller of
        0 -> Stack;
        _ -> back_to(Caller, Stack)
    end,
    put_process(P, Proc#p{stack = push(Function, Base)}, called(T, {Function, Caller}, Calls1));
step(T, ?RETURN_TO, P, Function, _, Calls) ->
    {#p{stack = Stack} = Proc, Calls1} = spent(T, P, Calls),
    put_process(P, Proc#p{stack = back_to(Function, Stack)}, Calls1);
step(T, K, P, _, _, #calls{processes = Processes} = Calls) when K =:= ?IN; K =:= ?OUT ->
    case Processes of
        #{P := _} ->
            {Proc, Calls1} = spent(T, P, Calls),
            put_process(P, Proc#p{running = K =:= ?IN}, Calls1);
        _ -> Calls
    end;
step(T, ?EXIT, P, _, _, #calls{processes = Processes} = Calls) when is_map_key(P, Processes) ->
    {_, Calls1} = spent(T, P, Calls),
    Calls1#calls{processes = maps:remove(P, Calls1#calls.processes)};
step(_, _, _, _, _, Calls) ->
    Calls.

called(T, _, #calls{within = {From, To}} = Calls) when T < From; T >= To -> Calls;
called(_, Key, #calls{counts = Counts} = Calls) ->
    Calls#calls{counts = Counts#{Key => maps:get(Key, Counts, 0) + 1}}.

%% The time since the last event belongs to the stack that was there.
spent(T, P, #calls{processes = Processes} = Calls) ->
    case Processes of
        #{P := #p{stack = [_ | _] = Stack, since = Since, running = true} = Proc} ->
            {Proc#p{since = T}, counted(Stack, Since, T, Calls)};
        #{P := Proc} -> {Proc#p{since = T}, Calls};
        _ -> {#p{since = T}, Calls}
    end.

counted(Stack, From, To, #calls{within = {Least, Most}} = Calls) ->
    add_time(Stack, min(To, Most) - max(From, Least), Calls);
counted(Stack, From, To, Calls) ->
    add_time(Stack, To - From, Calls).

add_time(_, Ns, Calls) when Ns =< 0 -> Calls;
add_time(Stack, Ns, #calls{time = Time} = Calls) ->
    Calls#calls{time = sderl_prof_tally:add(Stack, Ns, Time)}.

put_process(P, Proc, #calls{processes = Processes} = Calls) ->
    Calls#calls{processes = Processes#{P => Proc}}.

%% A function that is not there was called before the recording, or is not recorded itself.
back_to(Function, Stack) ->
    case lists:member(Function, Stack) of
        true -> lists:dropwhile(fun(F) -> F =/= Function end, Stack);
        false -> [Function]
    end.

push(Function, [Function | _] = Stack) -> Stack;
push(Function, Stack) ->
    case length(Stack) < ?DEEPEST of
        true -> [Function | Stack];
        false -> Stack
    end.

-doc "Nanoseconds of each stack; calls by function and caller; the time of stacks not told apart.".
-spec result(calls()) -> result().
result(#calls{time = Time, counts = Counts}) ->
    {Rows, {_, Rest, _}, _} = sderl_prof_tally:result(Time),
    #{stacks => lists:sort([{Stack, Ns} || Stack := {_, Ns, _} <- Rows]), calls => Counts,
      rest => Rest}.

-doc "Time of each function: its own, and with what it called.".
-spec functions([{stack(), non_neg_integer()}]) ->
    #{pos_integer() => {Own :: non_neg_integer(), All :: non_neg_integer()}}.
functions(Stacks) ->
    lists:foldl(fun({[Top | _] = Stack, Ns}, Acc) ->
        Acc1 = lists:foldl(fun(F, A) -> plus(F, 0, Ns, A) end, Acc, lists:usort(Stack)),
        plus(Top, Ns, 0, Acc1)
    end, #{}, Stacks).

plus(Function, Own, All, Map) ->
    {O, A} = maps:get(Function, Map, {0, 0}),
    Map#{Function => {O + Own, A + All}}.
