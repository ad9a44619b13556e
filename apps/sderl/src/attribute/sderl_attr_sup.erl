%% SPDX-License-Identifier: Apache-2.0
-module(sderl_attr_sup).
-moduledoc false.
%% The process that keeps this node's attributes. Its tables belong to the supervisor of the
%% application, so they outlive this one too.

-behaviour(supervisor).
-behaviour(sderl_part).

-export([start_link/0]).
-export([init/1]).
-export([create_tables/0, handle_group_changed/1, handle_group_left/2]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 1},
          [#{id => sderl_attr_server,
             start => {sderl_attr_server, start_link, []},
             shutdown => 2000}]}}.

-spec create_tables() -> ok.
create_tables() -> sderl_attr_table:new().

-spec handle_group_changed(term()) -> ok.
handle_group_changed(Group) -> sderl_attr_server:changed(Group).

-spec handle_group_left(term(), [node()]) -> ok.
handle_group_left(Group, _Mates) -> sderl_attr_server:changed(Group).
