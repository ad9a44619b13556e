%% SPDX-License-Identifier: Apache-2.0
-module(sderl_sim_place_tests).
-include_lib("eunit/include/eunit.hrl").

%% Up to 50 nodes choose 1,000 times among 50 nodes, by the values of the start or of the last
%% refresh. The bounds are far from what a seed gives.
piles_test_() ->
    [{lists:flatten(io_lib:format("~0p", [Options])), fun() ->
        Ratios = [maps:get(ratio, sderl_sim_place:run(Options#{seed => S}))
                  || S <- lists:seq(1, 5)],
        ?assert(lists:max(Ratios) < Bound)
    end} || {Options, Bound} <- [
        {#{choose => random}, 2.2}, {#{choose => {hash, k}}, 2.2},
        {#{choose => {least, x}, choosers => 1}, 1.01},
        {#{choose => {least, x}, choosers => 1, load => fresh}, 1.1},
        {#{choose => {least, x}}, 1.9},
        {#{choose => {least, x}, load => uneven, refresh => 50}, 2.0},
        {#{choose => {two, least, x}}, 2.0}, {#{choose => {two, least, x}, load => uneven}, 1.7},
        {#{choose => {two, least, x}, load => fresh}, 1.5},
        {#{choose => {two, least, x}, choosers => 1}, 1.4}
    ]].

%% A node must count its own choices: without that the least loaded node gets all of them.
forgetful_test() ->
    #{most := Most} = sderl_sim_place:run(#{choose => {least, x}, load => fresh, pending => false}),
    ?assertEqual(1000, Most).

text_test() -> ?assert(iolist_size(sderl_sim_place:format(sderl_sim_place:table())) > 1000).
