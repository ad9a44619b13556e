%% SPDX-License-Identifier: Apache-2.0
-module(sderl_discover_SUITE).

%% What docs/release.md says of nodes with new names, as far as one machine shows it: nodes named
%% after their addresses, all on one port, with no epmd, find each other by a name that stands for
%% all addresses (docs/examples/realtime/src/rt_discover.erl).

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(HOST, "rt-nodes").
-define(GROUP, {region, eu}).
-define(SOON, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [names, no_epmd, finds, enters, connects, host_names, gateways, says_goodbye, forgotten].

init_per_suite(Config) ->
    Sources = filename:join([code:lib_dir(sderl), "src", "..", "..", "..", "docs", "examples",
                             "realtime"]),
    Port = sderl_fleet_ct:free_port([address(I) || I <- lists:seq(2, 5)], 5),
    case {filelib:is_dir(Sources), Port} of
        {false, _} -> {skip, "the example is not in this tree"};
        {_, none} -> {skip, "this machine has one loopback address"};
        {true, _} ->
            Ebin = filename:absname("discover_ebin"),
            ok = filelib:ensure_path(Ebin),
            [{ok, _} = compile:file(F, [{outdir, Ebin}, report])
             || F <- filelib:wildcard(filename:join([Sources, "src", "*.erl"]))],
            {ok, _} = file:copy(filename:join([Sources, "src", "realtime.app.src"]),
                                filename:join(Ebin, "realtime.app")),
            true = code:add_pathz(Ebin),
            [{ebin, Ebin}, {port, Port} | Config]
    end.

end_per_suite(Config) ->
    _ = code:del_path(proplists:get_value(ebin, Config, "")),
    ok.

%% ---------------------------------------------------------------- nodes

address(I) -> {127, 0, 0, I}.

host(I) -> inet:ntoa(address(I)).

n(I) -> list_to_atom("rt@" ++ host(I)).

%% A node at address `I`, with these launch groups, to which the name stands for the addresses of
%% `Known`.
start(Config, I, Known, Groups, Env) ->
    Peer = start(Config, I, host(I), Known, [{s_groups, Groups} | Env],
                 [{discover, [#{hosts => [?HOST], base => "rt", groups => [?GROUP]}]}]),
    {ok, _} = call(Peer, application, ensure_all_started, [realtime]),
    Peer.

start(Config, I, Host, Known, Env, Rt) ->
    Inetrc = filename:absname("inetrc" ++ integer_to_list(I)),
    ok = file:write_file(Inetrc, [io_lib:format("{host, ~p, ~p}.~n", [address(K), Names])
                                  || {K, Names} <- called(Known)] ++ "{lookup, [file]}.\n"),
    Port = integer_to_list(proplists:get_value(port, Config)),
    {ok, Peer, _} = peer:start(#{
        name => "rt", host => Host, longnames => true, connection => standard_io,
        wait_boot => ?SOON,
        %% Should anybody ask an epmd, there is none.
        env => [{"ERL_EPMD_PORT", Port}, {"ERL_EPMD_ADDRESS", "127.0.0.1"}],
        args => ["-connect_all", "false", "-setcookie", "discover", "-start_epmd", "false",
                 "-erl_epmd_port", Port,
                 "-kernel", "inet_dist_use_interface",
                 lists:flatten(io_lib:format("~w", [address(I)])),
                 "-kernel", "inetrc", lists:flatten(io_lib:format("~p", [Inetrc])),
                 "-kernel", "logger_level", "error",
                 "-pa", proplists:get_value(ebin, Config), filename:dirname(code:which(s_group)),
                 filename:dirname(code:which(?MODULE))]
    }),
    [ok = call(Peer, application, set_env, [sderl, K, V, [{persistent, true}]])
     || {K, V} <- [{tick_ms, 500}, {set_aside_ms, 15_000} | Env]],
    [ok = call(Peer, application, set_env, [realtime, K, V, [{persistent, true}]])
     || {K, V} <- [{leave_on_stop, true}, {discover_ms, 300} | Rt]],
    Peer.

%% What addresses are called.
called(Known) -> [case K of {_, _} -> K; _ -> {K, [?HOST, stays(K)]} end || K <- Known].

%% As a StatefulSet names its pods.
stays(I) -> lists:concat(["rt-", I, ".", ?HOST, ".local"]).

call(Peer, M, F, A) -> peer:call(Peer, M, F, A, ?SOON).

%% Nodes each of which has the group with itself alone, and what becomes of them.
with(Config, Is, Env, Fun) ->
    Peers = [start(Config, I, Is, [{?GROUP, normal, [n(I)]}], Env) || I <- Is],
    try
        one(Peers, Is),
        Fun(Peers)
    after [peer:stop(P) || P <- Peers, is_process_alive(P)]
    end.

%% They are one group.
one(Peers, Is) -> are_one(Peers, [n(I) || I <- Is]).

are_one(Peers, Nodes) ->
    [await({one, P}, fun() ->
        case call(P, sderl_ct, view, [?GROUP]) of
            #{role := ok, live := Nodes, members := Nodes} -> true;
            Other -> Other
        end
     end) || P <- Peers].

await(What, Fun) -> sderl_ct:await(What, Fun).

%% ---------------------------------------------------------------- cases

names(_) ->
    ?assertEqual(['rt@10.0.0.7', 'rt@10.0.0.70'],
                 rt_discover:names("rt", [{10,0,0,70}, {10,0,0,7}, {10,0,0,7}])),
    ?assertEqual([], rt_discover:find(#{hosts => ["no such name"], base => "rt"})),
    ?assertEqual(['rt@127.0.0.9'],
                 rt_discover:find(#{hosts => ["127.0.0.9", "no such name"], base => "rt"})).

%% No program listens where epmd would, a group forms, and a name is found.
no_epmd(Config) ->
    with(Config, [2, 3, 4], [], fun([P2, _, P4]) ->
        ?assertEqual({error, address}, call(P2, erl_epmd, names, [])),
        Pid = call(P4, erlang, whereis, [rt_local]),
        yes = call(P4, s_group, register_name, [?GROUP, here, Pid]),
        ?assertEqual(Pid, call(P2, s_group, whereis_name, [?GROUP, here])),
        ?assertEqual(n(4), call(P2, erlang, node, [Pid])),
        %% A shell from outside finds its way too; it listens nowhere.
        Port = integer_to_list(proplists:get_value(port, Config)),
        {ok, Shell, _} = peer:start(#{name => "shell",
                                      host => host(5),
                                      longnames => true,
                                      connection => standard_io, wait_boot => ?SOON,
                                      args => ["-hidden", "-connect_all", "false", "-setcookie",
                                               "discover", "-start_epmd", "false", "-erl_epmd_port",
                                               Port, "-dist_listen", "false"]}),
        ?assertEqual([n(2), n(3), n(4)],
                     call(Shell, erpc, call, [n(3), s_group, own_nodes, [?GROUP]])),
        peer:stop(Shell)
    end).

%% Who sees whom makes no difference: 3 sees 2, 4 sees 3, and nobody sees 4.
finds(Config) ->
    Alone = [{?GROUP, normal, [n(I)]} || I <- [2, 3, 4]],
    Peers = [start(Config, I, Known, [G], [])
             || {I, Known, G} <- lists:zip3([2, 3, 4], [[2], [2, 3], [3]], Alone)],
    try one(Peers, [2, 3, 4])
    after [peer:stop(P) || P <- Peers]
    end.

%% One that has no group enters that of the others through whoever answers; where nobody does it
%% goes on looking.
enters(Config) ->
    P4 = start(Config, 4, [2, 3], [], []),
    ?assertEqual(undefined, call(P4, s_group, s_groups, [])),
    %% (It may have entered before anybody sees the other alone.)
    P3 = start(Config, 3, [3], [{?GROUP, normal, [n(3)]}], []),
    try one([P3, P4], [3, 4])
    after [peer:stop(P) || P <- [P3, P4]]
    end.

%% What discovery libraries call, on nodes each of which has the group to itself, or has none.
connects(Config) ->
    Peers = [P2, P3, P4] = [start(Config, I, host(I), [],
                                  [{s_groups, [{?GROUP, normal, [n(I)]} || I < 4]}], [])
                            || I <- [2, 3, 4]],
    try
        [{ok, _} = call(P, application, ensure_all_started, [sderl]) || P <- Peers],
        ?assertEqual(true, call(P2, s_group, connect, [?GROUP, n(3)])),
        are_one([P2, P3], [n(2), n(3)]),
        ?assertEqual(true, call(P3, s_group, connect, [?GROUP, n(4)])),
        ?assertEqual(true, call(P4, s_group, connect, [?GROUP, n(2)])),
        are_one(Peers, [n(2), n(3), n(4)]),
        ?assertEqual(false, call(P2, s_group, connect, [?GROUP, n(5)]))
    after [peer:stop(P) || P <- Peers]
    end.

%% Nodes named after hosts, all of them listed, some not there yet.
host_names(Config) ->
    Nodes = [list_to_atom("rt@" ++ stays(I)) || I <- [2, 3, 4]],
    Start = fun(I, Await) ->
        P = start(Config, I, stays(I), [2, 3, 4],
                  [{s_groups, [{?GROUP, normal, Nodes}]}, {await, Await}], []),
        {ok, _} = call(P, application, ensure_all_started, [sderl]),
        P
    end,
    %% Each waits for those who are there, as pods that are started one after the other do.
    Peers = [P2, P3, P4] = [Start(I, {all, ?SOON}) || I <- [2, 3, 4]],
    try
        are_one(Peers, Nodes),
        %% One that has left stays out, whatever its file says.
        ok = call(P4, s_group, leave, [?GROUP]),
        peer:stop(P4),
        are_one([P2, P3], lists:droplast(Nodes)),
        Again = Start(4, false),
        try
            await(out, fun() ->
                case call(Again, s_group, own_s_groups, []) of [] -> true; Other -> Other end
            end)
        after
            peer:stop(Again)
        end,
        are_one([P2, P3], lists:droplast(Nodes))
    after
        [peer:stop(P) || P <- Peers, is_process_alive(P)]
    end.

%% Two regions: 2 and 4, and 3. The names of the regions and of their gateways stand for other
%% addresses each.
gateways(Config) ->
    Names = [{2, ["eu", "gateways"]}, {3, ["us", "gateways"]}, {4, ["eu"]}],
    Peers = [P2, P3, P4] = [begin
        Groups = [{region, Region} | [backbone || I < 4]],
        Places = [#{groups => [G], base => "rt",
                    hosts => [case G of backbone -> "gateways"; _ -> atom_to_list(Region) end]}
                  || G <- Groups],
        P = start(Config, I, host(I), Names, [{s_groups, [{G, normal, [n(I)]} || G <- Groups]}],
                  [{discover, Places}]),
        {ok, _} = call(P, application, ensure_all_started, [realtime]),
        P
    end || {I, Region} <- [{2, eu}, {3, us}, {4, eu}]],
    try
        are_one([P2, P4], [n(2), n(4)]),
        [await({backbone, P}, fun() -> [n(2), n(3)] =:= call(P, s_group, own_nodes, [backbone]) end)
         || P <- [P2, P3]],
        [await({regions, P},
               fun() -> [{region, eu}, {region, us}] =:= lists:sort(call(P, rt, regions, [])) end)
         || P <- Peers],
        %% From the one end to the other.
        ?assertMatch({ok, {{region, us}, _}}, call(P4, rt, tenant, [{us, acme}])),
        ?assertEqual({ok, n(3)}, call(P4, rt, call, [{us, acme}, where])),
        ?assertEqual([n(2)], call(P4, erlang, nodes, []))
    after
        [peer:stop(P) || P <- Peers]
    end.

%% SIGTERM, as Kubernetes sends it: the node leaves before it ends.
says_goodbye(Config) ->
    with(Config, [2, 3, 4], [], fun([P2, P3, P4]) ->
        %% The others have seen it: they do not add it again while DNS shows it.
        [await({seen, P}, fun() ->
            lists:member(n(4), maps:get(?GROUP, element(2, call(P, sys, get_state, [rt_discover]))))
        end) || P <- [P2, P3]],
        Os = call(P4, os, getpid, []),
        Ref = monitor(process, P4),
        "" = os:cmd("kill -TERM " ++ Os),
        receive {'DOWN', Ref, process, _, _} -> ok end,
        one([P2, P3], [2, 3])
    end).

%% One that is killed is taken out after a while.
forgotten(Config) ->
    with(Config, [2, 3, 4], [{forget_down_after, 300}], fun([P2, P3, P4]) ->
        Os = call(P4, os, getpid, []),
        "" = os:cmd("kill -KILL " ++ Os),
        one([P2, P3], [2, 3])
    end).
