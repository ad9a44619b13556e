%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_ops_service).
-moduledoc """
The service of operations in a virtual machine of its own, as `bin/sderl ops` starts it, asked over
its socket, stopped and killed.
""".

-export([start/2, stop/1, kill/1, signal/2, ask/2, ask/3, memory_mib/1, cpu_ms/1]).
-export_type([service/0]).

-type service() :: #{folder := file:filename(), os_pid := pos_integer(), keeper := pid()}.

-define(START_MS, 60_000).
-define(LOOK_MS, 50).

-doc """
Starts it with its folder in that of the hosts; one that was killed goes on with what it stored.
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
    %% The killer of the hosts finds this process by its environment.
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

-doc "Ends it; the cluster goes on.".
-spec stop(service()) -> ok.
stop(Service) ->
    _ = ask(#{do => stop}, Service),
    await_end(Service).

-doc "Kills it at once.".
-spec kill(service()) -> ok.
kill(Service) ->
    ok = signal("KILL", Service),
    await_end(Service).

await_end(#{keeper := Keeper}) ->
    Monitor = monitor(process, Keeper),
    receive {'DOWN', Monitor, process, Keeper, _} -> ok end.

-doc "Sends its virtual machine a signal of the operating system.".
-spec signal(string(), service()) -> ok.
signal(Name, #{os_pid := OsPid}) ->
    _ = os:cmd("kill -" ++ Name ++ " " ++ integer_to_list(OsPid)),
    ok.

-doc "What the request came to (`m:sderl_ops_wire`); an error is a sentence.".
-spec ask(map(), service()) -> {ok, #{binary() => term()}} | {error, unicode:chardata()}.
ask(Request, Service) -> ask(Request, fun(_) -> ok end, Service).

-doc "The same with a function for what is told on the way; it may end the calling process.".
-spec ask(map(), fun((sderl_ops_wire:answer()) -> term()), service()) ->
    {ok, #{binary() => term()}} | {error, unicode:chardata()}.
ask(Request, Tell, #{folder := Folder}) ->
    case sderl_ops_client:ask(Folder, Request#{who => ~"bench"}, Tell) of
        {done, Done} -> {ok, Done};
        not_running -> {error, "the service does not run"};
        {error, Text, []} -> {error, Text};
        {error, Text, Problems} -> {error, [Text, ": ", lists:join("; ", Problems)]}
    end.

-doc "The most memory that its virtual machine had, resident.".
-spec memory_mib(service()) -> float() | undefined.
memory_mib(#{os_pid := OsPid}) ->
    case sderl_bench_proc:memory_kib(integer_to_list(OsPid)) of
        {_, Most} -> Most / 1024;
        undefined -> undefined
    end.

-doc "Processor time that it and the programs that it ran, or runs, have needed.".
-spec cpu_ms(service()) -> number() | undefined.
cpu_ms(#{os_pid := OsPid}) ->
    case sderl_bench_proc:tree(integer_to_list(OsPid)) of
        [] -> undefined;
        Pids -> sderl_bench_proc:used_ms(Pids)
    end.
