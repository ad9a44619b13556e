%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_clock).
-moduledoc """
The clocks of a monitoring node. Waits use the monotonic clock, which never jumps; times that are
shown and kept use the wall clock, which people set. The virtual machine follows that one slowly:
after it was set, or the machine has slept, `wall_ms/0` is wrong for long. What ends at a time that
a person has named goes by `machine_ms/0`, which jumps.
""".

-export([now_ms/0, wall_ms/0, machine_ms/0]).

-doc "Monotonic time in milliseconds.".
-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).

-doc "Unix time in milliseconds.".
-spec wall_ms() -> sderl_mon_types:t().
wall_ms() -> erlang:system_time(millisecond).

-doc "Unix time in milliseconds, as the clock of the machine is set at this moment.".
-spec machine_ms() -> sderl_mon_types:t().
machine_ms() -> os:system_time(millisecond).
