%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_activity).
-moduledoc """
What each process does when: it runs, could run and waits for a scheduler (`runnable`), or waits for
something else (`waiting`). Pure; events come in one after the other, and each interval goes to a
sink when it ends.

Where a process that was scheduled out could run on, the system profiler tells it (`recorded`).
Where that was not recorded, messages tell it (`messages`): a process waits from `out` until
something is sent to it, and one to which nothing is sent was only interrupted. (That it receives is
mostly told after it was scheduled in.) With neither (`none`) all
that is between `out` and `in` counts as waiting. When ports work is not recorded, but when they
could: all of that counts as `runnable`.

Time of garbage collections is part of the running time. `exiting` is what the node does for a
process that has ended.
""".

-export([mode/1, new/3, step/7, state/2, drain/1, finish/2, sums/1]).
-export([size/1, fold_open/3, collecting/1, acc/1, put_acc/2, save/1, restore/4]).
-export_type([activity/0, sink/0, what/0, sums/0, mode/0, state/0, saved/0]).

-include("sderl_prof_event.hrl").

-type mode() :: recorded | messages | none.
-type state() :: unknown | running | runnable | waiting | exited.
-type what() :: running | runnable | waiting | gc | exiting.

-doc """
Called with each interval: of a waiting one, the function in which the process waits (a word) and
the sender of the first message that came while it did, 0 where none is known.
""".
-type sink() :: fun((what(), Process :: pos_integer(), From :: integer(), To :: integer(),
                     Site :: non_neg_integer(), Waker :: non_neg_integer(), Acc :: term()) ->
                    term()).

-doc "What a process did in all. Times are in nanoseconds; `moves` are changes of the scheduler.".
-type sums() :: #{
    run := non_neg_integer(), runnable := non_neg_integer(), wait := non_neg_integer(),
    gc := non_neg_integer(), exiting := non_neg_integer(), ins := non_neg_integer(),
    sent := non_neg_integer(), sent_bytes := non_neg_integer(), received := non_neg_integer(),
    received_bytes := non_neg_integer(), moves := non_neg_integer()
}.

-record(p, {
    state = unknown :: state(),
    since = 0 :: integer(),
    active = false :: boolean(),
    %% It could run because something came for it, not because it was scheduled out.
    woken = false :: boolean(),
    gc_from = none :: none | integer(),
    exiting_from = none :: none | integer(),
    site = 0 :: non_neg_integer(),
    waker = 0 :: non_neg_integer(),
    scheduler = 0 :: non_neg_integer(),
    run = 0 :: non_neg_integer(),
    runnable = 0 :: non_neg_integer(),
    wait = 0 :: non_neg_integer(),
    gc = 0 :: non_neg_integer(),
    exiting = 0 :: non_neg_integer(),
    ins = 0 :: non_neg_integer(),
    sent = 0 :: non_neg_integer(),
    sent_bytes = 0 :: non_neg_integer(),
    received = 0 :: non_neg_integer(),
    received_bytes = 0 :: non_neg_integer(),
    moves = 0 :: non_neg_integer()
}).

-record(activity, {
    mode :: mode(),
    sink :: sink(),
    acc :: term(),
    processes = #{} :: #{pos_integer() => #p{}},
    %% Ended since the last drain, and before it.
    ended = [] :: [pos_integer()],
    before = [] :: [pos_integer()]
}).
-opaque activity() :: #activity{}.

-doc "What the processes are doing at some time, without their sums; fit for a file.".
-type saved() :: [tuple()].

-doc "The mode for a trace with events of these kinds.".
-spec mode(#{sderl_prof_event:kind() => pos_integer()}) -> mode().
mode(#{active := _}) -> recorded;
mode(#{'receive' := _}) -> messages;
mode(_) -> none.

-doc "Nothing yet.".
-spec new(mode(), sink(), Acc :: term()) -> activity().
new(Mode, Sink, Acc) -> #activity{mode = Mode, sink = Sink, acc = Acc}.

-doc "One event more.".
-spec step(integer(), byte(), non_neg_integer(), non_neg_integer(), non_neg_integer(),
           non_neg_integer(), activity()) -> activity().
step(T, ?IN, S, P, _, _, Act) ->
    Proc = interrupted(Act, process(P, Act)),
    {Proc1, Act1} = leave(T, P, Proc, Act),
    Moves = case Proc#p.scheduler of
        S -> Proc1#p.moves;
        0 -> Proc1#p.moves;
        _ -> Proc1#p.moves + 1
    end,
    put_process(P, Proc1#p{state = running, since = T, scheduler = S, waker = 0, woken = false,
                           ins = Proc1#p.ins + 1, moves = Moves}, Act1);
step(T, ?OUT, _, P, Site, _, Act) ->
    Proc = process(P, Act),
    {Proc1, Act1} = leave(T, P, Proc, Act),
    put_process(P, Proc1#p{state = after_out(Act#activity.mode, Proc1), since = T, site = Site,
                           waker = 0, woken = false}, Act1);
step(T, ?ACTIVE, _, P, _, _, Act) ->
    case process(P, Act) of
        #p{state = running} = Proc -> put_process(P, Proc#p{active = true}, Act);
        #p{state = runnable} = Proc -> put_process(P, Proc#p{active = true}, Act);
        #p{state = exited} -> Act;
        Proc ->
            {Proc1, Act1} = leave(T, P, Proc, Act),
            put_process(P, Proc1#p{state = runnable, since = T, active = true, woken = true}, Act1)
    end;
step(T, ?INACTIVE, _, P, Site, _, Act) ->
    case process(P, Act) of
        #p{state = unknown} = Proc ->
            put_process(P, Proc#p{state = waiting, since = T, site = Site, active = false}, Act);
        %% A port, or a process of which it is not recorded when it runs.
        #p{state = runnable, woken = true} = Proc ->
            {Proc1, Act1} = leave(T, P, Proc, Act),
            put_process(P, Proc1#p{state = waiting, since = T, site = Site, active = false,
                                   woken = false}, Act1);
        %% It went to wait when it was scheduled out, of which this is the rest.
        #p{state = runnable} = Proc ->
            put_process(P, Proc#p{state = waiting, active = false}, Act);
        #p{state = exited} -> Act;
        Proc -> put_process(P, Proc#p{active = false}, Act)
    end;
step(T, ?SEND, _, P, To, Bytes, Act) ->
    #p{sent = Sent, sent_bytes = SentBytes} = Proc = process(P, Act),
    Act1 = put_process(P, Proc#p{sent = Sent + 1, sent_bytes = SentBytes + Bytes}, Act),
    woken(T, To, P, Act1);
step(T, ?RECEIVE, _, P, _, Bytes, Act) ->
    #p{received = Got, received_bytes = GotBytes} = Proc0 = process(P, Act),
    Proc = Proc0#p{received = Got + 1, received_bytes = GotBytes + Bytes},
    case {Act#activity.mode, Proc} of
        {messages, #p{state = waiting}} ->
            {Proc1, Act1} = leave(T, P, Proc, Act),
            put_process(P, Proc1#p{state = runnable, since = T}, Act1);
        _ -> put_process(P, Proc, Act)
    end;
step(T, K, _, P, _, _, Act) when K =:= ?GC_MINOR_START; K =:= ?GC_MAJOR_START ->
    Proc = process(P, Act),
    put_process(P, Proc#p{gc_from = T}, Act);
step(T, K, _, P, _, _, Act) when K =:= ?GC_MINOR_END; K =:= ?GC_MAJOR_END ->
    case process(P, Act) of
        #p{gc_from = none} -> Act;
        #p{gc_from = From, gc = Gc} = Proc ->
            Act1 = put_process(P, Proc#p{gc_from = none, gc = Gc + lasted(From, T)}, Act),
            emit(gc, P, From, T, 0, 0, Act1)
    end;
step(T, ?SPAWNED, _, P, _, _, Act) ->
    case process(P, Act) of
        #p{state = unknown} = Proc -> put_process(P, Proc#p{state = runnable, since = T}, Act);
        _ -> Act
    end;
step(T, ?EXIT, _, P, _, _, Act) ->
    Proc = process(P, Act),
    {Proc1, Act1} = leave(T, P, Proc, Act),
    Act2 = put_process(P, Proc1#p{state = exited, since = T}, Act1),
    Act2#activity{ended = [P | Act2#activity.ended]};
step(T, ?IN_EXITING, _, P, _, _, Act) ->
    Proc = process(P, Act),
    put_process(P, Proc#p{exiting_from = T}, Act);
step(T, K, _, P, _, _, Act) when K =:= ?OUT_EXITING; K =:= ?OUT_EXITED ->
    case process(P, Act) of
        #p{exiting_from = none, state = exited, since = From} = Proc when K =:= ?OUT_EXITED ->
            %% It was running when it ended.
            exited(From, T, P, Proc, Act);
        #p{exiting_from = none} -> Act;
        #p{exiting_from = From} = Proc -> exited(From, T, P, Proc, Act)
    end;
step(_, _, _, _, _, _, Act) ->
    Act.

exited(From, T, P, #p{exiting = Exiting} = Proc, Act) ->
    Act1 = put_process(P, Proc#p{exiting_from = none, exiting = Exiting + lasted(From, T)}, Act),
    emit(exiting, P, From, T, 0, 0, Act1).

%% It runs again, and nothing has come for it.
interrupted(#activity{mode = messages}, #p{state = waiting} = Proc) -> Proc#p{state = runnable};
interrupted(_, Proc) -> Proc.

after_out(_, #p{state = exited}) -> exited;
after_out(recorded, #p{active = true}) -> runnable;
after_out(_, _) -> waiting.

-doc "What a process does at the time of the last event.".
-spec state(non_neg_integer(), activity()) -> state().
state(P, Act) ->
    #p{state = State} = process(P, Act),
    State.

process(P, #activity{processes = Processes}) ->
    case Processes of
        #{P := Proc} -> Proc;
        _ -> #p{}
    end.

put_process(P, Proc, #activity{processes = Processes} = Act) ->
    Act#activity{processes = Processes#{P => Proc}}.

%% Remembered for the end of the wait, which is now where nothing else tells of it. What is sent to
%% a process that has not been seen says nothing.
woken(T, To, From, #activity{processes = Processes, mode = Mode} = Act) ->
    case Processes of
        #{To := #p{state = waiting} = Proc} when Mode =:= messages ->
            {Proc1, Act1} = leave(T, To, Proc#p{waker = From}, Act),
            put_process(To, Proc1#p{state = runnable, since = T}, Act1);
        #{To := #p{state = waiting, waker = 0} = Proc} ->
            Act#activity{processes = Processes#{To := Proc#p{waker = From}}};
        _ -> Act
    end.

%% Ends the interval in which the process is.
leave(T, P, #p{state = running, since = From, run = Run} = Proc, Act) ->
    {Proc#p{run = Run + lasted(From, T)}, emit(running, P, From, T, 0, 0, Act)};
leave(T, P, #p{state = runnable, since = From, runnable = Runnable} = Proc, Act) ->
    {Proc#p{runnable = Runnable + lasted(From, T)}, emit(runnable, P, From, T, 0, 0, Act)};
leave(T, P, #p{state = waiting, since = From, wait = Wait} = Proc, Act) ->
    {Proc#p{wait = Wait + lasted(From, T)},
     emit(waiting, P, From, T, Proc#p.site, Proc#p.waker, Act)};
leave(_, _, Proc, Act) ->
    {Proc, Act}.

%% A clock that went back made no time.
lasted(From, To) -> max(0, To - From).

emit(_, _, From, To, _, _, Act) when To =< From -> Act;
emit(What, P, From, To, Site, Waker, #activity{sink = Sink, acc = Acc} = Act) ->
    Act#activity{acc = Sink(What, P, From, To, Site, Waker, Acc)}.

-doc """
Takes out the processes that had ended when this was called last: memory holds those that live, and
those that have ended since. An event that comes later still is counted to the same number again, so
that sums of one number are to be added. One that has done something since stays.
""".
-spec drain(activity()) -> {[{pos_integer(), sums()}], activity()}.
drain(#activity{processes = Processes, ended = Ended, before = Before} = Act) ->
    Gone = [P || P <- Before, #{P := #p{state = exited}} <- [Processes]],
    {[{P, sums_of(map_get(P, Processes))} || P <- Gone],
     Act#activity{processes = maps:without(Gone, Processes), ended = [], before = Ended}}.

-doc "Ends all intervals; gives the rest of the sums, and what the sink has made.".
-spec finish(End :: integer(), activity()) -> {[{pos_integer(), sums()}], Acc :: term()}.
finish(End, #activity{processes = Processes} = Act0) ->
    {Sums, Act} = maps:fold(fun(P, Proc, {Sums, Act}) ->
        {Proc1, Act1} = leave(End, P, Proc, Act),
        {[{P, sums_of(Proc1)} | Sums], Act1}
    end, {[], Act0}, Processes),
    {Sums, Act#activity.acc}.

-doc "Of how many processes something is known now.".
-spec size(activity()) -> non_neg_integer().
size(#activity{processes = Processes}) -> map_size(Processes).

-doc """
Calls the function with each interval in which a process is: what it is as far as is known, and
since when. A later event may tell that it is another: a process that seemed to wait was only
interrupted. Collections count when they have ended.
""".
-spec fold_open(fun((what(), pos_integer(), Since :: integer(), Acc) -> Acc), Acc, activity()) ->
    Acc.
fold_open(Fun, Acc, #activity{processes = Processes}) ->
    maps:fold(fun(P, #p{state = State, since = Since}, Acc1)
                    when State =:= running; State =:= runnable; State =:= waiting ->
                      Fun(State, P, Since, Acc1);
                 (_, _, Acc1) -> Acc1
              end, Acc, Processes).

-doc "Processes that collect garbage, and since when.".
-spec collecting(activity()) -> [{pos_integer(), Since :: integer()}].
collecting(#activity{processes = Processes}) ->
    [{P, Since} || P := #p{gc_from = Since} <- Processes, Since =/= none].

-doc "What the sink has made so far.".
-spec acc(activity()) -> term().
acc(#activity{acc = Acc}) -> Acc.

-doc "Puts something else in the place of what the sink has made.".
-spec put_acc(term(), activity()) -> activity().
put_acc(Acc, Act) -> Act#activity{acc = Acc}.

-doc "What each process is doing now.".
-spec save(activity()) -> saved().
save(#activity{processes = Processes}) ->
    [{P, Proc#p.state, Proc#p.since, Proc#p.active, Proc#p.woken, Proc#p.gc_from,
      Proc#p.exiting_from, Proc#p.site, Proc#p.waker, Proc#p.scheduler} || P := Proc <- Processes].

-doc "Goes on from there, with sums of 0.".
-spec restore(saved(), mode(), sink(), Acc :: term()) -> activity().
restore(Saved, Mode, Sink, Acc) ->
    Processes = #{P => #p{state = State, since = Since, active = Active, woken = Woken,
                          gc_from = Gc, exiting_from = Exiting, site = Site, waker = Waker,
                          scheduler = Scheduler}
                  || {P, State, Since, Active, Woken, Gc, Exiting, Site, Waker, Scheduler}
                         <- Saved},
    (new(Mode, Sink, Acc))#activity{processes = Processes}.

sums_of(#p{} = P) ->
    #{run => P#p.run, runnable => P#p.runnable, wait => P#p.wait, gc => P#p.gc,
      exiting => P#p.exiting, ins => P#p.ins, sent => P#p.sent, sent_bytes => P#p.sent_bytes,
      received => P#p.received, received_bytes => P#p.received_bytes, moves => P#p.moves}.

-doc "Sums of several, added.".
-spec sums([sums()]) -> sums().
sums(List) ->
    lists:foldl(fun(Sums, All) -> maps:merge_with(fun(_, A, B) -> A + B end, All, Sums) end,
                sums_of(#p{}), List).
