%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_room_tests).
-moduledoc "Whether a disk has room is found out without taking the room from others.".

-include_lib("eunit/include/eunit.hrl").

%% In the virtual machine that has the small disk.
-export([beside/1]).

room_test_() ->
    sderl_fleet_disk:eunit("room", {timeout, 600, fun() ->
        sderl_ops_places:in_folder(fun(Disk) -> sderl_fleet_disk:with(Disk, "48m", fun room/2) end)
    end}).

room(Disk, Call) ->
    Check = fun() -> Call(sderl_ops_room, check, [Disk]) end,
    ?assertEqual(ok, Check()),
    ok = sderl_fleet_disk:fill(Disk, 16_000_000, Call),
    {Sentences, Written} = Call(?MODULE, beside, [Disk]),
    [Sentence] = lists:usort([unicode:characters_to_binary(Of) || {error, Of} <- Sentences]),
    ?assertMatch({_, _}, binary:match(Sentence, ~"is full: ")),
    ?assertEqual([], [Of || Of <- Sentences, Of =:= ok]),
    ?assertEqual([ok], Written),
    ok = sderl_fleet_disk:free(Disk, Call),
    ?assertEqual(ok, Check()),
    ?assertEqual({ok, []}, Call(file, list_dir, [Disk])).

%% Somebody writes all the time meanwhile.
beside(Disk) ->
    {Writer, Monitor} = spawn_monitor(fun() -> write(filename:join(Disk, "other"), []) end),
    Told = [sderl_ops_room:check(Disk) || _ <- lists:seq(1, 20)],
    Writer ! stop,
    receive {'DOWN', Monitor, process, _, Written} -> {Told, Written} end.

write(File, Written) ->
    Now = lists:usort([file:write_file(File, binary:copy(~"x", 1_000_000), [raw]) | Written]),
    ok = file:delete(File),
    receive stop -> exit(Now) after 0 -> write(File, Now) end.
