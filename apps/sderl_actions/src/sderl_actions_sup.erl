%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_sup).
-moduledoc false.

-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(sderl_actions_config:settings()) -> supervisor:startlink_ret().
start_link(Settings) -> supervisor:start_link({local, ?MODULE}, ?MODULE, Settings).

-spec init(sderl_actions_config:settings()) ->
    {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(#{audit := Audit, requests := Requests, plugins := Plugins}) ->
    Children = [#{id => Module, start => {Module, start_link, [Options]}}
                || {Module, Options} <- [{sderl_actions_audit, Audit},
                                         {sderl_actions_requests, Requests},
                                         {sderl_actions_plugins, Plugins}]],
    {ok, {#{strategy => one_for_one, intensity => 20, period => 60}, Children}}.
