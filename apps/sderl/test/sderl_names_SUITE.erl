%% SPDX-License-Identifier: Apache-2.0
-module(sderl_names_SUITE).

%% Every operation on names with its values, on members and on nodes that are none.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2, group/3, process/2, kill/3, heard/2, names/3, all_on/3]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [{group, shared}, other_nodes, deliveries, strangers, coordinator_of_strangers, joins_later,
     free_names].

groups() ->
    [{shared, [],
      [registration, pids_of_members, terms_as_names, published_aliases, not_a_member,
       several_groups, via_servers, via_supervisor, via_missing, lookup_tokens, name_events,
       group_events, node_events, lists_of_names, names_of_those_who_left, process_groups]}].

%% One fleet for the tests that leave no links or free nodes behind that would matter to others.
init_per_group(shared, Config) -> sderl_ct:hold(4, calm) ++ Config.

end_per_group(shared, Config) -> sderl_ct:release(Config).

%% A group of its own for each test, called after it, on the first three nodes.
init_per_testcase(Case, Config) ->
    case proplists:get_value(fleet, Config) of
        undefined -> Config;
        Fleet ->
            [A, B, C, D] = proplists:get_value(nodes, Config),
            [] = group(Fleet, Case, [A, B, C]),
            [{t, {Fleet, Case, [A, B, C, D]}} | Config]
    end.

end_per_testcase(Case, Config) ->
    case proplists:get_value(fleet, Config) of
        undefined -> ok;
        Fleet ->
            all_on(Fleet, proplists:get_value(nodes, Config),
                   fun() -> s_group:delete_s_group(Case) end)
    end.

%% ---------------------------------------------------------------- values

registration(Config) ->
    {F, G, [A, B, C | _]} = t(Config),
    [P, Q] = sderl_ct:processes(F, A, 2),
    ?assertEqual(undefined, whereis_at(F, A, G, x)),
    ?assertEqual(yes, register_at(F, A, G, x, P)),
    ?assertEqual([P, P, P], everywhere(F, [A, B, C], G, x)),
    Taken = {no, name_or_pid_already_registered},
    ?assertEqual([Taken, Taken], [register_at(F, N, G, x, Q) || N <- [A, B]]),
    ?assertEqual([Taken, Taken], [register_at(F, N, G, y, P) || N <- [A, C]]),
    ?assertEqual(Taken, register_at(F, A, G, x, P)),

    Is = {no, pid_is_already_registered},
    ?assertEqual([Is, Is],
                 [on(F, B, fun() -> s_group:re_register_name(G, N, P) end) || N <- [x, y]]),
    ?assertEqual(yes, on(F, B, fun() -> s_group:re_register_name(G, x, Q) end)),
    ?assertEqual([Q, Q, Q], everywhere(F, [A, B, C], G, x)),
    %% P is free again.
    ?assertEqual(yes, on(F, B, fun() -> s_group:re_register_name(G, y, P) end)),

    ?assertEqual(ok, on(F, C, fun() -> s_group:unregister_name(G, x) end)),
    ?assertEqual(ok, on(F, C, fun() -> s_group:unregister_name(G, x) end)),
    ?assertEqual(lists:duplicate(3, undefined), everywhere(F, [A, B, C], G, x)),
    ?assertEqual(Q,
                 on(F, C,
                    fun() -> yes = s_group:register_name(G, x, Q), s_group:whereis_name(G, x) end)),

    ok = kill(F, Q, kill),
    gone(F, [A, B, C], G, x),
    ?assertEqual(#{y => P}, names(F, B, G)).

pids_of_members(Config) ->
    {F, G, [A, B, C | _]} = t(Config),
    P = process(F, B),
    ?assertEqual(yes, register_at(F, A, G, x, P)),
    ?assertEqual([P, P, P], everywhere(F, [A, B, C], G, x)),
    ?assertEqual(B, on(F, C, fun() -> #{home := H} = s_group:lookup(G, x), H end)),
    ok = kill(F, P, kill),
    %% A name whose process is dead on the caller's node counts as free at once.
    Q = process(F, B),
    ?assertEqual(yes, register_at(F, B, G, x, Q)),
    ?assertEqual([Q, Q, Q], everywhere(F, [A, B, C], G, x)),
    [?assertEqual({no, dead_pid}, on(F, N, fun() -> s_group:Op(G, y, P) end))
     || N <- [A, B], Op <- [register_name, re_register_name]],
    [?assertEqual({no, not_a_pid}, on(F, A, fun() -> s_group:Op(G, y, Bad) end))
     || Bad <- [B, undefined, "p"], Op <- [register_name, re_register_name]].

terms_as_names(Config) ->
    {F, G, [A, B | _]} = t(Config),
    Names = ['_', '$1', 1, 1.0, "s", <<"b">>, {a, ['$_']}, #{k => 1}, [], undefined],
    Pids = sderl_ct:processes(F, A, length(Names)),
    Pairs = lists:zip(Names, Pids),
    [?assertEqual(yes, register_at(F, A, G, N, P)) || {N, P} <- Pairs],
    [?assertEqual(P, whereis_at(F, B, G, N)) || {N, P} <- Pairs],
    %% Not sorted: 1 and 1.0 are equal then.
    Listed = [N || {_, N} <- on(F, B, fun() -> s_group:registered_names({s_group, G}) end)],
    ?assertEqual({[], []}, {Listed -- Names, Names -- Listed}),
    [?assertEqual(ok, on(F, B, fun() -> s_group:unregister_name(G, N) end)) || N <- Names],
    ?assertEqual(#{}, names(F, A, G)).

published_aliases(Config) ->
    {F, G, [A, B | _]} = t(Config),
    P = process(F, A),
    ?assertEqual(yes, on(F, A, fun() -> s_group:register_name_external(G, x, P) end)),
    ?assertEqual(P, on(F, B, fun() -> s_group:send(G, x, hello) end)),
    await(hello, fun() -> [hello] =:= heard(F, P) end),
    ?assertEqual({badarg, {G, none, hello}}, on(F, B, fun() -> s_group:send(G, none, hello) end)),
    ?assertEqual(ok, on(F, A, fun() -> s_group:unregister_name_external(G, x) end)),
    ?assertEqual(undefined, whereis_at(F, B, G, x)).

not_a_member(Config) ->
    {F, G, [A, _, _, D]} = t(Config),
    P = process(F, D),
    Q = process(F, A),
    yes = register_at(F, A, G, x, Q),
    [begin
         ?assertEqual({no, cannot_register_in_remote_group}, register_at(F, D, Group, y, P)),
         ?assertEqual({no, cannot_re_register_in_remote_group},
                      on(F, D, fun() -> s_group:re_register_name(Group, y, P) end)),
         ?assertEqual({no, cannot_unregister_from_remote_group},
                      on(F, D, fun() -> s_group:unregister_name(Group, x) end)),
         ?assertEqual({error, no_information_about_remote_group},
                      on(F, D, fun() -> s_group:lookup(Group, x) end)),
         %% Nobody told it of the group.
         ?assertEqual([], on(F, D, fun() -> s_group:registered_names({s_group, Group}) end)),
         ?assertEqual(undefined, whereis_at(F, D, Group, x)),
         ?assertEqual({badarg, {Group, x, hi}}, on(F, D, fun() -> s_group:send(Group, x, hi) end)),
         ?assertEqual({error, remote_s_group}, on(F, D, fun() -> s_group:delete_s_group(Group) end))
     end || Group <- [G, no_such_group]],
    ?assertEqual(#{x => Q}, names(F, A, G)).

several_groups(Config) ->
    {F, G, [A, B, C, D]} = t(Config),
    [] = group(F, second, [B, C, D]),
    [P, Q] = sderl_ct:processes(F, B, 2),
    %% The same name in both, the same pid in both.
    [yes, yes] = [register_at(F, B, Group, x, P) || Group <- [G, second]],
    yes = register_at(F, B, second, y, Q),
    yes = register_at(F, B, G, z, Q),
    ?assertEqual({#{x => P, z => Q}, #{x => P, y => Q}}, {names(F, A, G), names(F, D, second)}),
    ok = on(F, A, fun() -> s_group:unregister_name(G, x) end),
    ?assertEqual({undefined, P}, {whereis_at(F, B, G, x), whereis_at(F, B, second, x)}),
    ok = kill(F, Q, kill),
    gone(F, [A, B, C], G, z),
    gone(F, [B, C, D], second, y),
    sderl_ct:delete(F, second, C).

%% ---------------------------------------------------------------- via

via_servers(Config) ->
    {F, G, [A, B, C | _]} = t(Config),
    Server = {via, s_group, {G, server}},
    Statem = {via, s_group, {G, statem}},
    {ok, P} = on(F, A, fun() -> gen_server:start(Server, ?MODULE, server, []) end),
    {ok, Q} = on(F, B, fun() -> gen_statem:start(Statem, ?MODULE, statem, []) end),
    ?assertEqual({error, {already_started, P}},
                 on(F, C, fun() -> gen_server:start(Server, ?MODULE, server, []) end)),
    [begin
         ?assertEqual({A, call}, on(F, N, fun() -> gen_server:call(Server, call) end)),
         ?assertEqual({B, call}, on(F, N, fun() -> gen_statem:call(Statem, call) end))
     end || N <- [A, B, C]],
    ok = on(F, C, fun() -> gen_server:cast(Server, {tell, C}) end),
    await(told, fun() -> [C] =:= on(F, B, fun() -> gen_server:call(Server, told) end) end),
    ok = on(F, C, fun() -> gen_server:stop(Server) end),
    ok = on(F, A, fun() -> gen_statem:stop(Statem) end),
    ?assertEqual([false, false], [sderl_ct:alive(F, X) || X <- [P, Q]]),
    %% It took its name with it: the answer of the last unregistration came before its end.
    gone(F, [A, B, C], G, server),
    ?assertMatch({noproc, _},
                 on(F, C,
                    fun() -> try gen_server:call(Server, call) catch exit:Why -> Why end end)).

via_supervisor(Config) ->
    {F, G, [A, B, C | _]} = t(Config),
    Sup = {via, s_group, {G, sup}},
    Child = {via, s_group, {G, child}},
    S = on(F, A, fun() ->
        {ok, Pid} = supervisor:start_link(Sup, ?MODULE, {sup, Child}),
        unlink(Pid),
        Pid
    end),
    ?assertEqual([S, S, S], everywhere(F, [A, B, C], G, sup)),
    ?assertEqual({A, call}, on(F, C, fun() -> gen_server:call(Child, call) end)),
    ?assertMatch([{child, _, worker, _}], on(F, B, fun() -> supervisor:which_children(Sup) end)),
    P = whereis_at(F, B, G, child),
    ok = kill(F, P, kill),
    await(restarted, fun() ->
        case whereis_at(F, B, G, child) of
            New when is_pid(New), New =/= P -> true;
            Other -> Other
        end
    end),
    ?assertEqual({A, call}, on(F, B, fun() -> gen_server:call(Child, call) end)),
    ok = kill(F, S, kill),
    gone(F, [A, B, C], G, sup),
    gone(F, [A, B, C], G, child).

via_missing(Config) ->
    {F, G, [A, _, _, D]} = t(Config),
    [?assertEqual({badarg, {{G, x}, hello}},
                  on(F, N, fun() -> try s_group:send({G, x}, hello) catch exit:Why -> Why end end))
     || N <- [A, D]],
    P = process(F, A),
    ?assertEqual(yes, on(F, A, fun() -> s_group:register_name({G, x}, P) end)),
    ?assertEqual(no, on(F, A, fun() -> s_group:register_name({G, x}, P) end)),
    ?assertEqual(no, on(F, D, fun() -> s_group:register_name({G, y}, P) end)),
    ?assertEqual(P, on(F, A, fun() -> s_group:send({G, x}, hello) end)),
    ?assertEqual(P, on(F, A, fun() -> s_group:whereis_name({G, x}) end)),
    ?assertEqual([ok, ok], [on(F, N, fun() -> s_group:unregister_name({G, x}) end) || N <- [A, D]]),
    ?assertEqual(undefined, on(F, A, fun() -> s_group:whereis_name({G, x}) end)),
    await(hello, fun() -> [hello] =:= heard(F, P) end).

%% ---------------------------------------------------------------- lookup

lookup_tokens(Config) ->
    {F, G, [A, B, C | _]} = t(Config),
    [P, Q] = sderl_ct:processes(F, A, 2),
    Look = fun() ->
        [One] = lists:usort([on(F, N, fun() -> s_group:lookup(G, x) end) || N <- [A, B, C]]),
        One
    end,
    ?assertEqual(undefined, Look()),
    yes = on(F, A, fun() ->
        s_group:register_name(G, x, P, #{meta => {v, 1}, resolver => notify_all_name})
    end),
    #{pid := P, meta := {v, 1}, home := A, token := T1} = Look(),
    yes = on(F, B, fun() -> s_group:re_register_name(G, x, Q) end),
    #{pid := Q, meta := undefined, home := A, token := T2} = Look(),
    ok = on(F, B, fun() -> s_group:unregister_name(G, x) end),
    yes = register_at(F, C, G, x, Q),
    #{pid := Q, token := T3} = Look(),
    %% Another coordinator.
    Lead = sderl_ct:lead(F, A, G),
    ok = on(F, hd([A, B, C] -- [Lead]), fun() -> s_group:remove_nodes(G, [Lead]) end),
    [M | _] = Ms = [A, B, C] -- [Lead],
    _ = sderl_ct:settled(F, G, Ms),
    R = process(F, M),
    yes = on(F, M, fun() -> s_group:re_register_name(G, x, R) end),
    #{pid := R, token := T4} = on(F, M, fun() -> s_group:lookup(G, x) end),
    ?assertEqual([T1, T2, T3, T4], lists:usort([T4, T3, T2, T1])).

%% ---------------------------------------------------------------- events

name_events(Config) ->
    {F, G, [A, B | _]} = t(Config),
    Of = sderl_ct:listener(F, B, G, [name]),
    All = sderl_ct:listener(F, A, all, [name]),
    [P, Q] = sderl_ct:processes(F, A, 2),
    yes = register_at(F, A, G, x, P),
    yes = on(F, A, fun() -> s_group:re_register_name(G, x, Q) end),
    ok = on(F, B, fun() -> s_group:unregister_name(G, x) end),
    {no, _} = register_at(F, A, G, z, not_a_pid),
    yes = register_at(F, B, G, y, P),
    ok = kill(F, P, kill),
    Events = [{name, registered, x, P}, {name, replaced, x, Q}, {name, unregistered, x, Q},
              {name, registered, y, P}, {name, unregistered, y, P}],
    [await(events, fun() ->
        Heard = heard(F, L),
        [E || {s_group_event, Ref, Group, E} <- Heard, Group =:= G, is_reference(Ref)] =:= Events
            orelse Heard
    end) || L <- [Of, All]],
    %% No more after the subscription ended.
    [{s_group_event, Ref, _, _} | _] = heard(F, Of),
    ok = on(F, B, fun() -> s_group:unsubscribe(Ref) end),
    yes = register_at(F, A, G, z, Q),
    await(last, fun() -> {name, registered, z, Q} =:= element(4, lists:last(heard(F, All))) end),
    ?assertEqual(length(Events), length(heard(F, Of))).

group_events(Config) ->
    {F, G, [A, B, C, D]} = t(Config),
    [On, At] = [sderl_ct:listener(F, N, G, [group]) || N <- [A, C]],
    Has = fun(L, Kind, Details) ->
        await({Kind, Details}, fun() ->
            Heard = heard(F, L),
            lists:any(fun({s_group_event, _, _, {group, K, M}}) ->
                K =:= Kind andalso maps:with(maps:keys(Details), M) =:= Details
            end,
                      Heard) orelse Heard
        end)
    end,
    {ok, G, [D]} = on(F, B, fun() -> s_group:add_nodes(G, [D]) end),
    [Has(L, members_added, #{nodes => [D]}) || L <- [On, At]],
    [Has(L, member_live, #{node => D}) || L <- [On, At]],
    ok = on(F, B, fun() -> s_group:remove_nodes(G, [C]) end),
    Has(On, members_removed, #{nodes => [C]}),
    Has(At, left, #{}),
    ok = on(F, B, fun() -> s_group:delete_s_group(G) end),
    Has(On, group_deleted, #{}).

node_events(Config) ->
    {F, G, [A, B | _]} = t(Config),
    L = on(F, A,
           fun() -> spawn(sderl_ct, idle, [fun() -> ok = s_group:monitor_nodes(true) end, []]) end),
    await(monitors, fun() -> on(F, A, fun() -> ets:member(sderl_subs, {node_monitor, L}) end) end),
    true = on(F, A, fun() -> erlang:disconnect_node(B) end),
    await(down_and_up, fun() ->
        Heard = heard(F, L),
        Heard -- (Heard -- [{nodedown, B}, {nodeup, B}]) =:= [{nodedown, B}, {nodeup, B}]
            orelse Heard
    end),
    ok = on(F, A, fun() -> exit(L, kill), s_group:monitor_nodes(false) end),
    _ = sderl_ct:settled(F, G, [A, B, lists:nth(3, element(3, t(Config)))]).

%% ---------------------------------------------------------------- lists

lists_of_names(Config) ->
    {F, G, [A, B, C, D]} = t(Config),
    [] = group(F, second, [C, D]),
    [P, Q] = sderl_ct:processes(F, C, 2),
    [yes = register_at(F, C, Group, N, Pid)
     || {Group, N, Pid} <- [{G, x, P}, {G, y, Q}, {second, x, Q}]],
    List = fun(N, Arg) -> lists:sort(on(F, N, fun() -> s_group:registered_names(Arg) end)) end,
    [?assertEqual([{G, x}, {G, y}], List(N, {s_group, G})) || N <- [A, B, C]],
    [?assertEqual([{second, x}], List(N, {s_group, second})) || N <- [C, D]],
    %% The gateway tells its groups about each other, and the members ask it.
    known(F, A, {[G], [second]}),
    ?assertEqual([{second, x}], List(A, {s_group, second})),
    known(F, D, {[second], [G]}),
    ?assertEqual([{G, x}, {G, y}], List(D, {s_group, G})),
    ?assertEqual({P, undefined}, {whereis_at(F, D, G, x), whereis_at(F, D, G, none)}),

    [?assertEqual([{G, x}, {G, y}, {second, x}], List(N, {node, C})) || N <- [A, C, D]],
    ?assertEqual([{second, x}], List(A, {node, D})),
    ?assertEqual([], List(A, {node, 'nobody@127.0.0.1'})),
    sderl_ct:delete(F, second, C).

names_of_those_who_left(Config) ->
    {F, G, [A, B, C | _]} = t(Config),
    [P, Q, R] = sderl_ct:processes(F, C, 3),
    [yes = register_at(F, C, G, N, Pid) || {N, Pid} <- [{x, P}, {y, Q}, {z, R}]],
    ok = on(F, A, fun() -> s_group:remove_nodes(G, [C]) end),
    ?assertEqual({no, cannot_unregister_from_remote_group},
                 on(F, C, fun() -> s_group:unregister_name(G, x) end)),
    _ = sderl_ct:settled(F, G, [A, B]),
    [?assertEqual(#{x => P, y => Q, z => R}, names(F, N, G)) || N <- [A, B]],
    %% It is told that it may go when the others have answered.
    await(left, fun() -> [] =:= on(F, C, fun() -> s_group:own_nodes(G) end) end),
    ok = kill(F, P, kill),
    gone(F, [A, B], G, x),
    %% The same after a node left by itself, and what it had brought goes with its link.
    {ok, G, [C]} = on(F, A, fun() -> s_group:add_nodes(G, [C]) end),
    ok = on(F, C, fun() -> s_group:leave(G) end),
    _ = sderl_ct:settled(F, G, [A, B]),
    ?assertEqual(#{y => Q, z => R}, names(F, B, G)),
    ok = kill(F, Q, kill),
    gone(F, [A, B], G, y),
    ?assertEqual(#{z => R}, names(F, A, G)).

%% ---------------------------------------------------------------- process groups

process_groups(Config) ->
    {F, G, [A, B, C, D]} = t(Config),
    [P, Q] = sderl_ct:processes(F, A, 2),
    R = process(F, B),
    ok = on(F, A, fun() -> s_group:join(G, workers, [P, Q]) end),
    ok = on(F, B, fun() -> s_group:join(G, workers, R) end),
    Members = fun(N) -> lists:sort(on(F, N, fun() -> s_group:members(G, workers) end)) end,
    [await(members, fun() -> Members(N) =:= lists:sort([P, Q, R]) orelse Members(N) end)
     || N <- [A, B, C]],
    ok = on(F, A, fun() -> s_group:leave(G, workers, Q) end),
    ?assertEqual(not_joined, on(F, A, fun() -> s_group:leave(G, workers, Q) end)),
    [await(members, fun() -> Members(N) =:= lists:sort([P, R]) end) || N <- [A, B, C]],
    ok = kill(F, R, kill),
    [await(members, fun() -> Members(N) =:= [P] end) || N <- [A, B, C]],
    No = {error, no_information_about_remote_group},
    S = process(F, D),
    ?assertEqual({No, No, No}, on(F, D, fun() ->
        {s_group:join(G, workers, S), s_group:leave(G, workers, S), s_group:members(G, workers)}
    end)).

%% ---------------------------------------------------------------- reads of other nodes

%% whereis_name/3 and send/4 link the pair, also when nothing is found.
other_nodes(_) ->
    sderl_ct:again(4, calm, fun(F, [A, B, C, D]) ->
        [] = group(F, one, [A, B]),
        [] = group(F, two, [C]),
        [P, Q] = [process(F, N) || N <- [B, C]],
        yes = register_at(F, A, one, x, P),
        yes = register_at(F, C, two, y, Q),
        At = fun(N, Node, G, Name) ->
            on(F, N, fun() -> s_group:whereis_name(Node, G, Name) end)
        end,
        ?assertNot(sderl_ct:linked(F, A, C)),
        ?assertEqual(undefined, At(A, C, two, none)),
        ?assert(sderl_ct:linked(F, A, C)),
        ?assertEqual(Q, At(A, C, two, y)),
        ?assertEqual([P, P, P], [At(N, N2, one, x) || {N, N2} <- [{A, A}, {A, B}, {C, A}]]),
        %% A target outside the group, a group that there is not, a node that there is not.
        ?assertEqual([undefined, undefined, undefined, undefined],
                     [At(A, C, one, x), At(C, B, two, y), At(A, C, three, y),
                      At(A, 'nobody@127.0.0.1', one, x)]),
        ?assertNot(sderl_ct:linked(F, B, D)),
        %% A free one answers from its own names whatever the group.
        R = process(F, D),
        yes = register_at(F, D, undefined, x, R),
        ?assertEqual([R, R, undefined],
                     [At(A, D, one, x), At(A, D, undefined, x), At(A, D, one, y)]),
        ?assertEqual(undefined, At(A, C, undefined, y)),
        Send = fun(N, Node, G, Name) ->
            on(F, N, fun() -> s_group:send(Node, G, Name, {from, N}) end)
        end,
        ?assertEqual([P, Q, R], [Send(A, B, one, x), Send(A, C, two, y), Send(A, D, any, x)]),
        [await({from, A}, fun() -> heard(F, Pid) =:= [{from, A}] end) || Pid <- [P, Q, R]],
        ?assertEqual({badarg, {two, none, {from, B}}}, Send(B, C, two, none)),
        ?assert(sderl_ct:linked(F, B, C)),
        ?assertNot(sderl_ct:linked(F, B, D))
    end).

%% The node that is asked delivers: the sender is not linked to the pid's node (rule 21).
deliveries(_) ->
    sderl_ct:again(4, calm, fun(F, [A, B, C, D]) ->
        [] = group(F, near, [A, B]),
        [] = group(F, far, [B, C]),
        P = process(F, C),
        yes = register_at(F, C, far, x, P),
        known(F, A, {[near], [far]}),
        ?assertEqual(P, on(F, A, fun() -> s_group:send(far, x, one) end)),
        ?assertEqual(P, on(F, A, fun() -> s_group:send(B, far, x, two) end)),
        ?assertEqual(P, on(F, D, fun() -> s_group:send(B, far, x, three) end)),
        ?assertEqual(P, whereis_at(F, A, far, x)),
        ?assertEqual({badarg, {far, y, four}}, on(F, A, fun() -> s_group:send(far, y, four) end)),
        await(delivered, fun() -> heard(F, P) =:= [one, two, three] orelse heard(F, P) end),
        ?assertNot(sderl_ct:linked(F, A, C)),
        ?assertNot(sderl_ct:linked(F, D, C))
    end).

%% --------------------------------------------------------------- pids on nodes that are no members

%% The home of a name of a process outside the group is the node that registered it; when the
%% process's node has joined, that node is its home: the name stays while the process lives,
%% whichever node registered it, and goes with it.
joins_later(_) ->
    sderl_ct:again(4, calm, fun(F, [A, B, C, D]) ->
        [] = group(F, g, [A, B, C]),
        Lead = sderl_ct:lead(F, A, g),
        [M | _] = [A, B, C] -- [Lead],
        [P, Q] = sderl_ct:processes(F, D, 2),
        ?assertEqual(yes, register_at(F, M, g, x, P)),
        ?assertEqual(yes, register_at(F, M, g, y, Q)),
        ?assertEqual({ok, g, [D]}, on(F, Lead, fun() -> s_group:add_nodes(g, [D]) end)),
        Home = fun(N) -> on(F, N, fun() -> maps:get(home, s_group:lookup(g, x), none) end) end,
        await(at_home, fun() -> lists:usort([Home(N) || N <- [A, B, C, D]]) =:= [D] end),
        ok = sderl_fleet:kill(F, M),
        Rest = [A, B, C, D] -- [M],
        await(without,
              fun() -> not lists:member(M, maps:get(live, sderl_ct:state(F, Lead, g))) end),
        ?assertEqual([P, P, P], everywhere(F, Rest, g, x)),
        ok = kill(F, P, kill),
        gone(F, Rest, g, x),
        ?assertEqual([Q, Q, Q], everywhere(F, Rest, g, y))
    end).

strangers(_) ->
    sderl_ct:again(4, calm, fun(F, [A, B, C, D]) ->
        [] = group(F, g, [A, B, C]),
        Lead = sderl_ct:lead(F, A, g),
        [M | _] = [A, B, C] -- [Lead],
        [P, Q, R] = sderl_ct:processes(F, D, 3),
        %% The coordinator links to the node, and nobody else because of it.
        ?assertEqual(yes, register_at(F, M, g, x, P)),
        ?assertEqual([P, P, P], everywhere(F, [A, B, C], g, x)),
        ?assert(sderl_ct:linked(F, Lead, D)),
        ?assertEqual(M, on(F, A, fun() -> #{home := H} = s_group:lookup(g, x), H end)),
        ok = kill(F, P, kill),
        gone(F, [A, B, C], g, x),
        ?assertEqual({no, dead_pid}, register_at(F, M, g, x, P)),
        %% A lost link removes the names.
        ?assertEqual(yes, register_at(F, M, g, x, Q)),
        ?assertEqual(yes, register_at(F, Lead, g, y, R)),
        true = on(F, Lead, fun() -> erlang:disconnect_node(D) end),
        gone(F, [A, B, C], g, x),
        gone(F, [A, B, C], g, y),
        ?assert(sderl_ct:alive(F, Q)),
        ?assertEqual(yes, register_at(F, M, g, x, Q)),
        ok = sderl_ct:cut(F, Lead, D),
        gone(F, [A, B, C], g, x),
        ?assertEqual({no, unreachable_pid}, register_at(F, M, g, x, Q)),
        ?assertEqual({no, unreachable_pid},
                     on(F, Lead, fun() -> s_group:re_register_name(g, x, Q) end)),
        sderl_ct:heal(F, Lead, D),
        ?assertEqual(yes, register_at(F, M, g, x, Q)),
        ok = sderl_fleet:kill(F, D),
        gone(F, [A, B, C], g, x),
        ?assertEqual({no, unreachable_pid}, register_at(F, M, g, x, Q))
    end).

%% The watch over them is handed over with the role.
coordinator_of_strangers(_) ->
    sderl_ct:again(4, calm, fun(F, [A, B, C, D]) ->
        [] = group(F, g, [A, B, C]),
        Lead = sderl_ct:lead(F, A, g),
        [M, N] = [A, B, C] -- [Lead],
        [P, Q, R] = sderl_ct:processes(F, D, 3),
        [yes = register_at(F, M, g, Name, Pid) || {Name, Pid} <- [{x, P}, {y, Q}]],
        yes = register_at(F, Lead, g, z, R),
        ok = sderl_fleet:kill(F, Lead),
        _ = sderl_ct:agreed(F, g, {[M, N], [A, B, C]}),
        %% The dead coordinator answered for z.
        ?assertEqual(#{x => P, y => Q}, names(F, N, g)),
        New = sderl_ct:lead(F, M, g),
        ok = kill(F, P, kill),
        gone(F, [M, N], g, x),
        ?assert(sderl_ct:linked(F, New, D)),
        true = on(F, New, fun() -> erlang:disconnect_node(D) end),
        gone(F, [M, N], g, y)
    end).

%% A node without groups has names of its own under `undefined`.
free_names(_) ->
    sderl_ct:again(2, calm, fun(F, [A, B]) ->
        P = process(F, A),
        ?assertEqual(yes, register_at(F, A, undefined, x, P)),
        ?assertEqual({no, name_or_pid_already_registered}, register_at(F, A, undefined, x, P)),
        ?assertEqual(P, whereis_at(F, A, undefined, x)),
        ?assertEqual([{undefined, x}], on(F, A, fun() -> s_group:registered_names({node, A}) end)),
        ?assertEqual(P, on(F, A, fun() -> s_group:send(undefined, x, hello) end)),
        ?assertEqual(undefined, on(F, A, fun s_group:s_groups/0)),
        [] = group(F, g, [A, B]),
        await(no_free_names, fun() -> undefined =:= whereis_at(F, A, undefined, x) end),
        ?assertEqual({no, cannot_register_in_remote_group}, register_at(F, A, undefined, x, P)),
        ok = on(F, B, fun() -> s_group:delete_s_group(g) end),
        await(free, fun() -> yes =:= register_at(F, A, undefined, x, P) end),
        ok = on(F, A, fun() -> s_group:unregister_name(undefined, x) end),
        ?assertEqual(undefined, whereis_at(F, A, undefined, x))
    end).

%% ---------------------------------------------------------------- helpers

t(Config) -> proplists:get_value(t, Config).

register_at(F, Node, G, Name, Pid) -> on(F, Node, fun() -> s_group:register_name(G, Name, Pid) end).

whereis_at(F, Node, G, Name) -> on(F, Node, fun() -> s_group:whereis_name(G, Name) end).

everywhere(F, Nodes, G, Name) -> all_on(F, Nodes, fun() -> s_group:whereis_name(G, Name) end).

gone(F, Nodes, G, Name) ->
    await({gone, G, Name}, fun() ->
        Found = all_on(F, Nodes, fun() ->
            lists:member({G, Name}, s_group:registered_names({s_group, G}))
        end),
        not lists:member(true, Found) orelse Found
    end).

known(F, Node, Expected) ->
    await(known, fun() ->
        Known = on(F, Node, fun s_group:s_groups/0),
        Known =:= Expected orelse Known
    end).

%% A server, a state machine and a supervisor of one server, in this module.
init(server) -> {ok, []};
init(statem) -> {ok, state, data};
init({sup, Child}) ->
    {ok, {#{intensity => 3, period => 5},
          [#{id => child, start => {gen_server, start_link, [Child, ?MODULE, server, []]}}]}}.

handle_call(call, _, S) -> {reply, {node(), call}, S};
handle_call(told, _, S) -> {reply, S, S}.

handle_cast({tell, What}, S) -> {noreply, [What | S]}.

callback_mode() -> handle_event_function.

handle_event({call, From}, call, _, _) -> {keep_state_and_data, [{reply, From, {node(), call}}]}.
