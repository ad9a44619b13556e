%% SPDX-License-Identifier: Apache-2.0
-module(sderl_actions_task).
-moduledoc """
Runs an action on the nodes of one request, on sixteen at a time, and sends the answers of each node
to the server (`m:sderl_actions_requests`). It ends with the server, and the action on the nodes
with it.
""".

-export([start/3]).
-export_type([task/0]).

-import(sderl_mon_clock, [now_ms/0]).

-doc "`nodes`: ids with their nodes; `inject`: whether code may be loaded into a node.".
-type task() :: #{
    nodes := [{sderl_mon_types:id(), node()}],
    run := {module(), atom()},
    args := #{atom() => term()},
    bounds := sderl_actions_node:bounds(),
    inject := boolean()
}.

-define(AT_ONCE, 16).
%% How long a node may take, after the action's time limit, to report that.
-define(GRACE_MS, 5000).
%% The longest sentence, in bytes.
-define(MOST_ERROR, 2000).

-doc """
The server gets `{node, Request, Id, sderl_actions_request:told()}` for each answer, and the
`'DOWN'` message of this process when all nodes have answered.
""".
-spec start(pid(), binary(), task()) -> {pid(), reference()}.
start(Server, Request, Task) ->
    spawn_monitor(fun() ->
        _ = monitor(process, Server),
        _ = process_flag(trap_exit, true),
        Tell = fun(Id, What) ->
            Server ! {node, Request, Id, What},
            ok
        end,
        run(maps:get(nodes, Task), #{}, Tell, Task)
    end).

run([], Running, _, _) when map_size(Running) =:= 0 -> ok;
run([{Id, Node} | Rest], Running, Tell, Task) when map_size(Running) < ?AT_ONCE ->
    ok = Tell(Id, begun),
    Pid = spawn_link(fun() -> Tell(Id, on_node(Node, fun(Said) -> Tell(Id, Said) end, Task)) end),
    run(Rest, Running#{Pid => Id}, Tell, Task);
run(Waiting, Running, Tell, Task) ->
    receive
        {'EXIT', Pid, normal} -> run(Waiting, maps:remove(Pid, Running), Tell, Task);
        {'EXIT', Pid, Why} when is_map_key(Pid, Running) ->
            ok = Tell(map_get(Pid, Running), {error, sderl_mon_text:text("it failed: ~0tP",
                                                                         [Why, 12])}),
            run(Waiting, maps:remove(Pid, Running), Tell, Task);
        %% From the server, which stops the request.
        {'EXIT', _, _} -> exit(shutdown);
        {'DOWN', _, process, _, _} -> exit(shutdown)
    end.

on_node(Node, Tell, Task) ->
    #{run := Run, args := Args, bounds := #{ms := Ms} = Bounds, inject := Inject} = Task,
    Call = {sderl_actions_node, start, [self(), Run, Args, Bounds]},
    maybe
        {ok, Guard} ?= sderl_actions_reach:call(Node, Call, Inject),
        follow(Guard, monitor(process, Guard), Tell, now_ms() + Ms + ?GRACE_MS)
    end.

follow(Guard, Monitor, Tell, Until) ->
    receive
        {sderl_actions, Guard, {said, Term}} ->
            case encoded(Term) of
                {ok, Json} -> ok = Tell({said, Json});
                {error, _} -> ok
            end,
            follow(Guard, Monitor, Tell, Until);
        {sderl_actions, Guard, {done, {ok, Term}}} -> encoded(Term);
        {sderl_actions, Guard, {done, {error, Why}}} when is_binary(Why) ->
            {error, sderl_mon_text:cut(Why, ?MOST_ERROR)};
        {sderl_actions, Guard, {done, Why}} ->
            {error, sderl_mon_text:text("its answer is malformed: ~0tP", [Why, 12])};
        {'DOWN', Monitor, process, _, noconnection} ->
            {error, ~"the node went down meanwhile; whether it was done is not known"};
        {'DOWN', Monitor, process, _, Why} ->
            {error, sderl_mon_text:text("it was ended on the node: ~0tP", [Why, 12])}
    after max(0, Until - now_ms()) ->
        {error, ~"the node hangs: no answer in time; whether it was done is not known"}
    end.

-define(MOST_BYTES, 1_000_000).

encoded(Term) ->
    try iolist_to_binary(json:encode(Term)) of
        Json when byte_size(Json) =< ?MOST_BYTES -> {ok, Json};
        _ -> {error, ~"the answer is larger than 1 MB"}
    catch
        error:_ -> {error, ~"its answer is malformed"}
    end.
