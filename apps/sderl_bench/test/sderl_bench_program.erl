%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_program).
-moduledoc "Where the program is, for tests that run it as a person does.".

-export([file/0]).

-doc "`bin/sderl` of the tree that the working directory is in.".
-spec file() -> file:filename().
file() -> file(filename:absname("")).

file(Dir) ->
    Program = filename:join([Dir, "bin", "sderl"]),
    case {filelib:is_regular(Program), filename:dirname(Dir)} of
        {true, _} -> Program;
        {false, Up} when Up =/= Dir -> file(Up)
    end.
