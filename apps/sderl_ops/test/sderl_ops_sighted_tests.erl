%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sighted_tests).
-moduledoc "Reports of steps about single instances, with looks that began before and after.".

-include_lib("eunit/include/eunit.hrl").

-define(HOST, ~"here/h1").
-define(BOTH, [nodes, {host, ?HOST}]).

%% Looks that a start makes unnecessary.
unseen_test_() ->
    Up = seen(up, #{}, #{}),
    [
        {Name, ?_assertEqual(Left, sderl_ops_sighted:unseen(?BOTH, Sighting, Observed))}
     || {Name, Sighting, Observed, Left} <- [
            {"nothing was told", none, Up, ?BOTH},
            {"all was told", started(), Up, []},
            {"it did not ask the node", maps:remove(node, started()), Up, [nodes]},
            {"the node is in a group",
             started(#{~"g" => []}), Up,
             [nodes]},
            {"it was in a group", started(), seen(up, #{~"g" => [~"web1"]}, #{}), [nodes]},
            {"others have it in a group", started(), seen(up, #{}, #{~"g" => [~"web1"]}), [nodes]},
            {"nobody knows the groups", started(), seen(up, unknown, #{}), [nodes]},
            {"the host was lost", started(), seen(unreachable, #{}, #{}), [{host, ?HOST}]}
        ]
    ].

told_test() ->
    {_, Observed} = tell(started(), 10, sderl_ops_sighted:new(), seen(up, #{}, #{})),
    ?assertMatch(#{hosts := #{?HOST := #{instances := #{~"web1" := #{state := running}}}},
                   nodes := #{~"web1" := #{state := up}, ~"web2" := #{state := down}}}, Observed).

%% A look that began before the report is outdated; one that began later is right.
over_a_look_test_() ->
    {Sighted, _} = tell(started(), 10, sderl_ops_sighted:new(), seen(up, #{}, #{})),
    Host = {host, map_get(?HOST, map_get(hosts, seen(up, #{}, #{})))},
    Nodes = {nodes, #{~"web1" => #{state => gone, health => unknown}}, #{}, #{}},
    Over = fun(What, Seen, Began) ->
        {After, Left} = sderl_ops_sighted:over(What, Seen, Began, Sighted),
        {After, Left =:= Sighted}
    end,
    [
        ?_assertMatch({{host, #{instances := #{~"web1" := #{state := running}}}}, true},
                      Over({host, ?HOST}, Host, 9)),
        ?_assertMatch({{nodes, #{~"web1" := #{state := up}}, _, _}, true}, Over(nodes, Nodes, 9)),
        ?_assertMatch({{host, #{instances := #{~"web1" := #{state := laid_out}}}}, false},
                      Over({host, ?HOST}, Host, 11)),
        ?_assertMatch({{nodes, #{~"web1" := #{state := gone}}, _, _}, false},
                      Over(nodes, Nodes, 11)),
        %% Of another host, and what is no sight of it.
        ?_assertEqual({Host, true}, Over({host, ~"here/h2"}, Host, 11)),
        ?_assertEqual({unknown, true}, Over({host, ?HOST}, unknown, 11))
    ].

started() -> started(#{}).

started(Groups) ->
    #{host => ?HOST, id => ~"web1", instance => instance(running),
      node => #{state => up, health => ok, groups => Groups}}.

instance(State) -> #{state => State, release => ~"aa", settings => ~"s1"}.

seen(State, Groups, Listed) ->
    Host = #{state => State, releases => [], instances => #{~"web1" => instance(laid_out)}},
    #{hosts => #{?HOST => Host},
      nodes => #{~"web2" => #{state => down, health => unknown}},
      groups => Groups, listed => Listed}.

tell(Sighting, At, Sighted, Observed) ->
    sderl_ops_sighted:tell(Sighting, At, Sighted, Observed).
