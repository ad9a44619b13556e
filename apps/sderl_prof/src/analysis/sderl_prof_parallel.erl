%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_parallel).
-moduledoc """
What keeps processes from running side by side: times in which only one of them can run, and who
that is; processes that others have asked and wait for while these work; schedulers asleep while a
process could run. Pure; it is told of each change of a process's state (`change/6`), of messages
and of schedulers, in the order of time.

A process has asked another one if that is the last one to which it has sent, and if that has sent
it something since, the answer. Casts are no questions, for they have no answer. Of the time between
question and answer only that counts in which the asked process runs or waits for a scheduler: while
it waits itself, the others wait for something else.
""".

-export([new/2, change/6, send/4, exited/3, awake/3, finish/2]).
-export_type([parallel/0, result/0]).

%% Pairs and processes that are told apart, and stretches that are kept.
-define(MOST_KEYS, 50_000).
-define(MOST_STRETCHES, 20).

-record(asked, {
    waiting = 0 :: non_neg_integer(),
    %% Its work since somebody began to wait for it, and since when it works.
    worked = 0 :: non_neg_integer(),
    since = none :: none | integer()
}).

%% Small records, because each event makes some of them anew.
-record(time, {
    at :: integer(),
    %% Processes that run or could: how many, and the sum of their numbers, which is that of the one
    %% where there is one. A map of them would cost more than all else here.
    able = 0 :: non_neg_integer(),
    sum = 0 :: non_neg_integer(),
    busy = 0 :: non_neg_integer(),
    idle = 0 :: non_neg_integer(),
    alone = 0 :: non_neg_integer(),
    by :: sderl_prof_tally:tally(),
    kept :: sderl_prof_tally:tally(),
    stretch = none :: none | {pos_integer(), integer()},
    stretches :: sderl_prof_top:top()
}).
-record(sleep, {
    schedulers :: pos_integer() | unknown,
    awake :: unknown | non_neg_integer(),
    runnable = 0 :: non_neg_integer(),
    ns = 0 :: non_neg_integer(),
    could = 0 :: non_neg_integer(),
    since = none :: none | integer(),
    longest :: sderl_prof_top:top()
}).
-record(questions, {
    %% To whom a process sent last and who did not answer; where it waits for that, with what the
    %% asked one had worked when the wait began.
    sent = #{} :: #{pos_integer() => pos_integer() | {pos_integer(), non_neg_integer()}},
    asked = #{} :: #{pos_integer() => #asked{}},
    for :: sderl_prof_tally:tally(),
    held :: sderl_prof_tally:tally()
}).
-record(parallel, {time :: #time{}, sleep :: #sleep{}, questions :: #questions{}}).
-opaque parallel() :: #parallel{}.

-doc """
Nanoseconds: `busy`, something ran or could; `idle`, nothing did; `alone`, one process only, and
`by` which with how long, and `kept`, the time that others waited for it meanwhile. `stretches` are
the longest times of one process alone. `for`: by asked process and asker, how often and how long it
was waited for while it worked; `held`: by asked process, how long it worked while at least one
waited. `asleep`: at least one scheduler slept while a process could run; `asleep_could` is the sum
of the waits for a scheduler in that time.
""".
-type result() :: #{
    busy := non_neg_integer(), idle := non_neg_integer(), alone := non_neg_integer(),
    by := #{pos_integer() => non_neg_integer()}, kept := #{pos_integer() => non_neg_integer()},
    stretches := [{pos_integer(), integer(), integer()}],
    for := [{{pos_integer(), pos_integer()}, non_neg_integer(), non_neg_integer()}],
    held := #{pos_integer() => non_neg_integer()},
    asleep := non_neg_integer(), asleep_could := non_neg_integer(),
    sleeps := [{integer(), integer()}]
}.

-doc "Nothing yet; the number of schedulers, where it is known.".
-spec new(From :: integer(), pos_integer() | unknown) -> parallel().
new(From, Schedulers) ->
    Tally = sderl_prof_tally:new(?MOST_KEYS),
    Top = sderl_prof_top:new(?MOST_STRETCHES),
    #parallel{
        time = #time{at = From, by = Tally, kept = Tally, stretches = Top},
        sleep = #sleep{schedulers = Schedulers, awake = Schedulers, longest = Top},
        questions = #questions{for = Tally, held = Tally}
    }.

-doc "A process went from one state to another. `State` tells that of any process now.".
-spec change(integer(), pos_integer(), sderl_prof_activity:state(), sderl_prof_activity:state(),
             fun((pos_integer()) -> sderl_prof_activity:state()), parallel()) -> parallel().
change(_, _, State, State, _, Par) -> Par;
change(T, P, Before, After, State, Par0) ->
    #parallel{time = Time, sleep = Sleep, questions = Questions} = passed(T, Par0),
    {Able, Worked} = case {is_able(Before), is_able(After)} of
        {true, false} -> {able(-1, -P, Time), works(P, T, false, Questions)};
        {false, true} -> {able(1, P, Time), works(P, T, true, Questions)};
        _ -> {Time, Questions}
    end,
    Waits = case After of
        waiting -> begin_wait(T, P, State, Worked);
        _ -> Worked
    end,
    #parallel{
        time = noted_alone(T, Able),
        sleep = noted_sleep(T, runnable(Before, After, Sleep)),
        questions = Waits
    }.

is_able(State) -> State =:= running orelse State =:= runnable.

able(One, P, #time{able = Able, sum = Sum} = Time) -> Time#time{able = Able + One, sum = Sum + P}.

runnable(runnable, _, #sleep{runnable = N} = Sleep) -> Sleep#sleep{runnable = N - 1};
runnable(_, runnable, #sleep{runnable = N} = Sleep) -> Sleep#sleep{runnable = N + 1};
runnable(_, _, Sleep) -> Sleep.

%% ---------------------------------------------------------------- time that passes

%% Counts the time since the last change to what was so.
passed(T, #parallel{time = #time{at = At}} = Par) when T =< At -> Par;
passed(T, #parallel{time = #time{at = At} = Time, sleep = Sleep, questions = Questions}) ->
    #parallel{time = together(T, T - At, Questions, Time), sleep = slept(T - At, Sleep),
              questions = Questions}.

together(T, Ns, _, #time{able = 0, idle = Idle} = Time) ->
    Time#time{at = T, idle = Idle + Ns};
together(T, Ns, _, #time{able = Able, busy = Busy} = Time) when Able > 1 ->
    Time#time{at = T, busy = Busy + Ns};
together(T, Ns, #questions{asked = Asked}, #time{sum = P, busy = Busy, alone = Alone, by = By,
                                                 kept = Kept} = Time) ->
    Time#time{
        at = T,
        busy = Busy + Ns,
        alone = Alone + Ns,
        by = sderl_prof_tally:add(P, Ns, By),
        kept = case Asked of
            #{P := #asked{waiting = N}} when N > 0 -> sderl_prof_tally:add(P, N * Ns, Kept);
            _ -> Kept
        end
    }.

slept(Ns, #sleep{ns = Slept, could = Could, runnable = Runnable} = Sleep) ->
    case is_asleep(Sleep) of
        true -> Sleep#sleep{ns = Slept + Ns, could = Could + Ns * Runnable};
        false -> Sleep
    end.

is_asleep(#sleep{awake = Awake, schedulers = All, runnable = Runnable}) ->
    is_integer(Awake) andalso is_integer(All) andalso Awake < All andalso Runnable > 0.

%% Begins and ends stretches.
noted_alone(T, #time{able = Able, sum = Sum, stretch = Stretch} = Time) ->
    Alone = case Able of
        1 -> Sum;
        _ -> none
    end,
    case Stretch of
        none when Alone =:= none -> Time;
        {Alone, _} -> Time;
        _ ->
            Ended = end_stretch(T, Time),
            Ended#time{stretch = case Alone of none -> none; _ -> {Alone, T} end}
    end.

end_stretch(_, #time{stretch = none} = Time) -> Time;
end_stretch(T, #time{stretch = {P, From}, stretches = Top} = Time) ->
    Time#time{stretch = none, stretches = sderl_prof_top:add(T - From, {From, T, P}, Top)}.

noted_sleep(T, #sleep{since = Since} = Sleep) ->
    case {is_asleep(Sleep), Since} of
        {true, none} -> Sleep#sleep{since = T};
        {false, From} when From =/= none -> end_sleep(T, Sleep);
        _ -> Sleep
    end.

end_sleep(_, #sleep{since = none} = Sleep) -> Sleep;
end_sleep(T, #sleep{since = From, longest = Top} = Sleep) ->
    Sleep#sleep{since = none, longest = sderl_prof_top:add(T - From, {From, T}, Top)}.

-doc "So many schedulers are awake.".
-spec awake(integer(), non_neg_integer(), parallel()) -> parallel().
awake(T, Awake, Par0) ->
    #parallel{sleep = Sleep} = Par = passed(T, Par0),
    Par#parallel{sleep = noted_sleep(T, Sleep#sleep{awake = Awake})}.

%% ---------------------------------------------------------------- questions and answers

-doc "A process sent a message to another one.".
-spec send(integer(), pos_integer(), non_neg_integer(), parallel()) -> parallel().
send(_, P, P, Par) -> Par;
send(T, P, To, Par) ->
    #parallel{questions = #questions{sent = Sent}} = Answered = answered(T, To, P, Par),
    case Sent of
        #{P := To} -> Answered;
        #{P := {To, _}} -> Answered;
        _ ->
            #parallel{questions = Questions} = Ended = end_wait(T, P, Answered),
            #questions{sent = Others} = Questions,
            Ended#parallel{questions = Questions#questions{sent = Others#{P => To}}}
    end.

%% Only one that asked can have an answer.
answered(T, Asker, P, #parallel{questions = #questions{sent = Sent} = Questions} = Par) ->
    case Sent of
        #{Asker := {P, Before}} ->
            Worked = worked(T, map_get(P, Questions#questions.asked)) - Before,
            #parallel{questions = #questions{for = For} = Rest} = Ended = end_wait(T, Asker, Par),
            Ended#parallel{questions = Rest#questions{
                for = sderl_prof_tally:add({P, Asker}, max(0, Worked), For)
            }};
        #{Asker := P} -> Par#parallel{questions = Questions#questions{sent = maps:remove(Asker,
                                                                                         Sent)}};
        _ -> Par
    end.

%% A wait goes on when it was interrupted for another message.
begin_wait(T, P, State, #questions{sent = Sent, asked = Asked} = Questions)
  when is_integer(map_get(P, Sent)) ->
    #{P := To} = Sent,
    #asked{waiting = N} = A = case Asked of
        #{To := Known} -> Known;
        _ ->
            case is_able(State(To)) of
                true -> #asked{since = T};
                false -> #asked{}
            end
    end,
    Questions#questions{sent = Sent#{P := {To, worked(T, A)}},
                        asked = Asked#{To => A#asked{waiting = N + 1}}};
begin_wait(_, _, _, Questions) ->
    Questions.

%% Ends the wait of a process, and with it what it asked.
end_wait(T, P, #parallel{questions = #questions{sent = Sent}} = Par0)
  when is_tuple(map_get(P, Sent)) ->
    %% Until now it waited.
    #parallel{questions = #questions{asked = Asked, held = Held} = Questions} = Par =
        passed(T, Par0),
    {{To, _}, Rest} = maps:take(P, Sent),
    Par#parallel{questions = case Asked of
        #{To := #asked{waiting = 1} = A} ->
            Questions#questions{sent = Rest, asked = maps:remove(To, Asked),
                                held = sderl_prof_tally:add(To, worked(T, A), Held)};
        #{To := #asked{waiting = N} = A} ->
            Questions#questions{sent = Rest, asked = Asked#{To := A#asked{waiting = N - 1}}}
    end};
end_wait(_, _, Par) ->
    Par.

works(P, T, Works, #questions{asked = Asked} = Questions) ->
    case Asked of
        #{P := A} when Works -> Questions#questions{asked = Asked#{P := A#asked{since = T}}};
        #{P := A} ->
            Worked = A#asked{worked = worked(T, A), since = none},
            Questions#questions{asked = Asked#{P := Worked}};
        _ -> Questions
    end.

worked(_, #asked{worked = Worked, since = none}) -> Worked;
worked(T, #asked{worked = Worked, since = Since}) -> Worked + max(0, T - Since).

-doc "A process has ended, and waits for nothing.".
-spec exited(integer(), pos_integer(), parallel()) -> parallel().
exited(T, P, Par) ->
    #parallel{questions = #questions{sent = Sent} = Questions} = Ended = end_wait(T, P, Par),
    Ended#parallel{questions = Questions#questions{sent = maps:remove(P, Sent)}}.

-doc "What is known at the end.".
-spec finish(End :: integer(), parallel()) -> result().
finish(End, Par) ->
    #parallel{time = Time0, sleep = Sleep0, questions = Questions} = passed(End, Par),
    Time = end_stretch(End, Time0),
    Sleep = end_sleep(End, Sleep0),
    {For, _, _} = sderl_prof_tally:result(Questions#questions.for),
    Held = maps:fold(fun(P, A, All) -> sderl_prof_tally:add(P, worked(End, A), All) end,
                     Questions#questions.held, Questions#questions.asked),
    #{
        busy => Time#time.busy,
        idle => Time#time.idle,
        alone => Time#time.alone,
        by => sums(Time#time.by),
        kept => sums(Time#time.kept),
        stretches => [{P, From, To}
                      || {_, {From, To, P}} <- sderl_prof_top:result(Time#time.stretches)],
        for => [{Pair, N, Ns} || {Pair, {N, Ns, _}} <- lists:sort(maps:to_list(For))],
        held => sums(Held),
        asleep => Sleep#sleep.ns,
        asleep_could => Sleep#sleep.could,
        sleeps => [Item || {_, Item} <- sderl_prof_top:result(Sleep#sleep.longest)]
    }.

sums(Tally) ->
    {Rows, _, _} = sderl_prof_tally:result(Tally),
    #{P => Ns || P := {_, Ns, _} <- Rows}.
