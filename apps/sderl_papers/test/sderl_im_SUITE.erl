%% SPDX-License-Identifier: Apache-2.0
-module(sderl_im_SUITE).
-moduledoc "The messenger on real nodes: every way in which it recovers, and whole runs.".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

-define(SOON, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [recovery_rsd, client_node_dies]
        ++ sderl_ct:in_long_runs([node_rsd, client_node_rsd, recovery_rd, command]).

%% Kills on the same nodes, one after the other, and a conversation that goes on as long as its
%% session is not killed.

recovery_rd(_) -> with(params(rd), fun recovers/1).

recovery_rsd(_) ->
    with(params(rsd), fun(#{fleet := Fleet} = Im) ->
        %% The groups, and nothing else: 2 routers, 4 servers, 2 client nodes.
        ?assertEqual([5, 5, 2, 2, 2, 2, 2, 2], links(Fleet)),
        recovers(Im),
        ?assertEqual([5, 5, 2, 2, 2, 2, 2, 2], links(Fleet))
    end).

links(Fleet) -> sderl_bench_links:count(Fleet, sderl_fleet:nodes(Fleet)).

recovers(Im) ->
    [A, B, C, D | _] = clients(Im),
    Chat = open(Im, A, B),
    [
        begin
            ct:pal("~0tp", [Kill]),
            killed(Im, Kill),
            talks(Im, Chat),
            same(Im, Chat)
        end
     || Kill <- kills(Im, Chat)
    ],
    ok = finish(Im, Chat),
    talks(Im, open(Im, C, D)),
    ends_with_logout(Im, open(Im, C, D)),
    logged_out_by_death(Im),
    [begin ct:pal("~0tp", [How]), session_lost(Im, open(Im, A, B), How) end
     || How <- [alone, with_main, with_both, supervisor]],
    all_of_a_client_lost(Im, C, A).

%% What is killed in turn: a process of every class; of a database each copy alone and both at once.
kills(#{conf := Conf}, {{A, _, _}, _, _, {_, B, _} = Session}) ->
    KA = sderl_im_layout:server(Conf, A),
    KB = sderl_im_layout:server(Conf, B),
    KS = sderl_im_layout:server(Conf, Session),
    [
        Kill
     || {Kind, K} <- [{clients, KA}, {clients, KB}, {chats, KS}],
        Kill <- [[{database, Kind, K, main}], [{database, Kind, K, replica}],
                 [{database, Kind, K, main}, {database, Kind, K, replica}]]
    ] ++
        [[{server, KS}], [{monitor, A}], [{monitor, B}],
         [{router, I} || {I, _} <- sderl_im_layout:routers(Conf)]] ++
        [[{supervisor, serving, KS}], [{supervisor, monitors, KA}], [{supervisor, routing, 1}]] ++
        %% More than one process at a time.
        [[{monitor, A}, {database, clients, KA, main}],
         [{supervisor, serving, K} || K <- sderl_im_layout:servers(Conf)]] ++
        [[{supervisor, monitors, KA}, {supervisor, serving, KA}]].

%% Kills them all at once, and waits until all are back. Supervisors of databases are suspended
%% meanwhile: otherwise the first would be back before the last is dead.
killed(Im, Keys) ->
    Before = [{Key, there(Im, Key)} || Key <- Keys],
    held(Im, Keys, fun() -> [exit_on(Im, Pid) || {_, Pid} <- Before] end),
    [await(fun() -> Now = found(Im, Key), is_pid(Now) andalso Now =/= Pid end)
     || {Key, Pid} <- Before],
    ok.

held(#{fleet := Fleet} = Im, Keys, Fun) ->
    Nodes = lists:usort([Node
                         || {database, _, _, _} = Key <- Keys, {_, Node, _} <- [where(Im, Key)],
                            length(Keys) > 1]),
    [ok = sderl_fleet:call(Fleet, Node, sys, suspend, [sderl_im_serving]) || Node <- Nodes],
    Fun(),
    [ok = sderl_fleet:call(Fleet, Node, sys, resume, [sderl_im_serving]) || Node <- Nodes].

exit_on(#{fleet := Fleet}, Pid) ->
    true = sderl_fleet:call(Fleet, node(Pid), erlang, exit, [Pid, kill]).

found(#{fleet := Fleet} = Im, Key) ->
    {Class, K, Wanted} = where(Im, Key),
    case [Pid
          || {Found, Pid} <- sderl_fleet:call(Fleet, K, sderl_im_find, find, [Class]),
             Found =:= Wanted] of
        %% For a moment there may be two monitors of a client: a database that died had started one
        %% that is in no row.
        [Pid | _] -> Pid;
        [] -> none
    end.

%% A process that was killed before may not be back yet.
there(Im, Key) ->
    await(fun() -> is_pid(found(Im, Key)) end),
    case found(Im, Key) of
        Pid when is_pid(Pid) -> Pid;
        none -> there(Im, Key)
    end.

where(#{conf := #{routers := Routers, servers := Servers} = Conf}, Key) ->
    Place = fun
        ({database, _, K, main}) -> K;
        ({database, _, K, replica}) -> sderl_im_layout:next(Conf, K);
        ({monitor, Client}) -> sderl_im_layout:server(Conf, Client);
        ({session, Session}) -> sderl_im_layout:server(Conf, Session);
        ({server, K}) -> K
    end,
    case Key of
        {router, I} -> {router, map_get(I, Routers), Key};
        {supervisor, routing, I} -> {routing, map_get(I, Routers), {supervisor, routing}};
        {supervisor, Which, K} -> {Which, map_get(K, Servers), {supervisor, Which}};
        {database, Kind, _, _} -> {Kind, map_get(Place(Key), Servers), Key};
        {Class, _} -> {Class, map_get(Place(Key), Servers), Key}
    end.

%% Messages go both ways. All are acknowledged, and all arrive in order.
talks(Im, {A, B, _, Session}) ->
    [
        begin
            {ok, Seq} = client(Im, Sender, message, [Session, <<"hello">>]),
            ?assertEqual({open, 0}, client(Im, Sender, settle, [Session])),
            Said = client(Im, Receiver, said, [Session]),
            ?assertEqual(lists:seq(1, Seq), [S || {S, _} <- Said])
        end
     || {Sender, Receiver} <- [{A, B}, {B, A}]
    ].

%% The databases know the clients and the conversation, in both copies, and the processes in them
%% live.
same(#{conf := Conf} = Im, {{A, _, PidA}, {B, _, PidB}, SessionPid, Session}) ->
    [
        await(fun() ->
            [{ok, Main}, {ok, Replica}] =
                [row(Im, {database, Kind, sderl_im_layout:server(Conf, Key), Copy}, Key)
                 || Copy <- [main, replica]],
            Main =:= Replica andalso holds(Im, Main, Known)
        end)
     || {Kind, Key, Known} <- [{clients, A, PidA}, {clients, B, PidB}, {chats, Session, SessionPid}]
    ].

holds(#{fleet := Fleet}, Row, Pid) ->
    Monitor = element(3, Row),
    element(2, Row) =:= Pid
    andalso (not is_pid(Monitor)
             orelse sderl_fleet:call(Fleet, node(Monitor), erlang, is_process_alive, [Monitor])).

row(#{fleet := Fleet, conf := #{servers := Servers} = Conf}, {database, _, K, _} = Role, Key) ->
    {ok, Row} = sderl_fleet:call(Fleet, map_get(K, Servers), sderl_im_net, call,
                                 [Conf, Role, {find, Key}, 5000]),
    Row.

%% Logs out at once after a kill: the client knows what the new monitor does not know yet.
ends_with_logout(Im, {{C, _, _} = Client, Other, _, Session} = Chat) ->
    killed(Im, [{monitor, C}]),
    talks(Im, Chat),
    ok = client(Im, Client, logout, []),
    await(fun() -> state(Im, Other, Session) =:= over end),
    ok = client(Im, Client, login, []).

state(Im, Client, Session) ->
    case client(Im, Client, chats, []) of
        #{Session := {_, State}} -> State;
        #{} -> none
    end.

%% A client that dies is logged out by the process of its node that knows it. Its monitor ends its
%% conversations: also a monitor that was started anew, and has the conversations from the client.
logged_out_by_death(#{fleet := Fleet, conf := #{clients := Nodes} = Conf} = Im) ->
    Node = map_get(1, Nodes),
    Name = {client, mortal},
    {ok, Pid} = sderl_fleet:call(Fleet, Node, sderl_im_mortal, start, [Conf, Name]),
    Mortal = {Name, Node, Pid},
    ok = client(Im, Mortal, login, []),
    Row = fun() -> row(Im, {database, clients, sderl_im_layout:server(Conf, Name), main}, Name) end,
    ?assertMatch({ok, {Name, Pid, _}}, Row()),
    {_, Other, _, Session} = open(Im, Mortal, hd(clients(Im))),
    killed(Im, [{monitor, Name}]),
    await(fun() ->
        Monitor = found(Im, {monitor, Name}),
        lists:any(fun(Chats) -> is_map(Chats) andalso is_map_key(Session, Chats) end,
            tuple_to_list(sderl_fleet:call(Fleet, node(Monitor), sys, get_state, [Monitor])))
    end),
    exit_on(Im, Pid),
    await(fun() -> Row() =:= none end),
    await(fun() -> state(Im, Other, Session) =:= over end).

%% Both clients are told that the session is lost, and their next conversation is another one.
session_lost(#{conf := Conf} = Im, {A, B, SessionPid, Session}, How) ->
    K = sderl_im_layout:server(Conf, Session),
    Before = case How of
        supervisor -> sessions(Im, K);
        _ -> SessionPid
    end,
    Databases = case How of
        with_main -> [{database, chats, K, main}];
        with_both -> [{database, chats, K, main}, {database, chats, K, replica}];
        _ -> []
    end,
    Pids = [there(Im, Key) || Key <- Databases],
    held(Im, Databases ++ Databases, fun() -> [exit_on(Im, Pid) || Pid <- Pids ++ [Before]] end),
    case How of
        %% Where all copies are lost with the session no process can tell the clients: the sender
        %% notices.
        with_both ->
            {ok, _} = client(Im, A, message, [Session, <<"is anybody there?">>]),
            ?assertEqual({lost, 1}, client(Im, A, settle, [Session])),
            ?assertEqual(open, state(Im, B, Session));
        _ ->
            [knows_of_loss(Im, Client, Session) || Client <- [A, B]],
            ?assertEqual({error, lost}, client(Im, A, message, [Session, <<"is anybody there?">>]))
    end,
    [{_, _} = client(Im, Client, drop, [Session]) || Client <- [A, B]],
    Again = open(Im, A, B),
    talks(Im, Again),
    ok = finish(Im, Again).

%% The message that a session is lost is sent once. A client that did not get it notices when it
%% sends.
knows_of_loss(Im, Client, Session) ->
    IsLost = fun() -> state(Im, Client, Session) =:= lost end,
    case sderl_fleet:await(IsLost, 10_000) of
        ok -> ok;
        {error, _} ->
            ct:pal("~tp was not told", [Client]),
            _ = client(Im, Client, message, [Session, <<"is anybody there?">>]),
            await(IsLost)
    end.

sessions(#{fleet := Fleet, conf := #{servers := Servers}}, K) ->
    sderl_fleet:call(Fleet, map_get(K, Servers), erlang, whereis, [sderl_im_sessions]).

%% Both copies of the row, and the monitor that knows it, are lost: the client has to log in again.
all_of_a_client_lost(#{conf := Conf} = Im, {C, _, _} = Client, Other) ->
    K = sderl_im_layout:server(Conf, C),
    Keys = [{database, clients, K, main}, {database, clients, K, replica},
            {supervisor, monitors, K}],
    killed(Im, Keys),
    ?assertEqual({error, not_logged_in}, client(Im, Client, chat, [element(1, Other)])),
    ?assertEqual({error, {receiver_not_found, C}}, client(Im, Other, chat, [C])),
    ok = client(Im, Client, login, []),
    {ok, Session, _} = client(Im, Client, chat, [element(1, Other)]),
    ok = client(Im, Client, finish, [Session]).

%% A server's node dies and comes back with nothing: its databases are filled from the replicas.
%% Then the node of a router dies, which is the only way to its servers: messages sent meanwhile
%% arrive when it is back.
node_rsd(_) ->
    with((params(rsd))#{timeout_ms := 500}, fun(#{fleet := Fleet,
                                                  conf := #{servers := Servers} = Conf} = Im) ->
        Clients = clients(Im),
        K = 1,
        Node = map_get(K, Servers),
        On = [Client || {Name, _, _} = Client <- Clients, sderl_im_layout:server(Conf, Name) =:= K],
        Off = Clients -- On,
        ?assertMatch({[_ | _], [_, _ | _]}, {On, Off}),
        Kept = elsewhere(Im, hd(Off), lists:nth(2, Off), K),
        ok = sderl_fleet:kill(Fleet, Node),
        talks(Im, Kept),
        {ok, Node} = sderl_fleet:restart(Fleet, Node),
        ok = sderl_fleet:await(fun() ->
            sderl_fleet:call(Fleet, Node, s_group, await, [{server_group, 1}, 1000])
        end, ?SOON),
        ok = sderl_fleet:call(Fleet, Node, sderl_im_sup, start, [Conf, {server, K}]),
        await(fun() ->
            length(sderl_fleet:call(Fleet, Node, sderl_im_find, find, [clients])) =:= 2
        end),
        %% No client has to log in again.
        [
            await(fun() ->
                {ok, {Name, Pid, Monitor}} = row(Im, {database, clients, K, main}, Name),
                sderl_fleet:call(Fleet, Node, erlang, is_process_alive, [Monitor])
            end)
         || {Name, _, Pid} <- On
        ],
        talks(Im, Kept),
        Again = open(Im, hd(On), hd(Off)),
        talks(Im, Again),
        router_node_dies(Im, on_router(Im, hd(On), hd(Off), 1))
    end).

router_node_dies(#{fleet := Fleet, conf := #{routers := #{1 := Node}} = Conf} = Im,
                 {A, B, _, Session} = Chat) ->
    talks(Im, Chat),
    Before = client(Im, B, said, [Session]),
    ok = sderl_fleet:kill(Fleet, Node),
    {ok, Seq} = client(Im, A, message, [Session, <<"later">>]),
    {ok, Node} = sderl_fleet:restart(Fleet, Node),
    ok = sderl_fleet:call(Fleet, Node, sderl_im_sup, start, [Conf, {router, 1}]),
    ?assertEqual({open, 0}, client(Im, A, settle, [Session])),
    ?assertEqual(Before ++ [{Seq, <<"later">>}], client(Im, B, said, [Session])),
    talks(Im, Chat),
    talks(Im, on_router(Im, A, B, 1)).

%% Opens a conversation on a server of router I.
on_router(#{conf := Conf} = Im, A, B, I) ->
    {_, _, _, Session} = Chat = open(Im, A, B),
    case sderl_im_layout:home(Conf, sderl_im_layout:server(Conf, Session)) of
        I -> Chat;
        _ -> ok = finish(Im, Chat), on_router(Im, A, B, I)
    end.

%% Opens a conversation that is not on server K.
elsewhere(#{conf := Conf} = Im, A, B, K) ->
    {_, _, _, Session} = Chat = open(Im, A, B),
    case sderl_im_layout:server(Conf, Session) of
        K ->
            ok = finish(Im, Chat),
            elsewhere(Im, A, B, K);
        _ ->
            Chat
    end.

%% The link between a router and a client node is lost: no client is logged out. Then the router is
%% killed, and the node dies before anything has been asked of the new router: the clients are
%% logged out all the same.
client_node_rsd(_) ->
    Params = maps:merge(params(rsd), #{routers => 1, servers => 2, clients => 8}),
    with(Params,
         fun(#{fleet := Fleet,
               conf := #{clients := #{2 := Gone}, routers := #{1 := Router}} = Conf} = Im) ->
             [A, B | _] = On = [Client || {_, Node, _} = Client <- clients(Im), Node =:= Gone],
             Chat = open(Im, A, B),
             Watch = watch(Fleet, Router, Gone),
             true = sderl_fleet:call(Fleet, Router, erlang, disconnect_node, [Gone]),
             await(fun() ->
                 case watch(Fleet, Router, Gone) of
                     {Ref, _} = Now when is_reference(Ref) -> Now =/= Watch;
                     _ -> false
                 end
             end),
             await(fun() ->
                 lists:all(fun({_, _, Monitor}) -> is_calm(Fleet, Monitor) end, rows(Im, On))
             end),
             talks(Im, Chat),
             same(Im, Chat),
             killed(Im, [{router, 1}]),
             ok = sderl_fleet:kill(Fleet, Gone),
             [
                 await(fun() ->
                     row(Im, {database, clients, sderl_im_layout:server(Conf, Name), main},
                         Name) =:= none
                 end)
              || {Name, _, _} <- On
             ],
             {ok, Gone} = sderl_fleet:restart(Fleet, Gone)
         end).

%% What a router knows about a client node.
watch(Fleet, Router, Node) ->
    [Watch] = [W
               || #{Node := W} <- tuple_to_list(
                   sderl_fleet:call(Fleet, Router, sys, get_state, [sderl_im_router])
               )],
    Watch.

rows(#{conf := Conf} = Im, Clients) ->
    [Row
     || {Name, _, _} <- Clients, {ok, Row} <- [
         row(Im, {database, clients, sderl_im_layout:server(Conf, Name), main}, Name)
     ]].

%% Whether the monitor waits for no answer of its client.
is_calm(Fleet, Monitor) ->
    lists:last(tuple_to_list(sderl_fleet:call(Fleet, node(Monitor), sys, get_state, [Monitor]))) =:=
        none.

%% The clients of a node that dies are logged out by the routers. A run ends with an error that
%% names the node.
client_node_dies(_) ->
    Params = (params(rd))#{client_nodes := 2, clients := 8},
    with(Params, fun(#{fleet := Fleet, conf := #{clients := Nodes} = Conf} = Im) ->
        Gone = map_get(2, Nodes),
        ok = sderl_fleet:kill(Fleet, Gone),
        [
            await(fun() ->
                row(Im, {database, clients, sderl_im_layout:server(Conf, Name), main}, Name) =:=
                    none
            end)
         || {Name, Node, _} <- clients(Im), Node =:= Gone
        ],
        {ok, Gone} = sderl_fleet:restart(Fleet, Gone),
        0 = sderl_im_cluster:stop(Fleet, Conf),
        Task = sderl_fleet_task:start(fun() ->
            sderl_im_cluster:on(Fleet, Params#{seconds := 2}, "test")
        end),
        await(fun() ->
            is_pid(sderl_fleet:call(Fleet, Gone, erlang, whereis, [sderl_im_traffic]))
        end),
        ok = sderl_fleet:kill(Fleet, Gone),
        {ok, {error, Reason}} = sderl_fleet_task:result(Task, 120_000),
        Text = unicode:characters_to_list(sderl_papers_reason:text(Reason)),
        ct:pal("~ts", [Text]),
        ?assertMatch({match, _}, re:run(Text, atom_to_list(Gone))),
        nothing_left(Fleet)
    end).

nothing_left(Fleet) ->
    await(fun() ->
        Left = [{Node, All}
                || Node <- sderl_fleet:nodes(Fleet),
                   [_ | _] = All <- [sderl_fleet:call(Fleet, Node, sderl_im_find, all, [])]],
        Left =:= [] orelse Left
    end).

%% Whole runs, with and without kills, in both modes.
command(Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), "im.json"),
    Args = ["bench", "im", "--compare", "--routers", "1", "--servers", "2", "--client-nodes", "1",
            "--clients", "20", "--seconds", "2", "--warmup", "1", "--speed", "100",
            "--chaos-every-ms", "50", "--json", File],
    ?assertMatch({0, stdout, _}, sderl_cli:run(Args)),
    {ok, Text} = file:read_file(File),
    Results = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global, trim])],
    ?assertEqual(
        [{<<"rd">>, false}, {<<"rsd">>, false}, {<<"rd">>, true}, {<<"rsd">>, true}],
        [{Mode, is_map(Chaos)}
         || #{<<"params">> := #{<<"mode">> := Mode, <<"chaos">> := Chaos}} <- Results]
    ),
    [
        begin
            #{<<"params">> := #{<<"chaos">> := Chaos}, <<"metrics">> := M} = Result,
            ?assertMatch(
                #{<<"lost_messages">> := 0, <<"broken_conversations_not_killed">> := 0,
                  <<"names_left">> := 0, <<"names_missing">> := 0, <<"rows_left">> := 0},
                M
            ),
            #{<<"sent">> := Sent, <<"kills">> := Kills, <<"timeline">> := Timeline,
              <<"recovery_ms">> := #{<<"p50">> := P50}} = M,
            ?assert(Sent > 0),
            ?assertEqual(2, length(Timeline)),
            ?assertEqual(is_map(Chaos), Kills > 0),
            ?assertEqual(is_map(Chaos), is_number(P50))
        end
     || Result <- Results
    ],
    ok.

%% ---------------------------------------------------------------- clients

clients(#{fleet := Fleet, conf := #{clients := Nodes}}) ->
    lists:sort([
        {Name, Node, Pid}
     || Node <- maps:values(Nodes), lists:member(Node, sderl_fleet:nodes(Fleet)),
        {{sderl_im, client, Name}, Pid} <- sderl_fleet:call(Fleet, Node, sderl_im_find, all, [])
    ]).

client(#{fleet := Fleet}, {_, Node, Pid}, Function, Args) ->
    sderl_fleet:call(Fleet, Node, sderl_im_client, Function, [Pid | Args], 60_000).

open(Im, A, {Name, _, _} = B) ->
    {ok, Session, Pid} = client(Im, A, chat, [Name]),
    {A, B, Pid, Session}.

finish(Im, {A, _, _, Session}) -> client(Im, A, finish, [Session]).

await(Fun) -> ok = sderl_fleet:await(Fun, ?SOON).

with(Params, Fun) ->
    {ok, Fleet} = sderl_fleet:start(sderl_im_cluster:plan(Params, "test")),
    try
        {ok, #{clients := Nodes} = Conf} = sderl_im_cluster:start(Fleet, Params),
        #{clients := Count, client_nodes := NodeCount} = Params,
        Each = Count div NodeCount,
        [
            ok = sderl_fleet:call(Fleet, Node, sderl_im_traffic, start, [Conf, J, (
                maps:with([seconds, threshold_us, speed, seed], Params)
            )#{count => Each, first => 1 + (J - 1) * Each}], 60_000)
         || J := Node <- Nodes
        ],
        Fun(#{fleet => Fleet, conf => Conf}),
        ?assertEqual(0, sderl_im_cluster:stop(Fleet, Conf)),
        nothing_left(Fleet)
    after
        sderl_fleet:stop(Fleet)
    end.

%% Repeats requests soon, so that timeouts take little time.
params(Mode) ->
    Size = case Mode of
        rd -> #{routers => 1, servers => 2, client_nodes => 1, clients => 8};
        rsd -> #{routers => 2, servers => 4, client_nodes => 2, clients => 16}
    end,
    maps:merge(sderl_im:defaults(), Size#{mode => Mode, timeout_ms => 100}).
