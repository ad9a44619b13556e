%% SPDX-License-Identifier: Apache-2.0
-module(sderl_chaos_node).
-moduledoc """
Kills whole nodes and waits until they are back. A node's own clock ends with it, so the time is
measured here: from the moment before the kill until the node of that name answers a call again, in
a new life (and, with `ready`, until that function gives `true` there).
""".

-export([kill/3, await/4]).
-export_type([spec/0, life/0]).

-doc """
How a node is killed: by a fleet, which restarts it after `RestartMs`; or by `erlang:halt/2`, and
only the user's own means restart it.
""".
-type spec() :: {fleet, pid(), RestartMs :: undefined | non_neg_integer(),
                 Ready :: undefined | mfargs()} | {halt, Ready :: undefined | mfargs()}.
-type mfargs() :: {module(), atom(), [term()]}.

-doc "Tells one life of a node from the next.".
-type life() :: integer().

%% The status of a process killed by SIGKILL, so that it is not taken for an end in order.
-define(STATUS, 137).
-define(PAUSE_MS, 20).

-doc """
Kills a node. Gives the life that it had and the microseconds of the monotonic clock just before.
""".
-spec kill(sderl_chaos_reach:call(), node(), spec()) ->
    {ok, life(), SinceUs :: integer()} | {error, missed | term()}.
kill(Call, Node, Spec) ->
    try Call(Node, erlang, system_info, [creation]) of
        Life ->
            Since = erlang:monotonic_time(microsecond),
            case kill_it(Call, Node, Spec) of
                ok -> {ok, Life, Since};
                {error, _} = Error -> Error
            end
    catch
        _:_ -> {error, missed}
    end.

kill_it(_, Node, {fleet, Fleet, _, _}) ->
    try
        sderl_fleet:kill(Fleet, Node)
    catch
        exit:Reason -> {error, Reason}
    end;
kill_it(Call, Node, {halt, _}) ->
    %% An answer means that it has not halted.
    try Call(Node, erlang, halt, [?STATUS, [{flush, false}]]) of
        Other -> {error, {not_halted, Other}}
    catch
        _:_ -> ok
    end.

-doc "Waits for the node's next life, without end. Gives the microseconds since the kill.".
-spec await(sderl_chaos_reach:call(), node(), spec(), {life(), SinceUs :: integer()}) ->
    BackUs :: non_neg_integer().
await(Call, Node, Spec, {Life, Since}) when is_integer(Since) ->
    Ready =
        case Spec of
            {fleet, Fleet, RestartMs, R} ->
                restart(Fleet, Node, RestartMs),
                R;
            {halt, R} ->
                R
        end,
    lives(Call, Node, Life, Ready),
    erlang:monotonic_time(microsecond) - Since.

restart(_, _, undefined) ->
    ok;
restart(Fleet, Node, Ms) ->
    receive
    after Ms -> ok
    end,
    _ = sderl_fleet_task:attempt(fun() -> sderl_fleet:restart(Fleet, Node) end),
    ok.

lives(Call, Node, Life, Ready) ->
    IsBack =
        try
            Call(Node, erlang, system_info, [creation]) =/= Life andalso is_ready(Call, Node, Ready)
        catch
            _:_ -> false
        end,
    case IsBack of
        true ->
            ok;
        false ->
            receive
            after ?PAUSE_MS -> lives(Call, Node, Life, Ready)
            end
    end.

is_ready(_, _, undefined) -> true;
is_ready(Call, Node, {M, F, A}) -> Call(Node, M, F, A) =:= true.
