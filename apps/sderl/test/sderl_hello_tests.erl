%% SPDX-License-Identifier: Apache-2.0
-module(sderl_hello_tests).
-moduledoc """
Identities, greetings and what nodes tell each other, in small models: each with the rule, and what
happens without it.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% ---------------------------------------------------------------- identities (rules 1 and 2)

uids_test() ->
    ?assertNotEqual(sderl_hello:founded(g, 1), sderl_hello:founded(g, 2)),
    Of = fun(Name) -> #{name => Name, members => []} end,
    ?assertNotEqual(sderl_hello:launched(Of(g), <<"a">>), sderl_hello:launched(Of(g), <<"b">>)),
    ?assertNotEqual(sderl_hello:launched(Of(g), <<>>), sderl_hello:launched(Of(h), <<>>)).

%% Half of the nodes have the new file: one group all the same.
rule_2_a_file_half_rolled_out_test() ->
    Files = [[a, b], [a, b], [a, b, c], [c, b, a]],
    Launch = fun(Hello) -> [Hello:launched(#{name => g, members => Ms}, <<>>) || Ms <- Files] end,
    ?assertMatch([_], lists:usort(Launch(sderl_hello))),
    ?assertMatch([_, _], lists:usort(Launch(sderl_plant:module(sderl_hello, [rule_2])))).

greeted_test_() ->
    M = sderl_membership:new([a, b]),
    Out = sderl_membership:remove([a], 1, M),
    In = sderl_membership:add([a], Out),
    [?_assertEqual(Expected, sderl_hello:greeted(Own, Theirs, Gone, Mem, a))
     || {Own, Theirs, Gone, Mem, Expected} <- [
         {<<1>>, <<1>>, undefined, M, pass}, {<<1>>, <<1>>, {deleted, M}, M, pass},
         {none, <<1>>, undefined, M, join},
         {none, <<1>>, undefined, Out, nothing}, {<<2>>, <<1>>, undefined, M, apart},
         {none, <<1>>, {deleted, M}, M, {tell, deleted, M}},
         {<<2>>, <<1>>, {removed, Out}, M, {tell, removed, Out}},
         {none, <<1>>, {removed, Out}, In, again},
         {none, <<1>>, {deleted, M}, In, {tell, deleted, M}}
     ]].

%% Two nodes whose files make different groups of one name greet each other before either is joined:
%% neither gives way.
rule_2_what_does_not_run_is_nobody_to_give_way_to_test_() ->
    M = sderl_membership:new([a, b]),
    [?_assertEqual(Expected, sderl_hello:yields(Own, <<1>>, Mem, Info, a))
     || {Own, Mem, Info, Expected} <- [
         {<<1>>, M, #{lineage => {17, b}}, true}, {<<1>>, M, #{lineage => {-17, b}}, false},
         {<<2>>, M, #{lineage => {17, b}}, false},
         {<<1>>, sderl_membership:new([b]), #{lineage => {17, b}}, false}, {<<1>>, M, #{}, false}
     ]].

%% --------------------------------------------------------------- what is known of others (rule 24)

%% Random groups over nodes 1 to 6. Whichever nodes send their lists how often: a node knows the
%% groups of nodes with which it shares one, and no others.
rule_24_what_is_known_is_one_hop_away_test_() ->
    sderl_prop:eunit("what is known of other groups is one hop away", 300,
                     fun() -> prop_one_hop(sderl_hello) end).

without_rule_24_test_() ->
    sderl_prop:refuted("what is known of other groups, without rule 24", 500,
                       fun() -> prop_one_hop(sderl_plant:module(sderl_hello, [rule_24])) end).

prop_one_hop(Hello) ->
    ?FORALL({Lists, Tellers}, {list(non_empty(list(integer(1, 6)))), list(integer(1, 6))},
            begin
                Groups = [{K, lists:usort(Ns)} || {K, Ns} <- lists:enumerate(Lists)],
                Own = fun(N) -> [G || {_, Ns} = G <- Groups, lists:member(N, Ns)] end,
                Mates = fun(N) -> lists:usort(lists:append([Ns || {_, Ns} <- Own(N)])) -- [N] end,
                %% Everyone tells once, when its links come up; some tell again later.
                Told = lists:foldl(fun(N, Known) ->
                    Word = Hello:told(Own(N), maps:get(N, Known, [])),
                    lists:foldl(fun(M, K) ->
                        K#{M => lists:usort(maps:get(M, K, []) ++ (Word -- Own(M)))}
                    end, Known, Mates(N))
                end, #{}, lists:seq(1, 6) ++ Tellers),
                Expected = #{N => lists:usort(lists:append([Own(M) || M <- Mates(N)])) -- Own(N)
                             || N <- lists:seq(1, 6), Mates(N) =/= []},
                ?WHENFAIL(io:format("~p~n~p~n~p~n", [Groups, Told, Expected]), Told =:= Expected)
            end).

%% ----------------------------------------------------- reads of those who are no members (rule 23)

%% A reader and the members that it knows, some linked to it, some dead: it asks at most three,
%% opens no link if a linked member lives, and gets an answer if one of the first three lives.
rule_23_a_reader_asks_the_linked_first_and_three_at_most_test_() ->
    sderl_prop:eunit("whom a reader asks", 500, fun() -> prop_asks(sderl_read) end).

without_rule_23_test_() ->
    sderl_prop:refuted("whom a reader asks, without rule 23", 500,
                       fun() -> prop_asks(sderl_plant:module(sderl_read, [rule_23])) end).

prop_asks(Read) ->
    ?FORALL({Known, Linked, Dead},
            {list(integer(1, 12)), list(integer(1, 12)), list(integer(1, 12))},
            begin
                Members = lists:usort(Known),
                Up = lists:usort(Linked) -- Dead,
                {Asked, Answer} = walk(Read:whom(Members, Linked), Dead, []),
                Near = [M || M <- Members, lists:member(M, Linked)],
                First = lists:sublist(Near ++ (Members -- Near), 3),
                length(Asked) =< 3
                    andalso (First -- Dead =:= []) =:= (Answer =:= none)
                    andalso ([M || M <- First, lists:member(M, Up)] =:= []
                             orelse Asked -- Linked =:= [])
            end).

walk([], _, Asked) -> {Asked, none};
walk([N | Ns], Dead, Asked) ->
    case lists:member(N, Dead) of
        true -> walk(Ns, Dead, [N | Asked]);
        false -> {[N | Asked], N}
    end.

%% A free node has its names in one namespace only, whatever group a reader names.
rule_23_a_free_node_answers_from_its_own_names_test_() ->
    Ask = sderl_plant:module(sderl_ask, [rule_23]),
    [?_assertEqual(Expected, Module:namespace(Free, Group))
     || {Module, Free, Group, Expected} <- [
         {sderl_ask, true, g, {names, undefined}}, {sderl_ask, true, undefined, {names, undefined}},
         {sderl_ask, false, g, {names, g}},
         {sderl_ask, false, undefined, none}, {Ask, true, g, {names, g}}
     ]].

%% A message of a node that has left is not accepted, nor that of one that was removed together with
%% this node.
only_a_fellow_members_word_test_() ->
    [?_assertEqual(Expected, sderl_hello:heeded(a, b, List))
     || {Expected, List} <- [
         {true, [{g, [a, b]}, {f, [b, c]}]}, {false, [{g, [a]}, {f, [b, c]}]},
         {false, [{f, [b, c]}]}, {false, []}
     ]].
