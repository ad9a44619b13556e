%% SPDX-License-Identifier: Apache-2.0
-module(sderl_place_child).
-moduledoc false.
%% The process that `sderl_place_keeper` spawns on a node: the placed process itself, which runs at
%% once or when it has its name, or the parent of a process that is started as a supervisor starts
%% its children.
%%
%% Its group leader is of the node where it runs, so output and log are there: a spawned process
%% would have the keeper's.

-export([run/2, await_go/2, start/2]).

-define(SHUTDOWN, 5000).

-type mfa_args() :: {module(), atom(), [term()]}.

-doc "Runs as under `proc_lib:spawn_link/3`, which would wait for the node: may be a `gen_server`.".
-spec run(pid(), mfa_args()) -> term().
run(Keeper, {M, F, Args}) ->
    ok = at_home(),
    proc_lib:init_p(Keeper, [], M, F, Args).

-doc """
A process that is to have a name does not run before it has the name. Meanwhile it ends only by the
link to its keeper.
""".
-spec await_go(pid(), mfa_args()) -> term().
await_go(Keeper, MFA) ->
    receive {sderl_place_go, Keeper} -> run(Keeper, MFA) end.

-doc """
Starts a process and stands for it: ends when it ends, and ends it when the keeper or the link to
the keeper's node does.
""".
-spec start(pid(), mfa_args()) -> no_return().
start(Keeper, {M, F, Args}) ->
    _ = process_flag(trap_exit, true),
    ok = at_home(),
    case apply(M, F, Args) of
        {ok, Pid} when is_pid(Pid) -> started(Keeper, Pid);
        {ok, Pid, _} when is_pid(Pid) -> started(Keeper, Pid);
        {error, Why} -> exit({start, Why});
        Other -> exit({start, Other})
    end.

started(Keeper, Pid) ->
    Keeper ! {sderl_place_started, self(), Pid},
    stand_for(Keeper, Pid).

stand_for(Keeper, Pid) ->
    receive
        {'EXIT', Pid, Why} -> exit(Why);
        {'EXIT', Keeper, Why} ->
            Mon = monitor(process, Pid),
            exit(Pid, shutdown),
            receive {'DOWN', Mon, process, Pid, _} -> ok
            after ?SHUTDOWN -> exit(Pid, kill)
            end,
            exit(Why);
        _ -> stand_for(Keeper, Pid)
    end.

at_home() ->
    _ = case whereis(user) of
        undefined -> true;
        User -> group_leader(User, self())
    end,
    ok.
