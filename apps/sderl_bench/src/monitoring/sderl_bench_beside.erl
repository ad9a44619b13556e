%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_beside).
-moduledoc """
A made-up cluster beside the real one that a monitoring node watches: its hub works as for all of
these nodes, while events can be caused on the real ones.

It is one more agent of the hub. The topology comes from the leading master alone, so this process
sends each topology again with the made-up nodes and groups added.
""".

-export([start/1, is_shown/1]).

-define(EACH_MS, 1_000).

-doc "On a monitoring node: adds so many nodes and groups (`m:sderl_mon_synthetic_feed`).".
-spec start(#{nodes := pos_integer(), groups := pos_integer()}) -> pid().
start(Size) ->
    spawn(fun() ->
        {ok, #{topology := Topology}} = sderl_mon_hub:subscribe(),
        Feed = sderl_mon_synthetic_feed:new(maps:with([nodes, groups], Size),
                                            sderl_mon_clock:wall_ms()),
        {Made, Next} = tell(Feed, none),
        loop(Next, Made, add(Made, Topology))
    end).

-doc "Whether the hub of this node has all made-up nodes.".
-spec is_shown(#{nodes := pos_integer(), atom() => term()}) -> boolean().
is_shown(#{nodes := Count}) ->
    #{nodes := Nodes} = sderl_mon_hub:now_topology(),
    lists:all(fun(Id) -> is_map_key(Id, Nodes) end, sderl_mon_synthetic_layout:nodes(Count)).

loop(Feed, Made, ok) ->
    receive
        {sderl_mon, topology, Topology} ->
            loop(Feed, Made, add(Made, Topology));
        {sderl_mon, _, _} ->
            loop(Feed, Made, ok);
        tick ->
            {Now, Next} = tell(Feed, Made),
            Told = case Now of
                Made -> ok;
                _ -> add(Now, sderl_mon_hub:now_topology())
            end,
            loop(Next, Now, Told);
        _ ->
            loop(Feed, Made, ok)
    end.

tell(Feed, Made) ->
    _ = erlang:send_after(?EACH_MS, self(), tick),
    {Outs, Next} = sderl_mon_synthetic_feed:next(sderl_mon_clock:wall_ms(), [], Feed),
    _ = [sderl_mon_hub:update(node(), Update) || {update, Update} <- Outs],
    case [Topology || {topology, Topology} <- Outs] of
        [] -> {Made, Next};
        [Topology] -> {maps:with([nodes, groups], Topology), Next}
    end.

%% Sends the hub its own topology with the made-up nodes and groups, if it lacks any.
add(#{nodes := Nodes, groups := Groups}, #{nodes := Real, groups := RealGroups} = Topology) ->
    Both = Topology#{nodes := maps:merge(Real, Nodes), groups := maps:merge(RealGroups, Groups)},
    case Both of
        Topology -> ok;
        _ ->
            true = sderl_mon_hub:topology(node(), Both),
            ok
    end.
