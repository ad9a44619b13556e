%% SPDX-License-Identifier: Apache-2.0
-module(sderl_ops_awaits).
-moduledoc "Waiting, free ports and port mappers, for tests of operations.".

-export([await/2, await/3, free_port/0, end_epmd/1]).

-define(PAUSE_MS, 100).

-doc "Waits until the function returns `true`; a timeout shows its last value.".
-spec await(fun(() -> true | term()), Ms :: pos_integer()) -> ok.
await(Fun, Ms) -> await(Fun, Ms, ?PAUSE_MS).

-doc "The same with an interval, for conditions that may soon be over again.".
-spec await(fun(() -> true | term()), Ms :: pos_integer(), PauseMs :: pos_integer()) -> ok.
await(Fun, Ms, Pause) -> await_until(Fun, Pause, erlang:monotonic_time(millisecond) + Ms).

await_until(Fun, Pause, Deadline) ->
    case Fun() of
        true -> ok;
        Other ->
            case erlang:monotonic_time(millisecond) < Deadline of
                true ->
                    receive after Pause -> ok end,
                    await_until(Fun, Pause, Deadline);
                false -> error({timeout, Other})
            end
    end.

-doc "A port of this machine on which nobody listens now.".
-spec free_port() -> inet:port_number().
free_port() ->
    Port = sderl_fleet_ct:free_port([{127, 0, 0, 1}], 100),
    true = is_integer(Port),
    Port.

-doc "Ends the port mapper of a port, which refuses until it has noticed that its nodes ended.".
-spec end_epmd(Port :: string()) -> ok.
end_epmd(Port) ->
    await(fun() ->
        Said = os:cmd("ERL_EPMD_PORT=" ++ Port ++ " epmd -kill"),
        string:find(Said, "not allowed") =:= nomatch orelse Said
    end, 60_000).
