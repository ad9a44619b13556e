%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_tests).
-moduledoc """
The group protocol under random schedules of faults.

`SDERL_CORE_SEED` sets the first seed, `SDERL_LONG=1` makes the run long.
""".
-include_lib("eunit/include/eunit.hrl").

random_test_() ->
    {"random schedules", {timeout, 1200, fun random/0}}.

random() ->
    First = case os:getenv("SDERL_CORE_SEED") of
        false -> rand:uniform(1_000_000_000);
        Given -> list_to_integer(Given)
    end,
    Count = case os:getenv("SDERL_LONG") of
        false -> 250;
        _ -> 3000
    end,
    io:format(user, "group protocol: ~b random schedules, SDERL_CORE_SEED=~b~n", [Count, First]),
    ?assertEqual([], [S || S <- lists:seq(First, First + Count - 1), sderl_sim:run(S) =/= ok]).
