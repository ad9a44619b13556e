%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_ops_service).
-moduledoc """
The operations service in a virtual machine of its own, as `bin/sderl ops` starts it: asked over its
socket, and killed.
""".

-export([start/2, kill/1, signal/2, ask/2, ask/3, memory_mib/1, cpu_ms/1]).
-export_type([service/0]).

-type service() :: #{folder := file:filename(), os_pid := pos_integer(), keeper := pid()}.

-define(START_MS, 60_000).
-define(LOOK_MS, 50).

-doc """
Starts the service, with a folder of this name in that of the hosts. After a kill the new one goes
on with what the old one stored.
""".
-spec start(Name :: string(), sderl_bench_ops_hosts:hosts()) ->
    {ok, service()} | {error, unicode:chardata()}.
start(Name, #{folder := Base} = Hosts) ->
    Folder = filename:join(Base, Name),
    ok = filelib:ensure_path(Folder),
    Code = lists:concat(["case ", sderl_ops_service, ":run(hd(init:get_plain_arguments())) of "
                         "ok -> ok; {error, Why} -> io:put_chars(standard_error, [Why, 10]) end, "
                         "halt()."]),
    Paths = lists:append([["-pa", filename:absname(Path)]
                          || Path <- code:get_path(), Path =/= ".",
                             not lists:prefix(code:root_dir(), Path)]),
    Erl = ["erl", "-noinput", "+Bi", "-connect_all", "false", "-nocookie", "+sbwt", "none",
           "+sbwtdcpu", "none", "+sbwtdio", "none"] ++ Paths ++ ["-eval", Code, "-extra", Folder],
    {Words, Env} = sderl_bench_ops_hosts:inside(Erl, Hosts),
    Shell = ["-c", "cd \"$0\" && exec \"$@\" </dev/null >>console 2>&1", Folder | Words],
    Caller = self(),
    %% `priv/hosts.sh` kills this process with the hosts: its environment names their folder.
    Keeper = spawn(fun() ->
        Port = open_port({spawn_executable, "/bin/sh"}, [
            {args, Shell},
            {env, [{"ERL_CRASH_DUMP", filename:join(Folder, "erl_crash.dump")} | Env]},
            exit_status
        ]),
        Caller ! {self(), erlang:port_info(Port, os_pid)},
        receive {Port, {exit_status, _}} -> ok end
    end),
    receive
        {Keeper, {os_pid, OsPid}} ->
            Service = #{folder => Folder, os_pid => OsPid, keeper => Keeper},
            await(Service, erlang:monotonic_time(millisecond) + ?START_MS)
    end.

await(#{folder := Folder, keeper := Keeper} = Service, Deadline) ->
    case ask(#{do => hello}, Service) of
        {ok, _} ->
            {ok, Service};
        {error, _} = Error ->
            case {is_process_alive(Keeper), erlang:monotonic_time(millisecond) < Deadline} of
                {true, true} ->
                    receive after ?LOOK_MS -> await(Service, Deadline) end;
                {true, false} ->
                    Error;
                {false, _} ->
                    {ok, Said} = file:read_file(filename:join(Folder, "console")),
                    {error, ["the service did not start: ", string:trim(Said)]}
            end
    end.

-doc "Kills it, and returns when it has ended. The cluster goes on.".
-spec kill(service()) -> ok.
kill(#{keeper := Keeper} = Service) ->
    ok = signal("KILL", Service),
    Monitor = monitor(process, Keeper),
    receive {'DOWN', Monitor, process, Keeper, _} -> ok end.

-doc "Sends its virtual machine a signal of the operating system.".
-spec signal(string(), service()) -> ok.
signal(Name, #{os_pid := OsPid}) ->
    _ = os:cmd("kill -" ++ Name ++ " " ++ integer_to_list(OsPid)),
    ok.

-doc "The result of a request (`m:sderl_ops_wire`); an error is a sentence.".
-spec ask(map(), service()) -> {ok, #{binary() => term()}} | {error, unicode:chardata()}.
ask(Request, Service) -> ask(Request, fun(_) -> ok end, Service).

-doc "The same; `Tell` gets the messages before the result, and may end the calling process.".
-spec ask(map(), fun((sderl_ops_wire:answer()) -> term()), service()) ->
    {ok, #{binary() => term()}} | {error, unicode:chardata()}.
ask(Request, Tell, #{folder := Folder}) ->
    case sderl_ops_client:ask(Folder, Request#{who => ~"bench"}, Tell) of
        {done, Done} -> {ok, Done};
        not_running -> {error, "the service does not run"};
        {error, Text, []} -> {error, Text};
        {error, Text, Problems} -> {error, [Text, ": ", lists:join("; ", Problems)]}
    end.

-doc "The most resident memory of its virtual machine so far.".
-spec memory_mib(service()) -> float() | undefined.
memory_mib(#{os_pid := OsPid}) ->
    case sderl_bench_proc:memory_kib(integer_to_list(OsPid)) of
        {_, Most} -> Most / 1024;
        undefined -> undefined
    end.

-doc "Processor time of the service and of the programs that it ran or runs.".
-spec cpu_ms(service()) -> number() | undefined.
cpu_ms(#{os_pid := OsPid}) ->
    case sderl_bench_proc:tree(integer_to_list(OsPid)) of
        [] -> undefined;
        Pids -> sderl_bench_proc:used_ms(Pids)
    end.
