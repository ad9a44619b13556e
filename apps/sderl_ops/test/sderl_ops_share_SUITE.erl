%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_share_SUITE).
-moduledoc "Archives that one member gives to others, of which some hang or die.".

-include_lib("common_test/include/ct.hrl").
-include_lib("stdlib/include/assert.hrl").

-export([all/0, suite/0, init_per_testcase/2, end_per_testcase/2]).
-export([all_take_them/1, one_hangs/1, one_dies/1, none_has_it/1]).

-define(SHA, ~"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824").
-define(LONG_MS, 120_000).
-define(PATIENT, #{pull => ?LONG_MS, rest => ?LONG_MS}).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [all_take_them, one_hangs, one_dies, none_has_it].

%% Three nodes with folders of their own and a port mapper of theirs; the first has the archive.
init_per_testcase(Case, Config) ->
    Epmd = integer_to_list(sderl_ops_awaits:free_port()),
    Base = filename:join(?config(priv_dir, Config), Case),
    Members = [begin
        {ok, Peer, Node} = peer:start(#{
            name => Name, host => "127.0.0.1", longnames => true, connection => standard_io,
            wait_boot => ?LONG_MS,
            args => ["-connect_all", "false", "-setcookie", "share", "-pa" | code:get_path()],
            env => [{"ERL_EPMD_PORT", Epmd}]
        }),
        Folder = filename:join(Base, Name),
        ok = filelib:ensure_path(filename:join(Folder, "archives")),
        ok = peer:call(Peer, sderl_ops_membership, begin_in, [Folder], ?LONG_MS),
        {Peer, Node, Folder}
    end || Name <- ["ops1", "ops2", "ops3"]],
    [{First, _, Folder}, {_, Second, _}, {_, Third, _}] = Members,
    ok = file:write_file(sderl_ops_share:archive(Folder, ?SHA), ~"hello"),
    [true = peer:call(First, net_kernel, connect_node, [Node], ?LONG_MS)
     || Node <- [Second, Third]],
    [{members, Members}, {epmd, Epmd} | Config].

end_per_testcase(_, Config) ->
    lists:foreach(fun stop/1, ?config(members, Config)),
    sderl_ops_awaits:end_epmd(?config(epmd, Config)).

all_take_them(Config) ->
    ?assertEqual(ok, spread(2, ?PATIENT, Config)),
    [?assertEqual({ok, ~"hello"}, file:read_file(sderl_ops_share:archive(Folder, ?SHA)))
     || {_, _, Folder} <- ?config(members, Config)],
    ?assertEqual(ok, spread(2, ?PATIENT, Config)).

%% A majority is enough, and without one it is told how many took them.
one_hangs(Config) ->
    [_, {_, _, Folder}, Third] = ?config(members, Config),
    Pid = os_pid(Third),
    _ = os:cmd("kill -STOP " ++ Pid),
    try
        ?assertEqual(ok, spread(1, #{pull => ?LONG_MS, rest => 300}, Config)),
        ?assertEqual({ok, ~"hello"}, file:read_file(sderl_ops_share:archive(Folder, ?SHA))),
        {error, Sentence} = spread(2, #{pull => 20_000, rest => 300}, Config),
        ?assertEqual("no majority of the ops members has the releases: 1 of 2 others took them, "
                     "and 2 have to", unicode:characters_to_list(Sentence))
    after
        os:cmd("kill -CONT " ++ Pid)
    end.

%% A member that is gone is not waited for.
one_dies(Config) ->
    [_, _, Third] = ?config(members, Config),
    Pid = os_pid(Third),
    _ = os:cmd("kill -STOP " ++ Pid),
    Asked = self(),
    spawn_link(fun() -> Asked ! {spread, spread(2, ?PATIENT, Config)} end),
    [_, {_, _, Folder} | _] = ?config(members, Config),
    sderl_ops_awaits:await(fun() ->
        filelib:is_regular(sderl_ops_share:archive(Folder, ?SHA))
    end, 60_000),
    _ = os:cmd("kill -KILL " ++ Pid),
    receive {spread, Result} -> ?assertMatch({error, _}, Result) end.

%% An archive with a wrong checksum is refused, and nothing of it is left.
none_has_it(Config) ->
    [{_, _, First} | Others] = ?config(members, Config),
    ok = file:write_file(sderl_ops_share:archive(First, ?SHA), ~"other"),
    ?assertMatch({error, _}, spread(1, ?PATIENT, Config)),
    [?assertEqual({ok, []}, file:list_dir(filename:join(Folder, "archives")))
     || {_, _, Folder} <- Others].

%% One that was killed has ended by itself.
stop({Peer, _, _}) ->
    try peer:stop(Peer)
    catch exit:_ -> ok end.

spread(Needed, Limits, Config) ->
    [{Peer, _, _} | Others] = ?config(members, Config),
    peer:call(Peer, sderl_ops_share, spread,
              [[?SHA], [Node || {_, Node, _} <- Others], Needed, Limits], infinity).

os_pid({Peer, _, _}) -> peer:call(Peer, os, getpid, [], ?LONG_MS).
