%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_roles).
-moduledoc """
Knows which process of a run has which role on this node.

All processes that ever have a role are on one node, so it is decided here at once whether a role is
taken. Names are known everywhere only a while later: a new parent looks for its children by their
names, and starts a second one where a name is not there yet. The second one ends with
`{shutdown, {already, Pid}}`, and its boss takes the first.

The table belongs to a process that is not part of the run.
""".

-export([start/1, stop/1, claim/3, list/1]).

-define(START_MS, 60_000).

-doc "Begins with no roles taken.".
-spec start(Run :: term()) -> ok.
start(Run) ->
    Owner = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> keeper(Owner, Run) end),
    receive
        {ready, Pid} ->
            true = demonitor(Monitor, [flush]),
            ok;
        {'DOWN', Monitor, process, Pid, Reason} ->
            exit(Reason)
    after ?START_MS -> exit(timeout)
    end.

keeper(Owner, Run) ->
    proc_lib:set_label({?MODULE, Run}),
    Table = ets:new(?MODULE, [public, {read_concurrency, true}]),
    ok = persistent_term:put({?MODULE, Run}, {self(), Table}),
    Owner ! {ready, self()},
    receive
        {stop, Ref} -> Ref ! {Ref, ok}
    end.

-doc "Removes the table.".
-spec stop(Run :: term()) -> ok.
stop(Run) ->
    case persistent_term:get({?MODULE, Run}, none) of
        none ->
            ok;
        {Pid, _} ->
            _ = persistent_term:erase({?MODULE, Run}),
            _ = sderl_fleet_task:ask(Pid, stop, infinity),
            ok
    end.

-doc """
`true` when the process has the role now, else the process that has it. Where `start/1` was not
called, every claim succeeds.
""".
-spec claim(Run :: term(), sderl_aco_tree:key(), pid()) -> true | pid().
claim(Run, Key, Pid) ->
    case persistent_term:get({?MODULE, Run}, none) of
        none -> true;
        {_, Table} -> claim_in(Table, Key, Pid)
    end.

claim_in(Table, Key, Pid) ->
    ets:insert_new(Table, {Key, Pid}) orelse
        case ets:lookup(Table, Key) of
            [{_, Other} = Entry] ->
                case is_process_alive(Other) of
                    true ->
                        Other;
                    false ->
                        true = ets:delete_object(Table, Entry),
                        claim_in(Table, Key, Pid)
                end;
            [] ->
                claim_in(Table, Key, Pid)
        end.

-doc "The live processes with their roles.".
-spec list(Run :: term()) -> [{sderl_aco_tree:key(), pid()}].
list(Run) ->
    case persistent_term:get({?MODULE, Run}, none) of
        none -> [];
        {_, Table} -> [Role || {_, Pid} = Role <- ets:tab2list(Table), is_process_alive(Pid)]
    end.
