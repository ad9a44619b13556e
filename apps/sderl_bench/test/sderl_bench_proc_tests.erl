%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_proc_tests).

-include_lib("eunit/include/eunit.hrl").

proc_test_() ->
    case filelib:is_dir("/proc/self") of
        true ->
            [
                {"this virtual machine", fun own/0},
                {"a program and what it runs", {timeout, 60, fun programs/0}},
                {"none", fun none/0}
            ];
        false ->
            []
    end.

own() ->
    {Own, OfEnded} = sderl_bench_proc:cpu_ms("self"),
    ?assert(Own > 0),
    {Again, OfEndedAgain} = sderl_bench_proc:cpu_ms(os:getpid()),
    ?assert(Again >= Own),
    ?assert(OfEndedAgain >= OfEnded),
    {Resident, Most} = sderl_bench_proc:memory_kib("self"),
    ?assert(0 < Resident andalso Resident =< Most),
    ?assertMatch([_], [Pid || {Pid, [_ | _]} <- sderl_bench_proc:emulators(), Pid =:= os:getpid()]).

%% The outer shell waits for the inner one, which waits for a line.
programs() ->
    Port = open_port({spawn_executable, "/bin/sh"},
                     [{args, ["-c", "sh -c 'echo ready; read line'; true"]}, {line, 100}]),
    receive {Port, {data, {eol, "ready"}}} -> ok end,
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    Shell = integer_to_list(Pid),
    Tree = sderl_bench_proc:tree(Shell),
    ?assertMatch([Shell, _], Tree),
    ?assert(is_integer(sderl_bench_proc:used_ms(Tree))),
    true = port_close(Port).

none() ->
    ?assertEqual(undefined, sderl_bench_proc:cpu_ms("none")),
    ?assertEqual(undefined, sderl_bench_proc:memory_kib("none")),
    ?assertEqual([], sderl_bench_proc:tree("none")),
    ?assertEqual(0, sderl_bench_proc:used_ms(["none"])).
