%% SPDX-License-Identifier: Apache-2.0
-module(sderl_fleet_call).
-moduledoc false.

%% Calls run in the calling process, or in one process for each node; the fleet's process
%% only says where a node is.

-export([call/6, multicall/6, await/2]).

-define(FIRST_PAUSE, 1).
-define(LONGEST_PAUSE, 50).

-spec call(pid(), node(), module(), atom(), [term()], timeout()) -> term().
call(Fleet, Node, M, F, A, Timeout) ->
    #{Node := Where} = sderl_fleet_server:where(Fleet, [Node]),
    call_there(Where, Node, M, F, A, Timeout).

call_there({up, Driver, Handle}, _, M, F, A, Timeout) ->
    Driver:call(Handle, M, F, A, Timeout);
call_there(down, Node, M, F, A, _) ->
    exit({noproc, {sderl_fleet, call, [Node, M, F, A]}});
call_there(unknown, Node, _, _, _, _) ->
    error({unknown_node, Node}).

-spec multicall(pid(), [node()], module(), atom(), [term()], timeout()) ->
    [{node(), {ok, term()} | {error, term()}}].
multicall(Fleet, Nodes, M, F, A, Timeout) ->
    Where = sderl_fleet_server:where(Fleet, Nodes),
    Deadline = deadline(Timeout),
    Tasks = [
        {Node, sderl_fleet_task:start(fun() ->
            answer(maps:get(Node, Where), Node, M, F, A, Timeout)
        end)}
     || Node <- Nodes
    ],
    [{Node, answered(sderl_fleet_task:result(Task, left(Deadline)))} || {Node, Task} <- Tasks].

answer(Where, Node, M, F, A, Timeout) ->
    try
        {ok, call_there(Where, Node, M, F, A, Timeout)}
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:{_, {gen_server, call, _}} -> {error, down};
        exit:{noproc, {sderl_fleet, call, _}} -> {error, down};
        error:{unknown_node, _} -> {error, unknown_node};
        Class:Reason -> {error, {Class, Reason}}
    end.

answered({ok, Answer}) -> Answer;
answered({error, {failed, Reason}}) -> {error, Reason};
answered({error, timeout}) -> {error, timeout}.

%% A little later than the calls themselves, whose timeouts say the same.
deadline(infinity) -> infinity;
deadline(Timeout) -> erlang:monotonic_time(millisecond) + Timeout + 100.

left(infinity) -> infinity;
left(Deadline) -> max(0, Deadline - erlang:monotonic_time(millisecond)).

-spec await(fun(() -> term()), timeout()) -> ok | {error, {timeout, Last :: term()}}.
await(Fun, Timeout) ->
    Deadline =
        case Timeout of
            infinity -> infinity;
            _ -> erlang:monotonic_time(millisecond) + Timeout
        end,
    await(Fun, Deadline, ?FIRST_PAUSE).

await(Fun, Deadline, Pause) ->
    case look(Fun) of
        true ->
            ok;
        ok ->
            ok;
        Last ->
            case left(Deadline) of
                0 ->
                    {error, {timeout, Last}};
                Left ->
                    receive
                    after min(Pause, Left) -> ok
                    end,
                    await(Fun, Deadline, min(2 * Pause, ?LONGEST_PAUSE))
            end
    end.

%% A check that raises now may hold later: a node that is not up yet, a badmatch on old data.
look(Fun) ->
    try
        Fun()
    catch
        Class:Reason:Stack -> {Class, Reason, Stack}
    end.
