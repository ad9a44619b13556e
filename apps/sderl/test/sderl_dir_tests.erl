%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dir_tests).
-moduledoc """
A group is left, and the process that does it dies at some point: its successor never begins from
the group's start with none of its tables.
""".
-include_lib("eunit/include/eunit.hrl").

-define(UID, <<"uid">>).

%% A table that is away under its name is where it dies.
a_death_while_a_group_is_left_test_() ->
    [{atom_to_list(Table), fun() -> alone(fun() -> dies_at(Table) end) end}
     || Table <- [sderl_pg, sderl_groups, sderl_traffic, sderl_names, sderl_refused, sderl_known,
                  none]].

%% The tables go with their owner.
alone(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> {ok, _} = sderl_sup:init([]), Fun() end),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end.

dies_at(Table) ->
    Before = group(),
    Mem = sderl_membership:new([node()]),
    case Table of
        none -> ok = sderl_dir:left(g, ?UID, deleted, Mem);
        _ ->
            away = ets:rename(Table, away),
            ?assertError(badarg, sderl_dir:left(g, ?UID, deleted, Mem)),
            Table = ets:rename(away, Table)
    end,
    %% All is there, or no process begins.
    ?assert(rows() =:= Before orelse sderl_dir:start_args(g, ?UID) =:= none),
    case rows() of
        Before -> ok = sderl_dir:left(g, ?UID, deleted, Mem);
        _ -> ok = sderl_dir:finish(g)
    end,
    ?assertEqual([], rows()),
    ?assertEqual({none, none, []},
                 {sderl_dir:start_uid(g), sderl_dir:leaver(g), sderl_dir:leaving()}),
    ?assertEqual([], sderl_dir:known(g)),
    ?assertMatch({deleted, _}, sderl_dir:gone(?UID)).

group() ->
    ok = sderl_dir:start_args(g, ?UID, #{mem => sderl_membership:new([node()]), found => true}),
    true = ets:insert(sderl_groups, {g, ?UID, self(), [node()], node()}),
    true = sderl_saved:durable(g, durable),
    true = ets:insert(sderl_state, {{log, g}, {1, node()}, 1, []}),
    true = ets:insert(sderl_names, {{g, name}, self(), node(), {1, node()}, 1, []}),
    ok = sderl_dir:know(g, [node()], node()),
    rows().

rows() ->
    lists:append([
        ets:lookup(sderl_groups, g),
        ets:lookup(sderl_state, {durable, g}),
        ets:lookup(sderl_state, {log, g}),
        ets:lookup(sderl_names, {g, name})
    ]).
