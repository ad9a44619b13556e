%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_meter).
-moduledoc """
The process that attaches the handlers of `m:sderl_mon_probe_metrics` to events of `telemetry`, and
detaches them when the probe ends, however it does.

It exists while events are wanted. If `telemetry` does not run, it looks again every ten seconds;
when `telemetry` ends, the handlers go with it, and are attached again once it runs.
""".

-export([want/2, again/1, read/1, stop/1]).
-export([init/2]).
-export_type([meter/0]).

-define(AGAIN_MS, 10_000).
%% The process of telemetry that has its handlers.
-define(TELEMETRY, telemetry_handler_table).

-doc "The process that attaches the handlers, if there are events, and what is wanted and counted.".
-type meter() :: none | {none | pid(), Wanted :: term(), sderl_mon_probe_metrics:metrics()}.

-doc "Counts what an owner wants from now on. Called by the probe only.".
-spec want(term(), meter()) -> meter().
want(Wanted, {_, Wanted, _} = Present) -> Present;
want(Wanted, Present) ->
    ok = stop(Present),
    case Wanted =/= [] andalso sderl_mon_probe_metrics:new(Wanted) of
        {ok, Metrics} -> {attach(Metrics), Wanted, Metrics};
        _ -> none
    end.

attach(Metrics) ->
    case sderl_mon_probe_metrics:events(Metrics) of
        [] -> none;
        Events -> spawn_link(?MODULE, init, [self(), Events])
    end.

-doc "Somebody has killed its process: starts another.".
-spec again(meter()) -> meter().
again({_, Wanted, Metrics}) -> {attach(Metrics), Wanted, Metrics}.

-doc "What was counted, and what was left out.".
-spec read(meter()) ->
    {sderl_mon_probe_metrics:values(), Lost :: #{atom() => non_neg_integer()}, meter()}.
read({Pid, Wanted, Metrics}) ->
    {Values, Lost, New} = sderl_mon_probe_metrics:read(Metrics),
    {Values, Lost, {Pid, Wanted, New}}.

-doc "Ends it; returns when the handlers are gone, or a second later.".
-spec stop(meter()) -> ok.
stop(none) -> ok;
stop({Pid, _, Metrics}) ->
    ok = case Pid of none -> ok; _ -> sderl_mon_probe_work:stop(Pid) end,
    sderl_mon_probe_metrics:delete(Metrics).

-doc false.
-spec init(pid(), [{pos_integer(), [atom()], tuple()}]) -> ok.
init(Probe, Events) ->
    _ = process_flag(trap_exit, true),
    true = group_leader(whereis(init), self()),
    look(Probe, Events).

look(Probe, Events) ->
    case attached(Events) of
        {ok, Telemetry} -> wait(Probe, Events, Telemetry, infinity);
        none -> wait(Probe, Events, none, ?AGAIN_MS)
    end.

wait(Probe, Events, Telemetry, Ms) ->
    receive
        {'EXIT', Probe, _} -> detach(Events);
        stop -> detach(Events);
        {'DOWN', Telemetry, process, _, _} -> wait(Probe, Events, none, ?AGAIN_MS);
        _ -> wait(Probe, Events, Telemetry, Ms)
    after Ms -> look(Probe, Events)
    end.

%% Telemetry may end between any two of these calls.
attached(Events) ->
    try whereis(?TELEMETRY) of
        undefined -> none;
        Pid ->
            {module, telemetry} = code:ensure_loaded(telemetry),
            Mon = monitor(process, Pid),
            lists:foreach(fun({At, Event, Config}) ->
                Handler = fun sderl_mon_probe_metrics:handle/4,
                _ = call(telemetry, attach, [id(At, Config), Event, Handler, Config])
            end, Events),
            {ok, Mon}
    catch
        _:_ -> none
    end.

detach(Events) ->
    try
        lists:foreach(fun({At, _, Config}) -> _ = call(telemetry, detach, [id(At, Config)]) end,
                      Events)
    catch
        _:_ -> ok
    end.

%% By `apply`: the library is no dependency, and tools would report its functions as missing.
call(Library, Function, Arguments) -> apply(Library, Function, Arguments).

%% The table is part of the id: a process that follows a killed one attaches no handler twice.
id(At, Config) -> {?MODULE, element(1, Config), At}.
