%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_silence).
-moduledoc """
Silences: for a while, alarms that match are not sent to routes. Pure.

The rest of a silence is measured by the monotonic clock, so that jumps of the wall clock neither
end nor prolong it; `until` is shown, and used after a restart.
""".

-export([new/3, restored/3, fits/2, any_fits/3, is_active/2, cut/3, is_old/2]).
-export_type([silence/0, match/0]).

-doc """
Patterns with `*`, and a severity. All given keys must match; `family` matches only alarms of a
family, not those of its nodes.
""".
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

%% A silence that is over is kept this long, so that another monitoring node does not bring it back.
-define(KEPT_MS, 3_600_000).

-doc "A silence of `For` milliseconds from now on.".
-spec new(map(), For :: pos_integer(), Now :: integer()) -> silence().
new(#{id := _, match := _, by := _, at := At, text := _} = Said, For, Now) ->
    (maps:with([id, match, by, at, text], Said))#{until => At + For, ends => Now + For}.

-doc "A silence from a file or another node, with its rest by the wall clock.".
-spec restored(map(), Wall :: integer(), Now :: integer()) -> silence().
restored(#{at := At, until := Until} = Said, Wall, Now) ->
    Left = max(0, min(Until - Wall, Until - At)),
    (maps:with([id, match, by, at, text, until], Said))#{ends => Now + Left}.

-doc "Whether it is still in force.".
-spec is_active(silence(), Now :: integer()) -> boolean().
is_active(#{ends := Ends}, Now) -> Now < Ends.

-doc "Ends it earlier.".
-spec cut(silence(), Wall :: integer(), Now :: integer()) -> silence().
cut(#{until := Until, ends := Ends} = Silence, Wall, Now) ->
    Silence#{until := min(Until, Wall), ends := min(Ends, Now)}.

-doc "Whether it can be forgotten.".
-spec is_old(silence(), Now :: integer()) -> boolean().
is_old(#{ends := Ends}, Now) -> Now - Ends >= ?KEPT_MS.

-doc "Whether an alarm (as the core has it, or as it is shown) matches.".
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

-doc "Whether any silence in force matches an alarm.".
-spec any_fits([silence()], map(), Now :: integer()) -> boolean().
any_fits(Silences, Alarm, Now) ->
    lists:any(fun(#{match := Match} = Silence) ->
        is_active(Silence, Now) andalso fits(Match, Alarm)
    end, Silences).
