%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_visible).
-moduledoc """
Names with what nobody sees in them shown by its code, as on the pages (`web/src/lib/visible.ts`).
Pure.

A mark that turns the direction of text, or a character without a width, makes one name look like
another one in whatever shows a file or a log.
""".

-export([text/1, json/1]).

-doc "The text with such characters as `\\u{202e}`; the same text where there is none.".
-spec text(binary()) -> binary().
text(Text) -> escaped(Text, fun(Char) -> io_lib:format("\\u{~.16b}", [Char]) end).

-doc "JSON with them as JSON writes any character, so that it says what it said.".
-spec json(iodata()) -> binary().
json(Json) -> escaped(iolist_to_binary(Json), fun json_character/1).

json_character(Char) when Char < 16#10000 -> json_unit(Char);
json_character(Char) ->
    <<High:16, Low:16>> = <<Char/utf16>>,
    [json_unit(High), json_unit(Low)].

json_unit(Unit) -> io_lib:format("\\u~4.16.0b", [Unit]).

%% Most names are of ASCII alone.
escaped(Text, Escape) ->
    case is_plain(Text) of
        true -> Text;
        false -> iolist_to_binary(characters(Text, Escape))
    end.

characters(<<Char/utf8, Rest/binary>>, Escape) ->
    Shown = case is_hidden(Char) of true -> Escape(Char); false -> <<Char/utf8>> end,
    [Shown | characters(Rest, Escape)];
%% What is no character.
characters(<<Byte, Rest/binary>>, Escape) ->
    [Escape(Byte) | characters(Rest, Escape)];
characters(<<>>, _) ->
    [].

is_plain(<<Char, Rest/binary>>)
  when Char >= $\s, Char < 16#7f; Char =:= $\t; Char =:= $\n; Char =:= $\r ->
    is_plain(Rest);
is_plain(Rest) ->
    Rest =:= <<>>.

%% Controls but the tabulator and ends of lines, marks of direction, joiners, fillers, selectors of
%% variants, tags, private characters.
is_hidden(Char) when Char < $\s -> not lists:member(Char, "\t\n\r");
is_hidden(Char) when Char < 16#7f -> false;
is_hidden(Char) -> lists:any(fun({From, To}) -> Char >= From andalso Char =< To end, hidden()).

hidden() ->
    [
        {16#7f, 16#9f}, {16#ad, 16#ad}, {16#34f, 16#34f}, {16#600, 16#605}, {16#61c, 16#61c},
        {16#6dd, 16#6dd}, {16#70f, 16#70f}, {16#115f, 16#1160}, {16#17b4, 16#17b5},
        {16#180b, 16#180f}, {16#200b, 16#200f}, {16#2028, 16#202e}, {16#2060, 16#206f},
        {16#2800, 16#2800}, {16#3164, 16#3164}, {16#e000, 16#f8ff}, {16#fe00, 16#fe0f},
        {16#feff, 16#feff}, {16#ffa0, 16#ffa0}, {16#fff0, 16#fffb}, {16#1bca0, 16#1bca3},
        {16#1d173, 16#1d17a}, {16#e0000, 16#10ffff}
    ].
