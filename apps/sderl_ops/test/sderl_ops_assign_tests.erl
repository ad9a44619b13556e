%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_assign_tests).

-include_lib("eunit/include/eunit.hrl").

-define(HOSTS, [~"lab/a", ~"lab/b", ~"lab/c"]).

spread_test() ->
    ?assertEqual(#{~"lab/a" => 3, ~"lab/b" => 2, ~"lab/c" => 2}, counts(assigned(#{}))).

pack_test() ->
    ?assertEqual(#{~"lab/a" => 4, ~"lab/b" => 3},
                 counts(assigned(#{select => pack, limits => #{per_host => 4}}))).

%% The same names give the same hosts, whatever came before.
random_test() ->
    Random = assigned(#{select => random}),
    ?assertEqual(Random, assigned(#{select => random})),
    Few = maps:with([~"n1", ~"n7"], Random),
    ?assertEqual(Random, assigned(#{select => random}, Few, up(?HOSTS))).

no_room_test() ->
    {#{assigned := Assigned}, Homeless} = assign(#{limits => #{per_host => 2}}, #{}, up(?HOSTS), 0),
    ?assertEqual(#{~"lab/a" => 2, ~"lab/b" => 2, ~"lab/c" => 2}, counts(Assigned)),
    ?assertEqual(#{~"n7" => every_host_is_full}, Homeless).

%% An instance stays on its host, also if another one would be chosen now.
sticky_test() ->
    All = #{id(N) => ~"lab/c" || N <- lists:seq(1, 7)},
    ?assertEqual(All, assigned(#{}, All, up(?HOSTS))).

not_before_all_hosts_were_looked_at_test() ->
    {#{assigned := Assigned}, Homeless} = assign(#{}, #{}, up([~"lab/a", ~"lab/b"]), 0),
    ?assertEqual({#{}, {not_seen_yet, ~"lab/c"}}, {Assigned, map_get(~"n1", Homeless)}).

lost_only_after_its_time_test() ->
    Seen = (up([~"lab/a", ~"lab/b"]))#{~"lab/c" => host(unreachable)},
    All = #{id(N) => ~"lab/c" || N <- lists:seq(1, 7)},
    {Slow, _} = assign(#{}, All, Seen, 1_000),
    ?assertMatch(#{assigned := All}, Slow),
    {Still, _} = assign_again(Slow, Seen, 1_000 + 299_999),
    ?assertMatch(#{assigned := All}, Still),
    {#{assigned := Moved}, _} = assign_again(Still, Seen, 1_000 + 300_000),
    ?assertEqual(#{~"lab/a" => 4, ~"lab/b" => 3}, counts(Moved)).

gone_at_once_test() ->
    Seen = (up([~"lab/a", ~"lab/b"]))#{~"lab/c" => host(gone)},
    {#{assigned := Moved}, _} = assign(#{}, #{~"n1" => ~"lab/c"}, Seen, 0),
    ?assertNotEqual(~"lab/c", map_get(~"n1", Moved)).

%% A service that has lost its memory starts nothing twice.
found_test() ->
    Running = #{state => running, release => ~"one", settings => ~"s"},
    Seen = (up(?HOSTS))#{~"lab/b" := (host(up))#{instances := #{~"n3" => Running}}},
    {#{assigned := #{~"n3" := Host}}, _} = assign(#{}, #{}, Seen, 0),
    ?assertEqual(~"lab/b", Host).

assigned(Changes) -> assigned(Changes, #{}, up(?HOSTS)).

assigned(Changes, Before, Hosts) ->
    {#{assigned := Assigned}, Homeless} = assign(Changes, Before, Hosts, 0),
    ?assertEqual(#{}, Homeless),
    Assigned.

assign(Changes, Before, Hosts, Now) ->
    assign_with((sderl_ops_memory:new())#{assigned := Before}, Changes, Hosts, Now).

assign_again(Memory, Hosts, Now) -> assign_with(Memory, #{}, Hosts, Now).

assign_with(Memory, Changes, Hosts, Now) ->
    Instance = maps:merge(#{family => ~"n", limits => #{}, select => spread, candidates => ?HOSTS},
                          Changes),
    Desired = #{cluster => ~"c",
                instances => #{id(N) => Instance#{id => id(N), index => N}
                               || N <- lists:seq(1, 7)}},
    {After, Homeless, _, _} =
        sderl_ops_assign:assign(Desired, (sderl_ops_observed:new())#{hosts := Hosts}, Memory, Now),
    {After, Homeless}.

up(Names) -> #{Name => host(up) || Name <- Names}.

host(State) -> #{state => State, releases => [], instances => #{}}.

id(N) -> <<"n", (integer_to_binary(N))/binary>>.

counts(Assigned) ->
    maps:map(fun(_, Ids) -> length(Ids) end,
             maps:groups_from_list(fun(Host) -> Host end, maps:values(Assigned))).
