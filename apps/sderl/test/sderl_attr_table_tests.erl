%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_table_tests).
-include_lib("eunit/include/eunit.hrl").

-export([own/0, mate/0, answers_of_mates/0, answers_of_others/0, freshness/0, patterns_are_names/0,
         silence/0]).

-import(sderl_attr_table,
        [cached/3, fresh/4, fresh/5, told/3, told_again/4, heard/2, keep/6, names/1]).

-define(MATE, 'm@h').
-define(OTHER, 'o@h').

table_test_() ->
    {foreach,
     fun() -> ok = sderl_attr_table:new() end,
     fun(_) -> [true = ets:delete(T) || T <- [sderl_attrs, sderl_attr_state]] end,
     [{atom_to_list(F), fun() -> ?MODULE:F() end}
      || F <- [own, mate, answers_of_mates, answers_of_others, freshness, patterns_are_names,
               silence]]}.

own() ->
    sderl_attr_table:define(a, {dynamic, {m, f}}, call, none),
    sderl_attr_table:put_own(a, 1, ok, 90, 50, 7),
    sderl_attr_table:put_own(b, undefined, timeout, now, static, 7),
    ?assertEqual([{a, {dynamic, {m, f}}, call, none}], sderl_attr_table:own()),
    ?assertEqual({ok, 1, 10}, cached(node(), a, 100)),
    ?assertEqual({ok, 1, 0}, cached(node(), a, 80)),
    ?assertEqual({undefined, timeout, 0}, cached(node(), b, 100)),
    ?assertEqual({undefined, not_set, 0}, cached(node(), c, 100)),
    sderl_attr_table:undefine(a),
    ?assertEqual({undefined, not_set, 0}, cached(node(), a, 100)),
    ?assertEqual(undefined, sderl_attr_table:own(a)).

mate() ->
    ?assertEqual(unknown, cached(?MATE, a, 100)),
    ok = told(?MATE, [{a, 1, ok, 5, 50, 1}, {s, x, ok, 0, static, 1}], 100),
    ok = heard(?MATE, 100),
    ?assertEqual([{ok, 1, 15}, {ok, x, 10}, {undefined, not_set, 10}],
                 [cached(?MATE, N, 110) || N <- [a, s, no_such]]),
    ok = told_again(?MATE, [s], [{a, 2}], 200),
    ?assertEqual([{ok, 1, 12}, {ok, x, 10}], [cached(?MATE, N, 210) || N <- [a, s]]),
    ok = sderl_attr_table:drop(?MATE, [a]),
    ?assertEqual([s], names(?MATE)),
    ok = sderl_attr_table:forget(?MATE),
    ?assertEqual({[], unknown, []},
                 {names(?MATE), cached(?MATE, s, 210), sderl_attr_table:peers()}).

%% Of a mate an answer that was overtaken does nothing, nor one about what it has taken away.
answers_of_mates() ->
    ok = told(?MATE, [{a, new, ok, 0, static, 5}], 100),
    ok = heard(?MATE, 100),
    ok = keep(?MATE, a, old, ok, {150, static}, 4),
    ?assertEqual({ok, new, 0}, cached(?MATE, a, 100)),
    ok = keep(?MATE, a, new, ok, {120, static}, 5),
    ?assertEqual({ok, new, 80}, cached(?MATE, a, 200)),
    ok = keep(?MATE, a, newer, ok, {90, static}, 6),
    ?assertEqual({ok, newer, 110}, cached(?MATE, a, 200)),
    ok = keep(?MATE, gone, 1, ok, {150, static}, 6),
    ?assertMatch({undefined, not_set, _}, cached(?MATE, gone, 200)).

%% Of another node the younger value counts, whatever life of it the version is of; in the end all
%% goes.
answers_of_others() ->
    ok = keep(?OTHER, a, 1, ok, {100, static}, 9),
    ok = keep(?OTHER, a, 2, ok, {90, static}, 10),
    ?assertEqual({ok, 1, 0}, cached(?OTHER, a, 100)),
    ok = keep(?OTHER, a, 3, ok, {110, static}, 1),
    ok = keep(?OTHER, b, undefined, not_set, {200, static}, 0),
    ?assertEqual([{ok, 3, 90}, {undefined, not_set, 0}, unknown],
                 [cached(?OTHER, N, 200) || N <- [a, b, c]]),
    ok = told(?MATE, [{a, 1, ok, 0, static, 1}], 1),
    ok = heard(?MATE, 1),
    ok = sderl_attr_table:forget_older(150),
    ?assertEqual([b], names(?OTHER)),
    ok = sderl_attr_table:forget_older(250),
    ?assertEqual([], names(?OTHER)),
    ?assertEqual([], ets:match(sderl_attr_state, {{other, '$1'}})),
    %% Not what a mate told: it will tell again.
    ?assertEqual([a], names(?MATE)).

freshness() ->
    ok = told(?MATE, [{short, 1, ok, 0, 10, 1}, {long, 1, ok, 0, 1000, 1}, {s, 1, ok, 0, static, 1},
                      {new, undefined, pending, 0, 10, 1}], 0),
    ok = heard(?MATE, 0),
    How = fun(Name, Now, MaxAge) -> element(1, fresh(?MATE, Name, Now, MaxAge)) end,
    ?assertEqual([fresh, stale], [How(short, Now, 100) || Now <- [100, 101]]),
    %% What its owner keeps for longer is the same if it is asked for.
    ?assertEqual([fresh, stale], [How(long, Now, 100) || Now <- [1000, 1001]]),
    ?assertMatch({fresh, _}, fresh(?MATE, long, 1100, 100, 100)),
    ?assertEqual([fresh, stale], [How(s, Now, 100) || Now <- [100, 101]]),
    ?assertEqual([fresh, stale], [How(no_such, Now, 100) || Now <- [100, 101]]),
    ?assertEqual(stale, How(new, 0, 100)),
    ?assertEqual(unknown, fresh(?OTHER, s, 0, 100)).

%% Names that look like patterns are names.
patterns_are_names() ->
    Names = ['_', '$1', {'_', '$2'}, 1, 1.0],
    ok = told(?MATE, [{N, {v, N}, ok, 0, static, 1} || N <- Names], 0),
    ?assertEqual([{ok, {v, N}, 0} || N <- Names], [cached(?MATE, N, 0) || N <- Names]),
    ok = sderl_attr_table:drop(?MATE, ['_']),
    %% (1 and 1.0 are apart, and sorting does not part them.)
    ?assertEqual([], tl(Names) -- names(?MATE)),
    ?assertEqual(length(tl(Names)), length(names(?MATE))).

silence() ->
    ok = sderl_attr_table:silent(?MATE, 100),
    ok = sderl_attr_table:silent({gateway, ?OTHER}, 100),
    ?assertEqual([true, false], [sderl_attr_table:is_silent(?MATE, Now) || Now <- [99, 100]]),
    ok = heard(?MATE, 50),
    ?assertNot(sderl_attr_table:is_silent(?MATE, 60)),
    ?assertNot(sderl_attr_table:is_silent(?OTHER, 60)),
    ?assert(sderl_attr_table:is_silent({gateway, ?OTHER}, 60)),
    ok = sderl_attr_table:forget_older(101),
    ?assertEqual([], ets:match(sderl_attr_state, {{silent, '$1'}, '_'})).
