%% SPDX-License-Identifier: Apache-2.0
-module(sderl_table_tests).
-include_lib("eunit/include/eunit.hrl").

-define(T, sderl_table).

number_test_() ->
    [
        ?_assertEqual(Text, string(?T:number(N)))
     || {Text, N} <- [
            {"0", 0},
            {"-", undefined},
            {"-", null},
            {"12", 12},
            {"123", 123},
            {"1,234", 1234},
            {"1,234,567", 1234567},
            {"-1,234", -1234},
            {"0.12", 0.1234},
            {"0.10", 0.0996},
            {"0.052", 0.0521},
            {"0.0034", 0.003412},
            {"0.000000001", 0.0000000012},
            {"-0.0034", -0.003412},
            {"0.00", 0.0},
            {"9.99", 9.99},
            {"10.0", 9.996},
            {"12.3", 12.34},
            {"100", 99.97},
            {"53,012", 53012.4}
        ]
    ].

median_test_() ->
    [
        ?_assertEqual(undefined, ?T:median([])),
        ?_assertEqual(2, ?T:median([3, 1, 2])),
        ?_assertEqual(2.5, ?T:median([4, 1, 2, 3]))
    ].

spread_test_() ->
    [
        ?_assertEqual("-", string(?T:spread([]))),
        ?_assertEqual("-", string(?T:spread([undefined]))),
        ?_assertEqual("7", string(?T:spread([7]))),
        ?_assertEqual("2 (1..3)", string(?T:spread([3, undefined, 1, 2])))
    ].

text_test() ->
    ?assertEqual(
        "      a    bcd\n"
        "--  ---  -----\n"
        "x   123      4\n"
        "yy    5  67890\n",
        string(?T:text(["", "a", "bcd"], [["x", "123", "4"], ["yy", "5", ["67", <<"890">>]]]))
    ).

markdown_test() ->
    ?assertEqual(
        "| n | v |\n| --- | ---: |\n| x | 1 |\n",
        string(?T:markdown(["n", "v"], [["x", "1"]]))
    ).

string(Chardata) -> unicode:characters_to_list(Chardata).
