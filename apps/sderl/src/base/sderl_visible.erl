%% SPDX-License-Identifier: Apache-2.0
-module(sderl_visible).
-moduledoc """
Text with names that come from elsewhere, for people. Pure.

A mark that turns the direction of text, or a character that nobody sees, makes one name look like
another, or turns round what stands beside it. Such characters are shown by their code: in the log,
in files and pictures, by programs. The monitoring (`sderl_mon_visible`) and its pages
(`web/src/lib/visible.ts`), which have to do without the library, have the same table;
`sderl_cli_visible_tests` compares them.
""".

-export([text/1, json/1, erlang/1, is_hidden/1]).

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
            case has_hidden(Binary) of
                false -> Text;
                true -> << <<(coded(Char, Show))/binary>> || <<Char/utf8>> <= Binary >>
            end;
        _ ->
            Text
    end.

has_hidden(<<Char/utf8, Rest/binary>>) -> is_hidden(Char) orelse has_hidden(Rest);
has_hidden(<<>>) -> false.

coded(Char, Show) ->
    case is_hidden(Char) of
        true -> unicode:characters_to_binary(Show(Char));
        false -> <<Char/utf8>>
    end.

-doc "Whether it is a character that nobody sees, or that moves others.".
-spec is_hidden(char()) -> boolean().
%% Nearly all are one of these.
is_hidden(Char) when Char >= $\s, Char < 16#7f; Char =:= $\n -> false;
is_hidden(Char) -> is_within(Char, hidden()).

is_within(Char, [{_, To} | Rest]) when Char > To -> is_within(Char, Rest);
is_within(Char, [{From, _} | _]) -> Char >= From;
is_within(_, []) -> false.

%% Controls but the tabulator and ends of lines, marks of direction, joiners, fillers, selectors of
%% variants, tags, private characters, halves of pairs, and what never is a character, in order.
%% It names no general category: each version of Unicode has others.
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
