%% SPDX-License-Identifier: Apache-2.0
-module(sderl_reproduce_node).
-moduledoc """
Calls a function on a fresh node with the flags that a claim is about, for measurements that
`bin/sderl bench vm` does not make; and makes a temporary folder for a run.
""".

-export([call/5, schedulers/1, with_folder/1]).

-define(MINUTES_10, 600_000).

-doc """
Starts a node with these arguments, calls the function on it, and ends it. A reason is a term for
`sderl_papers_reason:text/1`.
""".
-spec call(Args :: [string()], Label :: unicode:chardata(), module(), atom(), [term()]) ->
    {ok, term()} | {error, term()}.
call(Args, Label, Module, Function, Arguments) ->
    maybe
        ok ?= sderl_fleet:fits(1),
        {ok, Fleet} ?= sderl_fleet:start(#{
            families => [#{name => vm, count => 1, args => Args}],
            progress => sderl_progress:reporter([Label, ": starting a node"])
        }),
        try
            sderl_bench_nodes:on(Fleet, hd(sderl_fleet:nodes(Fleet)), Module, Function, Arguments,
                                 ?MINUTES_10)
        after
            sderl_fleet:stop(Fleet)
        end
    end.

-doc "The argument for so many schedulers.".
-spec schedulers(pos_integer()) -> [string()].
schedulers(N) -> ["+S", lists:concat([N, ":", N])].

-doc """
Makes a folder, calls the function with it, and removes it, also where the calling process is
killed meanwhile. A reason is a term for `sderl_papers_reason:text/1`.
""".
-spec with_folder(fun((file:filename()) -> {ok, Value} | {error, term()})) ->
    {ok, Value} | {error, term()}.
with_folder(Fun) ->
    Dir = filename:join(os:getenv("TMPDIR", "/tmp"),
                        ["sderl_reproduce_" | binary_to_list(binary:encode_hex(rand:bytes(8)))]),
    case filelib:ensure_path(Dir) of
        ok ->
            %% When the program is ended by a signal it waits for this process.
            Watcher = proc_lib:spawn(sderl_bench_vm_start, remove_after, [self(), Dir]),
            receive {Watcher, watching} -> ok end,
            try
                Fun(Dir)
            after
                _ = file:del_dir_r(Dir),
                exit(Watcher, kill)
            end;
        {error, Reason} ->
            {error, {said, ["cannot make the folder ", Dir, ": ", file:format_error(Reason)]}}
    end.
