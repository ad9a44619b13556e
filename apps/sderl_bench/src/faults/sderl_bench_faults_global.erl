%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_faults_global).
-moduledoc """
OTP's `m:global` under the same faults, on a stock full mesh. It has no coordinator, and does not
connect nodes again; here that is tried twice a second, as a discovery library would.
""".

-behaviour(sderl_bench_faults_registry).

-export([family/1, group/0, linked/2, ready/2, coordinator/0, register/2, unregister/1, find/1,
         names/0, view/1]).

-define(LINK_MS, 30_000).
-define(SYNC_MS, 60_000).

-doc "Stock nodes.".
-spec family(sderl_bench_faults_registry:params()) -> #{atom() => term()}.
family(_Params) -> #{connect_all => true}.

-doc false.
-spec group() -> atom().
group() -> none.

-doc "Connects every node to the others.".
-spec linked(pid(), [node()]) -> ok.
linked(Fleet, Nodes) ->
    %% A failed operation is tried again.
    _ = sderl_fleet:multicall(Fleet, Nodes, sderl_bench_links, connect_all, [Nodes], ?LINK_MS),
    ok.

-doc """
`global:sync/0`: nodes that are linked need not have exchanged names yet, and names registered until
then may be lost.
""".
-spec ready(pid(), [node()]) -> ok | {error, term()}.
ready(Fleet, Nodes) ->
    case [{Node, Answer}
          || {Node, Answer} <- sderl_fleet:multicall(Fleet, Nodes, global, sync, [], ?SYNC_MS),
             Answer =/= {ok, ok}] of
        [] -> ok;
        [{Node, Answer} | _] -> {error, {not_synced, Node, Answer}}
    end.

-doc false.
-spec coordinator() -> node() | none.
coordinator() -> none.

-doc "`global:register_name/2`.".
-spec register(term(), pid()) -> sderl_bench_faults_registry:outcome().
register(Name, Pid) ->
    case global:register_name(Name, Pid) of
        yes -> yes;
        no -> {no, no}
    end.

-doc "`global:unregister_name/1`.".
-spec unregister(term()) -> sderl_bench_faults_registry:outcome().
unregister(Name) ->
    _ = global:unregister_name(Name),
    yes.

-doc "`global:whereis_name/1`.".
-spec find(term()) -> pid() | undefined.
find(Name) -> global:whereis_name(Name).

-doc "The registered names.".
-spec names() -> [{term(), pid()}].
names() -> [{Name, Pid} || Name <- global:registered_names(), Pid <- [find(Name)], is_pid(Pid)].

-doc "Steady: linked to exactly the others.".
-spec view([node()]) -> sderl_bench_faults_registry:view().
view(Live) ->
    case {lists:sort(nodes()), lists:sort(Live -- [node()])} of
        {Same, Same} -> {steady, linked};
        {Found, _} -> {linked_to, Found}
    end.
