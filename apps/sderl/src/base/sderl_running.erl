%% SPDX-License-Identifier: Apache-2.0
-module(sderl_running).
-moduledoc false.
%% What a call of the interface gives on a node where the application does not run, may not, or stops
%% meanwhile and takes its tables along.

-export([call/1, while/1]).

-spec call(fun(() -> Result)) -> Result | {error, not_running | connect_all}.
call(Fun) ->
    case {ets:whereis(sderl_groups), sderl_dir:refuse()} of
        {undefined, _} -> {error, not_running};
        {_, undefined} -> while(Fun);
        {_, Why} -> {error, Why}
    end.

-doc "Of what needs the tables and nothing else.".
-spec while(fun(() -> Result)) -> Result | {error, not_running}.
while(Fun) ->
    try Fun()
    catch
        error:badarg:Stack ->
            case ets:whereis(sderl_groups) of
                undefined -> {error, not_running};
                _ -> erlang:raise(error, badarg, Stack)
            end
    end.
