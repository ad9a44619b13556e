%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_remaining_tests).
-moduledoc "How many steps are left, against the plan, which finds them one after the other.".

-include_lib("eunit/include/eunit.hrl").

-define(NOW, 1_000_000).

count_test_() ->
    Old = desired(4, ~"aa", [~"web1", ~"web2"]),
    [
        {Name, ?_assertEqual(length(steps(Desired, Observed, Memory)),
                             sderl_ops_remaining:count(Desired, Observed, Memory))}
     || {Name, Desired, {Observed, Memory}} <- [
            {"a new cluster", desired(4, ~"aa", []), assigned(desired(4, ~"aa", []))},
            {"all is there", Old, running(Old)},
            {"more of them", desired(6, ~"aa", []), running(desired(4, ~"aa", []))},
            {"fewer", desired(1, ~"aa", []), running(desired(4, ~"aa", []))},
            {"a group goes", desired(4, ~"aa", []), running(Old)},
            {"one is out of service", Old, aside(running(Old))}
        ]
    ].

%% The old release is dropped in the end, where nothing uses it any more.
upgrade_test_() ->
    [
        ?_test(begin
            {Observed, Memory} = running(desired(4, ~"aa", Members)),
            New = desired(4, ~"bb", Members),
            Steps = [Step || Step <- steps(New, Observed, Memory),
                             Step =:= groups orelse element(1, Step) =/= drop_release],
            ?assertEqual(length(Steps), sderl_ops_remaining:count(New, Observed, Memory))
        end)
     || Members <- [[], [~"web1", ~"web2", ~"web3"]]
    ].

steps(Desired, Observed, Memory) ->
    #{steps := Steps} = sderl_ops_plan:plan(Desired, Observed, Memory, ?NOW),
    Steps.

aside({Observed, Memory}) -> {Observed, sderl_ops_memory:set_aside(~"web3", Memory)}.

%% After the first decision.
assigned(#{hosts := Hosts} = Desired) ->
    Observed = #{hosts => #{Host => #{state => up, releases => [], instances => #{}}
                            || Host := _ <- Hosts},
                 nodes => #{}, groups => #{}},
    {Memory, _, _, _} =
        sderl_ops_assign:assign(Desired, Observed, sderl_ops_memory:new(), ?NOW),
    {Observed, Memory}.

running(#{instances := Instances, groups := Groups} = Desired) ->
    {#{hosts := Hosts}, #{assigned := Assigned} = Memory} = assigned(Desired),
    There = #{Host => Seen#{
                  releases := lists:usort([Sha || Id := #{release := Sha} <- Instances,
                                                  map_get(Id, Assigned) =:= Host]),
                  instances := #{Id => #{state => running, release => Sha, settings => Hash}
                                 || Id := #{release := Sha, settings := Hash} <- Instances,
                                    map_get(Id, Assigned) =:= Host}
              } || Host := Seen <- Hosts},
    {#{hosts => There, nodes => #{Id => #{state => up, health => ok} || Id := _ <- Instances},
       groups => #{Name => Members || #{name := Name, members := Members} <- Groups}},
     Memory}.

desired(Count, Sum, Members) ->
    {ok, File} = sderl_ops_file:check(#{
        cluster => shop,
        providers => #{here => #{type => local, hosts => 2}},
        releases => #{one => #{folder => ~"rel", start => [~"bin/go"]}},
        domains => #{all => #{provider => here}},
        families => #{web => #{release => one, domains => [all], count => Count}},
        groups => [#{name => some, nodes => Members} || Members =/= []]
    }, ~"/base"),
    {ok, Desired} = sderl_ops_desired:from(File, #{
        revision => 1, sums => #{~"one" => Sum}, hosts => #{~"here" => [~"h1", ~"h2"]}
    }),
    Desired.
