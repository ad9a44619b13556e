%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_visible).
-moduledoc """
Shows invisible characters in names by their codes, as the pages do (`web/src/lib/visible.ts`) and
the library (`sderl_visible`, which a monitoring node lacks). Pure.

A mark that turns the direction of text, or a character without a width, makes one name look like
another one.
""".

-export([text/1, json/1, is_hidden/1]).

-doc "The text with such characters written like `\\u{202e}`.".
-spec text(binary()) -> binary().
text(Text) -> escaped(Text, fun(Char) -> io_lib:format("\\u{~.16b}", [Char]) end).

-doc "JSON with such characters in JSON's own notation, so that its meaning stays the same.".
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
%% Escapes bytes that are no character.
characters(<<Byte, Rest/binary>>, Escape) ->
    [Escape(Byte) | characters(Rest, Escape)];
characters(<<>>, _) ->
    [].

is_plain(<<Char, Rest/binary>>)
  when Char >= $\s, Char < 16#7f; Char =:= $\t; Char =:= $\n; Char =:= $\r ->
    is_plain(Rest);
is_plain(Rest) ->
    Rest =:= <<>>.

-doc "Whether a character is invisible, or moves others.".
-spec is_hidden(char()) -> boolean().
is_hidden(Char) -> is_within(Char, hidden()).

is_within(Char, [{_, To} | Rest]) when Char > To -> is_within(Char, Rest);
is_within(Char, [{From, _} | _]) -> Char >= From;
is_within(_, []) -> false.

%% As in the library; m:sderl_visible says what they are.
hidden() ->
    [
        {16#0, 16#8}, {16#b, 16#c}, {16#e, 16#1f}, {16#7f, 16#9f}, {16#ad, 16#ad}, {16#34f, 16#34f},
        {16#600, 16#605}, {16#61c, 16#61c}, {16#6dd, 16#6dd}, {16#70f, 16#70f}, {16#890, 16#891},
        {16#8e2, 16#8e2}, {16#115f, 16#1160}, {16#17b4, 16#17b5}, {16#180b, 16#180f},
        {16#200b, 16#200f}, {16#2028, 16#202e}, {16#2060, 16#206f}, {16#2800, 16#2800},
        {16#3164, 16#3164}, {16#d800, 16#f8ff}, {16#fdd0, 16#fdef}, {16#fe00, 16#fe0f},
        {16#feff, 16#feff}, {16#ffa0, 16#ffa0}, {16#fff0, 16#fffb}, {16#fffe, 16#ffff},
        {16#110bd, 16#110bd}, {16#110cd, 16#110cd}, {16#13430, 16#1343f}, {16#1bca0, 16#1bca3},
        {16#1d173, 16#1d17a}, {16#1fffe, 16#1ffff}, {16#2fffe, 16#2ffff}, {16#3fffe, 16#3ffff},
        {16#4fffe, 16#4ffff}, {16#5fffe, 16#5ffff}, {16#6fffe, 16#6ffff}, {16#7fffe, 16#7ffff},
        {16#8fffe, 16#8ffff}, {16#9fffe, 16#9ffff}, {16#afffe, 16#affff}, {16#bfffe, 16#bffff},
        {16#cfffe, 16#cffff}, {16#dfffe, 16#10ffff}
    ].
