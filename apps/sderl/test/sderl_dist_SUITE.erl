%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_SUITE).

%% Measured distances on real nodes, validated as published: what is measured and clustered must be
%% the tree that the hosts were made to be. Hosts are network namespaces, or addresses of the
%% loopback interface where those are not allowed; between them links take time. Two clusters of two
%% hosts of two nodes: 3 ms one way between the hosts of a cluster, 15 ms between clusters.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2, group/3]).

-define(NEAR, 3).
-define(FAR, 15).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [one_group, over_gateways, derived, missing, unknown, not_running].

init_per_suite(Config) ->
    Self = self(),
    %% The process that prepares a suite ends before the first test.
    Owner = spawn(fun() ->
        Self ! {self(), sderl_fleet_netns:start(4)},
        receive release -> ok end
    end),
    receive
        {Owner, {ok, Net}} -> start(sderl_fleet_netns:hosts(Net), Net, Owner, Config);
        {Owner, {error, {no_namespaces, Why}}} ->
            case os:type() of
                {unix, linux} ->
                    start([#{host => "127.0.0." ++ integer_to_list(I)} || I <- lists:seq(2, 5)],
                          none, Owner, Config);
                _ -> {skip, unicode:characters_to_list(["no network namespaces here: ", Why])}
            end
    end.

start(Hosts, Net, Owner, Config) ->
    [A, B, C, D] = [Host || #{host := Host} <- Hosts],
    Delays = [{A, B, ?NEAR}, {C, D, ?NEAR} | [{X, Y, ?FAR} || X <- [A, B], Y <- [C, D]]],
    %% Without islands: a link that is closed stays so.
    Env = [{sderl, K, V} || {K, V} <- [{free_islands, false} | sderl_ct:env(calm)]],
    Families = [sderl_fleet_delay:family(
        Host#{name => Name, count => 2, apps => [sderl], env => Env}, Delays
    )
                || {Name, Host} <- lists:zip([a, b, c, d], Hosts)],
    {ok, Fleet} = sderl_fleet:start(#{families => Families, owner => Owner}),
    [A1, A2, B1, B2, C1, C2, D1, D2] = Nodes = sderl_fleet:nodes(Fleet),
    Configured = {network, [
        {network, west, [{network, [{node, A1}, {node, A2}]}, {network, [{node, B1}, {node, B2}]}]},
        {network, east, [{network, [{node, C1}, {node, C2}]}, {network, [{node, D1}, {node, D2}]}]}
    ]},
    [{fleet, Fleet}, {net, Net}, {owner, Owner}, {nodes, Nodes}, {configured, Configured} | Config].

end_per_suite(Config) ->
    ok = sderl_fleet:stop(proplists:get_value(fleet, Config)),
    Net = proplists:get_value(net, Config),
    ok = case Net of none -> ok; _ -> sderl_fleet_netns:stop(Net) end,
    proplists:get_value(owner, Config) ! release.

%% All in one group: each two have a link and are measured.
one_group(Config) ->
    {F, Nodes} = {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)},
    [] = group(F, all, Nodes),
    #{tree := Tree, levels := Levels, fit := Fit, cost := Cost} = M =
        measured_as_configured(Config, hd(Nodes), own),
    ?assertMatch(#{pairs := #{measured := 28, estimated := 0, composed := 0}, missing := [],
                   unreached := []}, M),
    ?assertEqual(lists:sort(Nodes), maps:get(nodes, M)),
    ?assertMatch([#{distance := 0.25, pairs := 4}, #{distance := 0.5, pairs := 8},
                  #{distance := 1.0, pairs := 16}], Levels),
    [_, #{least_us := Near}, #{least_us := Far}] = Levels,
    ?assert(Near >= 2000 * ?NEAR andalso Far >= 2000 * ?FAR),
    %% What a tree loses here is the machine's noise, whose size is not for a test to say.
    ?assertMatch(#{pairs := 28, correlation := C, mean_deviation := D} when C > 0 andalso D >= 0,
                 Fit),
    %% 28 pairs, 4 batches of 5 round trips.
    ?assertMatch(#{messages := 1120}, Cost),
    ct:pal("levels ~p~nfit ~p~ndendrogram ~p~ncost ~p in ~b ms",
           [Levels, Fit, maps:get(dendrogram_fit, M), Cost, maps:get(took_ms, M)]),
    %% It is a tree to set, to save and to load.
    File = filename:join(proplists:get_value(priv_dir, Config), "measured.config"),
    [A1, A2, B1 | _] = Nodes,
    {0.25, 0.5} = on(F, A1, fun() ->
        ok = sderl_dist:set(Tree),
        ok = sderl_dist:save(File),
        {sderl_dist:distance(A1, A2), sderl_dist:distance(A1, B1)}
    end),
    0.5 = on(F, A2, fun() -> ok = sderl_dist:load(File), sderl_dist:distance(A2, B1) end),
    sderl_ct:delete(F, all, A1).

%% A group in each cluster, and one of their gateways, a single one in the west: what is between the
%% clusters is measured in up to three legs, by nodes that have no link and get none.
over_gateways(Config) ->
    {F, [A1, A2, B1, B2, C1, C2, D1, D2] = Nodes} =
        {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)},
    unlink_all(F, Nodes),
    [] = group(F, west, [A1, A2, B1, B2]),
    [] = group(F, bridge, [B2, C1, C2]),
    [] = group(F, east, [C1, C2, D1, D2]),
    Links = links(F, Nodes),
    M = measured_as_configured(Config, A1, all),
    ?assertMatch(#{pairs := #{measured := 14, estimated := 0, composed := 14}, missing := [],
                   unreached := []}, M),
    At = fun(X, Y) -> map_get(Y, map_get(X, maps:get(rtt_us, M))) end,
    %% Both gateways of the east are of one host, and to go by both may be the shortest.
    Sum = At(A1, B2) +
        lists:min([At(B2, C1) + At(C1, D2), At(B2, C2) + At(C2, D2),
                   At(B2, C1) + At(C1, C2) + At(C2, D2), At(B2, C2) + At(C2, C1) + At(C1, D2)]),
    ?assert(abs(At(A1, D2) - Sum) < 1),
    ?assertEqual(Links, links(F, Nodes)),
    %% Only what was asked for.
    {ok, Own} = on(F, A1, fun() -> sderl_dist:measure(own, #{spread_ms => 100}) end),
    ?assertEqual(lists:sort([A1, A2, B1, B2]), maps:get(nodes, Own)),
    {ok, Two} = on(F, A1, fun() ->
        sderl_dist:measure({groups, [west, bridge, nowhere]}, #{spread_ms => 100})
    end),
    ?assertEqual(lists:sort([A1, A2, B1, B2, C1, C2]), maps:get(nodes, Two)),
    ?assertEqual([nowhere], maps:get(unreached, Two)),
    {ok, Apart} = on(F, A1,
                     fun() -> sderl_dist:measure({groups, [west, east]}, #{spread_ms => 100}) end),
    ?assertEqual([east], maps:get(unreached, Apart)),
    [sderl_ct:delete(F, G, N) || {G, N} <- [{west, A1}, {bridge, B2}, {east, C1}]].

%% From labels that the nodes were given, one of them none.
derived(Config) ->
    {F, [A1, A2, B1, B2, C1, C2, D1, D2] = Nodes} =
        {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)},
    [ok = on(F, N, fun() -> sderl_attr:set({label, zone}, Zone) end)
     || {Zone, Ns} <- [{west, [A1, A2, B1, B2]}, {east, [C1, C2, D1]}], N <- Ns],
    [] = group(F, labelled, [A1, A2, B1, B2, C1]),
    [] = group(F, others, [C1, C2, D1, D2]),
    Zones = [{A1, west}, {A2, west}, {B1, west}, {B2, west}, {C1, east}, {C2, east}, {D1, east}],
    await(derived, fun() ->
        {ok, #{missing := Missing, tree := Tree, levels := Levels, unlabelled := Unlabelled}} =
            on(F, A1, fun() -> sderl_dist:derive(all) end),
        {ok, T} = sderl_dist_tree:parse(Tree),
        Seen = #{B => sderl_dist_tree:distance(A1, B, T) || B <- Nodes},
        Expected = #{B => case lists:keyfind(B, 1, Zones) of
            {A1, _} -> +0.0;
            {A2, _} -> 0.25;
            {_, west} -> 0.5;
            _ -> 1.0
        end || B <- Nodes},
        {Missing, Levels, Unlabelled, Seen} =:=
        {[], [{host, 0.25}, {zone, 0.5}], #{zone => [D2]}, Expected}
            orelse {Missing, Levels, Unlabelled, Seen}
    end),
    [sderl_ct:delete(F, G, N) || {G, N} <- [{labelled, A1}, {others, C1}]].

%% A node that hangs and one that is gone cost at most the time limit and are told; the others have
%% their places.
missing(Config) ->
    {F, [A1, A2, B1, B2, C1, C2 | _]} = {proplists:get_value(fleet, Config),
                                         proplists:get_value(nodes, Config)},
    [] = group(F, some, [A1, A2, B1, B2, C1, C2]),
    ok = sderl_fleet:suspend(F, B2),
    ok = sderl_fleet:kill(F, C2),
    await(noticed, fun() -> not sderl_ct:linked(F, A1, C2) end),
    {ok, M} = on(F, A1, fun() ->
        sderl_dist:measure(own, #{timeout_ms => 15_000, spread_ms => 100, resolution_us => 2000})
    end),
    ok = sderl_fleet:resume(F, B2),
    [{B2, no_answer}, {C2, Why}] = lists:sort(maps:get(missing, M)),
    %% While somebody tries to connect to it, it is as good as linked.
    ?assert(Why =:= not_linked orelse Why =:= no_answer),
    ?assertEqual(lists:sort([A1, A2, B1, C1]), maps:get(nodes, M)),
    ?assert(maps:get(took_ms, M) >= 15_000),
    sderl_ct:delete(F, some, A1).

%% What is no message of ours, or of a version to come, is ignored and counted.
unknown(Config) ->
    {F, [Node | _]} = {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)},
    Spec = #{groups => own, asked => [], left_ms => 100, peers => 1, batches => 1, batch => 1,
             window => 1, spread_ms => 1},
    on(F, Node, fun() ->
        Server = whereis(sderl_dist_probe),
        Before = proplists:get_value(sderl_dist_probe, sderl_refused:messages(), 0),
        Unknown = [foo,
                   {sderl_dist, 2, ping, x, self()},
                   {sderl_dist, 1, ping, x, foo},
                   {sderl_dist, 1, survey, x, self(), foo},
                   {sderl_dist, 1, survey, x, self(), Spec#{batch := 1_000_000}},
                   {sderl_dist, 1, report, x, #{}}],
        [Server ! Message || Message <- Unknown],
        Server ! {sderl_dist, 1, ping, last, self()},
        receive {sderl_dist, 1, pong, last, Node} -> ok end,
        Server = whereis(sderl_dist_probe),
        6 = proplists:get_value(sderl_dist_probe, sderl_refused:messages()) - Before,
        %% A survey that is known is not begun again.
        [Server ! {sderl_dist, 1, survey, again, self(), Spec} || _ <- [1, 2, 3]],
        receive {sderl_dist, 1, report, again, #{node := Node}} -> ok end,
        Server ! {sderl_dist, 1, done, again},
        receive {sderl_dist, 1, report, again, #{node := Node}} -> error(twice) after 0 -> ok end
    end).

not_running(Config) ->
    {F, [_, Node | _]} = {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)},
    {error, not_running} = on(F, Node, fun() ->
        ok = application:stop(sderl),
        {error, not_running} = sderl_dist:derive(own),
        Answer = sderl_dist:measure(own),
        %% What there is of distances does not depend on it; the configuration may have it, and must
        %% be right then.
        ok = sderl_dist:set({network, [{node, a}, {node, b}]}),
        ok = application:set_env(sderl, distances, "/no/such.config"),
        {error, {{bad_config, [sderl, distances], _, _}, _}} =
            start_error(application:start(sderl)),
        1.0 = sderl_dist:distance(a, b),
        ok = application:set_env(sderl, distances, {network, [{network, [{node, a}, {node, b}]}]}),
        ok = application:start(sderl),
        0.5 = sderl_dist:distance(a, b),
        Answer
    end).

start_error({error, {Why, _}}) when element(1, Why) =/= bad_config -> start_error({error, Why});
start_error(Error) -> Error.

%% ---------------------------------------------------------------- helpers

%% A busy machine may spoil every batch of a pair; it is measured again then.
measured_as_configured(Config, Node, Scope) ->
    F = proplists:get_value(fleet, Config),
    {ok, Configured} = sderl_dist_tree:parse(proplists:get_value(configured, Config)),
    await({tree, Scope}, fun() ->
        {ok, M} = on(F, Node, fun() -> sderl_dist:measure(Scope, #{resolution_us => 2000}) end),
        {ok, Tree} = sderl_dist_tree:parse(maps:get(tree, M)),
        Nodes = sderl_dist_tree:nodes(Configured),
        All = fun(T) -> [sderl_dist_tree:distance(A, B, T) || A <- Nodes, B <- Nodes] end,
        case All(Tree) =:= All(Configured) of
            true -> self() ! {found, M}, true;
            false -> maps:with([tree, missing, levels, cost], M)
        end
    end),
    receive {found, M} -> M end.

unlink_all(F, Nodes) ->
    await(no_links, fun() ->
        [on(F, N, fun() -> [erlang:disconnect_node(M) || M <- nodes()] end) || N <- Nodes],
        lists:all(fun({_, Links}) -> Links =:= [] end, links(F, Nodes))
    end).

links(F, Nodes) -> [{N, lists:sort(on(F, N, fun() -> nodes() end))} || N <- Nodes].
