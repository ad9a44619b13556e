%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_enrol_tests).
-moduledoc "How a member gets its part of the store.".

-include_lib("eunit/include/eunit.hrl").

-define(ALL, [a, b, c]).

blank() -> #{stage => blank, members => ?ALL, roster => #{}}.
has(Roster) -> (blank())#{stage := member, roster := Roster}.
in(State) -> {#{node => any, address => "h.x", port => 1}, State}.

%% One member makes the store, when all named members are there and none has a store.
first_test() ->
    All = #{Node => blank() || Node <- ?ALL},
    ?assertEqual([found, waits, waits],
                 [decision(sderl_ops_enrol:decide(Node, false, ?ALL, maps:remove(Node, All)))
                  || Node <- ?ALL]),
    ?assertEqual({waits, "the first start needs all members, and these do not answer: c"},
                 told(sderl_ops_enrol:decide(a, false, ?ALL, #{b => blank(), c => silent}))),
    ?assertMatch({waits, "there is no link to c, though" ++ _},
                 told(sderl_ops_enrol:decide(a, false, ?ALL, #{b => blank(), c => refused}))),
    ?assertMatch({waits, "b names other members" ++ _},
                 told(sderl_ops_enrol:decide(a, false, ?ALL,
                                             #{b => (blank())#{members := [a, b]},
                                               c => blank()}))),
    ?assertEqual(found, sderl_ops_enrol:decide(a, false, [a], #{})).

%% The member with the data of a service with one member makes it, whatever its name.
brings_test() ->
    Brings = #{Node => (blank())#{brings => Node =:= b} || Node <- ?ALL},
    Decide = fun(Node, All) ->
        #{Node := Own} = All,
        sderl_ops_enrol:decide(Node, maps:get(brings, Own), ?ALL, maps:remove(Node, All))
    end,
    ?assertEqual([waits, found, waits], [decision(Decide(Node, Brings)) || Node <- ?ALL]),
    ?assertEqual({waits, "b makes the store"}, told(Decide(a, Brings))),
    Two = Brings#{c := (blank())#{brings => true}},
    [?assertMatch({waits, "each of b, c has the store" ++ _}, told(Decide(Node, Two)))
     || Node <- ?ALL],
    %% A store that is there wins, also before it was read.
    ?assertEqual({waits, "b has the store, and is about to tell of it"},
                 told(Decide(a, Brings#{b := (has(#{}))#{brings => false}}))),
    Roster = #{a => in(joined), b => in(expected), c => in(expected)},
    ?assertEqual({join, a}, Decide(b, Brings#{a := (has(Roster))#{brings => false}})).

join_test() ->
    Roster = #{a => in(joined), b => in(expected)},
    ?assertEqual({join, a}, sderl_ops_enrol:decide(b, false, ?ALL,
                                                   #{a => has(Roster), c => silent})),
    %% It has joined before, so its part of the store is lost.
    ?assertMatch({add, "its store is lost"},
                 told(sderl_ops_enrol:decide(b, false, ?ALL,
                                             #{a => has(Roster#{b := in(joined)}),
                                               c => blank()}))),
    ?assertMatch({add, "the members that are there do not expect it"},
                 told(sderl_ops_enrol:decide(c, false, ?ALL, #{a => has(Roster), b => blank()}))).

decision(found) -> found;
decision({What, _}) -> What.

told({What, Why}) -> {What, unicode:characters_to_list(Why)}.
