%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_pending_tests).
-include_lib("eunit/include/eunit.hrl").

table_test_() ->
    {foreach, fun sderl_place_pending:new/0, fun ets:delete/1,
     [fun(_) -> {"counts what came after", fun counts/0} end,
      fun(_) -> {"from a base", fun base/0} end,
      fun(_) -> {"many at once", fun many/0} end,
      fun(_) -> {"a long stream", fun stream/0} end,
      fun(_) -> {"what is old goes", fun old/0} end]}.

note(Times) -> [ok = sderl_place_pending:note(n, T) || T <- Times], ok.

counts() ->
    ?assertNot(sderl_place_pending:any()),
    ?assertEqual(0, sderl_place_pending:since(n, 0)),
    note([1000, 1001, 2000, 2500, 3000]),
    ?assert(sderl_place_pending:any()),
    ?assertEqual([5, 5, 3, 2, 1, 0],
                 [sderl_place_pending:since(n, T) || T <- [0, 999, 1900, 2200, 2900, 3100]]),
    ?assertEqual(0, sderl_place_pending:since(m, 0)).

%% From a base that was read before: the same, also when the row went meanwhile.
base() ->
    note([1000, 2000, 3000]),
    Base = sderl_place_pending:before(n, 1500),
    ?assertEqual({1, 0}, {Base, sderl_place_pending:before(m, 1500)}),
    note([4000]),
    ?assertEqual({3, 0}, {sderl_place_pending:since_base(n, Base, 1500),
                          sderl_place_pending:since_base(m, 0, 1500)}),
    ok = sderl_place_pending:clear(),
    ?assertEqual(0, sderl_place_pending:since_base(n, Base, 1500)),
    note([5000]),
    ?assertEqual(1, sderl_place_pending:since_base(n, 7, 1500)).

many() ->
    Self = self(),
    Pids = [spawn_link(
        fun() -> [sderl_place_pending:note(n) || _ <- lists:seq(1, 500)], Self ! {done, self()} end
    )
            || _ <- lists:seq(1, 20)],
    [receive {done, P} -> ok end || P <- Pids],
    ?assertEqual(10_000,
                 sderl_place_pending:since(n, erlang:monotonic_time(millisecond) - 600_000)).

%% One choice each 10 ms for 100 s: never too few, and not many too much.
stream() ->
    note(lists:seq(10, 100_000, 10)),
    [{n, _, Marks, _}] = ets:lookup(sderl_place_pending, n),
    ?assert(tuple_size(Marks) =< 40),
    ?assertEqual(0, sderl_place_pending:since(n, 100_100)),
    [begin
         Counted = sderl_place_pending:since(n, 100_000 - Ms),
         ?assert(Counted >= Ms div 10),
         ?assert(Counted =< 2 * (Ms + 50) div 10)
     end || Ms <- [0, 10, 50, 100, 200, 300, 500, 1000, 2000, 3000, 5000, 10_000]].

old() ->
    ok = sderl_place_pending:note(a, 1000),
    ok = sderl_place_pending:note(b, 100_000),
    ?assertEqual(0, sderl_place_pending:since(a, 0)),
    ?assertEqual(1, sderl_place_pending:since(b, 0)).
