%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_replace).
-moduledoc """
Replaces a file at once: a reader finds the old or the new one, even after a crash.
""".

-export([write/2]).

-doc "Writes a file, and makes missing folders above it. After an error nothing new is left.".
-spec write(file:filename_all(), iodata()) -> ok | {error, file:posix() | badarg | terminated}.
write(File, Data) ->
    New = [File, ".new"],
    maybe
        ok ?= filelib:ensure_dir(File),
        {ok, Device} ?= file:open(New, [write, raw, binary]),
        Written = written(Device, Data),
        _ = file:close(Device),
        case Written of
            ok -> file:rename(New, File);
            {error, _} = Error ->
                _ = file:delete(New),
                Error
        end
    end.

%% On the disk before the name points to it.
written(Device, Data) ->
    maybe
        ok ?= file:write(Device, Data),
        file:sync(Device)
    end.
