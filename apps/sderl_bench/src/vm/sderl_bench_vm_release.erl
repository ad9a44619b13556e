%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_vm_release).
-moduledoc """
A built release, as `rebar3 release` makes it: reads what is in it, and starts its applications
inside a virtual machine that measures (`start/1`, which calls OTP only).

The virtual machine is that of the point: the release's own ERTS and its `vm.args` are not used.
Applications of OTP come from the running OTP, because their native code may fit no other.
""".

-export([read/1, call/3, hash/1, described/1, arguments/1]).
%% Inside the virtual machine that measures.
-export([start/1, run_still/1]).
-export_type([release/0]).

-doc """
`rel` is the file that lists the applications, `config` the file `sys.config`. `paths` are the code
folders of the applications; `start` has the applications to load and, except those of the type
`load`, to start, in this order.
""".
-type release() :: #{
    name := string(),
    version := string(),
    rel := file:filename(),
    paths := [{App :: atom(), file:filename()}],
    start := [{App :: atom(), application:restart_type() | load}],
    config := file:filename() | none
}.

-doc "The release in a folder. An error is a text.".
-spec read(file:filename()) -> {ok, release()} | {error, unicode:chardata()}.
read(Folder) ->
    Dir = filename:absname(Folder),
    Result = maybe
        {ok, Version} ?= version(Dir),
        Of = filename:join([Dir, "releases", Version]),
        {ok, Rel, Name, Apps} ?= applications(Of, Version),
        {ok, Config} ?= config(Of),
        {ok, Paths} ?= paths(Apps, Dir),
        {ok, #{
            name => Name, version => Version, rel => Rel, paths => Paths, config => Config,
            start => [{App, Type} || {App, _, Type} <- Apps, Type =/= none]
        }}
    end,
    case Result of
        {error, Text} -> {error, ["--release ", Folder, ": ", Text]};
        Read -> Read
    end.

version(Dir) ->
    File = filename:join([Dir, "releases", "start_erl.data"]),
    case file:read_file(File) of
        {ok, Content} ->
            case string:lexemes(binary_to_list(Content), " \t\r\n") of
                [_, Version] -> {ok, Version};
                _ -> {error, "releases/start_erl.data has not two words, the ERTS and the release"}
            end;
        {error, Reason} ->
            {error, ["there is no built release: releases/start_erl.data: ",
                     file:format_error(Reason)]}
    end.

%% The .rel file of the release. rebar3 also writes those of boot scripts that start nothing of it.
applications(Of, Version) ->
    Known = [{File, Name, Apps}
             || File <- lists:sort(filelib:wildcard(filename:join(Of, "*.rel"))),
                not lists:member(filename:basename(File), ["no_dot_erlang.rel", "start_clean.rel"]),
                {ok, [{release, {Name, Own}, _, Apps}]} <- [file:consult(File)],
                Own =:= Version, io_lib:printable_unicode_list(Name), is_list(Apps)],
    Named = [Rel || {File, Name, _} = Rel <- Known, filename:basename(File, ".rel") =:= Name],
    case {Known, Named} of
        {[Only], _} -> listed(Only);
        {_, [Only]} -> listed(Only);
        {[], _} ->
            {error, ["releases/", Version, " has no .rel file of a release of version ", Version]};
        {_, _} ->
            {error, ["releases/", Version, " has several .rel files of releases of version ",
                     Version, ": leave only that of the release there"]}
    end.

listed({File, Name, Apps}) ->
    try
        {ok, File, Name, [application(App) || App <- Apps]}
    catch
        error:_ -> {error, [filename:basename(File), " lists what is no application"]}
    end.

application({App, Version}) -> application({App, Version, permanent, []});
application({App, Version, Included}) when is_list(Included) ->
    application({App, Version, permanent, Included});
application({App, Version, Type}) -> application({App, Version, Type, []});
application({App, [_ | _] = Version, Type, _}) when is_atom(App), is_atom(Type) ->
    true = io_lib:printable_unicode_list(Version),
    {App, Version, Type}.

config(Of) ->
    File = filename:join(Of, "sys.config"),
    case {file:consult(File), filelib:is_regular(File ++ ".src")} of
        {{ok, [Terms]}, _} when is_list(Terms) -> {ok, File};
        {{error, enoent}, false} -> {ok, none};
        {{error, enoent}, true} ->
            {error, [File, " is not there, but its .src, which the release's own program fills in: "
                           "start that once, or write the file"]};
        {{error, Reason}, _} -> {error, [File, ": ", file:format_error(Reason)]};
        {{ok, _}, _} -> {error, [File, " is not one list of applications"]}
    end.

%% Applications that are not in the folder of a release come from OTP.
paths(Apps, Dir) ->
    Ebins = [{App, filename:join([Dir, "lib", lists:concat([App, "-", Version]), "ebin"])}
             || {App, Version, _} <- Apps],
    case [App || {App, Ebin} <- Ebins, not filelib:is_dir(Ebin), not is_otps(App)] of
        [] -> {ok, [Path || {_, Ebin} = Path <- Ebins, filelib:is_dir(Ebin)]};
        [App | _] -> {error, io_lib:format("its application ~ts has no folder in lib", [App])}
    end.

%% Whether this OTP has an application itself.
is_otps(App) ->
    case code:lib_dir(App) of
        {error, bad_name} -> false;
        Dir -> lists:prefix(code:lib_dir(), Dir)
    end.

-doc "Whether a module of the release has such a function, without loading it.".
-spec call(release(), module(), {Function :: atom(), arity()}) -> ok | {error, unicode:chardata()}.
call(#{name := Name, paths := Paths}, Module, {Function, Arity}) ->
    Beams = [Beam || {_, Ebin} <- Paths,
                     Beam <- [filename:join(Ebin, atom_to_list(Module) ++ ".beam")],
                     filelib:is_regular(Beam)],
    maybe
        [Beam | _] ?= Beams,
        {ok, {_, [{exports, Exports}]}} ?= beam_lib:chunks(Beam, [exports]),
        true ?= lists:member({Function, Arity}, Exports),
        ok
    else
        [] -> {error, io_lib:format("the release ~ts has no module ~ts", [Name, Module])};
        false -> {error, io_lib:format("~ts has no such function with ~w argument~ts",
                                       [Module, Arity, [$s || Arity =/= 1]])};
        {error, beam_lib, Reason} -> {error, beam_lib:format_error(Reason)}
    end.

-doc "A hash of the release: its applications with their `priv`, its list, its configuration.".
-spec hash(release()) -> binary().
hash(#{paths := Paths, config := Config, rel := Rel}) ->
    Files = [{File, filename:join(Dir, File)}
             || {App, Ebin} <- Paths, not is_otps(App),
                Dir <- [filename:dirname(Ebin)],
                Pattern <- ["ebin/*.{beam,app}", "priv/**"],
                File <- lists:sort(filelib:wildcard(Pattern, Dir))],
    Own = [{filename:basename(File), File} || File <- [Rel | [Config || Config =/= none]]],
    Parts = [{Name, erlang:md5(Content)}
             || {Name, File} <- Files ++ Own, {ok, Content} <- [file:read_file(File)]],
    binary:encode_hex(erlang:md5(term_to_binary(Parts)), lowercase).

-doc "The release in a file of results.".
-spec described(release()) -> #{atom() => binary()}.
described(#{name := Name, version := Version} = Release) ->
    #{name => unicode:characters_to_binary(Name), version => unicode:characters_to_binary(Version),
      hash => hash(Release)}.

-doc "Arguments of a virtual machine, so that applications find their configuration.".
-spec arguments(release()) -> [string()].
arguments(#{config := none}) -> [];
arguments(#{config := File}) -> ["-config", filename:rootname(File)].

-doc "Puts the release's code on the path of this virtual machine, and starts its applications.".
-spec start(release()) -> ok | {error, binary()}.
start(#{paths := Paths, start := Apps}) ->
    %% The harness is loaded already, so no module of the release can take the place of its modules.
    Own = [Ebin || {App, Ebin} <- Paths, not is_otps(App)],
    ok = code:add_pathsa(lists:reverse(Own)),
    %% As in the boot script of a release, all are loaded before the first one is started.
    maybe
        ok ?= loaded(Apps),
        started([Started || {_, Type} = Started <- Apps, Type =/= load])
    end.

loaded([]) -> ok;
loaded([{App, _} | Apps]) ->
    case application:load(App) of
        ok -> loaded(Apps);
        {error, {already_loaded, App}} -> loaded(Apps);
        {error, Reason} -> refused(App, Reason)
    end.

%% As temporary ones: a permanent one that does not start would end the virtual machine before the
%% reason is written.
started([]) -> ok;
started([{App, _} | Apps]) ->
    case application:ensure_all_started(App, temporary) of
        {ok, _} -> started(Apps);
        {error, {Failed, Reason}} -> refused(Failed, Reason)
    end.

-doc "Whether the permanent applications still run, after the measurement.".
-spec run_still(release()) -> ok | {error, binary()}.
run_still(#{start := Apps}) ->
    Running = [App || {App, _, _} <- application:which_applications()],
    case [App || {App, permanent} <- Apps, not lists:member(App, Running)] of
        [] -> ok;
        [Ended | _] ->
            {error, unicode:characters_to_binary(
                io_lib:format("the application ~ts of the release has ended", [Ended]))}
    end.

refused(App, Reason) ->
    {error, unicode:characters_to_binary(
        io_lib:format("the application ~ts of the release does not start: ~0tP",
                      [App, Reason, 30]))}.
