%% SPDX-License-Identifier: Apache-2.0
-module(sderl_route_config).
-moduledoc false.
%% The part of the configuration that is about routing.

-behaviour(sderl_options).

-export([defaults/0, option/3, remedy/1, value/1]).

-spec defaults() -> [{atom(), term()}].
defaults() ->
    [
        {route_beat_ms, 1_000},
        {route_queue, 10_000},
        {stand_in_idle_ms, 600_000},
        {route_hops, 16}
    ].

-spec option(atom(), sderl_check:path(), term()) -> {ok, term()} | {error, sderl_check:error()}.
option(route_queue, Path, Value) -> sderl_check:count(Path, Value, 10_000_000);
option(route_hops, Path, Value) -> sderl_check:count(Path, Value, 1_000);
option(_Milliseconds, Path, Value) -> sderl_check:milliseconds(Path, Value).

-spec remedy(sderl_check:expected()) -> none.
remedy(_) -> none.

-doc "The value of a key in force.".
-spec value(atom()) -> term().
value(Key) -> sderl_options:value(Key, defaults()).
