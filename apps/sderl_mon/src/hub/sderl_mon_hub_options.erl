%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_hub_options).
-moduledoc "The options of a hub, which change while it runs (`sderl_mon_hub:configure/1`); pure.".

-export([new/1, change/2, select/2]).
-export_type([options/0]).

-type options() :: #{
    interval_ms := pos_integer(),
    history := map(),
    thresholds := map()
}.

%% The keys of the configuration that are ours.
-define(OPTIONS, [interval_ms, history, thresholds]).

-doc "Those of a configuration.".
-spec new(Config :: map()) -> options().
new(#{interval_ms := Interval, history := History, thresholds := Thresholds}) ->
    #{interval_ms => Interval, history => History, thresholds => Thresholds}.

-doc "The options of a new configuration. In a synthetic cluster the feed has its own interval.".
-spec select(live | synthetic, Config :: map()) -> map().
select(live, Config) -> maps:with(?OPTIONS, Config);
select(synthetic, Config) -> maps:with(?OPTIONS -- [interval_ms], Config).

-doc "Others in place of them. Unknown keys are ignored, wrong values refused.".
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
    %% An option that the configuration would refuse would end the hub's process, or the findings,
    %% later.
    case sderl_mon_config:change(#{Key => Value}, sderl_mon_config:defaults()) of
        {ok, _} -> {ok, Options#{Key := Value}};
        {error, _} -> {error, {bad_option, Key, Value}}
    end;
option(_Other, _Value, Options) ->
    {ok, Options}.
