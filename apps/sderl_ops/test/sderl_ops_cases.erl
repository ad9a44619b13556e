%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_cases).
-moduledoc "A small cluster: desired, observed and remembered state.".

-export([desired/3, assigned/1, running/1]).

-define(NOW, 1_000_000).

-doc "The memory after the first decision.".
-spec assigned(sderl_ops_desired:desired()) ->
    {sderl_ops_observed:observed(), sderl_ops_memory:memory()}.
assigned(#{hosts := Hosts} = Desired) ->
    Observed = #{hosts => #{Host => #{state => up, releases => [], instances => #{}}
                            || Host := _ <- Hosts},
                 nodes => #{}, groups => #{}},
    {Memory, _, _, _} =
        sderl_ops_assign:assign(Desired, Observed, sderl_ops_memory:new(), ?NOW),
    {Observed, Memory}.

-doc "An observed state in which everything runs, so that there is nothing to do.".
-spec running(sderl_ops_desired:desired()) ->
    {sderl_ops_observed:observed(), sderl_ops_memory:memory()}.
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

-doc "A family with so many instances on two hosts, and a group of some of them.".
-spec desired(pos_integer(), Sum :: binary(), [sderl_ops_desired:instance_id()]) ->
    sderl_ops_desired:desired().
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
