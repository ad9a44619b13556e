%% SPDX-License-Identifier: Apache-2.0
-module(sderl_bench_peer).
-moduledoc """
Registries of other projects, to be measured beside ours. They are not part of this project, so
`--peer NAME=DIR` gives the folders of their compiled applications.

A folder is an application's (with `ebin/` in it), its `ebin/` itself, or one that holds the
folders of several applications. `toolchain/peers` makes such folders.
""".

-export([option/0, given/1, find/2]).
-export_type([folders/0, peer/0]).

-doc "The folders given for each name, in the order given.".
-type folders() :: #{Name :: string() => [file:filename()]}.

-doc "The code path of its application and of all applications that this needs.".
-type peer() :: #{version := binary(), paths := [file:filename()]}.

-doc "`--peer`.".
-spec option() -> argparse:argument().
option() ->
    #{
        name => peer,
        long => "-peer",
        type => string,
        action => append,
        required => false,
        help => {"[--peer NAME=DIR]", [
            "compiled folder of another project's registry (toolchain/peers makes it), of "
            ++ lists:join(", ", sderl_bench_impl:peers()) ++ "; also several times for one"
        ]}
    }.

-doc "The folders that the values of `--peer` name; `find/2` looks into them.".
-spec given([string()]) -> {ok, folders()} | {error, sderl_command:text()}.
given(Values) -> given(Values, #{}).

given([], Folders) ->
    {ok, Folders};
given([Value | Values], Folders) ->
    maybe
        [[_ | _] = Name, [_ | _] = Dir] ?= string:split(Value, "="),
        {peer, _} ?= {sderl_bench_impl:kind(Name), Name},
        given(Values, Folders#{Name => maps:get(Name, Folders, []) ++ [Dir]})
    else
        {_, Unknown} ->
            {error, [
                "--peer: \"", Unknown, "\" is no registry of another project that can be "
                "measured; there are ", lists:join(", ", sderl_bench_impl:peers())
            ]};
        _ ->
            {error, io_lib:format("--peer: \"~ts\" is not NAME=DIR, a name and a folder", [Value])}
    end.

-doc """
Looks into the folders for the application of a registry and what that needs, and tries whether it
loads here.
""".
-spec find(Name :: string(), folders()) -> {ok, peer()} | {error, sderl_command:text()}.
find(Name, Folders) ->
    maybe
        {ok, Given} ?= folders(Name, Folders),
        Places = lists:append([places(Dir) || Dir <- Given]),
        {ok, [{Ebin, Properties} | _] = Found} ?= closure([list_to_atom(Name)], Places, []),
        ok ?= loads(Ebin, proplists:get_value(modules, Properties, [])),
        {ok, #{
            version => unicode:characters_to_binary(proplists:get_value(vsn, Properties, "")),
            paths => [Path || {Path, _} <- Found]
        }}
    else
        {missing, Application} ->
            {error, [
                "--peer ", Name, ": the application ", atom_to_list(Application),
                " is in none of the folders given (", lists:join(", ", maps:get(Name, Folders)),
                "); give the one that has it, too: --peer ", Name, "=DIR"
            ]};
        {bad_file, File, Why} ->
            {error, [
                "--peer ", Name, ": ", File, " does not load with this OTP (",
                erlang:system_info(otp_release), "): ", io_lib:format("~0tp", [Why]),
                "; compile it with this OTP (toolchain/peers does)"
            ]};
        {error, Text} ->
            {error, Text}
    end.

folders(Name, Folders) ->
    case Folders of
        #{Name := Given} ->
            case [Dir || Dir <- Given, not filelib:is_dir(Dir)] of
                [] -> {ok, Given};
                [Dir | _] -> {error, ["--peer ", Name, ": there is no folder ", Dir]}
            end;
        #{} ->
            {error, [
                "--impl ", Name, " is another project's: compile it (toolchain/peers does) and "
                "give its folder with --peer ", Name, "=DIR"
            ]}
    end.

%% Where an application's files may lie.
places(Dir) -> [Dir, filename:join(Dir, "ebin") | filelib:wildcard(filename:join(Dir, "*/ebin"))].

%% The applications and all that they need, in the order in which they are found. Applications of
%% OTP need not be found.
closure([], _Places, Found) ->
    {ok, [{Ebin, Properties} || {_, Ebin, Properties} <- lists:reverse(Found)]};
closure([Application | More], Places, Found) ->
    IsKnown = lists:keymember(Application, 1, Found),
    case IsKnown orelse Found =/= [] andalso is_of_otp(Application) of
        true ->
            closure(More, Places, Found);
        false ->
            case description(Application, Places) of
                {ok, Ebin, Properties} ->
                    Needed = proplists:get_value(applications, Properties, []),
                    closure(More ++ Needed, Places, [{Application, Ebin, Properties} | Found]);
                Problem ->
                    Problem
            end
    end.

is_of_otp(Application) ->
    case code:lib_dir(Application) of
        {error, bad_name} -> false;
        Dir -> lists:prefix(code:root_dir(), Dir)
    end.

description(Application, Places) ->
    Base = atom_to_list(Application) ++ ".app",
    case [Place || Place <- Places, filelib:is_regular(filename:join(Place, Base))] of
        [Ebin | _] ->
            File = filename:join(Ebin, Base),
            case file:consult(File) of
                {ok, [{application, Application, Properties}]} ->
                    {ok, filename:absname(Ebin), Properties};
                {ok, _} ->
                    {bad_file, File, no_application_description};
                {error, Why} ->
                    {bad_file, File, Why}
            end;
        [] ->
            {missing, Application}
    end.

%% Makes no module of another project current in this virtual machine.
loads(Ebin, Modules) ->
    Files = [{Module, filename:join(Ebin, atom_to_list(Module) ++ ".beam")} || Module <- Modules],
    Read = [{Module, File, file:read_file(File)} || {Module, File} <- Files],
    case [{File, Why} || {_, File, {error, Why}} <- Read] of
        [] ->
            Binaries = [{Module, File, Binary} || {Module, File, {ok, Binary}} <- Read],
            case code:prepare_loading(Binaries) of
                {ok, _} -> ok;
                {error, [{Module, Why} | _]} -> {bad_file, proplists:get_value(Module, Files), Why}
            end;
        [{File, Why} | _] ->
            {bad_file, File, Why}
    end.
