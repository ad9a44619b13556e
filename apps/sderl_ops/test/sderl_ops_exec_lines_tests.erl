%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_exec_lines_tests).
-moduledoc "Valid and invalid answers of a provider that is a program.".

-include_lib("eunit/include/eunit.hrl").

request_test() ->
    Line = iolist_to_binary(sderl_ops_exec_lines:request(~"7", ~"shop", #{
        do => create, host => ~"eu-1", place => #{domain => ~"eu", labels => #{~"disk" => ~"ssd"}}
    })),
    ?assertEqual(#{~"id" => ~"7", ~"do" => ~"create", ~"cluster" => ~"shop",
                   ~"hosts" => [~"eu-1"], ~"domain" => ~"eu",
                   ~"labels" => #{~"disk" => ~"ssd"}}, json:decode(string:trim(Line))),
    ?assertMatch([_, <<>>], binary:split(Line, ~"\n", [global])).

good_test() ->
    Host = #{name => ~"eu-1", address => ~"10.0.0.1", user => ~"me",
             host_key => ~"ssh-ed25519 AAAA"},
    ?assertEqual({ok, [Host#{state => running, port => 22}]},
                 answer(create, [line(#{progress => ~"waits"}), ~"a word of a tool\n",
                                 line(#{hosts => [Host]})])),
    ?assertEqual({ok, [#{name => ~"eu-1", state => pending, port => 22}]},
                 answer(create, line(#{hosts => [#{name => ~"eu-1", state => pending}]}))),
    ?assertEqual({ok, []}, answer(delete, line(#{hosts => []}))),
    ?assertMatch({ok, [_, _]},
                 answer(list, line(#{hosts => [Host, Host#{name := ~"other"}]}))).

bad_test_() ->
    Host = #{name => ~"eu-1", address => ~"10.0.0.1"},
    [{Part, ?_assertMatch({_, {_, _}}, {Answer, contains(Part, Answer)})}
     || {Part, Answer} <- [
            {"ended without an answer", answer(list, ~"hello\n")},
            {"its last line: hello", answer(list, ~"hello\n")},
            {"no JSON", answer(list, ~"{\"id\": \"7\", hosts\n")},
            {"another request: \"8\"", answer(list, ~"{\"id\":\"8\",\"hosts\":[]}\n")},
            {"no \"id\"", answer(list, ~"{\"hosts\":[]}\n")},
            {"more than once", answer(list, [line(#{hosts => []}), line(#{hosts => []})])},
            {"neither a list", answer(list, line(#{hosts => 7}))},
            {"it says: no money", answer(create, line(#{error => ~"no money"}))},
            {"10000 hosts",
             answer(list, line(#{hosts => lists:duplicate(10_000, #{name => ~"h"})}))},
            {"450000 bytes", answer(list, binary:copy(~"x", 600_000))},
            {"hosts.1.address", answer(list, line(#{hosts => [Host#{address := ~"-oProxy=x"}]}))},
            {"hosts.1.adress", answer(list, line(#{hosts => [Host#{adress => ~"10.0.0.1"}]}))},
            {"hosts.1.host_key", answer(list, line(#{hosts => [Host#{host_key => ~"a\nb c"}]}))},
            {"running and has no address", answer(list, line(#{hosts => [#{name => ~"eu-1"}]}))},
            {"must have a dot", answer(list, line(#{hosts => [Host#{address := ~"here"}]}))},
            {"twice", answer(list, line(#{hosts => [Host, Host]}))},
            {"asked for eu-1, and answers with other",
             answer(create, line(#{hosts => [Host#{name := ~"other"}]}))},
            {"answers with no host", answer(create, line(#{hosts => []}))},
            {"still there", answer(delete, line(#{hosts => [Host]}))},
            {"status 3", failed(3, ~"out of order\n")},
            {"out of order", failed(3, ~"out of order\n")},
            {"status 1", failed(1, line(#{hosts => []}))},
            {"not UTF-8", answer(list, <<"x\n", 255, 254, "\n">>)}
        ]].

contains(Part, {error, Why}) ->
    binary:match(unicode:characters_to_binary(Why), list_to_binary(Part));
contains(_, _) ->
    nomatch.

line(Answer) -> [json:encode(Answer#{id => ~"7"}), $\n].

answer(Do, Output) -> interpreted(Do, 0, Output).
failed(Status, Output) -> interpreted(list, Status, Output).

interpreted(Do, Status, Output) ->
    Request = case Do of
                  list -> #{do => list};
                  _ -> #{do => Do, host => ~"eu-1", place => #{}}
              end,
    sderl_ops_exec_lines:answer(Request, ~"7", long, {ok, Status, iolist_to_binary(Output)}).
