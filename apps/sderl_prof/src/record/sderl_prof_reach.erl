%% SPDX-License-Identifier: Apache-2.0
-module(sderl_prof_reach).
-moduledoc """
Calls what records on a node, after it has been loaded there: a node without this application needs
no more than these modules.
""".

-export([load/2, call/5]).
-export_type([reason/0]).

-doc "The node does not answer, or cannot do it.".
-type reason() :: {node, node(), term()}.

-doc "Loads what is not there.".
-spec load(node(), timeout()) -> ok | {error, reason()}.
load(Node, _) when Node =:= node() -> ok;
load(Node, Timeout) ->
    maybe
        ok ?= loaded(Node, [sderl_prof_tap, sderl_prof_recorder], Timeout),
        ok ?= loaded(Node, [sderl_prof_trial], Timeout),
        loaded(Node, [sderl_prof_station], Timeout)
    end.

%% The last one calls the others: where it is there, they are.
loaded(Node, Modules, Timeout) ->
    case call(Node, code, ensure_loaded, [lists:last(Modules)], Timeout) of
        {module, _} -> ok;
        {error, {node, _, _}} = Error -> Error;
        {error, _} -> load_all(Modules, Node, Timeout)
    end.

load_all([], _, _) -> ok;
load_all([Module | Modules], Node, Timeout) ->
    {Module, Code, File} = code:get_object_code(Module),
    case call(Node, code, load_binary, [Module, File, Code], Timeout) of
        {module, _} -> load_all(Modules, Node, Timeout);
        {error, {node, _, _}} = Error -> Error;
        {error, Why} -> {error, {node, Node, Why}}
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
