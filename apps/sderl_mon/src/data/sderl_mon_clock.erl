%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_clock).
-moduledoc """
The two clocks of a monitoring node. Waits use the monotonic clock, which never jumps; times that
are shown and kept use the wall clock, which people set.
""".

-export([now_ms/0, wall_ms/0]).

-doc "Monotonic time in milliseconds.".
-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).

-doc "Unix time in milliseconds.".
-spec wall_ms() -> sderl_mon_types:t().
wall_ms() -> erlang:system_time(millisecond).
