%% SPDX-License-Identifier: Apache-2.0
-module(sderl_compat_SUITE).

%% What docs/compatibility.md says was seen, seen again: how parts of OTP that were made for a full
%% mesh, and nodes without the library, get on with nodes in s_groups.
%%
%% n1 and n2 are in the group left, n2 and n3 in right; n1 and n3 have no link.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-define(CALL, 90_000).
-define(SOON, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [pg_default_scope, pg_of_a_group, global_names, stock_node, stock_node_visible,
     mnesia_in_a_group, mnesia_opens_links, distributed_application, rpc_opens_a_link,
     hidden_member, tools, tls].

%% ---------------------------------------------------------------- pg

%% Each node sees the members on the nodes it has a link to: the gateway all, the others not each
%% other.
pg_default_scope(_) ->
    chain(fun(F, [A, B, C] = Nodes) ->
        [ok = call(F, N, ?MODULE, pg_scope, []) || N <- Nodes],
        Pids = [call(F, N, ?MODULE, pg_member, []) || N <- Nodes],
        ?assertEqual([A, B, C], [node(P) || P <- Pids]),
        Members = fun(N) -> lists:sort([node(P) || P <- call(F, N, pg, get_members, [demo])]) end,
        await(fun() -> Members(B) =:= [A, B, C] end),
        await(fun() -> Members(A) =:= [A, B] end),
        await(fun() -> Members(C) =:= [B, C] end)
    end).

pg_of_a_group(_) ->
    chain(fun(F, [A, B, C]) ->
        [ok = call(F, N, ?MODULE, join, [G])
         || {N, G} <- [{A, left}, {B, left}, {B, right}, {C, right}]],
        Members = fun(N, G) ->
            lists:sort([node(P) || P <- call(F, N, s_group, members, [G, demo])])
        end,
        [await(fun() -> Members(N, left) =:= [A, B] end) || N <- [A, B]],
        [await(fun() -> Members(N, right) =:= [B, C] end) || N <- [B, C]]
    end).

%% ---------------------------------------------------------------- global

%% Names stay on their node, a singleton runs once a node, locks on given nodes work, sync hangs.
global_names(_) ->
    chain(fun(F, [A, B, C]) ->
        ?assertEqual(yes, call(F, A, ?MODULE, global_name, [x])),
        ?assertMatch([P, undefined, undefined] when is_pid(P),
                     [call(F, N, global, whereis_name, [x]) || N <- [A, B, C]]),
        ?assertEqual(yes, call(F, B, ?MODULE, global_name, [x])),
        ?assertEqual(true, call(F, A, global, set_lock, [{lock, me}, [A, B], 1])),
        ?assertEqual(hangs, sync(F, A))
    end).

%% ---------------------------------------------------------------- nodes without the library

%% s_group:connect/1 links hidden: the mesh of stock nodes is not disturbed.
stock_node(_) ->
    with(#{families => [sd(1), #{name => stock, count => 2, connect_all => true}]},
         fun(F, [A, S1, S2]) ->
             true = call(F, S1, net_kernel, connect_node, [S2]),
             ?assertEqual(true, call(F, A, s_group, connect, [S1])),
             ?assertEqual([], call(F, A, erlang, nodes, [])),
             ?assertEqual([S1], call(F, A, erlang, nodes, [connected])),
             ?assertEqual(ok, call(F, S1, global, sync, [])),
             ?assertEqual(ok, call(F, A, ?MODULE, echo, [S1])),
             ?assertEqual(yes, call(F, S1, ?MODULE, global_name, [y])),
             await(fun() -> is_pid(call(F, S2, global, whereis_name, [y])) end),
             ?assertEqual(undefined, call(F, A, global, whereis_name, [y])),
             {ok, g, [A]} = call(F, A, s_group, new_s_group, [g, [A, S1]]),
             ?assertMatch([{g, S1, application_not_running}],
                          proplists:get_value(left_out, call(F, A, s_group, info, []))),
             ?assertEqual(true, call(F, A, erlang, disconnect_node, [S1])),
             ?assertEqual([S2], call(F, S1, erlang, nodes, []))
         end).

%% A visible link makes global:sync/0 hang on the stock node as long as it lasts, and nothing else.
stock_node_visible(_) ->
    with(#{families => [sd(1), #{name => stock, count => 2, connect_all => true}]},
         fun(F, [A, S1, S2]) ->
             true = call(F, S1, net_kernel, connect_node, [S2]),
             true = call(F, A, net_kernel, connect_node, [S1]),
             ?assertEqual(hangs, sync(F, S1)),
             ?assertEqual(ok, call(F, S2, global, sync, [])),
             ?assertEqual(yes, call(F, S1, ?MODULE, global_name, [y])),
             await(fun() -> is_pid(call(F, S2, global, whereis_name, [y])) end),
             ?assertEqual([A], call(F, S1, erlang, nodes, []) -- [S2]),
             ?assertEqual([S1], call(F, S2, erlang, nodes, [])),
             true = call(F, A, erlang, disconnect_node, [S1]),
             await(fun() -> sync(F, S1) =:= ok end)
         end).

%% ---------------------------------------------------------------- Mnesia

mnesia_in_a_group(Config) ->
    mnesia(Config, fun(F, [A, B, _]) ->
        ?assertEqual([], call(F, A, erlang, nodes, []) -- [B])
    end).

%% It connects to its nodes by itself, wherever they are.
mnesia_opens_links(Config) ->
    mnesia(Config, fun(F, [A, B, C]) ->
        ok = call(F, C, mnesia, start, []),
        ?assertEqual({ok, [C]}, call(F, B, mnesia, change_config, [extra_db_nodes, [C]])),
        await(fun() -> lists:member(C, call(F, A, erlang, nodes, [])) end),
        ?assertEqual({atomic, ok}, call(F, A, mnesia, add_table_copy, [t, C, ram_copies])),
        ?assertEqual({atomic, ok}, call(F, A, ?MODULE, write, [2])),
        await(fun() -> [{t, 2, A}] =:= call(F, C, mnesia, dirty_read, [t, 2]) end),
        ?assertMatch([#{opened_by := other, reasons := []}],
                     [L || #{node := N} = L <- links(F, A), N =:= C])
    end).

mnesia(Config, Fun) ->
    case code:which(mnesia) of
        non_existing -> {skip, "no mnesia here"};
        _ -> chain(fun(F, [A, B, _] = Nodes) ->
            Dir = fun(N) -> filename:join(proplists:get_value(priv_dir, Config), N) end,
            [ok = call(F, N, application, set_env, [mnesia, dir, Dir(N), [{persistent, true}]])
             || N <- Nodes],
            ok = call(F, A, mnesia, create_schema, [[A, B]]),
            [ok = call(F, N, mnesia, start, []) || N <- [A, B]],
            {atomic, ok} = call(F, A, mnesia, create_table, [t, [{disc_copies, [A, B]}]]),
            {atomic, ok} = call(F, A, ?MODULE, write, [1]),
            await(fun() -> [{t, 1, A}] =:= call(F, B, mnesia, dirty_read, [t, 1]) end),
            Fun(F, Nodes),
            [call(F, N, mnesia, delete_schema, [[N]])
             || N <- Nodes, stopped =:= call(F, N, mnesia, stop, [])]
        end)
    end.

%% ---------------------------------------------------------------- distributed applications

%% Fails over and is taken back by the first node, as on a mesh.
distributed_application(_) ->
    Node = fun(N) -> list_to_atom("n" ++ integer_to_list(N) ++ "@127.0.0.1") end,
    [A, B, C] = Nodes = [Node(N) || N <- [1, 2, 3]],
    Env = [{kernel, distributed, [{sderl_compat, 500, [A, {B, C}]}]},
           {kernel, sync_nodes_optional, Nodes}, {kernel, sync_nodes_timeout, 10_000}],
    Family = (sd(3))#{env => Env},
    with(#{tag => "", families => [Family], s_groups => [{g, normal, [{n, all}]}]}, fun(F, _) ->
        start_all(F, Nodes),
        await(fun() -> runs(F, Nodes) =:= [A] end),
        ok = sderl_fleet:kill(F, A),
        await(fun() -> runs(F, [B, C]) =:= [B] end),
        {ok, A} = sderl_fleet:restart(F, A),
        start_all(F, [A]),
        await(fun() -> runs(F, Nodes) =:= [A] end)
    end).

start_all(F, Nodes) ->
    [{N, {ok, ok}} = R
     || {N, _} = R <- sderl_fleet:multicall(F, Nodes, ?MODULE, start_application, [], ?CALL)].

runs(F, Nodes) ->
    [N
     || N <- Nodes,
        lists:keymember(sderl_compat, 1, call(F, N, application, which_applications, []))].

start_application() ->
    ok = application:load({application, sderl_compat,
                           [{vsn, "1"}, {modules, []}, {applications, [kernel, stdlib]},
                            {mod, {?MODULE, []}}]}),
    application:start(sderl_compat).

%% As an application.
start(_, _) -> {ok, spawn_link(fun() -> receive stop -> ok end end)}.

stop(_) -> ok.

%% ---------------------------------------------------------------- links by other means

rpc_opens_a_link(_) ->
    chain(fun(F, [A, B, C]) ->
        ?assertEqual(C, call(F, A, rpc, call, [C, erlang, node, []])),
        ?assertEqual(A, call(F, C, erpc, call, [A, erlang, node, []])),
        ?assertMatch([#{node := B, reasons := [_ | _]},
                      #{node := C, reasons := [], opened_by := other, needed := true}],
                     links(F, A)),
        ?assertEqual({[A, B, C], []}, call(F, A, rpc, multicall, [erlang, node, []])),
        ?assertEqual([{left, [A, B]}], call(F, A, s_group, own_s_groups, []))
    end).

%% A member that was started with -hidden is a full member, but for process groups.
hidden_member(_) ->
    Plan = #{families => [sd(2), #{name => h, count => 1, hidden => true, apps => [sderl]}],
             s_groups => [{g, normal, [{n, all}, {h, all}]}]},
    with(Plan, fun(F, [A, _, H]) ->
        ready(F),
        ?assertEqual(yes, call(F, H, ?MODULE, name, [g, x])),
        await(fun() -> is_pid(call(F, A, s_group, whereis_name, [g, x])) end),
        ?assertEqual({error, hidden_node}, call(F, H, ?MODULE, join, [g])),
        ?assertNot(lists:member(H, call(F, A, erlang, nodes, []))),
        %% The coordinator told A of the name, and A may have no link to H yet.
        await(fun() -> lists:member(H, call(F, A, erlang, nodes, [connected])) end)
    end).

%% What observer asks of a node, and a hidden node that looks in.
tools(_) ->
    Plan = #{families => [sd(2), #{name => tool, count => 1, hidden => true}],
             s_groups => [{g, normal, [{n, all}]}]},
    with(Plan, fun(F, [A, B, Tool]) ->
        ready(F),
        ?assertEqual(pong, call(F, Tool, net_adm, ping, [A])),
        ?assertEqual([{g, [A, B]}], call(F, Tool, erpc, call, [A, s_group, own_s_groups, []])),
        ?assertEqual([], call(F, A, erlang, nodes, []) -- [B]),
        ?assertMatch([#{visible := false, opened_by := other}],
                     [L || #{node := N} = L <- links(F, A), N =:= Tool]),
        case code:which(observer_backend) of
            non_existing -> ok;
            _ -> ?assert(is_list(call(F, Tool, erpc, call, [A, observer_backend, sys_info, []])))
        end
    end).

%% ---------------------------------------------------------------- TLS

tls(Config) ->
    case code:which(ssl) of
        non_existing -> {skip, "no ssl here"};
        _ ->
            File = certificates(proplists:get_value(priv_dir, Config)),
            Family = (sd(3))#{args => ["-proto_dist", "inet_tls", "-ssl_dist_optfile", File]},
            chain(Family, fun(F, [A, B, C]) ->
                ?assertEqual({ok, [["inet_tls"]]}, call(F, A, init, get_argument, [proto_dist])),
                ?assertEqual(yes, call(F, A, ?MODULE, name, [left, x])),
                [await(fun() -> is_pid(call(F, N, s_group, whereis_name, [left, x])) end)
                 || N <- [A, B]],
                ?assertEqual(A, node(call(F, C, s_group, whereis_name, [B, left, x])))
            end)
    end.

%% As in docs/release.md, but for one certificate each for the two sides of a connection.
certificates(Dir) ->
    One = [{digest, sha256}, {key, {rsa, 2048, 65537}}],
    Chain = #{root => One, intermediates => [], peer => One},
    #{server_config := Server, client_config := Client} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    Pem = fun(Name, Entries) ->
        File = filename:join(Dir, Name),
        ok = file:write_file(
            File, public_key:pem_encode([{T, Der, not_encrypted} || {T, Der} <- Entries])
        ),
        File
    end,
    Ca = Pem("ca.pem",
             [{'Certificate', C} || Cs <- [Server, Client], C <- proplists:get_value(cacerts, Cs)]),
    Side = fun(Name, Conf) ->
        [{certfile, Pem(Name ++ ".pem", [{'Certificate', proplists:get_value(cert, Conf)}])},
         {keyfile, Pem(Name ++ ".key", [proplists:get_value(key, Conf)])},
         {cacertfile, Ca},
         {verify, verify_peer}]
    end,
    File = filename:join(Dir, "ssl_dist.conf"),
    ok = file:write_file(File, io_lib:format("~p.~n", [
        [{server, [{fail_if_no_peer_cert, true} | Side("server", Server)]},
         {client, [{server_name_indication, disable} | Side("client", Client)]}]
    ])),
    File.

%% ---------------------------------------------------------------- fleets

sd(Count) -> #{name => n, count => Count, apps => [sderl]}.

chain(Fun) -> chain(sd(3), Fun).

chain(Family, Fun) ->
    Plan = #{families => [Family],
             s_groups => [{left, normal, [{n, [1, 2]}]}, {right, normal, [{n, [2, 3]}]}]},
    with(Plan, fun(F, [A, B, C] = Nodes) ->
        ready(F),
        %% To be ready does not mean to have met those that started at the same moment.
        await(fun() ->
            {[B], [B]} =:= {call(F, A, erlang, nodes, []), call(F, C, erlang, nodes, [])}
        end),
        Fun(F, Nodes)
    end).

with(Plan, Fun) ->
    {ok, Fleet} = sderl_fleet:start(Plan),
    try Fun(Fleet, sderl_fleet:nodes(Fleet))
    after sderl_fleet:stop(Fleet)
    end.

ready(F) ->
    [?assertEqual(ok, call(F, N, s_group, await, [G, ?SOON]))
     || {N, {ok, Groups}} <- sderl_fleet:multicall(F, sderl_fleet:nodes(F), s_group, own_s_groups,
                                                   [], ?CALL),
        is_list(Groups), {G, _} <- Groups].

call(F, N, M, Fn, A) -> sderl_fleet:call(F, N, M, Fn, A, ?CALL).

%% A link is listed when the node's server has dealt with its coming up.
links(F, N) ->
    ok = call(F, N, sderl_node_client, settle, []),
    call(F, N, s_group, links, []).

await(Fun) -> ?assertEqual(ok, sderl_fleet:await(Fun, ?SOON)).

%% Hanging is seen by waiting: long against what an answer takes.
sync(F, N) ->
    try sderl_fleet:call(F, N, global, sync, [], 3000)
    catch exit:{timeout, _} -> hangs
    end.

%% ---------------------------------------------------------------- on the nodes

idle() -> spawn(fun() -> receive stop -> ok end end).

name(Group, Name) -> s_group:register_name(Group, Name, idle()).

join(Group) -> s_group:join(Group, demo, idle()).

global_name(Name) -> global:register_name(Name, idle()).

pg_scope() ->
    Self = self(),
    _ = spawn(fun() -> {ok, _} = pg:start_link(), Self ! started, receive stop -> ok end end),
    receive started -> ok end.

pg_member() ->
    Pid = idle(),
    ok = pg:join(demo, Pid),
    Pid.

write(Key) -> mnesia:transaction(fun() -> mnesia:write({t, Key, node()}) end).

echo(Node) ->
    Pid = spawn(Node, fun() -> receive {From, M} -> From ! {got, M} end end),
    Pid ! {self(), hello},
    receive {got, hello} -> ok after ?SOON -> nothing end.
