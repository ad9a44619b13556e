%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dist_sup).
-moduledoc false.
%% The process that answers measurements of distances.

-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 1},
          [#{id => sderl_dist_probe,
             start => {sderl_dist_probe, start_link, []},
             shutdown => 2000}]}}.
