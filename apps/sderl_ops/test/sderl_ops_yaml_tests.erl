%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_yaml_tests).
-moduledoc "A parser of YAML reads what was written.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

texts_test_() ->
    [?_assertEqual(Expected, unicode:characters_to_list(sderl_ops_yaml:document(Value)))
     || {Value, Expected} <- [
            {#{~"b" => 1, ~"name" => ~"x", ~"kind" => ~"K", ~"a" => true},
             "kind: K\nname: x\na: true\nb: 1\n"},
            {#{~"a" => #{}, ~"b" => [], ~"c" => ~""}, "a: {}\nb: []\nc: \"\"\n"},
            {#{~"a" => [#{~"x" => 1, ~"z" => [2]}, [3, 4], ~"5"]},
             "a:\n  - x: 1\n    z:\n      - 2\n  - - 3\n    - 4\n  - \"5\"\n"},
            {[~"no", ~"Null", ~"~", ~"0x1", ~"1e3", ~".inf", ~"a: b", ~"a #b", ~"- a", ~"/p/q"],
             "- \"no\"\n- \"Null\"\n- \"~\"\n- \"0x1\"\n- \"1e3\"\n- \".inf\"\n- \"a: b\"\n"
             "- \"a #b\"\n- \"- a\"\n- /p/q\n"},
            {#{~"t" => ~"one\n  two\n\nthree\n"}, "t: |\n  one\n    two\n\n  three\n"},
            {#{~"t" => ~"one\ntwo"}, "t: |-\n  one\n  two\n"},
            {#{~"t" => ~"one\n\n"}, "t: |+\n  one\n\n"},
            {#{~"t" => ~" one\ntwo"}, "t: \" one\\ntwo\"\n"},
            {[<<0, 127>>, ~"\x{85}\x{2028}\x{feff}\x{1f600}ü"],
             "- \"\\x00\\x7F\"\n- \"\\x85\\u2028\\uFEFF\\U0001F600ü\"\n"}
        ]].

%% Real text of any kind, by a parser that thousands use.
parsed_test_() ->
    {timeout, 120, fun() ->
        {ok, Values} = proper_gen:pick(vector(400, value()), 12, {1, 2, 3}),
        sderl_ops_places:in_folder(fun(Folder) ->
            Yaml = filename:join(Folder, "values.yaml"),
            Json = filename:join(Folder, "values.json"),
            ok = file:write_file(Yaml, [["---\n", sderl_ops_yaml:document(Value)]
                                        || Value <- Values]),
            ok = file:write_file(Json, json:encode(Values)),
            Program = filename:join(Folder, "compare.py"),
            ok = file:write_file(Program, program()),
            case sderl_ops_python:run(["--python", Program, Yaml, Json]) of
                skipped -> ok;
                Result -> ?assertEqual({0, ~"400 are the same\n"}, Result)
            end
        end)
    end}.

program() ->
    ~"""
    import json, sys, yaml
    read = list(yaml.safe_load_all(open(sys.argv[1], encoding="utf-8")))
    meant = json.load(open(sys.argv[2], encoding="utf-8"))
    for a, b in zip(read, meant):
        if a != b: sys.exit("%r is not %r" % (a, b))
    print(len(meant) if len(read) == len(meant) else "not", "are the same")

    """.

value() -> ?SIZED(Size, value(Size)).

value(0) -> oneof([integer(), boolean(), text()]);
value(Size) ->
    ?LAZY(frequency([
        {2, value(0)},
        {2, ?LET(Pairs, list({text(), value(Size div 3)}), maps:from_list(Pairs))},
        {1, list(value(Size div 3))}
    ])).

text() ->
    ?LET(Chars, list(frequency([
        {6, oneof("abcxyz019 ._-/:#'\"\\|>&*!%@`{}[],?~=<\n\n\t")},
        {1, oneof([16#0, 16#1B, 16#7F, 16#85, 16#A0, 16#E9, 16#2028, 16#FEFF, 16#FFFD,
                   16#1F600])}
    ])), oneof([unicode:characters_to_binary(Chars),
                oneof([~"", ~"true", ~"No", ~"null", ~"~", ~"1", ~"1.5", ~"0o7", ~"1_000",
                       ~"12:30", ~"2026-11-27", ~"<<", ~"=", ~"---", ~"a\n", ~"\n", ~"a\n\n"])])).
