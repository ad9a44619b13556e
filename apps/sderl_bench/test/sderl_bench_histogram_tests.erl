%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_histogram_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(H, sderl_bench_histogram).

empty_test() ->
    ?assertEqual(undefined, ?H:percentile(50, ?H:new())),
    ?assertEqual(0, ?H:total(?H:new())).

small_values_are_exact_test() ->
    H = of_list(lists:seq(1, 60)),
    ?assertEqual(30, ?H:percentile(50, H)),
    ?assertEqual(60, ?H:percentile(100, H)),
    ?assertEqual(1, ?H:percentile(0, H)).

out_of_range_test() ->
    H = of_list([-5, 1 bsl 60]),
    ?assertEqual(2, ?H:total(H)),
    ?assertEqual(0, ?H:percentile(0, H)),
    ?assert(?H:percentile(100, H) =< 1 bsl 40).

recorder_test() ->
    Recorder = ?H:recorder(),
    Values = [0, 63, 64, 65, 1000, 1 bsl 39, 1 bsl 41],
    [ok = ?H:record(Recorder, V) || V <- Values],
    ?assertEqual(of_list(Values), ?H:read(Recorder)).

properties_test_() ->
    [
        sderl_prop:eunit("a percentile is off by at most 1.6 %", 300, fun percentile_is_near/0),
        sderl_prop:eunit("merged histograms are the histogram of all", 300, fun merging_is_adding/0)
    ].

percentile_is_near() ->
    ?FORALL(
        {Values, Percent},
        {non_empty(list(value())), range(0, 100)},
        begin
            Rank = max(1, ceil(Percent * length(Values) / 100)),
            True = lists:nth(Rank, lists:sort(Values)),
            Seen = ?H:percentile(Percent, of_list(Values)),
            abs(Seen - True) =< True / 64 + 0.5
        end
    ).

merging_is_adding() ->
    ?FORALL(
        Lists,
        list(list(value())),
        ?H:merge([of_list(L) || L <- Lists]) =:= of_list(lists:append(Lists))
    ).

%% All magnitudes are equally frequent.
value() ->
    ?LET(Bits, range(0, 39), range(0, 1 bsl Bits)).

of_list(Values) ->
    lists:foldl(fun ?H:add/2, ?H:new(), Values).
