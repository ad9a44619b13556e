%% SPDX-License-Identifier: Apache-2.0
-module(sderl_netns_SUITE).

%% The library on separate hosts: network namespaces, between which packets can be lost silently. In
%% other suites cut links are closed at once; here both ends take them for up for a while.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2, group/3]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [silent_split, links_closed, one_way_to_the_coordinator, name_of_a_member_aside,
     name_that_sets_its_member_aside].

init_per_suite(Config) -> sderl_fleet_ct:need_namespaces(Config).

end_per_suite(_) -> ok.

with(Count, Args, Fun) ->
    {ok, Net} = sderl_fleet_netns:start(Count),
    try
        Families = [Host#{name => "h" ++ integer_to_list(I) ++ "n", count => 1, apps => [sderl],
                          args => Args, env => [{sderl, K, V} || {K, V} <- sderl_ct:env(quick)]}
                    || {I, Host} <- lists:enumerate(sderl_fleet_netns:hosts(Net))],
        {ok, Fleet} = sderl_fleet:start(#{families => Families}),
        try Fun(Fleet, Net, sderl_fleet:nodes(Fleet))
        after sderl_fleet:stop(Fleet)
        end
    after
        sderl_fleet_netns:stop(Net)
    end.

%% For less than the net tick time: no link is closed, so nobody is taken for dead. Those who see
%% the coordinator go on without the others; nothing that was answered anywhere is lost.
silent_split(_) ->
    sderl_ct:seed(),
    with(4, [], fun(F, Net, Nodes) ->
        [] = group(F, g, Nodes),
        Lead = sderl_ct:lead(F, hd(Nodes), g),
        [M, X, Y] = Nodes -- [Lead],
        Held = [{N, P}
                || N <- Nodes, P <- [sderl_ct:process(F, N)], yes <- [register_at(F, N, N, P)]],
        Cut = [{A, B} || A <- [Lead, M], B <- [X, Y]],
        ok = sderl_fleet_netns:cut(Net, Cut),
        P = sderl_ct:process(F, M),
        yes = register_at(F, M, meanwhile, P),
        ?assertEqual(lists:sort([X, Y]), maps:get(aside, sderl_ct:state(F, Lead, g))),
        [?assert(sderl_ct:linked(F, A, B)) || {A, B} <- Cut],
        ok = sderl_fleet_netns:heal(Net, Cut),
        sderl_ct:hold_all(F, g, {Nodes, Nodes}, maps:from_list([{meanwhile, P} | Held]))
    end).

%% For longer: both ends close the link, each on its own; after the heal members connect by
%% themselves.
links_closed(_) ->
    with(3, ["-kernel", "net_ticktime", "4"], fun(F, Net, [A, B, C] = Nodes) ->
        [] = group(F, g, Nodes),
        [Pa, Pc] = [sderl_ct:process(F, N) || N <- [A, C]],
        yes = register_at(F, A, a, Pa),
        yes = register_at(F, C, c, Pc),
        Cut = [{A, C}, {B, C}],
        ok = sderl_fleet_netns:cut(Net, Cut),
        [await({closed, N, M}, fun() -> not sderl_ct:linked(F, N, M) end)
         || {X, Y} <- Cut, {N, M} <- [{X, Y}, {Y, X}]],
        sderl_ct:hold_all(F, g, {[A, B], Nodes}, #{a => Pa}),
        sderl_ct:hold_all(F, g, {[C], Nodes}, #{c => Pc}),
        [Pb, Pc2] = [sderl_ct:process(F, N) || N <- [B, C]],
        yes = register_at(F, B, b, Pb),
        yes = register_at(F, C, c2, Pc2),
        ok = on(F, C, fun() -> s_group:unregister_name(g, c) end),
        ok = sderl_fleet_netns:heal(Net, Cut),
        sderl_ct:hold_all(F, g, {Nodes, Nodes}, #{a => Pa, b => Pb, c2 => Pc2})
    end).

%% A member that cannot reach the coordinator, but another member: it gets no answer while the link
%% stands, and its writes come to pass when it is healed.
one_way_to_the_coordinator(_) ->
    with(3, [], fun(F, Net, Nodes) ->
        [] = group(F, g, Nodes),
        Lead = sderl_ct:lead(F, hd(Nodes), g),
        [M, X] = Nodes -- [Lead],
        ok = sderl_fleet_netns:cut(Net, [{Lead, X}]),
        [P, Q] = [sderl_ct:process(F, N) || N <- [M, X]],
        yes = register_at(F, M, m, P),
        ?assertEqual([X], maps:get(aside, sderl_ct:state(F, Lead, g))),
        Self = self(),
        Waits = spawn_link(fun() -> Self ! {self(), register_at(F, X, x, Q)} end),
        ok = sderl_fleet_netns:heal(Net, [{Lead, X}]),
        ?assertEqual(yes, receive {Waits, Answer} -> Answer end),
        sderl_ct:hold_all(F, g, {Nodes, Nodes}, #{m => P, x => Q})
    end).

%% A process of a member that is set aside, registered by another member that does see it: answered
%% `yes`, so it must not be lost when the link is closed before the member has caught up. Nor may it
%% be refused for good.
name_of_a_member_aside(_) ->
    far_name(fun(F, Lead, M, X) ->
        %% Nobody is set aside but by a write that it does not acknowledge.
        Own = sderl_ct:process(F, M),
        yes = register_at(F, M, own, Own),
        ?assertEqual([X], maps:get(aside, sderl_ct:state(F, Lead, g))),
        #{own => Own}
    end).

%% The same, by the very write that the member does not acknowledge.
name_that_sets_its_member_aside(_) -> far_name(fun(_, _, _, _) -> #{} end).

far_name(Before) ->
    with(3, ["-kernel", "net_ticktime", "4"], fun(F, Net, Nodes) ->
        [] = group(F, g, Nodes),
        Lead = sderl_ct:lead(F, hd(Nodes), g),
        [M, X] = Nodes -- [Lead],
        ok = sderl_fleet_netns:cut(Net, [{Lead, X}]),
        Held = Before(F, Lead, M, X),
        P = sderl_ct:process(F, X),
        %% Its home may go while the batch is out: then nobody knows.
        Answer = on(F, M, fun() ->
            try s_group:register_name(g, far, P)
            catch exit:{timeout, _} -> unknown
            end
        end),
        ct:pal("registered by ~p: ~p", [M, Answer]),
        await(closed,
              fun() -> not sderl_ct:linked(F, Lead, X) andalso not sderl_ct:linked(F, X, Lead) end),
        ok = sderl_fleet_netns:heal(Net, [{Lead, X}]),
        ?assert(sderl_ct:alive(F, P)),
        case Answer of
            yes ->
                sderl_ct:hold_all(F, g, {Nodes, Nodes}, Held#{far => P});
            unknown ->
                _ = sderl_ct:settled(F, g, Nodes),
                _ = register_at(F, M, far, P),
                sderl_ct:hold_all(F, g, {Nodes, Nodes}, Held#{far => P});
            {no, _} ->
                sderl_ct:hold_all(F, g, {Nodes, Nodes}, Held),
                ?assertEqual(yes, register_at(F, M, far, P))
        end
    end).

register_at(F, Node, Name, Pid) -> on(F, Node, fun() -> s_group:register_name(g, Name, Pid) end).
