%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_sup).
-moduledoc false.
%% The process that keeps this node's attributes. Its tables belong to the supervisor of the
%% application, so they outlive this one too.

-behaviour(sderl_part).

-export([start_link/0]).
-export([create_tables/0, handle_group_changed/1, handle_group_left/2]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> sderl_children:start_link(?MODULE, [sderl_children:worker(sderl_attr_server)]).

-spec create_tables() -> ok.
create_tables() -> sderl_attr_table:new().

-spec handle_group_changed(term()) -> ok.
handle_group_changed(Group) -> sderl_attr_client:changed(Group).

-spec handle_group_left(term(), [node()]) -> ok.
handle_group_left(Group, _Mates) -> sderl_attr_client:changed(Group).
