%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_task).
-moduledoc """
Work that may fail, and work that goes on in processes of its own until its result is asked for.
""".

-export([attempt/1, start/1, result/2, stop/1, at_once/2, ask/3]).
-export_type([task/1]).

-doc "A process at work; only the one that started it may ask for the result.".
-opaque task(_Result) :: {pid(), reference()}.

-doc """
The result of `Fun`, or an error with what it raised: a measurement counts failures and goes on.
""".
-spec attempt(fun(() -> Result)) -> Result | {error, {error | exit | throw, Reason :: term()}}.
attempt(Fun) ->
    try
        Fun()
    catch
        Class:Reason -> {error, {Class, Reason}}
    end.

-doc "Begins `Fun` in a process of its own.".
-spec start(fun(() -> Result)) -> task(Result).
start(Fun) ->
    Owner = self(),
    spawn_monitor(fun() -> Owner ! {?MODULE, self(), Fun()} end).

-doc "Waits so many milliseconds for the result. A process that takes longer is stopped.".
-spec result(task(Result), timeout()) -> {ok, Result} | {error, timeout | {failed, term()}}.
result({Pid, Ref} = Task, Timeout) ->
    receive
        {?MODULE, Pid, Result} ->
            true = demonitor(Ref, [flush]),
            {ok, Result};
        {'DOWN', Ref, process, Pid, Reason} ->
            {error, {failed, Reason}}
    after Timeout ->
        ok = stop(Task),
        {error, timeout}
    end.

-doc "Stops the process; there is no result then.".
-spec stop(task(term())) -> ok.
stop({Pid, Ref}) ->
    true = exit(Pid, kill),
    receive
        {'DOWN', Ref, process, Pid, _} -> ok
    end,
    %% The result may have come just before.
    receive
        {?MODULE, Pid, _} -> ok
    after 0 -> ok
    end.

-doc """
`{Key, Fun(Key, Value)}` for all pairs at the same time, in their order. Where a `Fun` raises,
this exits with the reason.
""".
-spec at_once([{Key, Value}], fun((Key, Value) -> Result)) -> [{Key, Result}].
at_once(Pairs, Fun) ->
    Tasks = [{Key, start(fun() -> Fun(Key, Value) end)} || {Key, Value} <- Pairs],
    [{Key, needed(result(Task, infinity))} || {Key, Task} <- Tasks].

needed({ok, Result}) -> Result;
needed({error, Reason}) -> exit(Reason).

-doc """
The answer of a process to `{What, Ref}`, if it sends `{Ref, Answer}` in time; `undefined` also if
there is no process. It may be the local name of one.
""".
-spec ask(atom() | pid() | undefined, What :: atom(), timeout()) -> Answer :: term() | undefined.
ask(undefined, _, _) ->
    undefined;
ask(Name, What, Timeout) when is_atom(Name) ->
    ask(whereis(Name), What, Timeout);
ask(Pid, What, Timeout) ->
    Ref = monitor(process, Pid, [{alias, reply_demonitor}]),
    Pid ! {What, Ref},
    receive
        {Ref, Answer} -> Answer;
        {'DOWN', Ref, process, _, _} -> undefined
    after Timeout ->
        true = demonitor(Ref, [flush]),
        undefined
    end.
