%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_profile_SUITE).
-moduledoc "`--prof DIR`: nodes are recorded over the control channel of their fleet.".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [recorded, registry, refused].

%% One node calls the other; no node gets a link to a third one.
recorded(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "prof"),
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => n, count => 2}]}),
    [A, B] = Nodes = sderl_fleet:nodes(Fleet),
    try
        Result = sderl_bench_profile:around(#{prof => Dir}, Fleet, Nodes, fun() ->
            sderl_bench_nodes:on(Fleet, A, lists, map,
                                 [fun net_adm:ping/1, lists:duplicate(20, B)])
        end),
        ?assertEqual({ok, lists:duplicate(20, pong)}, Result),
        ?assertEqual({ok, [[B], [A]]},
                     sderl_bench_nodes:all(Fleet, Nodes, erlang, nodes, [connected])),
        %% No node is recorded any more.
        ?assertEqual({ok, [{error, not_recorded}, {error, not_recorded}]},
                     {ok, [Why || {_, {ok, Why}} <- sderl_fleet:multicall(
                                      Fleet, Nodes, sderl_bench_profile, release, [], 60_000)]})
    after
        ok = sderl_fleet:stop(Fleet)
    end,
    {ok, #{nodes := [#{state := recorded}, #{state := recorded}]}} =
        sderl_prof_cluster_index:read(Dir),
    {ok, Out} = sderl_prof_cluster_book:open(Dir, #{}),
    {ok, Book} = sderl_prof_book:open(Out),
    ?assertMatch([_, _], sderl_prof_book:nodes(Book)),
    #{traffic := Traffic} = sderl_prof_book:meta(Book),
    ?assertMatch([#{joined := N} | _] when N > 0,
                 [Link || #{from := From} = Link <- Traffic, From =:= atom_to_binary(A)]),
    ok = sderl_prof_book:close(Book),
    %% The folder is not empty now, so it is refused for another recording.
    {error, Text} = sderl_bench_profile:check(1, #{prof => Dir}),
    ?assertNotEqual(nomatch, string:find(Text, "not empty")).

%% A benchmark with `prof` records the nodes of its run, with the events of `prof_what`.
registry(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "registry"),
    Params = #{nodes => 2, group_size => 2, clients => 1, seconds => 1, names => 0, prof => Dir,
               prof_what => concurrency},
    {ok, #{converged := true}} =
        sderl_bench_registry:run(sderl_bench_impl_s_group, Params, "registry"),
    {ok, #{items := Items, nodes := [#{state := recorded}, #{state := recorded}]}} =
        sderl_prof_cluster_index:read(Dir),
    ?assertEqual([~"garbage_collection", ~"running"], lists:sort(Items)),
    {error, Text} = sderl_bench_options:checked("registry", sderl_bench_registry_experiment,
                                                ["--prof", "x", "--repeat", "2"]),
    ?assertNotEqual(nomatch, string:find(Text, "records one run")).

refused(_) ->
    ok = sderl_bench_profile:check(7, #{}),
    ok = sderl_bench_profile:check(1, #{prof => "/tmp/is-not-there/prof"}),
    {error, Many} = sderl_bench_profile:check(2, #{prof => "x"}),
    ?assertNotEqual(nomatch, string:find(Many, "records one run")),
    done = sderl_bench_profile:around(#{}, self(), [], fun() -> done end).
