%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dependent).
-moduledoc false.
%% A process that must not outlive another. A link would not do: its own end would end the other,
%% too, and a process in an endless function handles no exit message.

-export([on/1]).

-doc "The calling process is killed when the other ends.".
-spec on(pid()) -> ok.
on(Watched) ->
    Dependent = self(),
    _ = spawn(fun() -> watch(Watched, Dependent) end),
    ok.

watch(Watched, Dependent) ->
    W = monitor(process, Watched),
    D = monitor(process, Dependent),
    receive
        {'DOWN', W, process, _, _} -> exit(Dependent, kill);
        {'DOWN', D, process, _, _} -> true
    end.
