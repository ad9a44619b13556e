%% SPDX-License-Identifier: Apache-2.0
-module(sderl_timer).
-moduledoc false.
%% Ticks of a process: it has one timer at a time, whoever else may send it the same message. With a
%% new timer for each tick, one that another process sent would begin a second series that never
%% ends.

-export([next/3, next_together/3]).

-define(PLACES, 32).

-doc "Starts the timer of the next tick in place of the one before, which may not have run out.".
-spec next(none | reference(), Ms :: non_neg_integer(), Tick :: term()) -> reference().
next(none, Ms, Tick) -> erlang:send_after(Ms, self(), Tick);
next(Before, Ms, Tick) ->
    _ = erlang:cancel_timer(Before),
    next(none, Ms, Tick).

-doc """
The same for the ticks of many processes at rest, which come in so many places of the interval, up
to one place earlier: a node that is woken for one of them runs all that are due, and sleeps.
""".
-spec next_together(none | reference(), Ms :: pos_integer(), Tick :: term()) -> reference().
next_together(none, Ms, Tick) ->
    At = sderl_clock:now_ms() + Ms,
    Place = max(1, Ms div ?PLACES),
    %% The monotonic clock may be below 0.
    erlang:send_after(At - ((At rem Place) + Place) rem Place, self(), Tick, [{abs, true}]);
next_together(Before, Ms, Tick) ->
    _ = erlang:cancel_timer(Before),
    next_together(none, Ms, Tick).
