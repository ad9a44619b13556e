%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_registry).
-moduledoc """
What the demo's workload asks of a registry of names, so that one workload runs on both
sides: `sderl_demo_global` and `sderl_demo_groups`.

A name is a pair of a group and a name in it. `global` knows no groups: there the pair is
the name, so that both sides hold the same names.
""".

-export_type([result/0]).

-doc "How a change of the registry ended; the reason is the registry's own.".
-type result() :: ok | {error, term()}.

-doc "The name under which `gen_server:start_link/4` registers a server.".
-callback via(sderl_demo_layout:server()) -> {via, module(), term()}.

-doc "Registers a pid; `ok` when the registry says that the name is its now.".
-callback register(sderl_demo_layout:group_name(), Name :: term(), pid()) -> result().

-doc "Removes a name.".
-callback unregister(sderl_demo_layout:group_name(), Name :: term()) -> result().

-doc "The pid that has the name, as the calling node sees it.".
-callback whereis(sderl_demo_layout:group_name(), Name :: term()) -> pid() | undefined.

-doc "All names of a group, as a member of it sees them.".
-callback names(sderl_demo_layout:group_name()) -> [Name :: term()].

-doc "The tables in which a node keeps names.".
-callback tables() -> [atom()].
