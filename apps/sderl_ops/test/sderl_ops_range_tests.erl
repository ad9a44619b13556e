%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_range_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

expand_test_() ->
    [?_assertEqual({Text, {ok, Names}}, {Text, sderl_ops_range:expand(Text)})
     || {Text, Names} <- [
            {~"web1", [~"web1"]},
            {~"web1..web3", [~"web1", ~"web2", ~"web3"]},
            {~"web08..web10", [~"web08", ~"web09", ~"web10"]},
            {~"web9..web11", [~"web9", ~"web10", ~"web11"]},
            {~"web1@10.0.0.5..web3@10.0.0.7",
             [~"web1@10.0.0.5", ~"web2@10.0.0.6", ~"web3@10.0.0.7"]},
            {~"n2@h1..n4@h1", [~"n2@h1", ~"n3@h1", ~"n4@h1"]}]].

collapse_test_() ->
    [?_assertEqual(Ranges, sderl_ops_range:collapse(Names))
     || {Names, Ranges} <- [
            {[], []},
            {[~"web1", ~"web2"], [~"web1", ~"web2"]},
            {[~"web1", ~"web2", ~"web3"], [~"web1..web3"]},
            {[~"web1", ~"web3", ~"web4", ~"web5", ~"db1"], [~"web1", ~"web3..web5", ~"db1"]},
            {[~"a1@h1", ~"a2@h2", ~"a3@h3", ~"a4@h3", ~"a5@h3"],
             [~"a1@h1..a3@h3", ~"a4@h3", ~"a5@h3"]}]].

%% Whatever the names are, they come back in their order.
same_names_test_() ->
    {timeout, 60,
     fun() -> ?assert(proper:quickcheck(same_names(), [{numtests, 300}, {to_file, user}])) end}.

same_names() ->
    ?FORALL(Names, list(name()),
            begin
                Ranges = sderl_ops_range:collapse(Names),
                Names =:= lists:append([element(2, {ok, _} = sderl_ops_range:expand(Range))
                                        || Range <- Ranges])
            end).

name() ->
    ?LET({Text, Number, Padding, Host}, {oneof(["web", "a-", ""]), integer(0, 25), integer(1, 3),
                                         oneof(["", "@h", "@h1.x"])},
         iolist_to_binary([Text, $w, string:pad(integer_to_list(Number), Padding, leading, $0),
                           Host, [integer_to_list(Number) || Host =:= "@h"]])).
