%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_code).
-moduledoc """
The modules that run on a node: which are loaded into a node that lacks them, and when they are
deleted again.

A process on the node, registered under the name of this module, deletes the loaded modules when
they were not used for two minutes.
""".

-export([modules/0, code/0, is_installed/0, version/0, loaded/0, used/0]).
-export([keep/0, delete/1]).

-define(UNUSED_MS, 120_000).

-doc """
They need only stock OTP and each other. This module, which answers which version is there, is
deleted last: while the others go, `version/0` fails for a lacking module.
""".
-spec modules() -> [module()].
modules() ->
    [
        sderl_actions_node,
        sderl_actions_cookie,
        sderl_actions_env,
        sderl_actions_eval,
        sderl_actions_look,
        sderl_actions_plugin,
        sderl_actions_processes,
        sderl_actions_runtime,
        sderl_actions_secret,
        sderl_actions_show,
        sderl_actions_term,
        sderl_actions_trace,
        sderl_plugin,
        sderl_plugin_cowboy,
        ?MODULE
    ].

-doc "The modules to load into another node, as `code:atomic_load/1` takes them.".
-spec code() -> [{module(), string(), binary()}].
code() -> [{M, File, Binary} || M <- modules(), {_, Binary, File} <- [code:get_object_code(M)]].

-doc "Whether this node has the modules in files: then they were not loaded into it.".
-spec is_installed() -> boolean().
is_installed() -> code:where_is_file(?MODULE_STRING ".beam") =/= non_existing.

-doc "A value that differs between versions of the modules.".
-spec version() -> binary().
version() -> erlang:md5([M:module_info(md5) || M <- modules()]).

-doc "The modules have been loaded into this node: has them deleted when they are not used.".
-spec loaded() -> ok.
loaded() ->
    case is_installed() orelse whereis(?MODULE) of
        undefined ->
            _ = spawn(?MODULE, keep, []),
            ok;
        _ -> ok
    end.

-doc "The modules are in use: puts off their deletion.".
-spec used() -> ok.
used() ->
    _ = try ?MODULE ! used catch error:badarg -> none end,
    ok.

-doc false.
-spec keep() -> ok.
keep() ->
    try register(?MODULE, self()) of
        true ->
            true = group_leader(whereis(init), self()),
            kept()
    catch
        error:badarg -> ok
    end.

kept() ->
    receive
        used -> kept();
        {delete, From, Ref} -> ?MODULE:delete([{From, Ref}])
    after ?UNUSED_MS -> ?MODULE:delete([])
    end.

%% Called by its full name, so that this process runs the version that is loaded now, and without
%% funs of an older one, because the purge would kill it. It still runs the code for a moment, so
%% another process purges that.
-doc false.
-spec delete(Tell :: [{pid(), term()}]) -> ok.
delete(Tell) ->
    true = unregister(?MODULE),
    Modules = modules(),
    lists:foreach(fun(M) -> _ = code:purge(M), _ = code:delete(M) end, Modules),
    Purge = [{call, 1, {remote, 1, {atom, 1, code}, {atom, 1, purge}}, [{atom, 1, M}]}
             || M <- Modules],
    Wait = {'receive', 1, [], {integer, 1, 500}, Purge},
    _ = spawn(erl_eval, exprs, [[Wait], #{}]),
    lists:foreach(fun({To, What}) -> To ! What end, Tell).
