%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_cluster).
-moduledoc """
Starts and links the nodes of one side of the demo: a stock full mesh, or the same number of nodes
in s_groups, which follow other groups or not.

Both sides have the same node names (`node1@127.0.0.1` and so on) and emulator flags; only
the s_groups' nodes have `-connect_all false` and run the application `sderl`.
""".

-export([start/4, link/3, site/3, on_all/6]).
-export_type([side/0]).

-doc """
`stock`: a full mesh with `global`. `sd`: s_groups. `following`: s_groups, where each node
follows the groups that it is not in and looks names up in.
""".
-type side() :: stock | sd | following.

-define(LINK_TIMEOUT_MS, 120_000).
-define(LINK_IDLE_MS, 10_000).

-doc """
Starts the side's nodes, which end with the process `Owner`. `Progress` is called with the
number of nodes that run. Errors are those of `sderl_fleet:start/1`.
""".
-spec start(
    side(), sderl_demo_layout:layout(), Owner :: pid(),
    fun((non_neg_integer(), pos_integer()) -> term())
) -> {ok, Fleet :: pid()} | {error, term()}.
start(Side, Layout, Owner, Progress) ->
    sderl_fleet:start((plan(Side, Layout))#{owner => Owner, progress => Progress}).

plan(Side, #{consistency := Consistency} = Layout) ->
    Family = #{name => node, count => length(sderl_demo_layout:indexes(Layout))},
    Plan = #{tag => ""},
    case Side of
        stock ->
            Plan#{families => [Family#{connect_all => true}]};
        _ ->
            Groups = sderl_demo_layout:groups(Layout),
            Modes = #{Name => Consistency || #{name := Name} <- Groups},
            Plan#{
                families => [Family#{apps => [sderl], env => env(Modes)}],
                s_groups => [
                    {Name, normal, [{node, Members}]}
                 || #{name := Name, members := Members} <- Groups
                ],
                %% So that nodes know the groups that they are not members of.
                s_groups_known => all
            }
    end.

%% A question to a member that was slow to answer may have opened a link that no group needs: it is
%% closed again.
env(Modes) ->
    [
        {sderl, consistency, Modes},
        {sderl, link_policy, close},
        {sderl, link_idle_ms, ?LINK_IDLE_MS}
    ].

-doc """
Waits until the nodes are linked as the side wants it: all with all, or every group complete.
Errors are those of `sderl_bench_links:mesh/2` and `on_all/6`; `sderl_bench_reason` has the
words for them.
""".
-spec link(side(), Fleet :: pid(), sderl_demo_layout:layout()) -> ok | {error, term()}.
link(stock, Fleet, Layout) ->
    #{nodes := Nodes} = Site = site(stock, Fleet, Layout),
    maybe
        ok ?= sderl_bench_links:mesh(Fleet, Nodes),
        {ok, _} ?= on_all(Fleet, Site, global, sync, [], ?LINK_TIMEOUT_MS),
        ok
    end;
link(Side, Fleet, Layout) ->
    Site = site(Side, Fleet, Layout),
    maybe
        Args = [Site, ?LINK_TIMEOUT_MS],
        {ok, _} ?= on_all(Fleet, Site, sderl_demo_groups, await, Args, ?LINK_TIMEOUT_MS),
        ok ?= follow(Side, Fleet, Site)
    end.

follow(sd, _, _) -> ok;
follow(following, Fleet, Site) ->
    Args = [Site, ?LINK_TIMEOUT_MS],
    maybe
        {ok, _} ?= on_all(Fleet, Site, sderl_demo_groups, follow, Args, ?LINK_TIMEOUT_MS),
        ok
    end.

-doc "A side whose nodes all run, as its nodes and its controller know it.".
-spec site(side(), Fleet :: pid(), sderl_demo_layout:layout()) -> sderl_demo_load:site().
site(Side, Fleet, Layout) ->
    Registry =
        case Side of
            stock -> sderl_demo_global;
            _ -> sderl_demo_groups
        end,
    #{registry => Registry, layout => Layout, nodes => sderl_fleet:nodes(Fleet)}.

-doc """
Calls a function on every node of a side at once. The results come in the order of the nodes;
`{Function, Node, {error, Reason}}` names the first node where it failed; the reason is `down`
for one that no longer runs.
""".
-spec on_all(Fleet :: pid(), sderl_demo_load:site(), module(), atom(), [term()], timeout()) ->
    {ok, [term()]} | {error, {Function :: atom(), node(), {error, term()}}}.
on_all(Fleet, #{nodes := Nodes}, Module, Function, Args, TimeoutMs) ->
    Answers = sderl_fleet:multicall(Fleet, Nodes, Module, Function, Args, TimeoutMs),
    case [{Node, Reason} || {Node, {error, Reason}} <- Answers] of
        [] -> {ok, [Result || {_, {ok, Result}} <- Answers]};
        [{Node, Reason} | _] -> {error, {Function, Node, {error, Reason}}}
    end.
