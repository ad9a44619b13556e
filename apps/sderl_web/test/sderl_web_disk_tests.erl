%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_disk_tests).
-moduledoc """
The files of front pages and of tokens on a disk that is full, and later has room again: a change
fails with an error, the file stays as it was, and no temporary file is left.
""".

-include_lib("eunit/include/eunit.hrl").

%% The bytes that are left: less than a block.
-define(LEFT, 0).

disk_test_() ->
    [sderl_fleet_disk:eunit(Name, {timeout, 300, fun() ->
        in_folder(fun(Dir) -> ok = sderl_fleet_disk:with(Dir, "1m", Test) end)
    end}) || {Name, Test} <- [{"front pages", fun fronts/2}, {"tokens", fun tokens/2}]].

in_folder(Test) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["sderl-wd-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    ok = filelib:ensure_path(Dir),
    try
        Test(Dir)
    after
        ok = file:del_dir_r(Dir)
    end.

fronts(Dir, Call) ->
    File = filename:join(Dir, "fronts.json"),
    Start = fun() ->
        {ok, Pid} = Call(gen_server, start,
                         [{local, sderl_web_fronts}, sderl_web_fronts, File, []]),
        Pid
    end,
    Save = fun(Name, Rev, Window) ->
        Page = #{name => Name, rev => Rev, window => Window, charts => []},
        {ok, Checked} = Call(sderl_web_front, check, [json:decode(iolist_to_binary(
            json:encode(Page)))]),
        Call(sderl_web_fronts, change, [save_front, #{page => Checked}])
    end,
    Window = fun(Name) ->
        {ok, #{window := Is}} = Call(sderl_web_fronts, find, [Name]),
        Is
    end,
    Pid = Start(),
    {ok, #{rev := 1}} = Save(~"Load", 0, ~"day"),
    Day = Window(~"Load"),
    ok = sderl_fleet_disk:fill(Dir, ?LEFT, Call),
    {error, unavailable, Why} = Save(~"Load", 1, ~"week"),
    ?assertNotEqual(nomatch, string:find(Why, "no space left on device")),
    ?assertNotEqual(nomatch, string:find(Why, "fronts.json")),
    {error, unavailable, _} = Save(~"Other", 0, ~"day"),
    {error, unavailable, _} =
        Call(sderl_web_fronts, change, [delete_front, #{name => ~"Load", rev => 1}]),
    ?assertEqual(Day, Window(~"Load")),
    ?assertEqual(none, Call(sderl_web_fronts, find, [~"Other"])),
    ?assertEqual(["filler", "fronts.json"], names(Dir, Call)),
    %% A server that starts now reads what was written last.
    ok = Call(gen_server, stop, [Pid]),
    _ = Start(),
    ?assertEqual(Day, Window(~"Load")),
    ok = sderl_fleet_disk:free(Dir, Call),
    {ok, #{rev := 2}} = Save(~"Load", 1, ~"week"),
    {ok, #{rev := 1}} = Save(~"Other", 0, ~"day").

tokens(Dir, Call) ->
    File = filename:join(Dir, "tokens.json"),
    Add = fun(Name) -> Call(sderl_web_token_file, add, [File, Name, operator, none]) end,
    Revoke = fun(Name) -> Call(sderl_web_token_file, revoke, [File, Name]) end,
    Read = fun() ->
        {ok, Tokens} = Call(sderl_web_token_file, read, [File]),
        [{Name, Revoked =/= none} || #{name := Name, revoked := Revoked} <- Tokens]
    end,
    {ok, _, _} = Add(~"ann"),
    {ok, _, _} = Add(~"bob"),
    {ok, _} = Revoke(~"bob"),
    ok = sderl_fleet_disk:fill(Dir, ?LEFT, Call),
    [begin
        ?assertNotEqual({Why, nomatch}, {Why, string:find(Why, "no space left on device")}),
        ?assertNotEqual({Why, nomatch}, {Why, string:find(Why, "tokens.json")})
     end || {error, Why} <- [Add(~"eve"), Revoke(~"ann")]],
    {error, _} = Add(~"eve"),
    {error, _} = Revoke(~"ann"),
    ?assertEqual([{~"ann", false}, {~"bob", true}], Read()),
    ?assertEqual(["filler", "tokens.json"], names(Dir, Call)),
    %% There is room for the lock, but not for the file.
    ok = sderl_fleet_disk:free(Dir, Call),
    ok = sderl_fleet_disk:fill(Dir, 4096, Call),
    {error, _} = Add(~"eve"),
    ?assertEqual(["filler", "tokens.json"], names(Dir, Call)),
    ok = sderl_fleet_disk:free(Dir, Call),
    {ok, _} = Revoke(~"ann"),
    {ok, _, _} = Add(~"eve"),
    ?assertEqual([{~"ann", true}, {~"bob", true}, {~"eve", false}], Read()).

names(Dir, Call) ->
    {ok, Names} = Call(file, list_dir, [Dir]),
    lists:sort(Names).
