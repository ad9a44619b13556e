%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_disk).
-moduledoc """
A virtual machine with a small disk: a file system of some megabytes in a namespace of its own,
which can be filled, and have room again.
""".

-export([with/3, fill/3, free/2]).
-export([filled/2]).

-type call() :: fun((module(), atom(), [term()]) -> term()).

-define(CALL_MS, 120_000).

-doc """
Calls the test with the folder, which is the disk, and a function that calls functions in the
virtual machine that has it. Nothing is tested where no namespace can be had.
""".
-spec with(file:filename(), Size :: string(), fun((file:filename(), call()) -> term())) -> ok.
with(Dir, Size, Test) ->
    case os:cmd("unshare -rm true && echo there") of
        "there\n" ->
            Mount = "mount -t tmpfs -o size=" ++ Size ++ " none \"$0\" && exec erl \"$@\"",
            {ok, Peer, _} = peer:start_link(#{
                connection => standard_io, wait_boot => ?CALL_MS,
                exec => {os:find_executable("unshare"), ["-rm", "sh", "-c", Mount, Dir]},
                args => lists:append([["-pa", Path] || Path <- code:get_path(),
                                                       not lists:prefix(code:root_dir(), Path)])
            }),
            try
                Test(Dir, fun(M, F, A) -> peer:call(Peer, M, F, A, ?CALL_MS) end),
                ok
            after
                peer:stop(Peer)
            end;
        _ ->
            ok
    end.

-doc "Fills the disk but for so many bytes.".
-spec fill(file:filename(), Left :: non_neg_integer(), call()) -> ok.
fill(Dir, Left, Call) -> Call(?MODULE, filled, [filename:join(Dir, "filler"), Left]).

-doc "Takes away what fills it.".
-spec free(file:filename(), call()) -> ok.
free(Dir, Call) -> Call(file, delete, [filename:join(Dir, "filler")]).

-doc false.
-spec filled(file:filename(), non_neg_integer()) -> ok.
filled(File, Left) ->
    {ok, Fd} = file:open(File, [write, raw]),
    ok = write(Fd, binary:copy(~"x", 65_536)),
    {ok, Size} = file:position(Fd, eof),
    {ok, _} = file:position(Fd, Size - Left),
    ok = file:truncate(Fd),
    file:close(Fd).

write(Fd, Bytes) ->
    case file:write(Fd, Bytes) of
        ok -> write(Fd, Bytes);
        {error, enospc} -> ok
    end.
