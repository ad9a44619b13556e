%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_roster_tests).
-moduledoc "Members of a service as an operator writes them.".

-include_lib("eunit/include/eunit.hrl").

-define(TOO_MANY, "8 members are too many: three or five are enough, 7 the most").

parsed_test() ->
    ?assertEqual({ok, #{node => 'ops1@10.0.0.1', address => "10.0.0.1", port => 4381}},
                 sderl_ops_roster:parse("ops1@10.0.0.1")),
    {ok, Member} = sderl_ops_roster:parse("ops1@a.example:99"),
    ?assertMatch(#{address := "a.example", port := 99}, Member),
    ?assertEqual("ops1@a.example:99", lists:flatten(sderl_ops_roster:words(Member))),
    {ok, [#{port := 1}, #{port := 2}, #{port := 3}]} =
        sderl_ops_roster:parse_list("c@h.x:3, a@h.x:1,b@h.x:2").

refused_test_() ->
    Nine = lists:join(",", ["m" ++ integer_to_list(N) ++ "@h.x:" ++ integer_to_list(N)
                            || N <- lists:seq(1, 8)]),
    [?_assertMatch({match, _}, re:run(why(sderl_ops_roster:parse_list(Text)), Says))
     || {Text, Says} <- [
            {"", "is not a member"},
            {"ops1", "is not a member"},
            {"ops1@host", "the address has a dot"},
            {"Ops1@h.x", "small letter"},
            {"ops1@h.x:0", "a port is 1 to 65535"},
            {"ops1@h.x:65536", "a port is 1 to 65535"},
            {"a@h.x:1,a@h.x:2", "a member is there twice"},
            {"a@h.x:1,b@h.x:1", "on one machine each needs a port"},
            {lists:flatten(Nine), "^8 members are too many"}
        ]].

checked_test() ->
    {ok, [A, B, C]} = sderl_ops_roster:parse_list("a@h.x:1,b@h.x:2,c@i.x:3"),
    ok = sderl_ops_roster:check('a@h.x', [A]),
    ok = sderl_ops_roster:check('a@h.x', [A, B, C]),
    ?assertMatch("two members" ++ _, why(sderl_ops_roster:check('a@h.x', [A, B]))),
    ?assertMatch("a@i.x is none" ++ _, why(sderl_ops_roster:check('a@i.x', [A, B, C]))),
    ?assertEqual([true, false], [sderl_ops_roster:is_one_machine(Of) || Of <- [[A, B], [A, C]]]).

%% What is refused leaves no atom.
added_test() ->
    {ok, Three} = sderl_ops_roster:parse_list("a@h.x:1,b@h.x:2,c@h.x:3"),
    {ok, Seven} = sderl_ops_roster:parse_list("a@h.x:1,b@h.x:2,c@h.x:3,d@h.x,e@h.x:5,f@h.x:6,"
                                              "g@h.x:7"),
    ?assertMatch({ok, #{port := 9}}, sderl_ops_roster:added("a@h.x:9", Three)),
    ?assertMatch({ok, #{node := 'd@h.x'}}, sderl_ops_roster:added("d@h.x:4", Three)),
    ?assertMatch({ok, #{node := 'd@h.x'}}, sderl_ops_roster:added("d@h.x:4", Seven)),
    ?assertEqual({ok, 'c@h.x'}, sderl_ops_roster:named("c@h.x", Three)),
    ?assertEqual({ok, 'c@h.x'}, sderl_ops_roster:named("c@h.x:3", Three)),
    Before = erlang:system_info(atom_count),
    ?assertEqual(?TOO_MANY, why(sderl_ops_roster:added("never-seen@h.x:8", Seven))),
    ?assertMatch("b@h.x:2 listens at h.x, port 2" ++ _,
                 why(sderl_ops_roster:added("never-seen@h.x:2", Three))),
    ?assertMatch("there is no member never-seen@h.x" ++ _,
                 why(sderl_ops_roster:named("never-seen@h.x", Three))),
    ?assertEqual(Before, erlang:system_info(atom_count)).

why({error, Sentence}) -> unicode:characters_to_list(Sentence).
