%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_versions_tests).

-include_lib("eunit/include/eunit.hrl").

topology(Groups, Down) ->
    Members = lists:usort(lists:append(maps:values(Groups))),
    #{epoch => 1, t => 1, monitors => [],
      nodes => #{Id => #{status => case lists:member(Id, Down) of true -> down; false -> up end,
                         groups => [], home => ~"g", hidden => false, source => probe}
                 || Id <- Members},
      groups => #{Name => #{nodes => In, names => 0} || Name := In <- Groups}}.

standing(Apps) -> #{Node => #{apps => Its} || Node := Its <- Apps}.

counts_test() ->
    Groups = #{~"g" => [~"a", ~"b", ~"c"], ~"h" => [~"c"], ~"none" => [~"d"]},
    Standing = standing(#{~"a" => #{~"x" => ~"1", ~"y" => ~"1", ~"only" => ~"1"},
                          ~"b" => #{~"x" => ~"2", ~"y" => ~"1"},
                          ~"c" => #{~"x" => ~"2", ~"y" => ~"3"}, ~"d" => #{}}),
    Counted = sderl_alarms_versions:count(topology(Groups, []), Standing,
                                          sderl_alarms_versions:new()),
    ?assertEqual([{ok, 2}, {ok, 0}, unknown, unknown],
                 [sderl_alarms_versions:find({group, Group}, Counted)
                  || Group <- [~"g", ~"h", ~"none", ~"other"]]),
    %% One that is down has no versions.
    Without = sderl_alarms_versions:count(topology(Groups, [~"c"]), Standing, Counted),
    ?assertEqual([{ok, 1}, unknown],
                 [sderl_alarms_versions:find({group, Group}, Without) || Group <- [~"g", ~"h"]]).

%% Nodes of a family are compared wherever they are: in one group, in several, in none.
family_test() ->
    Node = fun(Id) -> <<Id/binary, "@h">> end,
    Groups = #{~"g" => [Node(~"web1"), Node(~"db1")], ~"h" => [Node(~"web2")]},
    #{nodes := Nodes} = Topology = topology(Groups, []),
    #{nodes := Alone} = topology(#{~"none" => [Node(~"web-3"), Node(~"db2"), Node(~"7")]},
                                 [Node(~"db2")]),
    All = Topology#{nodes := maps:merge(Nodes, Alone)},
    Of = fun(Place, Apps) ->
        Counted = sderl_alarms_versions:count(
            All, standing(#{Node(Id) => Its || Id := Its <- Apps}), sderl_alarms_versions:new()),
        sderl_alarms_versions:find(Place, Counted)
    end,
    Web = {family, ~"web"},
    ?assertEqual({ok, 0}, Of(Web, #{~"web1" => #{~"x" => ~"1"}, ~"web2" => #{~"x" => ~"1"}})),
    ?assertEqual({ok, 1}, Of(Web, #{~"web1" => #{~"x" => ~"1"}, ~"web2" => #{~"x" => ~"2"}})),
    ?assertEqual({ok, 1}, Of(Web, #{~"web1" => #{~"x" => ~"1"}, ~"web-3" => #{~"x" => ~"2"}})),
    %% Another family of the same group is not compared, and one that is down has no versions.
    Others = #{~"web1" => #{~"x" => ~"1"}, ~"db1" => #{~"x" => ~"2"}, ~"db2" => #{~"x" => ~"3"}},
    ?assertEqual([{ok, 0}, {ok, 0}, {ok, 1}, unknown],
                 [Of(Place, Others)
                  || Place <- [Web, {family, ~"db"}, {group, ~"g"}, {family, ~"no"}]]),
    %% Names that are numbers alone make no family.
    ?assertEqual(unknown, Of({family, ~""}, #{~"7" => #{~"x" => ~"1"}})).

%% As long as nothing changes nothing is counted: it is the same term as before.
as_before_test() ->
    Groups = #{~"g" => [~"a", ~"b"]},
    Apps = #{~"a" => #{~"x" => ~"1"}, ~"b" => #{~"x" => ~"2"}},
    First = sderl_alarms_versions:count(topology(Groups, []), standing(Apps),
                                        sderl_alarms_versions:new()),
    Again = sderl_alarms_versions:count((topology(Groups, []))#{t := 7}, standing(Apps), First),
    ?assert(erts_debug:same(First, Again)),
    Changed = sderl_alarms_versions:count(topology(Groups, []),
                                          standing(Apps#{~"b" := #{~"x" => ~"1"}}), Again),
    ?assertEqual({ok, 0}, sderl_alarms_versions:find({group, ~"g"}, Changed)).
