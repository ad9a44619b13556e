%% SPDX-License-Identifier: Apache-2.0
-module(sderl_kept_SUITE).

%% Nodes that keep what they know of their groups in files (`state_dir`), and begin with that after
%% all of them were killed.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_ct_nodes, [with/2, sd/2, call/4, s_group/4, await/1, members/3, logged/3]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [all_are_killed, removed_and_deleted_meanwhile, files_that_cannot_be_used].

n(I) -> list_to_atom(lists:concat([a, I, "@127.0.0.1"])).

plan(Dir, Count, Env) -> #{tag => "", families => [sd(Count, [{sderl, state_dir, Dir} | Env])]}.

dir(Config, Case) -> filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)).

kill_all(Fleet, Nodes) -> [ok = sderl_fleet:kill(Fleet, N) || N <- Nodes].

restart_all(Fleet, Nodes) -> [{ok, N} = sderl_fleet:restart(Fleet, N) || N <- Nodes].

group(Fleet, Node, Group) -> call(Fleet, Node, {?MODULE, info}, [Group]).

%% On a node.
info(Group) ->
    case [I || #{group := G} = I <- proplists:get_value(groups, s_group:info()), G =:= Group] of
        [Info] -> Info;
        [] -> none
    end.

register_name(Fleet, Node, Group, Name) ->
    Pid = call(Fleet, Node, proc, []),
    ?assertEqual(yes, s_group(Fleet, Node, register_name, [Group, Name, Pid])).

token(Fleet, Node, Group, Name) -> maps:get(token, s_group(Fleet, Node, lookup, [Group, Name])).

%% A group that was made at run time is there again, with the members and the identity that it had,
%% and its tokens go on growing, whatever the clock says.
all_are_killed(Config) ->
    Dir = dir(Config, ?FUNCTION_NAME),
    with(plan(Dir, 3, [{sderl, s_groups, [{h, normal, [n(1), n(2), n(3)]}]}]),
         fun(Fleet, [A1, A2, A3] = All) ->
             {ok, g, _} = s_group(Fleet, A1, new_s_group, [g, All]),
             members(Fleet, All, g),
             members(Fleet, All, h),
             register_name(Fleet, A1, g, n),
             #{uid := Uid} = group(Fleet, A1, g),
             Before = token(Fleet, A1, g, n),
             %% What it was removed from the launch configuration does not bring back.
             ok = s_group(Fleet, A1, remove_nodes, [h, [A3]]),
             members(Fleet, [A1, A2], h),
             await(fun() -> s_group(Fleet, A3, own_s_groups, []) =:= [{g, All}] end),
             kill_all(Fleet, All),
             %% As if the clocks had been ahead by a century when all were killed.
             Ahead = lists:max(
                 [E || N <- All, #{group := g, epoch := E} <- element(1, sderl_kept:read(Dir, N))]
             ) + 100 * 365 * 86_400_000,
             [ok = sderl_kept:write(Dir, E#{epoch := Ahead})
              || N <- All, #{group := g} = E <- element(1, sderl_kept:read(Dir, N))],
             restart_all(Fleet, All),
             members(Fleet, All, g),
             members(Fleet, [A1, A2], h),
             await(fun() -> s_group(Fleet, A3, own_s_groups, []) =:= [{g, All}] end),
             await(fun() ->
                 lists:all(fun(N) -> maps:get(live, group(Fleet, N, g)) =:= All end, All)
             end),
             ?assertMatch(#{uid := Uid}, group(Fleet, A2, g)),
             ?assertEqual(undefined, s_group(Fleet, A2, whereis_name, [g, n])),
             register_name(Fleet, A2, g, n),
             {Epoch, _} = After = token(Fleet, A1, g, n),
             ?assert(After > Before),
             ?assertMatch({Counter, _} when Counter > Ahead, Epoch)
         end).

%% Of what happened while it was away a node is told, and what it left it does not begin again.
removed_and_deleted_meanwhile(Config) ->
    Dir = dir(Config, ?FUNCTION_NAME),
    with(plan(Dir, 2, []), fun(Fleet, [A1, A2] = All) ->
        [{ok, G, All} = s_group(Fleet, A1, new_s_group, [G, All]) || G <- [left, removed, deleted]],
        [members(Fleet, All, G) || G <- [left, removed, deleted]],
        ok = s_group(Fleet, A2, leave, [left]),
        kill_all(Fleet, [A2]),
        ok = s_group(Fleet, A1, remove_nodes, [removed, [A2]]),
        ok = s_group(Fleet, A1, delete_s_group, [deleted]),
        %% Who tells was restarted too.
        kill_all(Fleet, [A1]),
        restart_all(Fleet, All),
        Gone = fun(N) -> lists:sort(proplists:get_value(gone, s_group(Fleet, N, info, []))) end,
        await(fun() ->
            Gone(A2) =:= [{deleted, deleted}, {left, removed}, {removed, removed}] orelse Gone(A2)
        end),
        ?assertEqual(undefined, s_group(Fleet, A2, s_groups, [])),
        ?assertEqual([{deleted, deleted}], Gone(A1)),
        members(Fleet, [A1], left),
        members(Fleet, [A1], removed),
        %% It remembers by itself, and may be added again.
        kill_all(Fleet, [A2]),
        restart_all(Fleet, [A2]),
        ?assertEqual(3, length(Gone(A2))),
        {ok, removed, [A2]} = s_group(Fleet, A1, add_nodes, [removed, [A2]]),
        members(Fleet, All, removed),
        kill_all(Fleet, [A2]),
        restart_all(Fleet, [A2]),
        members(Fleet, All, removed)
    end).

%% The node says so, and starts without.
files_that_cannot_be_used(Config) ->
    Dir = dir(Config, ?FUNCTION_NAME),
    ok = filelib:ensure_path(Dir),
    NoDir = filename:join(Dir, "file"),
    ok = file:write_file(NoDir, "here"),
    Env = [{sderl, s_groups, [{g, normal, [n(1)]}]}],
    with(plan(Dir, 1, Env), fun(Fleet, [A1]) ->
        {ok, h, [A1]} = s_group(Fleet, A1, new_s_group, [h, [A1]]),
        {ok, k, [A1]} = s_group(Fleet, A1, new_s_group, [k, [A1]]),
        kill_all(Fleet, [A1]),
        [G, H, K] = [sderl_kept:file(Dir, A1, Group) || Group <- [g, h, k]],
        {ok, <<Mark:12/binary, _, Rest/binary>>} = file:read_file(G),
        ok = file:write_file(G, <<Mark/binary, 2, Rest/binary>>),
        {ok, Whole} = file:read_file(H),
        ok = file:write_file(H, binary:part(Whole, 0, byte_size(Whole) div 2)),
        ok = file:write_file(K, "rubbish"),
        restart_all(Fleet, [A1]),
        [logged(Fleet, A1, [File, " is not used: ", Why])
         || {File, Why} <- [{G, "{version,2}"}, {H, "damaged"}, {K, "not_a_state_file"}]],
        ?assertEqual([{g, [A1]}], s_group(Fleet, A1, own_s_groups, [])),
        register_name(Fleet, A1, g, n)
    end),
    with(plan(NoDir, 1, Env), fun(Fleet, [A1]) ->
        logged(Fleet, A1, "s_group g: its state cannot be kept in"),
        logged(Fleet, A1, "is not used: enotdir"),
        register_name(Fleet, A1, g, n),
        {ok, h, [A1]} = s_group(Fleet, A1, new_s_group, [h, [A1]]),
        logged(Fleet, A1, "s_group h: its state cannot be kept in")
    end).
