%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_visible_tests).

%% The library, the monitoring and its pages each have a table of the characters that nobody sees,
%% as none of the three needs another. It is one table. The test is here, above all of them.

-include_lib("eunit/include/eunit.hrl").

%% Of each code point.
tables_agree_test_() ->
    {timeout, 120, fun() ->
        Pages = pages(),
        ?assertEqual([], [
            Char
         || Char <- lists:seq(0, 16#10ffff),
            Hidden <- [sderl_visible:is_hidden(Char)],
            sderl_mon_visible:is_hidden(Char) =/= Hidden
            orelse is_map_key(Char, Pages) =/= Hidden
        ])
    end}.

pages() ->
    File = filename:join([code:lib_dir(sderl), "src", "..", "..", "..", "web", "src", "lib",
                          "visible.ts"]),
    {ok, Source} = file:read_file(File),
    {match, Ranges} = re:run(Source, ~B"\[0x([0-9a-f]+), 0x([0-9a-f]+)\]",
                             [global, {capture, all_but_first, list}]),
    #{Char => true
      || Range <- Ranges,
         [From, To] <- [[list_to_integer(Bound, 16) || Bound <- Range]],
         Char <- lists:seq(From, To)}.

%% All three escape a hidden character alike, and leave the text around it.
shown_alike_test() ->
    Chars = [16#202e, 16#200b, 16#ad, 16#7f, 0, 16#fe0f, 16#e0041, 16#10ffff, 16#13430],
    [
        begin
            Text = unicode:characters_to_binary(["größe ", Char, "名前"]),
            Shown = iolist_to_binary(sderl_visible:text(Text)),
            ?assertEqual(Shown, sderl_mon_visible:text(Text)),
            Json = iolist_to_binary(sderl_visible:json(json:encode(Text))),
            ?assertEqual(Text, json:decode(Json)),
            ?assertEqual(Json, sderl_mon_visible:json(json:encode(Text))),
            ?assertEqual(nomatch, string:find(Json, [Char])),
            ?assertNotEqual(nomatch, string:find(Shown, io_lib:format("\\u{~.16b}", [Char])))
        end
     || Char <- Chars
    ].
