%% SPDX-License-Identifier: Apache-2.0
-module(sderl_timer).
-moduledoc false.
%% Ticks of a process: it has one timer at a time, whoever else may send it the same message. With a
%% new timer for each tick, one that another process sent would begin a second series that never
%% ends.

-export([next/3]).

-doc "Starts the timer of the next tick in place of the one before, which may not have run out.".
-spec next(none | reference(), Ms :: non_neg_integer(), Tick :: term()) -> reference().
next(none, Ms, Tick) -> erlang:send_after(Ms, self(), Tick);
next(Before, Ms, Tick) ->
    _ = erlang:cancel_timer(Before),
    next(none, Ms, Tick).
