%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_show).
-moduledoc "Alarms and silences as programs and pages get them: maps that JSON can express. Pure.".

-export([alarm/1, alarm/2, silence/1]).
-export_type([alarm/0, silence/0]).

-doc """
An alarm as it is shown. `since` is when it was raised last, `count` how often it was raised; times
are Unix milliseconds. Routes do not get `silenced`.
""".
-type alarm() :: #{
    id := binary(),
    alarm := binary(),
    state := raised | acknowledged | cleared,
    severity := minor | major,
    worst := minor | major,
    place := #{node | group | family | from | to => binary()},
    nodes := [binary()],
    groups := [binary()],
    since := sderl_mon_types:t(),
    cleared := sderl_mon_types:t() | null,
    why_cleared := binary() | null,
    count := pos_integer(),
    seq := pos_integer(),
    text := binary(),
    cause := binary(),
    remedy := binary(),
    tags := [binary()],
    value := number() | null,
    threshold := number() | null,
    unit := binary(),
    acknowledged := null | #{by := binary(), at := sderl_mon_types:t(), text := binary()},
    comments := [sderl_alarms_core:comment()],
    silenced => boolean()
}.

-type silence() :: #{id := binary(), match := sderl_alarms_silence:match(), by := binary(),
                     at := sderl_mon_types:t(), until := sderl_mon_types:t(), text := binary()}.

-doc "An alarm.".
-spec alarm(sderl_alarms_core:alarm()) -> alarm().
alarm(#{is_raised := Raised, ack := #{acked := Acked, by := By, at := At, text := Text}} = Alarm) ->
    Shown = maps:with([id, alarm, nodes, groups, severity, worst, since, cleared, count, seq, text,
                       cause, remedy, tags, value, threshold, unit, comments, place], Alarm),
    Shown#{
        state => case {Raised, Acked} of
            {false, _} -> cleared;
            {true, true} -> acknowledged;
            {true, false} -> raised
        end,
        why_cleared => case Raised of true -> null; false -> map_get(why_cleared, Alarm) end,
        acknowledged => case Acked of
            true -> #{by => By, at => At, text => Text};
            false -> null
        end
    }.

-doc "The same, and whether it is silenced.".
-spec alarm(sderl_alarms_core:alarm(), sderl_alarms_core:state()) -> alarm().
alarm(Alarm, State) -> (alarm(Alarm))#{silenced => sderl_alarms_core:is_silenced(Alarm, State)}.

-doc "A silence.".
-spec silence(sderl_alarms_silence:silence()) -> silence().
silence(Silence) -> maps:with([id, match, by, at, until, text], Silence).
