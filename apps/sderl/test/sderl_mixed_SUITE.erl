%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mixed_SUITE).

%% The library among others: stock nodes, hidden nodes, nodes that get a name later, other carriers
%% of Erlang's distribution, other versions, and programs written for the published module.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct_nodes, [with/2, again/2, sd/1, sd/2, stock/1, quick/0, call/4, s_group/4, await/1,
                         ready/3, members/3, log/2, logged/3, problems/2, left_out/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [stock_mesh, stock_visible, overlap, second_group, hidden, gets_a_name,
     gets_a_name_with_connect_all, tls, newer_version, older_version, refused_by_an_older_one,
     published, boots, restarted_by_hand, alone_without_a_name, kernel_environment, via_refused].

links(Fleet, Node, Which) -> lists:sort(call(Fleet, Node, {erlang, nodes}, [Which])).

%% ---------------------------------------------------------------- stock nodes

%% Rule 26: connected hidden, a stock node and its mesh notice nothing.
stock_mesh(_) ->
    with(#{families => [stock(2), sd(2)]}, fun(Fleet, [S1, S2, A1, A2]) ->
        ?assertEqual(true, call(Fleet, S1, {net_kernel, connect_node}, [S2])),
        ?assertEqual(ok, call(Fleet, S1, {global, sync}, [])),
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        ?assertEqual(true, s_group(Fleet, A1, connect, [S1])),
        ?assertEqual([S1], links(Fleet, A1, hidden)),
        ?assertEqual([A2], links(Fleet, A1, visible)),
        ?assertEqual([S2], links(Fleet, S1, visible)),
        exchange(Fleet, A1, S1),
        ?assertEqual(ok, call(Fleet, S1, {global, sync}, [])),
        ?assertEqual(ok, call(Fleet, S2, {global, sync}, [])),
        ?assertMatch(#{reasons := [stock], visible := false, needed := true},
                     hd([L || #{node := N} = L <- s_group(Fleet, A1, links, []), N =:= S1])),
        %% Again, and to this node itself, it is true and nothing happens.
        ?assertEqual(true, s_group(Fleet, A1, connect, [S1])),
        ?assertEqual(true, s_group(Fleet, A1, connect, [A1])),
        %% It takes no part in groups, and the questions that it cannot answer end.
        ?assertEqual({ok, g, []}, s_group(Fleet, A1, add_nodes, [g, [S1]])),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [S1, g, n])),
        %% Its processes may have names.
        Pid = call(Fleet, S1, proc, []),
        ?assertEqual({no, unreachable_pid}, s_group(Fleet, A2, register_name, [g, n, Pid])),
        %% Between nodes that run the library the link is visible.
        _ = [call(Fleet, A1, {erlang, disconnect_node}, [N]) || N <- [A2]],
        ?assertEqual(true, s_group(Fleet, A1, connect, [A2])),
        await(fun() -> links(Fleet, A1, visible) =:= [A2] end),
        ok = sderl_fleet:kill(Fleet, A1),
        await(fun() -> links(Fleet, S1, connected) =:= [S2] end),
        ?assertEqual([S1], links(Fleet, S2, connected)),
        ?assertEqual(ok, call(Fleet, S2, {global, sync}, []))
    end).

%% Connected by hand, and so visibly: still nobody is meshed, and the mesh loses no link when the
%% node goes.
stock_visible(_) ->
    with(#{families => [stock(3), sd(2)]}, fun(Fleet, [S1, S2, S3, A1, A2]) ->
        [true = call(Fleet, S1, {net_kernel, connect_node}, [S]) || S <- [S2, S3]],
        await(fun() -> links(Fleet, S2, connected) =:= lists:sort([S1, S3]) end),
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        ?assertEqual(true, call(Fleet, S1, {net_kernel, connect_node}, [A1])),
        exchange(Fleet, A1, S1),
        exchange(Fleet, A1, S1),
        ?assertEqual(lists:sort([A2, S1]), links(Fleet, A1, connected)),
        ?assertEqual([A1], links(Fleet, A2, connected)),
        ?assertEqual(lists:sort([A1, S2, S3]), links(Fleet, S1, connected)),
        ?assertMatch(#{opened_by := other, visible := true},
                     hd([L || #{node := N} = L <- s_group(Fleet, A1, links, []), N =:= S1])),
        ok = sderl_fleet:kill(Fleet, A1),
        await(fun() -> not lists:member(A1, links(Fleet, S1, connected)) end),
        ?assertEqual(lists:sort([S2, S3]), links(Fleet, S1, connected)),
        ?assertEqual(lists:sort([S1, S3]), links(Fleet, S2, connected))
    end).

exchange(Fleet, A, B) ->
    [P, Q] = [call(Fleet, N, proc, []) || N <- [A, B]],
    {hello, P} = call(Fleet, A, {erlang, send}, [Q, {hello, P}]),
    {hello, Q} = call(Fleet, B, {erlang, send}, [P, {hello, Q}]),
    await(fun() ->
        {call(Fleet, B, inbox, [Q]), call(Fleet, A, inbox, [P])} =:= {[{hello, P}], [{hello, Q}]}
    end).

%% ---------------------------------------------------------------- groups that overlap

overlap(_) ->
    again(6, fun(Fleet, [A1, A2, A3, A4, A5, A6] = All) ->
        Groups = [{g, [A1, A2, A3]}, {h, [A3, A4, A5]}, {k, [A5, A6, A1]}],
        [?assertEqual({ok, G, lists:sort(Ns)}, s_group(Fleet, hd(Ns), new_s_group, [G, Ns]))
         || {G, Ns} <- Groups],
        [ready(Fleet, Ns, G) || {G, Ns} <- Groups],
        %% Links are within the groups; gateways have those of each of theirs. (Those that a founder
        %% added may link to each other a moment later.)
        Expected = fun(N) ->
            lists:usort(lists:append([Ns || {_, Ns} <- Groups, lists:member(N, Ns)])) -- [N]
        end,
        await(fun() ->
            Ought = [{N, Expected(N)} || N <- All],
            case [{N, links(Fleet, N, connected)} || N <- All] of Ought -> true; Is -> Is end
        end),
        %% The same name in several groups, the same pid in several groups.
        P1 = call(Fleet, A1, proc, []),
        P5 = call(Fleet, A5, proc, []),
        ?assertEqual(yes, s_group(Fleet, A1, register_name, [g, n, P1])),
        ?assertEqual(yes, s_group(Fleet, A1, register_name, [k, n, P1])),
        ?assertEqual(yes, s_group(Fleet, A5, register_name, [h, n, P5])),
        ?assertEqual({no, name_or_pid_already_registered},
                     s_group(Fleet, A1, register_name, [g, m, P1])),
        [?assertEqual({G, N, P}, {G, N, s_group(Fleet, N, whereis_name, [G, n])})
         || {G, P} <- [{g, P1}, {k, P1}, {h, P5}], N <- proplists:get_value(G, Groups)],
        %% Over the gateways a non-member finds them too; nobody was linked but the two.
        await(fun() -> s_group(Fleet, A2, s_groups, []) =:= {[g], [h, k]} end),
        ?assertEqual(P5, s_group(Fleet, A2, whereis_name, [h, n])),
        ?assertEqual(P1, s_group(Fleet, A2, whereis_name, [k, n])),
        ?assertEqual(Expected(A2), links(Fleet, A2, connected)),
        %% Its death takes both names.
        ok = call(Fleet, A1, stop, [P1]),
        [await(fun() -> s_group(Fleet, N, whereis_name, [G, n]) =:= undefined end)
         || {G, N} <- [{g, A3}, {k, A6}, {k, A5}]],
        ?assertEqual([{h, n}], s_group(Fleet, A3, registered_names, [{node, A5}])),
        ?assertEqual(lists:sort([A4, A5, A3]), s_group(Fleet, A4, own_nodes, []))
    end).

second_group(_) ->
    again(3, fun(Fleet, [A1, A2, A3]) ->
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        {ok, h, _} = s_group(Fleet, A3, new_s_group, [h, [A3]]),
        [P1, P3] = [call(Fleet, N, proc, []) || N <- [A1, A3]],
        yes = s_group(Fleet, A1, register_name, [g, n, P1]),
        yes = s_group(Fleet, A3, register_name, [h, n, P3]),
        ?assertEqual({ok, h, [A2]}, s_group(Fleet, A3, add_nodes, [h, [A2]])),
        ?assertEqual([{h, [A2, A3]}, {g, [A1, A2]}], s_group(Fleet, A2, own_s_groups, [])),
        ?assertEqual({P1, P3}, {s_group(Fleet, A2, whereis_name, [g, n]),
                                s_group(Fleet, A2, whereis_name, [h, n])}),
        %% Nothing changed for the others, and they are not linked.
        ?assertEqual([A2], links(Fleet, A1, connected)),
        ?assertEqual([A2], links(Fleet, A3, connected)),
        ?assertEqual({ok, g, []}, s_group(Fleet, A1, add_nodes, [g, [A2]])),
        ?assertEqual(ok, s_group(Fleet, A3, remove_nodes, [h, [A2]])),
        await(fun() -> s_group(Fleet, A2, own_s_groups, []) =:= [{g, [A1, A2]}] end),
        ?assertEqual(P1, s_group(Fleet, A2, whereis_name, [g, n]))
    end).

%% ---------------------------------------------------------------- hidden nodes

hidden(_) ->
    Hidden = (sd(2))#{name => h, hidden => true},
    with(#{families => [sd(2), Hidden]}, fun(Fleet, [A1, A2, H1, H2]) ->
        %% Free, each has a namespace of its own.
        P1 = call(Fleet, H1, proc, []),
        P2 = call(Fleet, H2, proc, []),
        ?assertEqual(yes, s_group(Fleet, H1, register_name, [undefined, n, P1])),
        ?assertEqual(undefined, s_group(Fleet, H2, whereis_name, [undefined, n])),
        ?assertEqual(yes, s_group(Fleet, H2, register_name, [undefined, n, P2])),
        %% Asked, it answers from its own whatever the group; that links the two and merges nothing.
        ?assertEqual(P1, s_group(Fleet, A1, whereis_name, [H1, whatever, n])),
        ?assertEqual(P1, s_group(Fleet, H2, whereis_name, [H1, undefined, n])),
        ?assertEqual(P2, s_group(Fleet, H1, send, [H2, undefined, n, hello])),
        await(fun() -> call(Fleet, H2, inbox, [P2]) =:= [hello] end),
        ?assertEqual(P1, s_group(Fleet, H1, whereis_name, [undefined, n])),
        ?assertEqual(P2, s_group(Fleet, H2, whereis_name, [undefined, n])),
        ?assertEqual([H1], s_group(Fleet, H1, own_nodes, [])),
        ?assertEqual([{undefined, n}], s_group(Fleet, A2, registered_names, [{node, H1}])),
        %% In an s_group it is like any other, but its links are hidden.
        ?assertEqual({ok, g, lists:sort([A1, A2, H1])},
                     s_group(Fleet, A1, new_s_group, [g, [A1, A2, H1]])),
        ready(Fleet, [A1, A2, H1], g),
        await(fun() -> links(Fleet, H1, hidden) =:= lists:sort([A1, A2, H2]) end),
        ?assertEqual([], links(Fleet, H1, visible)),
        ?assertEqual(yes, s_group(Fleet, H1, register_name, [g, n, P1])),
        [?assertEqual(P1, s_group(Fleet, N, whereis_name, [g, n])) || N <- [A1, A2, H1]],
        ?assertEqual({no, cannot_register_in_remote_group},
                     s_group(Fleet, H1, register_name, [undefined, m, P1])),
        ?assertEqual({error, hidden_node}, s_group(Fleet, H1, join, [g, workers, P1])),
        %% Out of it, it is free again, with nothing.
        ?assertEqual(ok, s_group(Fleet, A1, remove_nodes, [g, [H1]])),
        await(fun() -> s_group(Fleet, H1, s_groups, []) =:= undefined end),
        ?assertEqual([], s_group(Fleet, A1, registered_names, [{node, H1}])),
        ?assertEqual(P1, s_group(Fleet, A1, whereis_name, [g, n]))
    end).

%% ---------------------------------------------------------------- nodes that get a name later

%% A node of a fleet has a name from the start; this takes it away again before the VM sees it.
nameless() ->
    Script = "s=; for a; do shift; if [ $s ]; then s=; elif [ \"$a\" = -name ]; then s=1; else set "
             "-- \"$@\" \"$a\"; fi; done; "
             "exec \"$@\"",
    [os:find_executable("sh"), "-c", Script, "sh"].

named(Fleet, Node) ->
    {ok, _} = call(Fleet, Node, {net_kernel, start}, [Node, #{name_domain => longnames}]),
    #{cookie := Cookie} = sderl_fleet:connection_info(Fleet),
    true = call(Fleet, Node, {erlang, set_cookie}, [Cookie]).

gets_a_name(_) ->
    Env = [{sderl, s_groups, [{file, normal, ['a1@127.0.0.1', 'late1@127.0.0.1']}]}],
    Late = #{name => late, count => 2, wrap => nameless(), apps => [sderl], env => quick() ++ Env},
    with(#{tag => "", families => [sd(1), Late]}, fun(Fleet, [A1, L1, L2]) ->
        ?assertEqual(nonode@nohost, call(Fleet, L1, {erlang, node}, [])),
        %% Without a name: free names.
        ?assertEqual([yes, yes], call(Fleet, L2, {?MODULE, register_two}, [])),
        [?assertEqual(undefined, s_group(Fleet, N, s_groups, [])) || N <- [L1, L2]],
        %% With one it is a node like any other at once, and keeps its free names.
        ?assertMatch({ok, [_ | _], 0},
                     call(Fleet, L2, {sderl_attr, cached}, [nonode@nohost, otp_release])),
        named(Fleet, L2),
        await(fun() ->
            length(s_group(Fleet, L2, registered_names, [{s_group, undefined}])) =:= 2
        end),
        %% Its attributes are read under its name.
        await(fun() ->
            element(1, call(Fleet, L2, {sderl_attr, cached}, [L2, otp_release])) =:= ok
        end),
        await(fun() ->
            case s_group(Fleet, L2, lookup, [undefined, m]) of
                #{meta := kept, home := L2} -> true;
                Other -> Other
            end
        end),
        ?assertMatch(P when is_pid(P), s_group(Fleet, A1, whereis_name, [L2, undefined, n])),
        ?assertEqual({ok, g, [L2]}, s_group(Fleet, L2, new_s_group, [g, [L2]])),
        ?assertEqual({ok, g, [A1]}, s_group(Fleet, L2, add_nodes, [g, [A1]])),
        members(Fleet, [A1, L2], g),
        %% The file names this one: it takes up its group.
        named(Fleet, L1),
        await(fun() -> s_group(Fleet, L1, own_nodes, [file]) =:= [A1, L1] end),
        %% Until the two have met, each is alone in its component and answers for that.
        _ = sderl_ct:settled(Fleet, file, [A1, L1]),
        Pid = call(Fleet, L1, proc, []),
        ?assertEqual(yes, s_group(Fleet, L1, register_name, [file, n, Pid])),
        ?assertEqual(Pid, s_group(Fleet, A1, whereis_name, [file, n])),
        %% And without a name again: free, and so once more with one. (As a member of g it would be
        %% called in at once.)
        ok = s_group(Fleet, L2, leave, [g]),
        ok = call(Fleet, L2, {net_kernel, stop}, []),
        ?assertEqual({error, remote_s_group}, s_group(Fleet, L2, new_s_group, [h, [L2]])),
        await(fun() -> s_group(Fleet, L2, own_s_groups, []) =:= [] end),
        %% Else it would be in the group of its former life again, and so not free.
        ?assertEqual(ok, s_group(Fleet, A1, remove_nodes, [g, [L2]])),
        ?assertEqual([yes, yes], call(Fleet, L2, {?MODULE, register_two}, [])),
        named(Fleet, L2),
        await(fun() ->
            length(s_group(Fleet, L2, registered_names, [{s_group, undefined}])) =:= 2
        end)
    end).

register_two() ->
    [s_group:register_name(undefined, n, sderl_ct_nodes:proc()),
     s_group:register_name(undefined, m, sderl_ct_nodes:proc(), #{meta => kept})].

%% It connects to every other by itself: group calls say so.
gets_a_name_with_connect_all(_) ->
    Late = #{name => late, count => 1, connect_all => true, wrap => nameless(), apps => [sderl],
             env => quick()},
    with(#{tag => "", families => [sd(1), Late]}, fun(Fleet, [A1, L1]) ->
        Pid = call(Fleet, L1, proc, []),
        ?assertEqual(yes, s_group(Fleet, L1, register_name, [undefined, n, Pid])),
        named(Fleet, L1),
        ?assertEqual({error, connect_all}, s_group(Fleet, L1, new_s_group, [g, [L1]])),
        logged(Fleet, L1, "-connect_all false"),
        [?assertEqual({F, {error, connect_all}}, {F, s_group(Fleet, L1, F, Args)})
         || {F, Args} <- [{delete_s_group, [g]}, {add_nodes, [g, []]}, {enter, [g, [A1]]},
                          {await, [g, 0]}, {s_groups, []}, {own_nodes, []}, {info, []}, {links, []},
                          {sync, []}]],
        ?assertEqual({no, connect_all}, s_group(Fleet, L1, register_name, [g, n, Pid])),
        ?assertEqual({no, connect_all}, s_group(Fleet, L1, unregister_name, [g, n])),
        ?assertEqual(undefined, s_group(Fleet, L1, whereis_name, [g, n])),
        ?assertEqual({ok, g, [A1]}, s_group(Fleet, A1, new_s_group, [g, [A1, L1]])),
        ?assert(lists:any(fun(P) -> string:find(P, "connect_all true") =/= nomatch end,
                          problems(Fleet, A1)))
    end).

%% ---------------------------------------------------------------- TLS

tls(Config) ->
    case code:which(ssl) of
        non_existing -> {skip, "this Erlang has no ssl"};
        _ -> tls_nodes(proplists:get_value(priv_dir, Config))
    end.

tls_nodes(Dir) ->
    Options = optfile(Dir),
    Args = ["-proto_dist", "inet_tls", "-ssl_dist_optfile", Options],
    with(#{families => [(sd(3))#{args => Args}]}, fun(Fleet, [A1, A2, A3] = All) ->
        ?assertEqual({ok, g, All}, s_group(Fleet, A1, new_s_group, [g, All])),
        Pid = call(Fleet, A2, proc, []),
        ?assertEqual(yes, s_group(Fleet, A2, register_name,
                                  [g, n, Pid, #{meta => binary:copy(~"m", 100_000)}])),
        [?assertEqual(Pid, s_group(Fleet, N, whereis_name, [g, n])) || N <- All],
        ?assertEqual(true, s_group(Fleet, A1, connect, [A3])),
        ?assertEqual({inet_tls_dist, A2}, call(Fleet, A1, {?MODULE, carrier}, [A2])),
        ok = sderl_fleet:kill(Fleet, A2),
        await(fun() -> s_group(Fleet, A3, whereis_name, [g, n]) =:= undefined end),
        {ok, A2} = sderl_fleet:restart(Fleet, A2),
        await(fun() -> s_group(Fleet, A2, own_nodes, [g]) =:= All end)
    end).

%% On a node: what carries its links.
carrier(Node) ->
    {ok, [[Proto]]} = init:get_argument(proto_dist),
    {ok, _} = net_kernel:node_info(Node),
    true = is_pid(whereis(ssl_dist_sup)),
    {list_to_existing_atom(Proto ++ "_dist"), Node}.

%% Certificates of our own, made now.
optfile(Dir) ->
    Cert = [{key, {namedCurve, secp256r1}}, {digest, sha256}],
    Chain = #{root => Cert, intermediates => [], peer => Cert},
    #{server_config := Server, client_config := Client} =
        public_key:pkix_test_data(#{server_chain => Chain, client_chain => Chain}),
    Side = fun(Name, Conf) ->
        File = fun(What, Entries) ->
            Path = filename:join(Dir, lists:concat([Name, "_", What, ".pem"])),
            ok = file:write_file(Path, public_key:pem_encode(Entries)),
            Path
        end,
        {KeyType, KeyDer} = proplists:get_value(key, Conf),
        [{certfile, File(cert, [{'Certificate', proplists:get_value(cert, Conf), not_encrypted}])},
         {keyfile, File(key, [{KeyType, KeyDer, not_encrypted}])},
         {cacertfile,
          File(ca, [{'Certificate', C, not_encrypted} || C <- proplists:get_value(cacerts, Conf)])}]
    end,
    %% The nodes are known by address, the certificate is not of it: who signed it is what counts.
    Optfile = filename:join(Dir, "ssl_dist.conf"),
    Terms = [{server, [{verify, verify_peer}, {fail_if_no_peer_cert, true} | Side(server, Server)]},
             {client, [{verify, verify_none} | Side(client, Client)]}],
    ok = file:write_file(Optfile, io_lib:format("~p.~n", [Terms])),
    Optfile.

%% ---------------------------------------------------------------- versions

%% What a newer version may say to this one: ignored, counted, told, no harm.
newer_version(_) ->
    again(2, fun(Fleet, [A1, A2]) ->
        Invite = fun(Uid, From) -> {invite, 3, g, Uid, From} end,
        Enter = fun(From) -> {enter, 3, g, From} end,
        is_refused(Fleet, A1, A2, 3, Invite, Enter),
        ?assertEqual({error, unknown_question},
                     call(Fleet, A2, {gen_server, call},
                          [{sderl_ask, A1}, {whereis, g, n, v3}, 60_000])),
        ?assertEqual({error, unknown_call},
                     call(Fleet, A2, {gen_server, call},
                          [{sderl_node, A1}, {invite, g, uid, A2, v3}, 60_000]))
    end).

%% Version 1, which did not say its version where it invited.
older_version(_) ->
    again(2, fun(Fleet, [A1, A2]) ->
        Invite = fun(Uid, From) -> {invite, g, Uid, From} end,
        Enter = fun(From) -> {enter, g, From} end,
        is_refused(Fleet, A1, A2, 1, Invite, Enter)
    end).

%% One event, a line of `info/0`, and nothing else.
is_refused(Fleet, A1, A2, Version, Invite, Enter) ->
    Other = 'other@127.0.0.1',
    {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
    ready(Fleet, [A1, A2], g),
    Before = unknown(Fleet, A1),
    Sent = call(Fleet, A2, {?MODULE, say}, [Version, Other, A1]),
    await(fun() -> unknown(Fleet, A1) - Before >= Sent end),
    Uid = call(Fleet, A1, {sderl_dir, uid}, [g]),
    [?assertEqual({error, {other_version, 2}},
                  call(Fleet, A2, {gen_server, call}, [{sderl_node, A1}, Request, 60_000]))
     || Request <- [Invite(Uid, Other), Invite(~"another group of that name", Other),
                    Enter(Other)]],
    ?assertEqual([{Other, Version}], proplists:get_value(refused, s_group(Fleet, A1, info, []))),
    ?assertMatch([_], [P || P <- problems(Fleet, A1), string:find(P, "is not heard") =/= nomatch]),
    logged(Fleet, A1, "speaks version"),
    ?assertMatch([_, _], string:split(log(Fleet, A1), "speaks version", all)),
    Pid = call(Fleet, A2, proc, []),
    ?assertEqual(yes, s_group(Fleet, A2, register_name, [g, n, Pid])),
    ?assertEqual(Pid, s_group(Fleet, A1, whereis_name, [g, n])),
    ?assertEqual(lists:sort([A1, A2]), s_group(Fleet, A1, own_nodes, [g])),
    ?assertEqual({[g], []}, s_group(Fleet, A1, s_groups, [])),
    %% It speaks our version now.
    ok = call(Fleet, A2, {?MODULE, say_ours}, [Other, A1]),
    await(fun() -> proplists:get_value(refused, s_group(Fleet, A1, info, [])) =:= [] end).

%% It does not know the calls of this version, and says so.
refused_by_an_older_one(_) ->
    with(#{families => [sd(1), stock(1)]}, fun(Fleet, Nodes) ->
        {[S], [A1]} = lists:partition(fun(N) ->
            call(Fleet, N, {erlang, whereis}, [sderl_node]) =:= undefined
        end, Nodes),
        ok = call(Fleet, S, {?MODULE, be_older}, []),
        ?assertEqual({ok, g, [A1]}, s_group(Fleet, A1, new_s_group, [g, [A1, S]])),
        ?assertEqual([{g, S, {other_version, 1}}], left_out(Fleet, A1)),
        ?assertMatch([_], [P
                           || P <- problems(Fleet, A1),
                              string:find(P, "speaks version 1 of the protocol") =/= nomatch]),
        ?assertEqual({error, {no_seed_answered, [{S, {other_version, 1}}]}},
                     s_group(Fleet, A1, enter, [h, [S]]))
    end).

be_older() ->
    Self = self(),
    _ = spawn(fun() ->
        true = register(sderl_node, self()),
        Self ! {self(), ready},
        answer_as_older()
    end),
    receive {_, ready} -> ok end.

answer_as_older() ->
    receive
        {'$gen_call', From, _} -> gen_server:reply(From, {error, unknown_call});
        _ -> ok
    end,
    answer_as_older().

unknown(Fleet, Node) -> proplists:get_value(unknown_messages, s_group(Fleet, Node, info, [])).

%% On a node: to the node server and to the group's process of another.
say(Version, From, Node) ->
    Uid = sderl_dir:uid(g),
    {ok, Group} = erpc:call(Node, sderl_mixed_SUITE, group_process, [g]),
    ToNode = [{sderl_hello, Version, g, Uid, From, {hello, self(), inc, #{}, #{}}},
              {sderl_hello, Version, g, Uid, From, x, y},
              {sderl_known, Version, From, [{other, [From]}]},
              {sderl_conflict, Version, g, Uid, From, Uid},
              {sderl_free, Version, From, freed},
              {sderl_tell, Version, From},
              {sderl_quantum, Version}],
    ToGroup = [{sderl, Version, Uid, From, {batch, 1, 2, 3, []}},
               {sderl, Version, Uid, From, {gone, deleted, #{}}},
               {sderl, 2, Uid, From, {batch_of_another_version, 1}},
               {sderl, Version, Uid, From, {hb, 1}, more}],
    [{sderl_node, Node} ! M || M <- ToNode],
    [Group ! M || M <- ToGroup],
    length(ToNode) + length(ToGroup).

say_ours(From, Node) ->
    {sderl_node, Node} ! {sderl_hello, 2, another, ~"another", From,
                          {hello, self(), inc, #{}, #{}}},
    ok.

group_process(Group) -> {ok, sderl_dir:process(Group)}.

%% ---------------------------------------------------------------- published programs

%% The published functions with the published values of success.
published(_) ->
    again(4, fun(Fleet, [A1, A2, A3, A4]) ->
        S = fun(N, F, Args) -> s_group(Fleet, N, F, Args) end,
        ?assertEqual({ok, group1, [A1, A2]}, S(A1, new_s_group, [group1, [A1, A2]])),
        {ok, Generated, [A1, A3]} = S(A1, new_s_group, [[A1, A3]]),
        ?assert(is_atom(Generated)),
        [P1, P2, P3] = [call(Fleet, A1, proc, []) || _ <- [1, 2, 3]],
        ?assertEqual(yes, S(A1, register_name, [group1, n1, P1])),
        ?assertEqual(P1, S(A1, whereis_name, [group1, n1])),
        ?assertEqual(P1, S(A2, whereis_name, [group1, n1])),
        ?assertEqual(P1, S(A2, whereis_name, [A1, group1, n1])),
        ?assertMatch({no, _}, S(A1, register_name, [group1, n1, P2])),
        ?assertMatch({no, _}, S(A1, register_name, [group1, n2, P1])),
        ?assertEqual(yes, S(A1, re_register_name, [group1, n1, P2])),
        ?assertEqual(P2, S(A2, whereis_name, [group1, n1])),
        ?assertEqual(P2, S(A2, send, [group1, n1, m1])),
        ?assertEqual(P2, S(A4, send, [A1, group1, n1, m2])),
        await(fun() -> call(Fleet, A1, inbox, [P2]) =:= [m1, m2] end),
        ?assertEqual({badarg, {group1, n9, m}}, S(A1, send, [group1, n9, m])),
        ?assertEqual([{group1, n1}], S(A1, registered_names, [{s_group, group1}])),
        ?assertEqual([{group1, n1}], S(A4, registered_names, [{node, A1}])),
        ?assertEqual(yes, S(A1, register_name_external, [group1, n3, P3])),
        ?assertEqual(ok, S(A1, unregister_name_external, [group1, n3])),
        ?assertEqual(ok, S(A2, unregister_name, [group1, n1])),
        ?assertEqual(ok, S(A2, unregister_name, [group1, n1])),
        ?assertEqual([{Generated, [A1, A3]}, {group1, [A1, A2]}], S(A1, own_s_groups, [])),
        ?assertEqual([], S(A1, registered_names, [{s_group, unknown}])),
        ?assertEqual([], S(A4, registered_names, [{s_group, group1}])),
        ?assertEqual({error, not_boolean}, S(A1, monitor_nodes, [x])),
        ?assertEqual({ok, group1, []}, S(A4, add_nodes, [group1, [A4]])),
        ?assertEqual(ok, S(A4, remove_nodes, [group1, []])),
        ?assertEqual([A1, A2, A3], S(A1, own_nodes, [])),
        ?assertEqual([A1, A2], S(A1, own_nodes, [group1])),
        ?assertMatch({[_, _], []}, S(A1, s_groups, [])),
        ?assertEqual(undefined, S(A4, s_groups, [])),
        Info = S(A1, info, []),
        [?assert(lists:keymember(K, 1, Info))
         || K <- [state, own_group_names, own_group_nodes, synced_nodes, sync_error,
                  no_contact, own_s_groups, other_groups, monitoring]],
        ?assertEqual(ok, S(A1, sync, [])),
        %% Node monitors, for the nodes of the own groups.
        Monitor = call(Fleet, A1, {?MODULE, node_monitor}, []),
        ?assertEqual({ok, group1, [A4]}, S(A1, add_nodes, [group1, [A4]])),
        %% A member shows a batch just after it has acknowledged it.
        await(fun() -> [A1, A2, A4] =:= S(A2, own_nodes, [group1]) end),
        ok = sderl_fleet:kill(Fleet, A2),
        await(fun() -> lists:member({nodedown, A2}, call(Fleet, A1, inbox, [Monitor])) end),
        {ok, A2} = sderl_fleet:restart(Fleet, A2),
        await(fun() -> lists:member({nodeup, A2}, call(Fleet, A1, inbox, [Monitor])) end),
        ?assertEqual(ok, S(A1, remove_nodes, [group1, [A2]])),
        members(Fleet, [A1, A4], group1),
        ?assertEqual(ok, S(A1, delete_s_group, [group1])),
        ?assertEqual(ok, S(A1, delete_s_group, [Generated])),
        ?assertEqual([], S(A1, own_s_groups, []))
    end).

%% `erl -run s_group`, with a name and without one, and with connect_all, which is refused in a
%% sentence.
boots(_) ->
    Boots = #{count => 1, args => ["-run", "s_group"], env => quick()},
    Families = [Boots#{name => a}, Boots#{name => b, wrap => nameless()},
                Boots#{name => c, connect_all => true}],
    with(#{tag => "", families => Families}, fun(Fleet, [A, B, C]) ->
        %% A fleet has a node before all its flags were followed.
        [await(fun() ->
            lists:keymember(sderl, 1, call(Fleet, N, {application, which_applications}, []))
        end) || N <- [A, B]],
        ?assertMatch({error, {already_started, P}} when is_pid(P), s_group(Fleet, A, start, [])),
        ?assertMatch({error, {already_started, P}} when is_pid(P),
                     s_group(Fleet, A, start_link, [])),
        logged(Fleet, C, "-connect_all false"),
        ?assertEqual({error, not_running}, s_group(Fleet, C, own_s_groups, [])),
        ?assertMatch({error, {sderl, {{connect_all, _}, _}}}, s_group(Fleet, C, start, [])),
        ?assertEqual({ok, g, [A]}, s_group(Fleet, A, new_s_group, [g, [A]])),
        ?assertEqual({ok, g, [nonode@nohost]}, s_group(Fleet, B, new_s_group, [g, [nonode@nohost]]))
    end).

restarted_by_hand(_) ->
    with(#{families => [stock(1), (stock(1))#{name => a, connect_all => false}]},
         fun(Fleet, [_, A]) ->
             ?assertEqual({error, not_running}, s_group(Fleet, A, stop, [])),
             {ok, Sup} = s_group(Fleet, A, start, []),
             ?assertEqual({ok, g, [A]}, s_group(Fleet, A, new_s_group, [g, [A]])),
             ?assertEqual(stopped, s_group(Fleet, A, stop, [])),
             ?assertEqual({error, not_running}, s_group(Fleet, A, own_s_groups, [])),
             ?assertMatch({true, true}, call(Fleet, A, {?MODULE, start_linked}, [])),
             ?assertNotEqual(Sup, call(Fleet, A, {erlang, whereis}, [sderl_sup])),
             %% The one that started it is gone, and the library is not.
             ?assertEqual([], s_group(Fleet, A, own_s_groups, []))
         end).

%% On a node.
start_linked() ->
    {Pid, Mon} = spawn_monitor(fun() ->
        {ok, Sup} = s_group:start_link(),
        {links, Links} = process_info(self(), links),
        exit({is_process_alive(Sup), lists:member(Sup, Links)})
    end),
    receive {'DOWN', Mon, process, Pid, Seen} -> Seen end.

%% A group on a node without a name: every call, and what becomes of it when the node gets one.
alone_without_a_name(_) ->
    Me = nonode@nohost,
    Env = [{sderl, s_groups,
            [{tests, normal, [Me]}, {shared, normal, ['a1@127.0.0.1', 'late1@127.0.0.1']}]}],
    Late = #{name => late, count => 1, wrap => nameless(), apps => [sderl], env => quick() ++ Env},
    with(#{tag => "", families => [sd(1), Late]}, fun(Fleet, [A1, L1]) ->
        S = fun(F, Args) -> s_group(Fleet, L1, F, Args) end,
        ?assertEqual([{tests, [Me]}], S(own_s_groups, [])),
        ?assertEqual(ok, S(await, [tests, 60_000])),
        ?assertEqual({ok, g, [Me]}, S(new_s_group, [g, [Me]])),
        ?assertEqual({error, s_group_name_is_in_use}, S(new_s_group, [g, [Me]])),
        ?assertEqual({error, remote_s_group}, S(new_s_group, [h, [A1]])),
        ?assertEqual({ok, h, [Me]}, S(new_s_group, [h, [Me, A1]])),
        ?assertEqual({ok, h, []}, S(add_nodes, [h, [A1]])),
        ?assertEqual(ok, S(remove_nodes, [h, [A1]])),
        ?assertEqual({error, cannot_remove_itself}, S(remove_nodes, [h, [Me]])),
        ?assertEqual([{h, A1, not_distributed}], left_out(Fleet, L1)),
        ?assertEqual({error, {no_seed_answered, [{A1, unreachable}]}}, S(enter, [k, [A1]])),
        ?assertEqual(false, S(connect, [A1])),
        ?assertEqual([{h, [Me]}, {g, [Me]}, {tests, [Me]}], S(own_s_groups, [])),
        ?assertEqual({[g, h, tests], [shared]}, S(s_groups, [])),
        ?assertEqual([Me], S(own_nodes, [])),
        ?assertEqual(ok, S(sync, [])),
        Pid = call(Fleet, L1, proc, []),
        [?assertEqual(yes, S(register_name, [G, n, Pid])) || G <- [g, h, tests]],
        ?assertEqual(yes, S(register_name, [g, meta, call(Fleet, L1, proc, []), #{meta => kept}])),
        ?assertEqual({no, name_or_pid_already_registered}, S(register_name, [g, n, Pid])),
        ?assertEqual(yes, S(re_register_name, [h, n, call(Fleet, L1, proc, [])])),
        ?assertEqual(Pid, S(whereis_name, [g, n])),
        ?assertEqual(Pid, S(whereis_name, [Me, g, n])),
        ?assertEqual(undefined, S(whereis_name, [A1, g, n])),
        ?assertEqual(Pid, S(send, [g, n, hello])),
        ?assertEqual(Pid, S(send, [Me, g, n, you])),
        ?assertEqual([hello, you], call(Fleet, L1, inbox, [Pid])),
        ?assertEqual([{g, meta}, {g, n}, {h, n}, {tests, n}],
                     lists:sort(S(registered_names, [{node, Me}]))),
        ?assertMatch(#{pid := Pid, home := Me}, S(lookup, [g, n])),
        ?assertEqual(ok, S(join, [g, workers, Pid])),
        ?assertEqual([Pid], S(members, [g, workers])),
        ?assertEqual(ok, S(delete_s_group, [h])),
        ?assertEqual({ok, [{g, normal, [Me]}, {tests, normal, [Me]}, {shared, normal, [A1, L1]}]},
                     await_kernel(Fleet, L1, fun({ok, Groups}) ->
                         lists:keymember(g, 1, Groups) andalso not lists:keymember(h, 1, Groups);
                        (_) -> false
                     end)),
        %% With a name it is in them under the name, and in what the file has for that.
        named(Fleet, L1),
        await(fun() -> S(own_s_groups, []) =:= [{shared, [A1, L1]}, {g, [L1]}, {tests, [L1]}] end),
        await(fun() ->
            lists:sort(S(registered_names, [{node, L1}])) =:= [{g, meta}, {g, n}, {tests, n}]
        end),
        await(fun() ->
            case S(lookup, [g, meta]) of #{home := L1, meta := kept} -> true; Other -> Other end
        end),
        ?assertEqual({ok, g, [A1]}, S(add_nodes, [g, [A1]])),
        ?assertEqual([A1, L1], s_group(Fleet, A1, own_nodes, [g])),
        %% The process is the same one, and has another node's name in its pid.
        Same = s_group(Fleet, A1, whereis_name, [g, n]),
        ?assertEqual(pid_to_list(Pid), call(Fleet, L1, {erlang, pid_to_list}, [Same])),
        ok = call(Fleet, L1, stop, [Same]),
        await(fun() -> s_group(Fleet, A1, registered_names, [{s_group, g}]) =:= [{g, meta}] end)
    end).

await_kernel(Fleet, Node, Is) ->
    Value = fun() -> call(Fleet, Node, {application, get_env}, [kernel, s_groups]) end,
    await(fun() -> V = Value(), Is(V) orelse V end),
    Value().

%% `s_groups` in the environment of `kernel` is what the node is in, and no configuration.
kernel_environment(_) ->
    File = [{file, normal, ['a1@127.0.0.1']}, {other, hidden, ['x@127.0.0.1']}],
    with(#{tag => "", families => [sd(2, [{kernel, s_groups, File}])]}, fun(Fleet, [A1, A2]) ->
        Is = fun(N, Wanted) -> await_kernel(Fleet, N, fun(V) -> V =:= Wanted end) end,
        Is(A1, {ok, File}),
        Is(A2, undefined),
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        [Other] = tl(File),
        Is(A1, {ok, [{g, normal, [A1, A2]} | File]}),
        Is(A2, {ok, [{g, normal, [A1, A2]} | File]}),
        {ok, h, _} = s_group(Fleet, A2, new_s_group, [h, [A2]]),
        ok = s_group(Fleet, A1, remove_nodes, [g, [A2]]),
        Is(A2, {ok, [{h, normal, [A2]} | File]}),
        ok = s_group(Fleet, A1, delete_s_group, [file]),
        Is(A1, {ok, [{g, normal, [A1]}, Other]}),
        %% What was written is read back by nobody: the application starts from the file.
        Again = fun(N) ->
            stopped = s_group(Fleet, N, stop, []),
            {ok, _} = s_group(Fleet, N, start, [])
        end,
        [Again(N) || N <- [A1, A2]],
        ?assertEqual([{file, [A1]}], s_group(Fleet, A1, own_s_groups, [])),
        ?assertEqual([], s_group(Fleet, A2, own_s_groups, [])),
        Is(A1, {ok, File}),
        Is(A2, undefined),
        %% What somebody else writes is configuration again.
        New = [{new, normal, [A2]}],
        ok = call(Fleet, A2, {application, set_env}, [kernel, s_groups, New]),
        Again(A2),
        ?assertEqual([{new, [A2]}], s_group(Fleet, A2, own_s_groups, [])),
        Is(A2, {ok, New})
    end).

%% A `via` start that is refused for another reason than a name that is taken says why in the log.
via_refused(_) ->
    Late = #{name => late, count => 1, wrap => nameless(), apps => [sderl], env => quick()},
    Seeds = (sd(1, [{sderl, s_groups, [{g, normal, {seeds, ['x@127.0.0.1']}}]}]))#{name => seeds},
    with(#{tag => "", families => [sd(3), Late, Seeds, (stock(1))#{connect_all => false}]},
         fun(Fleet, [A1, A2, A3, Late1, Seeds1, Stock]) ->
             {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
             {ok, h, _} = s_group(Fleet, A2, new_s_group, [h, [A2, A3]]),
             await(fun() -> s_group(Fleet, A3, s_groups, []) =:= {[h], [g]} end),
             Start = fun(N, Group) -> call(Fleet, N, {?MODULE, start_via}, [{Group, n}]) end,
             [begin
                  [?assertEqual({N, {error, {already_started, undefined}}}, {N, Start(N, Group)})
                   || _ <- [1, 2, 3]],
                  [logged(Fleet, N, Text) || Text <- ["a process was not registered as n" | Texts]],
                  %% Once.
                  ?assertMatch([_, _], string:split(log(Fleet, N), hd(Texts), all))
              end || {N, Group, Texts} <-
                         [{Late1, g, ["this node has no name", "s_group:new_s_group(g, [node()])",
                                      "{g, normal, [nonode@nohost]}"]},
                          {A1, nowhere, ["no group of that name is known here",
                                         "s_group:new_s_group(nowhere, Nodes)"]},
                          {A3, g, ["this node is no member of the group", "s_group:enter(g, "]},
                          {A1, undefined, ["only nodes in none have free names"]},
                          {Seeds1, g, ["has not entered the group yet"]},
                          {Stock, g, ["the application sderl does not run here"]}]],
             %% A name that is taken is no case for the log.
             {ok, Pid} = Start(A1, g),
             ?assertEqual({error, {already_started, Pid}}, Start(A2, g)),
             ?assertEqual(nomatch, string:find(log(Fleet, A2), "was not registered"))
         end).

%% On a node.
start_via(Name) ->
    Self = self(),
    {Pid, Mon} = spawn_monitor(fun() ->
        Self ! {self(), gen_server:start({via, s_group, Name}, sderl_ct_server, [], [])}
    end),
    receive {Pid, Started} -> demonitor(Mon, [flush]), Started end.

%% On a node.
node_monitor() ->
    Self = self(),
    Pid = spawn(fun() ->
        ok = s_group:monitor_nodes(true),
        Self ! {self(), monitors},
        receive {sderl_ct_nodes, stop} -> ok end
    end),
    receive {Pid, monitors} -> Pid end.
