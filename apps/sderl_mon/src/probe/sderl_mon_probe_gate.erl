%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_gate).
-moduledoc """
Decides whether a log event passes, before it is formatted: bounds how many pass in a second, and
how many wait. Events that may not pass are counted, by level.

The state is a few numbers that the processes of a node change without a lock, so a process that
logs never waits, and an event that may not pass costs it less than a microsecond.
""".

-export([new/2, change/2, enter/2, leave/2, settle/1, lost/1, levels/0]).
-export_type([gate/0, reason/0, lost/0]).

-record(gate, {
    bucket :: sderl_mon_probe_bucket:bucket(),
    most :: pos_integer(),
    waiting :: atomics:atomics_ref(),
    lost :: counters:counters_ref()
}).
-opaque gate() :: #gate{}.

-doc """
`rate`: more than the node may send in a second; `queue`: too many wait, because no monitoring node
takes them.
""".
-type reason() :: rate | queue.

-doc "How many were left out since the gate was made; without a key, none.".
-type lost() :: #{reason() => #{logger:level() => pos_integer()}}.

-define(REASONS, [rate, queue]).

-doc "A gate for `per_s` events a second, `burst` at once, and `Most` that wait.".
-spec new(#{per_s := pos_integer(), burst := pos_integer(), _ => _}, Most :: pos_integer()) ->
    gate().
new(#{per_s := PerS, burst := Burst}, Most) ->
    #gate{bucket = sderl_mon_probe_bucket:new(PerS, Burst), most = Most,
          waiting = atomics:new(1, [{signed, true}]),
          lost = counters:new(length(?REASONS) * length(levels()), [])}.

-doc "The same counts, for another rate.".
-spec change(#{per_s := pos_integer(), burst := pos_integer(), _ => _}, gate()) -> gate().
change(#{per_s := PerS, burst := Burst}, Gate) ->
    Gate#gate{bucket = sderl_mon_probe_bucket:new(PerS, Burst)}.

-doc "Whether an event may pass. `full`: too many wait, perhaps because nobody takes them.".
-spec enter(logger:level(), gate()) -> pass | limited | full.
enter(Level, #gate{bucket = Bucket, most = Most, waiting = Waiting} = Gate) ->
    case sderl_mon_probe_bucket:take(Bucket) of
        false ->
            lose(rate, Level, Gate),
            limited;
        true ->
            case atomics:add_get(Waiting, 1, 1) of
                N when N =< Most -> pass;
                _ ->
                    ok = atomics:sub(Waiting, 1, 1),
                    lose(queue, Level, Gate),
                    full
            end
    end.

lose(Reason, Level, #gate{lost = Lost}) -> counters:add(Lost, index(Reason, Level), 1).

-doc "`N` events that had passed wait no longer.".
-spec leave(non_neg_integer(), gate()) -> ok.
leave(N, #gate{waiting = Waiting}) -> atomics:sub(Waiting, 1, N).

-doc """
No event waits; called by the process that takes them. (An event whose process was killed just after
it had passed never arrived, and would count as waiting for ever.)
""".
-spec settle(gate()) -> ok.
settle(#gate{waiting = Waiting}) -> atomics:put(Waiting, 1, 0).

-doc "How many were left out.".
-spec lost(gate()) -> lost().
lost(#gate{lost = Lost}) ->
    Counts = #{Reason => #{Level => N
                           || Level <- levels(), N <- [counters:get(Lost, index(Reason, Level))],
                              N > 0}
               || Reason <- ?REASONS},
    #{Reason => By || Reason := By <- Counts, map_size(By) > 0}.

index(rate, Level) -> index(Level);
index(queue, Level) -> length(levels()) + index(Level).

index(emergency) -> 1;
index(alert) -> 2;
index(critical) -> 3;
index(error) -> 4;
index(warning) -> 5;
index(notice) -> 6;
index(info) -> 7;
index(debug) -> 8.

-doc "The levels of `logger`, the most severe first.".
-spec levels() -> [logger:level(), ...].
levels() -> [emergency, alert, critical, error, warning, notice, info, debug].
