%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_home).
-moduledoc false.

%% The private directory of a fleet. It is the nodes' HOME, so that they find the cookie where
%% Erlang looks for it; on a command line or in the environment others could read it.
%%
%%   .erlang.cookie     mode 0400
%%   etc/NODE.config    application environment of one node
%%   etc/start.boot     what nodes of this OTP load before anything else
%%   log/NODE.log       its logger output
%%   log/NODE.out       what it printed
%%   log/NODE.err       its standard error
%%
%% The reaper makes the directory (mode 0700) and removes it.

-export([name/1, fill/2, start_script/1, random/2, node_files/3, textual/1]).

-export_type([files/0]).

-type files() :: #{config := string(), log := string(), out := string(), err := string()}.

-doc "The name of a directory that does not exist, in `Parent` or the system's temporary folder.".
-spec name(Parent :: string() | undefined) -> string().
name(undefined) ->
    name(os:getenv("TMPDIR", "/tmp"));
name(Parent) ->
    case filename:absname(Parent) of
        Path when is_list(Path) -> Path ++ "/sderl-fleet-" ++ random(16, lower)
    end.

-spec fill(Dir :: string(), LogDir :: string()) ->
    {ok, Cookie :: atom()} | {error, {file, string(), term()}}.
fill(Dir, LogDir) ->
    Cookie = random(32, mixed),
    File = filename:join(Dir, ".erlang.cookie"),
    maybe
        ok ?= at(File, file:write_file(File, Cookie)),
        ok ?= at(File, file:change_mode(File, 8#400)),
        ok ?= at(Dir, file:make_dir(filename:join(Dir, "etc"))),
        ok ?= at(LogDir, filelib:ensure_path(LogDir)),
        %% One atom a fleet.
        {ok, list_to_atom(Cookie)}
    end.

at(_, ok) -> ok;
at(Path, {error, Reason}) -> {error, {file, Path, Reason}}.

%% OTP loads these modules before a node has a code server, though none of them is needed before
%% there is one: a node that never evaluates an expression starts without them.
-define(LATER, [erl_eval, erl_lint]).

-doc """
Writes a start script like `no_dot_erlang` with which nodes load some modules on demand. The name is
as `-boot` takes it: that of OTP's own script where that cannot be read.
""".
-spec start_script(Dir :: string()) -> string().
start_script(Dir) ->
    Name = filename:join([Dir, "etc", "start"]),
    Own = filename:join([code:root_dir(), "bin", "no_dot_erlang.boot"]),
    maybe
        {ok, Bytes} ?= file:read_file(Own),
        {script, Id, Commands} ?= binary_to_term(Bytes),
        Leaner = {script, Id, [without(Command) || Command <- Commands]},
        ok ?= file:write_file(Name ++ ".boot", term_to_binary(Leaner)),
        Name
    else
        _ -> "no_dot_erlang"
    end.

without({primLoad, Modules}) -> {primLoad, Modules -- ?LATER};
without(Command) -> Command.

-doc "Letters that nobody can guess, from `/dev/urandom`.".
-spec random(pos_integer(), lower | mixed) -> string().
random(Length, Alphabet) ->
    Letters =
        case Alphabet of
            lower -> "abcdefghijkmnpqrstuvwxyz23456789";
            mixed -> "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
        end,
    {ok, Device} = file:open("/dev/urandom", [read, raw, binary]),
    {ok, Bytes} = file:read(Device, Length),
    ok = file:close(Device),
    %% 32 and 64 letters: no letter is likelier than another.
    [lists:nth(1 + Byte rem length(Letters), Letters) || <<Byte>> <= Bytes].

-doc """
Writes the node's configuration. Terms that have no textual form (pids, funs, ...) come
back, to be set once the node runs.
""".
-spec node_files(Dir :: string(), LogDir :: string(), sderl_fleet_plan:node_spec()) ->
    {ok, files(), Later :: [{atom(), atom(), term()}]} | {error, {file, string(), term()}}.
node_files(Dir, LogDir, #{node := Node, host := Host, env := Env}) ->
    Name = atom_to_list(Node),
    [Short, _] = string:split(Name, "@"),
    Log = fun(Ext) -> filename:join(LogDir, Short ++ Ext) end,
    Config = filename:join([Dir, "etc", Short ++ ".config"]),
    {ok, Address} = inet:parse_ipv4strict_address(Host),
    {Now, Later} = lists:partition(fun({_, _, Value}) -> textual(Value) end, Env),
    Own = [
        {kernel, inet_dist_use_interface, Address},
        {kernel, logger, [{handler, default, logger_std_h, handler(Log(".log"))}]}
    ],
    Files = #{config => Config, log => Log(".log"), out => Log(".out"), err => Log(".err")},
    case file:write_file(Config, io_lib:format("~w.~n", [sys_config(Own ++ Now)])) of
        ok -> {ok, Files, Later};
        {error, Reason} -> {error, {file, Config, Reason}}
    end.

handler(File) ->
    #{
        config => #{file => File, max_no_bytes => 20_000_000, max_no_files => 2},
        formatter => {logger_formatter, #{single_line => true}}
    }.

%% Later entries win.
sys_config(Env) ->
    Apps = lists:foldl(
        fun({App, Key, Value}, Acc) ->
            maps:update_with(App, fun(Keys) -> Keys#{Key => Value} end, #{Key => Value}, Acc)
        end,
        #{},
        Env
    ),
    [{App, maps:to_list(Keys)} || App := Keys <- Apps].

-doc "Whether a term comes back from its text.".
-spec textual(term()) -> boolean().
textual(Term) ->
    Text = lists:flatten(io_lib:format("~w.", [Term])),
    maybe
        {ok, Tokens, _} ?= erl_scan:string(Text),
        {ok, Parsed} ?= erl_parse:parse_term(Tokens),
        Parsed =:= Term andalso lists:all(fun(C) -> C < 128 end, Text)
    else
        _ -> false
    end.
