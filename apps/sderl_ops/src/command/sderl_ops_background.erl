%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_background).
-moduledoc """
Starts a service of operations that outlives the command that started it: a virtual machine in a
session of its own, whose log is in the service's folder.
""".

-export([start/2]).

-define(START_MS, 60_000).
-define(LOOK_MS, 50).

-doc """
Starts it by calling `Module:main/1` with the folder in a new virtual machine, and waits until it
answers. An error has its last output.
""".
-spec start(Folder :: file:filename(), module()) -> ok | {error, unicode:chardata()}.
start(Folder, Module) ->
    maybe
        ok ?= sderl_ops_place:make(Folder),
        {ok, _} ?= sderl_ops_place:socket(Folder),
        {ok, Pid} ?= spawn_machine(Folder, Module),
        Deadline = erlang:monotonic_time(millisecond) + ?START_MS,
        await(Folder, Pid, Deadline)
    end.

%% The shell ends at once, so that the virtual machine has no parent.
spawn_machine(Folder, Module) ->
    case os:find_executable("erl") of
        false ->
            {error, "there is no erl on the PATH"};
        Erl ->
            Eval = lists:concat([Module, ":main(init:get_plain_arguments())."]),
            Arguments = ["-noinput", "+Bi", "-connect_all", "false", "-nocookie",
                         "-epmd_module", atom_to_list(sderl_ops_ports),
                         "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"] ++
                lists:append([["-pa", Path] || Path <- code_paths()]) ++
                ["-eval", Eval, "-extra", Folder],
            Script = "cd \"$0\" || exit 1\n"
                     "set_sid=$(command -v setsid) || set_sid=\n"
                     "$set_sid \"$@\" </dev/null >console 2>&1 &\n"
                     "echo $!\n",
            Port = open_port({spawn_executable, "/bin/sh"}, [
                {args, ["-c", Script, Folder, Erl | Arguments]},
                {env, [{"ERL_CRASH_DUMP", filename:join(Folder, "erl_crash.dump")},
                       {"SDERL_TTY", "0"}]},
                exit_status, binary, stderr_to_stdout
            ]),
            read_pid(Port, <<>>)
    end.

%% Without OTP's own paths, which the virtual machine has anyway.
code_paths() ->
    [filename:absname(Path) || Path <- code:get_path(), Path =/= ".",
                               not lists:prefix(code:root_dir(), Path)].

read_pid(Port, Said) ->
    receive
        {Port, {data, Bytes}} ->
            read_pid(Port, <<Said/binary, Bytes/binary>>);
        {Port, {exit_status, 0}} ->
            {ok, string:trim(Said)};
        {Port, {exit_status, _}} ->
            {error, ["the service cannot be started: ", string:trim(Said)]}
    end.

await(Folder, Pid, Deadline) ->
    Request = #{do => hello, who => ~"start"},
    case sderl_ops_client:ask(Folder, Request, fun(_) -> ok end) of
        {done, _} ->
            ok;
        not_running ->
            case {is_alive(Pid), erlang:monotonic_time(millisecond) < Deadline} of
                {false, _} ->
                    {error, ["the service did not start: ", said(Folder)]};
                {true, false} ->
                    {error, ["the service does not answer; its log may tell why: ",
                             sderl_ops_place:log(Folder)]};
                {true, true} ->
                    receive after ?LOOK_MS -> await(Folder, Pid, Deadline) end
            end;
        {error, Text, _} ->
            {error, Text}
    end.

%% Without /proc only the deadline ends the waiting.
is_alive(Pid) ->
    not filelib:is_dir("/proc/self") orelse filelib:is_dir(filename:join("/proc", Pid)).

said(Folder) ->
    case file:read_file(filename:join(Folder, "console")) of
        {ok, Bytes} when Bytes =/= <<>> ->
            case unicode:characters_to_binary(Bytes) of
                Text when is_binary(Text) -> string:slice(string:trim(Text), 0, 2000);
                _ -> "it wrote no text"
            end;
        _ ->
            ["it wrote nothing; its log is ", sderl_ops_place:log(Folder)]
    end.
