%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_recover_SUITE).
-moduledoc """
`bin/sderl recover` as an operator runs it: what it refuses, and that it is done otherwise.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

-define(WAIT_MS, 60_000).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [recover].

recover(_) ->
    Env = [{sderl, tick_ms, 200}, {sderl, set_aside_ms, 1000}],
    {ok, Fleet} =
        sderl_fleet:start(#{families => [#{name => n, count => 3, apps => [sderl], env => Env}]}),
    try
        recover(Fleet, sderl_fleet:nodes(Fleet))
    after
        sderl_fleet:stop(Fleet)
    end.

recover(Fleet, [A, B, C] = Nodes) ->
    {ok, shop, _} = call(Fleet, A, new_s_group, [shop, Nodes, #{consistency => majority}]),
    {ok, other, _} = call(Fleet, A, new_s_group, [other, Nodes]),
    All = options([A], [A]),
    {1, Stranger} = run(Fleet, ["--group", "nobody" | All]),
    said(Stranger, "is no member of a group nobody; its groups are other, shop"),
    {1, Available} = run(Fleet, ["--group", "other" | All]),
    said(Available, "has the consistency available"),
    %% Members that are cut off from here go on to write there.
    Cookie = sderl_fleet:call(Fleet, A, erlang, get_cookie, []),
    [cut(Fleet, A, N) || N <- [B, C]],
    decides(Fleet, A, false),
    {1, Alive} = run(Fleet, ["--group", "shop" | All]),
    said(Alive, "would be removed and still runs the group"),
    {1, None} = run(Fleet, ["--group", "shop" | options([A], Nodes)]),
    said(None, "nobody is lost"),
    [heal(Fleet, A, N, Cookie) || N <- [B, C]],
    decides(Fleet, A, true),
    [ok = sderl_fleet:kill(Fleet, N) || N <- [B, C]],
    decides(Fleet, A, false),
    {1, Unreached} = run(Fleet, ["--group", "shop" | options([A], [A, B])]),
    said(Unreached, "every survivor has to run the group, without a majority"),
    {0, Dry} = run(Fleet, ["--group", "shop", "--dry-run" | options([A], [A])]),
    said(Dry, "removed   is not reached from here"),
    said(Dry, "Nothing was changed"),
    {2, Asked} = run(Fleet, ["--group", "shop" | lists:delete("--yes", All)]),
    said(Asked, "say --yes, or --dry-run"),
    ?assertEqual(lists:sort(Nodes), lists:sort(call(Fleet, A, own_nodes, [shop]))),
    {0, Done} = run(Fleet, ["--group", "shop" | All]),
    said(Done, "Done: shop decides again, with "),
    ?assertEqual([A], call(Fleet, A, own_nodes, [shop])),
    ?assertEqual(yes, call(Fleet, A, register_name,
                           [shop, till, sderl_fleet:call(Fleet, A, erlang, whereis, [rex])])),
    {1, Again} = run(Fleet, ["--group", "shop" | All]),
    said(Again, "nobody is lost").

options([Node], Survivors) ->
    ["--node", atom_to_list(Node), "--survivors",
     lists:flatten(lists:join(",", [atom_to_list(N) || N <- Survivors])), "--yes"].

run(Fleet, Args) -> sderl_cli_program:run(Fleet, ["recover" | Args]).

said(Text, Words) -> ?assertMatch({_, true}, {Text, string:find(Text, Words) =/= nomatch}).

%% Two nodes that give each other different cookies do not link; with the same they do so by
%% themselves.
cut(Fleet, Node, Other) ->
    [true = sderl_fleet:call(Fleet, N, erlang, set_cookie, [M, N])
     || {N, M} <- [{Node, Other}, {Other, Node}]],
    _ = sderl_fleet:call(Fleet, Node, erlang, disconnect_node, [Other]),
    ok.

heal(Fleet, Node, Other, Cookie) ->
    [true = sderl_fleet:call(Fleet, N, erlang, set_cookie, [M, Cookie])
     || {N, M} <- [{Node, Other}, {Other, Node}]],
    ok.

decides(Fleet, Node, Expected) ->
    Look = fun() ->
        Info = call(Fleet, Node, info, []),
        [M || #{group := shop, majority := M} <- proplists:get_value(groups, Info)] =:= [Expected]
    end,
    ok = sderl_fleet:await(Look, ?WAIT_MS).

call(Fleet, Node, Function, Args) ->
    sderl_fleet:call(Fleet, Node, s_group, Function, Args, ?WAIT_MS).
