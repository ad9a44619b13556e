%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_words).
-moduledoc "Texts of errors. Pure.".

-export([text/2, shown/1, suggestion/2, list/1]).

-doc "As `io_lib:format/2`, as UTF-8.".
-spec text(io:format(), [term()]) -> binary().
text(Format, Args) -> sderl_mon_text:text(Format, Args).

-doc "A value from JSON as it was written, shortened.".
-spec shown(term()) -> unicode:chardata().
shown(Text) when is_binary(Text), byte_size(Text) > 60 ->
    [$", sderl_mon_visible:text(sderl_mon_text:cut(Text, 57)), "...\""];
shown(Text) when is_binary(Text) -> [$", sderl_mon_visible:text(Text), $"];
shown(List) when is_list(List) -> "a list";
shown(Map) when is_map(Map) -> "an object";
shown(Value) -> io_lib:format("~w", [Value]).

-doc "`; did you mean NAME?` if one is similar, else the list of names.".
-spec suggestion(binary(), [binary()]) -> unicode:chardata().
suggestion(Given, Names) ->
    case lists:sort([{-string:jaro_similarity(Given, Name), Name} || Name <- Names]) of
        [{Near, Name} | _] when Near =< -0.8 -> ["; did you mean ", Name, "?"];
        _ -> ["; the names are ", list(Names)]
    end.

-doc "Names with commas between.".
-spec list([binary()]) -> iolist().
list(Names) -> lists:join(", ", Names).
