%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_app).
-moduledoc false.

-behaviour(application).

-export([start/2, stop/1]).

-spec start(application:start_type(), term()) -> supervisor:startlink_ret() | {error, term()}.
start(_Type, _Args) ->
    case sderl_actions_config:read(application:get_all_env(sderl_actions)) of
        {ok, Settings} -> sderl_actions_sup:start_link(Settings);
        {error, _} = Error -> Error
    end.

-spec stop(term()) -> ok.
stop(_State) -> ok.
