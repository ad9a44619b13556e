%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_disk).
-moduledoc """
A virtual machine with a small disk: a file system of some megabytes in a namespace of its own,
which can be filled, and have room again.
""".

-export([eunit/2, with/3, fill/3, free/2]).
-export([filled/2]).

-type call() :: fun((module(), atom(), [term()]) -> term()).

-define(CALL_MS, 120_000).
-define(WHY, "no file system can be had in a namespace (unshare -rm)").

-doc """
The tests of EUnit in which `with/3` is called. EUnit has no way to skip one: where there is no
namespace there are none, and it is said why.
""".
-spec eunit(Name :: string(), Tests :: term()) -> term().
eunit(Name, Tests) ->
    case is_possible() of
        true ->
            {Name, Tests};
        false ->
            io:format(user, "skipped: ~ts on a full disk: ~ts~n", [Name, ?WHY]),
            []
    end.

is_possible() ->
    os:cmd("unshare -rm sh -c 'mount -t tmpfs none /tmp && echo there' 2>&1") =:= "there\n".

-doc """
Calls the test with the folder, which is the disk, and a function that calls functions in the
virtual machine that has it. Where no namespace can be had, a case of Common Test is skipped.
""".
-spec with(file:filename(), Size :: string(), fun((file:filename(), call()) -> term())) ->
    ok | {skip, Why :: string()}.
with(Dir, Size, Test) ->
    case is_possible() of
        true ->
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
        false ->
            {skip, ?WHY}
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
    {ok, _} = file:position(Fd, max(0, Size - Left)),
    ok = file:truncate(Fd),
    file:close(Fd).

write(Fd, Bytes) ->
    case file:write(Fd, Bytes) of
        ok -> write(Fd, Bytes);
        {error, enospc} -> ok
    end.
