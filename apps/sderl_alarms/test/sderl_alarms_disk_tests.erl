%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_disk_tests).
-moduledoc """
The alarms' file on a disk that becomes full while it is written, and has room again: a file system
of one megabyte in a namespace.
""".

-include_lib("eunit/include/eunit.hrl").

-define(SOON_MS, 60_000).

full_disk_test_() ->
    sderl_fleet_disk:eunit("alarms", {timeout, 300, fun() ->
        in_folder(fun(Dir) -> ok = sderl_fleet_disk:with(Dir, "1m", fun full_disk/2) end)
    end}).

full_disk(Dir, Call) ->
    ok = Call(logger, set_primary_config, [level, critical]),
    ok = Call(application, set_env, [sderl_alarms, state_dir, filename:join(Dir, "state"),
                                     [{persistent, true}]]),
    Start = fun() -> {ok, _} = Call(application, ensure_all_started, [sderl_alarms]) end,
    Say = fun(N) ->
        %% A text that cannot be made shorter.
        Text = binary:encode_hex(crypto:strong_rand_bytes(450)),
        {ok, _} = Call(sderl_alarms, silence,
                       [#{node => integer_to_binary(N)}, 3600, ~"ann", Text])
    end,
    Silenced = fun() ->
        lists:sort([binary_to_integer(N)
                    || #{match := #{node := N}} <- Call(sderl_alarms, silences, [])])
    end,
    Info = fun() -> Call(sderl_alarms, info, []) end,
    _ = Start(),
    _ = [Say(N) || N <- lists:seq(1, 10)],
    #{problem := ~"", kept := true} = Info(),
    ok = sderl_fleet_disk:fill(Dir, 16_384, Call),
    _ = [Say(N) || N <- lists:seq(11, 60)],
    #{problem := Problem, kept := false} = Info(),
    ?assertNotEqual(nomatch, binary:match(Problem, ~"no space left on device")),
    ?assertEqual(lists:seq(1, 60), Silenced()),
    %% What had no room is not left there, where it would take that of others.
    {ok, Names} = Call(file, list_dir, [filename:join(Dir, "state")]),
    ?assertEqual([], [Name || Name <- Names, filename:extension(Name) =:= ".new"]),
    %% Who starts now has what was written last, and no damage.
    ok = Call(application, stop, [sderl_alarms]),
    _ = Start(),
    ?assertEqual([], lists:seq(1, 10) -- Silenced()),
    _ = [Say(N) || N <- lists:seq(1, 60) -- Silenced()],
    #{kept := false} = Info(),
    %% With room it is written by itself, and a restart has all of it.
    ok = sderl_fleet_disk:free(Dir, Call),
    ok = sderl_fleet:await(fun() ->
        #{problem := Now} = Info(),
        Now =:= ~"" orelse Now
    end, ?SOON_MS),
    #{kept := true} = Info(),
    ok = Call(application, stop, [sderl_alarms]),
    _ = Start(),
    ?assertEqual(lists:seq(1, 60), Silenced()),
    #{problem := ~"", kept := true} = Info().

in_folder(Test) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        lists:concat(["sderl-ad-", os:getpid(), "-",
                                      erlang:unique_integer([positive])])),
    ok = filelib:ensure_path(Dir),
    try
        Test(Dir)
    after
        _ = file:del_dir_r(Dir)
    end.
