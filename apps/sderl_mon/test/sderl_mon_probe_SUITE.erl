%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_SUITE).

%% The probe on real nodes, against what OTP says itself.

-include_lib("stdlib/include/assert.hrl").

-export([all/0, init_per_suite/1, end_per_suite/1]).
-export([samples_are_right/1]).

-define(OWNER, sderl_mon_probe_owner).

all() -> [samples_are_right].

init_per_suite(Config) ->
    Owner = spawn(fun() -> receive release -> ok end end),
    {ok, Fleet} = sderl_fleet:start(#{owner => Owner, families => [
        #{name => n, count => 2, apps => [sderl]},
        #{name => plain, count => 1, paths => []},
        #{name => mon, count => 1, hidden => true}]}),
    [{fleet, Fleet}, {owner, Owner}, {nodes, sderl_fleet:nodes(Fleet)} | Config].

end_per_suite(Config) ->
    ok = sderl_fleet:stop(proplists:get_value(fleet, Config)),
    proplists:get_value(owner, Config) ! release.

samples_are_right(Config) ->
    {Fleet, [N1, N2, _, Mon]} = cluster(Config),
    {ok, g, _} = call(Fleet, N1, s_group, new_s_group, [g, [N1, N2]]),
    {Owner, {ok, _}} = call(Fleet, Mon, ?OWNER, start, [N1, #{interval_ms => 100}]),
    Last = fun() -> hd(call(Fleet, Mon, ?OWNER, samples, [Owner])) end,
    await(fun() -> #{seq := S} = Last(), S > 10 end),
    Sample = Last(),
    ct:pal("~p", [Sample]),
    ok = call(Fleet, N1, sderl_mon_probe, stop, []),
    ?assertEqual(undefined, call(Fleet, N1, erlang, whereis, [sderl_mon_probe])).

%% ---------------------------------------------------------------- helpers

cluster(Config) -> {proplists:get_value(fleet, Config), proplists:get_value(nodes, Config)}.

call(Fleet, Node, M, F, A) -> sderl_fleet:call(Fleet, Node, M, F, A, 30_000).

await(Fun) -> ?assertEqual(ok, sderl_fleet:await(Fun, 30_000)).
