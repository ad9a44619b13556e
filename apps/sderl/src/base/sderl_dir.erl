%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dir).
-moduledoc false.
%% The directory of this node: its own groups, the groups it left or saw deleted, and other nodes'
%% groups. Plain tables, owned by the supervisor, so that every process of the library may die and
%% find them again.

-export([new/0, options/0, options/1, incarnation/0, reborn/0]).
-export([is_running/0, is_empty/0, group/1, all/0, groups/0, named_groups/0, uid/1, members/1,
         process/1, processes/0]).
-export([memberships/0, named_memberships/0, newest_first/0, coordinated/0]).
-export([shares_group/1, shares_named_group/1]).
-export([needs/0, show/4, show/5, moved/4, left/4, forget/1]).
-export([leaving/0, leaver/1, finish/1]).
-export([depart/0, departing/0, departs/2]).
-export([start_args/2, start_args/3, start_uid/1, consistency/1, kind/1]).
-export([gone/1, gone/5, forget_gone/1, gone_all/0, prune/1]).
-export([known/0, known/1, know/3, unknow/2, unknow_from/1, unknow_strangers/1]).
-export([refuse/0, refuse/1, is_free/0]).
-export_type([group/0, kind/0, start_args/0]).

-doc "How a group decides, and when it answers.".
-type kind() :: #{mode => sderl_options:consistency(), answer => sderl_options:answer()}.

-doc """
What the process of a group starts from. `mem` and the keys before `options` are of
`t:sderl_core:args/0`; `configured`: the launch configuration makes this group; `moved`: the process
goes on with what one of another island has left.
""".
-type start_args() :: #{
    mem := sderl_membership:t(), found => true, fresh => boolean(), ceil => integer(),
    mode => sderl_options:consistency(), answer => sderl_options:answer(),
    options := #{tick_ms := pos_integer(), aside_ms := pos_integer(), forget_ms := timeout()},
    configured := boolean(), moved => true
}.

-doc "An own group, as its process has shown it last.".
-type group() :: #{
    uid := binary(),
    process := pid(),
    members := [node()],
    coordinator := node() | undefined
}.

-define(GROUPS, sderl_groups).
-define(OPTIONS, {sderl, options}).
-define(REFUSE, {sderl, refuse}).
%% How many groups are looked at at once.
-define(SOME, 100).

-doc "Makes the tables; the calling process, the supervisor, owns them.".
-spec new() -> ok.
new() ->
    Opts = [named_table, public, {read_concurrency, true}],
    %% Written by one process a group and read by all: no fine locks, which cost each read.
    sderl_names = ets:new(sderl_names, Opts),
    ?GROUPS = ets:new(?GROUPS, Opts),
    sderl_state = ets:new(sderl_state, [named_table, public]),
    sderl_gone = ets:new(sderl_gone, [named_table, public]),
    sderl_known = ets:new(sderl_known, Opts),
    sderl_refused = ets:new(sderl_refused, [named_table, public]),
    sderl_watches = ets:new(sderl_watches, [named_table, public]),
    sderl_tried = ets:new(sderl_tried, Opts),
    sderl_forgotten = ets:new(sderl_forgotten, [named_table, public]),
    reborn().

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

-doc "A new incarnation begins: the node has another name.".
-spec reborn() -> ok.
reborn() ->
    true = ets:insert(sderl_state, {incarnation, {erlang:system_info(creation),
                                                  erlang:system_time(), erlang:unique_integer()}}),
    ok.

%% ---------------------------------------------------------------- own groups

-doc """
Whether the application runs here, which has the tables. All questions below raise `badarg` without
them.
""".
-spec is_running() -> boolean().
is_running() -> ets:whereis(?GROUPS) =/= undefined.

-doc "Whether this node has no group, not even the free namespace.".
-spec is_empty() -> boolean().
is_empty() -> ets:info(?GROUPS, size) =:= 0.

-doc "What is known of an own group, `none` of any other.".
-spec group(term()) -> group() | none.
group(Group) ->
    case ets:lookup(?GROUPS, Group) of
        [Row] -> shown_row(Row);
        [] -> none
    end.

-doc "All own groups, the free namespace among them.".
-spec all() -> [{Group :: term(), group()}].
all() -> [{element(1, Row), shown_row(Row)} || Row <- ets:tab2list(?GROUPS)].

shown_row({_, Uid, Pid, Members, Coordinator}) ->
    #{uid => Uid, process => Pid, members => Members, coordinator => Coordinator}.

-doc "The names of all own groups.".
-spec groups() -> [term()].
groups() -> [G || {G, _} <- memberships()].

-doc "The names of the own s_groups, without the free namespace.".
-spec named_groups() -> [term()].
named_groups() ->
    ets:select(?GROUPS, [{{'$1', '_', '_', '_', '_'}, [{'=/=', '$1', undefined}], ['$1']}]).

-doc "The identity of an own group.".
-spec uid(term()) -> binary() | none.
uid(Group) -> ets:lookup_element(?GROUPS, Group, 2, none).

-doc "The process of an own group.".
-spec process(term()) -> pid() | none.
process(Group) -> ets:lookup_element(?GROUPS, Group, 3, none).

-doc "The processes of all own groups.".
-spec processes() -> [pid()].
processes() -> ets:select(?GROUPS, [{{'_', '_', '$1', '_', '_'}, [], ['$1']}]).

-doc "The members of an own group, `[]` for any other.".
-spec members(term()) -> [node()].
members(Group) -> ets:lookup_element(?GROUPS, Group, 4, []).

-doc "All own groups with their members.".
-spec memberships() -> [{Group :: term(), [node()]}].
memberships() -> ets:select(?GROUPS, memberships_spec()).

memberships_spec() -> [{{'$1', '_', '_', '$2', '_'}, [], [{{'$1', '$2'}}]}].

-doc "The own s_groups with their members, without the free namespace.".
-spec named_memberships() -> [{Group :: term(), [node()]}].
named_memberships() -> [M || {G, _} = M <- memberships(), G =/= undefined].

-doc "The own s_groups with their members and their coordinator, for monitoring.".
-spec coordinated() -> [{Group :: term(), [node()], Coordinator :: node() | undefined}].
coordinated() ->
    [{G, Members, Coordinator}
     || {G, #{members := Members, coordinator := Coordinator}} <- all(), G =/= undefined].

-doc "Whether a node is a member of an own group, or of this node's island.".
-spec shares_group(node()) -> boolean().
shares_group(Node) -> shares(Node, []).

-doc "Whether a node is a member of an own s_group.".
-spec shares_named_group(node()) -> boolean().
shares_named_group(Node) -> shares(Node, [undefined]).

%% A mate is found soon, as mates share many of a node's groups.
shares(Node, Except) ->
    true = ets:safe_fixtable(?GROUPS, true),
    try shares(Node, Except, ets:select(?GROUPS, memberships_spec(), ?SOME))
    after ets:safe_fixtable(?GROUPS, false)
    end.

shares(_, _, '$end_of_table') -> false;
shares(Node, Except, {Some, More}) ->
    lists:any(fun({G, Members}) ->
        lists:member(Node, Members) andalso not lists:member(G, Except)
    end, Some)
        orelse shares(Node, Except, ets:select(More)).

-doc "The own s_groups, the one that this node entered last first.".
-spec newest_first() -> [{Group :: term(), [node()]}].
newest_first() ->
    Entered = [{entered(Group), Own} || {Group, _} = Own <- named_memberships()],
    [Own || {_, Own} <- lists:reverse(lists:keysort(1, Entered))].

%% A group that is being left has no time of entering any more.
entered(Group) -> ets:lookup_element(sderl_state, {init, Group}, 4, 0).

-doc "Whether this node is free: in no s_group.".
-spec is_free() -> boolean().
is_free() -> ets:member(?GROUPS, undefined).

-doc """
The links that the own groups need and why, whether they are up or not. Read from the directory each
time, so no process that dies between two notes leaves a link without its reason.
""".
-spec needs() -> sderl_links:needs().
needs() ->
    maps:groups_from_list(
        fun({Node, _}) -> Node end, fun({_, Reason}) -> Reason end,
        [{N, case G of undefined -> free_island; _ -> {group, G} end}
         || {G, Members} <- memberships(), N <- Members, N =/= node()]).

-doc """
As `show/5` without a coordinator, and only where the group's process has not shown itself yet.
""".
-spec show(term(), binary(), pid(), [node()]) -> ok.
show(Group, Uid, Pid, Members) ->
    Row = {Group, Uid, Pid, Members, undefined},
    case ets:insert_new(?GROUPS, Row) of
        true ->
            %% The process may have left already, and cleared everything, before we got here.
            case start_uid(Group) of
                Uid -> shown(Group, Members);
                _ -> true = ets:delete_object(?GROUPS, Row), ok
            end;
        false -> ok
    end.

-doc """
Shows the present state of a group's process; `false` if the directory has no place for it. The
process of an island only changes the row that the node server made, which goes when this node
enters a group.
""".
-spec show(term(), binary(), pid(), [node()], node() | undefined) -> boolean().
show(Group, Uid, Pid, Members, Lead) ->
    Before = members(Group),
    Shown = case Group of
        undefined ->
            ets:update_element(?GROUPS, undefined, [{2, Uid}, {3, Pid}, {4, Members}, {5, Lead}]);
        _ -> ets:insert(?GROUPS, {Group, Uid, Pid, Members, Lead})
    end,
    case Before of
        Members -> Shown;
        _ when Shown -> shown(Group, Members), true;
        _ -> false
    end.

shown(Group, Members) ->
    %% A member is no longer listed as refused.
    lists:foreach(fun(N) -> sderl_refused:forget_join(Group, N) end, Members),
    sderl_part:group_changed(Group).

-doc "The group goes on under another uid, in another process.".
-spec moved(term(), binary(), binary(), pid()) -> ok.
moved(Group, Old, New, Pid) ->
    %% Not if the new process has shown itself already.
    _ = ets:select_replace(?GROUPS,
                           [{{'$1', '$2', '_', '$3', '_'},
                             [{'=:=', '$1', {const, Group}}, {'=:=', '$2', {const, Old}}],
                             [{{'$1', {const, New}, {const, Pid}, '$3', undefined}}]}]),
    ok.

%% ---------------------------------------------------------------- leaving an island

-doc """
This node enters its first s_group: its island is gone from the directory before the group is there,
so that nobody ever sees both. The island's process goes on until its members have ordered the
removal.
""".
-spec depart() -> ok.
depart() ->
    case group(undefined) of
        #{uid := Uid, process := Pid} ->
            departs(Uid, Pid),
            true = ets:delete(?GROUPS, undefined),
            sderl_part:group_ended(Uid);
        none -> ok
    end.

-doc """
The process of the island that this node is leaving; a successor of that process says so itself.
""".
-spec departs(Uid :: binary(), pid()) -> ok.
departs(Uid, Pid) ->
    true = ets:insert(sderl_state, {departing, Uid, Pid}),
    ok.

-doc "The island that this node is leaving, while its removal there is not ordered yet.".
-spec departing() -> none | {Uid :: binary(), pid()}.
departing() ->
    case ets:lookup(sderl_state, departing) of
        [{_, Uid, Pid}] -> {Uid, Pid};
        [] -> none
    end.

-doc "This node is no member any more. Remembered, to tell members that return (rule 1).".
-spec left(term(), binary(), removed | deleted, sderl_membership:t()) -> ok.
left(Group, Uid, Why, Mem) ->
    true = ets:insert(sderl_gone, {Uid, Why, Mem, erlang:system_time(second), Group}),
    forget(Group, {left, Why, members(Group)}).

-doc "Drops a group's tables without remembering it.".
-spec forget(term()) -> ok.
forget(Group) -> forget(Group, forgotten).

%% The process that does this may be killed at any point. So its first step marks the arguments from
%% which the group's process starts: the group is being left, and by which process. They go last. A
%% successor finds either the whole group, or the mark, and only finishes this. Without the mark it
%% would find no tables, and found the group anew and alone.
forget(Group, How) ->
    _ = ets:update_element(sderl_state, {init, Group}, {3, {leaving, self(), How}}),
    forget_tables(Group, How).

-doc "Drops the rest of the group's tables, if a process was killed while it dropped them.".
-spec finish(term()) -> ok.
finish(Group) ->
    case ets:lookup(sderl_state, {init, Group}) of
        [{_, _, {leaving, _, How}, _}] -> forget_tables(Group, How);
        _ -> ok
    end.

-doc "The process that is dropping the group's tables, or was killed meanwhile.".
-spec leaver(term()) -> pid() | none.
leaver(Group) ->
    case ets:lookup(sderl_state, {init, Group}) of
        [{_, _, {leaving, Pid, _}, _}] -> Pid;
        _ -> none
    end.

-doc "The groups whose tables are being dropped.".
-spec leaving() -> [term()].
leaving() -> [G || [G] <- ets:match(sderl_state, {{init, '$1'}, '_', {leaving, '_', '_'}, '_'})].

forget_tables(Group, How) ->
    lists:foreach(fun sderl_part:group_ended/1,
                  lists:usort([uid(Group), start_uid(Group)]) -- [none]),
    %% The directory goes first: readers that miss a row must not take us for a member.
    true = ets:delete(?GROUPS, Group),
    ok = sderl_forgotten:note(Group, []),
    true = sderl_saved:purge(Group),
    true = sderl_traffic:forget(Group),
    true = sderl_names:forget(Group),
    ok = tell_left(Group, How),
    Was = start_uid(Group),
    true = ets:delete(sderl_state, {init, Group}),
    %% Shown in this moment by the process that started it: see show/4.
    case ets:lookup(?GROUPS, Group) of
        [{_, Was, _, _, _} = Row] -> true = ets:delete_object(?GROUPS, Row), ok;
        _ -> ok
    end,
    _ = Group =:= undefined andalso [ets:delete(sderl_state, Key) || Key <- [departing, began]],
    ok.

tell_left(_, forgotten) -> ok;
tell_left(Group, {left, Why, Mates}) ->
    %% Others tell of a group that was left; a deleted one exists nowhere any more.
    Why =:= deleted andalso unknow_all(Group, Mates),
    _ = [sderl_refused:forget_join(Group, N) || {G, N, _} <- sderl_refused:joins(), G =:= Group],
    sderl_part:group_left(Group, Mates).

%% ---------------------------------------------------------------- starts

-doc "What a group's process starts from; `none` if the group is gone, or is being left.".
-spec start_args(term(), binary()) -> none | start_args().
start_args(Group, Uid) ->
    case ets:lookup(sderl_state, {init, Group}) of
        [{_, Uid, Args, _}] when is_map(Args) -> Args;
        _ -> none
    end.

-spec start_args(term(), binary(), start_args()) -> ok.
start_args(Group, Uid, Args) ->
    true = ets:insert(sderl_state, {{init, Group}, Uid, Args, erlang:unique_integer([monotonic])}),
    ok.

-doc "The uid with which a group's process starts; `none` if the group is gone.".
-spec start_uid(term()) -> none | binary().
start_uid(Group) -> ets:lookup_element(sderl_state, {init, Group}, 2, none).

-doc "The consistency of an own group; `available` for any other.".
-spec consistency(term()) -> available | majority.
consistency(Group) -> maps:get(mode, kind(Group), available).

-doc "The kind of an own group, as far as its start arguments say it.".
-spec kind(term()) -> kind().
kind(Group) ->
    case ets:lookup(sderl_state, {init, Group}) of
        [{_, _, #{} = Args, _}] -> maps:with([mode, answer], Args);
        _ -> #{}
    end.

-spec gone(binary()) -> undefined | {removed | deleted, sderl_membership:t()}.
gone(Uid) ->
    case ets:lookup(sderl_gone, Uid) of
        [{_, Why, Mem, _, _}] -> {Why, Mem};
        [] -> undefined
    end.

-doc "Remembers that this node left a group in a former life.".
-spec gone(term(), binary(), removed | deleted, sderl_membership:t(), integer()) -> ok.
gone(Group, Uid, Why, Mem, At) ->
    true = ets:insert(sderl_gone, {Uid, Why, Mem, At, Group}),
    ok.

-doc "This node is asked to join a group again that it left, and forgets that it left.".
-spec forget_gone(binary()) -> ok.
forget_gone(Uid) ->
    true = ets:delete(sderl_gone, Uid),
    ok.

-spec gone_all() -> [{term(), removed | deleted}].
gone_all() -> [{G, Why} || {_, Why, _, _, G} <- ets:tab2list(sderl_gone), G =/= undefined].

-doc "Forgets what ended before a time (system time, seconds).".
-spec prune(integer()) -> ok.
prune(Before) ->
    Left = {'$1', '_', '_', '$2', '$3'},
    Ended = ets:select(sderl_gone, [{Left, [{'<', '$2', Before}], [{{'$3', '$1'}}]}]),
    lists:foreach(fun({Group, Uid}) ->
        true = ets:delete(sderl_gone, Uid),
        case maps:get(state_dir, options(), none) of
            none -> ok;
            Dir -> sderl_kept:forget_left(Dir, node(), Group, Uid)
        end
    end, Ended),
    sderl_refused:prune_joins(Before).

%% ---------------------------------------------------------------- other nodes' groups

-doc "What is known of groups that are not our own, with their nodes.".
-spec known() -> [{term(), [node()]}].
known() ->
    Groups = lists:usort([G || {{G, _}, _} <- ets:tab2list(sderl_known)]),
    [{G, Nodes} || G <- Groups, not ets:member(?GROUPS, G), [_ | _] = Nodes <- [known(G)]].

-doc """
The nodes that a group is known to have: by its members, or else by the launch configuration.
""".
-spec known(term()) -> [node()].
known(Group) ->
    %% The last message of a node that left our group may come after it left.
    Told = [Nodes || From <- tellers(), {_, Nodes} <- ets:lookup(sderl_known, {Group, From}),
                     is_empty() orelse is_free() orelse shares_named_group(From)],
    case Told of
        [] -> ets:lookup_element(sderl_known, {Group, config}, 2, []);
        _ -> lists:usort(lists:append(Told))
    end.

%% The nodes that told something: there are few, and many groups.
tellers() -> ets:lookup_element(sderl_state, tellers, 2, []).

-doc "Called by one process only, the node server.".
-spec know(term(), [node()], config | node()) -> ok.
know(Group, Nodes, From) ->
    case From =:= config orelse lists:member(From, tellers()) of
        true -> ok;
        false -> true = ets:insert(sderl_state, {tellers, [From | tellers()]}), ok
    end,
    true = ets:insert(sderl_known, {{Group, From}, Nodes}),
    ok.

-doc "A node says that it is not in the group any more.".
-spec unknow(term(), node()) -> ok.
unknow(Group, From) ->
    true = ets:delete(sderl_known, {Group, From}),
    ok.

-spec unknow_from(config | node()) -> ok.
unknow_from(From) ->
    _ = ets:select_delete(sderl_known,
                          [{{{'_', '$1'}, '_'}, [{'=:=', '$1', {const, From}}], [true]}]),
    true = ets:insert(sderl_state, {tellers, lists:delete(From, tellers())}),
    ok.

-doc """
Drops what was heard from nodes that are in no own group any more, as they tell no changes. A free
node keeps what it heard last from the nodes `Before`, with which it shared groups until then, until
it is in a group again: nobody will tell it anything newer. True if nothing is left to do.
""".
-spec unknow_strangers(Before :: [node()]) -> boolean().
unknow_strangers(Before) ->
    Own = named_memberships(),
    %% A group that this node is about to leave shows only the members that stay. What this node
    %% heard from members that go with it is kept, in case it is free then.
    case Own =/= [] andalso lists:all(fun({_, Ms}) -> lists:member(node(), Ms) end, Own) of
        true -> unknow_all_but(mates(Own));
        false when Own =:= [], Before =/= [] -> not unknow_all_but(Before);
        false -> false
    end.

unknow_all_but(Nodes) ->
    Stay = #{Node => [] || Node <- Nodes},
    lists:foreach(fun unknow_from/1, [From || From <- tellers(), not is_map_key(From, Stay)]),
    true.

mates(Own) -> lists:append([Ms || {_, Ms} <- Own]).

%% Another group of that name has none of these nodes.
unknow_all(Group, Members) ->
    lists:foreach(fun(From) ->
        Nodes = ets:lookup_element(sderl_known, {Group, From}, 2, []),
        lists:any(fun(N) -> lists:member(N, Members) end, Nodes)
            andalso ets:delete(sderl_known, {Group, From})
    end, [config | tellers()]).
