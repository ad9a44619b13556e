%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_log_words).
-moduledoc """
The times that `bin/sderl log` takes, and the lines that it prints. Pure, but for the clock.
""".

-export([time/2, line/1, json/1]).

-doc "The time of an option, in Unix milliseconds; none where it is not given.".
-spec time(atom(), #{atom() => term()}) -> {ok, integer() | none} | {wrong, unicode:chardata()}.
time(Key, Parsed) ->
    case Parsed of
        #{Key := Text} -> time_of(Key, Text);
        #{} -> {ok, none}
    end.

time_of(Key, Text) ->
    case string:to_integer(Text) of
        {N, [Unit]} when is_integer(N), N >= 0, N < 1_000_000,
                         (Unit =:= $s orelse Unit =:= $m orelse Unit =:= $h orelse Unit =:= $d) ->
            {ok, erlang:system_time(millisecond) - N * unit_ms(Unit)};
        _ ->
            try
                {ok, calendar:rfc3339_to_system_time(Text, [{unit, millisecond}])}
            catch
                error:_ ->
                    {wrong, ["--", atom_to_list(Key), " cannot be \"", Text, "\": it is an age as "
                             "90s, 15m, 2h or 3d, or a time as 2026-11-27T08:00:00Z"]}
            end
    end.

unit_ms($s) -> 1000;
unit_ms($m) -> 60_000;
unit_ms($h) -> 3_600_000;
unit_ms($d) -> 86_400_000.

-doc """
An event as a line for people. Further lines of its text are indented, so that none of them looks
like an event.
""".
-spec line(sderl_mon_log_message:event()) -> unicode:chardata().
line(#{t := T, level := Level, node := Node, mfa := Mfa, text := Text}) ->
    [First | Rest] = binary:split(visible(Text), ~"\n", [global]),
    [
        calendar:system_time_to_rfc3339(T, [{unit, millisecond}]), $\s,
        io_lib:format("~-9ts ", [Level]), one_line(Node), $\s,
        [[one_line(Mfa), $\s] || Mfa =/= <<>>], First, $\n,
        [["    ", Line, $\n] || Line <- Rest]
    ].

visible(Text) -> binary:replace(sderl_mon_visible:text(Text), ~"\r", ~"\\u{d}", [global]).

one_line(Text) -> binary:replace(visible(Text), ~"\n", ~"\\u{a}", [global]).

-doc "An event as a line of JSON.".
-spec json(sderl_mon_log_message:event()) -> iodata().
json(Event) -> sderl_mon_visible:json(json:encode(Event)).
