%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_docs_tests).

%% docs/dashboard.md describes the protocol as the server speaks it, and all pages and keys.

-include_lib("eunit/include/eunit.hrl").

%% Every example is a message that the server sends, or a request that it accepts, and each
%% operation has one.
examples_test() ->
    page(fun(Page) ->
        {match, Blocks} = re:run(Page, "```json\n(.*?)```",
                                 [global, dotall, {capture, all_but_first, binary}]),
        Examples = lists:append([objects(Block) || [Block] <- Blocks]),
        Types = lists:usort([Type || #{~"type" := Type} <- Examples]),
        ?assertEqual(lists:sort([~"hello", ~"topology", ~"frame", ~"events", ~"findings", ~"alarms",
                                 ~"detail", ~"missed", ~"error", ~"reply", ~"session"]), Types),
        ?assertEqual([~"names"], lists:usort([Op || #{~"op" := Op} <- Examples]))
    end).

operations_test() ->
    page(fun(Page) ->
        {match, Requests} = re:run(Page, "`(\\{\"op\":.*?\\})`",
                                   [global, {capture, all_but_first, binary}]),
        Checked = [{Text, sderl_web_protocol:decode(example(Text))} || [Text] <- Requests],
        ?assertEqual([], [Bad || {_, Answer} = Bad <- Checked, element(1, Answer) =/= ok]),
        {refused, null, Why} = sderl_web_protocol:decode(~"{}"),
        [_, Names] = string:split(unicode:characters_to_binary(Why), "one of "),
        ?assertEqual(
            lists:sort([binary_to_atom(Name) || Name <- binary:split(Names, ~", ", [global])]),
            lists:usort([Op || {_, {ok, _, {Op, _}}} <- Checked])
        )
    end).

%% Each page of the navigation has a row in the document's table, with its key.
pages_test() ->
    page(fun(Page) ->
        {ok, Router} = file:read_file(filename:join([root(), "web/src/ui/router.ts"])),
        [Pages, Profiles] = [begin
            {match, [List]} = re:run(Router, ["const ", Name, " = \\[(.*?)\\]"],
                                     [dotall, {capture, all_but_first, binary}]),
            matches(List, ~B/"(\w+)"/)
        end || Name <- ["PAGES", "PROFILES"]],
        [?assertMatch({P, {match, _}}, {P, re:run(Page, ["\n\\| \\w+ \\| `#/", P, "\\b"])})
         || P <- Pages ++ Profiles],
        {ok, Shell} = file:read_file(filename:join([root(), "web/src/app/shell.ts"])),
        {match, [Keys]} = re:run(Shell, ~B/PAGE_KEYS = "(\w+)"/,
                                 [{capture, all_but_first, binary}]),
        <<"123456789", Others/binary>> = Keys,
        ?assertEqual(length(Pages), byte_size(Keys)),
        Told = lists:join(", ", ["`1` to `9`" | [[$`, Key, $`] || <<Key>> <= Others]]),
        ?assertNotEqual(nomatch, string:find(Page, ["| ", Told, " | the pages"]))
    end).

matches(Text, Pattern) ->
    {match, Found} = re:run(Text, Pattern, [global, {capture, all_but_first, binary}]),
    lists:append(Found).

%% Puts values in place of the example's placeholders.
example(Text) ->
    lists:foldl(
        fun({Word, Value}, Acc) ->
            re:replace(Acc, ["(?<=:)", Word, "(?=[,}])"], Value, [global, {return, binary}])
        end,
        binary:replace(Text, ~"[..]", ~"[\"node_up\"]"),
        [{"(N|G|TEXT|NAME)", "\"x\""}, {"(MS|ID)", "1"}, {"OF", "{\"kind\":\"total\"}"},
         {"FRONT", "{\"name\":\"x\",\"window\":\"day\",\"charts\":[],\"rev\":0}"}]
    ).

objects(Block) ->
    case string:trim(Block, leading) of
        <<>> -> [];
        Text ->
            {Object, _, Rest} = json:decode(Text, [], #{}),
            [Object | objects(Rest)]
    end.

%% Where the documents are not in the tree there is nothing to compare.
page(Fun) ->
    case file:read_file(filename:join([root(), "docs", "dashboard.md"])) of
        {ok, Page} -> Fun(Page);
        {error, enoent} -> ok
    end.

root() -> filename:join(code:lib_dir(sderl_web), "../../../..").
