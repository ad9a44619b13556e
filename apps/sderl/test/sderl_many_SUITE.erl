%% SPDX-License-Identifier: Apache-2.0
-module(sderl_many_SUITE).

%% Nodes in many groups: the cost of one more. Messages are counted, never timed; ticks and other
%% beats are slow, so that nothing else is sent meanwhile.

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([a_group_costs_the_same/1, told_anew/1]).

-import(sderl_ct, [on/3, all_on/3, await/2, group/3]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [a_group_costs_the_same, told_anew].

%% Longer than a case may take: one such beat tells of all groups.
-define(SLOW, 300_000).
%% Above so many groups a node tells the list of all of them, an attribute, with a period only.
-define(FEW, 30).
-define(MANY, 360).
-define(COUNTED, 15).

slow() ->
    [{tick_ms, ?SLOW}, {set_aside_ms, 2 * ?SLOW}, {write_timeout_ms, 3 * ?SLOW},
     {attribute_share_ms, ?SLOW}, {route_beat_ms, ?SLOW}].

%% Messages and bytes over all links for a new group do not grow with the number of groups.
a_group_costs_the_same(_) ->
    sderl_ct:with(3, slow(), fun(Fleet, Nodes) ->
        ok = made(Fleet, Nodes, 1, ?FEW),
        Few = cost(Fleet, Nodes, ?FEW),
        ok = made(Fleet, Nodes, ?FEW + ?COUNTED + 1, ?MANY),
        %% What is told of all groups from time to time may come in one of these, and not in all.
        Many = [cost(Fleet, Nodes, ?MANY + I * ?COUNTED) || I <- lists:seq(0, 2)],
        ct:pal("messages and bytes a group: ~w with ~w groups, ~w with ~w",
               [Few, ?FEW, Many, ?MANY]),
        {Messages, Bytes} = Few,
        {MessagesThen, BytesThen} = {lists:min([M || {M, _} <- Many]),
                                     lists:min([B || {_, B} <- Many])},
        ?assert(MessagesThen < 1.3 * Messages),
        ?assert(BytesThen < 1.3 * Bytes)
    end).

%% A node whose link was gone, and one whose process was killed, know the groups of all others
%% again.
told_anew(_) ->
    sderl_ct:with(3, calm, fun(Fleet, [A, B, C] = Nodes) ->
        [] = group(Fleet, all, Nodes),
        ok = made(Fleet, Nodes, 1, 12),
        known(Fleet, Nodes, 12),
        ok = sderl_ct:cut(Fleet, A, B),
        %% Of these two one of them hears nothing.
        ok = made(Fleet, Nodes, 13, 14),
        _ = sderl_ct:heal(Fleet, A, B),
        known(Fleet, Nodes, 14),
        Killed = all_on(Fleet, [A, C], fun() ->
            [begin Pid = whereis(P), exit(Pid, kill), Pid end || P <- [sderl_node, sderl_router]]
        end),
        await(there, fun() ->
            Now = all_on(Fleet, [A, C],
                         fun() -> [whereis(P) || P <- [sderl_node, sderl_router]] end),
            lists:all(fun is_pid/1, lists:append(Now)) andalso Now -- Killed =:= Now
        end),
        ok = made(Fleet, Nodes, 15, 18),
        known(Fleet, Nodes, 18),
        %% A group that is no more is known by nobody.
        ok = on(Fleet, A, fun() -> s_group:delete_s_group({many, 15}) end),
        await(forgotten, fun() ->
            Known = all_on(Fleet, Nodes, fun() ->
                [sderl_dir:known({many, 15}), sderl_dir:members({many, 15})]
            end),
            case lists:append(lists:append(Known)) of [] -> true; _ -> Known end
        end)
    end).

%% ----------------------------------------------------------------

made(Fleet, Nodes, From, To) ->
    [{ok, _, [_, _]} = new(Fleet, A, {many, I}, B)
     || I <- lists:seq(From, To), {A, B} <- [pair(I, Nodes)]],
    ok.

new(Fleet, A, Group, B) -> on(Fleet, A, fun() -> s_group:new_s_group(Group, [A, B]) end).

pair(I, Nodes) ->
    First = 1 + I rem length(Nodes),
    {lists:nth(First, Nodes), lists:nth(1 + First rem length(Nodes), Nodes)}.

cost(Fleet, Nodes, Have) ->
    known(Fleet, Nodes, Have),
    {Messages, Bytes} = sent(Fleet, Nodes),
    ok = made(Fleet, Nodes, Have + 1, Have + ?COUNTED),
    known(Fleet, Nodes, Have + ?COUNTED),
    {MessagesThen, BytesThen} = sent(Fleet, Nodes),
    {(MessagesThen - Messages) / ?COUNTED, (BytesThen - Bytes) / ?COUNTED}.

%% Everybody knows of each group who is in it, and each gateway's word has come.
known(Fleet, Nodes, Count) ->
    Ought = lists:sort([{{many, I}, lists:sort(tuple_to_list(pair(I, Nodes)))}
                        || I <- lists:seq(1, Count)]),
    Knows = fun() ->
        Is = [M || {{many, _}, _} = M <- sderl_dir:named_memberships() ++ sderl_dir:known()],
        #{gateways := Gateways} = sderl_router:info(),
        Told = [{G, lists:sort(Ms)}
                || {_, _, Groups, _} <- Gateways, {{many, _} = G, _, Ms} <- Groups],
        {lists:sort(Is), lists:usort(Told), length(Told)}
    end,
    await({known, Count}, fun() ->
        case [Has || Has <- all_on(Fleet, Nodes, Knows), Has =/= {Ought, Ought, 2 * Count}] of
            [] -> true;
            [{Is, Told, Twice} | _] ->
                {Ought -- Is, Is -- Ought, Ought -- Told, Told -- Ought, Twice}
        end
    end).

%% The messages of the library, and the bytes of the links.
sent(Fleet, Nodes) ->
    All = all_on(Fleet, Nodes, fun() ->
        Messages = lists:sum([Count || _ := {Count, _} <- sderl_traffic:read()]),
        Octets = [Sent || {_, Port} <- erlang:system_info(dist_ctrl), is_port(Port),
                          {ok, [{send_oct, Sent}]} <- [inet:getstat(Port, [send_oct])]],
        {Messages, lists:sum(Octets)}
    end),
    {lists:sum([M || {M, _} <- All]), lists:sum([B || {_, B} <- All])}.
