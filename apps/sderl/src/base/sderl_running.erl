%% SPDX-License-Identifier: Apache-2.0
-module(sderl_running).
-moduledoc false.
%% The result of a call of the API on a node where the application does not run, may not run, or
%% stops during the call, when its tables vanish.

-export([call/1, while/1]).

-spec call(fun(() -> Result)) -> Result | {error, not_running | connect_all}.
call(Fun) ->
    case {sderl_dir:is_running(), sderl_dir:refuse()} of
        {false, _} -> {error, not_running};
        {true, undefined} -> while(Fun);
        {true, Why} -> {error, Why}
    end.

-doc "Runs a function that needs the tables and nothing else.".
-spec while(fun(() -> Result)) -> Result | {error, not_running}.
while(Fun) ->
    try Fun()
    catch
        error:badarg:Stack ->
            %% Tables vanish one after the other, and the library may have started again meanwhile.
            case is_of_no_table(Stack) orelse not sderl_dir:is_running() of
                true -> {error, not_running};
                false -> erlang:raise(error, badarg, Stack)
            end
    end.

is_of_no_table([{ets, _, _, Info} | _]) ->
    case lists:keyfind(error_info, 1, Info) of
        {error_info, #{cause := id}} -> true;
        _ -> false
    end;
is_of_no_table(_) -> false.
