%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_sup).
-moduledoc false.

-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(sderl_alarms_config:settings()) -> supervisor:startlink_ret().
start_link(Settings) -> supervisor:start_link({local, ?MODULE}, ?MODULE, Settings).

-spec init(sderl_alarms_config:settings()) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Settings) ->
    Server = #{id => sderl_alarms_server, start => {sderl_alarms_server, start_link, [Settings]}},
    {ok, {#{strategy => one_for_one, intensity => 20, period => 60}, [Server]}}.
