%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_silence).
-moduledoc """
Silences: for a while nobody is told of alarms that fit. Pure.

How long a silence still holds is counted by the monotonic clock, so that a wall clock that jumps
neither ends it nor makes it last; `until` is for people, and for the time over a restart.
""".

-export([new/3, restored/3, fits/2, any_fits/3, is_active/2, cut/3, is_old/2]).
-export_type([silence/0, match/0]).

-doc "Patterns with `*`; what is left out fits all. `family` is of alarms of families alone.".
-type match() :: #{alarm | node | group | family => binary(), severity => minor | major}.

-doc "`ends` is by the monotonic clock, in milliseconds.".
-type silence() :: #{
    id := binary(),
    match := match(),
    by := binary(),
    at := sderl_mon_types:t(),
    until := sderl_mon_types:t(),
    text := binary(),
    ends := integer()
}.

%% One that is over is remembered so long, so that another monitoring node does not bring it back.
-define(KEPT_MS, 3_600_000).

-doc "A silence of `For` milliseconds from now on.".
-spec new(map(), For :: pos_integer(), Now :: integer()) -> silence().
new(#{id := _, match := _, by := _, at := At, text := _} = Said, For, Now) ->
    (maps:with([id, match, by, at, text], Said))#{until => At + For, ends => Now + For}.

-doc "One of a file or of another node: what is left of it by the wall clock.".
-spec restored(map(), Wall :: integer(), Now :: integer()) -> silence().
restored(#{at := At, until := Until} = Said, Wall, Now) ->
    Left = max(0, min(Until - Wall, Until - At)),
    (maps:with([id, match, by, at, text, until], Said))#{ends => Now + Left}.

-doc "Whether it still holds.".
-spec is_active(silence(), Now :: integer()) -> boolean().
is_active(#{ends := Ends}, Now) -> Now < Ends.

-doc "Ends it earlier.".
-spec cut(silence(), Wall :: integer(), Now :: integer()) -> silence().
cut(#{until := Until, ends := Ends} = Silence, Wall, Now) ->
    Silence#{until := min(Until, Wall), ends := min(Ends, Now)}.

-doc "Whether it can be forgotten.".
-spec is_old(silence(), Now :: integer()) -> boolean().
is_old(#{ends := Ends}, Now) -> Now - Ends >= ?KEPT_MS.

-doc "Whether an alarm is one of a silence's.".
-spec fits(match(), map()) -> boolean().
fits(Match, #{alarm := Alarm, severity := Severity, nodes := Nodes, groups := Groups,
              place := Place}) ->
    lists:all(fun
        ({alarm, Pattern}) -> sderl_alarms_rule:hits(Pattern, Alarm);
        ({severity, Is}) -> Is =:= Severity;
        ({node, Pattern}) -> any(Pattern, Nodes);
        ({group, Pattern}) -> any(Pattern, Groups);
        ({family, Pattern}) -> any(Pattern, maps:values(maps:with([family], Place)))
    end, maps:to_list(Match)).

any(Pattern, Texts) -> lists:any(fun(Text) -> sderl_alarms_rule:hits(Pattern, Text) end, Texts).

-doc "Whether any silence that holds is for an alarm.".
-spec any_fits([silence()], map(), Now :: integer()) -> boolean().
any_fits(Silences, Alarm, Now) ->
    lists:any(fun(#{match := Match} = Silence) ->
        is_active(Silence, Now) andalso fits(Match, Alarm)
    end, Silences).
