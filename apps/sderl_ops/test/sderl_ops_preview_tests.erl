%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_preview_tests).
-moduledoc "What a plan tells, from what the server knows.".

-include_lib("eunit/include/eunit.hrl").

-define(NOW, 1_000_000).

plan_test() ->
    #{changes := Changes, steps := Steps, refused := []} =
        sderl_ops_preview:plan(prepared(~"shop", 2), false, view(none), ?NOW),
    ?assertEqual([~"+ web1..web2: release one"], Changes),
    ?assertEqual(5, length(Steps)).

%% The memory of a destroyed cluster does not count for the next one.
another_cluster_test() ->
    Prepared = prepared(~"shop", 1),
    Memory = (sderl_ops_memory:new())#{assigned := #{~"web1" => ~"here/gone"},
                                       aside := #{~"web1" => true}},
    Fresh = sderl_ops_preview:plan(Prepared, false, view(none), ?NOW),
    Former = (view({~"other", 7}))#{memory := Memory},
    ?assertEqual(Fresh, sderl_ops_preview:plan(Prepared, false, Former, ?NOW)),
    ?assertNotEqual(Fresh, sderl_ops_preview:plan(Prepared, false,
                                                  Former#{store := {~"shop", 7}}, ?NOW)).

%% Found without the steps.
refused_test() ->
    Prepared = prepared(~"shop", 1),
    {ok, Desired} = sderl_ops_revision:desired(prepared(~"shop", 1), false, 1),
    #{instances := #{~"web1" := #{settings := Settings}}} = Desired,
    Seen = #{state => running, release => ~"old", settings => Settings},
    View = (view({~"shop", 1}))#{
        desired := Desired,
        memory := (sderl_ops_memory:new())#{assigned := #{~"web1" => ~"here/h1"}},
        observed := #{hosts => #{~"here/h1" => #{state => up, releases => [~"old"],
                                                 instances => #{~"web1" => Seen}}},
                      nodes => #{~"web1" => #{state => up, health => ok}},
                      groups => #{~"all" => [~"web1"]}}
    },
    #{refused := [_] = Refused} = sderl_ops_preview:plan(Prepared, false, View, ?NOW),
    ?assertEqual(Refused, sderl_ops_preview:refused(Prepared, false, View, ?NOW)).

%% web2 is the only node of two groups, or the only one that is not drained.
last_gateway_test_() ->
    [{Name, fun() ->
        Prepared = prepared(~"shop", 4, Groups),
        {ok, Desired} = sderl_ops_revision:desired(Prepared, false, 1),
        {Observed, Memory} = sderl_ops_cases:running(Desired),
        View = (view({~"shop", 1}))#{
            desired := Desired, observed := Observed,
            memory := lists:foldl(fun sderl_ops_memory:set_aside/2, Memory, Drained)
        },
        Next = Prepared#{sums := #{~"one" => ~"bb"}},
        ?assertEqual([Sentence], sderl_ops_preview:refused(Next, false, View, ?NOW)),
        ?assertMatch(#{refused := [Sentence]}, sderl_ops_preview:plan(Next, false, View, ?NOW)),
        ?assertEqual([], sderl_ops_preview:refused(Next, true, View, ?NOW))
    end} || {Name, Groups, Drained, Sentence} <- [
        {"the only one", [#{name => a, nodes => [~"web1..web2"]},
                          #{name => b, nodes => [~"web2..web4"]}], [],
         <<"web2 is the only node that is in both a and b, which would be apart while it is "
           "replaced">>},
        {"the last one", [#{name => a, nodes => [~"web1..web3"]},
                          #{name => b, nodes => [~"web1..web2", ~"web4"]}], [~"web1"],
         <<"web2 is the only node that is in both a and b and is not drained, which would be "
           "apart while it is replaced; undrain web1 first">>}
    ]].

view(Store) ->
    #{
        store => Store,
        desired => undefined,
        memory => sderl_ops_memory:new(),
        observed => sderl_ops_observed:new(),
        hosts => #{},
        running => [],
        waiting => [],
        done => true,
        trouble => none,
        quiet_ms => infinity
    }.

prepared(Cluster, Count) ->
    prepared(Cluster, Count, [#{name => all, nodes => [~"web1"]} || Count =:= 1]).

prepared(Cluster, Count, Groups) ->
    {ok, File} = sderl_ops_file:check(#{
        cluster => Cluster,
        providers => #{here => #{type => local, hosts => 1}},
        releases => #{one => #{folder => ~"rel", start => [~"bin/go"]}},
        domains => #{all => #{provider => here}},
        families => #{web => #{release => one, domains => [all], count => Count}},
        groups => Groups
    }, ~"/base"),
    {ok, Hosts} = sderl_ops_revision:hosts(File, "/base"),
    #{file => File, sums => #{~"one" => ~"aa"}, archives => #{}, hosts => Hosts}.
