%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_parallel).
-moduledoc """
What keeps processes from running side by side: times in which only one of them can run, and who
that is; processes that others have asked and wait for while these work; schedulers asleep while a
process could run. Pure; it is told of each change of a process's state (`change/5`), of messages
and of schedulers, in the order of time.

A process has asked another one when that is the last to which it has sent, and has answered it
since. Casts are no questions, for they have no answer. Of the time between question and answer
counts what the asked process ran or waited for a scheduler: if it waits itself, it is not what the
others wait for.
""".

-export([new/2, change/5, send/4, exited/3, awake/3, finish/2]).
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

-record(parallel, {
    schedulers :: pos_integer() | unknown,
    at :: integer(),
    %% Processes that run or could.
    able = #{} :: #{pos_integer() => running | runnable},
    runnable = 0 :: non_neg_integer(),
    awake :: unknown | non_neg_integer(),
    %% To whom a process sent last and who did not answer; of those that wait for that, since when
    %% and what the asked one had worked then.
    sent = #{} :: #{pos_integer() => pos_integer()},
    waits = #{} :: #{pos_integer() => {pos_integer(), non_neg_integer()}},
    asked = #{} :: #{pos_integer() => #asked{}},
    for :: sderl_prof_tally:tally(),
    held :: sderl_prof_tally:tally(),
    busy = 0 :: non_neg_integer(),
    idle = 0 :: non_neg_integer(),
    alone = 0 :: non_neg_integer(),
    by :: sderl_prof_tally:tally(),
    kept :: sderl_prof_tally:tally(),
    stretch = none :: none | {pos_integer(), integer()},
    stretches :: sderl_prof_top:top(),
    asleep = 0 :: non_neg_integer(),
    asleep_could = 0 :: non_neg_integer(),
    sleep = none :: none | integer(),
    sleeps :: sderl_prof_top:top()
}).
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
    #parallel{schedulers = Schedulers, at = From, awake = Schedulers,
              for = sderl_prof_tally:new(?MOST_KEYS), held = sderl_prof_tally:new(?MOST_KEYS),
              by = sderl_prof_tally:new(?MOST_KEYS), kept = sderl_prof_tally:new(?MOST_KEYS),
              stretches = sderl_prof_top:new(?MOST_STRETCHES),
              sleeps = sderl_prof_top:new(?MOST_STRETCHES)}.

-doc "A process went from one state to another.".
-spec change(integer(), pos_integer(), sderl_prof_activity:state(), sderl_prof_activity:state(),
             parallel()) -> parallel().
change(_, _, State, State, Par) -> Par;
change(T, P, Before, After, Par0) ->
    Par = passed(T, Par0),
    Par1 = case {is_able(Before), is_able(After)} of
        {true, false} -> works(P, T, false, able(P, Before, none, Par));
        {false, true} -> works(P, T, true, able(P, none, After, Par));
        {true, true} -> able(P, Before, After, Par);
        {false, false} -> Par
    end,
    noted(T, case After of waiting -> begin_wait(T, P, Par1); _ -> Par1 end).

is_able(State) -> State =:= running orelse State =:= runnable.

able(P, Before, After, #parallel{able = Able, runnable = Runnable} = Par) ->
    Par#parallel{
        able = case After of none -> maps:remove(P, Able); _ -> Able#{P => After} end,
        runnable = Runnable - one(Before) + one(After)
    }.

one(runnable) -> 1;
one(_) -> 0.

%% ---------------------------------------------------------------- time that passes

%% Counts the time since the last change to what was so.
passed(T, #parallel{at = At} = Par) when T =< At -> Par;
passed(T, #parallel{at = At} = Par) ->
    together(T - At, slept(T - At, Par#parallel{at = T})).

together(Ns, #parallel{able = Able, idle = Idle} = Par) when map_size(Able) =:= 0 ->
    Par#parallel{idle = Idle + Ns};
together(Ns, #parallel{able = Able, busy = Busy} = Par) when map_size(Able) > 1 ->
    Par#parallel{busy = Busy + Ns};
together(Ns, #parallel{able = Able, busy = Busy, alone = Alone, by = By, kept = Kept} = Par) ->
    [P] = maps:keys(Able),
    Waiting = case Par#parallel.asked of
        #{P := #asked{waiting = N}} -> N;
        _ -> 0
    end,
    Par#parallel{
        busy = Busy + Ns,
        alone = Alone + Ns,
        by = sderl_prof_tally:add(P, Ns, By),
        kept = case Waiting of
            0 -> Kept;
            _ -> sderl_prof_tally:add(P, Waiting * Ns, Kept)
        end
    }.

slept(Ns, #parallel{asleep = Asleep, asleep_could = Could, runnable = Runnable} = Par) ->
    case is_asleep(Par) of
        true -> Par#parallel{asleep = Asleep + Ns, asleep_could = Could + Ns * Runnable};
        false -> Par
    end.

is_asleep(#parallel{awake = Awake, schedulers = All, runnable = Runnable}) ->
    is_integer(Awake) andalso is_integer(All) andalso Awake < All andalso Runnable > 0.

%% Begins and ends stretches.
noted(T, Par) -> noted_sleep(T, noted_alone(T, Par)).

noted_alone(T, #parallel{able = Able, stretch = Stretch} = Par) ->
    Alone = case map_size(Able) of
        1 -> hd(maps:keys(Able));
        _ -> none
    end,
    case Stretch of
        none when Alone =:= none -> Par;
        {Alone, _} -> Par;
        _ ->
            Par1 = end_stretch(T, Par),
            Par1#parallel{stretch = case Alone of none -> none; _ -> {Alone, T} end}
    end.

end_stretch(_, #parallel{stretch = none} = Par) -> Par;
end_stretch(T, #parallel{stretch = {P, From}, stretches = Top} = Par) ->
    Par#parallel{stretch = none, stretches = sderl_prof_top:add(T - From, {From, T, P}, Top)}.

noted_sleep(T, #parallel{sleep = Sleep} = Par) ->
    case {is_asleep(Par), Sleep} of
        {true, none} -> Par#parallel{sleep = T};
        {false, From} when From =/= none -> end_sleep(T, Par);
        _ -> Par
    end.

end_sleep(_, #parallel{sleep = none} = Par) -> Par;
end_sleep(T, #parallel{sleep = From, sleeps = Top} = Par) ->
    Par#parallel{sleep = none, sleeps = sderl_prof_top:add(T - From, {From, T}, Top)}.

-doc "So many schedulers are awake.".
-spec awake(integer(), non_neg_integer(), parallel()) -> parallel().
awake(T, Awake, Par) -> noted(T, (passed(T, Par))#parallel{awake = Awake}).

%% ---------------------------------------------------------------- questions and answers

-doc "A process sent a message to another one.".
-spec send(integer(), pos_integer(), non_neg_integer(), parallel()) -> parallel().
send(_, P, P, Par) -> Par;
send(T, P, To, Par) ->
    Par1 = answered(T, To, P, Par),
    #parallel{sent = Sent} = Par1,
    case Sent of
        #{P := To} -> Par1;
        _ ->
            Par2 = end_wait(T, P, Par1),
            Par2#parallel{sent = (Par2#parallel.sent)#{P => To}}
    end.

%% Only one that asked can have an answer.
answered(T, Asker, P, #parallel{sent = Sent, waits = Waits, for = For} = Par) ->
    case {Sent, Waits} of
        {#{Asker := P}, #{Asker := {P, Before}}} ->
            Worked = worked(T, map_get(P, Par#parallel.asked)) - Before,
            Par1 = end_wait(T, Asker, Par),
            Par1#parallel{sent = maps:remove(Asker, Sent),
                          for = sderl_prof_tally:add({P, Asker}, max(0, Worked), For)};
        {#{Asker := P}, _} -> Par#parallel{sent = maps:remove(Asker, Sent)};
        _ -> Par
    end.

%% A wait goes on when it was interrupted for another message.
begin_wait(T, P, #parallel{sent = Sent, waits = Waits} = Par)
  when is_map_key(P, Sent), not is_map_key(P, Waits) ->
    #parallel{asked = Asked, able = Able} = Par,
    #{P := To} = Sent,
    #asked{waiting = N} = A = case Asked of
        #{To := Known} -> Known;
        _ when is_map_key(To, Able) -> #asked{since = T};
        _ -> #asked{}
    end,
    Par#parallel{waits = Waits#{P => {To, worked(T, A)}},
                 asked = Asked#{To => A#asked{waiting = N + 1}}};
begin_wait(_, _, Par) ->
    Par.

end_wait(T, P, #parallel{waits = Waits, held = Held} = Par0) ->
    case Waits of
        #{P := {To, _}} ->
            %% Until now it waited.
            #parallel{asked = Asked} = Par = passed(T, Par0),
            Rest = maps:remove(P, Waits),
            case Asked of
                #{To := #asked{waiting = 1} = A} ->
                    Par#parallel{waits = Rest, asked = maps:remove(To, Asked),
                                 held = sderl_prof_tally:add(To, worked(T, A), Held)};
                #{To := #asked{waiting = N} = A} ->
                    Par#parallel{waits = Rest, asked = Asked#{To := A#asked{waiting = N - 1}}}
            end;
        _ -> Par0
    end.

works(P, T, Works, #parallel{asked = Asked} = Par) ->
    case Asked of
        #{P := A} when Works -> Par#parallel{asked = Asked#{P := A#asked{since = T}}};
        #{P := A} ->
            Par#parallel{asked = Asked#{P := A#asked{worked = worked(T, A), since = none}}};
        _ -> Par
    end.

worked(_, #asked{worked = Worked, since = none}) -> Worked;
worked(T, #asked{worked = Worked, since = Since}) -> Worked + max(0, T - Since).

-doc "A process has ended, and waits for nothing.".
-spec exited(integer(), pos_integer(), parallel()) -> parallel().
exited(T, P, Par) ->
    #parallel{sent = Sent} = Par1 = end_wait(T, P, Par),
    Par1#parallel{sent = maps:remove(P, Sent)}.

-doc "What is known at the end.".
-spec finish(End :: integer(), parallel()) -> result().
finish(End, Par0) ->
    #parallel{stretches = Stretches, sleeps = Sleeps} = Par =
        end_sleep(End, end_stretch(End, passed(End, Par0))),
    {For, _, _} = sderl_prof_tally:result(Par#parallel.for),
    Held = maps:fold(fun(P, A, All) -> sderl_prof_tally:add(P, worked(End, A), All) end,
                     Par#parallel.held, Par#parallel.asked),
    #{
        busy => Par#parallel.busy,
        idle => Par#parallel.idle,
        alone => Par#parallel.alone,
        by => sums(Par#parallel.by),
        kept => sums(Par#parallel.kept),
        stretches => [{P, From, To} || {_, {From, To, P}} <- sderl_prof_top:result(Stretches)],
        for => [{Pair, N, Ns} || {Pair, {N, Ns, _}} <- lists:sort(maps:to_list(For))],
        held => sums(Held),
        asleep => Par#parallel.asleep,
        asleep_could => Par#parallel.asleep_could,
        sleeps => [Item || {_, Item} <- sderl_prof_top:result(Sleeps)]
    }.

sums(Tally) ->
    {Rows, _, _} = sderl_prof_tally:result(Tally),
    #{P => Ns || P := {_, Ns, _} <- Rows}.
