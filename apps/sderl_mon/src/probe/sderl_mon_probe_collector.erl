%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_collector).
-moduledoc """
The process that sends the node's log to the owner of the probe. It is linked to the probe, and
removes the handler (`m:sderl_mon_probe_log`) when the probe ends, however it does.

It sends `{sderl_mon_logged, Collector, Batch}` and waits for `{sderl_mon_log_ack, Seq}` before it
sends the next batch (`m:sderl_mon_probe_batches`). Nothing wakes it while nothing is logged. When
the owner has not acknowledged a batch for 15 s, the collector ends. If the owner acknowledges a
sample of the probe after that, the probe starts another collector, because the owner does not ask
for the log again.
""".

-export([want/3, ended/3, resume/2, stop/1]).
-export([init/3]).
-export_type([collector/0]).

-import(sderl_mon_probe_work, [now_ms/0]).

%% Events that come together are sent together.
-define(SOON_MS, 100).
-define(LATER_MS, 1100).
-define(AGAIN_MS, 3000).
-define(LEASE_MS, 15_000).
-define(FULL, 200).
%% The most events that wait, of at most 4,000 bytes each.
-define(MOST, 1000).

-record(c, {
    probe :: pid(),
    owner :: pid(),
    options :: sderl_mon_probe_log:options(),
    gate :: sderl_mon_probe_gate:gate(),
    batches :: sderl_mon_probe_batches:batches(),
    secrets = sderl_mon_probe_secret:new() :: sderl_mon_probe_secret:secrets(),
    %% When the batch under way was sent last, and when first to this owner.
    sent = 0 :: integer(),
    since = 0 :: integer(),
    timer = none :: none | reference(),
    %% Whether that is the short wait after which events are sent together.
    soon = false :: boolean()
}).

-doc "The probe's collector, if it has one, and what its owner wants of it.".
-type collector() :: none | {pid() | ended, sderl_mon_probe_log:options()}.

-doc "Sends an owner the log as it wants it, or not at all (`off`). Called by the probe only.".
-spec want(term(), Owner :: pid(), collector()) -> collector().
want(off, _, Present) ->
    ok = stop(Present),
    none;
want(Wanted, Owner, Present) ->
    case sderl_mon_probe_log:check(Wanted) of
        {ok, Options} -> goes_to(Owner, Options, Present);
        %% From a monitoring node of another version.
        error -> Present
    end.

goes_to(Owner, Options, Without) when Without =:= none; element(1, Without) =:= ended ->
    Pid = spawn_opt(?MODULE, init, [self(), Owner, Options],
                    [link, {message_queue_data, off_heap}, {fullsweep_after, 20}]),
    {Pid, Options};
goes_to(Owner, Options, {Pid, _}) ->
    _ = Pid ! {want, Owner, Options},
    {Pid, Options}.

-doc "The collector has ended. If it was killed, starts another.".
-spec ended(Why :: term(), Owner :: pid(), collector()) -> collector().
ended(normal, _, {_, Options}) -> {ended, Options};
ended(_, Owner, {_, Options}) -> goes_to(Owner, Options, none).

-doc "The owner is alive: starts a collector for it if that had ended.".
-spec resume(Owner :: pid(), collector()) -> collector().
resume(Owner, {ended, Options}) -> goes_to(Owner, Options, none);
resume(_, Present) -> Present.

-doc "Ends it; returns when the handler is gone, or a second later.".
-spec stop(collector()) -> ok.
stop(none) -> ok;
stop({ended, _}) -> ok;
stop({Pid, _}) -> sderl_mon_probe_work:stop(Pid).

-doc false.
-spec init(pid(), pid(), sderl_mon_probe_log:options()) -> ok.
init(Probe, Owner, Options) ->
    _ = process_flag(trap_exit, true),
    true = group_leader(whereis(init), self()),
    Gate = sderl_mon_probe_gate:new(Options, ?MOST),
    C = #c{probe = Probe, owner = Owner, options = Options, gate = Gate,
           batches = sderl_mon_probe_batches:new(erlang:system_time(microsecond))},
    case sderl_mon_probe_log:add(self(), Gate, Options) of
        ok -> loop(C);
        {error, _} -> sderl_mon_probe_log:remove()
    end.

loop(#c{probe = Probe, timer = Timer} = C) ->
    receive
        {logged, Event} -> loop(added(Event, C));
        {sderl_mon_log_ack, Seq} -> loop(acknowledged(Seq, C));
        {timeout, Timer, due} -> due(C#c{timer = none, soon = false});
        {want, Owner, Options} -> loop(wanted(Owner, Options, C));
        {'EXIT', Probe, _} -> sderl_mon_probe_log:remove();
        stop -> sderl_mon_probe_log:remove();
        _ -> loop(C)
    end.

added({Level, T, Mfa, Pid, Text}, #c{batches = Batches, secrets = Secrets} = C) ->
    {Shown, Known} = sderl_mon_probe_secret:hidden(Text, Secrets),
    Event = {Level, T, Mfa, Pid, Shown},
    New = C#c{batches = sderl_mon_probe_batches:add(Event, Batches), secrets = Known},
    case New#c.soon orelse sderl_mon_probe_batches:again(Batches) =/= none of
        true -> New;
        false -> wake_soon(New)
    end.

acknowledged(Seq, #c{batches = Batches, gate = Gate} = C) ->
    case sderl_mon_probe_batches:acknowledge(Seq, Batches) of
        {N, Left} ->
            ok = sderl_mon_probe_gate:leave(N, Gate),
            goes_on(C#c{batches = Left});
        none -> C
    end.

goes_on(#c{batches = Batches, gate = Gate} = C) ->
    case sderl_mon_probe_batches:count(Batches) of
        0 ->
            {message_queue_len, Queued} = process_info(self(), message_queue_len),
            _ = Queued =:= 0 andalso sderl_mon_probe_gate:settle(Gate),
            C;
        Full when Full >= ?FULL -> sent(C);
        _ -> wake_soon(C)
    end.

due(#c{since = Since, sent = Sent, batches = Batches} = C) ->
    Now = now_ms(),
    case sderl_mon_probe_batches:again(Batches) of
        none -> loop(sent(C));
        _ when Now - Since > ?LEASE_MS -> sderl_mon_probe_log:remove();
        Batch when Now - Sent > ?AGAIN_MS -> loop(wake(?LATER_MS, send(Batch, C)));
        _ -> loop(wake(?LATER_MS, C))
    end.

%% After the last batch it wakes once more, to send the counts of events that were left out while
%% that was under way. Later, an event that is left out comes after one that passed and woke it.
sent(#c{batches = Batches, gate = Gate} = C) ->
    At = erlang:system_time(microsecond),
    case sderl_mon_probe_batches:next(At, sderl_mon_probe_gate:lost(Gate), Batches) of
        {Batch, Under} ->
            wake(?LATER_MS, send(Batch, C#c{batches = Under, since = now_ms()}));
        none -> C
    end.

send(Batch, #c{owner = Owner} = C) ->
    _ = erlang:send(Owner, {sderl_mon_logged, self(), Batch}, [noconnect, nosuspend]),
    C#c{sent = now_ms()}.

wake_soon(C) -> (wake(?SOON_MS, C))#c{soon = true}.

wake(Ms, #c{timer = Timer} = C) ->
    _ = Timer =:= none orelse erlang:cancel_timer(Timer),
    C#c{timer = erlang:start_timer(Ms, self(), due), soon = false}.

wanted(Owner, Options, #c{options = Before, gate = Gate0} = C0) ->
    Gate = case Options of Before -> Gate0; _ -> changed(Options, Gate0) end,
    C = C0#c{owner = Owner, options = Options, gate = Gate, since = now_ms()},
    case sderl_mon_probe_batches:again(C#c.batches) of
        none -> C;
        Batch -> wake(?LATER_MS, send(Batch, C))
    end.

changed(Options, Gate0) ->
    Gate = sderl_mon_probe_gate:change(Options, Gate0),
    ok = sderl_mon_probe_log:change(self(), Gate, Options),
    Gate.
