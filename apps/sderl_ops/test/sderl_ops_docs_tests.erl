%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_docs_tests).
-moduledoc "What the documents say of the file of a cluster.".

-include_lib("eunit/include/eunit.hrl").

-import(sderl_ops_places, [root/0]).

examples_test_() ->
    [
        {Name, ?_assertMatch({ok, #{}}, sderl_ops_file:read(File))}
     || File <- filelib:wildcard(filename:join([root(), "docs", "examples", "ops", "*.json"])),
        Name <- [filename:basename(File)]
    ].

%% Each key has a row, or is in the text of one.
every_key_test() ->
    Page = page(),
    ?assertEqual([], [Key || Key <- lists:usort(keys(sderl_ops_schema:file())),
                             nomatch =:= re:run(Page, ["[`.\"]", atom_to_list(Key), "[`.\"]"],
                                                [{capture, none}])]).

keys({object, _, Fields}) ->
    [Key || {Key, _, _} <- Fields] ++ lists:append([keys(Rule) || {_, _, Rule} <- Fields]);
keys({choice, Atoms}) -> Atoms -- [spread, last, error, left_out];
keys(Rule) when is_tuple(Rule) -> lists:append([keys(Part) || Part <- tuple_to_list(Rule)]);
keys([Rule | Rules]) when is_tuple(Rule) -> keys(Rule) ++ keys(Rules);
keys(_) -> [].

every_variable_test() ->
    Page = page(),
    ?assertEqual([], [Name || Name <- sderl_ops_template:variables(),
                              nomatch =:= string:find(Page, [~"{{", Name, ~"}}"])]).

page() ->
    {ok, Page} = file:read_file(filename:join([root(), "docs", "ops-file.md"])),
    Page.
