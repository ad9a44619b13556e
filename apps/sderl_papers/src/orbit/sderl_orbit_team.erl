%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_team).
-moduledoc """
The processes that the master or a submaster of Orbit has started and is linked to, with their
roles, so that a dead one can be named.
""".

-export([new/0, add/3, died/3, stop/1]).
-export_type([team/0, role/0, death/0]).

-doc "The role of a process.".
-type role() ::
    {worker, Index :: pos_integer(), node()}
    | {gateway, Group :: pos_integer(), node()}
    | {submaster, Group :: pos_integer(), node()}.

-doc "Why a run cannot go on.".
-type death() :: {died, role(), Reason :: term()}.

-doc "Processes and their roles.".
-opaque team() :: #{pid() => role()}.

-define(STOP_MS, 5000).

-doc "An empty team.".
-spec new() -> team().
new() -> #{}.

-doc "Adds a process.".
-spec add(pid(), role(), team()) -> team().
add(Pid, Role, Team) -> Team#{Pid => Role}.

-doc """
The meaning of the exit of a process: `death` of one of the team, the end of its `parent`, nothing
(`none`). A process that ends normally has done its work.
""".
-spec died(pid(), Reason :: term(), team()) -> death() | none | parent.
died(Pid, Reason, Team) ->
    case Team of
        #{Pid := _} when Reason =:= normal -> none;
        #{Pid := Role} -> {died, Role, Reason};
        #{} -> parent
    end.

-doc """
Ends all of them and waits until they are gone, for at most 5 s, as a node may stand still. The
caller traps exits.
""".
-spec stop(team()) -> ok.
stop(Team) ->
    Pids = maps:keys(Team),
    lists:foreach(fun(Pid) -> exit(Pid, shutdown) end, Pids),
    Refs = [{Pid, monitor(process, Pid)} || Pid <- Pids],
    gone(Refs, erlang:monotonic_time(millisecond) + ?STOP_MS).

gone([], _) ->
    ok;
gone([{Pid, Ref} | Refs], Deadline) ->
    receive
        {'DOWN', Ref, process, Pid, _} -> gone(Refs, Deadline)
    after max(0, Deadline - erlang:monotonic_time(millisecond)) -> ok
    end.
