%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_sup).
-moduledoc false.
%% Each child restarts alone: agents go on without a master or a hub, and a new master finds them.

-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Worker = fun(M, Args) -> #{id => M, start => {M, start_link, Args}} end,
    Supervisor = fun(M) -> (Worker(M, []))#{type => supervisor} end,
    %% The processes that are told of a change of the configuration.
    Told = [sderl_mon_hub, sderl_mon_record_keeper, sderl_mon_archive, sderl_mon_log,
            sderl_mon_master, sderl_mon_otlp_push],
    {ok,
        {#{strategy => one_for_one, intensity => 20, period => 60}, [
            Worker(sderl_mon_settings, [Told]),
            Worker(sderl_mon_pool, []),
            Supervisor(sderl_mon_hub_sup),
            Worker(sderl_mon_archive, []),
            Worker(sderl_mon_log, []),
            Worker(sderl_mon_otlp_push, []),
            Supervisor(sderl_mon_agent_sup),
            Worker(sderl_mon_master, [])
        ]}}.
