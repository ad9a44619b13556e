%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_SUITE).

%% The shadow network on real nodes: it follows groups and nodes, and lives through the deaths of
%% its own parts.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(SOON, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [follows, takes_over, adopts, stock, strangers, configured].

%% ---------------------------------------------------------------- helpers

with(Families, Groups, Fun) ->
    {ok, Fleet} = sderl_fleet:start(#{families => Families, s_groups => Groups}),
    try
        Fun(Fleet, sderl_fleet:nodes(Fleet))
    after
        sderl_fleet:stop(Fleet)
    end.

workers(N) -> #{name => w, count => N, apps => [sderl]}.
monitors(N) -> #{name => m, count => N, hidden => true}.

watch(Fleet, Nodes, Config) ->
    lists:foreach(fun(M) ->
        ok = call(Fleet, M, application, set_env,
                  [sderl_mon, config,
                   maps:merge(#{monitors => Nodes, interval_ms => 250}, Config)]),
        {ok, _} = call(Fleet, M, application, ensure_all_started, [sderl_mon])
    end, Nodes).

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, ?SOON).

await(Fun) -> sderl_ct:await(condition, Fun, ?SOON).

topology(Fleet, M) -> call(Fleet, M, sderl_mon_hub, now_topology, []).

id(Node) -> atom_to_binary(Node).

%% What both hubs show of groups and free nodes, by ids.
shows(Fleet, Monitors, Groups, Free) ->
    Want = {#{G => lists:sort([id(N) || N <- Ns]) || G := Ns <- Groups},
            lists:sort([id(N) || N <- Free])},
    await(fun() ->
        case [shown(topology(Fleet, M)) || M <- Monitors] of
            [Want | Rest] -> Rest =:= [Want || _ <- Rest] orelse Rest;
            Other -> Other
        end
    end).

shown(#{nodes := Nodes, groups := Groups}) ->
    {#{G => Ns || G := #{nodes := Ns} <- Groups},
     lists:sort([N || N := #{groups := [], status := up} <- Nodes])}.

status(Fleet, M, Node) ->
    case topology(Fleet, M) of
        #{nodes := #{} = Nodes} -> maps:get(status, maps:get(id(Node), Nodes, #{status => none}));
        Other -> Other
    end.

%% By scope, where an agent runs, and its pid.
agents(Fleet, M) ->
    lists:sort([
        {Scope, Pid}
     || Pid <- call(Fleet, M, sderl_mon_agent_sup, agents, []),
        {ok, #{scope := Scope}} <- [call(Fleet, M, sderl_mon_agent, orders, [Pid])]
    ]).

scopes(Fleet, M) -> [Scope || {Scope, _} <- agents(Fleet, M)].

%% A frame after this moment has numbers of these nodes and no others.
told(Fleet, M, Nodes) ->
    Since = erlang:system_time(millisecond) + 600,
    Want = lists:sort([id(N) || N <- Nodes]),
    await(fun() ->
        case call(Fleet, M, sderl_mon_hub, at, [live, erlang:system_time(millisecond)]) of
            {ok, #{frame := #{t := T, nodes := Seen}}} when T > Since ->
                lists:sort(maps:keys(Seen)) =:= Want orelse Seen;
            Other -> Other
        end
    end).

%% ---------------------------------------------------------------- cases

%% Groups and nodes come, change and go, and so do the agents; nothing of it reaches the cluster.
follows(_) ->
    with([workers(5), monitors(2)], [{g1, normal, [{w, [1, 2]}]}, {g2, normal, [{w, [2, 3]}]}],
         fun(Fleet, [W1, W2, W3, W4, W5, M1, M2] = All) ->
             Ms = [M1, M2],
             watch(Fleet, Ms, #{seeds => [W1, W4, W5]}),
             shows(Fleet, Ms, #{<<"g1">> => [W1, W2], <<"g2">> => [W2, W3]}, [W4, W5]),
             %% Each node has one agent, and each group and free node.
             await(fun() ->
                 Scopes = lists:sort(scopes(Fleet, M1) ++ scopes(Fleet, M2)),
                 Scopes =:= [{free, W4}, {free, W5}, {group, g1}, {group, g2}] orelse Scopes
             end),
             told(Fleet, M2, [W1, W2, W3, W4, W5]),
             %% Created, with a name that is no atom, changed, deleted.
             {ok, _, _} = call(Fleet, W1, s_group, add_nodes, [g1, [W4]]),
             {ok, _, _} = call(Fleet, W5, s_group, new_s_group, [{"g", 3}, [W5, W4]]),
             shows(Fleet, Ms,
                   #{<<"g1">> => [W1, W2, W4], <<"g2">> => [W2, W3], <<"{\"g\",3}">> => [W4, W5]},
                   []),
             ok = call(Fleet, W2, s_group, delete_s_group, [g2]),
             ok = call(Fleet, W1, s_group, remove_nodes, [g1, [W2]]),
             shows(Fleet, Ms, #{<<"g1">> => [W1, W4], <<"{\"g\",3}">> => [W4, W5]}, [W2, W3]),
             %% One goes and comes back; one stands still, and the others go on.
             ok = sderl_fleet:kill(Fleet, W3),
             await(fun() -> [status(Fleet, M, W3) || M <- Ms] =:= [down, down] end),
             ok = sderl_fleet:suspend(Fleet, W2),
             await(fun() -> [status(Fleet, M, W2) || M <- Ms] =:= [unreachable, unreachable] end),
             told(Fleet, M1, [W1, W4, W5]),
             {ok, W3} = sderl_fleet:restart(Fleet, W3),
             ok = sderl_fleet:resume(Fleet, W2),
             await(fun() -> [status(Fleet, M1, W) || W <- [W2, W3]] =:= [up, up] end),
             %% Monitoring nodes are known by hidden links alone, and are in no group.
             [?assertEqual(
                 [], [N || N <- call(Fleet, W, erlang, nodes, [visible]), lists:member(N, Ms)]
             ) || W <- All -- Ms],
             {ok, Names} = call(Fleet, M1, sderl_mon, names, [<<"g1">>, #{limit => 10}]),
             ?assertMatch(#{total := 0}, Names),
             ?assertEqual({error, {unknown_group, <<"nobody">>}},
                          call(Fleet, M1, sderl_mon, names, [<<"nobody">>, #{}])),
             ?assertEqual({error, {unknown_node, <<"no@body">>}},
                          call(Fleet, M1, sderl_mon, process, [<<"no@body">>, <<"<0.1.0>">>]))
         end).

%% kill -9 of the master's node, and one that stands still: the other runs all agents; when it is
%% back the work is shared.
takes_over(_) ->
    with([workers(4), monitors(2)], [{g1, normal, [{w, [1, 2]}]}, {g2, normal, [{w, [3, 4]}]}],
         fun(Fleet, [W1, W2, W3, W4, M1, M2]) ->
             Ms = [M1, M2],
             Ws = [W1, W2, W3, W4],
             Config = #{seeds => [W1, W3], monitors => Ms},
             watch(Fleet, Ms, Config),
             shows(Fleet, Ms, #{<<"g1">> => [W1, W2], <<"g2">> => [W3, W4]}, []),
             shared(Fleet, Ms),
             {From, _} = range(Fleet, M2),
             ok = sderl_fleet:kill(Fleet, M1),
             all_at(Fleet, M2, Ws),
             {ok, _, _} = call(Fleet, W1, s_group, new_s_group, [g3, [W1, W4]]),
             shows(Fleet, [M2], #{<<"g1">> => [W1, W2], <<"g2">> => [W3, W4], <<"g3">> => [W1, W4]},
                   []),
             ok = call(Fleet, W1, s_group, delete_s_group, [g3]),
             {ok, M1} = sderl_fleet:restart(Fleet, M1),
             watch(Fleet, [M1], Config),
             %% It has the history of the other.
             await(fun() ->
                 case range(Fleet, M1) of
                     {Its, _} when Its > 0, Its =< From -> true;
                     Other -> {From, Other}
                 end
             end),
             {ok, Events} = call(Fleet, M1, sderl_mon_hub, events,
                                 [live, #{kinds => [monitor_down]}]),
             ?assertMatch([#{node := _} | _], Events),
             await(fun() -> leader(Fleet, M2) =:= M1 end),
             shared(Fleet, Ms),
             ok = sderl_fleet:suspend(Fleet, M1),
             all_at(Fleet, M2, Ws),
             ok = sderl_fleet:resume(Fleet, M1),
             await(fun() -> {leader(Fleet, M1), leader(Fleet, M2)} =:= {M1, M1} end),
             shared(Fleet, Ms),
             [told(Fleet, M, Ws) || M <- Ms]
         end).

range(Fleet, M) -> call(Fleet, M, sderl_mon_hub, range, [live]).

leader(Fleet, M) -> maps:get(master, call(Fleet, M, sderl_mon, status, [])).

%% Both groups have one agent each. (The load is even enough if one node has both.)
shared(Fleet, Ms) ->
    await(fun() ->
        Scopes = [S || M <- Ms, S <- scopes(Fleet, M)],
        lists:sort(Scopes) =:= [{group, g1}, {group, g2}] orelse Scopes
    end).

all_at(Fleet, M, Ws) ->
    await(fun() ->
        scopes(Fleet, M) =:= [{group, g1}, {group, g2}] andalso leader(Fleet, M) =:= M
    end),
    told(Fleet, M, Ws).

%% A master that dies finds its agents again; an agent that dies is started again; so is a hub, and
%% it is told at once.
adopts(_) ->
    with([workers(3), monitors(1)], [{g1, normal, [{w, [1, 2]}]}], fun(Fleet, [W1, W2, W3, M]) ->
        watch(Fleet, [M], #{seeds => [W1, W3]}),
        shows(Fleet, [M], #{<<"g1">> => [W1, W2]}, [W3]),
        Agents = agents(Fleet, M),
        true = call(Fleet, M, erlang, exit,
                    [call(Fleet, M, erlang, whereis, [sderl_mon_master]), kill]),
        await(fun() -> leader(Fleet, M) =:= M end),
        shows(Fleet, [M], #{<<"g1">> => [W1, W2]}, [W3]),
        ?assertEqual(Agents, agents(Fleet, M)),
        {ok, _, _} = call(Fleet, W3, s_group, new_s_group, [g2, [W3, W2]]),
        shows(Fleet, [M], #{<<"g1">> => [W1, W2], <<"g2">> => [W2, W3]}, []),
        [{_, Agent} | _] = agents(Fleet, M),
        true = call(Fleet, M, erlang, exit, [Agent, kill]),
        await(fun() -> length(agents(Fleet, M)) =:= 2 end),
        true = call(Fleet, M, erlang, exit,
                    [call(Fleet, M, erlang, whereis, [sderl_mon_hub]), kill]),
        shows(Fleet, [M], #{<<"g1">> => [W1, W2], <<"g2">> => [W2, W3]}, []),
        told(Fleet, M, [W1, W2, W3])
    end).

%% Nodes of a full mesh that have none of our code: found from one, read from here; and with a probe
%% if that is allowed.
stock(_) ->
    Stock = #{name => s, count => 3, connect_all => true, paths => []},
    with([Stock, monitors(1)], [], fun(Fleet, [S1, S2, S3, M]) ->
        Ss = [S1, S2, S3],
        [true = call(Fleet, S, net_kernel, connect_node, [S1]) || S <- [S2, S3]],
        watch(Fleet, [M], #{seeds => [S2], interval_ms => 200}),
        shows(Fleet, [M], #{}, Ss),
        told(Fleet, M, Ss),
        ?assertMatch(#{nodes := #{}}, topology(Fleet, M)),
        Sources = fun() ->
            #{nodes := Nodes} = topology(Fleet, M),
            [S || _ := #{source := S} <- Nodes]
        end,
        ?assertEqual([stock, stock, stock], Sources()),
        [?assertEqual(non_existing, call(Fleet, S, code, which, [sderl_mon_probe])) || S <- Ss],
        ok = call(Fleet, M, sderl_mon, set, [#{inject => true}]),
        await(fun() -> Sources() =:= [probe, probe, probe] orelse Sources() end),
        told(Fleet, M, Ss),
        %% And without again: the probes end.
        Probes = fun() -> [call(Fleet, S, erlang, whereis, [sderl_mon_probe]) || S <- Ss] end,
        ok = call(Fleet, M, sderl_mon, set, [#{probe => stock}]),
        await(fun() ->
            {Sources(), Probes()} =:= {[stock, stock, stock], [undefined, undefined, undefined]}
                orelse {Sources(), Probes()}
        end),
        told(Fleet, M, Ss),
        ok = call(Fleet, M, sderl_mon, set, [#{probe => auto}]),
        await(fun() -> Sources() =:= [probe, probe, probe] orelse Sources() end),
        %% It leaves nothing behind.
        ok = call(Fleet, M, application, stop, [sderl_mon]),
        await(fun() -> Probes() =:= [undefined, undefined, undefined] end),
        ok = sderl_fleet:stop_node(Fleet, M),
        [await(fun() ->
            lists:sort(Ss -- [S]) =:= lists:sort(call(Fleet, S, erlang, nodes, [connected]))
        end) || S <- Ss]
    end).

%% Two that watch one cluster and do not know of each other: the later one leaves the probes alone,
%% and has them when the first has gone.
strangers(_) ->
    with([workers(2), monitors(2)], [{g1, normal, [{w, [1, 2]}]}], fun(Fleet, [W1, W2, M1, M2]) ->
        Sources = fun(M) ->
            #{nodes := Nodes} = topology(Fleet, M),
            [S || _ := #{status := up, source := S} <- Nodes]
        end,
        watch(Fleet, [M1], #{seeds => [W1]}),
        await(fun() -> Sources(M1) =:= [probe, probe] end),
        watch(Fleet, [M2], #{seeds => [W1], interval_ms => 100}),
        %% (On a busy machine a probe may not answer the second one at first.)
        await(fun() ->
            #{nodes := Nodes} = topology(Fleet, M2),
            [ok, ok] =:= [ok || _ := #{status := up, source := stock,
                                       why := <<"the probe tells other monitoring nodes",
                                                _/binary>>} <- Nodes] orelse Nodes
        end),
        told(Fleet, M2, [W1, W2]),
        await(fun() -> Sources(M1) =:= [probe, probe] orelse Sources(M1) end),
        ok = call(Fleet, M1, application, stop, [sderl_mon]),
        await(fun() -> Sources(M2) =:= [probe, probe] end),
        told(Fleet, M2, [W1, W2])
    end).

%% What is set at run time is checked, told to the other monitoring nodes, and there again after a
%% restart.
configured(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "state"),
    with([workers(2), monitors(2)], [], fun(Fleet, [W1, W2, M1, M2]) ->
        Ms = [M1, M2],
        Given = #{seeds => [W1], monitors => Ms, state_dir => Dir},
        watch(Fleet, [M1], Given),
        watch(Fleet, [M2], maps:remove(state_dir, Given)),
        await(fun() -> leader(Fleet, M2) =:= M1 end),
        ?assertEqual({error, {bad_config, [interval_ms], 0, interval}},
                     call(Fleet, M2, sderl_mon, set, [#{interval_ms => 0}])),
        ok = call(Fleet, M2, sderl_mon, set, [#{seeds => [W1, W2], interval_ms => 500}]),
        shows(Fleet, Ms, #{}, [W1, W2]),
        await(fun() -> maps:get(interval_ms, call(Fleet, M1, sderl_mon, config, [])) =:= 500 end),
        ok = sderl_fleet:kill(Fleet, M2),
        {ok, M1} = sderl_fleet:restart(Fleet, M1),
        watch(Fleet, [M1], Given),
        ?assertMatch(#{seeds := [W1, W2], interval_ms := 500},
                     call(Fleet, M1, sderl_mon, config, [])),
        shows(Fleet, [M1], #{}, [W1, W2])
    end).
