%% SPDX-License-Identifier: Apache-2.0
-module(sderl_via_tests).

%% How often one thing is said. What is said is in sderl_mixed_SUITE:via_refused.

-include_lib("eunit/include/eunit.hrl").

first_test_() ->
    {setup,
     fun() -> ets:new(sderl_state, [named_table, public]) end,
     fun(_) -> ets:delete(sderl_state) end,
     fun() ->
         ?assert(sderl_refused:first({g, why}, 60, 3)),
         ?assertNot(sderl_refused:first({g, why}, 60, 3)),
         %% It is told apart as terms are, by another reason and by another number.
         ?assert(sderl_refused:first({g, other}, 60, 3)),
         ?assert(sderl_refused:first({1, why}, 0, 3)),
         %% Its time is over at once.
         ?assert(sderl_refused:first({1, why}, 0, 3)),
         %% There is room again where one is over.
         ?assert(sderl_refused:first({'_', why}, 60, 3)),
         ?assertNot(sderl_refused:first({'$1', why}, 60, 3)),
         ?assertNot(sderl_refused:first({'_', why}, 60, 3)),
         %% Many at the same time.
         true = ets:delete_all_objects(sderl_state),
         Self = self(),
         Pids = [spawn(fun() -> Self ! {self(), sderl_refused:first(same, 60, 3)} end)
                 || _ <- lists:seq(1, 50)],
         ?assertEqual([true], [true || Pid <- Pids, receive {Pid, Said} -> Said end])
     end}.
