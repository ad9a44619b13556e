%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_node).
-moduledoc """
Called on the nodes of a distributed ant colony by the controlling program: prepares a node, lists
the processes of a run on it, and kills them.
""".

-export([start/1, stop/1, processes/1, find/2, kill/1]).

-doc "Makes this node ready for a run.".
-spec start(Run :: term()) -> ok.
start(Run) ->
    ok = sderl_aco_tally:start(Run),
    sderl_aco_roles:start(Run).

-doc "Undoes `start/1`.".
-spec stop(Run :: term()) -> ok.
stop(Run) ->
    ok = sderl_aco_roles:stop(Run),
    sderl_aco_tally:stop(Run).

-doc """
All processes of a run on this node, with the key of each; helpers have `registrar` or
`{worker, Colony}`.
""".
-spec processes(Run :: term()) -> [{Key :: term(), pid()}].
processes(Run) ->
    [{Key, Pid}
     || Pid <- processes(), {aco, R, Key} <- [proc_lib:get_label(Pid)], R =:= Run, Pid =/= self()].

-doc "The processes that are replaced when they die, of one class or of `all`.".
-spec find(Run :: term(), sderl_aco_tree:class() | all) -> [{sderl_aco_tree:key(), pid()}].
find(Run, Class) ->
    [Role
     || {Key, _} = Role <- sderl_aco_roles:list(Run),
        Class =:= all orelse Class =:= sderl_aco_tree:class(Key)].

-doc "Kills all processes of a run on this node; gives how many there were.".
-spec kill(Run :: term()) -> non_neg_integer().
kill(Run) ->
    Found = processes(Run),
    lists:foreach(fun({_, Pid}) -> exit(Pid, kill) end, Found),
    length(Found).
