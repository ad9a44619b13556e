%% SPDX-License-Identifier: Apache-2.0
-module(sderl_follow_sup).
-moduledoc false.
%% The processes that keep copies of other groups, here and for others. The copies belong to the
%% supervisor of the application, so they outlive this one too.

-behaviour(sderl_part).

-export([start_link/0]).
-export([create_tables/0, handle_group_changed/1, handle_group_left/2]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    sderl_children:start_link(?MODULE, [sderl_children:worker(Module)
                                        || Module <- [sderl_feeder, sderl_follower]]).

-spec create_tables() -> ok.
create_tables() -> sderl_copies:new().

-spec handle_group_changed(term()) -> ok.
handle_group_changed(Group) -> sderl_follower:changed(Group).

-spec handle_group_left(term(), [node()]) -> ok.
handle_group_left(Group, _Mates) -> sderl_follower:changed(Group).
