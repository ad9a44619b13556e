%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_wire_tests).
-moduledoc "The protocol between the command and the service.".

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

requests_test_() ->
    [?_assertEqual({ok, Request}, sderl_ops_wire:decode_request(line(Request)))
     || Request <- [
            #{do => status, who => ~"me"},
            #{do => plan, file => ~"/f", force => true, who => ~"me"},
            #{do => record, limit => 7, before => 9, since => 0, until => 5, by => ~"ann",
              kind => step, who => ~"me"},
            #{do => plan_text, text => ~"{\n}", force => false, who => ~"me"},
            #{do => apply, file => ~"/f", force => false, wait => false, who => ~"me"},
            #{do => apply, force => true, wait => true, who => ~"me"},
            #{do => rollback, revision => 3, force => false, wait => true, who => ~"me"},
            #{do => scale, family => ~"web", count => 3, force => false, wait => true,
              who => ~"me"},
            #{do => drain, instance => ~"web1", force => true, wait => true, who => ~"me"},
            #{do => adopt, instance => ~"web1", wait => false, who => ~"me"},
            #{do => release, instance => ~"web1", who => ~"me"},
            #{do => release, who => ~"me"},
            #{do => destroy, wait => true, who => ~"me"}
        ]].

line(Request) -> string:trim(iolist_to_binary(sderl_ops_wire:encode_request(Request))).

defaults_test() ->
    ?assertEqual({ok, #{do => apply, file => ~"/f", force => false, wait => true,
                        who => ~"somebody"}},
                 sderl_ops_wire:decode_request(~B|{"do": "apply", "file": "/f"}|)).

refused_test_() ->
    [?_assertEqual("the request is wrong: " ++ Sentence, refused(Line))
     || {Line, Sentence} <- [
            {~"x", "line 1: this is not JSON ('x' is not expected here)"},
            {~"{}", "do is missing: it is a type of request: \"hello\" or \"plan\" or "
                    "\"plan_text\" or \"apply\" or \"status\" or \"remaining\" or "
                    "\"history\" or \"record\" or \"rollback\" or "
                    "\"scale\" or \"drain\" or "
                    "\"undrain\" or \"adopt\" or \"release\" or \"members\" or \"add_member\" or "
                    "\"remove_member\" or \"pause\" or \"resume\" or \"destroy\" or "
                    "\"stop\""},
            {~B|{"do": "plan"}|, "file is missing: it is the absolute path of a file: text of 1 "
                                     "to 4096 bytes"},
            {~B|{"do": "stop", "now": true}|,
             "now is not a key of this request; its keys are who"},
            {~B|{"do": "stop", "do": "stop"}|, "do is there twice: keep one of the two"},
            {~B|{"do": "record", "limit": 501}|,
             "limit: 501 is not a number of entries, at most 500"},
            {~B|{"do": "record", "since": "now"}|,
             "since: \"now\" is not a time in milliseconds of system time, 0 or more"},
            {~B|{"do": "rollback", "revision": 0}|,
             "revision: 0 is not a revision, 1 or more"}
        ]].

refused(Line) ->
    {error, Text} = sderl_ops_wire:decode_request(Line),
    unicode:characters_to_list(Text).

too_long_test() ->
    ?assertEqual({error, "the request has more than 128 KiB"},
                 sderl_ops_wire:decode_request(binary:copy(~" ", 131_073))).

answers_test_() ->
    [?_assertEqual({ok, Read},
                   sderl_ops_wire:decode_answer(iolist_to_binary(
                       sderl_ops_wire:encode_answer(Answer))))
     || {Answer, Read} <- [
            {{progress, 0, 3, ["starts ", ~"web1"]}, {progress, 0, 3, ~"starts web1"}},
            {{note, ["hä", $!]}, {note, ~"hä!"}},
            {{error, "no", [["a", ~"b"]]}, {error, ~"no", [~"ab"]}},
            {{busy, "wait"}, {error, ~"wait", []}},
            {{unavailable, "not now"}, {error, ~"not now", []}},
            {{unknown, "no such"}, {error, ~"no such", []}},
            {{unsure, "perhaps"}, {error, ~"perhaps", []}},
            {{done, #{state => steady, why => undefined, list => [~"a", #{n => 1}]}},
             {done, #{~"state" => ~"steady", ~"why" => null,
                      ~"list" => [~"a", #{~"n" => 1}]}}}
        ]].

foreign_answers_test_() ->
    [?_assertMatch({error, _}, sderl_ops_wire:decode_answer(Line))
     || Line <- [~"", ~"HTTP/1.1 400", ~"{}", ~B|{"event": "x"}|,
                 ~B|{"event": "progress", "done": 1, "total": 0, "text": ""}|]].

%% However it is cut into pieces, the lines are the same.
lines_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_lines(), [quiet, {numtests, 200}]))}.

prop_lines() ->
    ?FORALL({Lines, Sizes}, {list(line_of()), list(range(1, 9))},
            Lines =:= receive_lines(<< <<Line/binary, $\n>> || Line <- Lines >>, Sizes, <<>>)).

line_of() -> ?LET(Line, binary(), binary:replace(Line, ~"\n", ~"x", [global])).

receive_lines(<<>>, _, <<>>) -> [];
receive_lines(Bytes, Sizes0, Left) ->
    [Size | Sizes] = case Sizes0 of [] -> [byte_size(Bytes)]; _ -> Sizes0 end,
    Taken = min(Size, byte_size(Bytes)),
    <<Piece:Taken/binary, Rest/binary>> = Bytes,
    {ok, Lines, More} = sderl_ops_wire:lines(Piece, Left, 1000),
    Lines ++ receive_lines(Rest, Sizes, More).

line_too_long_test() ->
    ?assertEqual(too_long, sderl_ops_wire:lines(~"cd", ~"ab", 3)).

any_request_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_any_request(), [quiet, {numtests, 200}]))}.

prop_any_request() ->
    ?FORALL(Line, oneof([binary(), ?LET(Map, map(binary(), oneof([integer(), binary()])),
                                        iolist_to_binary(json_of(Map)))]),
            case sderl_ops_wire:decode_request(Line) of
                {ok, #{do := _}} -> true;
                {error, Text} -> is_binary(unicode:characters_to_binary(Text))
            end).

json_of(Map) ->
    json:encode(#{latin1(Key) => latin1(Value) || Key := Value <- Map#{~"do" => ~"scale"}}).

latin1(Text) when is_binary(Text) -> unicode:characters_to_binary(Text, latin1);
latin1(Number) -> Number.

place_test() ->
    ?assertEqual({ok, "/a/socket"}, sderl_ops_place:socket("/a")),
    {error, Text} = sderl_ops_place:socket("/" ++ lists:duplicate(120, $a)),
    ?assertNotEqual(nomatch, string:find(Text, "a folder with a shorter path")),
    {error, NoFolder} = sderl_ops_place:make("/dev/null"),
    ?assertEqual("/dev/null is not a folder: name another one with --dir",
                 unicode:characters_to_list(NoFolder)).
