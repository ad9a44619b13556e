%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_app).
-moduledoc false.

-behaviour(application).

-export([start/2, stop/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) ->
    maybe
        {ok, Settings} ?=
            sderl_web_config:read([Entry
                                   || {Key, _} = Entry <- application:get_all_env(sderl_web),
                                      Key =/= included_applications]),
        ok ?= synthetic(Settings),
        sderl_web_sup:start_link(Settings)
    end.

%% For development and measurements: a cluster that there is not.
synthetic(#{source := synthetic, synthetic := Options}) ->
    case sderl_mon_synthetic:start(Options) of
        {ok, _} -> ok;
        {error, _} = Error -> Error
    end;
synthetic(#{source := hub}) ->
    ok.

-spec stop(term()) -> ok.
stop(_State) -> ok.
