%% SPDX-License-Identifier: Apache-2.0
-module(sderl_demo_registry).
-moduledoc """
The operations that the demo's workload needs of a registry of names, so that one workload runs on
both sides: `sderl_demo_global` and `sderl_demo_groups`.

A name is a pair of a group and a name in it. `global` knows no groups: there the pair is
the name, so that both sides hold the same names.
""".

-export([call/3]).
-export_type([result/0, called/0]).

-doc "How a change of the registry ended; the reason is the registry's own.".
-type result() :: ok | {error, term()}.

-doc """
How a call ended. `not_there`: nobody was asked, as no process had the name or no way led to it.
`killed` and `noproc` are those of `sderl_demo_server:call/3`, with the process, or the server
where its pid is not known to the caller.
""".
-type called() ::
    {ok, Count :: pos_integer()}
    | {error, not_there | {killed | noproc, pid() | sderl_demo_layout:server()} | term()}.

-doc "The name under which `gen_server:start_link/4` registers a server.".
-callback via(sderl_demo_layout:server()) -> {via, module(), term()}.

-doc "Registers a pid; `ok` when the registry says that the name is its now.".
-callback register(sderl_demo_layout:group_name(), Name :: term(), pid()) -> result().

-doc "Removes a name.".
-callback unregister(sderl_demo_layout:group_name(), Name :: term()) -> result().

-doc "The pid that has the name, as the calling node sees it.".
-callback whereis(sderl_demo_layout:group_name(), Name :: term()) -> pid() | undefined.

-doc "Calls the server that has a name; it answers after `WorkMs`.".
-callback call(sderl_demo_layout:server(), WorkMs :: non_neg_integer()) -> called().

-doc "All names of a group, as a member of it sees them.".
-callback names(sderl_demo_layout:group_name()) -> [Name :: term()].

-doc "The memory in which a node keeps names.".
-callback bytes() -> non_neg_integer().

-doc "Calls the process that was found under the name of a server.".
-spec call(pid() | undefined, sderl_demo_layout:server(), WorkMs :: non_neg_integer()) -> called().
call(undefined, _Server, _WorkMs) ->
    {error, not_there};
call(Pid, Server, WorkMs) ->
    case sderl_demo_server:call(Pid, Server, WorkMs) of
        {error, Why} when Why =:= killed; Why =:= noproc -> {error, {Why, Pid}};
        Result -> Result
    end.
