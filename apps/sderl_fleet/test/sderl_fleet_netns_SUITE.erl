%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_netns_SUITE).
-moduledoc """
Network namespaces as hosts: nodes in them, pairs cut and joined, and nothing left behind.
""".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2]).
-export([cut_and_heal/1, owner_killed/1, vm_killed/1, not_allowed/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [cut_and_heal, owner_killed, vm_killed, not_allowed].

init_per_testcase(_, Config) -> sderl_fleet_ct:need_namespaces(Config).

%% A cut is silent: the link stays until a timeout. Messages sent meanwhile arrive after the heal.
cut_and_heal(_) ->
    {ok, Net} = sderl_fleet_netns:start(3),
    Families = [Host#{name => Name, count => 1}
                || {Name, Host} <- lists:zip([a, b, c], sderl_fleet_netns:hosts(Net))],
    {ok, Fleet} = sderl_fleet:start(#{families => Families}),
    [A, B, C] = sderl_fleet:nodes(Fleet),
    Rpc = fun(From, To, Ms) ->
        sderl_fleet:call(Fleet, From, erpc, call, [To, erlang, node, [], Ms], 90_000)
    end,
    Reaches = fun(From, To) -> ?assertEqual(To, Rpc(From, To, 60_000)) end,
    [Reaches(From, To) || {From, To} <- [{A, B}, {B, C}, {C, A}]],
    ok = sderl_fleet_netns:cut(Net, [{A, B}]),
    [?assertError({erpc, timeout}, Rpc(From, To, 300)) || {From, To} <- [{A, B}, {B, A}]],
    [Reaches(From, To) || {From, To} <- [{A, C}, {C, B}]],
    ?assert(lists:member(B, sderl_fleet:call(Fleet, A, erlang, nodes, []))),
    %% A new connection cannot be made either.
    true = sderl_fleet:call(Fleet, A, erlang, disconnect_node, [B]),
    ok = sderl_fleet:call(Fleet, A, application, set_env, [kernel, net_setuptime, 1]),
    ?assertEqual(false, sderl_fleet:call(Fleet, A, net_kernel, connect_node, [B], 60_000)),
    ok = sderl_fleet_netns:heal(Net, [{B, A}]),
    ok = sderl_fleet:await(fun() ->
        sderl_fleet:call(Fleet, A, net_kernel, connect_node, [B], 60_000)
    end, 60_000),
    Reaches(A, B),
    ?assertMatch({error, _}, sderl_fleet_netns:cut(Net, [{A, 'x@10.99.0.9'}])),
    ok = sderl_fleet:stop(Fleet),
    ?assertNotEqual([], left(Net)),
    Names = names(Net),
    ok = sderl_fleet_netns:stop(Net),
    gone(Names).

owner_killed(_) ->
    Test = self(),
    Owner = spawn(fun() ->
        {ok, Net} = sderl_fleet_netns:start(2),
        Test ! {names, names(Net)},
        receive after infinity -> ok end
    end),
    Names = receive {names, Ns} -> Ns end,
    ?assertEqual(2, length([N || N <- Names, exists(N)])),
    exit(Owner, kill),
    gone(Names).

%% kill -9 of the virtual machine that made them.
vm_killed(_) ->
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => maker, count => 1}]}),
    [Maker] = sderl_fleet:nodes(Fleet),
    Names = sderl_fleet:call(Fleet, Maker, erlang, apply, [fun make/0, []], 60_000),
    ?assertEqual(2, length([N || N <- Names, exists(N)])),
    ok = sderl_fleet:kill(Fleet, Maker),
    gone(Names),
    ok = sderl_fleet:stop(Fleet).

make() ->
    Caller = self(),
    spawn(fun() ->
        {ok, Net} = sderl_fleet_netns:start(2),
        Caller ! {names, names(Net)},
        receive after infinity -> ok end
    end),
    receive {names, Names} -> Names end.

%% More hosts than the subnet has are refused by a guard; when the program `ip` fails its error is
%% given.
not_allowed(_) ->
    ?assertError(function_clause, sderl_fleet_netns:start(1000)),
    {ok, Fleet} = sderl_fleet:start(#{families => [#{name => maker, count => 1}]}),
    [Maker] = sderl_fleet:nodes(Fleet),
    true = sderl_fleet:call(Fleet, Maker, os, putenv, ["PATH", "/nonexistent"]),
    {error, {no_namespaces, Why}} = sderl_fleet:call(Fleet, Maker, sderl_fleet_netns, start, [1],
                                                     60_000),
    ?assertMatch([_ | _], string:find(unicode:characters_to_list(Why), "netns add")),
    ok = sderl_fleet:stop(Fleet).

names(Net) -> [Name || #{wrap := [_, _, _, Name]} <- sderl_fleet_netns:hosts(Net)].

left(Net) -> [Name || Name <- names(Net), exists(Name)].

%% With the switch, whose name begins in the same way.
gone(Names) ->
    Prefix = lists:droplast(hd(Names)),
    ok = sderl_fleet:await(fun() -> [N || N <- [Prefix ++ "hub" | Names], exists(N)] =:= [] end,
                           60_000).

exists(Name) ->
    filelib:is_file("/run/netns/" ++ Name) orelse filelib:is_file("/var/run/netns/" ++ Name).
