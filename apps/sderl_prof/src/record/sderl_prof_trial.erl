%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_trial).
-moduledoc """
What a recording would cost this node, measured: a recording of a moment by the same plan, of which
the events and bytes are counted, and what one event costs here. The files of the trial are removed.

Needs no other module but `m:sderl_prof_recorder`, so that both can be loaded into any node.
""".

-export([run/2]).
-export_type([cost/0]).

-define(MS, 250).
%% When tracing begins, each process tells once what it does; that is not counted.
-define(SETTLE_MS, 50).
-define(BYTES, 16_777_216).
%% Messages to itself by which the cost of an event is measured, two events each.
-define(MESSAGES, 2000).
%% The least of so many times, because other programs run on the machine.
-define(ROUNDS, 3).
-define(TAKE, 1_048_576).

-doc """
Events and bytes in a second, what one event costs the process that has it, and so the part of one
core that all events of a second take. `full`: there were more than fit into the trial's files, and
the numbers are those of the time until then.
""".
-type cost() :: #{events_s := float(), bytes_s := float(), event_ns := float(), cores := float(),
                  full := boolean()}.

-doc "The cost of a recording by this plan into this folder, which is not made.".
-spec run(sderl_prof_options:plan(), Dir :: file:filename_all()) ->
    {ok, cost()} | {error, sderl_prof_recorder:reason()}.
run(Plan, Dir) ->
    maybe
        {ok, Counted} ?= aside(Dir, fun(Aside) -> measured(Plan, Aside) end),
        {ok, EventNs} ?= aside(Dir, fun event_ns/1),
        {ok, cost(Counted, EventNs)}
    end.

%% On the same disk.
aside(Dir, Fun) ->
    Name = lists:concat(["prof-trial-", os:getpid(), "-", erlang:unique_integer([positive])]),
    Aside = filename:join(filename:dirname(Dir), Name),
    try
        Fun(Aside)
    after
        _ = file:del_dir_r(Aside)
    end.

cost({Events, Bytes, Ns, Full}, EventNs) ->
    Second = 1.0e9 / max(1, Ns),
    #{events_s => Events * Second, bytes_s => Bytes * Second, event_ns => EventNs,
      cores => Events * Second * EventNs / 1.0e9, full => Full}.

measured(Plan, Dir) ->
    maybe
        {ok, Recorder} ?= sderl_prof_recorder:start(
            Plan#{milliseconds := ?MS, bytes := ?BYTES, keep := first}, Dir, self()
        ),
        #{ended := Ended, ended_at := At, began := Began} ?=
            sderl_prof_recorder:await(Recorder, infinity),
        Settled = Began + ?SETTLE_MS * 1_000_000,
        Files = filelib:wildcard("events.*.trace", Dir),
        %% All events count where the trial was full before that.
        {Events, Bytes} = count(Dir, Files, Settled),
        case Events of
            0 when Ended =:= full ->
                {All, AllBytes} = count(Dir, Files, Began),
                {ok, {All, AllBytes, At - Began, true}};
            _ -> {ok, {Events, Bytes, At - Settled, Ended =:= full}}
        end
    end.

%% ---------------------------------------------------------------- events since a time

count(Dir, Files, Since) ->
    lists:foldl(fun(File, Acc) ->
        {ok, Fd} = file:open(filename:join(Dir, File), [read, raw, binary]),
        Counted = count_file(Fd, <<>>, Since, Acc),
        ok = file:close(Fd),
        Counted
    end, {0, 0}, Files).

count_file(Fd, Rest, Since, Acc) ->
    case file:read(Fd, ?TAKE) of
        {ok, Bin} ->
            {Left, Acc1} = frames(<<Rest/binary, Bin/binary>>, Since, Acc),
            count_file(Fd, Left, Since, Acc1);
        _ -> Acc
    end.

frames(<<0, N:32, Event:N/binary, Rest/binary>>, Since, {Events, Bytes}) ->
    case time(Event) of
        T when is_integer(T), T >= Since -> frames(Rest, Since, {Events + 1, Bytes + N + 5});
        _ -> frames(Rest, Since, {Events, Bytes})
    end;
frames(<<1, N:32, Rest/binary>>, Since, {Events, Bytes}) ->
    frames(Rest, Since, {Events + N, Bytes});
frames(Rest, _, Acc) ->
    {Rest, Acc}.

%% A recorder's events end in their time; what it tells of processes does not.
time(Event) ->
    Before = max(0, byte_size(Event) - 11),
    case Event of
        <<_:Before/binary, 110, 8, 0, Time:64/little>> -> Time;
        <<_:Before/binary, 110, 8, 1, Time:64/little>> -> -Time;
        _ -> none
    end.

%% ---------------------------------------------------------------- what an event costs

%% A process sends messages to itself, with and without a recording of them.
event_ns(Dir) ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(fun() -> talk(Self) end),
    try
        Plain = time_of(Pid, Ref),
        maybe
            {ok, Recorder} ?= sderl_prof_recorder:start(messages_of(Pid), Dir, self()),
            Traced = time_of(Pid, Ref),
            _ = sderl_prof_recorder:stop(Recorder),
            {ok, max(0, Traced - Plain) / (2 * ?MESSAGES)}
        end
    after
        true = demonitor(Ref, [flush]),
        true = exit(Pid, kill)
    end.

messages_of(Pid) ->
    #{items => [message], flags => [monotonic_timestamp, send, 'receive'], port_flags => [],
      functions => [], system_profile => [], who => [Pid], milliseconds => 60_000,
      bytes => ?BYTES, keep => last}.

time_of(Pid, Ref) -> lists:min([one_time(Pid, Ref) || _ <- lists:seq(1, ?ROUNDS)]).

one_time(Pid, Ref) ->
    Pid ! {talk, Ref},
    receive
        {Ref, Ns} -> Ns;
        {'DOWN', Ref, process, Pid, Why} -> exit(Why)
    end.

talk(Caller) ->
    receive
        {talk, Ref} ->
            Begin = erlang:monotonic_time(nanosecond),
            ok = to_itself(?MESSAGES),
            Caller ! {Ref, erlang:monotonic_time(nanosecond) - Begin},
            talk(Caller)
    end.

to_itself(0) -> ok;
to_itself(N) ->
    self() ! {talk_to_itself, N},
    receive {talk_to_itself, N} -> to_itself(N - 1) end.
