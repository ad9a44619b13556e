%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_remaining_tests).
-moduledoc "How many steps are left, against the plan, which finds them one after the other.".

-include_lib("eunit/include/eunit.hrl").

-import(sderl_ops_cases, [desired/3, assigned/1, running/1]).

-define(NOW, 1_000_000).

count_test_() ->
    Old = desired(4, ~"aa", [~"web1", ~"web2"]),
    [
        {Name, ?_assertEqual(length(steps(Desired, Observed, Memory)),
                             sderl_ops_remaining:count(Desired, Observed, Memory))}
     || {Name, Desired, {Observed, Memory}} <- [
            {"a new cluster", desired(4, ~"aa", []), assigned(desired(4, ~"aa", []))},
            {"all is there", Old, running(Old)},
            {"more of them", desired(6, ~"aa", []), running(desired(4, ~"aa", []))},
            {"fewer", desired(1, ~"aa", []), running(desired(4, ~"aa", []))},
            {"a group goes", desired(4, ~"aa", []), running(Old)},
            {"one is out of service", Old, aside(running(Old))}
        ]
    ].

%% The old release is dropped in the end, where nothing uses it any more.
upgrade_test_() ->
    [
        ?_test(begin
            {Observed, Memory} = running(desired(4, ~"aa", Members)),
            New = desired(4, ~"bb", Members),
            Steps = [Step || Step <- steps(New, Observed, Memory),
                             Step =:= groups orelse element(1, Step) =/= drop_release],
            ?assertEqual(length(Steps), sderl_ops_remaining:count(New, Observed, Memory))
        end)
     || Members <- [[], [~"web1", ~"web2", ~"web3"]]
    ].

steps(Desired, Observed, Memory) ->
    #{steps := Steps} = sderl_ops_plan:plan(Desired, Observed, Memory, ?NOW),
    Steps.

aside({Observed, Memory}) -> {Observed, sderl_ops_memory:set_aside(~"web3", Memory)}.
