%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_deploy_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

options_test_() ->
    Checked = fun(Args) ->
        sderl_bench_options:checked("deploy", sderl_bench_deploy_experiment, Args)
    end,
    [
        ?_assertMatch({ok, #{nodes := 100, hosts := 4, pairs := 10, via := servers,
                             simulate := {139, 72}}}, Checked([])),
        ?_assertMatch({ok, #{simulate := none}}, Checked(["--simulate", "none"])),
        ?_assertMatch({error, "--simulate: \"9\" is not such as 139x72" ++ _},
                      Checked(["--simulate", "9"])),
        ?_assertMatch({error, "--simulate" ++ _}, Checked(["--simulate", "139x720"])),
        ?_assertMatch({error, "--via: there is no way \"sea\"; " ++ _}, Checked(["--via", "sea"])),
        ?_assertMatch({error, "--pairs 0" ++ _},
                      Checked(["--pairs", "0", "--simulate", "none"])),
        ?_assertMatch({error, "--nodes must be at least 1" ++ _}, Checked(["--nodes", "0"]))
    ].

%% On all hosts together as many at a time as the operations service starts, and at least one on
%% each.
at_once_test() ->
    ?assertEqual([8, 4, 2, 1, 1], [sderl_bench_deploy:at_once(N) || N <- [1, 2, 4, 8, 100]]).

%% The ranks are those of published tables: the first and the last of 6 values, the second and the
%% ninth of 10.
median_interval_test() ->
    ?assertEqual({3.0, 3, 3}, sderl_bench_series:median_interval([3])),
    ?assertEqual({3.5, 1.0, 6.0}, sderl_bench_series:median_interval([6, 5, 4, 3, 2, 1])),
    ?assertEqual({5.5, 2.0, 9.0}, sderl_bench_series:median_interval(lists:seq(1, 10))),
    ?assertEqual({8.0, 4.0, 12.0}, sderl_bench_series:median_interval(lists:seq(1, 15))),
    ?assertEqual({10.5, 6.0, 15.0}, sderl_bench_series:median_interval(lists:seq(1, 20))).

median_interval_property_test() ->
    ?assert(proper:quickcheck(?FORALL(Values, non_empty(list(float())), begin
        {Median, Low, High} = sderl_bench_series:median_interval(Values),
        Low =< Median andalso Median =< High
            andalso lists:member(Low, Values) andalso lists:member(High, Values)
            %% The order of the values does not matter.
            andalso {Median, Low, High}
                =:= sderl_bench_series:median_interval(lists:reverse(Values))
    end), [{numtests, 200}, quiet])).
