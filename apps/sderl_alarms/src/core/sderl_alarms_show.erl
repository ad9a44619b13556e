%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_show).
-moduledoc "Alarms and silences as programs and pages get them: maps of what JSON can say. Pure.".

-export([alarm/1, alarm/2, silence/1]).

-doc "An alarm.".
-spec alarm(sderl_alarms_core:alarm()) -> map().
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
-spec alarm(sderl_alarms_core:alarm(), sderl_alarms_core:state()) -> map().
alarm(Alarm, State) -> (alarm(Alarm))#{silenced => sderl_alarms_core:is_silenced(Alarm, State)}.

-doc "A silence.".
-spec silence(sderl_alarms_silence:silence()) -> map().
silence(Silence) -> maps:with([id, match, by, at, until, text], Silence).
