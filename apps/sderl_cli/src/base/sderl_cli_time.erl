%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_time).
-moduledoc "Times on the command line (`90s`, `30m`, `2h`, `7d`), and as it shows them. Pure.".

-export([seconds/2, time/1]).

-doc "The seconds of a time, which are above 0 and at most `Most`.".
-spec seconds(string(), Most :: pos_integer()) -> {ok, pos_integer()} | error.
seconds(Text, Most) ->
    Units = #{"s" => 1, "m" => 60, "h" => 3600, "d" => 86_400},
    case string:to_integer(Text) of
        {N, Unit} when is_integer(N), N > 0, is_map_key(Unit, Units),
                       N * map_get(Unit, Units) =< Most ->
            {ok, N * map_get(Unit, Units)};
        _ -> error
    end.

-doc "A Unix time in milliseconds as local date and time, to the second.".
-spec time(Ms :: integer()) -> unicode:chardata().
time(Ms) ->
    calendar:system_time_to_rfc3339(Ms div 1000, [{unit, second}, {time_designator, $\s}]).
