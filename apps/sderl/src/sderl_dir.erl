%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dir).
-moduledoc false.
%% What this node knows: its own groups, the groups it left or saw deleted, other nodes' groups,
%% and why a node did not join. Plain tables, owned by the supervisor, so that every process of
%% the library may die and find them again.

-export([new/0, options/0, options/1, incarnation/0]).
-export([own/0, own/1, named/0, show/5, left/4, forget/1]).
-export([start_args/2, start_args/3, gone/1, gone_all/0, prune/1]).
-export([known/0, known/1, know/3, unknow_from/1, refused/3, refusals/0]).
-export([refuse/0, refuse/1, is_free/0]).
-export_type([own/0]).

-doc "An own group: name, identity, process, members, coordinator.".
-type own() :: {term(), binary(), pid(), [node()], node() | undefined}.

-define(OPTIONS, {sderl, options}).
-define(REFUSE, {sderl, refuse}).

-doc "Makes the tables; the calling process, the supervisor, owns them.".
-spec new() -> ok.
new() ->
    Opts = [named_table, public, {read_concurrency, true}],
    %% Written by one process a group and read by all: no fine locks, which cost each read.
    sderl_names = ets:new(sderl_names, Opts),
    sderl_groups = ets:new(sderl_groups, Opts),
    sderl_state = ets:new(sderl_state, [named_table, public]),
    sderl_gone = ets:new(sderl_gone, [named_table, public]),
    sderl_known = ets:new(sderl_known, Opts),
    sderl_refused = ets:new(sderl_refused, [named_table, public]),
    sderl_watches = ets:new(sderl_watches, [named_table, public]),
    sderl_tried = ets:new(sderl_tried, Opts),
    true = ets:insert(sderl_state, {incarnation, {erlang:system_info(creation), erlang:system_time(),
                                                  erlang:unique_integer()}}),
    ok.

-doc "The configuration in force.".
-spec options() -> map().
options() -> persistent_term:get(?OPTIONS, #{}).
-spec options(map()) -> ok.
options(Map) -> persistent_term:put(?OPTIONS, Map).

-doc "Why group calls are refused on this node, or `undefined`.".
-spec refuse() -> undefined | connect_all.
refuse() -> persistent_term:get(?REFUSE, undefined).
-spec refuse(undefined | connect_all) -> ok.
refuse(Why) -> persistent_term:put(?REFUSE, Why).

-doc "Names one life of the library on this node.".
-spec incarnation() -> term().
incarnation() -> ets:lookup_element(sderl_state, incarnation, 2).

%% ---------------------------------------------------------------- own groups

-spec own() -> [own()].
own() -> ets:tab2list(sderl_groups).

-spec own(term()) -> own() | undefined.
own(Group) ->
    case ets:lookup(sderl_groups, Group) of
        [Own] -> Own;
        [] -> undefined
    end.

-doc "The own s_groups, without the free namespace.".
-spec named() -> [own()].
named() -> [O || {G, _, _, _, _} = O <- own(), G =/= undefined].

-doc "Whether this node is free: in no s_group.".
-spec is_free() -> boolean().
is_free() -> ets:member(sderl_groups, undefined).

-spec show(term(), binary(), pid(), [node()], node() | undefined) -> ok.
show(Group, Uid, Pid, Members, Lead) ->
    Before = own(Group),
    true = ets:insert(sderl_groups, {Group, Uid, Pid, Members, Lead}),
    case Before of
        {_, _, _, Members, _} -> ok;
        _ ->
            Old = case Before of undefined -> []; {_, _, _, Ms, _} -> Ms end,
            lists:foreach(fun(N) -> sderl_links:forget(N, reason(Group)) end, Old -- Members),
            lists:foreach(fun(N) -> sderl_links:note(N, reason(Group)) end, (Members -- Old) -- [node()]),
            sderl_connector:kick(),
            sderl_node:changed(Group)
    end.

reason(undefined) -> free_island;
reason(Group) -> {group, Group}.

-doc "This node is no member any more: remembered, so that whoever returns can be told (rule 1).".
-spec left(term(), binary(), removed | deleted, sderl_membership:t()) -> ok.
left(Group, Uid, Why, Mem) ->
    true = ets:insert(sderl_gone, {Uid, Why, Mem, erlang:system_time(second), Group}),
    forget(Group),
    sderl_node:left(Group).

-doc "Drops a group's tables without remembering it.".
-spec forget(term()) -> ok.
forget(Group) ->
    case own(Group) of
        undefined -> ok;
        {_, Uid, _, Members, _} ->
            lists:foreach(fun(N) -> sderl_links:forget(N, reason(Group)) end, Members -- [node()]),
            sderl_pg:drop(Uid)
    end,
    %% First the directory: readers that miss a row must not take us for a member.
    true = ets:delete(sderl_groups, Group),
    true = sderl_store:purge(Group),
    true = ets:delete(sderl_state, {init, Group}),
    ok.

%% ---------------------------------------------------------------- starts

-doc "What a group's process starts from; `none` if the group is gone.".
-spec start_args(term(), binary()) -> none | map().
start_args(Group, Uid) ->
    case ets:lookup(sderl_state, {init, Group}) of
        [{_, Uid, Args}] -> Args;
        _ -> none
    end.

-spec start_args(term(), binary(), map()) -> ok.
start_args(Group, Uid, Args) ->
    true = ets:insert(sderl_state, {{init, Group}, Uid, Args}),
    ok.

-spec gone(binary()) -> undefined | {removed | deleted, sderl_membership:t()}.
gone(Uid) ->
    case ets:lookup(sderl_gone, Uid) of
        [{_, Why, Mem, _, _}] -> {Why, Mem};
        [] -> undefined
    end.

-spec gone_all() -> [{term(), removed | deleted}].
gone_all() -> [{G, Why} || {_, Why, _, _, G} <- ets:tab2list(sderl_gone)].

-doc "Forgets what ended before a time (system time, seconds).".
-spec prune(integer()) -> ok.
prune(Before) ->
    _ = ets:select_delete(sderl_gone, [{{'_', '_', '_', '$1', '_'}, [{'<', '$1', Before}], [true]}]),
    _ = ets:select_delete(sderl_refused, [{{'_', '_', '$1'}, [{'<', '$1', Before}], [true]}]),
    ok.

%% ---------------------------------------------------------------- other nodes' groups

-doc "What is known of groups that are not our own: name, nodes, and from whom (`config` or a node).".
-spec known() -> [{term(), [node()], config | node()}].
known() -> [{G, Ns, From} || {{G, From}, Ns} <- ets:tab2list(sderl_known), not ets:member(sderl_groups, G)].

-doc "The nodes that a group is known to have.".
-spec known(term()) -> [node()].
known(Group) ->
    lists:usort(lists:append(ets:select(sderl_known, [{{{'$1', '_'}, '$2'}, [{'=:=', '$1', {const, Group}}], ['$2']}]))).

-spec know(term(), [node()], config | node()) -> ok.
know(Group, Nodes, From) ->
    true = ets:insert(sderl_known, {{Group, From}, Nodes}),
    ok.

-spec unknow_from(config | node()) -> ok.
unknow_from(From) ->
    _ = ets:select_delete(sderl_known, [{{{'_', '$1'}, '_'}, [{'=:=', '$1', {const, From}}], [true]}]),
    ok.

-doc "Notes why a node was left out of a group; `info/0` shows it.".
-spec refused(term(), node(), term()) -> ok.
refused(Group, Node, Why) ->
    true = ets:insert(sderl_refused, {{Group, Node}, Why, erlang:system_time(second)}),
    sderl_event:emit(join_refused, #{group => Group, node => Node, reason => Why}).

-spec refusals() -> [{term(), node(), term()}].
refusals() -> [{G, N, Why} || {{G, N}, Why, _} <- ets:tab2list(sderl_refused)].
