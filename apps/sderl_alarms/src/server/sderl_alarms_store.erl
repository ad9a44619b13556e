%% SPDX-License-Identifier: Apache-2.0
-module(sderl_alarms_store).
-moduledoc """
The file of the alarms: what people said, what is raised, and what routes are still to be told.

A file that is damaged is kept under another name, and nothing of it is believed.
""".

-export([read/1, write/2]).

-define(HEAD, "sderl-alarms-1\n").

-doc "What was written last. `none`: nothing. Errors are sentences.".
-spec read(file:filename_all()) -> {ok, map()} | none | {error, binary()}.
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

-doc "Writes it. Errors are sentences.".
-spec write(file:filename_all(), map()) -> ok | {error, binary()}.
write(File, Kept) ->
    Packed = term_to_binary(Kept, [{compressed, 1}]),
    case sderl_mon_replace:write(File, [?HEAD, <<(erlang:crc32(Packed)):32>>, Packed]) of
        ok -> ok;
        {error, Why} -> {error, sentence(File, Why)}
    end.

sentence(File, Why) ->
    sderl_mon_text:text("~ts: ~ts; alarms are kept in memory alone",
                        [File, file:format_error(Why)]).
