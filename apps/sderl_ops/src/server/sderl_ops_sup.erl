%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_sup).
-moduledoc false.
%% The door is open only while there is somebody behind it.

-behaviour(supervisor).

-export([start_link/1]).
-export([init/1]).

-spec start_link(Folder :: file:filename()) -> supervisor:startlink_ret().
start_link(Folder) -> supervisor:start_link({local, ?MODULE}, ?MODULE, Folder).

-spec init(file:filename()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Folder) ->
    {ok, {#{strategy => rest_for_one, intensity => 10, period => 60}, [
        #{id => sderl_ops_server, start => {sderl_ops_server, start_link, [Folder]}},
        #{id => sderl_ops_door, start => {sderl_ops_door, start_link, [Folder]}}
    ]}}.
