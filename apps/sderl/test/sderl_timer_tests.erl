%% SPDX-License-Identifier: Apache-2.0
-module(sderl_timer_tests).
-include_lib("eunit/include/eunit.hrl").

%% However often somebody else sends the tick, there is one timer.
one_timer_test() ->
    Last = lists:foldl(fun(_, Timer) -> sderl_timer:next(Timer, 60_000, tick) end, none,
                       lists:seq(1, 100)),
    ?assert(is_integer(erlang:read_timer(Last))),
    Next = sderl_timer:next(Last, 0, tick),
    ?assertNot(erlang:read_timer(Last)),
    receive tick -> ok end,
    ?assertNot(erlang:read_timer(Next)).
