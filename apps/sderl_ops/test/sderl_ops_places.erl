%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_places).
-moduledoc "Folders for tests of operations.".

-export([root/0, in_folder/1]).

-doc "The tree that the working directory is in.".
-spec root() -> file:filename().
root() -> root(filename:absname("")).

root(Folder) ->
    case {filelib:is_regular(filename:join(Folder, "docs/ops-file.md")),
          filename:dirname(Folder)} of
        {true, _} -> Folder;
        {false, Up} when Up =/= Folder -> root(Up)
    end.

-doc "Calls the function with a folder of its own. Its path is short, for sockets in it.".
-spec in_folder(fun((file:filename()) -> Result)) -> Result.
in_folder(Fun) ->
    Name = lists:concat(["sderl-ops-", os:getpid(), "-", erlang:unique_integer([positive])]),
    Folder = filename:join(os:getenv("TMPDIR", "/tmp"), Name),
    ok = filelib:ensure_path(Folder),
    try
        Fun(Folder)
    after
        ok = file:del_dir_r(Folder)
    end.
