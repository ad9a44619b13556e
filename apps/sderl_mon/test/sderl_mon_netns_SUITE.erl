%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_netns_SUITE).

%% The shadow network on hosts of their own, between which what is sent can be lost without a word.

-compile([export_all, nowarn_export_all]).

-include_lib("stdlib/include/assert.hrl").

-import(sderl_mon_SUITE, [watch/3, await/1, call/5, leader/2, scopes/2, told/3]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [cut_off, apart].

init_per_suite(Config) -> sderl_netns_SUITE:init_per_suite(Config).

end_per_suite(_) -> ok.

%% Two monitoring nodes and two workers, on three hosts.
with(Fun) ->
    {ok, Net} = sderl_fleet_netns:start(3),
    try
        [H1, H2, H3] = sderl_fleet_netns:hosts(Net),
        Families = [
            H1#{name => m1n, count => 1, hidden => true},
            H2#{name => m2n, count => 1, hidden => true},
            H3#{name => w, count => 2, apps => [sderl]}
        ],
        {ok, Fleet} = sderl_fleet:start(#{families => Families}),
        try
            [M1, M2, W1, W2] = sderl_fleet:nodes(Fleet),
            {ok, _, _} = call(Fleet, W1, s_group, new_s_group, [g1, [W1, W2]]),
            watch(Fleet, [M1, M2], #{seeds => [W1]}),
            one(Fleet, M1, M2, [W1, W2]),
            Fun(Fleet, Net, M1, M2, W1, W2)
        after
            sderl_fleet:stop(Fleet)
        end
    after
        sderl_fleet_netns:stop(Net)
    end.

%% One leads both, and both have the numbers.
one(Fleet, M1, M2, Ws) ->
    await(fun() -> {leader(Fleet, M1), leader(Fleet, M2)} =:= {M1, M1} end),
    await(fun() -> lists:sort(scopes(Fleet, M1) ++ scopes(Fleet, M2)) =:= [{group, g1}] end),
    [told(Fleet, M, Ws) || M <- [M1, M2]].

%% From everything: the other runs its agents; when it is back, it leads again.
cut_off(_) ->
    with(fun(Fleet, Net, M1, M2, W1, W2) ->
        %% Of hosts: both workers are on one.
        Cut = [{M1, M2}, {M1, W1}],
        ok = sderl_fleet_netns:cut(Net, Cut),
        await(fun() -> leader(Fleet, M2) =:= M2 end),
        told(Fleet, M2, [W1, W2]),
        ok = sderl_fleet_netns:heal(Net, Cut),
        one(Fleet, M1, M2, [W1, W2])
    end).

%% From each other alone: both lead, one has the probes; then one leads.
apart(_) ->
    with(fun(Fleet, Net, M1, M2, W1, W2) ->
        ok = sderl_fleet_netns:cut(Net, [{M1, M2}]),
        await(fun() -> {leader(Fleet, M1), leader(Fleet, M2)} =:= {M1, M2} end),
        told(Fleet, M2, [W1, W2]),
        ok = sderl_fleet_netns:heal(Net, [{M1, M2}]),
        one(Fleet, M1, M2, [W1, W2])
    end).
