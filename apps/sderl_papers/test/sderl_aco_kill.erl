%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_kill).
-moduledoc """
Runs on a node: finds processes of ant colonies by their labels, whatever the run, and kills them.
""".

-export([all/0, one/1]).

-doc "All processes of ant colonies on this node.".
-spec all() -> [{term(), pid()}].
all() -> [{Key, Pid} || Pid <- processes(), {aco, _, Key} <- [proc_lib:get_label(Pid)]].

-doc "Kills one process of a class, when there is one.".
-spec one(sderl_aco_tree:class()) -> boolean().
one(Class) ->
    case [Pid
          || {aco, Run} <- lists:usort([{aco, R}
                                        || P <- processes(),
                                           {aco, R, _} <- [proc_lib:get_label(P)]]),
             {_, Pid} <- sderl_aco_node:find(Run, Class)] of
        [] -> false;
        Found -> exit(lists:nth(rand:uniform(length(Found)), Found), kill)
    end.
