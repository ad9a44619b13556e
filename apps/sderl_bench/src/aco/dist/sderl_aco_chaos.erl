%% SPDX-License-Identifier: Apache-2.0
-module(sderl_aco_chaos).
-moduledoc "Kills of processes of a distributed ant colony while it runs: one on every node in each period.".

-export([start/4, stop/1]).

-doc "Begins, if it is wanted.".
-spec start(Fleet :: pid(), sderl_aco_cluster:params(), sderl_aco_life:conf(), sderl_aco_tree:layout()) -> none.
start(_Fleet, _Params, _Conf, _Layout) -> none.

-doc "What was killed.".
-spec stop(none) -> [term()].
stop(none) -> [].
