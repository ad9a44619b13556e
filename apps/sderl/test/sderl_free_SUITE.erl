%% SPDX-License-Identifier: Apache-2.0
-module(sderl_free_SUITE).

%% Free nodes and their islands (protocol rule 22), and links that nobody needs (rule 25).

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct_nodes, [with/2, sd/1, sd/2, call/4, s_group/4, await/1, log/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [islands, clash, several_at_once, leaving_for_a_group, becoming_free, never_both, turned_off,
     restarted, away_meanwhile, killed_meanwhile, moved_meanwhile, sends_note_their_links,
     what_a_free_node_remembers, links_reported, links_closed].

links(Fleet, Node) -> lists:sort(call(Fleet, Node, {erlang, nodes}, [connected])).

%% These nodes are one island: of the same members, linked, with the same names, in one component.
island(Fleet, Nodes) -> island(Fleet, Nodes, Nodes).

island(Fleet, Nodes0, Members0) ->
    {Nodes, Members} = {lists:sort(Nodes0), lists:sort(Members0)},
    await(fun() -> one(Fleet, Nodes, Members) end),
    names(Fleet, hd(Nodes)).

one(Fleet, Nodes, Members) ->
    Names = names(Fleet, hd(Nodes)),
    Seen = [{N, s_group(Fleet, N, own_nodes, []),
             [M || M <- links(Fleet, N), lists:member(M, Members)],
             live(Fleet, N), names(Fleet, N)}
            || N <- Nodes],
    case [{N, Members, Nodes -- [N], Nodes, Names} || N <- Nodes] of
        Seen -> true;
        _ -> Seen
    end.

names(Fleet, N) -> lists:sort(call(Fleet, N, {sderl_names, names}, [undefined])).

live(Fleet, N) ->
    case [L
          || #{group := undefined, live := L} <-
                 proplists:get_value(groups, s_group(Fleet, N, info, []))] of
        [Live] -> Live;
        Other -> Other
    end.

free_name(Fleet, Node, Name) ->
    Pid = call(Fleet, Node, proc, []),
    yes = s_group(Fleet, Node, register_name, [undefined, Name, Pid]),
    Pid.

%% ---------------------------------------------------------------- islands

islands(_) ->
    with(#{families => [sd(4)]}, fun(Fleet, [A1, A2, A3, A4] = All) ->
        Pids = [P1, P2, _, P4] = [free_name(Fleet, N, {n, N}) || N <- All],
        %% A link alone merges nothing, whoever made it.
        true = call(Fleet, A1, {net_kernel, connect_node}, [A3]),
        ?assertEqual(true, s_group(Fleet, A2, connect, [A4])),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [undefined, {n, A3}])),
        %% Two free nodes that exchange, found or not.
        ?assertEqual(P2, s_group(Fleet, A1, whereis_name, [A2, undefined, {n, A2}])),
        ?assertEqual(2, length(island(Fleet, [A1, A2]))),
        ?assertEqual({badarg, {whatever, unknown, hello}},
                     s_group(Fleet, A3, send, [A4, whatever, unknown, hello])),
        ?assertEqual(2, length(island(Fleet, [A3, A4]))),
        ?assertEqual(P1, s_group(Fleet, A2, whereis_name, [undefined, {n, A1}])),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [undefined, {n, A4}])),
        %% Island meets island: all are linked to all, with all names.
        ?assertEqual(P4, s_group(Fleet, A1, send, [A4, undefined, {n, A4}, hello])),
        await(fun() -> call(Fleet, A4, inbox, [P4]) =:= [hello] end),
        ?assertEqual(lists:sort([{{n, N}, P} || {N, P} <- lists:zip(All, Pids)]),
                     island(Fleet, All)),
        ?assertEqual(undefined, s_group(Fleet, A1, s_groups, [])),
        %% It is one namespace: unique, and replicated.
        Pid = call(Fleet, A3, proc, []),
        ?assertEqual({no, name_or_pid_already_registered},
                     s_group(Fleet, A3, register_name, [undefined, {n, A1}, Pid])),
        ?assertEqual(yes, s_group(Fleet, A3, register_name, [undefined, x, Pid])),
        [?assertEqual(Pid, s_group(Fleet, N, whereis_name, [undefined, x])) || N <- All],
        ?assertMatch(#{reasons := [_ | _], needed := true},
                     hd([L || #{node := N} = L <- s_group(Fleet, A2, links, []), N =:= A3])),
        ?assertEqual([A1, A2, A4],
                     lists:sort([N || #{node := N, reasons := Rs} <- s_group(Fleet, A3, links, []),
                                      lists:member(free_island, Rs)]))
    end).

%% A name on both sides goes to the resolver that came with the older registration.
clash(_) ->
    with(#{families => [sd(2)]}, fun(Fleet, [A1, A2] = All) ->
        [P1, P2] = [call(Fleet, N, proc, []) || N <- All],
        [?assertEqual(yes, s_group(Fleet, N, register_name,
                                   [undefined, n, P, #{resolver => notify_all_name}]))
         || {N, P} <- [{A1, P1}, {A2, P2}]],
        [Q1, Q2] = [free_name(Fleet, N, only) || N <- All],
        ?assertEqual(P2, s_group(Fleet, A1, whereis_name, [A2, undefined, n])),
        await(fun() ->
            case names(Fleet, A1) of
                [{only, Q}] -> lists:member(Q, [Q1, Q2]) andalso names(Fleet, A2) =:= [{only, Q}];
                Names -> Names
            end
        end),
        await(fun() -> {call(Fleet, A1, inbox, [P1]), call(Fleet, A2, inbox, [P2])} =:=
                           {[{global_name_conflict, n, P2}], [{global_name_conflict, n, P1}]} end)
    end).

%% All nodes ask all others at once, while names are registered.
several_at_once(_) ->
    with(#{families => [sd(5)]}, fun(Fleet, All) ->
        Pids = [free_name(Fleet, N, {n, N}) || N <- All],
        Calls = [spawn_monitor(fun() -> s_group(Fleet, A, whereis_name, [B, undefined, x]) end)
                 || A <- All, B <- All, A =/= B],
        More = [free_name(Fleet, N, {m, N}) || N <- All],
        [receive {'DOWN', Mon, process, Pid, Why} -> ?assertEqual(normal, Why) end
         || {Pid, Mon} <- Calls],
        Expected = lists:sort([{{n, N}, P} || {N, P} <- lists:zip(All, Pids)] ++
                                  [{{m, N}, P} || {N, P} <- lists:zip(All, More)]),
        ?assertEqual(Expected, island(Fleet, All))
    end).

%% A node that enters an s_group is in no island; the others go on.
leaving_for_a_group(_) ->
    with(#{families => [sd(4)]}, fun(Fleet, [A1, A2, A3, A4] = All) ->
        [_ = s_group(Fleet, A1, whereis_name, [N, undefined, x]) || N <- [A2, A3]],
        island(Fleet, [A1, A2, A3]),
        Pids = [P1, P2, P3] = [free_name(Fleet, N, {n, N}) || N <- [A1, A2, A3]],
        3 = length(Pids),
        ?assertEqual({ok, g, [A1, A4]}, s_group(Fleet, A1, new_s_group, [g, [A1, A4]])),
        island(Fleet, [A2, A3]),
        %% By an order that nobody waits for.
        await(fun() -> [A1, A4] =:= s_group(Fleet, A1, own_nodes, []) end),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [undefined, {n, A2}])),
        ?assertEqual({no, cannot_register_in_remote_group},
                     s_group(Fleet, A1, register_name, [undefined, x, P1])),
        ?assertEqual([P2, P3], [s_group(Fleet, N, whereis_name, [undefined, {n, M}])
                                || {N, M} <- [{A3, A2}, {A2, A3}]]),
        %% Links stay, for they are nobody's to cut.
        ?assert(lists:member(A2, links(Fleet, A1))),
        %% A node of an s_group and a free one: asked, linked, not merged.
        ?assertEqual(undefined, s_group(Fleet, A4, whereis_name, [A2, g, x])),
        ?assertEqual(P2, s_group(Fleet, A4, whereis_name, [A2, g, {n, A2}])),
        ?assertEqual(undefined, s_group(Fleet, A2, whereis_name, [A4, undefined, x])),
        island(Fleet, [A2, A3]),
        %% The whole island at once.
        ?assertEqual({ok, h, [A2, A3]}, s_group(Fleet, A2, new_s_group, [h, [A2, A3]])),
        [?assertEqual([], s_group(Fleet, N, registered_names, [{node, N}])) || N <- All]
    end).

%% The nodes of a group that ends are linked, so they are one island, with the free ones that they
%% are linked to because of the library.
becoming_free(_) ->
    with(#{families => [sd(5)]}, fun(Fleet, [A1, A2, A3, A4, A5]) ->
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2, A3]]),
        P4 = free_name(Fleet, A4, n),
        _ = free_name(Fleet, A5, n),
        %% The caller's own link does not count, that of a question does.
        ?assertEqual(true, s_group(Fleet, A1, connect, [A5])),
        ?assertEqual(P4, s_group(Fleet, A1, whereis_name, [A4, undefined, n])),
        ok = s_group(Fleet, A1, delete_s_group, [g]),
        ?assertEqual([{n, P4}], island(Fleet, [A1, A2, A3, A4])),
        ?assertEqual([A5], s_group(Fleet, A5, own_nodes, [])),
        %% One that is removed while the others stay in their group is alone.
        {ok, h, _} = s_group(Fleet, A1, new_s_group, [h, [A1, A2]]),
        island(Fleet, [A3, A4]),
        ok = s_group(Fleet, A1, remove_nodes, [h, [A2]]),
        ?assertEqual([{n, P4}], island(Fleet, [A2, A3, A4])),
        ok = s_group(Fleet, A1, leave, [h]),
        ?assertEqual([{n, P4}], island(Fleet, [A1, A2, A3, A4]))
    end).

%% Groups that end and begin at the same time: a node that is in a group is in no island, and its
%% names are found. No island waits until a member is set aside, which takes longer than a case may;
%% and no node stays in the state of leaving one.
never_both(_) ->
    _ = sderl_ct:seed(),
    Env = [{sderl, set_aside_ms, 300_000}],
    with(#{families => [sd(4, Env)]}, fun(Fleet, [N1 | _] = All) ->
        {ok, all, All} = s_group(Fleet, N1, new_s_group, [all, All]),
        ok = s_group(Fleet, N1, delete_s_group, [all]),
        island(Fleet, All),
        lists:foreach(fun(K) ->
            replaced(Fleet, All, K),
            shuffled(Fleet, All, K),
            island(Fleet, All)
        end, lists:seq(1, 10))
    end).

%% A group ends and the next one of the same nodes begins.
replaced(Fleet, All, K) ->
    [N1, N2, N3 | _] = Nodes = lists:sort(fun(_, _) -> rand:uniform(2) =:= 1 end, All),
    Members = lists:sort([N1, N2, N3]),
    {ok, _, Members} = s_group(Fleet, N1, new_s_group, [{g, K}, Members]),
    ok = s_group(Fleet, N1, delete_s_group, [{g, K}]),
    {ok, _, Members} = s_group(Fleet, N1, new_s_group, [{h, K}, Members]),
    Pid = call(Fleet, N1, proc, []),
    ?assertEqual(yes, s_group(Fleet, N1, register_name, [{h, K}, x, Pid])),
    [?assertEqual({A, B, Pid}, {A, B, s_group(Fleet, A, whereis_name, [B, {h, K}, x])})
     || A <- Nodes, B <- Members],
    [?assertEqual([{h, K}],
                  [G || #{group := G} <- proplists:get_value(groups, s_group(Fleet, N, info, []))])
     || N <- Members],
    await(fun() ->
        [none || _ <- Members] =:= [call(Fleet, N, {sderl_dir, departing}, []) || N <- Members]
    end),
    ok = s_group(Fleet, N2, delete_s_group, [{h, K}]).

%% Groups at random, of whatever nodes are free, changed and ended without a pause.
shuffled(Fleet, All, K) ->
    lists:foreach(fun(J) -> change(Fleet, any_of(All), some_of(All), {K, J}) end, lists:seq(1, 4)),
    %% (A member may learn of the end of a group a moment later.)
    [_ = s_group(Fleet, N, delete_s_group, [G]) || N <- All, G <- groups_of(Fleet, N)].

change(Fleet, Node, Others, Id) ->
    case groups_of(Fleet, Node) of
        [] -> s_group(Fleet, Node, new_s_group, [{shuffled, Id}, lists:usort([Node | Others])]);
        [Group | _] ->
            case rand:uniform(4) of
                1 -> s_group(Fleet, Node, delete_s_group, [Group]);
                2 -> s_group(Fleet, Node, leave, [Group]);
                3 -> s_group(Fleet, Node, remove_nodes, [Group, lists:delete(Node, Others)]);
                4 -> s_group(Fleet, Node, add_nodes, [Group, Others])
            end
    end.

groups_of(Fleet, Node) -> [G || {G, _} <- s_group(Fleet, Node, own_s_groups, [])].

any_of(List) -> lists:nth(rand:uniform(length(List)), List).

some_of(List) -> [N || N <- List, rand:uniform(2) =:= 1].

turned_off(_) ->
    Off = (sd(2, [{sderl, free_islands, false}]))#{name => off},
    with(#{families => [Off, sd(1)]}, fun(Fleet, [O1, O2, A1]) ->
        P1 = free_name(Fleet, O1, n),
        ?assertEqual(P1, s_group(Fleet, O2, whereis_name, [O1, undefined, n])),
        ?assertEqual(P1, s_group(Fleet, A1, whereis_name, [O1, undefined, n])),
        ?assertEqual(undefined, s_group(Fleet, O1, whereis_name, [A1, undefined, n])),
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, O2]]),
        ok = s_group(Fleet, A1, delete_s_group, [g]),
        %% O2 may learn of the end of the group a moment later. Nobody meets anybody then.
        await(fun() ->
            case [{N, Ms}
                  || N <- [O1, O2, A1], Ms <- [s_group(Fleet, N, own_nodes, [])], Ms =/= [N]] of
                [] -> true;
                Others -> Others
            end
        end),
        [_ = call(Fleet, N, {sderl_node_client, settle}, []) || _ <- [1, 2], N <- [O1, O2, A1]],
        [?assertEqual([N], s_group(Fleet, N, own_nodes, [])) || N <- [O1, O2, A1]],
        ?assertEqual(P1, s_group(Fleet, O1, whereis_name, [undefined, n])),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [undefined, n]))
    end).

%% ---------------------------------------------------------------- faults

%% A restarted node is in its island again, without the names of its former life.
restarted(_) ->
    with(#{families => [sd(3)]}, fun(Fleet, [A1, A2, A3] = All) ->
        [_ = s_group(Fleet, A1, whereis_name, [N, undefined, x]) || N <- [A2, A3]],
        island(Fleet, All),
        P2 = free_name(Fleet, A2, two),
        _ = free_name(Fleet, A1, one),
        ok = sderl_fleet:kill(Fleet, A1),
        ?assertEqual([{two, P2}], island(Fleet, [A2, A3], All)),
        {ok, A1} = sderl_fleet:restart(Fleet, A1),
        ?assertEqual([{two, P2}], island(Fleet, All))
    end).

%% A node that was stopped while its island became part of another follows.
away_meanwhile(_) ->
    with(#{families => [sd(4, [{sderl, set_aside_ms, 1000}])]},
         fun(Fleet, [A1, A2, A3, A4] = All) ->
             %% The island of two is younger: it moves.
             P1 = free_name(Fleet, A1, one),
             ok = call(Fleet, A2, {application, stop}, [sderl]),
             ok = call(Fleet, A3, {application, stop}, [sderl]),
             ok = call(Fleet, A4, {application, stop}, [sderl]),
             [{ok, _} = call(Fleet, N, {application, ensure_all_started}, [sderl])
              || N <- [A2, A3, A4]],
             [_ = s_group(Fleet, A2, whereis_name, [N, undefined, x]) || N <- [A3, A4]],
             island(Fleet, [A2, A3, A4]),
             P4 = free_name(Fleet, A4, four),
             ok = sderl_fleet:suspend(Fleet, A4),
             ?assertEqual(P1, s_group(Fleet, A2, whereis_name, [A1, undefined, one])),
             await(fun() -> s_group(Fleet, A3, whereis_name, [undefined, one]) =:= P1 end),
             ok = sderl_fleet:resume(Fleet, A4),
             ?assertEqual(lists:sort([{one, P1}, {four, P4}]), island(Fleet, All))
         end).

%% Processes of the library die while islands merge.
killed_meanwhile(_) ->
    with(#{families => [sd(3)]}, fun(Fleet, [A1, A2, A3] = All) ->
        Pids = [free_name(Fleet, N, {n, N}) || N <- All],
        Expected = lists:sort([{{n, N}, P} || {N, P} <- lists:zip(All, Pids)]),
        Killers = [spawn_monitor(fun() -> ok = call(Fleet, N, {?MODULE, kill_some}, [25]) end)
                   || N <- All],
        Ask = fun() ->
            _ = s_group(Fleet, A1, whereis_name, [A2, undefined, x]),
            _ = s_group(Fleet, A2, whereis_name, [A3, undefined, x])
        end,
        Ask(),
        [receive {'DOWN', Mon, process, Pid, Why} -> ?assertEqual(normal, Why) end
         || {Pid, Mon} <- Killers],
        %% A message between two nodes may have been lost with a process; the next question repeats
        %% it.
        await(fun() -> Ask(), one(Fleet, All, All) end),
        ?assertEqual(Expected, names(Fleet, A1))
    end).

%% On a node: one of the library's processes dies, and the next one when somebody does its work
%% again.
kill_some(0) -> ok;
kill_some(Count) ->
    Named = [{name, N} || N <- [sderl_node, sderl_connector, sderl_ask]],
    All = [free, free, free | Named],
    Victim = lists:nth(rand:uniform(length(All)), All),
    Pid = where(Victim),
    is_pid(Pid) andalso exit(Pid, kill),
    ok = sderl_fleet:await(fun() ->
        New = where(Victim),
        (is_pid(New) andalso New =/= Pid andalso is_process_alive(New))
            orelse {Victim, Pid, New, sderl_dir:group(undefined), sderl_dir:start_uid(undefined)}
    end, 60_000),
    kill_some(Count - 1).

%% (Between two processes of the free namespace there is none.)
where({name, Name}) -> whereis(Name);
where(free) -> sderl_dir:process(undefined).

%% The process of an island is killed when the island moves: one process of it is left, of the
%% island that it moved to.
moved_meanwhile(_) ->
    with(#{families => [sd(1)]}, fun(Fleet, [A1]) ->
        {P, [P]} = call(Fleet, A1, {?MODULE, move_some}, [100]),
        ok = call(Fleet, A1, {?MODULE, stop_groups}, [])
    end).

%% On a node: the supervisor of groups ends in order.
stop_groups() ->
    Monitor = monitor(process, sderl_group_sup),
    ok = application:stop(sderl),
    receive {'DOWN', Monitor, process, _, Why} -> shutdown = Why, ok end.

%% On a node: to ever older islands.
move_some(0) -> {sderl_dir:process(undefined), island_processes()};
move_some(Count) ->
    #{uid := Own, process := Pid} = sderl_dir:group(undefined),
    #{mem := Mem} = sderl_dir:start_args(undefined, Own),
    Older = <<Count:64, "an island">>,
    true = exit(Pid, kill),
    lists:foreach(fun(_) -> ok end, lists:seq(1, rand:uniform(3000))),
    Me = self(),
    _ = sys:replace_state(sderl_node, fun(State) ->
        ok = sderl_free:hello(Older, {node(), undefined}, Me, Mem, hello),
        State
    end, 60_000),
    ok = sderl_fleet:await(fun() ->
        case {sderl_dir:group(undefined), island_processes()} of
            {#{uid := Older, process := New}, [New]} -> is_process_alive(New);
            Other -> {Own, Older, Other}
        end
    end, 60_000),
    move_some(Count - 1).

island_processes() ->
    [Pid || {_, Pid, _, _} <- supervisor:which_children(sderl_group_sup)].

%% ---------------------------------------------------------------- links of sends, words of others

%% A process on a node outside its group: the node that delivers to it opens a link, and the library
%% has the reason.
sends_note_their_links(_) ->
    with(#{families => [sd(5)]}, fun(Fleet, [A1, A2, A3, A4, A5]) ->
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2, A3]]),
        Pid = call(Fleet, A5, proc, []),
        ?assertEqual(yes, s_group(Fleet, A1, register_name, [g, n, Pid])),
        ?assertEqual(Pid, s_group(Fleet, A2, send, [g, n, one])),
        ?assertEqual(Pid, s_group(Fleet, A4, send, [A3, g, n, two])),
        await(fun() -> lists:sort(call(Fleet, A5, inbox, [Pid])) =:= [one, two] end),
        [?assertMatch([#{opened_by := library, reasons := [_ | _]}],
                      [L || #{node := M} = L <- s_group(Fleet, N, links, []), M =:= A5])
         || N <- [A1, A2, A3]],
        ?assertEqual([A3], links(Fleet, A4))
    end).

%% A free node knows the groups of nodes that were removed with it, and accepts no late messages of
%% them.
what_a_free_node_remembers(_) ->
    with(#{families => [sd(4)]}, fun(Fleet, [A1, A2, A3, A4]) ->
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2, A3]]),
        {ok, h, _} = s_group(Fleet, A3, new_s_group, [h, [A3, A4]]),
        Pid = call(Fleet, A4, proc, []),
        yes = s_group(Fleet, A4, register_name, [h, n, Pid]),
        await(fun() -> s_group(Fleet, A2, s_groups, []) =:= {[g], [h]} end),
        %% What was told before a node listened is asked for when it does.
        ok = call(Fleet, A2, {sderl_dir, unknow_from}, [A3]),
        ?assertEqual({[g], []}, s_group(Fleet, A2, s_groups, [])),
        true = call(Fleet, A2, {erlang, exit},
                    [call(Fleet, A2, {erlang, whereis}, [sderl_node]), kill]),
        await(fun() -> s_group(Fleet, A2, s_groups, []) =:= {[g], [h]} end),
        ok = s_group(Fleet, A1, remove_nodes, [g, [A2, A3]]),
        await(fun() -> s_group(Fleet, A2, own_s_groups, []) =:= [] end),
        ?assertEqual(Pid, s_group(Fleet, A2, whereis_name, [h, n])),
        %% As if A3 had said that on its way out.
        _ = call(Fleet, A1, {erlang, send},
                 [sderl_node, {sderl_known, 1, A3, [{g, [A1]}, {h, [A3, A4]}]}]),
        _ = call(Fleet, A1, {sderl_node_client, settle}, []),
        ?assertEqual({[g], []}, s_group(Fleet, A1, s_groups, [])),
        %% Two groups of one name: who deletes the one goes on to know the other.
        {ok, f, _} = s_group(Fleet, A1, new_s_group, [f, [A1]]),
        {ok, k, _} = s_group(Fleet, A1, new_s_group, [k, [A1, A2]]),
        await(fun() -> s_group(Fleet, A2, s_groups, []) =:= {[k], [f, g]} end),
        {ok, f, [A2]} = s_group(Fleet, A2, new_s_group, [f, [A1, A2]]),
        ok = s_group(Fleet, A2, delete_s_group, [f]),
        ?assertEqual({[k], [f, g]}, s_group(Fleet, A2, s_groups, []))
    end).

%% ---------------------------------------------------------------- links that nobody needs

%% The policy by default: an event for each, once, and the link stays.
links_reported(_) ->
    with(#{families => [sd(4, [{sderl, link_idle_ms, 300}])]}, fun(Fleet, [A1, A2, A3, A4]) ->
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        {ok, h, _} = s_group(Fleet, A3, new_s_group, [h, [A3]]),
        undefined = s_group(Fleet, A1, whereis_name, [A3, h, n]),
        true = s_group(Fleet, A1, connect, [A4]),
        Reports = fun() ->
            [L
             || L <- string:split(log(Fleet, A1), "\n", all),
                string:find(L, "nobody needs the link") =/= nomatch]
        end,
        await(fun() -> Reports() =/= [] end),
        await(fun() -> idle_for(Fleet, A1, A3, 1500) end),
        ?assertMatch([_], Reports()),
        ?assertNotEqual(nomatch, string:find(hd(Reports()), atom_to_list(A3))),
        ?assertEqual(lists:sort([A2, A3, A4]), links(Fleet, A1)),
        ?assertMatch([#{needed := false, opened_by := library}],
                     [L || #{node := N} = L <- s_group(Fleet, A1, links, []), N =:= A3])
    end).

idle_for(Fleet, Node, Other, Ms) ->
    Now = call(Fleet, Node, {erlang, monotonic_time}, [millisecond]),
    case lists:keyfind(Other, 1, call(Fleet, Node, {sderl_links, unneeded}, [#{}, Now, 0])) of
        {_, Idle} -> Idle >= Ms;
        false -> false
    end.

%% A link is closed only if the library opened it, neither end needs it, and both agree.
links_closed(_) ->
    Env = [{sderl, link_idle_ms, 300}, {sderl, link_policy, close}],
    Keeps = (sd(1))#{name => keeps},
    with(#{families => [sd(5, Env), Keeps]}, fun(Fleet, [A1, A2, A3, A4, A5, K]) ->
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        {ok, h, _} = s_group(Fleet, A3, new_s_group, [h, [A3]]),
        %% By hand; for the caller; for a name's process; to one that has another policy.
        true = call(Fleet, A1, {net_kernel, connect_node}, [A4]),
        true = s_group(Fleet, A4, connect, [A5]),
        Pid = call(Fleet, A5, proc, []),
        yes = s_group(Fleet, A1, register_name, [g, n, Pid]),
        undefined = s_group(Fleet, A1, whereis_name, [K, g, x]),
        %% For a question, which is over.
        ?assertEqual(lists:sort([A2, A3, A4, A5, K]), asked_and_links(Fleet, A1, [A3, h, n])),
        await(fun() -> not lists:member(A3, links(Fleet, A1)) end),
        ?assertNotEqual(nomatch, string:find(log(Fleet, A1),
                                             "nobody needs the link to '" ++ atom_to_list(A3))),
        await(fun() -> idle_for(Fleet, A1, K, 1500) end),
        ?assertEqual(lists:sort([A2, A4, A5, K]), links(Fleet, A1)),
        ?assertEqual(lists:sort([A1, A5]), links(Fleet, A4)),
        %% The name gone, so is what needed the link. The next question opens one again.
        ok = s_group(Fleet, A1, unregister_name, [g, n]),
        ok = s_group(Fleet, A1, delete_s_group, [g]),
        ?assert(lists:member(A3, asked_and_links(Fleet, A2, [A3, h, n]))),
        await(fun() -> not lists:member(A3, links(Fleet, A2)) end)
    end).

%% Looks as soon as the question is answered: half a second later the link may be closed.
asked_and_links(Fleet, Node, Question) ->
    call(Fleet, Node, {?MODULE, ask_and_look}, [Question]).

%% On a node.
ask_and_look(Question) ->
    undefined = apply(s_group, whereis_name, Question),
    lists:sort(nodes(connected)).
