%% SPDX-License-Identifier: Apache-2.0
-module(sderl_cli_program).
-moduledoc "The program, for tests that run it as a person does.".

-export([file/0, run/2, open/2, open/3, interruptible/2, rest/1]).

-doc "`bin/sderl` of the tree that the working directory is in.".
-spec file() -> file:filename().
file() -> file(filename:absname("")).

file(Dir) ->
    Program = filename:join([Dir, "bin", "sderl"]),
    case {filelib:is_regular(Program), filename:dirname(Dir)} of
        {true, _} -> Program;
        {false, Up} when Up =/= Dir -> file(Up)
    end.

-doc "Runs it for the nodes of a fleet: its exit status and all that it said.".
-spec run(pid(), [string()]) -> {0..255, binary()}.
run(Fleet, Args) -> rest(open(Fleet, Args)).

-doc "Starts it, at home with the fleet's cookie, or elsewhere.".
-spec open(pid(), [string()]) -> port().
open(Fleet, Args) ->
    #{home := Home} = sderl_fleet:connection_info(Fleet),
    open(Fleet, filename:absname(Home), Args).

-spec open(pid(), Home :: file:filename(), [string()]) -> port().
open(Fleet, Home, Args) ->
    #{epmd_port := Epmd} = sderl_fleet:connection_info(Fleet),
    interruptible([file() | Args], [{"HOME", Home}, {"ERL_EPMD_PORT", integer_to_list(Epmd)}]).

-doc """
Starts a command that Ctrl-C ends: what runs in the background, as under `nohup`, is started with
that signal ignored, and so would be all that it starts. A caller that ends before it takes it
along.
""".
-spec interruptible([file:filename(), ...], [{string(), string() | false}]) -> port().
interruptible(Command, Env) ->
    [Program | Args] = default_interrupt() ++ Command,
    Port = open_port({spawn_executable, Program},
                     [{args, Args}, {env, Env}, exit_status, binary, use_stdio, stderr_to_stdout]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    Owner = self(),
    _ = spawn(fun() -> end_with(Owner, Port, OsPid) end),
    Port.

end_with(Owner, Port, OsPid) ->
    Caller = monitor(process, Owner),
    Open = monitor(port, Port),
    receive
        {'DOWN', Caller, process, Owner, _} -> ok;
        {'DOWN', Open, port, Port, _} -> ok
    end,
    %% A port closes when its program has ended, and when its owner has.
    is_process_alive(Owner) orelse os:cmd("kill -TERM " ++ integer_to_list(OsPid)).

%% Signals that are ignored stay so over exec; a shell cannot undo it. The process keeps its number.
default_interrupt() ->
    case os:find_executable("env") of
        Env when is_list(Env) ->
            case os:cmd("env --default-signal=INT echo yes") of
                "yes" ++ _ -> [Env, "--default-signal=INT"];
                _ -> perl()
            end;
        false -> perl()
    end.

perl() -> [os:find_executable("perl"), "-e", "$SIG{INT} = 'DEFAULT'; exec @ARGV", "--"].

-doc "Waits for its end.".
-spec rest(port()) -> {0..255, binary()}.
rest(Port) -> rest(Port, <<>>).

rest(Port, Seen) ->
    receive
        {Port, {data, Data}} -> rest(Port, <<Seen/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Seen}
    end.
