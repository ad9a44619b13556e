%% SPDX-License-Identifier: Apache-2.0
-module(sderl_clock).
-moduledoc false.
%% The clock by which the library's processes, and programs that may call the library, measure how
%% long something takes.

-export([now_ms/0, now_us/0, now_ns/0]).

-doc "This VM's monotonic time in milliseconds: comparable on this node only, and not a date.".
-spec now_ms() -> integer().
now_ms() -> erlang:monotonic_time(millisecond).

-doc "The same in microseconds.".
-spec now_us() -> integer().
now_us() -> erlang:monotonic_time(microsecond).

-doc "The same in nanoseconds.".
-spec now_ns() -> integer().
now_ns() -> erlang:monotonic_time(nanosecond).
