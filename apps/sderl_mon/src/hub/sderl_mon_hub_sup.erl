%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_hub_sup).
-moduledoc false.
%% The hub and what begins anew with each hub.

-behaviour(supervisor).

-export([start_link/0]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    Modules = [sderl_mon_hub, sderl_mon_record_keeper, sderl_mon_inherit],
    Children = [#{id => M, start => {M, start_link, []}} || M <- Modules],
    {ok, {#{strategy => rest_for_one, intensity => 20, period => 60}, Children}}.
