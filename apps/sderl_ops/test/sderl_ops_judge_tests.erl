%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_judge_tests).
-moduledoc "How an instance is stopped, by what is known of its node.".

-include_lib("eunit/include/eunit.hrl").

-define(NOW, 1_000_000).
-define(HOST, ~"here/h1").

%% A service that has just begun has looked at the host, and has not asked the nodes yet.
not_asked_test() ->
    Seen = observed(#{}, unknown),
    Waits = {{instance, ~"web3"}, {node, unseen}},
    ?assertEqual({[], [Waits]}, leaving(Seen)),
    ?assertEqual({[], [{groups, unknown}, Waits]}, aside(Seen)).

answers_test() ->
    Seen = observed(#{~"web3" => #{state => up, health => ok}}, #{~"all" => [~"web3"]}),
    ?assertEqual({[{drain, ~"web3"}], []}, leaving(Seen)).

%% It cannot leave its groups.
asked_in_vain_test() ->
    Seen = observed(#{~"web3" => #{state => down, health => unknown}}, #{}),
    ?assertEqual({[{stop, ~"web3"}], []}, leaving(Seen)),
    ?assertEqual({[{stop, ~"web3"}], []}, leaving(observed(#{}, #{}))).

%% The file no longer has it.
leaving(Observed) ->
    Desired = desired(),
    decide(Desired#{instances := #{}, groups := []}, Observed, memory()).

%% An operator has drained it.
aside(Observed) ->
    decide(desired(), Observed, sderl_ops_memory:set_aside(~"web3", memory())).

decide(Desired, Observed, Memory) ->
    #{start := Start, waiting := Waiting} =
        sderl_ops_reconcile:steps(Desired, Observed, Memory, [], ?NOW),
    {Start, Waiting}.

memory() -> (sderl_ops_memory:new())#{assigned := #{~"web3" => ?HOST}}.

observed(Nodes, Groups) ->
    #{instances := #{~"web3" := #{release := Release, settings := Settings}}} = desired(),
    Instance = #{state => running, release => Release, settings => Settings},
    #{hosts => #{?HOST => #{state => up, releases => [Release],
                            instances => #{~"web3" => Instance}}},
      nodes => Nodes,
      groups => Groups}.

desired() ->
    #{instances := #{~"web3" := Web3}, hosts := Hosts} = Desired =
        sderl_ops_world_tests:desired(#{web => 3, db => 0}),
    Desired#{hosts := maps:with([?HOST], Hosts),
             instances := #{~"web3" => Web3#{candidates := [?HOST]}},
             groups := [#{name => ~"all", members => [~"web3"], consistency => available}]}.
