%% SPDX-License-Identifier: Apache-2.0
-module(sderl_dependent).
-moduledoc false.
%% A process that shall not outlive another, without a link: its own end would be the other's too,
%% and one that is in an endless function hears nothing.

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
