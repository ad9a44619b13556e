%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_SUITE).

%% Choosing on real nodes: `west` is n1 to n3, `east` n3 to n5, so n3 is the gateway. Processes that
%% are placed survive their node, and what goes wrong has its documented answer.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [candidates, hash, spread_and_pending, by_value, undefined_values, no_message, hanging_node,
     many_at_once, published, spawn_and_end, started, crashes, unlinked, owner, names, errors,
     stopped_node, node_dies, wrong_input].

init_per_suite(Config0) ->
    Config = sderl_ct:hold(5, calm) ++ Config0,
    {Fleet, [N1, N2, N3, N4, N5]} = start(Config),
    sderl_ct:group(Fleet, west, [N1, N2, N3]),
    sderl_ct:group(Fleet, east, [N3, N4, N5]),
    [await({known, G}, fun() -> on(Fleet, N, fun() -> sderl_dir:known(G) end) =:= Ns end)
     || {N, G, Ns} <- [{N1, east, [N3, N4, N5]}, {N2, east, [N3, N4, N5]}, {N4, west, [N1, N2, N3]},
                       {N5, west, [N1, N2, N3]}]],
    Config.

end_per_suite(Config) -> sderl_ct:release(Config).

start(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

%% ---------------------------------------------------------------- choosing

candidates(Config) ->
    {Fleet, [N1, N2, N3, N4, N5]} = start(Config),
    C = fun(Spec) -> on(Fleet, N1, fun() -> sderl_place:choose_nodes(Spec) end) end,
    ?assertEqual([N1, N2, N3], lists:sort(C(#{}))),
    ?assertEqual([N1, N2, N3], C(#{group => west})),
    ?assertEqual([N3, N4, N5], C(#{group => east})),
    ?assertEqual([N1, N2, N3, N4, N5], lists:sort(C(#{groups => [west, east]}))),
    ?assertEqual([N1, N2, N3, N4, N5], lists:sort(C(#{known => true}))),
    ?assertEqual([N3], C(#{group => west, member_of => [east]})),
    ?assertEqual([N2, N1], C(#{nodes => [N2, N1, N2]})),
    ?assertEqual([N2], C(#{group => west, exclude => [N1, N3]})),
    ?assertEqual([N1, N2], C(#{group => west, count => 2, choose => in_order})),
    ?assertEqual([], C(#{nodes => []})),
    ?assertEqual({error, {unknown_group, north}}, C(#{groups => [west, north]})),
    ?assertEqual(none, on(Fleet, N1, fun() -> sderl_place:choose_node([]) end)),
    Chosen = on(Fleet, N1,
                fun() -> [sderl_place:choose_node(#{group => west}) || _ <- lists:seq(1, 100)] end),
    ?assertEqual([N1, N2, N3], lists:usort(Chosen)).

%% Every node chooses the same one for a key, members or not.
hash(Config) ->
    {Fleet, Nodes} = start(Config),
    %% So many that no node is without one, whatever the fleet's names are.
    Keys = lists:seq(1, 250),
    [Same | Others] = sderl_ct:all_on(Fleet, Nodes, fun() ->
        [sderl_place:choose_node(#{groups => [west, east], choose => {hash, K}}) || K <- Keys]
    end),
    [?assertEqual(Same, Other) || Other <- Others],
    ?assertEqual(Nodes, lists:usort(Same)).

%% One after the other, choices are spread over what they are spread over.
spread_and_pending(Config) ->
    %% On a node that has not chosen anything yet.
    {Fleet, [_, _, _, _, N5] = Nodes} = start(Config),
    Chosen = on(Fleet, N5, fun() ->
        [sderl_place:choose_node(#{groups => [west, east], choose => nearest, adds => 1})
         || _ <- lists:seq(1, 50)]
    end),
    %% All are equally far as long as nobody has said otherwise.
    Times = [length([C || C <- Chosen, C =:= N]) || N <- Nodes],
    ?assertEqual([10, 10, 10, 10, 10], Times),
    Over = on(Fleet, N5, fun() ->
        sderl_place:choose_nodes(#{groups => [west, east], choose => {spread, group}, count => 2})
    end),
    ?assertEqual(2, length(Over)),
    ?assertNotEqual([], [N || N <- Over, lists:member(N, lists:sublist(Nodes, 3))]),
    ?assertNotEqual([], [N || N <- Over, lists:member(N, lists:nthtail(3, Nodes))]).

%% Values of fellow members are here, those of the other group come through the gateway.
by_value(Config) ->
    {Fleet, [N1, N2, N3, N4, N5] = Nodes} = start(Config),
    [ok = on(Fleet, N, fun() ->
        ok = sderl_attr:set(slots, I),
        sderl_attr:label(parity, case I rem 2 of 0 -> even; 1 -> odd end)
    end)
     || {I, N} <- lists:enumerate(Nodes)],
    C = fun(Spec) -> on(Fleet, N1, fun() -> sderl_place:choose_nodes(Spec) end) end,
    Set = [{slots, exists}, {label, parity, exists}],
    await(shared, fun() -> C(#{group => west, where => Set}) =:= [N1, N2, N3] end),
    [on(Fleet, N1, fun() -> erlang:disconnect_node(N) end) || N <- [N4, N5]],
    await(told_by_the_gateway,
          fun() -> C(#{known => true, where => Set, max_age_ms => 0}) =:= [N1, N2, N3, N4, N5] end),
    ?assertEqual([N3, N2],
                 C(#{group => west, choose => {most, slots}, count => 2, pending => false})),
    ?assertEqual([N4, N5], C(#{group => east, where => {slots, ge, 4}})),
    ?assertEqual([N5], C(#{known => true, choose => {most, slots}, count => 1, pending => false})),
    ?assertEqual([N2, N4], lists:sort(C(#{known => true, where => {label, parity, equals, even}}))),
    ?assertEqual([N5, N3, N1], C(#{known => true, where => {label, parity, not_in, [even]},
                                   choose => {most, slots}})),
    ?assertEqual([N4], C(#{group => east, prefer => {label, parity, equals, even}, count => 1})),
    ?assertEqual(none, on(Fleet, N1,
                          fun() -> sderl_place:choose_node(#{group => west}, {slots, gt, 3}) end)),
    %% No link was made for it.
    ?assertEqual([], on(Fleet, N1,
                        fun() -> [N || N <- nodes(connected), lists:member(N, [N4, N5])] end)).

crash() -> error(crash).

endless() -> endless().

undefined_values(Config) ->
    {Fleet, [N1, N2, N3 | _]} = start(Config),
    ok = on(Fleet, N2, fun() -> sderl_attr:set(odd, {dynamic, {?MODULE, crash}}) end),
    ok = on(Fleet, N3,
            fun() -> sderl_attr:set(odd, {dynamic, {?MODULE, endless}, #{timeout_ms => 100}}) end),
    ok = on(Fleet, N1, fun() -> sderl_attr:set(odd, 7) end),
    E = fun() ->
        on(Fleet, N1, fun() -> sderl_place:explain(#{group => west, where => {odd, ne, 1}}) end)
    end,
    await(reasons, fun() ->
        case E() of
            #{chosen := [N1], candidates := [_, #{why := #{reason := {error, crash}}},
                                             #{why := #{reason := timeout}}]} ->
                true;
            Other -> Other
        end
    end),
    ?assertEqual([N1], on(Fleet, N1, fun() ->
        sderl_place:choose_nodes(#{group => west, choose => {least, odd}})
    end)).

%% A choice by values that are here asks nobody.
no_message(Config) ->
    {Fleet, [N1 | _]} = start(Config),
    Sent = on(Fleet, N1, fun() ->
        Spec = #{group => west, choose => {least, slots}, where => {slots, gt, 0}},
        Self = self(),
        Pid = spawn(fun() -> receive go -> Self ! {self(), sderl_place:choose_node(Spec)} end end),
        _ = erlang:trace(Pid, true, [send]),
        Pid ! go,
        receive {Pid, _} -> ok end,
        %% After the trace of that message there is no other.
        receive {trace, Pid, send, {Pid, Node}, Self} -> ?assert(is_atom(Node)) end,
        receive {trace, Pid, send, Message, To} -> {Message, To} after 0 -> none end
    end),
    ?assertEqual(none, Sent).

%% One that hangs costs the limit and no more, and is reported.
hanging_node(Config) ->
    {Fleet, [N1, N2, N3 | _]} = start(Config),
    ok = sderl_fleet:suspend(Fleet, N2),
    try
        Spec = #{group => west, where => {slots, gt, 0}, max_age_ms => 0, timeout_ms => 8000},
        #{chosen := Chosen, candidates := Cs} = on(Fleet, N1,
                                                   fun() -> sderl_place:explain(Spec) end),
        ?assertEqual([N1, N3], Chosen),
        ?assertMatch([#{verdict := dropped, why := #{reason := timeout}}],
                     [C || #{node := N} = C <- Cs, N =:= N2])
    after
        ok = sderl_fleet:resume(Fleet, N2)
    end,
    sderl_ct:settled(Fleet, west, [N1, N2, N3]).

%% 250 choices by 50 processes on five nodes at the same time, all by the same values: no node gets
%% more than three times its share by two choices. By least load without an account of one's own
%% choices one node would get all.
many_at_once(Config) ->
    {Fleet, Nodes} = start(Config),
    Spec = #{groups => [west, east], choose => {two, slots}, max_age_ms => infinity},
    await(warm, fun() ->
        Seen = sderl_ct:all_on(Fleet, Nodes, fun() ->
            sderl_place:choose_nodes(#{groups => [west, east], where => {slots, gt, 0},
                                       max_age_ms => 0})
        end),
        lists:all(fun(Ns) -> lists:sort(Ns) =:= Nodes end, Seen) orelse Seen
    end),
    Times = fun(S) ->
        Chosen = lists:append(sderl_ct:all_on(Fleet, Nodes, fun() ->
            Self = self(),
            Pids = [spawn(fun() ->
                Self ! {self(), [sderl_place:choose_node(S) || _ <- lists:seq(1, 5)]}
            end) || _ <- lists:seq(1, 10)],
            lists:append([receive {P, Ns} -> Ns end || P <- Pids])
        end)),
        [length([C || C <- Chosen, C =:= N]) || N <- Nodes]
    end,
    [begin
         All = Times(S),
         ct:pal("~p: ~p", [maps:get(choose, S), All]),
         ?assertEqual(250, lists:sum(All)),
         ?assert(lists:max(All) =< 150)
     end || S <- [Spec, Spec#{choose => {least, slots}}, Spec#{choose => random}]].

published(Config) ->
    {Fleet, [N1, N2, N3, N4, N5]} = start(Config),
    G = fun(F, Args) -> on(Fleet, N1, fun() -> apply(s_group, F, Args) end) end,
    ?assertEqual([N1, N2, N4],
                 G(add_attribute, [[N4, N2, N1, 'nobody@127.0.0.1'], [ssd, {gpu, "x"}]])),
    ?assertEqual([N3], G(add_attribute, [[N3], [ssd]])),
    ?assertEqual([ssd, {gpu, "x"}], [A
                                     || A <- on(Fleet, N2, fun s_group:registered_attributes/0),
                                        A =:= ssd orelse A =:= {gpu, "x"}]),
    await(ssd, fun() -> G(choose_nodes, [[{s_group, west}, {attribute, ssd}]]) =:= [N2, N3] end),
    ?assertEqual([N2],
                 G(choose_nodes, [[{s_group, west}, {attribute, {gpu, "x"}}, {attribute, ssd}]])),
    ?assertEqual([N3], G(choose_nodes, [[{s_group, west}, {s_group, east}]])),
    ?assertEqual([N2, N3], G(choose_nodes, [[{s_group, west}]])),
    ?assertEqual([N4], G(choose_nodes, [[{s_group, east}, {attribute, {gpu, "x"}}]])),
    ?assertEqual([], G(choose_nodes, [[{s_group, north}]])),
    ?assertEqual([], G(choose_nodes, [[{s_group, west}, {s_group, north}, {attribute, ssd}]])),
    ?assertEqual([], G(choose_nodes, [[{s_group, west}, {attribute, nobody_has_it}]])),
    Linked = G(choose_nodes, [[]]),
    ?assertEqual([], [N2, N3, N4] -- Linked),
    ?assertNot(lists:member(N1, Linked)),
    ?assertEqual([N2], G(remove_attribute, [[N2], [ssd, {gpu, "x"}, not_there]])),
    await(gone, fun() -> G(choose_nodes, [[{s_group, west}, {attribute, ssd}]]) =:= [N3] end),
    ?assertEqual({error, both_parameters_should_be_lists}, G(add_attribute, [N2, [ssd]])),
    ?assertEqual({error, both_parameters_should_be_lists}, G(remove_attribute, [[N2], ssd])),
    %% Built-in ones stay.
    ?assertEqual([N2, N5], G(remove_attribute, [[N5, N2], [run_queue]])),
    ?assertMatch({ok, _, _}, on(Fleet, N2, fun() -> sderl_attr:cached(N2, otp_release) end)).

%% ---------------------------------------------------------------- processes

%% On a node: an owner that keeps what it is told, and asks for a process.
place(Fleet, Node, Spec, MFA, Options) ->
    Owner = sderl_ct:process(Fleet, Node),
    {on(Fleet, Node, fun() -> sderl_place:spawn(Spec, MFA, Options#{owner => Owner}) end), Owner}.

idle() -> {?MODULE, wait, [[]]}.

%% What a placed process does: what it is told.
wait(Said) ->
    receive
        {do, Fun} -> Fun();
        {said, From} -> From ! {said, Said}, wait(Said);
        Other -> wait([Other | Said])
    end.

told(Fleet, Owner, What, Check) ->
    await({told, What}, fun() ->
        case [E || {sderl_place, _, E} <- sderl_ct:heard(Fleet, Owner)] of
            [] -> nothing;
            Events -> Check(Events) orelse Events
        end
    end),
    [E || {sderl_place, _, E} <- sderl_ct:heard(Fleet, Owner)].

spawn_and_end(Config) ->
    {Fleet, [N1, N2 | _]} = start(Config),
    {{ok, Keeper, Pid}, Owner} = place(Fleet, N1, [N2], idle(), #{}),
    ?assertEqual(N2, node(Pid)),
    ?assertEqual({ok, Pid}, on(Fleet, N1, fun() -> sderl_place:placed(Keeper) end)),
    on(Fleet, N2, fun() -> Pid ! {do, fun() -> ok end} end),
    ?assertEqual([{ended, Pid, normal}],
                 told(Fleet, Owner, ended, fun(Es) -> length(Es) =:= 1 end)),
    await(keeper_ended,
          fun() -> on(Fleet, N1, fun() -> sderl_place:placed(Keeper) end) =:= {error, over} end),
    ?assertEqual(ok, on(Fleet, N1, fun() -> sderl_place:stop(Keeper) end)),
    %% What is no keeper is refused and not waited for, on the own node and from another one.
    Stranger = on(Fleet, N1, fun() -> whereis(kernel_sup) end),
    Stop = fun() ->
        try
            sderl_place:stop(Stranger)
        catch
            error:{badarg, {sderl_place, stop, 1}, #{found := Stranger}} -> refused
        end
    end,
    [?assertEqual({N, refused}, {N, on(Fleet, N, Stop)}) || N <- [N1, N2]],
    {{ok, Other, Here}, _} = place(Fleet, N1, [N1], idle(), #{}),
    ?assertEqual(ok, on(Fleet, N1, fun() -> sderl_place:stop(Other) end)),
    ?assertNot(sderl_ct:alive(Fleet, Here)).

%% A gen_server, as a supervisor starts it.
started(Config) ->
    {Fleet, [N1, N2, N3 | _]} = start(Config),
    Server = {gen_server, start_link, [?MODULE, state, []]},
    {{ok, K, P}, Owner} = place(Fleet, N1, #{nodes => [N2, N3], choose => in_order}, Server,
                                #{start => start_link, name => {west, server}}),
    ?assertEqual(N2, node(P)),
    ?assertEqual(state, on(Fleet, N3,
                           fun() -> gen_server:call({via, s_group, {west, server}}, state) end)),
    %% Its output and log are its node's.
    ?assertEqual(N2, on(Fleet, N2,
                        fun() -> {group_leader, L} = process_info(P, group_leader), node(L) end)),
    sderl_ct:kill(Fleet, P, crash),
    [{moved, P, P3, crash}] = told(Fleet, Owner, moved, fun(Es) -> length(Es) =:= 1 end),
    ?assertEqual({N3, state}, {node(P3), on(
        Fleet, N1, fun() -> gen_server:call({via, s_group, {west, server}}, state) end
    )}),
    on(Fleet, N1, fun() -> sderl_place:stop(K) end),
    ?assertNot(sderl_ct:alive(Fleet, P3)),
    %% Where it cannot be started another node is tried; the owner's end is its end.
    Refuse = {?MODULE, refuse_at, [N2, Server]},
    {{ok, _, P4}, Owner4} = place(Fleet, N1, #{nodes => [N2, N3], choose => in_order}, Refuse,
                                  #{start => start_link}),
    ?assertEqual(N3, node(P4)),
    sderl_ct:kill(Fleet, Owner4, kill),
    await(server_ended, fun() -> not sderl_ct:alive(Fleet, P4) end),
    {No, _} = place(Fleet, N1, [N2], Refuse, #{start => start_link}),
    ?assertEqual({error, {no_node_left, [{N2, {start, refused}}]}}, No),
    {Slow, _} = place(Fleet, N1, [N2], {timer, sleep, [infinity]},
                      #{start => start_link, spawn_timeout_ms => 100}),
    ?assertEqual({error, {no_node_left, [{N2, timeout}]}}, Slow).

refuse_at(Node, _) when Node =:= node() -> {error, refused};
refuse_at(_, {M, F, A}) -> apply(M, F, A).

init(State) -> {ok, State}.

handle_call(state, _, State) -> {reply, State, State}.

handle_cast(_, State) -> {noreply, State}.

%% Moves to another node, back where there is no other, and not for ever.
crashes(Config) ->
    {Fleet, [N1, N2, N3 | _]} = start(Config),
    {{ok, Keeper, P1}, Owner} = place(Fleet, N1, [N2, N3], idle(), #{max_moves => 2}),
    sderl_ct:kill(Fleet, P1, crash),
    [{moved, P1, P2, crash}] = told(Fleet, Owner, moved, fun(Es) -> length(Es) =:= 1 end),
    ?assertEqual(lists:sort([N2, N3]), lists:sort([node(P1), node(P2)])),
    ?assertEqual({ok, P2}, on(Fleet, N1, fun() -> sderl_place:placed(Keeper) end)),
    sderl_ct:kill(Fleet, P2, crash),
    [_, {moved, P2, P3, crash}] = told(Fleet, Owner, moved_again, fun(Es) -> length(Es) =:= 2 end),
    sderl_ct:kill(Fleet, P3, crash),
    [_, _, {failed, {too_many_moves, crash}}] =
        told(Fleet, Owner, failed, fun(Es) -> length(Es) =:= 3 end),
    {{ok, K2, Q1}, Owner2} = place(Fleet, N1, [N2], idle(), #{}),
    sderl_ct:kill(Fleet, Q1, crash),
    [{moved, Q1, Q2, crash}] = told(Fleet, Owner2, back, fun(Es) -> length(Es) =:= 1 end),
    ?assertEqual(N2, node(Q2)),
    on(Fleet, N1, fun() -> sderl_place:stop(K2) end).

%% A node of another group is linked for the process, and the link has its reason as long as it is
%% there.
unlinked(Config) ->
    {Fleet, [N1, _, _, N4, _]} = start(Config),
    on(Fleet, N1, fun() -> erlang:disconnect_node(N4) end),
    Reasons = fun() ->
        on(Fleet, N1, fun() ->
            [R || #{node := N, reasons := Rs} <- s_group:links(), N =:= N4, {place, _} = R <- Rs]
        end)
    end,
    await(no_reason, fun() -> Reasons() =:= [] end),
    {{ok, Keeper, Pid}, _} = place(Fleet, N1, #{group => east, exclude => [N4]}, idle(), #{}),
    ?assert(node(Pid) =/= N4),
    on(Fleet, N1, fun() -> sderl_place:stop(Keeper) end),
    {{ok, K4, P4}, _} = place(Fleet, N1, [N4], idle(), #{}),
    ?assertEqual(N4, node(P4)),
    ?assertEqual([{place, K4}], Reasons()),
    on(Fleet, N1, fun() -> sderl_place:stop(K4) end),
    ?assertEqual([], Reasons()),
    ?assertNot(sderl_ct:alive(Fleet, P4)).

owner(Config) ->
    {Fleet, [N1, N2 | _]} = start(Config),
    {{ok, _, Pid}, Owner} = place(Fleet, N1, [N2], idle(), #{}),
    sderl_ct:kill(Fleet, Owner, kill),
    await(process_ended, fun() -> not sderl_ct:alive(Fleet, Pid) end).

%% Under a name of this node's group, and of the other group, where the process's node registers.
names(Config) ->
    {Fleet, [N1, N2, N3, N4, N5]} = start(Config),
    {{ok, K, P}, _} = place(Fleet, N1, [N2], idle(), #{name => {west, boss}}),
    ?assertEqual(P, on(Fleet, N3, fun() -> s_group:whereis_name(west, boss) end)),
    {Taken, _} = place(Fleet, N1, [N3], idle(), #{name => {west, boss}}),
    ?assertEqual({error, {name_taken, P}}, Taken),
    {{ok, K2, P2}, _} = place(Fleet, N1, [N4, N5], idle(), #{name => {east, boss}}),
    ?assertEqual(P2, on(Fleet, N3, fun() -> s_group:whereis_name(east, boss) end)),
    {None, _} = place(Fleet, N1, [N2], idle(), #{name => {east, other}}),
    ?assertEqual({error, {no_node_left, [{N2, {not_registered, cannot_register_in_remote_group}}]}},
                 None),
    %% A process that fails keeps its name.
    sderl_ct:kill(Fleet, P2, crash),
    await(moved, fun() ->
        case on(Fleet, N3, fun() -> s_group:whereis_name(east, boss) end) of
            New when is_pid(New), New =/= P2 -> true;
            Other -> Other
        end
    end),
    [on(Fleet, N1, fun() -> sderl_place:stop(Keeper) end) || Keeper <- [K, K2]],
    await(names_gone, fun() ->
        on(Fleet, N3, fun() -> [s_group:whereis_name(G, boss) || G <- [west, east]] end) =:=
            [undefined, undefined]
    end).

errors(Config) ->
    {Fleet, [N1, N2 | _]} = start(Config),
    Try = fun(Spec, MFA, O) -> element(1, place(Fleet, N1, Spec, MFA, O)) end,
    ?assertEqual({error, {no_node_left, []}}, Try([], idle(), #{})),
    ?assertEqual({error, {unknown_group, north}}, Try(#{group => north}, idle(), #{})),
    Nobody = 'nobody@127.0.0.1',
    ?assertEqual({error, {no_node_left, [{Nobody, unreachable}]}}, Try([Nobody], idle(), #{})),
    {{ok, K, P}, _} = place(Fleet, N1, #{nodes => [Nobody, N2], choose => in_order}, idle(), #{}),
    ?assertEqual(N2, node(P)),
    on(Fleet, N1, fun() -> sderl_place:stop(K) end),
    %% A function that is not there runs and fails, everywhere.
    {{ok, _, _}, Owner} = place(Fleet, N1, [N2], {no_module, f, []}, #{max_moves => 1}),
    ?assertMatch([{moved, _, _, {undef, _}}, {failed, {too_many_moves, {undef, _}}}],
                 told(Fleet, Owner, undef, fun(Es) -> length(Es) =:= 2 end)).

%% ---------------------------------------------------------------- nodes that stop

%% One that hangs holds nobody: it is passed over.
stopped_node(Config) ->
    {Fleet, [N1, N2, N3 | _]} = start(Config),
    ok = sderl_fleet:suspend(Fleet, N2),
    {{ok, K, P}, _} = place(Fleet, N1, #{nodes => [N2, N3], choose => in_order}, idle(),
                            #{spawn_timeout_ms => 8000}),
    ?assertEqual(N3, node(P)),
    {Left, _} = place(Fleet, N1, [N2], idle(), #{spawn_timeout_ms => 2000}),
    ?assertEqual({error, {no_node_left, [{N2, timeout}]}}, Left),
    ok = sderl_fleet:resume(Fleet, N2),
    on(Fleet, N1, fun() -> sderl_place:stop(K) end),
    %% What it spawned when it ran again was ended.
    await(none_left, fun() ->
        on(Fleet, N2, fun() ->
            [P2
             || P2 <- processes(), {_, {?MODULE, wait, 1}} <- [process_info(P2, current_function)]]
        end) =:= []
    end),
    sderl_ct:settled(Fleet, west, [N1, N2, N3]).

node_dies(Config) ->
    {Fleet, [N1, N2, N3, _, _]} = start(Config),
    {{ok, K, P}, Owner} = place(Fleet, N1, #{nodes => [N2, N3], choose => in_order}, idle(),
                                #{name => {west, survivor}}),
    ?assertEqual(N2, node(P)),
    %% Others with names, spread over the group; those on that node come back too, each once.
    Crowd = sderl_ct:process(Fleet, N1),
    Placed = on(Fleet, N1, fun() ->
        [{I, element(3,
                     {ok, _, _} = sderl_place:spawn(#{group => west, choose => {hash, I}}, idle(),
                                                    #{name => {west, {crowd, I}}, owner => Crowd}))}
         || I <- lists:seq(1, 30)]
    end),
    Lost = [I || {I, Q} <- Placed, node(Q) =:= N2],
    ?assertNotEqual([], Lost),
    ok = sderl_fleet:kill(Fleet, N2),
    await(all_back, fun() ->
        Now = on(Fleet, N3, fun() ->
            [{I, s_group:whereis_name(west, {crowd, I})} || I <- lists:seq(1, 30)]
        end),
        case [I || {I, Q} <- Now, not is_pid(Q) orelse node(Q) =:= N2] of
            [] ->
                [] = [I
                      || {I, Q} <- Placed, node(Q) =/= N2,
                         {I, Q} =/= {I, proplists:get_value(I, Now)}],
                true;
            Missing -> Missing
        end
    end),
    %% A process with a name that it lost, or without one, would be one too many.
    await(thirty, fun() ->
        Waiting = fun() ->
            length([Q
                    || Q <- processes(),
                       {_, {?MODULE, wait, 1}} <- [process_info(Q, current_function)]])
        end,
        %% And the survivor.
        31 =:= lists:sum([on(Fleet, N, Waiting) || N <- [N1, N3]])
    end),
    [{moved, P, P3, noconnection}] = told(Fleet, Owner, moved, fun(Es) -> length(Es) =:= 1 end),
    ?assertEqual(N3, node(P3)),
    ?assertEqual([P3, P3], [on(Fleet, N, fun() -> s_group:whereis_name(west, survivor) end)
                            || N <- [N1, N3]]),
    %% A choice leaves it out as soon as its link is gone, and says why.
    ?assertEqual([N1, N3], on(Fleet, N1, fun() -> sderl_place:choose_nodes(#{group => west}) end)),
    #{candidates := Cs} = E = on(Fleet, N1, fun() -> sderl_place:explain(#{group => west}) end),
    ?assertMatch([#{node := N2, verdict := dropped, why := down}],
                 [C || #{node := N} = C <- Cs, N =:= N2]),
    Text = unicode:characters_to_list(sderl_place:explain_text(E)),
    ?assertNotEqual(nomatch, string:find(Text, "down")),
    ct:pal("~ts", [Text]),
    on(Fleet, N1, fun() -> sderl_place:stop(K) end),
    sderl_ct:kill(Fleet, Crowd, kill),
    {ok, N2} = sderl_fleet:restart(Fleet, N2),
    {ok, west, _} = on(Fleet, N2, fun() -> s_group:enter(west, [N1]) end),
    sderl_ct:settled(Fleet, west, [N1, N2, N3]).

%% ---------------------------------------------------------------- wrong input

wrong_input(Config) ->
    {Fleet, [N1 | _]} = start(Config),
    Raised = on(Fleet, N1, fun() ->
        [try {value, F, apply(sderl_place, F, Args)}
         catch error:{badarg, {sderl_place, F, A}, #{argument := I, found := _, expected := E}} ->
             {F, A, I, io_lib:printable_list(E)}
         end || {F, Args} <- bad_calls()]
    end),
    ?assertEqual([{F, length(Args), I, true} || {F, Args, I} <- bad_calls(indexed)], Raised).

bad_calls() -> [{F, Args} || {F, Args, _} <- bad_calls(indexed)].

bad_calls(indexed) ->
    M = {m, f, []},
    [{spawn, [x, M], 1}, {spawn, [[], x], 2}, {spawn, [[], {m, f, a}], 2},
     {spawn, [[], {m, f, [a | b]}], 2},
     {spawn, [[], {"m", f, []}], 2}, {spawn, [#{count => 2}, M, #{}], 1}, {spawn, [[], M, []], 3},
     {spawn, [[], M, #{name => x}], 3},
     {spawn, [[], M, #{owner => x}], 3}, {spawn, [[], M, #{start => link}], 3},
     {spawn, [[], M, #{restart => always}], 3}, {spawn, [[], M, #{max_moves => -1}], 3},
     {spawn, [[], M, #{period_ms => 0}], 3}, {spawn, [[], M, #{spawn_timeout_ms => infinity}], 3},
     {spawn, [[], M, #{other => 1}], 3},
     {placed, [x], 1}, {stop, [x], 1}, {placed, [whereis(init)], 1}, {stop, [whereis(init)], 1},
     {choose_node, [#{choose => best}], 1}, {choose_nodes, [[], x], 2}, {explain, [x], 1}].
