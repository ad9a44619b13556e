%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_names).
-moduledoc """
Names of the processes of a distributed ant colony: none (`tl`, `ml`), in `global` (`gr`), in an
s_group (`sr`).

A name is `{aco, Run, Key}`. A separate process registers it, so that no process waits for its
registration, and one that replaces a dead process serves before its name is known everywhere. Which
process has a role is decided before that, see `m:sderl_aco_roles`.
""".

-export([start/3, whereis/2, registered/2]).
-export_type([scope/0, name/0]).

-type scope() :: none | global | {s_group, Group :: term()}.
-type name() :: {aco, Run :: term(), sderl_aco_tree:key() | starter}.

%% Between two attempts to get a name that a dead process still has.
-define(AGAIN_MS, 5).

-doc """
Begins to register a name, in a process that the caller monitors and that ends with
`{shutdown, named}`.
""".
-spec start(scope(), name(), pid()) -> {pid(), reference()}.
start(Scope, Name, Pid) ->
    spawn_monitor(fun() -> register(Scope, Name, Pid, monitor(process, Pid)) end).

register(Scope, {aco, Run, _} = Name, Pid, Monitor) ->
    proc_lib:set_label({aco, Run, registrar}),
    case sderl_fleet_task:attempt(fun() -> try_register(Scope, Name, Pid) end) of
        yes ->
            exit({shutdown, named});
        _ ->
            case whereis(Scope, Name) of
                Pid -> exit({shutdown, named});
                _ -> again(Scope, Name, Pid, Monitor)
            end
    end.

%% A dead process that still has it does not for long.
again(Scope, Name, Pid, Monitor) ->
    receive
        {'DOWN', Monitor, process, _, _} -> exit(shutdown)
    after ?AGAIN_MS -> register(Scope, Name, Pid, Monitor)
    end.

try_register(global, Name, Pid) -> global:register_name(Name, Pid);
try_register({s_group, Group}, Name, Pid) -> s_group:register_name(Group, Name, Pid).

-doc "The process of a name, as this node knows it; it may be dead.".
-spec whereis(scope(), name()) -> pid() | undefined.
whereis(none, _) -> undefined;
whereis(global, Name) -> global:whereis_name(Name);
whereis({s_group, Group}, Name) -> s_group:whereis_name(Group, Name).

-doc "The names of a run that this node knows; `unknown` where it does not have the group.".
-spec registered(scope(), Run :: term()) -> [name()] | unknown.
registered(none, _) -> [];
registered(global, Run) -> [Name || {aco, R, _} = Name <- global:registered_names(), R =:= Run];
registered({s_group, Group}, Run) ->
    case s_group:registered_names({s_group, Group}) of
        Names when is_list(Names) -> [Name || {_, {aco, R, _} = Name} <- Names, R =:= Run];
        {error, _} -> unknown
    end.
