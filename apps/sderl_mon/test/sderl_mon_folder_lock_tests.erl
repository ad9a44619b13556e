%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_folder_lock_tests).
-moduledoc "A folder has one program, however many come for it at the same instant.".

-include_lib("eunit/include/eunit.hrl").

-export([takes/3]).

-define(PROGRAMS, 3).
-define(FOLDERS, 150).
-define(SOON_MS, 120_000).

%% Some folders are free, some were left by a program that was killed, and some were about to be
%% taken over by another one that was killed, too.
one_of_many_test_() ->
    {timeout, 180, fun() ->
        in_folder(fun(Dir) ->
            Locks = [lock(Dir, N) || N <- lists:seq(1, ?FOLDERS)],
            Peers = [peer() || _ <- lists:seq(1, ?PROGRAMS)],
            try
                Begin = erlang:system_time(millisecond) + 500,
                Keys = [rpc_begun(Peer, [Begin, 2, Locks]) || Peer <- Peers],
                Answers = [answer(Key) || Key <- Keys],
                [?assertEqual({Lock, 1}, {Lock, length([ok || Taken <- Answers,
                                                              lists:member(Lock, Taken)])})
                 || Lock <- Locks],
                %% Nothing else was left.
                {ok, Names} = file:list_dir(Dir),
                ?assertEqual(lists:sort([filename:basename(Lock) || Lock <- Locks]),
                             lists:sort(Names)),
                [?assertMatch({ok, _}, sderl_mon_folder_lock:holder(Lock)) || Lock <- Locks]
            after
                [peer:stop(Peer) || Peer <- Peers]
            end,
            sderl_ct:await(ended, fun() ->
                [] =:= [Pid || Lock <- Locks, {ok, Pid} <- [sderl_mon_folder_lock:holder(Lock)]]
            end, ?SOON_MS),
            [begin
                 {ok, Own} = sderl_mon_folder_lock:take(Lock),
                 {ok, Own} = sderl_mon_folder_lock:take(Lock),
                 ok = sderl_mon_folder_lock:leave(Own)
             end || Lock <- lists:sublist(Locks, 3)],
            [?assertNot(filelib:is_file(Lock)) || Lock <- lists:sublist(Locks, 3)]
        end)
    end}.

%% Whoever leaves takes nothing from another, and what cannot be a lock is told.
refused_test() ->
    in_folder(fun(Dir) ->
        Lock = filename:join(Dir, "lock"),
        Text = other(),
        ok = file:write_file(Lock, Text),
        {error, Why} = sderl_mon_folder_lock:take(Lock),
        ?assertNotEqual(nomatch, string:find(Why, "name a folder that no other")),
        ok = sderl_mon_folder_lock:leave(unicode:characters_to_binary(Lock)),
        ?assertEqual({ok, Text}, file:read_file(Lock)),
        ok = file:delete(Lock),
        [begin
             ok = Make(),
             {error, Sentence} = sderl_mon_folder_lock:take(Lock),
             ?assertNotEqual(nomatch, string:find(Sentence, Lock)),
             ?assertEqual(none, sderl_mon_folder_lock:holder(Lock)),
             {ok, ["lock"]} = file:list_dir(Dir),
             ok = file:del_dir_r(Lock)
         end || Make <- [fun() -> file:make_dir(Lock) end,
                         fun() -> file:make_symlink("nowhere", Lock) end]]
    end).

%% Init is alive, and is not we.
other() ->
    {ok, Stat} = file:read_file("/proc/1/stat"),
    Fields = string:lexemes(lists:last(binary:split(Stat, ~")", [global])), " \n"),
    iolist_to_binary(["1 ", lists:nth(20, Fields), "\n"]).

lock(Dir, N) ->
    Lock = filename:join(Dir, "lock" ++ integer_to_list(N)),
    Ended = fun(Began) -> iolist_to_binary(["1 ", Began, "\n"]) end,
    case N rem 3 of
        0 -> ok;
        _ -> ok = file:write_file(Lock, Ended("12345678901"))
    end,
    case N rem 3 of
        2 ->
            Md5 = erlang:md5(Ended("12345678901")),
            After = binary_to_list(binary:encode_hex(Md5, lowercase)),
            ok = file:write_file(Lock ++ ".after-" ++ After, Ended("12345678902"));
        _ -> ok
    end,
    Lock.

peer() ->
    {ok, Peer, _} = peer:start_link(#{
        connection => standard_io, wait_boot => ?SOON_MS,
        args => ["-pa" | [filename:dirname(code:which(Module))
                          || Module <- [?MODULE, sderl_mon_folder_lock]]]
    }),
    Peer.

rpc_begun(Peer, Args) ->
    Owner = self(),
    spawn_link(fun() ->
        Owner ! {self(), peer:call(Peer, ?MODULE, takes, Args, ?SOON_MS)}
    end).

answer(Pid) -> receive {Pid, Taken} -> Taken end.

-doc false.
-spec takes(Begin :: integer(), EveryMs :: pos_integer(), [file:filename()]) -> [file:filename()].
takes(Begin, EveryMs, Locks) ->
    [Lock || {N, Lock} <- lists:enumerate(Locks), ok =:= busy_until(Begin + N * EveryMs),
             {ok, _} <- [sderl_mon_folder_lock:take(Lock)]].

%% (To a fraction of a millisecond, which a process that sleeps is not.)
busy_until(At) ->
    case erlang:system_time(millisecond) >= At of
        true -> ok;
        false -> busy_until(At)
    end.

in_folder(Fun) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["sderl-lock-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    ok = filelib:ensure_path(Dir),
    try Fun(Dir) after file:del_dir_r(Dir) end.
