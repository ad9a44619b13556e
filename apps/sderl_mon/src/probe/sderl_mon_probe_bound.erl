%% SPDX-License-Identifier: Apache-2.0
-module(sderl_mon_probe_bound).
-moduledoc "How many callers may do at a time what costs the node something.".

-export([looking/1, bounded/2]).

-doc "For looks at names and at single processes: four at a time.".
-spec looking(fun(() -> Answer)) -> Answer | {error, busy}.
looking(Fun) ->
    bounded([sderl_mon_look_1, sderl_mon_look_2, sderl_mon_look_3, sderl_mon_look_4], Fun).

-doc """
Does it under a registered name of these, which goes when the caller ends: so many do such a thing
at a time; else `busy`.
""".
-spec bounded([atom()], fun(() -> Answer)) -> Answer | {error, busy}.
bounded([], _) -> {error, busy};
bounded([Name | Others], Fun) ->
    try register(Name, self()) of
        true -> try Fun() after unregister(Name) end
    catch
        error:badarg ->
            case process_info(self(), registered_name) of
                %% A process of the node, which has its own name and asks one thing at a time.
                {registered_name, _} -> Fun();
                [] -> bounded(Others, Fun)
            end
    end.
