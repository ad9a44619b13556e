%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_filter_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(N, n@h).

read(Readings) -> fun(Name) -> maps:get(Name, Readings, stale) end.

fits(Where, Readings) -> fits(Where, Readings, #{}).

fits(Where, Readings, Distances) ->
    {ok, #{where := Conditions}} = sderl_place_spec:parse(many, #{where => Where}),
    sderl_place_filter:fits(Conditions, ?N, read(Readings), Distances).

operators_test() ->
    Cpu = #{cpu => {ok, 4, 0}},
    [?assertEqual({Op, C, Holds}, {Op, C, fits({cpu, Op, C}, Cpu)})
     || {Op, C, Holds} <- [{eq, 4, true}, {eq, 4.0, true}, {eq, 5, false}, {ne, 4, false},
                           {ne, 5, true}, {lt, 5, true}, {lt, 4, false}, {le, 4, true},
                           {le, 3, false}, {gt, 3, true}, {gt, 4, false}, {ge, 4, true},
                           {ge, 5, false}, {in, [3, 4.0], true}, {in, [], false},
                           {not_in, [3], true}, {not_in, [4], false},
                           {lt, atoms_are_greater, true}]],
    [?assertEqual({V, F, V =:= F}, {V, F, fits({gpu, F}, #{gpu => {ok, V, 0}})})
     || V <- [true, false, yes, no, other], F <- [true, false, yes, no]],
    ?assert(fits({cpu, exists}, Cpu)).

%% Published: what is missing makes any predicate false.
missing_test() ->
    [?assertEqual({C, R, false}, {C, R, fits(C, #{cpu => R})})
     || R <- [{undefined, not_set, 3}, {undefined, timeout, 0}, {error, down}],
        C <- [{cpu, Op, 4} || Op <- [eq, ne, lt, le, gt, ge]]
             ++ [{cpu, F} || F <- [true, false, yes, no, exists]]
             ++ [{cpu, in, [undefined]}, {cpu, not_in, [4]}]],
    [?assertNot(fits({dist, Op, 0.5}, #{})) || Op <- [eq, ne, lt, le, gt, ge]].

labels_test() ->
    Set = #{{label, zone} => {ok, a, 5}},
    Unset = #{{label, zone} => {undefined, not_set, 5}},
    Away = #{{label, zone} => {error, timeout}},
    [?assertEqual({C, Expected}, {C, [fits(C, R) || R <- [Set, Unset, Away]]})
     || {C, Expected} <- [
         {{label, zone, equals, a}, [true, false, false]},
         {{label, zone, equals, b}, [false, false, false]},
         {{label, zone, in, [b, a]}, [true, false, false]},
         {{label, zone, not_in, [b]}, [true, true, false]},
         {{label, zone, not_in, [a]}, [false, true, false]},
         {{label, zone, not_equals, a}, [false, true, false]},
         {{label, zone, exists}, [true, false, false]},
         {{label, zone, not_exists}, [false, true, false]},
         {{label, zone, ne, b}, [true, false, false]}
     ]].

distance_test() ->
    D = #{from => #{?N => 0.5}, {group, g} => #{?N => 0.25}, {node, x@h} => #{}},
    [?assertEqual({C, Holds}, {C, fits(C, #{}, D)})
     || {C, Holds} <- [{{dist, le, 0.5}, true},
                       {{dist, lt, 0.5}, false},
                       {{dist, {group, g}, eq, 0.25}, true},
                       {{dist, {node, x@h}, ge, 0}, false}]].

%% Nobody is asked about a node that another condition drops.
stale_test() ->
    ?assertEqual(stale, fits([{a, true}], #{})),
    ?assertEqual(false, fits([{a, true}, {b, true}], #{b => {ok, false, 0}})),
    ?assertEqual(stale, fits([{a, true}, {b, true}], #{b => {ok, true, 0}})),
    ?assertEqual(false, fits([{b, true}, {a, true}], #{b => {ok, false, 0}})).

score_test() ->
    {ok, #{prefer := P}} =
        sderl_place_spec:parse(many, #{prefer => [{a, true}, {4, {b, true}}, {2, {c, true}}]}),
    Score = fun(Readings) -> sderl_place_filter:score(P, ?N, read(Readings), #{}) end,
    T = {ok, true, 0}, F = {undefined, not_set, 0},
    ?assertEqual([7, 5, 0, stale],
                 [Score(R) || R <- [#{a => T, b => T, c => T}, #{a => T, b => T, c => F},
                                     #{a => F, b => F, c => F}, #{a => T, b => T}]]).

properties_test_() -> [sderl_prop:eunit("all or nothing", 300, fun prop_conjunction/0)].

%% A list of conditions is their conjunction, in any order, and a verdict is what the filter says.
prop_conjunction() ->
    ?FORALL({Conditions, Readings}, {list(condition()), readings()},
            begin
                {ok, #{where := Where}} = sderl_place_spec:parse(many, #{where => Conditions}),
                Read = read(Readings),
                Each = [sderl_place_filter:fits([C], ?N, Read, #{}) || C <- Where],
                Expected = case {lists:member(false, Each), lists:member(stale, Each)} of
                    {true, _} -> false;
                    {_, Stale} -> not Stale orelse stale
                end,
                Verdicts = [H
                            || C <- Where,
                               #{holds := H} <- [sderl_place_filter:verdict(C, ?N, Read, #{})]],
                Expected =:= sderl_place_filter:fits(Where, ?N, Read, #{})
                andalso Expected =:= sderl_place_filter:fits(lists:reverse(Where), ?N, Read, #{})
                andalso Verdicts =:= [E =:= true || E <- Each]
            end).

condition() ->
    oneof([{oneof([a, b]), oneof([eq, ne, lt, le, gt, ge]), value()},
           {oneof([a, b]), oneof([true, no, exists])},
           {oneof([a, b]), oneof([in, not_in]), list(value())},
           {label, oneof([k, l]), oneof([in, not_in]), list(value())},
           {label, oneof([k, l]), oneof([exists, not_exists])},
           {dist, le, 1}]).

value() -> oneof([0, 1, 2, true, no, x, undefined]).

readings() ->
    ?LET(Rs, vector(4, reading()), maps:from_list(lists:zip([a, b, {label, k}, {label, l}], Rs))).

reading() -> oneof([{ok, value(), 1}, {undefined, not_set, 1}, {error, timeout}, stale]).
