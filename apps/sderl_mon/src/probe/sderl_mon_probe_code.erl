%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_code).
-moduledoc """
The modules of a probe: what is loaded into a running node that lacks them, and deleted there again.
""".

-export([modules/0, code/0, is_installed/0, delete/0]).

-doc "They need only stock OTP and each other.".
-spec modules() -> [module()].
modules() ->
    [
        sderl_mon_probe,
        sderl_mon_probe_batches,
        sderl_mon_probe_bound,
        sderl_mon_probe_bucket,
        ?MODULE,
        sderl_mon_probe_collector,
        sderl_mon_probe_disk,
        sderl_mon_probe_events,
        sderl_mon_probe_gate,
        sderl_mon_probe_host,
        sderl_mon_probe_lease,
        sderl_mon_probe_library,
        sderl_mon_probe_links,
        sderl_mon_probe_log,
        sderl_mon_probe_look,
        sderl_mon_probe_meter,
        sderl_mon_probe_metrics,
        sderl_mon_probe_names,
        sderl_mon_probe_runtime,
        sderl_mon_probe_secret,
        sderl_mon_probe_slow,
        sderl_mon_probe_standing,
        sderl_mon_probe_system,
        sderl_mon_probe_text,
        sderl_mon_probe_topology,
        sderl_mon_probe_trace,
        sderl_mon_probe_work
    ].

-doc "See `sderl_mon_probe:code/0`.".
-spec code() -> [{module(), string(), binary()}].
code() -> [{M, File, Binary} || M <- modules(), {_, Binary, File} <- [code:get_object_code(M)]].

-doc "Whether this node has the modules in files: then they were not loaded into it.".
-spec is_installed() -> boolean().
is_installed() -> code:where_is_file(?MODULE_STRING ".beam") =/= non_existing.

-doc """
Deletes the modules from this node. They are purged half a second later, because the calling process
and the one that asked for the end still run them for a moment.
""".
-spec delete() -> ok.
delete() ->
    Modules = modules(),
    lists:foreach(fun(M) -> _ = code:purge(M), _ = code:delete(M) end, Modules),
    Calls = [{call, 1, {remote, 1, {atom, 1, code}, {atom, 1, purge}}, [{atom, 1, M}]}
             || M <- Modules],
    _ = spawn(erl_eval, exprs, [[{'receive', 1, [], {integer, 1, 500}, Calls}], #{}]),
    ok.
