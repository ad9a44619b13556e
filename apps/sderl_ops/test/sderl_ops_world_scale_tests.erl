%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_world_scale_tests).
-moduledoc """
What the reconciler costs for many instances, in simulated time beside that of the same timers
alone, and in reductions. The short run has 1,000 and 2,000 instances, which shows whether the work
per instance grows; `SDERL_LONG=1` has 10,000 on 139 hosts.
""".

-include_lib("eunit/include/eunit.hrl").

scale_test_() ->
    {timeout, 900, fun() ->
        Sizes = case os:getenv("SDERL_LONG") of
            false -> [{14, 72}, {28, 72}];
            _ -> [{14, 72}, {28, 72}, {139, 72}]
        end,
        Figures = [sderl_ops_world_scale:bring_up(Hosts, PerHost) || {Hosts, PerHost} <- Sizes],
        [io:format(user, "operations: ~0tp~n", [Figure]) || Figure <- Figures],
        [?assertMatch(#{done := true, other_ms := Ms, archives := Archives}
                        when Ms < 20_000 andalso Archives =< 8, Figure) || Figure <- Figures],
        #{per_instance := One} = hd(Figures),
        [?assertMatch(#{per_instance := More} when More < 2 * One, Figure) || Figure <- tl(Figures)]
    end}.
