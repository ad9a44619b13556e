%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_schedulers).
-moduledoc """
Schedulers that are awake, from the events of the item `schedulers`. Pure. Their mean over all of
the time shows what speedup is lost by schedulers that sleep while there is work (claim C17).
""".

-export([new/3, step/5, result/2]).
-export([change/4]).
-export_type([schedulers/0, result/0, awake/0]).

-include("sderl_prof_event.hrl").

-record(schedulers, {
    parts :: sderl_prof_concurrency:concurrency(),
    awake = {#{}, #{}} :: awake(),
    times = #{} :: #{pos_integer() => non_neg_integer()},
    changes = 0 :: non_neg_integer(),
    from :: integer()
}).
-opaque schedulers() :: #schedulers{}.

-doc "Since when those that are awake are so, and all that had an event.".
-type awake() :: {Since :: #{pos_integer() => integer()}, Seen :: #{pos_integer() => true}}.

-doc """
Nanoseconds awake of each scheduler that was seen; how many were awake in each part of the time.
""".
-type result() :: #{changes := non_neg_integer(),
                    awake_ns := #{pos_integer() => non_neg_integer()},
                    points := [#{from := integer(), awake := float()}]}.

-doc "Nothing yet, of a range and its parts.".
-spec new(integer(), integer(), pos_integer()) -> schedulers().
new(From, To, Parts) ->
    #schedulers{from = From, parts = sderl_prof_concurrency:new(From, To, Parts)}.

-doc "One event more.".
-spec step(integer(), byte(), Scheduler :: non_neg_integer(), non_neg_integer(), schedulers()) ->
    schedulers().
step(T, K, S, _, #schedulers{awake = Awake, changes = N, from = Begin} = Sch)
  when K =:= ?SCHEDULER_ACTIVE; K =:= ?SCHEDULER_INACTIVE ->
    {Since, Awake1} = change(K, S, {T, Begin}, Awake),
    Sch1 = Sch#schedulers{awake = Awake1, changes = N + 1},
    case Since of
        none -> Sch1;
        From -> ended(S, From, T, Sch1)
    end;
step(_, _, _, _, Sch) ->
    Sch.

-doc "A scheduler wakes, or falls asleep: since when it has been awake. `Begin`: of the range.".
-spec change(byte(), pos_integer(), {Time :: integer(), Begin :: integer()}, awake()) ->
    {Since :: none | integer(), awake()}.
change(?SCHEDULER_ACTIVE, S, {T, _}, {Awake, Seen}) ->
    {none, {maps:merge(#{S => T}, Awake), Seen#{S => true}}};
change(?SCHEDULER_INACTIVE, S, {T, Begin}, {Awake, Seen}) ->
    %% One whose first event is that it sleeps was awake before.
    Since = case Awake of
        #{S := From} -> From;
        _ when is_map_key(S, Seen) -> T;
        _ -> Begin
    end,
    {Since, {maps:remove(S, Awake), Seen#{S => true}}}.

ended(S, From, To, #schedulers{times = Times, parts = Parts} = Sch) ->
    Time = maps:get(S, Times, 0) + max(0, To - From),
    Sch#schedulers{times = Times#{S => Time},
                   parts = sderl_prof_concurrency:add(running, From, To, Parts)}.

-doc "What is known at the end.".
-spec result(End :: integer(), schedulers()) -> result().
result(End, #schedulers{awake = {Awake, _}} = Sch) ->
    #schedulers{times = Times, changes = Changes, parts = Parts} =
        maps:fold(fun(S, From, Acc) -> ended(S, From, End, Acc) end, Sch, Awake),
    #{changes => Changes, awake_ns => Times,
      points => [#{from => From, awake => N}
                 || #{from := From, running := N} <- sderl_prof_concurrency:result(Parts)]}.
