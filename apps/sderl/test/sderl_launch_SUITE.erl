%% SPDX-License-Identifier: Apache-2.0
-module(sderl_launch_SUITE).

%% How nodes come into groups and out of them: launch configuration, seeds, discovery, restarts;
%% and what each node knows of it.

-compile([export_all, nowarn_export_all]).

-behaviour(application).
-behaviour(supervisor).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct_nodes, [with/2, again/2, sd/1, sd/2, call/4, s_group/4, await/1, ready/3,
                         members/3, log/2, logged/3, problems/2, left_out/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [all_at_once, published_place, one_after_the_other, differing_lists, seeds, discovery, leaving,
     children_at_boot, await_in_vain, forgotten, removed_stays_removed, deletion_is_remembered,
     deleted_while_standing_still, two_of_one_name, crossing_creations, knowledge, told_too_early,
     links].

%% Without a tag the names are known before the nodes are.
n(I) -> list_to_atom(lists:concat([a, I, "@127.0.0.1"])).

%% Of nodes that come with the same configuration.
plan(Count, Env) -> #{tag => "", families => [sd(Count, Env)]}.

%% Of nodes with a configuration each; they are started by `boot/2`.
family(I, Env) -> (sd(1, Env))#{index => I}.

boot(Fleet, Added) ->
    {ok, Nodes} = sderl_fleet:start_nodes(
        Fleet, [case A of #{index := _} -> maps:remove(count, A); _ -> A end || A <- Added]
    ),
    Nodes.

%% One bare node holds the fleet together.
bare() -> #{tag => "", families => [#{name => bare, count => 1}]}.

%% ---------------------------------------------------------------- lists

all_at_once(_) ->
    Groups = [{g, normal, [{a, [1, 2, 3]}]}, {h, hidden, [{a, [3, 4]}]},
              {{"any", term}, normal, [{a, 4}]}],
    with(#{families => [sd(4)], s_groups => Groups, s_groups_known => all},
         fun(Fleet, [A1, A2, A3, A4]) ->
             ready(Fleet, [A1, A2, A3], g),
             ready(Fleet, [A3, A4], h),
             members(Fleet, [A1, A2, A3], g),
             members(Fleet, [A3, A4], h),
             ?assertEqual({[g], [h, {"any", term}]}, s_group(Fleet, A1, s_groups, [])),
             ?assertEqual({[g, h], [{"any", term}]}, s_group(Fleet, A3, s_groups, [])),
             ?assertEqual({[h, {"any", term}], [g]}, s_group(Fleet, A4, s_groups, [])),
             %% One component each: a name that a member registers the others have.
             Pid = call(Fleet, A3, proc, []),
             ?assertEqual(yes, s_group(Fleet, A3, register_name, [g, n, Pid])),
             ?assertEqual(yes, s_group(Fleet, A3, register_name, [h, n, Pid])),
             [?assertEqual(Pid, s_group(Fleet, N, whereis_name, [g, n])) || N <- [A1, A2, A3]],
             ?assertEqual(Pid, s_group(Fleet, A4, whereis_name, [h, n])),
             %% Links are within the groups, and no others. (Members of one component are linked to
             %% their coordinator, and to each other a moment later.)
             [await(fun() -> [] =:= problems(Fleet, N) orelse problems(Fleet, N) end)
              || N <- [A1, A2, A3, A4]],
             ?assertEqual(lists:sort([A2, A3]),
                          lists:sort(call(Fleet, A1, {erlang, nodes}, [connected]))),
             ?assertEqual([A3], call(Fleet, A4, {erlang, nodes}, [connected]))
         end).

published_place(_) ->
    Groups = [{g, normal, [n(1), n(2)]}],
    with(plan(2, [{kernel, s_groups, Groups}]), fun(Fleet, Nodes) ->
        ready(Fleet, Nodes, g),
        members(Fleet, Nodes, g),
        ?assertEqual({[g], []}, s_group(Fleet, hd(Nodes), s_groups, []))
    end).

one_after_the_other(_) ->
    All = [n(1), n(2), n(3)],
    Env = [{sderl, s_groups, [{g, normal, All}]}],
    with(plan(1, Env), fun(Fleet, [A1]) ->
        ready(Fleet, [A1], g),
        P1 = call(Fleet, A1, proc, []),
        ?assertEqual(yes, s_group(Fleet, A1, register_name, [g, one, P1])),
        ?assertMatch([_ | _], problems(Fleet, A1)),
        [A2] = boot(Fleet, [family(2, Env)]),
        ready(Fleet, [A2], g),
        ?assertEqual(P1, s_group(Fleet, A2, whereis_name, [g, one])),
        P2 = call(Fleet, A2, proc, []),
        ?assertEqual(yes, s_group(Fleet, A2, register_name, [g, two, P2])),
        [A3] = boot(Fleet, [family(3, Env)]),
        ready(Fleet, [A3], g),
        ?assertEqual(P2, s_group(Fleet, A3, whereis_name, [g, two])),
        ?assertEqual(All, [A1, A2, A3]),
        members(Fleet, All, g),
        %% The first, which leads, comes anew: without the names of its former life.
        {ok, A1} = sderl_fleet:restart(Fleet, A1),
        ready(Fleet, All, g),
        [await(fun() -> s_group(Fleet, N, registered_names, [{s_group, g}]) =:= [{g, two}] end)
         || N <- All],
        P3 = call(Fleet, A1, proc, []),
        ?assertEqual(yes, s_group(Fleet, A1, register_name, [g, one, P3])),
        [?assertEqual(P3, s_group(Fleet, N, whereis_name, [g, one])) || N <- All],
        await(fun() -> [] =:= lists:append([problems(Fleet, N) || N <- All]) end)
    end).

%% A list that is rolled out half-way: merged, and an event names the difference.
differing_lists(_) ->
    Env = fun(Is) -> [{sderl, s_groups, [{g, normal, [n(I) || I <- Is]}]}] end,
    with(bare(), fun(Fleet, _) ->
        [A1] = boot(Fleet, [family(1, Env([1, 2]))]),
        [A2] = boot(Fleet, [family(2, Env([1, 2, 3]))]),
        [A3] = boot(Fleet, [family(3, Env([2, 3]))]),
        All = [A1, A2, A3],
        members(Fleet, All, g),
        ready(Fleet, All, g),
        Pid = call(Fleet, A3, proc, []),
        ?assertEqual(yes, s_group(Fleet, A3, register_name, [g, n, Pid])),
        [?assertEqual(Pid, s_group(Fleet, N, whereis_name, [g, n])) || N <- All],
        await(fun() ->
            lists:any(fun(N) ->
                string:find(log(Fleet, N), "another list of members") =/= nomatch
            end, All)
        end)
    end).

%% ---------------------------------------------------------------- seeds and discovery

seeds(_) ->
    Seeds = [{sderl, s_groups, [{g, normal, {seeds, [n(1), n(9)]}}]},
             {sderl, await, {all, 60_000}}],
    with(bare(), fun(Fleet, _) ->
        %% No seed is up: the node starts all the same, says so, and goes on trying.
        [A2] = boot(Fleet, [family(2, [{sderl, s_groups, [{g, normal, {seeds, [n(1), n(9)]}}]},
                                       {sderl, await, {[g], 500}}])]),
        ?assertEqual(undefined, s_group(Fleet, A2, s_groups, [])),
        logged(Fleet, A2, "s_group g is not ready: timeout"),
        await(fun() ->
            lists:any(fun(P) -> string:find(P, "has not entered it yet") =/= nomatch end,
                      problems(Fleet, A2))
        end),
        [A1] = boot(Fleet, [family(1, [{sderl, s_groups, [{g, normal, [n(1)]}]}])]),
        ready(Fleet, [A1, A2], g),
        Pid = call(Fleet, A1, proc, []),
        yes = s_group(Fleet, A1, register_name, [g, n, Pid]),
        %% Names that no file knew; their start waits until they are in.
        New = boot(Fleet, [family(3, Seeds), family(4, Seeds)]),
        All = [A1, A2 | New],
        [?assertEqual({N, Pid}, {N, s_group(Fleet, N, whereis_name, [g, n])}) || N <- New],
        members(Fleet, All, g),
        %% The new ones may have no link to each other yet.
        [await(fun() -> [] =:= problems(Fleet, N) orelse problems(Fleet, N) end) || N <- All],
        %% One that comes again enters again.
        {ok, A2} = sderl_fleet:restart(Fleet, A2),
        ready(Fleet, [A2], g),
        members(Fleet, All, g)
    end).

%% As discovery libraries call them, from several new nodes at once.
discovery(_) ->
    again(5, fun(Fleet, [A1, A2, A3, A4, A5] = All) ->
        {ok, g, [A1]} = s_group(Fleet, A1, new_s_group, [g, [A1]]),
        Pid = call(Fleet, A1, proc, []),
        yes = s_group(Fleet, A1, register_name, [g, n, Pid]),
        New = [A2, A3, A4, A5],
        [?assertEqual({N, {ok, true}}, {N, R})
         || {N, R} <- sderl_fleet:multicall(Fleet, New, s_group, connect, [g, A1], 60_000)],
        [?assertEqual({N, Pid}, {N, s_group(Fleet, N, whereis_name, [g, n])}) || N <- New],
        members(Fleet, All, g),
        %% Again is no error; a member gives the members.
        ?assertEqual(true, s_group(Fleet, A2, connect, [g, A3])),
        ?assertEqual({ok, g, lists:sort(All)}, s_group(Fleet, A2, enter, [g, [A3]])),
        %% The first that is a member will do.
        ok = s_group(Fleet, A5, leave, [g]),
        members(Fleet, [A1, A2, A3, A4], g),
        ?assertMatch({ok, g, [_, _, _, _, _]},
                     s_group(Fleet, A5, enter, [g, ['nobody@127.0.0.1', A5, A3]])),
        ?assertMatch({error, {no_seed_answered, [{A1, node_does_not_belong_to_the_s_group}]}},
                     s_group(Fleet, A5, enter, [h, [A1]])),
        ?assertEqual(false, s_group(Fleet, A5, connect, [h, A1]))
    end).

leaving(_) ->
    again(3, fun(Fleet, [A1, A2, A3] = All) ->
        {ok, g, All} = s_group(Fleet, A1, new_s_group, [g, All]),
        [P1, P3] = [call(Fleet, N, proc, []) || N <- [A1, A3]],
        yes = s_group(Fleet, A1, register_name, [g, one, P1]),
        yes = s_group(Fleet, A3, register_name, [g, three, P3]),
        %% Names whose process lives on the leaving node stay, and it keeps none.
        ?assertEqual(ok, s_group(Fleet, A3, leave, [g])),
        ?assertEqual([], s_group(Fleet, A3, own_s_groups, [])),
        ?assertEqual(undefined, s_group(Fleet, A3, s_groups, [])),
        ?assertEqual([A3], s_group(Fleet, A3, own_nodes, [])),
        members(Fleet, [A1, A2], g),
        ?assertEqual(P3, s_group(Fleet, A1, whereis_name, [g, three])),
        ?assertEqual(P3, s_group(Fleet, A3, whereis_name, [g, three])),
        ?assertEqual({no, cannot_register_in_remote_group},
                     s_group(Fleet, A3, register_name, [g, x, P3])),
        %% They still die with it.
        ok = call(Fleet, A3, stop, [P3]),
        await(fun() -> s_group(Fleet, A2, whereis_name, [g, three]) =:= undefined end),
        %% The one that led leaves; who is left goes on with the names.
        ?assertEqual(ok, s_group(Fleet, A1, leave, [g])),
        members(Fleet, [A2], g),
        ?assertEqual(P1, s_group(Fleet, A2, whereis_name, [g, one])),
        P2 = call(Fleet, A2, proc, []),
        ?assertEqual(yes, s_group(Fleet, A2, register_name, [g, two, P2])),
        %% The last one's leaving deletes the group: its name is free.
        ?assertEqual(ok, s_group(Fleet, A2, leave, [g])),
        [?assertEqual([], s_group(Fleet, N, own_s_groups, [])) || N <- All],
        ?assertEqual([{g, deleted}], proplists:get_value(gone, s_group(Fleet, A2, info, []))),
        ?assertEqual(undefined, s_group(Fleet, A2, whereis_name, [g, one])),
        ?assertEqual({ok, g, [A1, A3]}, s_group(Fleet, A1, new_s_group, [g, [A1, A3]])),
        ?assertEqual([], s_group(Fleet, A3, registered_names, [{s_group, g}]))
    end).

%% ---------------------------------------------------------------- start and stop

%% An application with `via` children that depends on the library starts at boot on all nodes at
%% once: its children find one group, not one each.
children_at_boot(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "ebin"),
    ok = filelib:ensure_path(Dir),
    App = {application, sderl_ct_app,
           [{vsn, "1"}, {modules, [?MODULE]}, {registered, []},
            {applications, [kernel, stdlib, sderl]}, {mod, {?MODULE, []}}]},
    ok = file:write_file(filename:join(Dir, "sderl_ct_app.app"), io_lib:format("~p.~n", [App])),
    Family =
        (sd(4, [{sderl, await, {all, 60_000}}]))#{apps => [sderl_ct_app], paths => [Dir | paths()]},
    with(#{families => [Family], s_groups => [{g, normal, [{a, all}]}]}, fun(Fleet, All) ->
        %% One whose group is ready has everybody who answers: so nobody's child ever clashed.
        ready(Fleet, All, g),
        [Leader] = lists:usort([s_group(Fleet, N, whereis_name, [g, leader]) || N <- All]),
        ?assert(is_pid(Leader)),
        [?assertMatch({N, M, P} when is_pid(P),
                      {N, M, s_group(Fleet, N, whereis_name, [g, {server, M}])})
         || N <- All, M <- All],
        [?assertEqual(nomatch, string:find(log(Fleet, N), "was registered as each")) || N <- All],
        %% Killed, it is found under the same name on all nodes.
        Old = s_group(Fleet, hd(All), whereis_name, [g, {server, hd(All)}]),
        true = call(Fleet, hd(All), {erlang, exit}, [Old, kill]),
        await(fun() ->
            case lists:usort([s_group(Fleet, N, whereis_name, [g, {server, hd(All)}])
                              || N <- All]) of
                [New] -> is_pid(New) andalso New =/= Old;
                Differ -> Differ
            end
        end)
    end).

paths() -> [P || P <- code:get_path(), not lists:prefix(code:lib_dir(), P)].

start(normal, _) -> supervisor:start_link({local, ?MODULE}, ?MODULE, sup).

stop(_) -> ok.

start_server(Name) -> gen_server:start_link({via, s_group, {g, Name}}, ?MODULE, server, []).

start_leader() ->
    case start_server(leader) of
        {error, {already_started, _}} -> ignore;
        Started -> Started
    end.

init(server) -> {ok, none};
init(sup) ->
    {ok, {#{strategy => one_for_one, intensity => 3, period => 5},
          [#{id => server, start => {?MODULE, start_server, [{server, node()}]}},
           #{id => leader, start => {?MODULE, start_leader, []}}]}}.

handle_call(_, _, S) -> {reply, ok, S}.

handle_cast(_, S) -> {noreply, S}.

%% Groups that do not get ready in time hold nobody up for ever.
await_in_vain(_) ->
    Env = [{sderl, s_groups, [{g, normal, [n(1), n(2)]}]}, {sderl, await, {[g, other], 300}}],
    with(plan(1, Env), fun(Fleet, [A1]) ->
        logged(Fleet, A1, "s_group other is not ready: timeout"),
        logged(Fleet, A1, "the option await names the group other"),
        ready(Fleet, [A1], g),
        ?assertEqual({error, timeout}, s_group(Fleet, A1, await, [other, 100])),
        ?assertEqual(ok, s_group(Fleet, A1, sync, []))
    end).

%% ---------------------------------------------------------------- who is gone

forgotten(_) ->
    Env = [{sderl, s_groups, [{g, normal, [n(1), n(2), n(3)]}, {h, normal, [n(1), n(2), n(3)]}]},
           {sderl, forget_down_after, #{g => 500}}],
    with(plan(3, Env), fun(Fleet, [A1, A2, A3] = All) ->
        ready(Fleet, All, g),
        ready(Fleet, All, h),
        ok = sderl_fleet:kill(Fleet, A3),
        members(Fleet, [A1, A2], g),
        logged(Fleet, A1, "s_group g lost the members"),
        %% It was for that group.
        [?assertEqual(All, s_group(Fleet, N, own_nodes, [h])) || N <- [A1, A2]],
        Pid = call(Fleet, A2, proc, []),
        ?assertEqual(yes, s_group(Fleet, A2, register_name, [g, n, Pid])),
        ?assertEqual(Pid, s_group(Fleet, A1, whereis_name, [g, n])),
        %% All that saw its death are restarted: they know it from their file, and forget it again.
        [{ok, N} = sderl_fleet:restart(Fleet, N) || N <- [A1, A2]],
        members(Fleet, [A1, A2], g),
        %% It was not removed.
        {ok, A3} = sderl_fleet:restart(Fleet, A3),
        members(Fleet, All, g)
    end).

%% The running membership wins over the file of a node that comes back.
removed_stays_removed(_) ->
    Env = [{sderl, s_groups, [{g, normal, [n(1), n(2), n(3)]}]}],
    with(plan(3, Env), fun(Fleet, [A1, A2, A3] = All) ->
        ready(Fleet, All, g),
        Pid = call(Fleet, A1, proc, []),
        yes = s_group(Fleet, A1, register_name, [g, n, Pid]),
        ?assertEqual(ok, s_group(Fleet, A1, remove_nodes, [g, [A3]])),
        members(Fleet, [A1, A2], g),
        await(fun() -> s_group(Fleet, A3, own_s_groups, []) =:= [] end),
        {ok, A3} = sderl_fleet:restart(Fleet, A3),
        await(fun() -> s_group(Fleet, A3, s_groups, []) =:= undefined end),
        ?assertEqual([{g, removed}], proplists:get_value(gone, s_group(Fleet, A3, info, []))),
        members(Fleet, [A1, A2], g),
        %% Removed while it was down.
        ok = sderl_fleet:kill(Fleet, A2),
        ?assertEqual(ok, s_group(Fleet, A1, remove_nodes, [g, [A2]])),
        {ok, A2} = sderl_fleet:restart(Fleet, A2),
        await(fun() -> s_group(Fleet, A2, s_groups, []) =:= undefined end),
        members(Fleet, [A1], g),
        %% Added again they are members like any other, over a restart too.
        ?assertEqual({ok, g, [A2, A3]}, s_group(Fleet, A1, add_nodes, [g, [A2, A3]])),
        members(Fleet, All, g),
        {ok, A3} = sderl_fleet:restart(Fleet, A3),
        ready(Fleet, All, g),
        members(Fleet, All, g),
        ?assertEqual(Pid, s_group(Fleet, A3, whereis_name, [g, n]))
    end).

%% A group that was deleted is not revived by a member that was away: a node that was stopped...
deleted_while_standing_still(_) ->
    with(#{families => [sd(3, [{sderl, set_aside_ms, 1000}])]}, fun(Fleet, [A1, A2, A3] = All) ->
        {ok, g, All} = s_group(Fleet, A1, new_s_group, [g, All]),
        ok = sderl_fleet:suspend(Fleet, A3),
        ?assertEqual(ok, s_group(Fleet, A1, delete_s_group, [g])),
        await(fun() -> s_group(Fleet, A2, own_s_groups, []) =:= [] end),
        ok = sderl_fleet:resume(Fleet, A3),
        await(fun() -> s_group(Fleet, A3, own_s_groups, []) =:= [] end),
        ?assertEqual([{g, deleted}], proplists:get_value(gone, s_group(Fleet, A3, info, [])))
    end).

%% ... or one that boots with its file.
deletion_is_remembered(_) ->
    Env = [{sderl, s_groups, [{g, normal, [n(I) || I <- [1, 2, 3]]}]}],
    with(plan(3, Env), fun(Fleet, [A1, A2, A3] = All) ->
        ready(Fleet, All, g),
        ok = sderl_fleet:kill(Fleet, A3),
        ?assertEqual(ok, s_group(Fleet, A1, delete_s_group, [g])),
        await(fun() -> s_group(Fleet, A2, own_s_groups, []) =:= [] end),
        {ok, A3} = sderl_fleet:restart(Fleet, A3),
        [await(fun() -> s_group(Fleet, N, s_groups, []) =:= undefined end) || N <- All],
        [?assertEqual([{g, deleted}], proplists:get_value(gone, s_group(Fleet, N, info, [])))
         || N <- All],
        %% The next group of that name is another one.
        ok = sderl_fleet:kill(Fleet, A3),
        ?assertEqual({ok, g, [A1, A2]}, s_group(Fleet, A1, new_s_group, [g, [A1, A2]])),
        Pid = call(Fleet, A2, proc, []),
        yes = s_group(Fleet, A2, register_name, [g, n, Pid]),
        {ok, A3} = sderl_fleet:restart(Fleet, A3),
        await(fun() -> s_group(Fleet, A3, s_groups, []) =:= undefined end),
        members(Fleet, [A1, A2], g),
        ?assertEqual({ok, g, [A3]}, s_group(Fleet, A1, add_nodes, [g, [A3]])),
        [?assertEqual(Pid, s_group(Fleet, N, whereis_name, [g, n])) || N <- All]
    end).

%% ---------------------------------------------------------------- two groups of one name

two_of_one_name(_) ->
    Env = fun(Cluster) ->
        [{sderl, s_groups, [{g, normal, [n(1), n(2)]}]}, {sderl, cluster, Cluster}]
    end,
    with(bare(), fun(Fleet, _) ->
        [A1] = boot(Fleet, [family(1, Env("north"))]),
        [A2] = boot(Fleet, [family(2, Env("south"))]),
        [begin
             logged(Fleet, Here, "another group of this name runs on"),
             await(fun() ->
                 [L || {g, N, uid_conflict} = L <- left_out(Fleet, Here), N =:= There] =/= []
             end),
             ?assert(lists:any(fun(P) -> string:find(P, "the two never merge") =/= nomatch end,
                               problems(Fleet, Here)))
         end || {Here, There} <- [{A1, A2}, {A2, A1}]],
        %% Both go on by themselves.
        [Kept, _] = [begin
             Pid = call(Fleet, N, proc, []),
             ?assertEqual(yes, s_group(Fleet, N, register_name, [g, n, Pid])),
             ?assertEqual(Pid, s_group(Fleet, N, whereis_name, [g, n])),
             Pid
         end || N <- [A1, A2]],
        %% And meet when one is deleted. (The other counts the node among its members and greets it
        %% with every tick, so that it may have entered that one before the next question.)
        ok = s_group(Fleet, A2, delete_s_group, [g]),
        ?assertEqual([{g, deleted}], proplists:get_value(gone, s_group(Fleet, A2, info, []))),
        await(fun() ->
            {ok, g, _} = s_group(Fleet, A1, add_nodes, [g, [A2]]),
            s_group(Fleet, A2, own_nodes, [g]) =:= [A1, A2]
        end),
        ready(Fleet, [A1, A2], g),
        [?assertEqual(Kept, s_group(Fleet, N, whereis_name, [g, n])) || N <- [A1, A2]]
    end).

%% The same name created in two places at once: two groups, or one and a refusal; never a crash
%% and never a mixture.
crossing_creations(_) ->
    again(3, fun(Fleet, [A1, A2, A3] = All) ->
        [begin
             Results = sderl_fleet:multicall(Fleet, All, s_group, new_s_group, [G, All], 60_000),
             [case R of
                  {ok, {ok, G, Joined}} ->
                      ?assert(lists:member(N, Joined)),
                      await(fun() -> s_group(Fleet, N, own_nodes, [G]) =:= Joined end),
                      [await(fun() -> s_group(Fleet, M, own_nodes, [G]) =:= Joined end)
                       || M <- Joined];
                  {ok, {error, s_group_name_is_in_use}} ->
                      ?assertNotEqual([], s_group(Fleet, N, own_nodes, [G]))
              end || {N, R} <- Results],
             Pids = [call(Fleet, N, proc, []) || N <- All],
             [?assertEqual(yes, s_group(Fleet, N, register_name, [G, N, P]))
              || {N, P} <- lists:zip(All, Pids)],
             [?assertEqual(P, s_group(Fleet, N, whereis_name, [G, N]))
              || {N, P} <- lists:zip(All, Pids)]
         end || G <- [g1, g2, g3]],
        %% One group grown from two members at once has both new ones.
        {ok, h, [A1, A2]} = s_group(Fleet, A1, new_s_group, [h, [A1, A2]]),
        Added = [R
                 || {_, {ok, {ok, h, R}}} <- sderl_fleet:multicall(
                     Fleet, [A1, A2], s_group, add_nodes, [h, [A3]], 60_000
                 )],
        ?assertMatch([_, _], Added),
        ?assertEqual([A3], lists:usort(lists:append(Added))),
        members(Fleet, All, h)
    end).

%% ---------------------------------------------------------------- what a node knows

knowledge(_) ->
    again(4, fun(Fleet, [A1, A2, A3, A4]) ->
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        {ok, h, _} = s_group(Fleet, A2, new_s_group, [h, [A2, A3]]),
        {ok, k, _} = s_group(Fleet, A3, new_s_group, [k, [A3, A4]]),
        %% One hop through a gateway, and no further.
        await(fun() -> s_group(Fleet, A1, s_groups, []) =:= {[g], [h]} end),
        await(fun() -> s_group(Fleet, A2, s_groups, []) =:= {[g, h], [k]} end),
        await(fun() -> s_group(Fleet, A4, s_groups, []) =:= {[k], [h]} end),
        ?assertEqual([{h, [A2, A3]}, {g, [A1, A2]}], s_group(Fleet, A2, own_s_groups, [])),
        ?assertEqual([A1, A2, A3], s_group(Fleet, A2, own_nodes, [])),
        ?assertEqual([A2, A3], s_group(Fleet, A2, own_nodes, [h])),
        ?assertEqual([], s_group(Fleet, A2, own_nodes, [k])),
        Other = fun(N) -> proplists:get_value(other_groups, s_group(Fleet, N, info, [])) end,
        %% Its name may be known before all its members are.
        await(fun() -> Other(A1) =:= [{h, [A2, A3]}] end),
        await(fun() -> Other(A4) =:= [{h, [A2, A3]}] end),
        %% A non-member reads and sends, over the nodes it knows.
        Pid = call(Fleet, A3, proc, []),
        yes = s_group(Fleet, A3, register_name, [h, n, Pid]),
        ?assertEqual(Pid, s_group(Fleet, A1, whereis_name, [h, n])),
        ?assertEqual(Pid, s_group(Fleet, A1, send, [h, n, hello])),
        await(fun() -> call(Fleet, A3, inbox, [Pid]) =:= [hello] end),
        ?assertEqual([{h, n}], s_group(Fleet, A1, registered_names, [{s_group, h}])),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [k, n])),
        ?assertNot(lists:member(A3, call(Fleet, A1, {erlang, nodes}, [connected]))),
        %% Kept up to date while it changes.
        {ok, h, [A4]} = s_group(Fleet, A3, add_nodes, [h, [A4]]),
        await(fun() -> Other(A1) =:= [{h, [A2, A3, A4]}] end),
        ok = s_group(Fleet, A2, remove_nodes, [h, [A3]]),
        await(fun() -> Other(A1) =:= [{h, [A2, A4]}] end),
        %% A4 is what links k to h now.
        await(fun() -> s_group(Fleet, A3, s_groups, []) =:= {[k], [h]} end),
        ?assertEqual(Pid, s_group(Fleet, A3, whereis_name, [h, n])),
        ok = s_group(Fleet, A2, delete_s_group, [h]),
        await(fun() -> s_group(Fleet, A1, s_groups, []) =:= {[g], []} end),
        await(fun() -> s_group(Fleet, A2, s_groups, []) =:= {[g], []} end),
        await(fun() -> s_group(Fleet, A3, s_groups, []) =:= {[k], []} end),
        ok = s_group(Fleet, A1, delete_s_group, [g]),
        ?assertEqual(undefined, s_group(Fleet, A1, s_groups, []))
    end).

%% A member told its groups over a link that was up before the library ran here: it is asked again.
told_too_early(_) ->
    Groups = [{g, normal, [n(1), n(2)]}],
    More = [{h, normal, [n(2), n(3)]}],
    Late = maps:remove(apps, sd(1, [{sderl, s_groups, Groups}])),
    with(#{tag => "", families => [Late]}, fun(Fleet, [A1]) ->
        [A2] = boot(Fleet, [family(2, [{sderl, s_groups, Groups ++ More}])]),
        %% The link came up, and A2 has dealt with that.
        await(fun() -> call(Fleet, A1, {erlang, nodes}, [connected]) =:= [A2] end),
        ok = call(Fleet, A2, {gen_server, call}, [sderl_node, settle]),
        {ok, _} = call(Fleet, A1, {application, ensure_all_started}, [sderl]),
        await(fun() -> s_group(Fleet, A1, s_groups, []) =:= {[g], [h]} end)
    end).

links(_) ->
    again(5, fun(Fleet, [A1, A2, A3, A4, A5]) ->
        {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, [A1, A2]]),
        {ok, h, _} = s_group(Fleet, A1, new_s_group, [h, [A1, A2, A3]]),
        ?assertEqual(true, s_group(Fleet, A1, connect, [A4])),
        Pid = call(Fleet, A4, proc, []),
        ?assertEqual(undefined, s_group(Fleet, A1, whereis_name, [A5, g, n])),
        ?assertEqual(yes, s_group(Fleet, A1, register_name, [g, n, Pid])),
        Links = fun() ->
            maps:from_list([{N, L} || #{node := N} = L <- s_group(Fleet, A1, links, [])])
        end,
        Now = erlang:system_time(second),
        %% A link is listed when the node's server has dealt with its coming up.
        ok = call(Fleet, A1, {sderl_node_client, settle}, []),
        #{A2 := L2, A3 := L3, A4 := L4, A5 := L5} = Links(),
        ?assertMatch(#{visible := true, needed := true, opened_by := library}, L2),
        ?assertEqual([{group, g}, {group, h}], [R || {group, _} = R <- maps:get(reasons, L2)]),
        ?assertEqual([{group, h}], [R || {group, _} = R <- maps:get(reasons, L3)]),
        ?assertMatch(#{needed := true}, L4),
        ?assert(lists:member(caller, maps:get(reasons, L4))),
        ?assert(lists:member({monitor, g}, maps:get(reasons, L4))),
        ?assertEqual([{lookup, g}], maps:get(reasons, L5)),
        [?assert(abs(Now - S) < 120) || #{since := S} <- [L2, L3, L4, L5]],
        %% Reasons go with what they were for; the link stays.
        ok = s_group(Fleet, A1, delete_s_group, [h]),
        await(fun() -> #{A3 := #{reasons := R}} = Links(), [] =:= [x || {group, _} <- R] end),
        #{A2 := #{reasons := R2}} = Links(),
        ?assertEqual([{group, g}], [R || {group, _} = R <- R2]),
        await(fun() -> s_group(Fleet, A1, unregister_name, [g, n]) =:= ok end),
        %% The other side has its own account, and may learn of the end of h a moment later.
        await(fun() ->
            case [Rs || #{node := N, reasons := Rs} <- s_group(Fleet, A2, links, []), N =:= A1] of
                [[{group, g}]] -> true;
                Other -> Other
            end
        end),
        %% A link that is down is missed.
        ok = sderl_fleet:kill(Fleet, A2),
        await(fun() -> not is_map_key(A2, Links()) end),
        await(fun() ->
            lists:any(fun(P) -> string:find(P, "no link to") =/= nomatch end, problems(Fleet, A1))
        end)
    end).
