%% SPDX-License-Identifier: Apache-2.0
-module(sderl_applied_SUITE).

%% Groups whose clients are answered when their own node has applied a write (`answer => applied`).

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct_nodes, [with/2, sd/2, s_group/4, await/1, members/3]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [given_and_learned, answered_at_once].

plan(Count, Env) ->
    #{tag => "", families => [sd(Count, [{sderl, Key, Value} || {Key, Value} <- Env])]}.

info(Fleet, Node, Group) ->
    Groups = proplists:get_value(groups, s_group(Fleet, Node, info, [])),
    [Info] = [Info || #{group := G} = Info <- Groups, G =:= Group],
    Info.

answer(Fleet, Node, Group) -> maps:get(answer, info(Fleet, Node, Group)).

missing(Fleet, Node, Group) -> maps:get(acknowledgements_missing, info(Fleet, Node, Group)).

register_name(Fleet, Node, Group, Name) ->
    Pid = sderl_ct:process(Fleet, Node),
    {s_group(Fleet, Node, register_name, [Group, Name, Pid]), Pid}.

%% By the options of the call or by the configuration; a node that joins learns it from the group,
%% and a node that keeps files knows it after a restart.
given_and_learned(Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config), "applied"),
    Env = [{state_dir, Dir},
           {answer, #{c => applied, d => committed, z => applied}},
           {consistency, #{m => majority}}],
    with(plan(3, Env), fun(Fleet, [A, B, C] = Nodes) ->
        Applied = #{answer => applied},
        ?assertMatch({ok, g, [A, B]}, s_group(Fleet, A, new_s_group, [g, [A, B], Applied])),
        ?assertMatch({ok, g, [C]}, s_group(Fleet, B, add_nodes, [g, [C]])),
        members(Fleet, Nodes, g),
        ?assertEqual([applied, applied, applied], [answer(Fleet, N, g) || N <- Nodes]),
        ?assertMatch({ok, c, [A, B]}, s_group(Fleet, A, new_s_group, [c, [A, B]])),
        ?assertMatch({ok, e, [A]},
                     s_group(Fleet, A, new_s_group, [e, [A], #{consistency => available}])),
        ?assertEqual([applied, committed], [answer(Fleet, A, G) || G <- [c, e]]),
        [?assertEqual({error, Why}, s_group(Fleet, A, new_s_group, [Group, Nodes, Options]))
         || {Why, Group, Options} <- [{answer_differs, d, Applied},
                                      {consistency_differs, m, Applied},
                                      {consistency_differs, z, #{consistency => majority}}]],
        ok = sderl_fleet:kill(Fleet, C),
        {ok, C} = sderl_fleet:restart(Fleet, C),
        members(Fleet, Nodes, g),
        ?assertEqual(applied, answer(Fleet, C, g)),
        {yes, Pid} = register_name(Fleet, C, g, n),
        ?assertEqual(Pid, s_group(Fleet, C, whereis_name, [g, n])),
        [await(fun() -> s_group(Fleet, N, whereis_name, [g, n]) =:= Pid end) || N <- Nodes]
    end).

%% The first write does not wait for a member that hangs; the next one is ordered when that member
%% has the first.
answered_at_once(_) ->
    Env = [{set_aside_ms, 60_000}, {write_timeout_ms, 5_000}],
    with(plan(2, Env), fun(Fleet, [A, B] = Nodes) ->
        {ok, g, Nodes} = s_group(Fleet, A, new_s_group, [g, Nodes, #{answer => applied}]),
        members(Fleet, Nodes, g),
        await(fun() -> [] =:= missing(Fleet, A, g) end),
        ok = sderl_fleet:suspend(Fleet, B),
        {yes, First} = register_name(Fleet, A, g, first),
        ?assertEqual(First, s_group(Fleet, A, whereis_name, [g, first])),
        Second = sderl_ct:process(Fleet, A),
        ?assertMatch({exit, {timeout, _}}, sderl_ct:on(Fleet, A, fun() ->
            try s_group:register_name(g, second, Second)
            catch exit:Reason -> {exit, Reason}
            end
        end)),
        ?assertEqual(undefined, s_group(Fleet, A, whereis_name, [g, second])),
        ok = sderl_fleet:resume(Fleet, B),
        [await(fun() -> s_group(Fleet, B, whereis_name, [g, Name]) =:= Pid end)
         || {Name, Pid} <- [{first, First}, {second, Second}]]
    end).
