%% SPDX-License-Identifier: Apache-2.0
-module(sderl_group_sup).
-moduledoc false.
%% The processes of this node's groups, one each. A process that dies is restarted however often,
%% and finds its state in the tables: to give up would take the names of a healthy node down with
%% it. A new supervisor starts the groups that the directory shows.

-behaviour(supervisor).

-export([start_link/0, start_group/2, stop_group/1, await_left/1]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() ->
    case supervisor:start_link({local, ?MODULE}, ?MODULE, []) of
        {ok, Sup} ->
            lists:foreach(fun({Group, #{uid := Uid, process := Old}}) ->
                successor(Group, Uid, Old)
            end, sderl_dir:all()),
            lists:foreach(fun sderl_dir:finish/1, sderl_dir:leaving()),
            {ok, Sup};
        Error -> Error
    end.

%% The processes of a supervisor that was killed end with it, but not at once, and two of a group
%% must not write to its tables.
successor(Group, Uid, Old) ->
    Mon = monitor(process, Old),
    true = exit(Old, kill),
    receive {'DOWN', Mon, process, Old, _} -> ok end,
    case start_group(Group, Uid) of
        {ok, _} -> ok;
        %% The process left the group before it ended.
        {error, gone} -> ok
    end.

-spec start_group(term(), binary()) -> {ok, pid()} | {error, term()}.
start_group(Group, Uid) ->
    case supervisor:start_child(?MODULE, [Group, Uid]) of
        {ok, Pid} when is_pid(Pid) -> {ok, Pid};
        {ok, _, gone} -> {error, gone};
        {error, Reason} -> {error, Reason}
    end.

-doc """
Returns when nothing is left of a former membership of this node in the group. A process that leaves
needs a moment for its tables. If it is killed meanwhile, its successor finishes that before this
supervisor answers; if it was no process of a group, this function does.
""".
-spec await_left(term()) -> ok.
await_left(Group) ->
    case sderl_dir:leaver(Group) of
        none -> ok;
        Pid ->
            Monitor = monitor(process, Pid),
            receive {'DOWN', Monitor, process, Pid, _} -> ok end,
            _ = supervisor:count_children(?MODULE),
            sderl_dir:finish(Group)
    end.

-spec stop_group(pid()) -> ok.
stop_group(Pid) ->
    _ = supervisor:terminate_child(?MODULE, Pid),
    ok.

-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 1000, period => 1},
          [#{id => group, start => {sderl_group, start_link, []}, restart => transient,
             shutdown => 2000}]}}.
