%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_archive).
-moduledoc """
Releases as archives, to be sent to hosts. A release is identified by the sha256 of its archive. The
same files give the same archive, so a release that was packed once is found again by its content.

The folder of archives has `SHA.tar.gz`, and in `packed/` which archive came from which content.
""".

-export([prepare/2, keep_only/3]).
-export([format_error/1]).
-export_type([source/0, why/0]).

-include_lib("kernel/include/file.hrl").

-doc """
An archive with its expected checksum, if one is given; a release's folder; or the `ebin` folders of
applications, as patterns with `*`: they are packed as `lib/APPLICATION/ebin`, with `priv` if there
is one. Relative paths begin at the current folder.
""".
-type source() ::
    {archive, file:filename_all(), Sha256 :: binary() | undefined}
    | {folder, file:filename_all()}
    | {code, [file:filename_all(), ...]}.

-type why() ::
    {cannot_read, file:filename_all(), file:posix() | badarg | terminated | system_limit}
    | {cannot_write, file:filename_all(), file:posix() | badarg | terminated | system_limit}
    | {wrong_checksum, file:filename_all(), Expected :: binary(), Found :: binary()}
    | {nothing_there, file:filename_all()}
    | {not_a_file, file:filename_all()}
    | {twice, binary(), file:filename_all()}.

-record(entry, {
    name :: binary(),
    from :: file:filename_all(),
    kind :: sderl_ops_tar:kind()
}).

-define(CHUNK, 262_144).

-doc "The release's checksum and its archive in the folder, which is made if it is missing.".
-spec prepare(source(), Folder :: file:filename_all()) ->
    {ok, Sha :: binary(), Archive :: file:filename_all()} | {error, why()}.
prepare(Source, Folder) ->
    try
        ensure_folder(filename:join(Folder, "packed")),
        Sha = prepared(Source, Folder),
        Archive = archive(Folder, Sha),
        %% So that keep_only/3 takes it for one in use.
        _ = file:change_time(Archive, calendar:local_time()),
        {ok, Sha, Archive}
    catch
        throw:{?MODULE, Why} -> {error, Why}
    end.

-doc """
Deletes all other archives of the folder, and parts that interrupted calls left, except those that
were used within the last `UnusedS` seconds. With 0 no archive may be prepared at the same time.
""".
-spec keep_only([Sha :: binary()], Folder :: file:filename_all(), UnusedS :: non_neg_integer()) ->
    ok.
keep_only(Shas, Folder, UnusedS) ->
    Kept = [filename:basename(archive(Folder, Sha)) || Sha <- Shas] ++ [~"packed"],
    Before = erlang:system_time(second) - UnusedS,
    case file:list_dir_all(Folder) of
        {ok, Names} ->
            Others = [File || Name <- Names,
                              not lists:member(unicode:characters_to_binary(Name), Kept),
                              File <- [filename:join(Folder, Name)],
                              UnusedS =:= 0 orelse is_older(File, Before)],
            lists:foreach(fun(File) -> _ = file:delete(File) end, Others);
        {error, _} ->
            ok
    end.

is_older(File, Seconds) ->
    case file:read_file_info(File, [{time, posix}]) of
        {ok, #file_info{mtime = Changed}} -> Changed < Seconds;
        {error, _} -> false
    end.

archive(Folder, Sha) -> filename:join(Folder, <<Sha/binary, ".tar.gz">>).

%% The copy is checked, so that hosts are sent what was checked.
prepared({archive, File, Expected}, Folder) ->
    case is_binary(Expected) andalso sum_of(archive(Folder, Expected)) of
        Expected ->
            Expected;
        _ ->
            Part = part(Folder),
            copy(File, Part),
            case sum_of(Part) of
                Found when Expected =:= undefined; Found =:= Expected ->
                    rename(Part, archive(Folder, Found)),
                    Found;
                Found ->
                    _ = file:delete(Part),
                    fail({wrong_checksum, File, Expected, Found})
            end
    end;
prepared({folder, Path}, Folder) ->
    case entries(Path, ~"") of
        [] -> fail({nothing_there, Path});
        Entries -> packed(Entries, Folder)
    end;
prepared({code, Patterns}, Folder) ->
    Found = [{Pattern, Path}
             || Pattern <- Patterns,
                Path <- case filelib:wildcard(unicode:characters_to_list(Pattern)) of
                    [] -> fail({nothing_there, Pattern});
                    Paths -> Paths
                end],
    Applications = lists:foldl(fun add_application/2, #{}, [Path || {_, Path} <- Found]),
    packed([Entry || Name := Ebin <- maps:iterator(Applications, ordered),
                     Entry <- application_entries(Name, Ebin)], Folder).

%% The application's file is named after it; the folder may have a version in its name.
add_application(Ebin, Applications) ->
    Name = case filelib:wildcard("*.app", Ebin) of
        [App | _] -> name(filename:rootname(App));
        [] -> name(filename:basename(filename:dirname(filename:absname(Ebin))))
    end,
    case Applications of
        #{Name := Other} -> fail({twice, Name, Other});
        #{} -> Applications#{Name => Ebin}
    end.

application_entries(Name, Ebin) ->
    Priv = filename:join(filename:dirname(Ebin), "priv"),
    entries(Ebin, <<"lib/", Name/binary, "/ebin/">>)
        ++ case filelib:is_dir(Priv) of
            true -> entries(Priv, <<"lib/", Name/binary, "/priv/">>);
            false -> []
        end.

%% ------------------------------------------------------------------ what is in a folder

%% Files in the order of their names. Empty folders are left out.
entries(Folder, Prefix) ->
    case file:list_dir_all(Folder) of
        {ok, Names} -> lists:append([entry(Folder, Prefix, Name) || Name <- lists:sort(Names)]);
        {error, Why} -> fail({cannot_read, Folder, Why})
    end.

entry(Folder, Prefix, Name) ->
    From = filename:join(Folder, Name),
    Inside = <<Prefix/binary, (name(Name))/binary>>,
    case file:read_link_info(From, [raw]) of
        {ok, #file_info{type = directory}} ->
            entries(From, <<Inside/binary, "/">>);
        {ok, #file_info{type = regular, size = Size, mode = Mode}} ->
            [#entry{name = Inside, from = From, kind = {file, Size, mode(Mode)}}];
        {ok, #file_info{type = symlink}} ->
            [#entry{name = Inside, from = From, kind = {link, target(From)}}];
        {ok, _} ->
            fail({not_a_file, From});
        {error, Why} ->
            fail({cannot_read, From, Why})
    end.

name(Name) when is_binary(Name) -> Name;
name(Name) -> unicode:characters_to_binary(Name, unicode, file:native_name_encoding()).

%% Modes are normalised: they differ from one checkout to the next.
mode(Mode) when Mode band 8#111 =/= 0 -> 8#755;
mode(_) -> 8#644.

target(From) ->
    case file:read_link_all(From) of
        {ok, Target} -> name(Target);
        {error, Why} -> fail({cannot_read, From, Why})
    end.

%% ------------------------------------------------------------------ packing

packed(Entries, Folder) ->
    Content = hex(lists:foldl(fun sum_entry/2, crypto:hash_init(sha256), Entries)),
    Known = filename:join([Folder, "packed", Content]),
    case file:read_file(Known) of
        {ok, Sha} ->
            case sum_of(archive(Folder, Sha)) of
                Sha -> Sha;
                _ -> pack(Entries, Folder, Known)
            end;
        {error, _} ->
            pack(Entries, Folder, Known)
    end.

sum_entry(#entry{name = Name, from = From, kind = Kind}, State) ->
    Header = term_to_binary({Name, Kind}, [deterministic]),
    case Kind of
        {link, _} -> crypto:hash_update(State, Header);
        {file, _, _} -> fold_file(From, fun crypto:hash_update/2, crypto:hash_update(State, Header))
    end.

pack(Entries, Folder, Known) ->
    Part = part(Folder),
    %% Without delayed writes: bytes that one of them finds no room for may be lost silently.
    Out = open(Part, [write, raw, binary], cannot_write),
    Zip = zlib:open(),
    try
        %% The format of gzip, without a time in its header.
        ok = zlib:deflateInit(Zip, default, deflated, 16 + 15, 8, default),
        lists:foreach(fun(Entry) -> pack_entry(Entry, Zip, Out, Part) end, Entries),
        write(Out, Part, zlib:deflate(Zip, sderl_ops_tar:closing(), finish)),
        ok = zlib:deflateEnd(Zip),
        case file:close(Out) of
            ok -> ok;
            {error, Why} -> fail({cannot_write, Part, Why})
        end
    catch
        Class:Reason:Stack ->
            _ = file:close(Out),
            _ = file:delete(Part),
            erlang:raise(Class, Reason, Stack)
    after
        zlib:close(Zip)
    end,
    Sha = sum_of(Part),
    rename(Part, archive(Folder, Sha)),
    Index = part(Folder),
    case file:write_file(Index, Sha) of
        ok -> rename(Index, Known);
        {error, No} ->
            _ = file:delete(Index),
            fail({cannot_write, Index, No})
    end,
    Sha.

pack_entry(#entry{name = Name, from = From, kind = Kind}, Zip, Out, Part) ->
    Put = fun(Data, Written) ->
        write(Out, Part, zlib:deflate(Zip, Data)),
        Written + iolist_size(Data)
    end,
    _ = Put(sderl_ops_tar:entry(Name, Kind), 0),
    case Kind of
        {link, _} ->
            ok;
        {file, Size, _} ->
            case fold_file(From, fun(Written, Data) -> Put(Data, Written) end, 0) of
                Size -> _ = Put(sderl_ops_tar:padding(Size), 0), ok;
                %% It changed while it was packed.
                _ -> fail({cannot_read, From, terminated})
            end
    end.

%% ------------------------------------------------------------------ files

sum_of(File) ->
    case filelib:is_regular(File) of
        true -> hex(fold_file(File, fun crypto:hash_update/2, crypto:hash_init(sha256)));
        false -> none
    end.

hex(State) -> binary:encode_hex(crypto:hash_final(State), lowercase).

fold_file(File, Fun, State) ->
    In = open(File, [read, raw, binary], cannot_read),
    try
        fold_open(In, File, Fun, State)
    after
        _ = file:close(In)
    end.

fold_open(In, File, Fun, State) ->
    case file:read(In, ?CHUNK) of
        {ok, Data} -> fold_open(In, File, Fun, Fun(State, Data));
        eof -> State;
        {error, Why} -> fail({cannot_read, File, Why})
    end.

copy(From, To) ->
    Out = open(To, [write, raw, binary], cannot_write),
    try
        fold_file(From, fun(ok, Data) -> write(Out, To, Data) end, ok)
    catch
        throw:Failure ->
            _ = file:delete(To),
            throw(Failure)
    after
        _ = file:close(Out)
    end.

open(File, Modes, Failure) ->
    case file:open(File, Modes) of
        {ok, Device} -> Device;
        {error, Why} -> fail({Failure, File, Why})
    end.

write(Out, File, Data) ->
    case file:write(Out, Data) of
        ok -> ok;
        {error, Why} -> fail({cannot_write, File, Why})
    end.

rename(From, To) ->
    case file:rename(From, To) of
        ok -> ok;
        {error, Why} -> fail({cannot_write, To, Why})
    end.

%% Two calls at the same time must not write into one file.
part(Folder) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    filename:join(Folder, ["part-", os:getpid(), "-", Unique]).

ensure_folder(Folder) ->
    case filelib:ensure_path(Folder) of
        ok -> ok;
        {error, Why} -> fail({cannot_write, Folder, Why})
    end.

-spec fail(why()) -> no_return().
fail(Why) -> throw({?MODULE, Why}).

-doc "A sentence for people.".
-spec format_error(why()) -> unicode:chardata().
format_error({wrong_checksum, File, Expected, Found}) ->
    io_lib:format("~ts: its sha256 is ~ts, and should be ~ts", [File, Found, Expected]);
format_error({nothing_there, Path}) ->
    io_lib:format("~ts: no file is there to be packed", [Path]);
format_error({not_a_file, Path}) ->
    io_lib:format("~ts is not a file, folder or link, and cannot be packed", [Path]);
format_error({twice, Name, Path}) ->
    io_lib:format("the application ~ts is there twice, once in ~ts", [Name, Path]);
format_error({What, Path, terminated}) when What =:= cannot_read; What =:= cannot_write ->
    io_lib:format("~ts changed while it was packed; try again", [Path]);
format_error({cannot_read, Path, Why}) ->
    io_lib:format("~ts cannot be read: ~ts", [Path, file:format_error(Why)]);
format_error({cannot_write, Path, Why}) ->
    io_lib:format("~ts cannot be written: ~ts", [Path, file:format_error(Why)]).
