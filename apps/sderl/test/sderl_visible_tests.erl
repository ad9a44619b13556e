%% SPDX-License-Identifier: Apache-2.0
-module(sderl_visible_tests).

-include_lib("eunit/include/eunit.hrl").

text_test_() ->
    [
        ?_assertEqual(Shown, unicode:characters_to_binary(sderl_visible:text(Text)))
     || {Text, Shown} <- [
         {"plain, tab\t and\r\nlines", <<"plain, tab\t and\r\nlines">>},
         {["größe ", <<"名前"/utf8>>, 16#1F600], <<"größe 名前😀"/utf8>>},
         {[$a, 16#202E, $b], <<"a\\u{202e}b">>},
         {[16#200B, 16#2066, 16#FEFF, 16#AD], <<"\\u{200b}\\u{2066}\\u{feff}\\u{ad}">>},
         {[16#E0041, 0, 27, 16#9B, 16#2028, 16#3164],
          <<"\\u{e0041}\\u{0}\\u{1b}\\u{9b}\\u{2028}\\u{3164}">>},
         {[16#FDD0, 16#110BD], <<"\\u{fdd0}\\u{110bd}">>},
         {<<>>, <<>>}
     ]
    ].

%% What is no Unicode is left to those who print it.
no_unicode_test() -> ?assertEqual(<<255, 254>>, sderl_visible:text(<<255, 254>>)).

same_term_test() ->
    Name = [$a, 16#202E, 16#E0041, $b],
    Json = sderl_visible:json(json:encode(unicode:characters_to_binary(Name))),
    ?assertEqual(~B'"a\u202e\udb40\udc41b"', iolist_to_binary(Json)),
    ?assertEqual(unicode:characters_to_binary(Name), json:decode(iolist_to_binary(Json))),
    Atom = list_to_atom(Name),
    Text = unicode:characters_to_list(sderl_visible:erlang(io_lib:format("~tp.", [Atom]))),
    ?assert(lists:all(fun(C) -> C < 127 end, Text)),
    {ok, Tokens, _} = erl_scan:string(Text),
    ?assertEqual({ok, Atom}, erl_parse:parse_term(Tokens)).
