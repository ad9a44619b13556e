%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_hub_options).
-moduledoc "The options of a hub, which change while it runs (`sderl_mon_hub:configure/1`); pure.".

-export([new/1, change/2, select/2]).
-export_type([options/0]).

-type options() :: #{
    interval_ms := pos_integer(),
    history := sderl_mon_history:opts(),
    thresholds := #{atom() => number()}
}.

%% The keys of the configuration that a hub uses.
-define(OPTIONS, [interval_ms, history, thresholds]).

-doc "The options of a configuration.".
-spec new(Config :: map()) -> options().
new(#{interval_ms := Interval, history := History, thresholds := Thresholds}) ->
    #{interval_ms => Interval, history => History, thresholds => Thresholds}.

-doc "The options of a changed configuration. A synthetic feed keeps its own interval.".
-spec select(live | synthetic, Config :: map()) -> map().
select(live, Config) -> maps:with(?OPTIONS, Config);
select(synthetic, Config) -> maps:with(?OPTIONS -- [interval_ms], Config).

-doc "Changes options. Unknown keys are ignored, wrong values refused.".
-spec change(map(), options()) -> {ok, options()} | {error, {bad_option, atom(), term()}}.
change(Given, Options) ->
    maps:fold(
        fun
            (_Key, _Value, {error, _} = Error) -> Error;
            (Key, Value, {ok, Acc}) -> option(Key, Value, Acc)
        end,
        {ok, Options},
        Given
    ).

option(interval_ms, Ms, Options) when is_integer(Ms), Ms >= 100, Ms =< 60_000 ->
    {ok, Options#{interval_ms := Ms}};
option(interval_ms, Ms, _Options) ->
    {error, {bad_option, interval_ms, Ms}};
option(Key, Value, Options) when Key =:= history; Key =:= thresholds ->
    %% Checked here, because a wrong option would end the hub's process, or fail its checks, later.
    case sderl_mon_config:change(#{Key => Value}, sderl_mon_config:defaults()) of
        {ok, _} -> {ok, Options#{Key := Value}};
        {error, _} -> {error, {bad_option, Key, Value}}
    end;
option(_Other, _Value, Options) ->
    {ok, Options}.
