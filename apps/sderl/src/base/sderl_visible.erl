%% SPDX-License-Identifier: Apache-2.0
-module(sderl_visible).
-moduledoc """
Text with names that come from elsewhere, for people.

A mark that turns the direction of text, or a character that nobody sees, makes one name look like
another, or turns round what stands beside it. Such characters are shown by their code. The
dashboard's pages do the same.
""".

-export([text/1, json/1, erlang/1]).

%% Controls but the tabulator and ends of lines, marks of direction, joiners, selectors, fillers,
%% tags.
-define(HIDDEN,
    "[\\x{0}-\\x{8}\\x{b}\\x{c}\\x{e}-\\x{1f}\\x{7f}-\\x{9f}\\p{Cf}\\p{Co}\\p{Zl}\\p{Zp}"
    "\\x{34f}\\x{115f}\\x{1160}\\x{17b4}\\x{17b5}\\x{180b}-\\x{180f}\\x{2065}\\x{2800}\\x{3164}"
    "\\x{fe00}-\\x{fe0f}\\x{ffa0}\\x{fff0}-\\x{fff8}\\x{e0000}-\\x{e0fff}]"
).

-doc """
The text with what cannot be seen as `\\u{202e}`. The same text where there is nothing of that, or
where it is no Unicode.
""".
-spec text(unicode:chardata()) -> unicode:chardata().
text(Text) -> shown(Text, fun(C) -> io_lib:format("\\u{~.16b}", [C]) end).

-doc "JSON with what cannot be seen in its texts as `\\u202e`, which stands for the same.".
-spec json(iodata()) -> unicode:chardata().
json(Json) ->
    shown(Json, fun(C) ->
        [io_lib:format("\\u~4.16.0b", [Half]) || <<Half:16>> <= <<C/utf16>>]
    end).

-doc "Erlang terms: in quotes what cannot be seen is `\\x{202e}`, which stands for the same.".
-spec erlang(unicode:chardata()) -> unicode:chardata().
erlang(Terms) -> shown(Terms, fun(C) -> io_lib:format("\\x{~.16b}", [C]) end).

shown(Text, Show) ->
    case unicode:characters_to_binary(Text) of
        Binary when is_binary(Binary) ->
            case re:run(Binary, ?HIDDEN, [unicode, {capture, none}]) of
                nomatch -> Text;
                match ->
                    re:replace(Binary, ?HIDDEN, fun(Hidden, _) -> coded(Hidden, Show) end,
                               options())
            end;
        _ ->
            Text
    end.

coded(<<C/utf8>>, Show) -> unicode:characters_to_binary(Show(C)).

options() -> [unicode, global, {return, binary}].
