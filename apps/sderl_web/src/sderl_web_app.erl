%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_app).
-moduledoc false.

-behaviour(application).

-export([start/2, stop/1]).

-spec start(application:start_type(), term()) -> {ok, pid()} | {error, term()}.
start(_Type, _Args) -> sderl_web_sup:start_link().

-spec stop(term()) -> ok.
stop(_State) -> ok.
