%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_audit_reader).
-moduledoc """
Reads files without waiting for a disk that hangs.

A process that waits for such a disk cannot be ended, and blocks one of the few threads that the
virtual machine has for files. So at most four such processes run, and further callers wait for one
of them, until their own time is over.
""".

-export([run/2]).

%% A name for each process; it is free again when the process ends, however it does.
-define(PLACES, [sderl_actions_audit_reader_1, sderl_actions_audit_reader_2,
                 sderl_actions_audit_reader_3, sderl_actions_audit_reader_4]).
-define(AGAIN_MS, 10).

%% The process that reads exits with its result, which dialyzer takes for a function that fails.
-dialyzer({nowarn_function, run_until/2}).

-doc "The result of a function, if it returns within `Ms` milliseconds.".
-spec run(fun(() -> Result), Ms :: non_neg_integer()) -> {ok, Result} | late.
run(Read, Ms) -> run_until(Read, sderl_mon_clock:now_ms() + Ms).

run_until(Read, Until) ->
    {Pid, Monitor} = spawn_monitor(fun() ->
        exit(case lists:any(fun take/1, ?PLACES) of
            true -> {read, Read()};
            false -> full
        end)
    end),
    receive
        {'DOWN', Monitor, process, Pid, {read, Result}} -> {ok, Result};
        {'DOWN', Monitor, process, Pid, full} -> later(Read, Until);
        {'DOWN', Monitor, process, Pid, Why} -> exit(Why)
    after max(0, Until - sderl_mon_clock:now_ms()) ->
        true = demonitor(Monitor, [flush]),
        late
    end.

later(Read, Until) ->
    case Until - sderl_mon_clock:now_ms() of
        Left when Left > 0 ->
            receive after min(?AGAIN_MS, Left) -> run_until(Read, Until) end;
        _ -> late
    end.

take(Place) ->
    try register(Place, self())
    catch error:badarg -> false
    end.
