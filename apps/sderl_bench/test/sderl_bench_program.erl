%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_program).
-moduledoc "The program, for tests that run it as a person does.".

-export([file/0, run/2, open/2, open/3, rest/1]).

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
    open_port({spawn_executable, file()}, [
        {args, Args},
        {env, [{"HOME", Home}, {"ERL_EPMD_PORT", integer_to_list(Epmd)}]},
        exit_status, binary, use_stdio, stderr_to_stdout
    ]).

-doc "Waits for its end.".
-spec rest(port()) -> {0..255, binary()}.
rest(Port) -> rest(Port, <<>>).

rest(Port, Seen) ->
    receive
        {Port, {data, Data}} -> rest(Port, <<Seen/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Seen}
    end.
