%% SPDX-License-Identifier: Apache-2.0
-module(sderl_orbit_kill).
-moduledoc "Runs on a node: finds processes of Orbit by their labels, and kills them.".

-export([processes/1, all/0, one/1]).

-doc "The processes of a role on this node.".
-spec processes(worker | gateway | submaster | master) -> [{tuple(), pid()}].
processes(Role) -> [{Label, Pid} || {Label, Pid} <- all(), element(2, Label) =:= Role].

-doc "All processes of Orbit on this node.".
-spec all() -> [{tuple(), pid()}].
all() ->
    [{Label, Pid}
     || Pid <- processes(), Label <- [proc_lib:get_label(Pid)], is_tuple(Label),
        element(1, Label) =:= orbit].

-doc "Kills one process of a role, when there is one.".
-spec one(worker | gateway | submaster | master) -> boolean().
one(Role) ->
    case processes(Role) of
        [] -> false;
        [{_, Pid} | _] -> exit(Pid, kill)
    end.
