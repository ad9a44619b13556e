%% SPDX-License-Identifier: Apache-2.0
-module(sderl_launch).
-moduledoc """
Starts groups on this node: those of the launch configuration, those in the files of a former life,
new ones, and the free namespace of a node without s_groups. Called by `m:sderl_node` only.
""".

-export([launched/0, found/4, join/4, free/0, prune/0]).

%% How long ended groups and removed members are remembered, in seconds.
-define(MEMORY, 86_400).

-doc "Starts a new group, in which this node never was a member before.".
-spec found(Group :: term(), binary(), sderl_dir:kind(), [node()]) -> ok | {error, term()}.
found(Group, Uid, Kind, Members) ->
    Args = Kind#{mem => sderl_membership:new(Members), found => true, fresh => true},
    case start(Group, Uid, Args) of
        ok -> created(Group, Members);
        Error -> Error
    end.

-doc """
Starts a group that others run, with the members and the kind that they say. The configuration of
this node overrides the kind. `IsNew`: this node was never in the group before.
""".
-spec join(Group :: term(), binary(), {sderl_membership:t(), Info :: map()}, IsNew :: boolean()) ->
    ok | {error, term()}.
join(Group, Uid, {Mem, Info}, IsNew) ->
    Kind = kind(Group, maps:get(mode, Info, available), maps:get(answer, Info, committed)),
    Args = Kind#{mem => sderl_membership:recall(node(), Mem)},
    start(Group, Uid, case IsNew of
        true -> Args#{fresh => true};
        false -> Args
    end).

-doc """
Starts the free namespace if the node is in no s_group. (It leaves that when it enters one.)
""".
-spec free() -> ok.
free() ->
    Refuse = sderl_dir:refuse(),
    case sderl_dir:is_empty() of
        true when Refuse =:= undefined ->
            sderl_free:departed(),
            _ = start(undefined, sderl_free:uid(),
                      #{mem => sderl_membership:new([node()]), found => true}),
            ok;
        _ -> ok
    end.

-doc """
Starts the groups of the launch configuration, and those of which this node was a member when it
ended, as far as they do not run yet: all of them at the start, none for a successor of
`m:sderl_node`. Gives the groups that are to be entered by seeds.
""".
-spec launched() -> [Group :: term()].
launched() ->
    Options = sderl_dir:options(),
    lists:foreach(fun(#{name := G, members := Ms}) ->
        is_list(Ms) andalso sderl_dir:know(G, Ms, config)
    end, maps:get(other_groups, Options, [])),
    Groups = maps:get(groups, Options, []),
    Kept = kept(Options),
    Enter = lists:append([launch(Entry, Kept, Options) || Entry <- Groups]),
    Names = [G || #{name := G} <- Groups],
    lists:foreach(fun begin_kept/1, maps:values(maps:without(Names, Kept))),
    free(),
    Enter.

launch(#{name := G, members := Ms} = Entry, Kept, Options) ->
    case {sderl_dir:uid(G), Ms, Kept} of
        {none, {seeds, _}, #{G := Before}} -> begin_kept(Before), [];
        {none, {seeds, _}, _} -> [G];
        {none, _, _} ->
            sderl_dir:know(G, Ms, config),
            Uid = sderl_hello:launched(Entry, maps:get(cluster, Options)),
            begin_configured(G, Uid, Ms, maps:get(G, Kept, none)),
            [];
        _ -> []
    end.

-doc "Forgets groups that ended, and members that were removed, a day ago.".
-spec prune() -> ok.
prune() -> sderl_dir:prune(oldest()).

oldest() -> erlang:system_time(second) - ?MEMORY.

start(Group, Uid, Args) ->
    #{tick_ms := Tick, set_aside_ms := Aside} = Options = sderl_dir:options(),
    Opts = #{tick_ms => Tick, aside_ms => Aside,
             forget_ms => sderl_options:forget_down_after(Group, Options)},
    ok = sderl_group_sup:await_left(Group),
    %% A node is in s_groups or in an island, never in both.
    Group =/= undefined andalso sderl_free:depart(),
    sderl_dir:start_args(Group, Uid, remembering(Group, Args#{
        options => Opts,
        configured => is_configured(Group, Uid)
    })),
    case sderl_group_sup:start_group(Group, Uid) of
        {ok, Pid} ->
            #{mem := Mem} = Args,
            sderl_dir:show(Group, Uid, Pid, sderl_membership:members(Mem)),
            %% The process may have begun before the directory had a place for it.
            Pid ! sderl_poke,
            ok;
        {error, Why} ->
            Group =/= undefined andalso free(),
            {error, Why}
    end.

%% In a group that decides by majority a node may have forgotten what it promised in a former life:
%% not if the group is new, or if the node keeps files and has none of the group.
remembering(Group, #{mode := majority} = Args) when not is_map_key(fresh, Args) ->
    Fresh = case sderl_options:value(state_dir) of
        Dir when Dir =/= none, node() =/= nonode@nohost ->
            not sderl_kept:is_there(Dir, node(), Group);
        _ -> false
    end,
    Args#{fresh => Fresh};
remembering(_, Args) -> Args.

created(Group, Nodes) -> sderl_event:emit(group_created, #{group => Group, nodes => Nodes}).

%% Whether the launch configuration has the group, with its members, under this uid.
is_configured(Group, Uid) ->
    Options = sderl_dir:options(),
    lists:any(fun(#{name := G, members := Ms} = Entry) ->
        G =:= Group andalso is_list(Ms) andalso
            sderl_hello:launched(Entry, maps:get(cluster, Options)) =:= Uid
    end, maps:get(groups, Options, [])).

begin_configured(G, Uid, Ms, #{uid := Uid, membership := Mem, epoch := Epoch, left := Left}) ->
    New = sderl_membership:new(Ms),
    %% A removed node does not come back because the launch configuration names it. But a group that
    %% this node itself left begins anew.
    Begin = case Left of
        no -> sderl_membership:merge(Mem, New);
        _ -> New
    end,
    _ = start(G, Uid, (configured_kind(G))#{mem => Begin, ceil => Epoch}),
    created(G, Ms);
begin_configured(_, _, _, #{left := no} = Entry) ->
    %% The kept group of that name was made at run time.
    begin_kept(Entry);
begin_configured(G, Uid, Ms, _) ->
    case sderl_dir:gone(Uid) of
        undefined ->
            _ = start(G, Uid, (configured_kind(G))#{mem => sderl_membership:new(Ms)}),
            created(G, Ms);
        _ -> ok
    end.

begin_kept(#{group := G, uid := Uid, membership := Mem, epoch := Epoch} = Kept) ->
    case sderl_dir:uid(G) of
        none ->
            #{consistency := Mode, answer := Answer} = Kept,
            Members = sderl_membership:recall(node(), Mem),
            _ = start(G, Uid, (kind(G, Mode, Answer))#{mem => Members, ceil => Epoch}),
            created(G, sderl_membership:members(Mem));
        _ -> ok
    end.

%% The values of the configuration or, where it has none, these.
kind(Group, Mode, Answer) ->
    #{mode => sderl_options:consistency(Group, Mode),
      answer => sderl_options:answer(Group, Answer)}.

configured_kind(Group) -> kind(Group, available, committed).

%% The files of a former run of this node, by group. Groups that were left are remembered as such,
%% unless the launch configuration makes them again. Groups that it made and no longer has are not
%% started.
kept(#{state_dir := none}) -> #{};
kept(#{state_dir := Dir}) when node() =/= nonode@nohost ->
    {Entries, Ignored} = sderl_kept:read(Dir, node()),
    lists:foreach(fun({File, Why}) -> ignored(File, Why) end, Ignored),
    #{G => Entry || #{group := G, uid := Uid} = Entry <- Entries,
                    is_begun(is_configured(G, Uid), Entry, Dir)};
kept(_) -> #{}.

is_begun(true, _, _) -> true;
is_begun(false, #{group := G, uid := Uid, membership := Mem, left := {Why, At}}, Dir) ->
    case At > oldest() of
        true -> sderl_dir:gone(G, Uid, Why, Mem, At);
        false -> sderl_kept:forget_left(Dir, node(), G, Uid)
    end,
    false;
is_begun(false, #{group := G, configured := true}, Dir) ->
    ignored(sderl_kept:file(Dir, node(), G), not_configured),
    false;
is_begun(false, _, _) -> true.

ignored(File, Why) -> sderl_event:emit(state_ignored, #{file => File, reason => Why}).
