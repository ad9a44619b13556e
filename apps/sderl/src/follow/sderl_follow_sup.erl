%% SPDX-License-Identifier: Apache-2.0
-module(sderl_follow_sup).
-moduledoc false.
%% The processes that keep copies of other groups, here and for others. The copies belong to the
%% supervisor of the application, so they outlive this one too.

-behaviour(supervisor).
-behaviour(sderl_part).

-export([start_link/0]).
-export([init/1]).
-export([create_tables/0, handle_group_changed/1, handle_group_left/2]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Worker = fun(M) -> #{id => M, start => {M, start_link, []}, shutdown => 2000} end,
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 1},
          [Worker(sderl_feeder), Worker(sderl_follower)]}}.

-spec create_tables() -> ok.
create_tables() -> sderl_copies:new().

-spec handle_group_changed(term()) -> ok.
handle_group_changed(Group) -> sderl_follower:changed(Group).

-spec handle_group_left(term(), [node()]) -> ok.
handle_group_left(Group, _Mates) -> sderl_follower:changed(Group).
