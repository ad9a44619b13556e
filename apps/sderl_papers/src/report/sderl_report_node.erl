%% SPDX-License-Identifier: Apache-2.0
-module(sderl_report_node).
-moduledoc """
Finds Node.js on the PATH, and installs the library that draws plots once into the build folder.

`priv/report/package-lock.json` has the library's version and checksums; the name of the folder that
it is installed into has a hash of that file. It is installed into another folder that is then
renamed, so that it is complete or not there, also when two commands run at the same time. No
install script of a package is run.
""".

-export([ready/0, ready/2, home/0]).
-export_type([installed/0]).

-define(OLDEST, 20).
-define(VERSION_MS, 30_000).
-define(INSTALL_MS, 300_000).
%% The usual time of an installation, for the progress bar.
-define(USUAL_MS, 10_000).
-define(FILES, ["package.json", "package-lock.json"]).
-define(SCRIPT, "draw.mjs").

-doc "The program, and the script that draws.".
-type installed() :: #{node := file:filename(), script := file:filename()}.

-doc "As `ready/2`, in the build folder and with the PATH of this process.".
-spec ready() -> {ok, installed()} | {error, sderl_command:text()}.
ready() -> ready(home(), os:getenv("PATH", "")).

-doc "Where it is installed: `_build/report`.".
-spec home() -> file:filename().
home() -> code:lib_dir(sderl_papers) ++ "/../../../report".

-doc """
Makes sure that plots can be drawn, with a library installed below `Home`. An error says what is
missing.
""".
-spec ready(Home :: file:filename(), Path :: string()) ->
    {ok, installed()} | {error, sderl_command:text()}.
ready(Home, Path) ->
    Source = filename:join(code:priv_dir(sderl_papers), "report"),
    maybe
        {ok, Node} ?= program("node", Path),
        ok ?= recent(Node),
        {ok, Folder} ?= folder(Source, Home),
        ok ?= installed(Source, Folder, Path),
        {ok, Script} ?= script(Source, Folder),
        {ok, #{node => Node, script => Script}}
    end.

program(Name, Path) ->
    case os:find_executable(Name, Path) of
        false ->
            {error, ["there is no program ", Name, " on this machine: install Node.js ",
                     integer_to_list(?OLDEST), " or newer"]};
        File -> {ok, File}
    end.

recent(Node) ->
    case sderl_bench_program:run(Node, ["--version"], #{timeout => ?VERSION_MS}) of
        {ok, 0, <<"v", Version/binary>>} ->
            case string:to_integer(Version) of
                {Major, _} when is_integer(Major), Major >= ?OLDEST -> ok;
                _ ->
                    {error, ["Node.js ", string:trim(Version), " is too old: install ",
                             integer_to_list(?OLDEST), " or newer"]}
            end;
        _ ->
            {error, [Node, " does not tell its version: install Node.js ", integer_to_list(?OLDEST),
                     " or newer"]}
    end.

folder(Source, Home) ->
    case read(Source, ?FILES) of
        {ok, Texts} ->
            Hash = binary:encode_hex(binary:part(erlang:md5(Texts), 0, 6), lowercase),
            {ok, filename:join(Home, binary_to_list(Hash))};
        Error -> Error
    end.

read(Source, Names) ->
    lists:foldl(
        fun
            (Name, {ok, Texts}) ->
                case file:read_file(filename:join(Source, Name)) of
                    {ok, Text} -> {ok, [Texts, Text]};
                    {error, Reason} -> {error, cannot("read", filename:join(Source, Name), Reason)}
                end;
            (_, Error) -> Error
        end,
        {ok, []},
        Names
    ).

installed(Source, Folder, Path) ->
    case filelib:is_dir(Folder) of
        true ->
            ok;
        false ->
            New = lists:concat([Folder, ".", os:getpid()]),
            Outcome = sderl_progress:during("installing what draws plots", ?USUAL_MS,
                                            fun() -> install(Source, New, Folder, Path) end),
            _ = file:del_dir_r(New),
            Outcome
    end.

install(Source, New, Folder, Path) ->
    maybe
        {ok, Npm} ?= program("npm", Path),
        _ = file:del_dir_r(New),
        ok ?= copied(Source, New, ?FILES),
        ok ?= npm(Npm, New, Path),
        case file:rename(New, Folder) of
            ok -> ok;
            %% Another command was faster.
            {error, _} when New =/= Folder -> true = filelib:is_dir(Folder), ok
        end
    end.

%% Without a network it should fail within seconds.
npm(Npm, Folder, Path) ->
    Args = ["ci", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error",
            "--prefer-offline",
            "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=2000"],
    case sderl_bench_program:run(Npm, Args, #{timeout => ?INSTALL_MS, cd => Folder,
                                              env => [{"PATH", Path}]}) of
        {ok, 0, _} -> ok;
        {ok, _, Said} ->
            {error, ["what draws them cannot be installed (npm: ", complaint(Said), ")"]};
        {error, timeout} ->
            {error, "what draws them cannot be installed (npm did not end in time)"};
        {error, Reason} ->
            {error, io_lib:format("what draws them cannot be installed (npm: ~0tp)", [Reason])}
    end.

%% The first lines tell what was wrong; the rest is where npm keeps its log.
complaint(Said) ->
    Lines = [string:trim(Line) || <<"npm error ", Line/binary>> <- string:split(Said, "\n", all)],
    case [L || L <- Lines, L =/= <<>>, string:find(L, "A complete log") =:= nomatch] of
        [] -> string:slice(string:trim(Said), 0, 200);
        Told -> lists:join("; ", lists:sublist(Told, 3))
    end.

copied(Source, Folder, Names) ->
    maybe
        ok ?= made(Folder),
        lists:foldl(
            fun
                (Name, ok) ->
                    case file:copy(filename:join(Source, Name), filename:join(Folder, Name)) of
                        {ok, _} -> ok;
                        {error, Reason} ->
                            {error, cannot("write", filename:join(Folder, Name), Reason)}
                    end;
                (_, Error) -> Error
            end,
            ok,
            Names
        )
    end.

made(Folder) ->
    case filelib:ensure_path(Folder) of
        ok -> ok;
        {error, Reason} -> {error, cannot("make", Folder, Reason)}
    end.

%% Node looks for packages beside the script, so the script of these sources goes there, under a
%% name of its own.
script(Source, Folder) ->
    maybe
        {ok, Text} ?= read(Source, [?SCRIPT]),
        Name = "draw-" ++
            binary_to_list(binary:encode_hex(binary:part(erlang:md5(Text), 0, 6), lowercase)) ++
            ".mjs",
        File = filename:join(Folder, Name),
        case filelib:is_regular(File) of
            true ->
                {ok, File};
            false ->
                New = lists:concat([File, ".", os:getpid()]),
                maybe
                    ok ?= file:write_file(New, Text),
                    ok ?= file:rename(New, File),
                    {ok, File}
                else
                    {error, Reason} -> {error, cannot("write", File, Reason)}
                end
        end
    end.

cannot(What, File, Reason) -> ["cannot ", What, " ", File, ": ", file:format_error(Reason)].
