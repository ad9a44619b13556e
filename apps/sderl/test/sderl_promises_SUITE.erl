%% SPDX-License-Identifier: Apache-2.0
-module(sderl_promises_SUITE).

%% What is promised to clients, while the library's processes, nodes and memberships come and go.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, all_on/3, await/2, again/3, group/3, settled/3]).

suite() -> [{timetrap, {minutes, 10}}].

%% Cases that kill nodes come last: the others share their nodes.
all() ->
    [joins_and_leaves, unique, exclusive, dead_before_its_new_name, killed_processes,
     killed_while_leaving, killed_with_many_names, supervised, stopped_member,
     stopped_coordinator, flooded_member, unanswered, killed_coordinators, restarted_node].

%% ---------------------------------------------------------------- registration

%% All race for the same names: one gets each, and then all members have it.
unique(_) ->
    sderl_ct:seed(),
    again(4, calm, fun(F, [A | _] = Nodes) ->
        [] = group(F, g, Nodes),
        Names = lists:seq(1, 60),
        Seed = rand:uniform(1 bsl 40),
        Won = lists:append(all_on(F, Nodes, fun() -> race(Names, Seed, Nodes) end)),
        ?assertEqual([], [Wrong || {wrong, _} = Wrong <- Won]),
        ?assertEqual([{N, 1} || N <- Names],
                     [{N, length([yes || {M, _} <- Won, M =:= N])} || N <- Names]),
        ?assertEqual(maps:from_list(Won), sderl_ct:names(F, A, g)),
        _ = settled(F, g, Nodes)
    end).

race(Names, Seed, Nodes) ->
    Racers = [spawn_monitor(fun() -> exit({raced, racer(Names, Seed + I, Nodes)}) end)
              || I <- lists:seq(1, 8)],
    lists:append([receive {'DOWN', Ref, process, _, {raced, Won}} -> Won;
                          {'DOWN', Ref, process, _, Why} -> [{wrong, Why}]
                  end || {_, Ref} <- Racers]).

racer(Names, Seed, Nodes) ->
    _ = rand:seed(exsss, erlang:phash2({Seed, node()})),
    lists:append([win(N, Nodes) || {_, N} <- lists:sort([{rand:uniform(), N} || N <- Names])]).

win(Name, Nodes) ->
    Pid = spawn(fun() -> receive after infinity -> ok end end),
    case s_group:register_name(g, Name, Pid) of
        yes ->
            case lists:usort(erpc:multicall(Nodes, s_group, whereis_name, [g, Name])) of
                [{ok, Pid}] -> [{Name, Pid}];
                Others -> [{wrong, {Name, Pid, Others}}]
            end;
        {no, name_or_pid_already_registered} ->
            %% Whoever has it had it everywhere before we were told.
            case s_group:whereis_name(g, Name) of
                Other when is_pid(Other) -> exit(Pid, kill), [];
                undefined -> [{wrong, {Name, no, undefined}}]
            end;
        Other -> [{wrong, {Name, Other}}]
    end.

%% A name as a lock: one holder at a time, and their tokens grow.
exclusive(_) ->
    sderl_ct:seed(),
    again(3, calm, fun(F, [A | _] = Nodes) ->
        [] = group(F, g, Nodes),
        Ledger = on(F, A, fun() -> spawn(fun() -> ledger([]) end) end),
        [ok, ok, ok] = all_on(F, Nodes, fun() ->
            Lockers = [spawn_monitor(fun() -> locker(30, Ledger) end) || _ <- lists:seq(1, 4)],
            lists:foreach(fun({_, Ref}) -> receive {'DOWN', Ref, process, _, normal} -> ok end end,
                          Lockers)
        end),
        Entries = on(F, A, fun() -> enter(Ledger, read) end),
        ?assertEqual(2 * 3 * 4 * 30, length(Entries)),
        ?assertEqual([], misplaced(Entries)),
        Tokens = [T || {in, _, T} <- Entries],
        ?assertEqual(Tokens, lists:usort(Tokens))
    end).

locker(0, _) -> ok;
locker(N, Ledger) ->
    case s_group:register_name(g, lock, self()) of
        yes ->
            #{pid := Pid, token := Token} = s_group:lookup(g, lock),
            Pid = self(),
            ok = enter(Ledger, {in, self(), Token}),
            ok = enter(Ledger, {out, self()}),
            ok = s_group:unregister_name(g, lock),
            locker(N - 1, Ledger);
        {no, name_or_pid_already_registered} -> locker(N, Ledger)
    end.

ledger(Entries) ->
    receive
        {From, Ref, read} -> From ! {Ref, lists:reverse(Entries)}, ledger(Entries);
        {From, Ref, Entry} -> From ! {Ref, ok}, ledger([Entry | Entries])
    end.

enter(Ledger, Entry) ->
    Ref = make_ref(),
    Ledger ! {self(), Ref, Entry},
    receive {Ref, Answer} -> Answer end.

misplaced([{in, Pid, _}, {out, Pid} | Entries]) -> misplaced(Entries);
misplaced(Entries) -> lists:sublist(Entries, 2).

%% ---------------------------------------------------------------- processes of the library

%% A process had a name and has none; it dies, and its node has yet to see to that and to a batch
%% that gives it another.
dead_before_its_new_name(_) ->
    again(2, calm, fun(F, [A, B] = Nodes) ->
        [] = group(F, g, Nodes),
        P = sderl_ct:process(F, B),
        yes = on(F, A, fun() -> s_group:register_name(g, first, P) end),
        ok = on(F, A, fun() -> s_group:unregister_name(g, first) end),
        Holder = on(F, B, fun() -> spawn(fun hold/0) end),
        await(held, fun() ->
            on(F, B, fun() -> process_info(group_process(), status) end) =:= {status, suspended}
        end),
        Client = on(F, A, fun() ->
            spawn(fun() ->
                Answer = s_group:register_name(g, second, P),
                receive {tell, To} -> To ! {answer, Answer} end
            end)
        end),
        await(batch, fun() ->
            {messages, Ms} = on(F, B, fun() -> process_info(group_process(), messages) end),
            lists:any(fun(M) ->
                is_tuple(M) andalso element(1, M) =:= sderl
                    andalso element(1, element(5, M)) =:= batch
            end, Ms)
        end),
        true = on(F, B, fun() -> exit(P, kill) end),
        await(dead, fun() -> not sderl_ct:alive(F, P) end),
        go = on(F, B, fun() -> Holder ! go end),
        yes = on(F, A, fun() ->
            Client ! {tell, self()},
            receive {answer, Answer} -> Answer after 60_000 -> none end
        end),
        await(gone, fun() ->
            [undefined, undefined] =:=
                all_on(F, Nodes, fun() -> s_group:whereis_name(g, second) end)
        end)
    end).

hold() ->
    true = erlang:suspend_process(group_process()),
    receive go -> ok end.

group_process() -> sderl_dir:process(g).

%% A founder's process is killed when it was dropping its tables: it does not found the group once
%% more.
killed_while_leaving(_) ->
    again(1, calm, fun(F, [A]) ->
        [] = group(F, g, [A]),
        P = sderl_ct:process(F, A),
        yes = on(F, A, fun() -> s_group:register_name(g, x, P) end),
        on(F, A, fun() ->
            Pid = sderl_dir:process(g),
            true = erlang:suspend_process(Pid),
            true = ets:update_element(sderl_state, {init, g},
                                      {3, {leaving, Pid, {left, deleted, [node()]}}}),
            true = ets:delete(sderl_groups, g),
            true = sderl_saved:purge(g),
            exit(Pid, kill)
        end),
        await(left, fun() ->
            on(F, A, fun() ->
                {s_group:own_s_groups(), sderl_dir:is_free(), ets:tab2list(sderl_names)}
            end) =:= {[], true, []}
        end),
        [] = group(F, g, [A]),
        ?assertEqual(undefined, on(F, A, fun() -> s_group:whereis_name(g, x) end))
    end).

%% Any of these processes is killed, at any time, on all nodes: nothing that was answered is lost or
%% done twice. Questions of a non-member end, with the truth or with nothing; members of a process
%% group stay in it; subscribers go on hearing.
killed_processes(_) ->
    sderl_ct:seed(),
    again(4, calm, fun(F, All) ->
        {[A | _] = Nodes, [Stranger]} = lists:split(3, All),
        [] = group(F, g, Nodes),
        [] = group(F, h, tl(Nodes)),
        %% A gateway tells the stranger of the group.
        [] = group(F, k, [A, Stranger]),
        await(known,
              fun() -> Nodes =:= on(F, Stranger, fun() -> lists:sort(sderl_dir:known(g)) end) end),
        Fixed = sderl_ct:process(F, A),
        yes = on(F, A, fun() -> s_group:register_name(g, fixed, Fixed) end),
        OfG = clients(F, g, Nodes, 3),
        OfH = clients(F, h, tl(Nodes), 1),
        Asker = on(F, Stranger, fun() -> spawn(fun() -> asker(A, Fixed, #{}) end) end),
        Joiners = [on(F, N, fun() -> spawn(fun() -> joiner([]) end) end) || N <- Nodes],
        Subscribers = [sderl_ct:listener(F, N, g, [name]) || N <- Nodes],
        Seeds = #{N => rand:uniform(1 bsl 40) || N <- All},
        Killed = lists:append(all_on(F, All, fun() ->
            _ = rand:seed(exsss, maps:get(node(), Seeds)),
            [kill_one() || _ <- lists:seq(1, 40)]
        end)),
        ct:pal("killed ~p",
               [maps:to_list(maps:groups_from_list(fun(V) -> V end, fun(_) -> x end, Killed))]),
        busy(F, OfG ++ OfH, 100),
        finish(F, g, Nodes, OfG, #{fixed => Fixed}),
        finish(F, h, tl(Nodes), OfH),
        Info = on(F, A, fun s_group:info/0),
        ?assertEqual([g, k], lists:sort(proplists:get_value(own_group_names, Info))),
        %% Nothing but that process or nothing at all, and now that all is quiet it is that process.
        Answers = told(F, Asker),
        ct:pal("a stranger was told ~p", [Answers]),
        ?assertEqual([], maps:keys(Answers) -- [Fixed, undefined]),
        await(stranger,
              fun() -> Fixed =:= on(F, Stranger, fun() -> s_group:whereis_name(g, fixed) end) end),
        %% As often as each joined, on all nodes.
        Joined = lists:sort(lists:append([told(F, J) || J <- Joiners])),
        await(members, fun() ->
            Seen = all_on(F, Nodes, fun() -> lists:sort(s_group:members(g, workers)) end),
            lists:usort(Seen) =:= [Joined] orelse {Joined, Seen}
        end),
        ct:pal("~b joins", [length(Joined)]),
        %% (What was sent to a process that was killed is lost, and so some events may be.)
        Last = sderl_ct:process(F, A),
        yes = on(F, A, fun() -> s_group:register_name(g, last, Last) end),
        await(heard, fun() ->
            Deaf = [S
                    || S <- Subscribers,
                       not lists:any(fun({s_group_event, _, g, {name, registered, last, P}}) ->
                                            P =:= Last;
                                        (_) -> false
                                     end, sderl_ct:heard(F, S))],
            Deaf =:= [] orelse Deaf
        end)
    end).

%% What it knows, when it is asked; it ends then.
told(F, Pid) ->
    on(F, node(Pid), fun() ->
        Ref = monitor(process, Pid),
        Pid ! {tell, self(), Ref},
        receive
            {Ref, Answer} -> demonitor(Ref, [flush]), Answer;
            {'DOWN', Ref, process, _, Why} -> error(Why)
        end
    end).

%% Asks the group, a member, and by way of a message, and counts the answers.
asker(Member, Fixed, Answers) ->
    receive
        {tell, From, Ref} -> From ! {Ref, Answers}
    after rand:uniform(20) ->
        Answer = case rand:uniform(3) of
            1 -> s_group:whereis_name(g, fixed);
            2 -> s_group:whereis_name(Member, g, fixed);
            3 ->
                case s_group:send(Member, g, fixed, hello) of
                    {badarg, {g, fixed, hello}} -> undefined;
                    P -> P
                end
        end,
        asker(Member, Fixed, maps:update_with(Answer, fun(N) -> N + 1 end, 1, Answers))
    end.

%% Joins and leaves with processes of its own; of a call that ended with the process that it asked
%% nobody knows what came of it, and its process ends.
joiner(Joined) ->
    receive {tell, From, Ref} -> From ! {Ref, Joined}, receive after infinity -> ok end
    after rand:uniform(20) ->
        Change = case {Joined, rand:uniform(3)} of
            {[P | _], 1} -> {leave, P};
            {[P | _], 2} -> {join, P};
            _ -> {join, spawn(fun() -> receive after infinity -> ok end end)}
        end,
        joiner(changed(Change, Joined))
    end.

changed({What, P}, Joined) ->
    try s_group:What(g, workers, P) of
        ok when What =:= join -> [P | Joined];
        ok -> lists:delete(P, Joined);
        {error, not_running} -> Joined
    catch
        exit:_ ->
            exit(P, kill),
            [Q || Q <- Joined, Q =/= P]
    end.

%% Waits until a successor does its work.
kill_one() ->
    Groups = [{group, G} || G <- sderl_dir:groups()],
    Scopes = [{Which, Uid}
              || {{scope, Uid}, _, _, _} <- ets:tab2list(sderl_pg), Which <- [scope, keeper]],
    Victims = Groups ++ Groups ++ Scopes ++
        [{child, Id} || {Id, _, _, _} <- supervisor:which_children(sderl_sup)],
    Victim = lists:nth(rand:uniform(length(Victims)), Victims),
    %% One that its supervisor's death took along may be on its way back.
    ok = sderl_fleet:await(fun() -> is_pid(where(Victim)) end, 60_000),
    Pid = where(Victim),
    exit(Pid, kill),
    ok = sderl_fleet:await(fun() ->
        New = where(Victim),
        New =/= Pid andalso is_pid(New) andalso is_process_alive(New)
    end, 60_000),
    receive after rand:uniform(60) -> ok end,
    Victim.

where({group, G}) -> sderl_dir:process(G);
where({scope, Uid}) -> whereis(ets:lookup_element(sderl_pg, {scope, Uid}, 3));
where({keeper, Uid}) -> ets:lookup_element(sderl_pg, {scope, Uid}, 4);
where({child, Id}) -> element(2, lists:keyfind(Id, 1, supervisor:which_children(sderl_sup))).

%% ---------------------------------------------------------------- nodes

%% The coordinator's process is killed: what its successor does until it answers is not more where
%% there are more names. What it has to do with each of them it does later.
killed_with_many_names(_) ->
    again(2, [{tick_ms, 4000}, {set_aside_ms, 15_000}, {write_timeout_ms, 60_000}],
         fun(F, [A | _] = Nodes) ->
             [] = group(F, g, Nodes),
             [Lead] = lists:usort(all_on(F, Nodes,
                                         fun() -> maps:get(coordinator, sderl_dir:group(g)) end)),
             Work = fun(Round) -> on(F, Lead, fun() -> work_until_write(Round) end) end,
             Hold = fun(From, To) ->
                 _ = all_on(F, Nodes, fun() -> hold_names(From, To) end),
                 %% (The pieces of what is done later may come between.)
                 lists:min([Work({From, Round}) || Round <- lists:seq(1, 3)])
             end,
             Few = Hold(1, 500),
             Many = Hold(501, 10_000),
             ct:pal("reductions with 1,000 and 20,000 names: ~b ~b", [Few, Many]),
             ?assert(Many < Few + 20_000),
             ?assertEqual([20_000, 20_000], all_on(F, Nodes, fun() -> sderl_names:count(g) end)),
             %% A process still has one name, and none when it has ended.
             on(F, Lead, fun() ->
                 Held = sderl_names:pid(g, {Lead, 7}),
                 ?assertEqual({no, name_or_pid_already_registered},
                              s_group:register_name(g, another, Held)),
                 exit(sderl_dir:process(g), kill),
                 exit(Held, kill)
             end),
             await(removed,
                   fun() -> on(F, A, fun() -> sderl_names:pid(g, {Lead, 7}) end) =:= none end),
             _ = settled(F, g, Nodes)
         end).

%% The reductions of the new process.
work_until_write(Round) ->
    Before = sderl_dir:process(g),
    Monitor = monitor(process, Before),
    exit(Before, kill),
    receive {'DOWN', Monitor, process, Before, killed} -> ok end,
    yes = s_group:register_name(g, Round, self()),
    After = sderl_dir:process(g),
    ?assertNotEqual(Before, After),
    {reductions, Work} = process_info(After, reductions),
    ok = s_group:unregister_name(g, Round),
    Work.

%% Each by a process of its own.
hold_names(From, To) ->
    Self = self(),
    Held = [spawn(fun() ->
                yes = s_group:register_name(g, {node(), N}, self()),
                Self ! {held, self()},
                receive stop -> ok end
            end) || N <- lists:seq(From, To)],
    lists:foreach(fun(Pid) -> receive {held, Pid} -> ok end end, Held).

%% kill -9 of the coordinator's node while all write, and its return, several times.
killed_coordinators(_) ->
    sderl_ct:seed(),
    again(4, calm, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Clients = maps:groups_from_list(fun erlang:node/1, clients(F, g, Nodes, 3)),
        lists:foldl(fun(_, Cs) ->
            busy(F, lists:append(maps:values(Cs)), 20),
            Lead = sderl_ct:lead(F, hd(Nodes), g),
            ok = sderl_fleet:kill(F, Lead),
            Left = maps:remove(Lead, Cs),
            Others = maps:keys(Left),
            Survivors = lists:append(maps:values(Left)),
            busy(F, Survivors, 20),
            %% The dead node's names are gone, everybody else's are there.
            Held = pause(F, Survivors),
            sderl_ct:hold_all(F, g, {Others, Nodes}, Held),
            {ok, Lead} = sderl_fleet:restart(F, Lead),
            sderl_ct:hold_all(F, g, {Nodes, Nodes}, Held),
            [sderl_ct_client:go_on(F, C) || C <- Survivors],
            Left#{Lead => clients(F, g, [Lead], 3)}
        end, Clients, lists:seq(1, 3)),
        ok
    end).

%% Writes on three members while others come and go in every way there is.
joins_and_leaves(_) ->
    sderl_ct:seed(),
    again(5, calm, fun(F, [A, B, C, D, E]) ->
        [] = group(F, g, [A, B, C]),
        Fixed = [{{fixed, I}, P} || {I, P} <- lists:enumerate(sderl_ct:processes(F, B, 300))],
        on(F, B, fun() -> [yes = s_group:register_name(g, N, P) || {N, P} <- Fixed] end),
        Clients = clients(F, g, [A, B, C], 3),
        Whole = fun(N) ->
            ?assertEqual([], on(F, N, fun() ->
                [Name || {Name, P} <- Fixed, s_group:whereis_name(g, Name) =/= P]
            end))
        end,
        lists:foreach(fun(I) ->
            {ok, g, [D]} = on(F, A, fun() -> s_group:add_nodes(g, [D]) end),
            Whole(D),
            {ok, g, _} = on(F, E, fun() -> s_group:enter(g, [A, B]) end),
            Whole(E),
            %% It takes part; what it registered stays when it goes.
            [P] = sderl_ct:processes(F, D, 1),
            yes = on(F, D, fun() -> s_group:register_name(g, {d, I}, P) end),
            ok = on(F, B, fun() -> s_group:remove_nodes(g, [D]) end),
            {no, cannot_register_in_remote_group} =
                on(F, D, fun() -> s_group:register_name(g, {e, I}, P) end),
            ok = on(F, E, fun() -> s_group:leave(g) end),
            {error, node_does_not_belong_to_the_s_group} = on(F, E, fun() -> s_group:leave(g) end),
            ?assertEqual(P, on(F, C, fun() -> s_group:whereis_name(g, {d, I}) end)),
            ok = sderl_ct:kill(F, P, kill)
        end, lists:seq(1, 6)),
        busy(F, Clients, 20),
        finish(F, g, [A, B, C], Clients, maps:from_list(Fixed))
    end).

%% A node's second life has everything that the others have, and nothing of its first (rule 3).
restarted_node(_) ->
    again(3, calm, fun(F, [A, B, C] = Nodes) ->
        [] = group(F, g, Nodes),
        [P, Q] = [sderl_ct:process(F, N) || N <- [A, C]],
        yes = on(F, A, fun() -> s_group:register_name(g, stays, P) end),
        yes = on(F, C, fun() -> s_group:register_name(g, goes, Q) end),
        [begin
             ok = sderl_fleet:End(F, C),
             await(goes,
                   fun() -> undefined =:= on(F, B, fun() -> s_group:whereis_name(g, goes) end) end),
             {ok, C} = sderl_fleet:restart(F, C),
             [{stays, #{pid := P}}] = settled(F, g, Nodes),
             New = sderl_ct:process(F, C),
             ?assertEqual(yes, on(F, C, fun() -> s_group:register_name(g, goes, New) end)),
             [?assertEqual(New, on(F, N, fun() -> s_group:whereis_name(g, goes) end)) || N <- Nodes]
         end || End <- [kill, stop_node]],
        ?assertMatch([{goes, _}, {stays, #{pid := P}}], settled(F, g, Nodes))
    end).

%% ---------------------------------------------------------------- supervision

%% Exactly as many restarts as kills are allowed: one more, for a name that was not free at once,
%% would end the supervisor.
supervised(_) ->
    sderl_ct:seed(),
    Kills = 25,
    again(3, calm, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Sups = [on(F, N, fun() ->
            {ok, Sup} = supervisor:start_link(?MODULE,
                                              {sup, {via, s_group, {g, {server, N}}}, Kills}),
            unlink(Sup),
            Sup
        end) || N <- Nodes],
        Writers = clients(F, g, Nodes, 1),
        lists:foreach(fun(_) ->
            Olds = [on(F, N, fun() -> s_group:whereis_name(g, {server, N}) end) || N <- Nodes],
            [ok = sderl_ct:kill(F, Old, kill) || Old <- Olds],
            await({restarted, Olds}, fun() ->
                Found = lists:usort(all_on(F, Nodes,
                                           fun() -> [answers({server, N}, N) || N <- Nodes] end)),
                [] =:= [P || Ps <- Found, P <- Ps, not is_pid(P) orelse lists:member(P, Olds)]
                    andalso length(Found) =:= 1 orelse Found
            end)
        end, lists:seq(1, Kills)),
        ?assertEqual([true, true, true], [sderl_ct:alive(F, Sup) || Sup <- Sups]),
        [_ = sderl_ct_client:stop(F, C) || C <- Writers]
    end).

%% Who answers on this name.
answers(Name, Node) ->
    try gen_server:call({via, s_group, {g, Name}}, who) of
        {Node, Pid} -> Pid
    catch
        exit:_ -> none
    end.

init({sup, Via, Kills}) ->
    {ok, {#{intensity => Kills, period => 3600},
          [#{id => server, start => {gen_server, start_link, [Via, ?MODULE, server, []]}}]}};
init(server) -> {ok, state}.

handle_call(who, _, S) -> {reply, {node(), self()}, S}.

handle_cast(_, S) -> {noreply, S}.

%% ---------------------------------------------------------------- nodes that stand still

%% It is set aside, keeps its names, and catches up (rule 12).
stopped_member(_) ->
    sderl_ct:seed(),
    again(3, quick, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Lead = sderl_ct:lead(F, hd(Nodes), g),
        [M, N] = Nodes -- [Lead],
        P = sderl_ct:process(F, M),
        yes = on(F, M, fun() -> s_group:register_name(g, stopped, P) end),
        Clients = clients(F, g, Nodes, 2),
        Others = [C || C <- Clients, node(C) =/= M],
        busy(F, Clients, 20),
        ok = sderl_fleet:suspend(F, M),
        await(aside, fun() -> lists:member(M, maps:get(aside, sderl_ct:state(F, Lead, g))) end),
        busy(F, Others, 50),
        ?assertEqual([P, P], all_on(F, [Lead, N], fun() -> s_group:whereis_name(g, stopped) end)),
        ok = sderl_fleet:resume(F, M),
        busy(F, Clients, 20),
        finish(F, g, Nodes, Clients, #{stopped => P})
    end).

%% A coordinator that was stopped for longer than the set-aside time: another one leads by then, and
%% the old one cannot answer its open operations any more (rules 9, 10).
stopped_coordinator(_) ->
    sderl_ct:seed(),
    again(3, quick, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Clients = clients(F, g, Nodes, 3),
        lists:foreach(fun(_) ->
            busy(F, Clients, 20),
            Lead = sderl_ct:lead(F, hd(Nodes), g),
            Others = Nodes -- [Lead],
            ok = sderl_fleet:suspend(F, Lead),
            await(successor, fun() ->
                Leads = [sderl_ct:lead(F, N, g) || N <- Others],
                [] =:= [L || L <- Leads, not lists:member(L, Others)] orelse Leads
            end),
            busy(F, [C || C <- Clients, node(C) =/= Lead], 50),
            ok = sderl_fleet:resume(F, Lead),
            busy(F, Clients, 20)
        end, lists:seq(1, 3)),
        finish(F, g, Nodes, Clients)
    end).

%% A process floods a stopped member: that process is suspended, and no process of the library, so
%% the others go on (rule 20).
flooded_member(_) ->
    again(3, quick, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Lead = sderl_ct:lead(F, hd(Nodes), g),
        [Member, Other] = Nodes -- [Lead],
        Target = sderl_ct:process(F, Member),
        Pids = [{N, sderl_ct:process(F, N)} || N <- [Lead, Other]],
        ok = sderl_fleet:suspend(F, Member),
        {Watcher, Flooder} =
            on(F, Lead, fun() -> {spawn(?MODULE, held, [[]]), spawn(?MODULE, flood, [Target])} end),
        ok = on(F, Lead,
                fun() -> Watcher ! {watch, self()}, receive watching -> Flooder ! go, ok end end),
        Held = fun() ->
            on(F, Lead, fun() -> Watcher ! {who, self()}, receive {held, Who} -> Who end end)
        end,
        await(flooded, fun() -> lists:keymember(Flooder, 1, Held()) orelse Held() end),
        [?assertEqual(yes, on(F, N, fun() -> s_group:register_name(g, {flooded, N}, P) end))
         || {N, P} <- Pids],
        await(aside,
              fun() -> lists:member(Member, maps:get(aside, sderl_ct:state(F, Lead, g))) end),
        ?assertEqual([], [P || {P, {ok, sderl}} <- Held()]),
        ok = on(F, Lead, fun() -> Flooder ! stop, ok end),
        ok = sderl_fleet:resume(F, Member),
        sderl_ct:hold_all(F, g, {Nodes, Nodes}, #{{flooded, N} => P || {N, P} <- Pids})
    end).

%% On a node: which processes a full link has held, each with its application.
held(Who) ->
    receive
        {watch, From} ->
            _ = erlang:system_monitor(self(), [busy_dist_port]),
            From ! watching,
            held(Who);
        {monitor, Pid, busy_dist_port, _} -> held([{Pid, application:get_application(Pid)} | Who]);
        {who, From} -> From ! {held, Who}, held(Who)
    end.

flood(Target) ->
    receive go -> flood(Target, binary:copy(<<"flood">>, 20_000)) end.

flood(Target, Data) ->
    receive
        stop -> ok
    after 0 ->
        Target ! Data,
        flood(Target, Data)
    end.

%% A write without an answer exits after its time limit; a read shows its outcome (rule 19).
unanswered(_) ->
    again(2, [{tick_ms, 500}, {set_aside_ms, 60_000}, {write_timeout_ms, 5000}], fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Lead = sderl_ct:lead(F, hd(Nodes), g),
        [Other] = Nodes -- [Lead],
        P = sderl_ct:process(F, Other),
        ok = sderl_fleet:suspend(F, Lead),
        ?assertMatch({'EXIT', {timeout, {s_group, write, [g, _]}}}, on(F, Other, fun() ->
            try s_group:register_name(g, x, P)
            catch exit:Why -> {'EXIT', Why}
            end
        end)),
        ?assertEqual(undefined, on(F, Other, fun() -> s_group:whereis_name(g, x) end)),
        ok = sderl_fleet:resume(F, Lead),
        sderl_ct:hold_all(F, g, {Nodes, Nodes}, #{x => P})
    end).

%% ---------------------------------------------------------------- clients

clients(F, G, Nodes, PerNode) ->
    [sderl_ct_client:start(F, N, G, {N, I, rand:uniform(1 bsl 30)}, 20)
     || N <- Nodes, I <- lists:seq(1, PerNode)].

%% Each of them has got so many more answers.
busy(F, Clients, More) ->
    Start = [{C, sderl_ct_client:count(F, C)} || C <- Clients],
    await(busy, fun() ->
        Slow = [{C, N - S} || {C, S} <- Start, N <- [sderl_ct_client:count(F, C)], N < S + More],
        Slow =:= [] orelse Slow
    end).

pause(F, Clients) ->
    lists:foldl(fun maps:merge/2, #{}, [sderl_ct_client:pause(F, C) || C <- Clients]).

%% All members have the names that the clients of this group hold, and no other.
finish(F, G, Nodes, Clients) -> finish(F, G, Nodes, Clients, #{}).

finish(F, G, Nodes, Clients, More) ->
    Held = pause(F, Clients),
    sderl_ct:hold_all(F, G, {Nodes, Nodes}, maps:merge(Held, More)).
