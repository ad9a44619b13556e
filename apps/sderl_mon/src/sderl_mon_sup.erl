%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_sup).
-moduledoc false.

-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Hub = #{id => sderl_mon_hub, start => {sderl_mon_hub, start_link, []}},
    {ok, {#{strategy => rest_for_one, intensity => 10, period => 60}, [Hub]}}.
