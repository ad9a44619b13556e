%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_node).
-moduledoc "Runs on the nodes of a distributed ant colony, for whoever started it: what is there of a run, and an end to it.".

-export([processes/1, find/2, kill/1]).

-doc "All processes of a run on this node, with the key of each; helpers have `registrar` or `{worker, Colony}`.".
-spec processes(Run :: term()) -> [{Key :: term(), pid()}].
processes(Run) ->
    [{Key, Pid} || Pid <- processes(), {aco, R, Key} <- [label(Pid)], R =:= Run, Pid =/= self()].

%% A process that has just died has none.
label(Pid) -> proc_lib:get_label(Pid).

-doc "Those that are replaced when they die, of one class or of `all`.".
-spec find(Run :: term(), sderl_aco_tree:class() | all) -> [{sderl_aco_tree:key(), pid()}].
find(Run, Class) -> [{Key, Pid} || {Key, Pid} <- processes(Run), wanted(Class, Key)].

wanted(Class, master) -> Class =:= master orelse Class =:= all;
wanted(_, Key) when not is_tuple(Key) -> false;
wanted(Class, Key) -> lists:member(element(1, Key), [supervisor, submaster, colony]) andalso (Class =:= all orelse element(1, Key) =:= Class).

-doc "Kills all processes of a run on this node; how many there were.".
-spec kill(Run :: term()) -> non_neg_integer().
kill(Run) ->
    Found = processes(Run),
    lists:foreach(fun({_, Pid}) -> exit(Pid, kill) end, Found),
    length(Found).
