%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_bound).
-moduledoc "Bounds how many callers do something costly at a time.".

-export([looking/1, bounded/2]).

-doc "For looks at names and at single processes: four at a time.".
-spec looking(fun(() -> Answer)) -> Answer | {error, busy}.
looking(Fun) ->
    bounded([sderl_mon_look_1, sderl_mon_look_2, sderl_mon_look_3, sderl_mon_look_4], Fun).

-doc """
Runs a function while the caller is registered under one of these names, or returns `busy` if all
are taken. A name is free again when its process ends, however it does.
""".
-spec bounded([atom()], fun(() -> Answer)) -> Answer | {error, busy}.
bounded([], _) -> {error, busy};
bounded([Name | Others], Fun) ->
    try register(Name, self()) of
        true -> try Fun() after unregister(Name) end
    catch
        error:badarg ->
            case process_info(self(), registered_name) of
                %% A process of the node with a name of its own, which asks one thing at a time.
                {registered_name, _} -> Fun();
                [] -> bounded(Others, Fun)
            end
    end.
