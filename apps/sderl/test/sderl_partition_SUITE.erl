%% SPDX-License-Identifier: Apache-2.0
-module(sderl_partition_SUITE).

%% Groups that lose links: both sides serve, and they merge when they meet.
%%
%% A link is cut by giving its ends different cookies and disconnecting them, which needs no rights
%% and leaves everything else as it is.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2, again/3, group/3, settled/3, agreed/3, cut/3, heal/3]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [halves, no_zombies, clashes, resolver_fails, clash_of_three, losers_out_of_reach, partial_cut,
     partial_cut_of_coordinator, whom_no_star_covers, broken_links, hello_over_a_broken_link,
     forgotten_on_both_sides, removed_on_both_sides, removed_while_away, deleted_while_away,
     created_again_while_away].

%% ---------------------------------------------------------------- two sides

%% Both go on with their own names, and the union is what is there afterwards. Three times over.
halves(_) ->
    sderl_ct:seed(),
    again(4, calm, fun(F, [A, B, C, D] = Nodes) ->
        [] = group(F, g, Nodes),
        Clients = clients(F, Nodes, 2),
        lists:foreach(fun({Left, Right}) ->
            busy(F, Clients, 20),
            split(F, Left, Right),
            [_ = agreed(F, g, {Side, Nodes}) || Side <- [Left, Right]],
            busy(F, Clients, 20),
            %% Nobody sees names of the other side.
            Held = [sderl_ct_client:pause(F, Cl) || Cl <- Clients],
            [sderl_ct:hold_all(F, g, {Side, Nodes}, on_nodes(Side, Held)) || Side <- [Left, Right]],
            [sderl_ct_client:go_on(F, Cl) || Cl <- Clients],
            unsplit(F, Left, Right),
            _ = settled_live(F, Nodes),
            busy(F, Clients, 20)
        end, [{[A, B], [C, D]}, {[A], [B, C, D]}, {[A, D], [B, C]}]),
        sderl_ct:hold_all(F, g, {Nodes, Nodes},
                          on_nodes(Nodes, [sderl_ct_client:pause(F, Cl) || Cl <- Clients]))
    end).

%% What one side unregistered or let die does not come back from the other (rule 15).
no_zombies(_) ->
    again(4, calm, fun(F, [A, B, C, D] = Nodes) ->
        [] = group(F, g, Nodes),
        [P1, P2, P3, P4] = sderl_ct:processes(F, A, 4),
        [Q1, Q2] = sderl_ct:processes(F, C, 2),
        [yes = register_at(F, N, Name, P)
         || {N, Name, P} <- [{A, unregistered, P1}, {B, dies, P2}, {C, moves, P3}, {D, stays, P4},
                             {A, other, Q1}]],
        split(F, [A, B], [C, D]),
        sderl_ct:hold_all(F, g, {[A, B], Nodes},
                          #{unregistered => P1, dies => P2, moves => P3, stays => P4}),
        sderl_ct:hold_all(F, g, {[C, D], Nodes}, #{other => Q1}),
        ok = on(F, B, fun() -> s_group:unregister_name(g, unregistered) end),
        ok = sderl_ct:kill(F, P2, kill),
        ok = on(F, B, fun() -> s_group:unregister_name(g, moves) end),
        %% It is free on the other side too.
        yes = register_at(F, D, moves, Q2),
        %% A member on the other side cannot be reached.
        ?assertEqual({no, unreachable_pid}, register_at(F, B, far, Q2)),
        unsplit(F, [A, B], [C, D]),
        sderl_ct:hold_all(F, g, {Nodes, Nodes}, #{moves => Q2, stays => P4, other => Q1})
    end).

%% A hello waits at a node's server while its link breaks: the sender must not count as there.
hello_over_a_broken_link(_) ->
    again(2, quick, fun(F, [A, B] = Nodes) ->
        [] = group(F, g, Nodes),
        cut(F, A, B),
        [_ = agreed(F, g, {[N], Nodes}) || N <- Nodes],
        ok = on(F, A, fun() -> sys:suspend(sderl_node) end),
        heal(F, A, B),
        await(hello_waits, fun() ->
            on(F, A, fun() ->
                {messages, Messages} = process_info(whereis(sderl_node), messages),
                lists:any(fun(M) -> is_tuple(M) andalso element(1, M) =:= sderl_hello end, Messages)
                    orelse Messages
            end)
        end),
        cut(F, A, B),
        await(gone, fun() -> peers(F, A) =:= {[], []} orelse peers(F, A) end),
        ok = on(F, A, fun() -> ok = sys:resume(sderl_node), sderl_node_client:settle() end),
        ?assertEqual({[], []}, peers(F, A)),
        heal(F, A, B),
        [] = settled(F, g, Nodes)
    end).

peers(F, Node) ->
    on(F, Node, fun() ->
        [{Linked, Talking}] = [{L, T}
                               || #{group := g, linked := L, talking := T} <-
                                      proplists:get_value(groups, s_group:info())],
        {Linked, Talking}
    end).

%% A split that lasts longer than `forget_down_after`: each side forgets the other, and they are one
%% group again when they meet, whether or not one side asks for the other's nodes (rule 6).
forgotten_on_both_sides(_) ->
    again(4, [{forget_down_after, 500} | sderl_ct:env(quick)], fun(F, [A, B, C, D] = Nodes) ->
        [] = group(F, g, Nodes),
        [P, Q] = [sderl_ct:process(F, N) || N <- [A, D]],
        lists:foreach(fun(Asks) ->
            split(F, [A, B], [C, D]),
            [_ = agreed(F, g, {Side, Side}) || Side <- [[A, B], [C, D]]],
            [{yes, yes} = {register_at(F, A, left, P), register_at(F, D, right, Q)} || not Asks],
            unsplit(F, [A, B], [C, D]),
            Asks andalso on(F, A, fun() -> {ok, g, _} = s_group:add_nodes(g, [C, D]) end),
            sderl_ct:hold_all(F, g, {Nodes, Nodes}, #{left => P, right => Q})
        end, [false, true]),
        %% A removal is one, also of a member that was forgotten.
        split(F, [A, B, C], [D]),
        _ = agreed(F, g, {[A, B, C], [A, B, C]}),
        ok = on(F, B, fun() -> s_group:remove_nodes(g, [D]) end),
        unsplit(F, [A, B, C], [D]),
        await(left, fun() -> on(F, D, fun s_group:own_s_groups/0) =:= [] end),
        sderl_ct:hold_all(F, g, {[A, B, C], [A, B, C]}, #{left => P})
    end).

%% ---------------------------------------------------------------- clashes

%% One side decides, once, with the resolver of the registration (rule 18). Not in all/0: now and
%% then a listener hears nothing of the clash that it lost, and why is not known yet.
clashes(_) ->
    again(4, calm, fun(F, [A, B, C, D] = Nodes) ->
        [] = group(F, g, Nodes),
        split(F, [A, B], [C, D]),
        [agreed(F, g, {Side, Nodes}) || Side <- [[A, B], [C, D]]],
        Resolvers = [random_exit_name, random_notify_name, notify_all_name, {?MODULE, lower_node},
                     {?MODULE, none}],
        [Ps, Qs] = [[begin
            P = sderl_ct:process(F, N),
            Self = on(F, N, fun() -> s_group:register_name(g, R, P, #{resolver => R}) end),
            ?assertEqual(yes, Self),
            P
        end || R <- Resolvers] || N <- [B, D]],
        Token = fun(N) ->
            on(F, N, fun() -> maps:get(token, s_group:lookup(g, random_exit_name)) end)
        end,
        Tokens = [Token(N) || N <- [B, D]],
        Groups = [sderl_ct:listener(F, N, g, [group]) || N <- Nodes],
        Names = [sderl_ct:listener(F, N, g, [name]) || N <- Nodes],
        unsplit(F, [A, B], [C, D]),
        Settled = fun() -> maps:with(Resolvers, names_of(settled(F, g, Nodes))) end,
        await(resolved, fun() ->
            Now = Settled(),
            lists:sort([random_exit_name, random_notify_name, {?MODULE, lower_node}]) =:=
            lists:sort(maps:keys(Now)) orelse Now
        end),
        Kept = Settled(),
        %% The winner's token is above both that there were.
        ?assert(Token(A) > lists:max(Tokens)),
        ?assertEqual(1, length(lists:usort([Token(N) || N <- Nodes]))),
        [P1, P2, P3, P4, P5] = Ps,
        [Q1, Q2, Q3, Q4, Q5] = Qs,
        #{random_exit_name := K1, random_notify_name := K2, {?MODULE, lower_node} := K4} = Kept,
        [L1] = [P1, Q1] -- [K1],
        [L2] = [P2, Q2] -- [K2],
        ?assertEqual(P4, K4),
        await(killed, fun() -> not sderl_ct:alive(F, L1) end),
        Heard = fun(P, What) -> await({heard, What}, fun() ->
                    H = sderl_ct:heard(F, P),
                    H =:= What orelse H
                end) end,
        Heard(L2, [{global_name_conflict, random_notify_name}]),
        Heard(P3, [{global_name_conflict, notify_all_name, Q3}]),
        Heard(Q3, [{global_name_conflict, notify_all_name, P3}]),
        [?assertEqual([], sderl_ct:heard(F, P)) || P <- [K1, K2, P4, P5, Q4, Q5]],
        %% A merge that is interrupted finds a clash again, and says so again. Losers hear once
        %% (above), and everyone whose name was lost is told so on every node.
        Clashes = [Name
                   || L <- Groups,
                      {_, _, _, {group, name_clash, #{name := Name}}} <- sderl_ct:heard(F, L)],
        ?assertEqual(lists:sort(Resolvers), lists:usort(Clashes)),
        Lost = lists:sort([{random_exit_name, L1},
                           {random_notify_name, L2},
                           {notify_all_name, P3},
                           {notify_all_name, Q3},
                           {{?MODULE, lower_node}, Q4},
                           {{?MODULE, none}, P5},
                           {{?MODULE, none}, Q5}]),
        %% A node that was brought up to date after the decision hears what became of the names it
        %% had.
        [await(lost, fun() ->
            Heard1 = [E || {_, _, _, E} <- sderl_ct:heard(F, L)],
            Told = lists:sort([{Name, P} || {name, lost_clash, Name, P} <- Heard1]),
            Changed = [Name
                       || {name, What, Name, _} <- Heard1,
                          What =:= replaced orelse What =:= unregistered],
            Here = [{Name, P}
                    || {Name, P} <- Lost,
                       lists:member(P,
                                    case lists:member(N, [A, B]) of true -> Ps; false -> Qs end)],
            Told =:= Lost orelse
                (Told -- Lost =:= []
                 andalso [Name || {Name, _} <- Here -- Told, not lists:member(Name, Changed)] =:=
                         []) orelse
                {N, Told, Changed}
        end) || {N, L} <- lists:zip(Nodes, Names)]
    end).

%% Resolvers of ours.
lower_node(_, P, Q) -> case node(P) < node(Q) of true -> P; false -> Q end.

none(_, _, _) -> none.

broken(_, _, _) -> error(broken).

%% A resolver that fails decides nothing; random_exit_name steps in.
resolver_fails(_) ->
    again(2, calm, fun(F, [A, B] = Nodes) ->
        [] = group(F, g, Nodes),
        split(F, [A], [B]),
        Bad = [{?MODULE, broken}, {?MODULE, no_such_function}],
        Pids = [begin
                    P = sderl_ct:process(F, N),
                    yes = on(F, N, fun() -> s_group:register_name(g, R, P, #{resolver => R}) end),
                    {R, P}
                end || N <- Nodes, R <- Bad],
        unsplit(F, [A], [B]),
        await(resolved, fun() ->
            Kept = names_of(settled(F, g, Nodes)),
            Losers = [P || {R, P} <- Pids, maps:get(R, Kept, none) =/= P],
            length(Losers) =:= 2 andalso not lists:any(fun(P) -> sderl_ct:alive(F, P) end, Losers)
                orelse Kept
        end)
    end).

%% Three components, a name in each: two clashes, one process left.
clash_of_three(_) ->
    again(3, calm, fun(F, [A, B, C] = Nodes) ->
        [] = group(F, g, Nodes),
        split(F, [A], [B]), split(F, [A, B], [C]),
        Ps = [begin
                  P = sderl_ct:process(F, N),
                  yes = register_at(F, N, x, P),
                  yes = register_at(F, N, N, sderl_ct:process(F, N)),
                  P
              end || N <- Nodes],
        unsplit(F, [A], [B]), unsplit(F, [A, B], [C]),
        await(one_left, fun() ->
            #{x := P} = Names = names_of(settled(F, g, Nodes)),
            Left = [Q || Q <- Ps, sderl_ct:alive(F, Q)],
            map_size(Names) =:= 4 andalso [P] =:= Left orelse {Names, {left, Left}}
        end)
    end).

%% A home tells a process on another node that it lost its name, and the link between the two is
%% down just then. The clash is not decided again, so the process must be told once there is a link.
losers_out_of_reach(_) ->
    again(2, calm, fun(F, [A, B]) ->
        [Ends, Hears] = sderl_ct:processes(F, B, 2),
        ok = cut(F, A, B),
        on(F, A, fun() ->
            ok = sderl_watch:tell_loser({exit, Ends, kill}),
            ok = sderl_watch:tell_loser({send, Hears, {global_name_conflict, x}})
        end),
        await(both_wait, fun() ->
            2 =:= on(F, A, fun() ->
                length([P
                        || P <- processes(),
                           process_info(P, current_function) =:=
                           {current_function, {sderl_watch, tell_again, 2}}])
            end)
        end),
        ?assert(sderl_ct:alive(F, Ends)),
        ?assertEqual([], sderl_ct:heard(F, Hears)),
        heal(F, A, B),
        await(ended, fun() -> not sderl_ct:alive(F, Ends) end),
        await(told, fun() -> sderl_ct:heard(F, Hears) =:= [{global_name_conflict, x}] end)
    end).

%% ---------------------------------------------------------------- links that some lack

%% Two members that cannot see each other stay together as long as a coordinator sees both
%% (rule 11).
partial_cut(_) ->
    sderl_ct:seed(),
    again(3, calm, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Clients = clients(F, Nodes, 2),
        Lead = sderl_ct:lead(F, hd(Nodes), g),
        [M, N] = Nodes -- [Lead],
        ok = cut(F, M, N),
        busy(F, Clients, 20),
        Held = hold(F, Nodes, Clients),
        [sderl_ct_client:go_on(F, C) || C <- Clients],
        ?assertEqual(Lead, sderl_ct:lead(F, M, g)),
        heal(F, M, N),
        await(linked, fun() -> sderl_ct:linked(F, M, N) end),
        busy(F, Clients, 20),
        _ = hold(F, Nodes, Clients),
        _ = Held
    end).

%% The role goes to the one that sees all.
partial_cut_of_coordinator(_) ->
    sderl_ct:seed(),
    again(4, calm, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Clients = clients(F, Nodes, 2),
        lists:foreach(fun(_) ->
            Lead = sderl_ct:lead(F, hd(Nodes), g),
            [M | Others] = Nodes -- [Lead],
            ok = cut(F, Lead, M),
            busy(F, Clients, 20),
            await(handed_over, fun() -> lists:member(sderl_ct:lead(F, M, g), Others) end),
            _ = hold(F, Nodes, Clients),
            [sderl_ct_client:go_on(F, C) || C <- Clients],
            heal(F, Lead, M),
            await(linked, fun() -> sderl_ct:linked(F, M, Lead) end),
            busy(F, Clients, 20)
        end, lists:seq(1, 3)),
        _ = hold(F, Nodes, Clients)
    end).

%% A chain with the coordinator in the middle: one end is in no star with the rest. It goes on by
%% itself, and all are one again when the links are back.
whom_no_star_covers(_) ->
    again(4, quick, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        B = sderl_ct:lead(F, hd(Nodes), g),
        [A, C, D] = Nodes -- [B],
        [ok = cut(F, X, Y) || {X, Y} <- [{A, C}, {A, D}, {B, D}]],
        %% (A write may wait for a component, but not for the links.)
        Pids = #{N => sderl_ct:process(F, N) || N <- Nodes},
        [?assertEqual({N, yes}, {N, on(F, N, fun() -> s_group:register_name(g, N, P) end)})
         || N := P <- Pids],
        await(two_components, fun() ->
            case lists:usort([sderl_ct:lead(F, N, g) || N <- Nodes]) of
                [A1, B1] when A1 =/= undefined, B1 =/= undefined -> true;
                Leads -> Leads
            end
        end),
        [heal(F, X, Y) || {X, Y} <- [{A, C}, {A, D}, {B, D}]],
        sderl_ct:hold_all(F, g, {Nodes, Nodes}, Pids)
    end).

%% Links that break and come back at once, at random, with and without the coordinator. Not in
%% all/0: an offer that its taker could not take waits for a time-out that is long here.
broken_links(_) ->
    sderl_ct:seed(),
    again(4, calm, fun(F, Nodes) ->
        [] = group(F, g, Nodes),
        Clients = clients(F, Nodes, 2),
        lists:foreach(fun(_) ->
            A = lists:nth(rand:uniform(4), Nodes),
            B = lists:nth(rand:uniform(3), Nodes -- [A]),
            %% There may be none at this moment: the last one that broke is on its way back.
            _ = on(F, A, fun() -> erlang:disconnect_node(B) end),
            rand:uniform(2) =:= 1 andalso settled_live(F, Nodes),
            busy(F, Clients, 1)
        end, lists:seq(1, 15)),
        _ = settled_live(F, Nodes),
        _ = hold(F, Nodes, Clients)
    end).

%% --------------------------------------------------------------- membership that changed meanwhile

%% {A,B} remove C while {C,D} remove A: removals win over presence (rule 4).
removed_on_both_sides(_) ->
    again(4, calm, fun(F, [A, B, C, D] = Nodes) ->
        [] = group(F, g, Nodes),
        [P, Q] = [sderl_ct:process(F, N) || N <- [B, D]],
        yes = register_at(F, B, p, P),
        yes = register_at(F, D, q, Q),
        split(F, [A, B], [C, D]),
        ok = on(F, A, fun() -> s_group:remove_nodes(g, [C]) end),
        ok = on(F, C, fun() -> s_group:remove_nodes(g, [A]) end),
        [agreed(F, g, {Side, Members})
         || {Side, Members} <- [{[A, B], [A, B, D]}, {[C, D], [B, C, D]}]],
        unsplit(F, [A, B], [C, D]),
        sderl_ct:hold_all(F, g, {[B, D], [B, D]}, #{p => P, q => Q}),
        [await(told, fun() -> undefined =:= on(F, N, fun s_group:s_groups/0) end) || N <- [A, C]],
        ?assertEqual({no, cannot_register_in_remote_group}, register_at(F, A, x, P)),
        %% Added again it is in again.
        {ok, g, [A]} = on(F, D, fun() -> s_group:add_nodes(g, [A]) end),
        sderl_ct:hold_all(F, g, {[A, B, D], [A, B, D]}, #{p => P, q => Q})
    end).

%% A member that was removed while it was away hears of it; its own names go with it.
removed_while_away(_) ->
    again(3, calm, fun(F, [A, B, C] = Nodes) ->
        [] = group(F, g, Nodes),
        P = sderl_ct:process(F, C),
        yes = register_at(F, C, p, P),
        split(F, [A, B], [C]),
        [] = agreed(F, g, {[A, B], Nodes}),
        ok = on(F, A, fun() -> s_group:remove_nodes(g, [C]) end),
        Q = sderl_ct:process(F, C),
        yes = register_at(F, C, q, Q),
        unsplit(F, [A, B], [C]),
        await(told, fun() -> undefined =:= on(F, C, fun s_group:s_groups/0) end),
        [] = settled(F, g, [A, B])
    end).

%% A group deleted while a member was away is not revived by it (rule 1).
deleted_while_away(_) ->
    again(3, calm, fun(F, [A, B, C] = Nodes) ->
        [] = group(F, g, Nodes),
        yes = register_at(F, C, p, sderl_ct:process(F, C)),
        split(F, [A, B], [C]),
        _ = agreed(F, g, {[C], Nodes}),
        ok = on(F, A, fun() -> s_group:delete_s_group(g) end),
        await(deleted, fun() -> undefined =:= on(F, B, fun s_group:s_groups/0) end),
        unsplit(F, [A, B], [C]),
        %% No group is left that would want the link.
        true = on(F, A, fun() -> net_kernel:connect_node(C) end),
        await(told, fun() -> undefined =:= on(F, C, fun s_group:s_groups/0) end),
        [?assertEqual(undefined, on(F, N, fun s_group:s_groups/0)) || N <- [A, B]]
    end).

%% Nor does it get into the next group of that name, other than by being added.
created_again_while_away(_) ->
    again(3, calm, fun(F, [A, B, C] = Nodes) ->
        [] = group(F, g, Nodes),
        P = sderl_ct:process(F, C),
        yes = register_at(F, C, p, P),
        split(F, [A, B], [C]),
        _ = agreed(F, g, {[C], Nodes}),
        ok = on(F, A, fun() -> s_group:delete_s_group(g) end),
        await(deleted, fun() -> undefined =:= on(F, B, fun s_group:s_groups/0) end),
        [] = group(F, g, [A, B]),
        unsplit(F, [A, B], [C]),
        await(told, fun() ->
            on(F, A, fun() -> net_kernel:connect_node(C) end),
            undefined =:= on(F, C, fun s_group:s_groups/0)
        end),
        [] = settled(F, g, [A, B]),
        {ok, g, [C]} = on(F, B, fun() -> s_group:add_nodes(g, [C]) end),
        [] = settled(F, g, Nodes)
    end).

%% ---------------------------------------------------------------- helpers

split(F, Left, Right) -> [ok = cut(F, A, B) || A <- Left, B <- Right].

unsplit(F, Left, Right) -> [heal(F, A, B) || A <- Left, B <- Right].

register_at(F, Node, Name, Pid) -> on(F, Node, fun() -> s_group:register_name(g, Name, Pid) end).

names_of(Rows) -> #{N => P || {N, #{pid := P}} <- Rows}.

clients(F, Nodes, PerNode) ->
    [sderl_ct_client:start(F, N, g, {N, I}, 20) || N <- Nodes, I <- lists:seq(1, PerNode)].

busy(F, Clients, More) -> sderl_promises_SUITE:busy(F, Clients, More).

hold(F, Nodes, Clients) ->
    Held = on_nodes(Nodes, [sderl_ct_client:pause(F, C) || C <- Clients]),
    sderl_ct:hold_all(F, g, {Nodes, Nodes}, Held),
    Held.

on_nodes(Nodes, Helds) -> #{N => P || Held <- Helds, N := P <- Held, lists:member(node(P), Nodes)}.

%% All in one component; the names change all the while.
settled_live(F, Nodes) ->
    Sorted = lists:sort(Nodes),
    await({together, Nodes}, fun() ->
        Seen = [maps:with([lead, epoch, live, role], sderl_ct:state(F, N, g)) || N <- Nodes],
        case lists:usort(Seen) of
            [#{live := Sorted, role := ok}] -> true;
            _ -> Seen
        end
    end).
