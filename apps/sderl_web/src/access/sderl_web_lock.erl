%% SPDX-License-Identifier: Apache-2.0
-module(sderl_web_lock).
-moduledoc """
A lock between programs on one machine: the program that creates its file holds it.

A file older than ten seconds is that of a program that was killed, and is taken over. Every program
that sees it renames it, which only one can do, and looks at what it has renamed: where that is the
lock that another has made meanwhile, it is put back. Since that leaves a moment without a file, a
holder asks `is_held/1` before it does what must not be done by two.
""".

-include_lib("kernel/include/file.hrl").

-export([take/2, is_held/1, release/1]).
-export_type([lock/0]).

-define(STALE_S, 10).
-define(RETRY_MS, 20).
-define(MOST_BYTES, 1_000).

-doc "The file, and what its holder wrote into it.".
-opaque lock() :: {File :: binary(), Text :: binary()}.

-doc "Takes it within a time; an error in words.".
-spec take(File :: binary(), Ms :: non_neg_integer()) -> {ok, lock()} | {error, unicode:chardata()}.
take(File, Ms) ->
    take({File, unique()}, Ms, sderl_mon_clock:now_ms() + Ms).

unique() ->
    Random = binary:encode_hex(crypto:strong_rand_bytes(8), lowercase),
    iolist_to_binary([os:getpid(), $-, Random]).

take({File, Text} = Lock, Ms, Until) ->
    case file:open(File, [write, exclusive, raw, binary]) of
        {ok, Device} ->
            Written = file:write(Device, Text),
            case {Written, file:close(Device)} of
                {ok, ok} -> {ok, Lock};
                {ok, Error} -> unwritten(File, Error);
                {Error, _} -> unwritten(File, Error)
            end;
        {error, eexist} -> contend(seen(File), Lock, Ms, Until);
        {error, Reason} -> wrong("~ts: ~ts", [File, file:format_error(Reason)])
    end.

unwritten(File, {error, Reason}) ->
    _ = file:delete(File),
    wrong("~ts: ~ts", [File, file:format_error(Reason)]).

%% Others hold it for as long as one file takes to be written.
contend(no_file, {File, _}, _, _) ->
    wrong("~ts is no file, and stands where a lock belongs: remove it", [File]);
contend(Seen, {File, _} = Lock, Ms, Until) ->
    _ = is_stale(Seen) andalso take_over(Seen, File),
    case sderl_mon_clock:now_ms() < Until of
        true ->
            ok = timer:sleep(?RETRY_MS),
            take(Lock, Ms, Until);
        false ->
            wrong("another program has held ~ts for ~w s: if none runs that does, remove that file",
                  [File, ceil(Ms / 1000)])
    end.

%% The file system goes by the machine's clock, from which that of the virtual machine may differ.
is_stale({_, Made, _}) -> abs(sderl_mon_clock:machine_ms() div 1000 - Made) > ?STALE_S;
is_stale(gone) -> false.

%% What tells one lock from another.
seen(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, #file_info{type = regular, inode = Inode, mtime = Made, size = Size}}
          when Size =< ?MOST_BYTES ->
            {Inode, Made, file:read_file(File)};
        {ok, #file_info{}} -> no_file;
        {error, _} -> gone
    end.

take_over(Seen, File) ->
    Aside = <<File/binary, $., (unique())/binary>>,
    case file:rename(File, Aside) of
        ok ->
            %% No other name is overwritten by a link.
            _ = seen(Aside) =/= Seen andalso file:make_link(Aside, File),
            file:delete(Aside);
        {error, _} -> ok
    end.

-doc "Whether nobody has taken it over.".
-spec is_held(lock()) -> boolean().
is_held({File, Text}) -> file:read_file(File) =:= {ok, Text}.

-doc "Gives it back.".
-spec release(lock()) -> ok.
release({File, _} = Lock) ->
    _ = is_held(Lock) andalso file:delete(File),
    ok.

wrong(Format, Args) -> {error, io_lib:format(Format, Args)}.
