%% SPDX-License-Identifier: Apache-2.0
-module(sderl_store_tests).
-include_lib("eunit/include/eunit.hrl").

%% A node was removed, its names got another home, and it was added again, and never came back: it is
%% a member, and does not speak for these names. Whoever coordinates then watches their processes.
names_with_another_home_are_watched_test() ->
    {Pid, Monitor} = spawn_monitor(fun() -> {ok, _} = sderl_sup:init([]), watched() end),
    receive {'DOWN', Monitor, process, Pid, Why} -> ?assertEqual(normal, Why) end.

watched() ->
    Other = 'other@host',
    Foreign = process(Other),
    Rows = [{mine, self(), node(), {{1, node()}, 1}, []},
            {theirs, process(Other), Other, {{1, node()}, 2}, []},
            {left, Foreign, node(), {{1, node()}, 3}, []}],
    Store = sderl_store:index(build, sderl_store:new(g, [node(), Other])),
    Shard = {shard, node(), true, Rows, more},
    {_, _, Told, _} = sderl_store:apply(Store, #{}, {{1, node()}, 1}, [Shard], none, false),
    ?assertEqual([{left, Foreign}], Told),
    ?assertEqual([{left, Foreign}], sderl_store:foreign(Store)).

%% The external format of a process of that node.
process(Node) ->
    binary_to_term(<<131, 88, (binary:part(term_to_binary(Node), 1, byte_size(term_to_binary(Node)) - 1))/binary,
                     (erlang:unique_integer([positive])):32, 0:32, 1:32>>).
