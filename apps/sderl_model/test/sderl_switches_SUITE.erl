%% SPDX-License-Identifier: Apache-2.0
-module(sderl_switches_SUITE).

%% Deliberate faults outside the pure core reach the library's processes on real nodes: what other
%% suites show to hold does not hold here.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct, [on/3, await/2]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [outside_the_core, known_by_name_alone].

outside_the_core(_) ->
    with(4, [rule_22, rule_23, rule_24, keep_names], fun(F, [A, B, C, D]) ->
        P = sderl_ct:process(F, A),
        yes = on(F, A, fun() -> s_group:register_name(undefined, x, P) end),
        %% A free node looks for a name in the group that it is asked for, instead of among its free
        %% names.
        ?assertEqual(undefined, on(F, B, fun() -> s_group:whereis_name(A, any, x) end)),
        %% A link alone joins two islands.
        true = on(F, C, fun() -> net_kernel:connect_node(A) end),
        await(island, fun() -> on(F, C, fun() -> s_group:whereis_name(undefined, x) end) =:= P end),
        [[] = sderl_ct:group(F, G, Nodes) || {G, Nodes} <- [{g, [A, B]}, {h, [B, C]}, {k, [C, D]}]],
        %% Nodes pass on what they were told, over two hops: with a change, and where a node is new
        %% to another.
        await(one_hop, fun() ->
            case on(F, B, fun s_group:s_groups/0) of {[g, h], [k]} -> true; Else -> Else end
        end),
        [] = sderl_ct:group(F, l, [B]),
        await(two_hops, fun() ->
            case on(F, A, fun s_group:s_groups/0) of {[g], [h, k, l]} -> true; Else -> Else end
        end),
        [] = sderl_ct:group(F, m, [A, D]),
        await(two_hops_when_new, fun() ->
            case on(F, D, fun s_group:s_groups/0) of
                {[k, m], [g, h, l]} -> true;
                Else -> Else
            end
        end),
        ok = on(F, A, fun() -> s_group:delete_s_group(m) end),
        %% The names of a deleted group are still there.
        yes = on(F, A, fun() -> s_group:register_name(g, y, P) end),
        ok = on(F, B, fun() -> s_group:delete_s_group(g) end),
        await(deleted, fun() -> on(F, A, fun s_group:own_s_groups/0) =:= [] end),
        ?assertEqual(P, on(F, A, fun() -> s_group:whereis_name(g, y) end))
    end).

%% A member that was away when its group was deleted brings the group's names into the next group of
%% that name.
known_by_name_alone(_) ->
    with(3, [rule_1], fun(F, [A, B, C]) ->
        [] = sderl_ct:group(F, g, [A, B, C]),
        P = sderl_ct:process(F, C),
        yes = on(F, C, fun() -> s_group:register_name(g, x, P) end),
        [ok = sderl_ct:cut(F, N, C) || N <- [A, B]],
        ok = on(F, A, fun() -> s_group:delete_s_group(g) end),
        await(deleted,
              fun() -> [[], []] =:= [on(F, N, fun s_group:own_s_groups/0) || N <- [A, B]] end),
        [] = sderl_ct:group(F, g, [A, B]),
        [sderl_ct:heal(F, N, C) || N <- [A, B]],
        await(revived, fun() ->
            [P, P] =:= [on(F, N, fun() -> s_group:whereis_name(g, x) end) || N <- [A, B]]
        end)
    end).

with(Count, Faults, Fun) ->
    Env = [{sderl, tick_ms, 500}, {sderl, set_aside_ms, 15_000}],
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => n, count => Count, env => Env}],
                                      owner => self()}),
    try
        Nodes = sderl_fleet:nodes(Fleet),
        Beams = sderl_plant:beams(Faults),
        [{ok, _} = on(Fleet, N, fun() -> sderl_plant:start(Beams) end) || N <- Nodes],
        Fun(Fleet, Nodes)
    after
        sderl_fleet:stop(Fleet)
    end.
