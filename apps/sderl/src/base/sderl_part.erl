%% SPDX-License-Identifier: Apache-2.0
-module(sderl_part).
-moduledoc false.
%% Parts of the library that want to know what happens to this node's groups.
%%
%% The tables and the group protocol know no module above them. The application registers the
%% modules of this behaviour when it starts (`sderl_sup`), and they are called from here. A
%% callback runs in the process that changed the group, which may be the group's own: it must not
%% wait, so most callbacks cast to a process of their part.

-export([register_all/1]).
-export([group_changed/1, group_left/2, group_ended/1, group_moved/3]).

-doc """
Makes the tables of the part. The calling process, the supervisor of the application, owns them.
""".
-callback create_tables() -> ok.
-doc "The members of an own group changed, or the group is new.".
-callback handle_group_changed(Group :: term()) -> ok.
-doc "This node left a group that it shared with these nodes, or the group was deleted.".
-callback handle_group_left(Group :: term(), Mates :: [node()]) -> ok.
-doc "The tables of a group with this identity are cleared.".
-callback handle_group_ended(Uid :: binary()) -> ok.
-doc "A group goes on under another identity.".
-callback handle_group_moved(Group :: term(), Old :: binary(), New :: binary()) -> ok.
-optional_callbacks([create_tables/0, handle_group_changed/1, handle_group_left/2,
                     handle_group_ended/1, handle_group_moved/3]).

-define(PARTS, {sderl, parts}).

-doc "Registers the parts, in the order in which they are called, and makes their tables.".
-spec register_all([module()]) -> ok.
register_all(Parts) ->
    ok = code:ensure_modules_loaded(Parts),
    ok = persistent_term:put(?PARTS, Parts),
    tell(create_tables, []).

-spec group_changed(term()) -> ok.
group_changed(Group) -> tell(handle_group_changed, [Group]).

-spec group_left(term(), [node()]) -> ok.
group_left(Group, Mates) -> tell(handle_group_left, [Group, Mates]).

-spec group_ended(binary()) -> ok.
group_ended(Uid) -> tell(handle_group_ended, [Uid]).

-spec group_moved(term(), binary(), binary()) -> ok.
group_moved(Group, Old, New) -> tell(handle_group_moved, [Group, Old, New]).

tell(Callback, Args) ->
    Arity = length(Args),
    lists:foreach(fun(Part) ->
        case erlang:function_exported(Part, Callback, Arity) of
            true -> ok = apply(Part, Callback, Args);
            false -> ok
        end
    end, persistent_term:get(?PARTS, [])).
