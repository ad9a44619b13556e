%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_store).
-moduledoc """
The file of the alarms: alarms, silences, and the changes that wait for routes.

A file that is damaged is kept under another name, and not used. Only one monitoring node writes the
file: `alarms.lock` beside it says which (`m:sderl_mon_folder_lock`).
""".

-export([take/1, read/1, write/2, leave/1]).
-export_type([kept/0]).

-doc "The content of the file. Files of earlier versions lack `version`.".
-type kept() :: #{core := sderl_alarms_core:saved(), outbox := sderl_alarms_outbox:saved(),
                  version => sderl_alarms_replica:version()}.

-define(HEAD, "sderl-alarms-1\n").

-doc """
Makes this program the writer of a file. `held`: another one is. Errors are sentences.
""".
-spec take(file:filename_all()) -> ok | {held | error, binary()}.
take(File) ->
    maybe
        ok ?= filelib:ensure_dir(File),
        {ok, _} ?= sderl_mon_folder_lock:take(lock(File)),
        ok
    else
        {error, Why} when is_atom(Why) -> {error, sentence(File, Why)};
        {error, Why} ->
            case sderl_mon_folder_lock:holder(lock(File)) of
                {ok, Pid} -> {held, held(File, Pid)};
                none ->
                    {error, sderl_mon_text:text("~ts; alarms are kept in memory alone", [Why])}
            end
    end.

held(File, Pid) ->
    sderl_mon_text:text("~ts is written by another monitoring node, process ~ts: alarms are kept "
                        "in memory alone; end that one, or name a folder of its own (--state), "
                        "and start this one anew", [File, Pid]).

lock(File) -> filename:join(filename:dirname(File), "alarms.lock").

-doc "Reads the file; `none` if there is none. Errors are sentences.".
-spec read(file:filename_all()) -> {ok, kept()} | none | {error, binary()}.
read(File) ->
    case file:read_file(File, [raw]) of
        {ok, <<?HEAD, Crc:32, Packed/binary>>} ->
            case erlang:crc32(Packed) of
                Crc -> unpack(Packed, File);
                _ -> damaged(File)
            end;
        {ok, _} -> damaged(File);
        {error, enoent} -> none;
        {error, Why} -> {error, sentence(File, Why)}
    end.

unpack(Packed, File) ->
    try binary_to_term(Packed, [safe]) of
        #{core := #{}, outbox := #{}} = Kept -> {ok, Kept};
        _ -> damaged(File)
    catch
        error:badarg -> damaged(File)
    end.

damaged(File) ->
    Aside = [File, ".damaged"],
    _ = file:rename(File, Aside),
    {error, sderl_mon_text:text("~ts is damaged: it is kept as ~ts, and the alarms begin anew",
                                [File, Aside])}.

-doc "Writes the file. Errors are sentences.".
-spec write(file:filename_all(), kept()) -> ok | {error, binary()}.
write(File, Kept) ->
    Packed = term_to_binary(Kept, [{compressed, 1}]),
    maybe
        %% At the start the folder may not have been there.
        ok ?= take(File),
        ok ?= sderl_mon_replace:write(File, [?HEAD, <<(erlang:crc32(Packed)):32>>, Packed])
    else
        {error, Why} when is_atom(Why) -> {error, sentence(File, Why)};
        {_, Why} -> {error, Why}
    end.

-doc "Lets another program write the file.".
-spec leave(file:filename_all()) -> ok.
leave(File) -> sderl_mon_folder_lock:leave(lock(File)).

sentence(File, Why) ->
    sderl_mon_text:text("~ts: ~ts; alarms are kept in memory alone",
                        [File, file:format_error(Why)]).
