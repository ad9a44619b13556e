%% SPDX-License-Identifier: Apache-2.0
-module(sderl_city_SUITE).
-moduledoc "The city on real nodes: its result, its links, and what it says when it cannot run.".

-behaviour(ct_suite).

-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0]).
-export([several/1, wrong/1]).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [several, wrong].

%% The result is the same on one node, on six in groups of two, and in one virtual machine of
%% `bench vm`.
several(_) ->
    City = #{side => 7, steps => 5, vehicles => 3, work => 1, group_size => 2},
    {ok, One} = sderl_city:run(City#{nodes => 1}, ""),
    {ok, Six} = sderl_city:run(City#{nodes => 6}, ""),
    ct:log("~tp~n~tp", [One, Six]),
    #{drives := Drives, where := Where, seconds := Seconds} = One,
    ?assertMatch(#{drives := Drives, where := Where, groups := 3}, Six),
    ?assert(Seconds > 0),
    {ok, #{text := Text}} = sderl_bench_vm_loop:run(
        {program, sderl_vm_city, #{managers => 2, side => 7, steps => 5, vehicles => 3}}, 1),
    ?assertEqual(lists:flatten(io_lib:format("{~w,~w}", [Drives, Where])), binary_to_list(Text)),
    %% Each of the three groups has two nodes and the first node of the next group, so it has three
    %% links. One of the three is between first nodes. A mesh would have 15 links.
    ?assertMatch(#{links_total := 9, links_per_node_max := 4}, Six),
    ?assertMatch(#{links_total := 0, bytes := 0}, One),
    #{bytes := Bytes} = Six,
    ?assert(Bytes > 0).

wrong(_) ->
    {error, Reason} = sderl_city:run(
        #{nodes => 5, side => 4, steps => 1, vehicles => 1, work => 0, group_size => 2}, ""),
    ?assertEqual(<<"5 nodes need as many rows of crossings, and there are 4">>,
                 unicode:characters_to_binary(sderl_papers_reason:text(Reason))).
