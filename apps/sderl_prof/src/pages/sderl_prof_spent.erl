%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_spent).
-moduledoc """
The sums of each process in a part of the time, read event by event from the last written states
before it on. So it costs the events of the part and of a few blocks; memory is that of the
processes that live meanwhile.
""".

-export([sums/3]).

-include("sderl_prof_event.hrl").

-record(spent, {from, to, processes = #{}}).

-doc """
What each process did in a part of the time, `to` excluded; `too_many` where it has too many events.
""".
-spec sums(integer(), integer(), sderl_prof_window:view()) ->
    {ok, #{pos_integer() => sderl_prof_activity:sums()}} | {error, too_many}.
sums(From, To, View) ->
    case sderl_prof_window:is_few(sderl_prof_window:events(From, To, View)) of
        true -> {ok, read(From, To, View)};
        false -> {error, too_many}
    end.

%% Times come from the intervals, as far as they lie in the part. Counts come from the activity,
%% which is set to 0 where the part begins and read where it ends.
read(From, To, #{book := Book, index := #{mode := Mode, to := End}} = View) ->
    %% States of this very time may be behind some of its events, which count.
    {First, Saved, _} = sderl_prof_window:start(From - 1, View),
    Restored = sderl_prof_activity:restore(Saved, Mode, fun spent/7, #spent{from = From, to = To}),
    {Blocks, Rest} = sderl_prof_window:blocks(First, To, sderl_prof_book:table(Book)),
    Begun = {before, Restored, none, From},
    {_, Activity, Counts, Last} = Done = lists:foldl(fun(Block, State) ->
        sderl_prof_book:fold_block(Book, Block, step(From, To, Mode), State)
    end, Begun, Blocks),
    Until = case Rest of
        [] -> End;
        _ -> Last
    end,
    {_, #spent{processes = Times}} =
        sderl_prof_activity:finish(Until, collected(Rest, Until, Activity)),
    Counted = case Counts of
        none -> counts(Done, From, Mode);
        _ -> Counts
    end,
    maps:merge_with(fun(_, A, B) -> sderl_prof_activity:sums([A, B]) end, Counted,
                    maps:map(fun(_, Of) -> sums_of(Of) end, Times)).

step(From, To, Mode) ->
    fun(T, K, _, _, _, _, State)
          when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
            setelement(4, State, max(T, element(4, State)));
       (T, K, S, P, A, B, State) ->
            {Where, Activity, Counts, Last} = reached(T, From, To, Mode, State),
            {Where, sderl_prof_activity:step(T, K, S, P, A, B, Activity), Counts, max(T, Last)}
    end.

reached(T, From, To, Mode, {before, Activity, _, Last}) when T >= From ->
    reached(T, From, To, Mode, {within, counting(Activity, Mode), none, Last});
reached(T, From, To, Mode, {within, Activity, _, Last} = State) when T >= To ->
    {behind, Activity, counts(State, From, Mode), Last};
reached(_, _, _, _, State) ->
    State.

%% The same activity with sums of 0.
counting(Activity, Mode) ->
    sderl_prof_activity:restore(sderl_prof_activity:save(Activity), Mode, fun spent/7,
                                sderl_prof_activity:acc(Activity)).

%% Without times, which would count from where intervals begin.
counts({before, Activity, _, Last}, From, Mode) ->
    counts({within, counting(Activity, Mode), none, Last}, From, Mode);
counts({_, Activity, _, _}, From, _) ->
    {Sums, _} = sderl_prof_activity:finish(From, Activity),
    #{P => Sum#{run := 0, runnable := 0, wait := 0, gc := 0, exiting := 0} || {P, Sum} <- Sums}.

collected([], _, Activity) -> Activity;
collected(_, Until, Activity) ->
    Acc = lists:foldl(fun({P, Since}, Acc) -> spent(gc, P, Since, Until, 0, 0, Acc) end,
                      sderl_prof_activity:acc(Activity),
                      sderl_prof_activity:collecting(Activity)),
    sderl_prof_activity:put_acc(Acc, Activity).

spent(What, P, A, B, _, _, #spent{from = From, to = To, processes = Processes} = Acc) ->
    case min(B, To) - max(A, From) of
        Ns when Ns > 0 ->
            Of = maps:get(P, Processes, #{}),
            Acc#spent{processes = Processes#{P => Of#{What => maps:get(What, Of, 0) + Ns}}};
        _ -> Acc
    end.

sums_of(Of) ->
    maps:fold(fun(What, Ns, Sums) -> Sums#{metric(What) := Ns} end,
              sderl_prof_activity:sums([]), Of).

metric(running) -> run;
metric(runnable) -> runnable;
metric(waiting) -> wait;
metric(gc) -> gc;
metric(exiting) -> exiting.
