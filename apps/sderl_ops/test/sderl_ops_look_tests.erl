%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_look_tests).
-moduledoc "When what a step did has been seen.".

-include_lib("eunit/include/eunit.hrl").

is_seen_test_() ->
    Memory = (sderl_ops_memory:new())#{assigned := #{~"web1" => ~"here/h1"}},
    Start = {start, ~"web1"},
    Host = {host, ~"here/h1"},
    [
        {Name, ?_assertEqual(Expected, sderl_ops_look:is_seen(Step, At, Seen, Memory))}
     || {Name, Expected, Step, At, Seen} <- [
            %% Times of the virtual machine are below 0 as a rule.
            {"nobody has looked", false, Start, -500, #{}},
            {"only at the host", false, Start, -500, #{Host => -400}},
            {"a look that began before the end", false, Start, -500,
             #{Host => -400, nodes => -600}},
            {"both, after it", true, Start, -500, #{Host => -400, nodes => -499}},
            {"another host", false, {remove, ~"here/h2", ~"web1"}, -500, #{Host => -400}},
            {"groups are of nodes", true, groups, -500, #{nodes => -400}}
        ]
    ].
