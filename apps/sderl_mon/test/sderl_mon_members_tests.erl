%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_members_tests).

%% Who is in which group, and the topology that shows it.

-include_lib("eunit/include/eunit.hrl").

-define(MEMBERS, ['a@h', 'b@h', 'c@h']).

says(Status, Groups) ->
    #{status => Status, why => <<>>, source => probe, peers => [],
      facts => #{groups => [#{group => G, members => Ms, coordinator => 'a@h', names => 3}
                            || {G, Ms} <- Groups]}}.

reports() ->
    #{
        'a@h' => says(up, [{g, ?MEMBERS}]),
        %% Removed, and a has not heard of it.
        'b@h' => says(up, []),
        %% Down: a says that it is in g, and nobody speaks for h.
        'c@h' => says(down, [{h, ['c@h', 'd@h']}, {g, ['c@h']}]),
        'd@h' => says(down, [{g, ['d@h']}])
    }.

topology(Reports) -> topology(Reports, [], #{}).

topology(Reports, Masters, Placement) ->
    sderl_mon_members:topology(7, Masters, #{
        nodes => Reports, members => sderl_mon_members:groups(Reports), placement => Placement
    }).

groups_test() ->
    ?assertEqual(#{'a@h' => [g], 'b@h' => [], 'c@h' => [g, h], 'd@h' => []},
                 sderl_mon_members:groups(reports())),
    ?assertMatch(
        #{t := 7,
          groups := #{<<"g">> := #{nodes := [<<"a@h">>, <<"c@h">>], coordinator := <<"a@h">>,
                                   names := 3, agent := <<"m@h">>},
                      <<"h">> := #{nodes := [<<"c@h">>]}}},
        topology(reports(), [], #{{group, g} => 'm@h'})
    ).

%% Only who says so itself, and is up, has lost the majority.
minority_test() ->
    Lost = fun(Status) ->
        #{facts := #{groups := [Group]}} = Report = says(Status, [{g, ?MEMBERS}]),
        Report#{facts := #{groups => [Group#{majority => false}]}}
    end,
    #{groups := #{<<"g">> := Whole}} = topology(reports()),
    ?assertNot(is_map_key(minority, Whole)),
    ?assertMatch(#{groups := #{<<"g">> := #{minority := [<<"a@h">>]}}},
                 topology((reports())#{'a@h' := Lost(up), 'c@h' := Lost(down)})).

%% Whether the library runs on a node is told, where that is known.
library_test() ->
    Runs = fun(Facts) -> (says(up, []))#{source := stock, facts := Facts} end,
    #{nodes := #{<<"x@h">> := X, <<"y@h">> := Y, <<"z@h">> := Z}} = topology(
        #{'x@h' => Runs(#{application => true}), 'y@h' => Runs(#{application => false}),
          'z@h' => Runs(#{})}
    ),
    ?assertEqual([true, false, unknown], [maps:get(library, Info, unknown) || Info <- [X, Y, Z]]).

found_test() ->
    Config = #{seeds => ['s@h'], nodes => all},
    ?assertEqual(['a@h', 'b@h', 'c@h', 'd@h', 's@h'],
                 sderl_mon_members:found(reports(), Config, ['m@h'])),
    ?assertEqual(['a@h', 'x@h'],
                 sderl_mon_members:found(reports(), Config#{nodes := ['a@h', 'x@h']}, ['m@h'])).

%% Of the homes that there are, which are free nodes and groups, each runs what it was given.
masters_test() ->
    Reports = #{'a@h' => says(up, [{g, ['a@h']}]), 'b@h' => says(up, [])},
    Placement = #{{group, g} => 'm1@h', {free, 'b@h'} => 'm1@h', {group, old} => 'm2@h'},
    #{monitors := Monitors} =
        topology(Reports, [{'m1@h', true, true}, {'m2@h', false, false}], Placement),
    ?assertEqual([
        #{node => <<"m1@h">>, status => up, master => true, agents => 2},
        #{node => <<"m2@h">>, status => down, master => false, agents => 0}
    ], Monitors).

%% Names come and go all the time, and are in the frames.
is_same_test() ->
    Before = topology(reports()),
    More = #{group => g, members => ?MEMBERS, coordinator => 'a@h', names => 4},
    #{'a@h' := A} = reports(),
    Names = topology((reports())#{'a@h' := A#{facts := #{groups => [More]}}}),
    Coordinator = topology((reports())#{
        'a@h' := A#{facts := #{groups => [More#{coordinator := 'c@h'}]}}
    }),
    ?assertNotEqual(Before, Names),
    ?assertEqual([true, false, false], [sderl_mon_members:is_same(Before, Names),
                                        sderl_mon_members:is_same(Before, Coordinator),
                                        sderl_mon_members:is_same(none, Before)]).

%% What a node said of itself holds until it says something else, and the time since when while its
%% status is the same.
known_test() ->
    #{'a@h' := Unknown} = sderl_mon_members:unknown(['a@h'], 5),
    ?assertMatch(#{status := down, since := 5, facts := Facts} when Facts =:= #{}, Unknown),
    #{facts := Said} = Up = says(up, [{g, ?MEMBERS}]),
    First = sderl_mon_members:known(Up, Unknown, 10),
    ?assertMatch(#{status := up, since := 10, facts := Said}, First),
    Silent = sderl_mon_members:known(Up#{facts := #{}}, First, 20),
    ?assertMatch(#{since := 10, facts := Said}, Silent),
    Down = sderl_mon_members:known(Up#{status := down, facts := #{}}, Silent, 30),
    ?assertMatch(#{status := down, since := 30, facts := Said}, Down).
