%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_reach).
-moduledoc """
Calls functions on nodes, and loads the modules there that record and sample: a node without this
application needs no others.
""".

-export([connect/1, load/2, is_there/2, call/5]).
-export_type([reason/0]).

%% Each after those that it calls.
-define(MODULES, [sderl_prof_tap, sderl_prof_recorder, sderl_prof_trial, sderl_prof_station,
                  sderl_prof_round, sderl_prof_search, sderl_prof_looks, sderl_prof_series,
                  sderl_prof_switch, sderl_prof_sampler, sderl_prof_locks, sderl_prof_perf,
                  sderl_prof_probes, sderl_prof_hooks, sderl_prof_readings]).

-doc """
The node does not answer, or cannot do it; `records`: it records with modules of another version,
which cannot be replaced now; `lacks`: these modules are not there, or are those of another version.
""".
-type reason() :: {node, node(), term()}.

-doc "Makes a link to the node, where there is none.".
-spec connect(node()) -> ok | {error, {no_connection, node()}}.
connect(Node) when Node =:= node() -> ok;
connect(Node) ->
    case net_kernel:connect_node(Node) of
        true -> ok;
        _ -> {error, {no_connection, Node}}
    end.

-doc "Loads what is not there, or is there in another version.".
-spec load(node(), timeout()) -> ok | {error, reason()}.
load(Node, _) when Node =:= node() -> ok;
load(Node, Timeout) -> load_all(?MODULES, Node, Timeout).

load_all([], _, _) -> ok;
load_all([Module | Modules], Node, Timeout) ->
    {Module, Code, File} = code:get_object_code(Module),
    Here = code:module_md5(Code),
    Loaded = case call(Node, Module, module_info, [md5], Timeout) of
        Here -> ok;
        There when is_binary(There) -> replace(Module, File, Code, Node, Timeout);
        {error, {node, _, undef}} -> load_one(Module, File, Code, Node, Timeout);
        {error, _} = Error -> Error
    end,
    case Loaded of
        ok -> load_all(Modules, Node, Timeout);
        _ -> Loaded
    end.

%% A recorder would go on in the new version with the state of the old one.
replace(Module, File, Code, Node, Timeout) ->
    case call(Node, trace, session_info, [all], Timeout) of
        {error, _} = Error -> Error;
        Sessions ->
            case lists:keymember(sderl_recording, 1, Sessions) of
                true -> {error, {node, Node, records}};
                false ->
                    %% Where an older one is still called, loading says so.
                    _ = call(Node, code, soft_purge, [Module], Timeout),
                    load_one(Module, File, Code, Node, Timeout)
            end
    end.

load_one(Module, File, Code, Node, Timeout) ->
    case call(Node, code, load_binary, [Module, File, Code], Timeout) of
        {module, _} -> ok;
        {error, {node, _, _}} = Error -> Error;
        {error, Why} -> {error, {node, Node, Why}}
    end.

-doc "Whether all is there in this version; nothing is loaded but what the node itself has.".
-spec is_there(node(), timeout()) -> ok | {error, reason()}.
is_there(Node, _) when Node =:= node() -> ok;
is_there(Node, Timeout) -> are_there(?MODULES, Node, Timeout).

are_there([], _, _) -> ok;
are_there([Module | Modules], Node, Timeout) ->
    Here = Module:module_info(md5),
    case call(Node, Module, module_info, [md5], Timeout) of
        Here -> are_there(Modules, Node, Timeout);
        There when is_binary(There) -> {error, {node, Node, lacks}};
        {error, {node, _, undef}} -> {error, {node, Node, lacks}};
        {error, _} = Error -> Error
    end.

-doc "The result of a function on a node.".
-spec call(node(), module(), Function :: atom(), Args :: [term()], timeout()) ->
    term() | {error, reason()}.
call(Node, Module, Function, Args, Timeout) ->
    try
        erpc:call(Node, Module, Function, Args, Timeout)
    catch
        error:{erpc, Why} -> {error, {node, Node, Why}};
        error:{exception, Why, _} -> {error, {node, Node, Why}};
        exit:{exception, Why} -> {error, {node, Node, Why}};
        exit:{signal, Why} -> {error, {node, Node, Why}};
        throw:Why -> {error, {node, Node, Why}}
    end.
