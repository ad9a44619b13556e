%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_bundle_tests).
-moduledoc "What a router holds back becomes few words. (In a network: `sderl_route_tests`.)".
-include_lib("eunit/include/eunit.hrl").

-import(sderl_route_bundle, [new/0, is_empty/1, add/3, drop/2, take/2, messages/1]).

%% However often gateways change, each mate is sent one message.
one_message_test() ->
    Gateways = [list_to_atom("g" ++ integer_to_list(K)) || K <- lists:seq(1, 20)],
    Mates = [a, b, c],
    Bundle = added([{Mate, {change, change(G, K, K + 1, [{k, K}])}}
                    || K <- lists:seq(1, 30), G <- Gateways, Mate <- Mates]),
    Said = messages(Bundle),
    ?assertMatch([{a, {changes, _}}, {b, {changes, _}}, {c, {changes, _}}], lists:sort(Said)),
    Composed = [{G, v(1), v(31), 30, [{k, 30}]} || G <- Gateways],
    [?assertEqual(lists:sort(Composed),
                  lists:sort([{G, From, To, length(Groups), Links}
                              || {G, From, To, Groups, Links} <- Changes]))
     || {_, {changes, Changes}} <- Said],
    ?assert(is_empty(drop(a, drop(b, drop(c, Bundle))))).

%% The last word on each group.
composed_test() ->
    Bundle = added([{a, {change, {g, v(1), v(2), [{x, <<"x">>, [n1]}, {y, <<"y">>, [n1]}], [m1]}}},
                    {a, {change, {g, v(2), v(3), [{x, <<"x">>, []}], [m2]}}}]),
    ?assertEqual([{a, {change, {g, v(1), v(3), [{y, <<"y">>, [n1]}, {x, <<"x">>, []}], [m2]}}}],
                 messages(Bundle)).

%% An advertisement takes up what follows it, and replaces what came before.
advertised_test() ->
    Ad = fun(K) -> {g, v(K), [{x, <<"x">>, [n1]}], [m1]} end,
    Later = {change, {g, v(2), v(3), [{y, <<"y">>, [n2]}], []}},
    ?assertEqual([{a, {news, [{g, v(3), [{x, <<"x">>, [n1]}, {y, <<"y">>, [n2]}], []}]}}],
                 messages(added([{a, {change, change(g, 1, 2, [])}}, {a, {news, [Ad(2)]}},
                                 {a, {change, change(g, 1, 2, [])}}, {a, Later}]))),
    ?assertEqual([{a, {news, [Ad(2)]}}],
                 messages(added([{a, {news, [Ad(2)]}}, {a, {news, [Ad(1)]}}]))).

%% Changes that do not meet stay apart, in their order.
apart_test() ->
    Changes = [change(g, 1, 2, []), change(g, 5, 6, [])],
    ?assertEqual([{a, {changes, Changes}}], messages(added([{a, {change, C}} || C <- Changes]))).

taken_test() ->
    Bundle = added([{To, {change, change(g, 1, 2, [])}} || To <- [a, b]]),
    {Said, Rest} = take(a, Bundle),
    ?assertEqual([{change, change(g, 1, 2, [])}], Said),
    ?assertEqual({[], Rest}, take(a, Rest)),
    ?assertMatch([{b, _}], messages(Rest)).

added(Words) -> lists:foldl(fun({To, Word}, Bundle) -> add(To, Word, Bundle) end, new(), Words).

change(Gateway, From, To, Links) -> {Gateway, v(From), v(To), [{{g, From}, <<"g">>, [n1]}], Links}.

v(Number) -> {1, 1, Number}.
