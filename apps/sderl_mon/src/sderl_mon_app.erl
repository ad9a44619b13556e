%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_app).
-moduledoc false.

-behaviour(application).

-export([start/2, prep_stop/1, stop/1]).

-spec start(application:start_type(), term()) -> supervisor:startlink_ret().
start(_Type, _Args) ->
    ok = sderl_mon_settings:forget(),
    sderl_mon_sup:start_link().

%% The last monitoring node ends the probes. (If it has no time for that, they end by themselves.)
-spec prep_stop(State) -> State when State :: term().
prep_stop(State) ->
    try sderl_mon_master:status() of
        #{heard := []} ->
            lists:foreach(fun sderl_mon_agent:release/1, sderl_mon_agent_sup:agents());
        #{} -> ok
    catch
        exit:_ -> ok
    end,
    State.

-spec stop(term()) -> ok.
stop(_State) -> sderl_mon_settings:forget().
