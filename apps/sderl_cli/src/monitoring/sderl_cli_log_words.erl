%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_log_words).
-moduledoc "The lines that `bin/sderl log` prints. Pure.".

-export([line/1, json/1]).

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
