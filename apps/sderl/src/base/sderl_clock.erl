%% SPDX-License-Identifier: Apache-2.0
-module(sderl_clock).
-moduledoc false.
%% The clock by which the library's processes measure how long something takes.

-export([now_ms/0]).

-doc "This VM's monotonic time in milliseconds: comparable on this node only, and not a date.".
-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).
