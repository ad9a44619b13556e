%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_reach).
-moduledoc """
Calls the code for actions on a node; loads it there if it is missing and loading is allowed.
""".

-export([call/3, load/2]).

-define(CALL_MS, 5000).
%% For loading all of the code into a busy node.
-define(LOAD_MS, 20_000).

-doc "Calls a function of that code. Errors are sentences. It may take some seconds.".
-spec call(node(), {module(), atom(), [term()]}, Inject :: boolean()) ->
    {ok, term()} | {error, binary()}.
call(Node, Call, Inject) ->
    maybe
        ok ?= sderl_mon_reach:connect(Node),
        ok ?= ready(Node, Inject),
        {ok, _} ?= asked(Node, Call, Inject)
    else
        lacking -> {error, lacking()};
        {error, _} = Error -> Error;
        {error, _, Why} -> {error, Why}
    end.

%% The code may be deleted between two calls, because it was not used for two minutes.
asked(Node, Call, Inject) ->
    case ask(Node, Call) of
        lacking when Inject ->
            case inject(Node) of
                ok -> ask(Node, Call);
                Failed -> Failed
            end;
        Answer -> Answer
    end.

-doc """
Loads a module of this node into a node that lacks it, or into which another version of it was
loaded. An installed module is used as it is.
""".
-spec load(node(), module()) -> ok | {error, binary()}.
load(Node, Module) ->
    maybe
        true ?= is_lacking(Node, Module),
        {Module, Binary, File} ?= code:get_object_code(Module),
        ok ?= put_code(Node, [{Module, File, Binary}], fun() ->
            case is_lacking(Node, Module) of
                Is when is_boolean(Is) -> not Is;
                Other -> Other
            end
        end),
        ok
    else
        false -> ok;
        error -> {error, sderl_mon_text:text("there is no module ~ts here", [Module])};
        {error, _} = Error -> Error;
        lacking -> {error, lacking()}
    end.

is_lacking(Node, Module) ->
    maybe
        {ok, {module, Module}} ?= ask(Node, {code, ensure_loaded, [Module]}),
        {ok, Version} ?= ask(Node, {Module, module_info, [md5]}),
        true ?= Version =/= Module:module_info(md5),
        {ok, Where} ?= ask(Node, {code, where_is_file, [atom_to_list(Module) ++ ".beam"]}),
        Where =:= non_existing
    else
        {ok, {error, _}} -> true;
        Other -> Other
    end.

lacking() ->
    ~"no code for actions there: sderl_actions in its code path, or inject => true, gives it some".

%% Modules of another version are replaced if they were loaded, and used if they are installed.
ready(Node, Inject) ->
    case ask(Node, {sderl_actions_code, version, []}) of
        {ok, Version} ->
            case Version =:= sderl_actions_code:version() orelse not Inject of
                true -> ok;
                false ->
                    case ask(Node, {sderl_actions_code, is_installed, []}) of
                        {ok, true} -> ok;
                        _ -> inject(Node)
                    end
            end;
        lacking when Inject -> inject(Node);
        Other -> Other
    end.

inject(Node) ->
    IsThere = fun() ->
        case ask(Node, {sderl_actions_code, version, []}) of
            {ok, Version} -> Version =:= sderl_actions_code:version();
            lacking -> false;
            Other -> Other
        end
    end,
    case put_code(Node, sderl_actions_code:code(), IsThere) of
        ok -> loaded(Node);
        Failed -> Failed
    end.

%% Loads all modules or none, first without a purge: the code before becomes old, and its actions go
%% on in it. If there is old code already, loading fails (`not_purged`). Then either the wanted
%% version is there, or the old code is purged, which ends the processes that still run it.
put_code(Node, Code, IsThere) ->
    maybe
        not_purged ?= load_all(Node, Code),
        false ?= IsThere(),
        {ok, ok} ?= ask(Node, {lists, foreach, [fun code:purge/1, [M || {M, _, _} <- Code]]}),
        not_purged ?= load_all(Node, Code),
        {error, ~"code cannot be loaded there: others load it as well"}
    else
        true -> ok;
        Other -> Other
    end.

load_all(Node, Code) ->
    case ask(Node, {code, atomic_load, [Code]}, ?LOAD_MS) of
        {ok, ok} -> ok;
        {ok, {error, Whys}} ->
            case lists:all(fun({_, Why}) -> Why =:= not_purged end, Whys) of
                true -> not_purged;
                false -> {error, sderl_mon_text:text("code cannot be loaded there: ~0tP",
                                                     [Whys, 12])}
            end;
        Other -> Other
    end.

loaded(Node) ->
    case ask(Node, {sderl_actions_code, loaded, []}) of
        {ok, ok} -> ok;
        Other -> Other
    end.

ask(Node, Call) -> ask(Node, Call, ?CALL_MS).

ask(Node, {M, F, A}, Ms) ->
    try {ok, erpc:call(Node, M, F, A, Ms)}
    catch
        error:{exception, undef, [{M, F, _, _} | _]} -> lacking;
        error:{exception, undef, [{Other, _, _, _} | _]} = Why ->
            %% Some of our modules are missing: they are being deleted.
            case lists:member(Other, sderl_actions_code:modules()) of
                true -> lacking;
                false -> failed(error, Why)
            end;
        error:{erpc, noconnection} -> {error, ~"the connection was lost"};
        error:{erpc, timeout} -> {error, ~"connected, and does not answer"};
        Class:Why -> failed(Class, Why)
    end.

failed(Class, Why) ->
    {error, sderl_mon_text:text("it failed there: ~0tP", [{Class, Why}, 12])}.
