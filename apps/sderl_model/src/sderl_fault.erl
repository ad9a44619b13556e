%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fault).
-moduledoc """
Starts the library with deliberate faults, so that a test can show that it would notice them.

A fault is a value in the start options of the library's pure core (`t:sderl_core:fault/0`). The
library reads them from the start arguments in its application specification and from nowhere else,
so no configuration of a user can set one: this module loads the same specification with other
arguments.
""".
-export([start/1]).

-doc """
Starts `sderl` on this node with these faults. The application must not be running:
`{error, {already_started, sderl}}` otherwise; `{error, {unknown_faults, Faults, Remedy}}` for what is none; other errors are those of `application:ensure_all_started/1`.
""".
-spec start([sderl_core:fault()]) -> {ok, [atom()]} | {error, term()}.
start(Faults) ->
    case {sderl_core_fault:unknown(Faults), lists:keymember(sderl, 1, application:which_applications())} of
        {[_ | _] = Unknown, _} ->
            {error, {unknown_faults, Unknown, "sderl_core_fault:all() lists them"}};
        {[], true} ->
            {error, {already_started, sderl}};
        {[], false} ->
            {ok, [{application, sderl, Keys}]} = file:consult(code:where_is_file("sderl.app")),
            %% What was set of its environment stays.
            Env = application:get_all_env(sderl),
            _ = application:unload(sderl),
            Mod = {mod, {sderl_app, [{faults, Faults}]}},
            ok = application:load({application, sderl, lists:keystore(mod, 1, Keys, Mod)}),
            lists:foreach(fun({Key, Value}) -> ok = application:set_env(sderl, Key, Value) end, Env),
            application:ensure_all_started(sderl)
    end.
